//! The file that a call's arguments name, and the part of it.

use std::borrow::Cow;

use context_tools::shown_by_shell;
use serde_json::{Map, Value};

/// The path of the file that a call reads or writes.
#[must_use]
pub fn path_of<'a>(tool: &str, args: &'a Map<String, Value>) -> Option<Cow<'a, str>> {
    if is_file_tool(tool) {
        return args.get("path").and_then(Value::as_str).map(Cow::Borrowed);
    }
    shown_by_shell(tool, args).map(|shown| Cow::Owned(shown.path))
}

/// True for the tools that read or write the file which their path names.
#[must_use]
pub(crate) fn is_file_tool(tool: &str) -> bool {
    matches!(tool, "read" | "write" | "edit")
}

/// The first line that a read asks for, counted from 1.
#[must_use]
pub fn first_line(args: &Map<String, Value>) -> usize {
    args.get("offset").and_then(Value::as_u64).map_or(1, |n| n as usize).max(1)
}

/// True if a read asks for a part of the file.
pub(crate) fn is_limited(args: &Map<String, Value>) -> bool {
    first_line(args) > 1 || args.get("limit").is_some_and(|limit| !limit.is_null())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::a_read("read", json!({ "path": "a" }), Some("a"), 1, false)]
    #[case::from_a_line_on("read", json!({ "path": "a", "offset": 3 }), Some("a"), 3, true)]
    #[case::some_lines("read", json!({ "path": "a", "offset": 0, "limit": 2 }), Some("a"), 1, true)]
    #[case::all_lines("read", json!({ "path": "a", "limit": null }), Some("a"), 1, false)]
    #[case::without_a_path("edit", json!({ "file": "a" }), None, 1, false)]
    #[case::a_command("bash", json!({ "command": "cat a" }), Some("a"), 1, false)]
    #[case::another_tool("grep", json!({ "path": "a" }), None, 1, false)]
    fn call_names_a_file_and_lines(
        #[case] tool: &str,
        #[case] args: Value,
        #[case] path: Option<&str>,
        #[case] first: usize,
        #[case] is_part: bool,
    ) {
        let args = args.as_object().unwrap();
        assert_eq!(path_of(tool, args).as_deref(), path);
        assert_eq!((first_line(args), is_limited(args)), (first, is_part));
    }
}
