//! Codex's patches (`*** Begin Patch`), alone or in a script that applies them.

use std::borrow::Cow;

use serde_json::{Map, Value};

const BEGIN: &str = "*** Begin Patch";

/// A patch: what it does to each file, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch {
    /// The files, once for each part of the patch about one.
    pub files: Vec<PatchedFile>,
}

/// One part of a patch: a file, and what happens to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchedFile {
    /// The file, as the patch writes its path.
    pub path: String,
    /// The change of it.
    pub kind: PatchKind,
    /// The path that it moves to.
    pub moved_to: Option<String>,
}

/// The change of a file by a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// The file gets this text. `None` if the patch is a string in a script, whose escapes are not resolved.
    Add(Option<String>),
    /// These parts of the file change. Empty if the patch is a string in a script.
    Update(Vec<Hunk>),
    /// The file is deleted.
    Delete,
}

/// A part of a file that a patch changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// The lines that stay and those that leave, each with a line feed. Empty if the patch only puts lines in.
    pub old: String,
    /// The lines that stay and those that come, each with a line feed.
    pub new: String,
}

impl FilePatch {
    /// The patch in a text: a patch, or a script with one. `None` for any other text.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        if !text.contains(BEGIN) {
            return None;
        }
        let is_plain = text.contains("\n*** ");
        // In a script, the patch is a string, and its line breaks may be written as `\n`.
        let plain = if is_plain { Cow::Borrowed(text) } else { Cow::Owned(text.replace("\\n", "\n")) };
        let mut files: Vec<PatchedFile> = Vec::new();
        let (mut hunk, mut is_open) = (Hunk::default(), false);
        for line in plain.lines() {
            if line.starts_with("*** ") {
                end(&mut files, &mut hunk);
                begin(&mut files, line);
                is_open = !line.starts_with("*** End Patch");
            } else if is_plain && is_open {
                take(&mut files, &mut hunk, line);
            }
        }
        end(&mut files, &mut hunk);
        if !is_plain {
            for file in &mut files {
                if let PatchKind::Add(text) = &mut file.kind {
                    *text = None;
                }
            }
        }
        Some(Self { files })
    }

    /// The patch among a call's arguments, whatever its name.
    #[must_use]
    pub fn among(args: &Map<String, Value>) -> Option<Self> {
        args.values().filter_map(Value::as_str).find_map(Self::of)
    }

    /// The paths that the patch adds, changes, moves or deletes, each once.
    #[must_use]
    pub fn paths(&self) -> Vec<&str> {
        let mut paths: Vec<&str> = Vec::new();
        for path in self.files.iter().flat_map(|file| [Some(&file.path), file.moved_to.as_ref()]).flatten() {
            if !paths.contains(&path.as_str()) {
                paths.push(path);
            }
        }
        paths
    }
}

/// Takes a line that begins with `*** `.
fn begin(files: &mut Vec<PatchedFile>, line: &str) {
    let named =
        |before: &str| Some(line.strip_prefix(before)?.trim().to_owned()).filter(|name| !name.is_empty());
    let kinds = [
        ("*** Add File: ", PatchKind::Add(Some(String::new()))),
        ("*** Update File: ", PatchKind::Update(Vec::new())),
        ("*** Delete File: ", PatchKind::Delete),
    ];
    for (before, kind) in kinds {
        if let Some(path) = named(before) {
            files.push(PatchedFile { path, kind, moved_to: None });
            return;
        }
    }
    if let (Some(path), Some(file)) = (named("*** Move to: "), files.last_mut()) {
        file.moved_to = Some(path);
    }
}

/// Takes a line of a file's part.
fn take(files: &mut [PatchedFile], hunk: &mut Hunk, line: &str) {
    let (mark, text) = line.split_at_checked(1).unwrap_or_default();
    match (files.last_mut().map(|file| &mut file.kind), mark) {
        (Some(PatchKind::Add(Some(added))), "+") => push(added, text),
        (Some(PatchKind::Update(_)), "@") => end(files, hunk),
        (Some(PatchKind::Update(_)), " ") => {
            push(&mut hunk.old, text);
            push(&mut hunk.new, text);
        }
        (Some(PatchKind::Update(_)), "-") => push(&mut hunk.old, text),
        (Some(PatchKind::Update(_)), "+") => push(&mut hunk.new, text),
        _ => {}
    }
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// Ends a part of the last file.
fn end(files: &mut [PatchedFile], hunk: &mut Hunk) {
    let hunk = std::mem::take(hunk);
    if hunk != Hunk::default()
        && let Some(PatchKind::Update(hunks)) = files.last_mut().map(|file| &mut file.kind)
    {
        hunks.push(hunk);
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn update(path: &str, hunks: &[(&str, &str)]) -> PatchedFile {
        let hunks = hunks.iter().map(|(old, new)| Hunk { old: (*old).into(), new: (*new).into() });
        PatchedFile { path: path.into(), kind: PatchKind::Update(hunks.collect()), moved_to: None }
    }

    #[test]
    fn patch_says_what_happens_to_each_file() {
        let text = "*** Begin Patch\n*** Update File: a.ts \n@@ one\n x\n-y\n+z\n@@\n-last\n*** End of File\n*** Add File: c d.ts\n+z\n+\n*** Delete File: d.ts\n*** Update File: e.ts\n*** Move to: f.ts\n@@\n-1\n+2\n*** End Patch\n+ignored";
        let patch = FilePatch::of(text).unwrap();
        let added = PatchKind::Add(Some("z\n\n".into()));
        let moved = PatchedFile { moved_to: Some("f.ts".into()), ..update("e.ts", &[("1\n", "2\n")]) };
        let expected = [
            update("a.ts", &[("x\ny\n", "x\nz\n"), ("last\n", "")]),
            PatchedFile { path: "c d.ts".into(), kind: added, moved_to: None },
            PatchedFile { path: "d.ts".into(), kind: PatchKind::Delete, moved_to: None },
            moved,
        ];
        assert_eq!(patch.files, expected);
        assert_eq!(patch.paths(), ["a.ts", "c d.ts", "d.ts", "e.ts", "f.ts"]);
    }

    #[test]
    fn lines_only_put_in_are_a_part_of_their_own() {
        let patch =
            FilePatch::of("*** Begin Patch\n*** Update File: a\n@@ x\n+new\n@@\n-old\n+last\n*** End Patch");
        assert_eq!(patch.unwrap().files, [update("a", &[("", "new\n"), ("old\n", "last\n")])]);
    }

    #[rstest]
    #[case::in_a_string("await tools.apply_patch(\"*** Begin Patch\\n*** Add File: c.ts\\n+z\\n*** End Patch\")", Some(&["c.ts"][..]))]
    #[case::in_a_template("tools.apply_patch(`*** Begin Patch\n*** Delete File: c.ts\n*** End Patch`)", Some(&["c.ts"][..]))]
    #[case::without_files("*** Begin Patch\n*** End Patch", Some(&[][..]))]
    #[case::twice("*** Begin Patch\n*** Update File: a\n*** Update File: a\n*** End Patch", Some(&["a"][..]))]
    #[case::a_text("Begin Patch\n*** Add File: c.ts", None)]
    fn patch_names_its_files(#[case] text: &str, #[case] paths: Option<&[&str]>) {
        assert_eq!(FilePatch::of(text).as_ref().map(FilePatch::paths).as_deref(), paths);
    }

    #[test]
    fn escapes_of_a_script_are_not_resolved() {
        let script = "apply_patch('*** Begin Patch\\n*** Add File: a\\n+\\tz\\n*** Update File: b\\n@@\\n-x\\n*** End Patch')";
        let files = FilePatch::of(script).unwrap().files;
        assert_eq!(files[0].kind, PatchKind::Add(None));
        assert_eq!(files[1].kind, PatchKind::Update(Vec::new()));
    }
}
