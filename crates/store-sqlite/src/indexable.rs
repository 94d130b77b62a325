//! Which part of a text is worth indexing. What is left out can still be found by reading the text.

use std::borrow::Cow;

/// Of a longer line, as in minified code, only the beginning is indexed.
const LONG_LINE: usize = 4 << 10;

/// Of a longer run without spaces, as in base64, only the beginning is indexed.
const LONG_RUN: usize = 256;

/// Of a lock file, only this many bytes are indexed.
const LOCK_FILE: usize = 64 << 10;

/// The names of lock files, besides those that end with `.lock`.
const LOCK_FILES: [&str; 5] =
    ["package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "go.sum", "Package.resolved"];

/// The part of a text that is indexed; `path` is that of a file.
pub(super) fn indexable(text: &str, path: Option<&str>) -> String {
    let name = path.and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    let is_lock = name.ends_with(".lock") || LOCK_FILES.contains(&name);
    let text = if is_lock { &text[..text.floor_char_boundary(LOCK_FILE)] } else { text };
    text.split_inclusive('\n').map(line).collect()
}

fn line(line: &str) -> Cow<'_, str> {
    if line.len() <= LONG_RUN {
        return Cow::Borrowed(line);
    }
    let mut kept = String::new();
    for run in line.split_inclusive(char::is_whitespace) {
        if kept.len() + run.len().min(LONG_RUN) > LONG_LINE {
            break;
        }
        kept.push_str(beginning(run));
    }
    kept.push('\n');
    Cow::Owned(kept)
}

/// The beginning of a long run, up to the end of a word, because half a word would be found as a word.
fn beginning(run: &str) -> &str {
    if run.len() <= LONG_RUN {
        return run;
    }
    let cut = &run[..run.floor_char_boundary(LONG_RUN)];
    let end = cut.rfind(|c: char| !c.is_alphanumeric() && c != '_');
    end.map_or("", |end| &cut[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_and_lines_are_cut_between_words() {
        let code = "fn main() {\n    body();\n}\n";
        assert_eq!(indexable(code, None), code);
        assert_eq!(indexable(&format!("key {}\nend", "QUJD".repeat(200)), None), "key \nend");
        let kept = indexable(&format!("{}\nend", "word,".repeat(200)), None);
        assert_eq!(kept, format!("{}word\nend", "word,".repeat(50)));
        let kept = indexable(&format!("begin {}last", "a = b; ".repeat(2_000)), None);
        assert!(kept.len() <= LONG_LINE + 1 && kept.starts_with("begin a = b;") && !kept.contains("last"));
    }

    #[test]
    fn of_lock_files_the_beginning_is_indexed() {
        let text = "name = \"x\"\n".repeat(20_000);
        assert_eq!(indexable(&text, Some("/p/Cargo.lock")).len(), LOCK_FILE);
        assert_eq!(indexable(&text, Some("/p/package-lock.json")).len(), LOCK_FILE);
        assert_eq!(indexable(&text, Some("/p/lock.txt")), text);
    }
}
