//! The names of objects within other texts: in a path that a tool is given, and anywhere in a prompt.

/// The fewest hexadecimal digits of a handle.
const HANDLE: usize = 8;

/// The most hexadecimal digits of a name: those of a whole hash.
const HASH: usize = 64;

/// The name of an object in a path such as `id=05f49740`, or `id=05f49740@7` for the version of transaction 7; `None` for the
/// path of a file. Some agents put an `@` before a path.
#[must_use]
pub fn name_in_path(path: &str) -> Option<&str> {
    let name = path.strip_prefix('@').unwrap_or(path).strip_prefix("id=")?;
    let (handle, version) = name.split_once('@').unwrap_or((name, "0"));
    let is_number = !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit());
    (is_handle(handle) && is_number).then_some(name)
}

/// The names of objects anywhere in a text, each once and in order: handles after `id=`, as headers and references have them. The
/// text may be JSON, in which a line break is two characters.
#[must_use]
pub fn names_in(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for (at, found) in text.match_indices("id=") {
        let rest = &text[at + found.len()..];
        let name = &rest[..rest.bytes().take_while(|byte| is_digit(*byte)).count()];
        let is_alone = starts_word(&text[..at]) && !rest[name.len()..].starts_with(is_word);
        if is_alone && is_handle(name) && name.len() <= HASH && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// True if a text has the form of a handle, or of the name of a text.
pub(crate) fn is_handle(name: &str) -> bool {
    name.len() >= HANDLE && name.bytes().all(is_digit)
}

/// True if a word begins after a text: its last character is not part of a word, or it is an escaped line break or tab.
fn starts_word(before: &str) -> bool {
    !before.ends_with(is_word)
        || before.ends_with("\\n")
        || before.ends_with("\\r")
        || before.ends_with("\\t")
}

fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
