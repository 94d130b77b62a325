//! The words of a simple command: its program, its operands, what its options mean, and whether a word looks like the path of a
//! file.

use super::shell::Word;

/// Longer texts are not paths on the systems on which agents run.
const MAX_BYTES: usize = 4_096;

/// True if a text can be a path at all.
pub(super) fn can_be_path(text: &str) -> bool {
    !text.trim().is_empty() && text.len() <= MAX_BYTES && !text.contains(['\0', '\n', '\r'])
}

/// True if a path argument names an object (`id=05f49740`, `id=05f49740@7`) and not a file. Pi's `read` gets
/// such names for outputs that have collapsed.
pub(super) fn is_object(text: &str) -> bool {
    context_lines::name_in_path(text).is_some()
}

/// True if a word can be a file where a command expects one: not a flag, directory, address or pattern.
pub(super) fn can_be_file(word: &str) -> bool {
    can_be_operand(word)
        && !word.starts_with(['+', '!', '%', '@', '#'])
        && !word.contains(['*', '?', '<', '>', '|', '"', '`', '$', '{', '}', '\\', '\t'])
}

/// The same of a word that a shell takes as it stands, as it does what is quoted: `'routes/$id.tsx'`.
pub(super) fn can_be_operand(word: &str) -> bool {
    can_be_path(word)
        && !word.starts_with('-')
        && !word.ends_with('/')
        && !word.contains("://")
        && !["/dev/", "/proc/", "/sys/"].iter().any(|start| word.starts_with(start))
        && !matches!(last_segment(word), "" | "." | ".." | "~")
}

/// True if a word anywhere looks like a file: as [`can_be_file`], and with a folder, an extension or a
/// well-known name, and more than a number.
pub(crate) fn looks_like_file(word: &str) -> bool {
    can_be_file(word)
        && !word.contains([' ', '=', ',', ';', '\'', '(', ')'])
        && !word.chars().all(|c| c.is_ascii_digit() || "./:+-_~%xX".contains(c))
        && (word.contains('/') || has_extension(word) || is_well_known(word))
}

/// As [`looks_like_file`], for a quoted word with spaces, which must start like a path.
pub(super) fn looks_like_spaced_file(word: &str) -> bool {
    can_be_file(word)
        && ["/", "./", "../", "~/"].iter().any(|start| word.starts_with(start))
        && word.len() <= 255
}

fn last_segment(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn has_extension(word: &str) -> bool {
    let name = last_segment(word);
    match name.rsplit_once('.') {
        // A dot file: .gitignore
        Some(("", rest)) => rest.len() > 1 && rest.starts_with(|c: char| c.is_ascii_alphabetic()),
        Some((stem, extension)) => {
            (1..=12).contains(&extension.len())
                && !stem.ends_with('.')
                && extension.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
                && extension.contains(|c: char| c.is_ascii_alphabetic())
        }
        None => false,
    }
}

/// Well-known files without an extension.
fn is_well_known(word: &str) -> bool {
    const NAMES: [&str; 14] = [
        "AUTHORS",
        "BUILD",
        "CHANGELOG",
        "CODEOWNERS",
        "Dockerfile",
        "Gemfile",
        "Jenkinsfile",
        "Justfile",
        "LICENSE",
        "Makefile",
        "Procfile",
        "README",
        "Rakefile",
        "Vagrantfile",
    ];
    NAMES.contains(&word)
}

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

/// True if a word can name a file where a command expects one.
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
    #[case("src/main.rs", true)]
    #[case("main.rs", true)]
    #[case("/etc/hosts", true)]
    #[case("~/notes.md", true)]
    #[case("../a/b", true)]
    #[case(".gitignore", true)]
    #[case("Makefile", true)]
    #[case("app/[id]/page.tsx", true)]
    #[case("naïve/файл.txt", true)]
    #[case("archive.tar.gz", true)]
    #[case("a.mp3", true)]
    #[case("-rf", false)]
    #[case("--config=a.toml", false)]
    #[case("+x", false)]
    #[case("644", false)]
    #[case("1.2.3", false)]
    #[case("12:30", false)]
    #[case("1/2", false)]
    #[case("./..", false)]
    #[case("src/", false)]
    #[case(".", false)]
    #[case("..", false)]
    #[case("https://a.b/c.html", false)]
    #[case("*.rs", false)]
    #[case("$HOME/x.rs", false)]
    #[case("/dev/null", false)]
    #[case("word", false)]
    #[case("end.", false)]
    #[case("etc...", false)]
    #[case("a=b.txt", false)]
    #[case("", false)]
    #[case("a\nb.txt", false)]
    fn files(#[case] word: &str, #[case] expected: bool) {
        assert_eq!(looks_like_file(word), expected);
    }

    #[rstest]
    #[case::plain("a.ts", true)]
    #[case::dot_file(".gitignore", true)]
    #[case::dash_in_it("report.tar-gz", true)]
    #[case::underscore_in_it("a.x86_64", true)]
    #[case::another_sign_in_it("a.b@c", false)]
    #[case::twelve("a.abcdefghijkl", true)]
    #[case::thirteen("a.abcdefghijklm", false)]
    #[case::only_digits("version.12", false)]
    #[case::ellipsis("wait..a", false)]
    #[case::one_letter_dot_file(".a", false)]
    #[case::none("word", false)]
    fn extensions(#[case] word: &str, #[case] expected: bool) {
        assert_eq!(has_extension(word), expected);
    }

    #[rstest]
    #[case("id=05f49740", true)]
    #[case("id=05f49740ab@7", true)]
    #[case("id=05f4974", false)]
    #[case("id=05f4974x", false)]
    #[case("id=05f49740@", false)]
    #[case("id=05f49740@x", false)]
    #[case("05f49740", false)]
    fn names_of_objects(#[case] word: &str, #[case] expected: bool) {
        assert_eq!(is_object(word), expected);
    }

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
