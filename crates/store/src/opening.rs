//! The beginning of a conversation: the user's own words among what hosts put around them, and the folder that hosts name.

/// The beginnings of texts that a host writes in the user's name, to their end.
const WHOLE: [&str; 2] = ["# AGENTS.md instructions", "Caveat: The messages below"];

/// The section whose text is the name of a command that the user gave, and the one with its arguments.
const COMMAND: [&str; 2] = ["command-name", "command-args"];

/// The first words of a user.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    /// The user's own words.
    Words(String),
    /// A command of the host, such as `/review`, with its arguments.
    Command(String),
}

/// Number of characters of a user's first words that identify a conversation.
const PROMPT: usize = 200;

/// The beginning of the user's own first words in the texts of a conversation; without any, of the first command.
pub fn first_words(texts: &[String]) -> Option<String> {
    let mut command = None;
    let words = texts.iter().find_map(|text| match said_in(text)? {
        Said::Words(words) => Some(words),
        Said::Command(given) => {
            command.get_or_insert(given);
            None
        }
    });
    Some(words.or(command)?.chars().take(PROMPT).collect())
}

/// The user's own part of a text, on one line; `None` if a host wrote all of it.
pub fn said_in(text: &str) -> Option<Said> {
    let (mut rest, mut command) = (text.trim_start(), Vec::new());
    loop {
        if let Some(section) = Section::at_start(rest) {
            if section.has_users_words() {
                rest = section.inner;
                break;
            }
            if COMMAND.contains(&section.name) {
                command.push(on_one_line(section.inner));
            }
            rest = section.rest.trim_start();
        } else if WHOLE.iter().any(|beginning| rest.starts_with(beginning)) {
            // The instructions are a section below their heading; without one they are the whole text.
            let below = rest.split_once('\n').map(|(_, below)| below.trim_start());
            let Some(below) = below.filter(|below| Section::at_start(below).is_some()) else {
                rest = "";
                break;
            };
            rest = below;
        } else {
            break;
        }
    }
    let words = on_one_line(rest);
    if !words.is_empty() {
        return Some(Said::Words(unquoted(&words).to_owned()));
    }
    command.retain(|part| !part.is_empty());
    (!command.is_empty()).then(|| Said::Command(command.join(" ")))
}

/// A text without the quotation marks around all of it, in which OpenCode puts a prompt from its command line.
fn unquoted(words: &str) -> &str {
    let inner = words.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.filter(|inner| !inner.trim().is_empty() && !inner.contains('"')).unwrap_or(words)
}

/// The working directory that a text names, as Pi, Claude Code, Codex, OpenCode and others write it; the last one.
pub fn folder_in(text: &str) -> Option<String> {
    let section = || Some(text.rsplit_once("<cwd>")?.1.split_once("</cwd>")?.0.trim());
    let line = || text.lines().rev().find_map(folder_of_line);
    section().filter(|folder| is_folder(folder)).or_else(line).map(ToOwned::to_owned)
}

/// The folder in a line such as `Primary working directory: /p` or `- The working directory is: /p`.
fn folder_of_line(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("orking directory")?;
    let word_before = before.strip_suffix(['W', 'w'])?;
    if word_before.ends_with(char::is_alphanumeric) {
        return None;
    }
    let after = after.strip_prefix(" is").unwrap_or(after);
    let folder = after.strip_prefix(':')?.trim().trim_matches('`');
    is_folder(folder).then_some(folder)
}

fn is_folder(text: &str) -> bool {
    let drive = text.as_bytes();
    let is_absolute =
        text.starts_with('/') || (drive.len() > 2 && drive[1] == b':' && drive[0].is_ascii_alphabetic());
    is_absolute && !text.contains(['\n', '<', '"'])
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A part of a text between two tags.
struct Section<'t> {
    name: &'t str,
    inner: &'t str,
    /// The text after it.
    rest: &'t str,
}

impl<'t> Section<'t> {
    /// A host's section at the start of a text. A user's own tag, such as `<div>` or `<task>`, is not one.
    fn at_start(text: &'t str) -> Option<Self> {
        let (tag, after) = text.strip_prefix('<')?.split_once('>')?;
        let name = tag.split(char::is_whitespace).next().unwrap_or_default();
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let is_hosts = name.contains(['-', '_'])
            || (name.len() > 1 && name.bytes().all(|byte| byte.is_ascii_uppercase()));
        if !is_hosts || !name.bytes().all(is_name) {
            return None;
        }
        let (inner, rest) = after.split_once(&format!("</{name}>"))?;
        Some(Section { name, inner, rest })
    }

    /// True if it contains the user's words, as `user_query` does.
    fn has_users_words(&self) -> bool {
        self.name.starts_with("user")
            && ["query", "request", "message", "prompt", "input"].iter().any(|end| self.name.ends_with(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Option<Said> {
        Some(Said::Words(text.into()))
    }

    #[test]
    fn the_users_words_are_found_among_a_hosts() {
        let agents = "# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>";
        for (text, said) in [
            ("fix\n the  test", words("fix the test")),
            ("<system-reminder>\nAs you answer\n</system-reminder>\nfix it", words("fix it")),
            (
                "<system-reminder>a</system-reminder>\n\n<ide_selection>b</ide_selection>fix it",
                words("fix it"),
            ),
            ("<system-reminder>a</system-reminder>", None),
            (agents, None),
            (&format!("{agents}\nfix it"), words("fix it")),
            ("# AGENTS.md instructions for /p\n\nBe brief.", None),
            ("<environment_context>\n  <cwd>/p</cwd>\n</environment_context>", None),
            ("<user_query>\nfix it\n</user_query>", words("fix it")),
            ("<div> is not closed", words("<div> is not closed")),
            ("<task>fix it</task>", words("<task>fix it</task>")),
            ("<my-element> is not closed", words("<my-element> is not closed")),
            ("< 3 and > 4", words("< 3 and > 4")),
            ("Caveat: The messages below were generated by the user", None),
            ("Caveat: it is slow", words("Caveat: it is slow")),
            ("# AGENTS.md is wrong", words("# AGENTS.md is wrong")),
            (
                "<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>a.ts</command-args>",
                Some(Said::Command("/review a.ts".into())),
            ),
            ("\"fix the test\"", words("fix the test")),
            ("\"fix\" and \"test\"", words("\"fix\" and \"test\"")),
            ("say \"yes\"", words("say \"yes\"")),
            ("\"\"", words("\"\"")),
            ("", None),
        ] {
            assert_eq!(said_in(text), said, "{text}");
        }
    }

    #[test]
    fn the_folder_stands_in_the_text() {
        for (text, folder) in [
            ("x\n<cwd>\n/home/me/p\n</cwd>\n", Some("/home/me/p")),
            ("<environment_context>\n  <cwd>/home/me/p</cwd>\n</environment_context>", Some("/home/me/p")),
            ("x\nCurrent working directory: /home/me/p\n", Some("/home/me/p")),
            ("<env>\n  Working directory: /home/me/p\n</env>", Some("/home/me/p")),
            (" - Primary working directory: /home/me/p\n - Is a git repository: false", Some("/home/me/p")),
            ("The working directory is: `/home/me/my p`", Some("/home/me/my p")),
            ("Current working directory: C:\\Users\\me\n", Some("C:\\Users\\me")),
            ("Be brief.", None),
            ("<cwd>\n\n</cwd>", None),
            ("Working directory: none", None),
            ("Networking directory: /p", None),
        ] {
            assert_eq!(folder_in(text).as_deref(), folder, "{text}");
        }
    }
}
