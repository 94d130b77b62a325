//! The words of a simple command: its program, its operands and what its options mean.

use super::looks::{can_be_file, can_be_operand};
use super::shell::Word;

/// The program of a simple command and its arguments, without assignments, keywords and wrappers.
pub(super) fn program(words: &[Word]) -> Option<(&Word, &[Word])> {
    const BEFORE: [&str; 17] = [
        "if", "then", "else", "elif", "while", "until", "do", "!", "time", "command", "exec", "builtin",
        "nohup", "sudo", "env", "nice", "xargs",
    ];
    let mut rest = words;
    loop {
        let (first, after) = rest.split_first()?;
        let text = first.text.as_str();
        if BEFORE.contains(&text) || matches!(text, "{" | "}") {
            rest = after;
            // Options of the wrapper, and the number or name that some of them have.
            while let Some((option, more)) = rest.split_first().filter(|(word, _)| word.text.starts_with('-'))
            {
                rest = if matches!(option.text.as_str(), "-n" | "-u" | "-I" | "-P" | "-L") {
                    more.get(1..).unwrap_or(&[])
                } else {
                    more
                };
            }
        } else if text == "timeout" {
            let at = after.iter().position(|word| word.text.starts_with(|c: char| c.is_ascii_digit()))?;
            rest = &after[at + 1..];
        } else if is_assignment(text) {
            rest = after;
        } else {
            return Some((first, after));
        }
    }
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Arguments that are neither options nor empty. Each letter of `valued` is an option whose value is the next word.
pub(super) fn operands<'w>(args: &'w [Word], valued: &'w str) -> impl Iterator<Item = &'w Word> {
    let (mut value, mut only_operands) = (false, false);
    args.iter().filter(move |word| {
        let text = word.text.as_str();
        if std::mem::take(&mut value) || (text == "--" && !only_operands) {
            only_operands |= text == "--";
            return false;
        }
        let option = !only_operands && text.starts_with('-') && text.len() > 1;
        value = option && text.len() == 2 && valued.contains(&text[1..]);
        !option && (word.expands || !text.is_empty())
    })
}

/// Returns whether a word can name a file where a command expects one.
pub(super) fn is_operand(word: &Word) -> bool {
    // `+page.svelte`, `@types/node.d.ts`; but `+5` is a number of lines.
    let bare = word.text.strip_prefix(['+', '@']).filter(|rest| rest.starts_with(char::is_alphabetic));
    let can_be = match word.quoted {
        true => can_be_operand(&word.text),
        false => can_be_file(bare.unwrap_or(&word.text)),
    };
    !word.expands && can_be && !word.text.bytes().all(|b| b.is_ascii_digit())
}

pub(super) fn is_in_place(option: &str) -> bool {
    option == "--in-place"
        || option.starts_with("--in-place=")
        || (option.starts_with('-')
            && !option.starts_with("--")
            && option[1..].split('.').next().is_some_and(|o| o.contains('i')))
}

pub(super) fn is_script_option(option: &str) -> bool {
    option.starts_with("--expression") || option.starts_with("--file") || {
        option.starts_with('-')
            && !option.starts_with("--")
            && option[1..].contains(['e', 'f'])
            && option.len() <= 5
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("A=b", true)]
    #[case("_a1=", true)]
    #[case("=b", false)]
    #[case("1a=b", false)]
    #[case("a-b=c", false)]
    #[case("a.ts", false)]
    fn assignments(#[case] word: &str, #[case] expected: bool) {
        assert_eq!(is_assignment(word), expected);
    }

    #[rstest]
    #[case("-i", true)]
    #[case("-i.bak", true)]
    #[case("-ni", true)]
    #[case("--in-place", true)]
    #[case("--in-place=.bak", true)]
    #[case("-n", false)]
    #[case("-n.i", false)]
    #[case("--quiet", false)]
    #[case("s/i/x/", false)]
    fn options_to_edit_in_place(#[case] word: &str, #[case] expected: bool) {
        assert_eq!(is_in_place(word), expected);
    }

    #[rstest]
    #[case("-e", true)]
    #[case("-nf", true)]
    #[case("--expression=x", true)]
    #[case("--file=x", true)]
    #[case("--quiet", false)]
    #[case("-n", false)]
    #[case("-rlne", true)]
    #[case("-longe", false)]
    #[case("file", false)]
    fn options_that_give_the_program(#[case] word: &str, #[case] expected: bool) {
        assert_eq!(is_script_option(word), expected);
    }
}
