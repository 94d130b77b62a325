//! Our lines for TypeScript: `context_lines` writes and reads them. lib/lines passes in the part of a text that may contain one.
#![cfg_attr(test, allow(dead_code, reason = "a test build does not register functions with Node"))]

use context_lines::{Header, HitLine as Hit, HitObject, Pointed, PoolLine as Line, Reference};
use context_model::id::ObjectId;
use context_model::object::Status;
use napi_derive::napi;

/// The line in place of an output.
#[napi(object, object_from_js = false)]
pub(crate) struct ReferenceLine {
    /// The handle or the full ID of the call's object.
    pub id: String,
    /// The tool that was called.
    pub tool: String,
    /// The status of the call; absent where the line is a pointer alone.
    #[napi(ts_type = "'ok' | 'fail'")]
    pub status: Option<String>,
    /// The outcome of the call: `2 failed: a.test.ts (exit 1)`.
    pub outcome: Option<String>,
    /// True if its file had changed by the time when the line was first sent.
    pub has_changed: bool,
}

/// The line before an output.
#[napi(object, object_from_js = false)]
pub(crate) struct HeaderLine {
    /// The handle of the output's object.
    pub id: String,
    /// The length of the line in UTF-16 units, with its line break if it has one.
    pub length: u32,
}

/// A line of the metadata pool.
#[napi(object, object_from_js = false)]
pub(crate) struct PoolLine {
    /// The object's full ID.
    pub id: String,
    /// The type of the object.
    #[napi(js_name = "type", ts_type = "'file' | 'toolcall'")]
    pub kind: String,
    /// The path of a file, as the agent sees it.
    pub path: Option<String>,
    /// The kind of text in a file: `ts`.
    pub file_type: Option<String>,
    /// The size of a file in UTF-16 units.
    pub char_count: Option<f64>,
    /// True if the client can't reach the file; absent for a call.
    pub is_orphaned: Option<bool>,
    /// The tool of a call.
    pub tool: Option<String>,
    /// The status of the call.
    #[napi(ts_type = "'ok' | 'fail'")]
    pub status: Option<String>,
}

/// The line of a hit of a search. It names a path, a tool or another type.
#[napi(object)]
pub(crate) struct HitLine {
    /// The handle or the full ID of the object.
    pub id: String,
    /// The transaction of the version with the text, if that is not the latest one.
    pub tx_id: Option<i64>,
    /// The path of a file, as the agent sees it.
    pub path: Option<String>,
    /// True if the client can't reach the file.
    pub is_orphaned: Option<bool>,
    /// The tool of a call.
    pub tool: Option<String>,
    /// The type of another object.
    #[napi(js_name = "type")]
    pub kind: Option<String>,
    /// The first line that matches, counted from 1.
    pub line: u32,
    /// The text of that line, shortened around the match.
    pub snippet: String,
}

/// Writes the line of a hit.
#[napi]
pub(crate) fn hit_line(hit: HitLine) -> String {
    let HitLine { id, tx_id, path, is_orphaned, tool, kind, line, snippet } = hit;
    let object = match (path, tool) {
        (Some(path), _) => {
            HitObject::File { path: path.into(), is_orphaned: is_orphaned.unwrap_or_default() }
        }
        (None, Some(tool)) => HitObject::Toolcall(tool.into()),
        (None, None) => HitObject::Other(kind.unwrap_or_default().into()),
    };
    let tx = tx_id.map(i64::unsigned_abs);
    Hit { id: id.into(), tx, object, line: line as usize, snippet: snippet.into() }.to_string()
}

/// Reads the line of a hit; its snippet stays as it is shown. Null for any other text.
#[napi]
pub(crate) fn read_hit(line: String) -> Option<HitLine> {
    let Hit { id, tx, object, line, snippet } = Hit::of(&line)?;
    let (mut path, mut is_orphaned, mut tool, mut kind) = (None, None, None, None);
    match object {
        HitObject::File { path: shown, is_orphaned: orphaned } => {
            (path, is_orphaned) = (Some(shown.into_owned()), Some(orphaned));
        }
        HitObject::Toolcall(name) => tool = Some(name.into_owned()),
        HitObject::Other(name) => kind = Some(name.into_owned()),
    }
    Some(HitLine {
        id: id.into_owned(),
        tx_id: tx.map(|tx| i64::try_from(tx).ok()).unwrap_or_default(),
        path,
        is_orphaned,
        tool,
        kind,
        line: u32::try_from(line).ok()?,
        snippet: snippet.into_owned(),
    })
}

/// Reads the first line of a text as the reference to an output. Null if it is not one.
#[napi]
pub(crate) fn read_reference(text: String) -> Option<ReferenceLine> {
    let Reference { id, tool, status, outcome, has_changed } = Reference::of(&text)?;
    Some(ReferenceLine {
        id: id.into_owned(),
        tool: tool.into_owned(),
        status: status.map(name_of),
        outcome: outcome.map(str::to_owned),
        has_changed,
    })
}

/// The line that points to the output of a call, by the name of its object and its tool alone.
#[napi]
pub(crate) fn pointer_line(id: String, tool: String) -> String {
    Reference::to(&id, &tool, None).to_string()
}

/// A host's words that point to an earlier result, with the reference of that result below them.
#[napi]
pub(crate) fn pointed_text(words: String, reference: String) -> String {
    Pointed { words: &words, reference: &reference }.to_string()
}

/// True if a text consists of a host's words and such a reference.
#[napi]
pub(crate) fn is_pointed_text(text: String) -> bool {
    Pointed::of(&text).is_some()
}

/// Reads the first line of a text as the header of an output. Null if it is not one.
#[napi]
pub(crate) fn read_header(text: String) -> Option<HeaderLine> {
    let header = Header::of(&text)?;
    // The line has only ASCII characters, each of which is one byte and one unit.
    let length = u32::try_from(text.len() - header.rest.len()).ok()?;
    Some(HeaderLine { id: header.id.to_owned(), length })
}

/// The header of an output, by its object's handle.
#[napi]
pub(crate) fn header_line(handle: String) -> String {
    context_lines::header(&handle)
}

/// The first line of an active content, by its object's full ID.
#[napi]
pub(crate) fn active_heading(id: String) -> String {
    context_lines::active_heading(&ObjectId::new(id))
}

/// Reads a line of the metadata pool. Null for any other text.
#[napi]
pub(crate) fn read_pool_line(line: String) -> Option<PoolLine> {
    let line = Line::of(&line)?;
    let id = line.id().to_owned();
    Some(match line {
        #[allow(clippy::cast_precision_loss, reason = "no file has 2^53 characters")]
        Line::File { path, file_type, char_count, is_orphaned, .. } => PoolLine {
            id,
            kind: "file".to_owned(),
            path: Some(path.into_owned()),
            file_type: Some(file_type.into_owned()),
            char_count: Some(char_count as f64),
            is_orphaned: Some(is_orphaned),
            tool: None,
            status: None,
        },
        Line::Toolcall { tool, status, .. } => PoolLine {
            id,
            kind: "toolcall".to_owned(),
            path: None,
            file_type: None,
            char_count: None,
            is_orphaned: None,
            tool: Some(tool.into_owned()),
            status: Some(name_of(status)),
        },
    })
}

/// True if the last line of a text says that it is the beginning of a longer one, which a roll has left.
#[napi]
pub(crate) fn is_begun_text(text: String) -> bool {
    context_lines::is_begun(&text)
}

/// The name of an object in a path such as `id=05f49740` or `id=05f49740@7`. Null for the path of a file.
#[napi]
pub(crate) fn name_in_path(path: String) -> Option<String> {
    context_lines::name_in_path(&path).map(str::to_owned)
}

/// The names of objects anywhere in a text or in JSON, each once and in order: handles, as headers and references have them.
#[napi]
pub(crate) fn names_in_text(text: String) -> Vec<String> {
    context_lines::names_in(&text).into_iter().map(str::to_owned).collect()
}

/// The call that a mark in place of a long argument names. Null if the text is anything but one mark.
#[napi]
pub(crate) fn call_in_mark(text: String) -> Option<String> {
    context_lines::marker::tag_in(&text).map(str::to_owned)
}

fn name_of(status: Status) -> String {
    status.as_str().to_owned()
}
