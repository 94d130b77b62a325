//! The files that a call is about to change, and the texts that it replaces in them.

use serde_json::{Map, Value};

use crate::arguments::{OLD_TEXT, text_of};
use crate::call::AgentCall;
use crate::dialect::ToolKind;
use crate::patch::{FilePatch, PatchKind};

/// A file that a call is about to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedChange {
    /// The file, as the agent wrote its path.
    pub path: String,
    /// The texts that the call replaces. `None` if it replaces the whole file, or says nothing of them.
    pub old_texts: Option<Vec<String>>,
}

/// The changes that a call would make. Empty for a tool that changes no file.
#[must_use]
pub fn changes_of(name: &str, args: &Map<String, Value>) -> Vec<PlannedChange> {
    let Some(call) = AgentCall::of(name, args).filter(|call| !call.writes.is_empty()) else {
        return Vec::new();
    };
    let old_texts = match call.tool {
        tool if tool == ToolKind::Edit.name() => old_texts(args),
        tool if tool == ToolKind::Write.name() => None,
        _ => return FilePatch::among(args).map(patched).unwrap_or_default(),
    };
    call.writes.into_iter().map(|path| PlannedChange { path, old_texts: old_texts.clone() }).collect()
}

/// The texts that an edit replaces. `None` if its arguments have another shape, or it writes a file anew.
fn old_texts(args: &Map<String, Value>) -> Option<Vec<String>> {
    let old = |edit: &Map<String, Value>| {
        text_of(edit, &OLD_TEXT).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    match args.get("edits") {
        Some(Value::Array(edits)) => {
            let all: Option<Vec<String>> = edits.iter().map(|edit| old(edit.as_object()?)).collect();
            all.filter(|all| !all.is_empty())
        }
        _ => Some(vec![old(args)?]),
    }
}

/// The changes of a patch: of each part of an updated file, the lines that stay and those that leave.
fn patched(patch: FilePatch) -> Vec<PlannedChange> {
    let changes = patch.files.into_iter().map(|file| {
        let hunks = match file.kind {
            PatchKind::Update(hunks) => hunks,
            PatchKind::Add(_) | PatchKind::Delete => Vec::new(),
        };
        let old = hunks.into_iter().map(|hunk| hunk.old).filter(|old| !old.is_empty());
        let old: Vec<String> = old.map(|old| old.strip_suffix('\n').unwrap_or(&old).to_owned()).collect();
        PlannedChange { path: file.path, old_texts: Some(old).filter(|old| !old.is_empty()) }
    });
    changes.collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    const PATCH: &str = "*** Begin Patch\n*** Update File: a.ts\n@@ one\n x\n-y\n+z\n@@\n-last\n*** Add File: c.ts\n+z\n*** Delete File: d.ts\n*** End Patch";

    #[rstest]
    #[case("Edit", json!({ "file_path": "/a", "old_string": "x", "new_string": "y" }), &[("/a", Some(&["x"][..]))])]
    #[case("MultiEdit", json!({ "file_path": "/a", "edits": [{ "old_string": "x", "new_string": "y" }, { "old_string": "v", "new_string": "w" }] }), &[("/a", Some(&["x", "v"][..]))])]
    #[case("edit", json!({ "filePath": "/a", "oldString": "", "newString": "y" }), &[("/a", None)])]
    #[case("edit", json!({ "path": "/a", "edits": [{ "oldText": 3 }] }), &[("/a", None)])]
    #[case("edit", json!({ "path": "/a", "edits": [] }), &[("/a", None)])]
    #[case("Write", json!({ "file_path": "/a", "content": "x" }), &[("/a", None)])]
    #[case("apply_patch", json!({ "input": PATCH }), &[("a.ts", Some(&["x\ny", "last"][..])), ("c.ts", None), ("d.ts", None)])]
    #[case("apply_patch", json!({ "patchText": PATCH }), &[("a.ts", Some(&["x\ny", "last"][..])), ("c.ts", None), ("d.ts", None)])]
    #[case("Write", json!({ "file_path": "/a.md", "content": PATCH }), &[("/a.md", None)])]
    #[case("Read", json!({ "file_path": "/a" }), &[])]
    #[case("Bash", json!({ "command": "rm a" }), &[])]
    #[case("Other", json!({ "path": "/a", "content": "x" }), &[])]
    fn call_would_change_files(
        #[case] name: &str,
        #[case] args: Value,
        #[case] expected: &[(&str, Option<&[&str]>)],
    ) {
        let changes = changes_of(name, args.as_object().unwrap());
        let shown: Vec<_> = changes
            .iter()
            .map(|change| {
                let old = change.old_texts.as_ref();
                (&*change.path, old.map(|old| old.iter().map(String::as_str).collect::<Vec<_>>()))
            })
            .collect();
        let expected: Vec<_> =
            expected.iter().map(|(path, old)| (*path, old.map(<[&str]>::to_vec))).collect();
        assert_eq!(shown, expected);
    }
}
