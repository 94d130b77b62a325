//! The lines of a file that a shell command shows, if it does nothing else.

use serde_json::{Map, Value};

use super::shell::{Token, tokens};

/// A file that a command shows, from one line to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// As the command writes it.
    pub path: String,
    /// First line, counted from 1.
    pub first: usize,
    /// Last line, limited by the length of the file; `usize::MAX` for all.
    pub last: usize,
    /// True if the command puts its number before each line.
    pub numbered: bool,
}

/// Returns the lines that a call of the tool `bash` shows by `cat`, `nl`, `head`, `tail` or `sed -n`, if it runs one of them
/// alone, on one file, or takes lines from `cat` or `nl` by `sed -n`.
#[must_use]
pub fn shown_by_shell(tool: &str, args: &Map<String, Value>) -> Option<Shown> {
    let command = args.get("command")?.as_str().filter(|_| tool.eq_ignore_ascii_case("bash"))?;
    shown_by_command(command)
}

/// The lines that a command shows, as [`shown_by_shell`].
pub(crate) fn shown_by_command(command: &str) -> Option<Shown> {
    /// Every command that counts has fewer words and signs.
    const TOKENS: usize = 9;
    const ALL: usize = usize::MAX;
    let tokens = tokens(command.trim(), TOKENS);
    let mut commands = tokens.split(|token| *token == Token::Pipe).map(plain_words);
    let words = commands.next()??;
    let filter = commands.next();
    let (path, first, last, numbered) = match words[..] {
        ["cat", path] | ["cat", "--", path] => (path, 1, ALL, false),
        ["cat", "-n", path] | ["nl", "-ba", path] | ["cat", "-n", "--", path] | ["nl", "-ba", "--", path] => {
            (path, 1, ALL, true)
        }
        _ if filter.is_some() => return None,
        ["head", path] => (path, 1, 10, false),
        ["head", "-n", count, path] => (path, 1, number(count)?, false),
        ["head", count, path] => (path, 1, number(count.strip_prefix('-')?.trim_start_matches('n'))?, false),
        ["tail", "-n", from, path] => (path, number(from.strip_prefix('+')?)?, ALL, false),
        ["sed", "-n", script, path] => {
            let (first, last) = range(script)?;
            (path, first, last, false)
        }
        _ => return None,
    };
    let (first, last) = match filter {
        None => (first, last),
        Some(words) => match words?[..] {
            ["sed", "-n", script] => range(script)?,
            _ => return None,
        },
    };
    let is_path = !path.is_empty() && !path.starts_with('-') && commands.next().is_none();
    (is_path && first <= last).then(|| Shown { path: path.to_owned(), first, last, numbered })
}

/// The words of a command without operators, none of which the shell expands.
fn plain_words(tokens: &[Token]) -> Option<Vec<&str>> {
    let words = tokens.iter().map(|token| match token {
        Token::Word(word) if !word.expands => Some(word.text.as_str()),
        _ => None,
    });
    words.collect()
}

/// The lines that a script of `sed -n` prints: `3p`, `3,9p` or `3,$p`.
fn range(script: &str) -> Option<(usize, usize)> {
    let lines = script.strip_suffix('p')?;
    let (first, last) = lines.split_once(',').unwrap_or((lines, lines));
    Some((number(first)?, if last == "$" { usize::MAX } else { number(last)? }))
}

fn number(text: &str) -> Option<usize> {
    text.parse::<usize>().ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    const ALL: usize = usize::MAX;

    #[rstest]
    #[case("cat a.txt", Some(("a.txt", 1, ALL)))]
    #[case(" cat -- 'a b.txt'\n", Some(("a b.txt", 1, ALL)))]
    #[case("cat -n a", Some(("a", 1, ALL)))]
    #[case("nl -ba a", Some(("a", 1, ALL)))]
    #[case("head a", Some(("a", 1, 10)))]
    #[case("head -n 5 a", Some(("a", 1, 5)))]
    #[case("head -5 a", Some(("a", 1, 5)))]
    #[case("head -n5 a", Some(("a", 1, 5)))]
    #[case("tail -n +7 a", Some(("a", 7, ALL)))]
    #[case("sed -n '3,9p' a", Some(("a", 3, 9)))]
    #[case("sed -n 3p a", Some(("a", 3, 3)))]
    #[case("sed -n '3,$p' a", Some(("a", 3, ALL)))]
    #[case("nl -ba -- a", Some(("a", 1, ALL)))]
    #[case("nl -ba 'a b' | sed -n '3,4p'", Some(("a b", 3, 4)))]
    #[case("cat a|sed -n 3,\\$p", Some(("a", 3, ALL)))]
    #[case::filtered_twice("cat a | sed -n 3p | sed -n 1p", None)]
    #[case::filtered_from_a_part("head -5 a | sed -n 3p", None)]
    #[case::filtered_from_another("cat a | sed -n 3p b", None)]
    #[case::one_or_the_other("cat a || sed -n 3p", None)]
    #[case::one_after_the_other("cat a; sed -n 3p", None)]
    #[case::numbered_in_another_way("nl -n a", None)]
    #[case::the_end("tail -n 7 a", None)]
    #[case::two("cat a b", None)]
    #[case::more("cat a; ls", None)]
    #[case::piped("cat a | grep x", None)]
    #[case::elsewhere("cd b && cat a", None)]
    #[case::put_away("cat a > b", None)]
    #[case::from_input("cat < a", None)]
    #[case::a_pattern("cat *.txt", None)]
    #[case::a_variable("cat $A", None)]
    #[case::an_option("cat -A", None)]
    #[case::backwards("sed -n 9,3p a", None)]
    #[case::a_search("sed -n '/x/p' a", None)]
    #[case::in_place("sed -i s/a/b/ a", None)]
    #[case::nothing("", None)]
    fn command_shows_lines_of_a_file(#[case] command: &str, #[case] expected: Option<(&str, usize, usize)>) {
        let args = json!({ "command": command });
        let shown = shown_by_shell("bash", args.as_object().unwrap());
        assert_eq!(shown.as_ref().map(|shown| (&*shown.path, shown.first, shown.last)), expected);
        assert_eq!(shown_by_shell("read", args.as_object().unwrap()), None);
        let is_numbered = command.contains("nl -ba") || command.contains("cat -n");
        assert_eq!(shown.is_some_and(|shown| shown.numbered), is_numbered);
    }
}
