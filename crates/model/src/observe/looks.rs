//! Does a word look like the path of a file?

/// Longer texts are not paths on the systems on which agents run.
const MAX_BYTES: usize = 4_096;

/// Returns whether a text can be a path at all.
pub(super) fn can_be_path(text: &str) -> bool {
    !text.trim().is_empty() && text.len() <= MAX_BYTES && !text.contains(['\0', '\n', '\r'])
}

/// Returns whether a path argument names an object (`id=05f49740`, `id=05f49740@7`) and not a file. Pi's `read` gets
/// such names for outputs that have collapsed.
pub(super) fn is_object(text: &str) -> bool {
    let Some(name) = text.strip_prefix("id=") else { return false };
    let (handle, version) = name.split_once('@').unwrap_or((name, "0"));
    handle.len() >= 8
        && handle.bytes().all(|b| b.is_ascii_hexdigit())
        && !version.is_empty()
        && version.bytes().all(|b| b.is_ascii_digit())
}

/// Returns whether a word can be a file where a command expects one: not a flag, directory, address or pattern.
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

/// Returns whether a word anywhere looks like a file: as [`can_be_file`], and with a folder, an extension or a
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

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

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
}
