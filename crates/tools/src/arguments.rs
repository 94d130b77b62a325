//! The names that agents have for the arguments of file tools, and what those arguments say about a file.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The names of the argument in which the file tools of agents take a path.
pub const PATH_ARGUMENTS: [&str; 6] =
    ["path", "file_path", "filePath", "filepath", "absolute_path", "target_file"];

/// The names of the text that an edit replaces.
pub(crate) const OLD_TEXT: [&str; 5] = ["oldText", "old_string", "oldString", "old_str", "old_text"];

/// The names of the text that an edit puts in.
pub(crate) const NEW_TEXT: [&str; 5] = ["newText", "new_string", "newString", "new_str", "new_text"];

/// The names of the argument that makes an edit replace each occurrence.
pub(crate) const EVERYWHERE: [&str; 2] = ["replace_all", "replaceAll"];

/// The names of the text that a tool writes.
pub(crate) const CONTENT: [&str; 3] = ["content", "file_text", "contents"];

/// A text that an edit puts in the place of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced<'a> {
    /// The text that is replaced, if the call says so.
    pub old: Option<Cow<'a, str>>,
    /// The text that takes its place.
    pub new: Cow<'a, str>,
    /// Wherever it occurs.
    pub everywhere: bool,
}

/// The whole text that a call writes, under any of its names.
#[must_use]
pub fn written_in(args: &Map<String, Value>) -> Option<&str> {
    text_of(args, &CONTENT)
}

/// The texts that a call replaces: those of its list `edits`, and its own. Empty for a call that says nothing of them.
#[must_use]
pub fn replaced_in(args: &Map<String, Value>) -> Vec<Replaced<'_>> {
    let edits = args.get("edits").and_then(Value::as_array).into_iter().flatten();
    let all = edits.filter_map(Value::as_object).chain([args]);
    all.filter_map(|edit| {
        let new = text_of(edit, &NEW_TEXT)?.into();
        let everywhere = EVERYWHERE.iter().any(|name| edit.get(*name) == Some(&Value::Bool(true)));
        Some(Replaced { old: text_of(edit, &OLD_TEXT).map(Cow::Borrowed), new, everywhere })
    })
    .collect()
}

/// The first of these arguments that is a text.
pub(crate) fn text_of<'a>(args: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| args.get(*name)?.as_str())
}
