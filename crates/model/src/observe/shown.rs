//! The file whose lines a shell command shows, where it does nothing else.

use serde_json::{Map, Value};

use super::shell::{Token, tokens};

/// A file that a command shows, from one line to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// As the command writes it.
    pub path: String,
    /// First line, counted from 1.
    pub first: usize,
    /// Last line, as far as the file has so many; `usize::MAX` for all.
    pub last: usize,
}

/// What a call of the tool `bash` shows by `cat`, `nl`, `head`, `tail` or `sed -n`, if it runs one of them alone, on one file.
#[must_use]
pub fn shown_by_shell(tool: &str, args: &Map<String, Value>) -> Option<Shown> {
    /// No command that counts has so many words.
    const WORDS: usize = 8;
    const ALL: usize = usize::MAX;
    let command = args.get("command")?.as_str().filter(|_| tool.eq_ignore_ascii_case("bash"))?;
    let words = tokens(command.trim(), WORDS).into_iter().map(|token| match token {
        Token::Word(word) if !word.expands => Some(word.text),
        _ => None,
    });
    let words: Vec<String> = words.collect::<Option<_>>()?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<usize>().ok().filter(|number| *number > 0);
    let (path, first, last) = match words[..] {
        ["cat", path] | ["cat" | "nl", "-n" | "-ba" | "--", path] => (path, 1, ALL),
        ["head", path] => (path, 1, 10),
        ["head", "-n", count, path] => (path, 1, number(count)?),
        ["head", count, path] => (path, 1, number(count.strip_prefix('-')?.trim_start_matches('n'))?),
        ["tail", "-n", from, path] => (path, number(from.strip_prefix('+')?)?, ALL),
        ["sed", "-n", script, path] => {
            let lines = script.strip_suffix('p')?;
            let (first, last) = lines.split_once(',').unwrap_or((lines, lines));
            (path, number(first)?, if last == "$" { ALL } else { number(last)? })
        }
        _ => return None,
    };
    let is_path = !path.is_empty() && !path.starts_with('-');
    (is_path && first <= last).then(|| Shown { path: path.to_owned(), first, last })
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
    fn what_a_command_shows(#[case] command: &str, #[case] expected: Option<(&str, usize, usize)>) {
        let args = json!({ "command": command });
        let shown = shown_by_shell("bash", args.as_object().unwrap());
        assert_eq!(shown.as_ref().map(|shown| (&*shown.path, shown.first, shown.last)), expected);
        assert_eq!(shown_by_shell("read", args.as_object().unwrap()), None);
    }
}
