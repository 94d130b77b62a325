//! The golden vectors of our lines, which the tests of both languages read: what is written, and what is read back from it.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use context_lines::{
    CallInText, FileChange, GapLine, Header, HitLine, HitObject, Pointed, PoolLine, Reference, StaleLine,
    StaleWords, active_block, active_heading, call_line, cut_mark, ends_of_cut, file_line, header, is_begun,
    left_out, marker, name_in_path, names_in, orphaned, rest_line, said_line, toolcall_line,
};
use context_model::id::ObjectId;
use context_model::object::Status;
use serde_json::{Value, json};

const LINES: &str = include_str!("../../../fixtures/golden/lines.json");
const RENDERING: &str = include_str!("../../../fixtures/golden/rendering.json");

/// The vectors of a group.
fn vectors(file: &str, group: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(file).unwrap();
    let vectors = all[group].as_array().unwrap().clone();
    assert!(!vectors.is_empty());
    vectors
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} in {value}"))
}

/// A value without its fields that are null, as the vectors have it.
fn present(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, field| !field.is_null());
    }
    value
}

/// Compares what each text of a group is read as with its value.
fn check(group: &str, read: impl Fn(&str) -> Value) {
    for case in vectors(LINES, group) {
        assert_eq!(present(read(text(&case, "text"))), case["value"], "{case}");
    }
}

#[test]
fn rendered_lines_and_blocks() {
    for case in vectors(RENDERING, "files") {
        let id = ObjectId::new(text(&case, "id"));
        let count = case["char_count"].as_u64().unwrap();
        let line = file_line(&id, text(&case, "path"), text(&case, "file_type"), count);
        assert_eq!(line, text(&case, "line"));
    }
    for case in vectors(RENDERING, "toolcalls") {
        let id = ObjectId::new(text(&case, "id"));
        let status: Status = serde_json::from_value(case["status"].clone()).unwrap();
        assert_eq!(toolcall_line(&id, text(&case, "tool"), status), text(&case, "line"));
        let reference = Reference::to(id.as_str(), text(&case, "tool"), Some(status));
        assert_eq!(reference.to_string(), text(&case, "reference"));
    }
    for case in vectors(RENDERING, "blocks") {
        let id = ObjectId::new(text(&case, "id"));
        assert_eq!(active_block(&id, text(&case, "content")), text(&case, "block"));
    }
}

#[test]
fn reference_is_read_from_a_first_line_and_written_again_in_the_same_bytes() {
    check("references", |text| {
        let Some(reference) = Reference::of(text) else { return Value::Null };
        assert_eq!(Some(&*reference.to_string()), text.lines().next());
        let status = reference.status.map(Status::as_str);
        json!({ "id": reference.id, "tool": reference.tool, "status": status, "outcome": reference.outcome,
            "hasChanged": reference.has_changed })
    });
}

#[test]
fn words_that_point_to_a_reference_are_read_and_written_again_in_the_same_bytes() {
    check("pointed", |text| {
        let Some(pointed) = Pointed::of(text) else { return Value::Null };
        assert_eq!(pointed.to_string(), text);
        json!({ "words": pointed.words, "reference": pointed.reference })
    });
}

#[test]
fn header_is_a_handle_alone_on_a_first_line() {
    check("headers", |text| {
        let Some(found) = Header::of(text) else { return Value::Null };
        assert!(text.starts_with(&header(found.id)));
        json!({ "id": found.id, "rest": found.rest })
    });
}

#[test]
fn pool_line_is_read_and_written_again_in_the_same_bytes() {
    check("poolLines", |text| {
        let Some(line) = PoolLine::of(text) else { return Value::Null };
        let id = ObjectId::new(line.id());
        let (value, again) = match &line {
            PoolLine::File { path, file_type, char_count, is_orphaned, .. } => {
                let again = file_line(&id, path, file_type, *char_count);
                let value = json!({ "id": line.id(), "type": "file", "path": path, "fileType": file_type,
                    "charCount": char_count, "isOrphaned": is_orphaned });
                (value, if *is_orphaned { orphaned(&again) } else { again })
            }
            PoolLine::Toolcall { tool, status, .. } => {
                let value =
                    json!({ "id": line.id(), "type": "toolcall", "tool": tool, "status": status.as_str() });
                (value, toolcall_line(&id, tool, *status))
            }
        };
        assert_eq!(again, text);
        value
    });
}

#[test]
fn hit_is_read_and_written_again_in_the_same_bytes() {
    check("hits", |text| {
        let Some(hit) = HitLine::of(text) else { return Value::Null };
        assert_eq!(hit.to_string(), text);
        let mut value = json!({ "id": hit.id, "txId": hit.tx, "line": hit.line, "snippet": hit.snippet });
        match &hit.object {
            HitObject::File { path, is_orphaned } => {
                (value["path"], value["isOrphaned"]) = (json!(path), json!(is_orphaned));
            }
            HitObject::Toolcall(tool) => value["tool"] = json!(tool),
            HitObject::Other(kind) => value["type"] = json!(kind),
        }
        value
    });
}

#[test]
fn stale_line_is_read_and_written_again_in_the_same_bytes() {
    check("staleLines", |text| {
        let Some(line) = StaleLine::of(text) else { return Value::Null };
        assert_eq!(line.written(&StaleWords::default()), text);
        match line {
            StaleLine::File { id, path, version, change } => {
                let change = match change {
                    FileChange::Deleted => "deleted".to_owned(),
                    FileChange::SameAgain => "same again".to_owned(),
                    FileChange::Unknown => "unknown".to_owned(),
                    FileChange::Counted(lines) => lines,
                };
                json!({ "id": id, "path": path, "version": version, "change": change })
            }
            StaleLine::More { count, id } => json!({ "more": count, "id": id }),
        }
    });
}

#[test]
fn mark_of_a_gap_is_read_and_written_again_in_the_same_bytes() {
    check("gaps", |text| {
        let Some(gap) = GapLine::of(text) else { return Value::Null };
        assert_eq!(gap.to_string(), text);
        json!({ "first": gap.first, "last": gap.last, "chars": gap.chars, "errors": gap.errors })
    });
    let cut = format!("a{}b{}c", cut_mark(300), cut_mark(12));
    assert_eq!(cut, "a ...300 chars... b ...12 chars... c");
    assert_eq!(ends_of_cut(&cut), Some(("a", "c")));
    assert_eq!(ends_of_cut("a ... b"), None);
    assert_eq!(rest_line(3, "matching lines", 12), "... 3 more matching lines, from line 12 on ...");
}

#[test]
fn call_in_a_text_is_read_and_written_again_in_the_same_bytes() {
    check("callsInText", |text| {
        let Some(call) = CallInText::of(text) else { return Value::Null };
        assert_eq!(call.to_string(), text);
        json!({ "id": call.id, "tool": call.tool, "args": call.args })
    });
}

#[test]
fn names_are_found_in_paths_texts_and_marks() {
    check("paths", |text| json!(name_in_path(text)));
    check("names", |text| json!(names_in(text)));
    check("begun", |text| json!(is_begun(text)));
    check("marks", |text| json!(marker::tag_in(text)));
}

#[test]
fn lines_in_place_of_old_answers() {
    for case in vectors(LINES, "written") {
        let args = case["args"].as_array().unwrap();
        let text_at = |at: usize| args[at].as_str().unwrap();
        let is = |at: usize| args[at].as_bool().unwrap();
        let written = match text(&case, "line") {
            "header" => header(text_at(0)),
            "active" => active_heading(&ObjectId::new(text_at(0))),
            "call" => call_line(text_at(0), text_at(1), is(2), args[3].as_str(), text_at(4)),
            "said" => said_line(text_at(0), is(1), text_at(2)),
            "left out" => {
                left_out(text_at(0), usize::try_from(args[1].as_u64().unwrap()).unwrap(), text_at(2))
            }
            other => panic!("an unknown line: {other}"),
        };
        assert_eq!(written, text(&case, "text"), "{case}");
    }
}
