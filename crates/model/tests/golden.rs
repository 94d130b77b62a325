//! The golden vectors that the tests of both languages read: canonical JSON and hashes.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use context_model::canonical;
use context_model::hash::{Digest, content_hash};
use context_model::id::{ObjectId, SessionId};
use context_model::object::{Document, Toolcall};
use context_model::session::Sets;
use context_model::source::FilesystemSource;
use serde_json::{Map, Value};

const CANONICAL: &str = include_str!("../../../fixtures/golden/canonical.json");
const HASHES: &str = include_str!("../../../fixtures/golden/hashes.json");

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} in {value}"))
}

#[test]
fn canonical_json_is_rfc_8785() {
    let cases = parsed(CANONICAL);
    assert!(cases.as_array().unwrap().len() >= 20);
    for case in cases.as_array().unwrap() {
        let value = parsed(text(case, "json"));
        let canonical = canonical::to_string(&value);
        assert_eq!(canonical, text(case, "canonical"), "{}", case["name"]);
        assert_eq!(Digest::of(canonical.as_bytes()).to_string(), text(case, "sha256"), "{}", case["name"]);
        assert_eq!(canonical::to_string(&parsed(&canonical)), canonical, "{}", case["name"]);
    }
}

#[test]
fn every_type_of_object_has_the_hashes_and_fields_of_the_specification() {
    let golden = parsed(HASHES);
    for case in list(&golden, "cases") {
        let document = made(&golden, &case["make"]);
        let expected = case["document"].as_object().unwrap();
        assert_eq!(Value::Object(document.to_json()), case["document"], "{}", case["name"]);
        let names: Vec<&String> = expected.keys().collect();
        for older in ["locked", "provenance", "nickname", "object_hash", "metadata_view_hash"] {
            assert!(!names.iter().any(|n| *n == older), "{older} is a field of an older model");
        }
    }
}

#[test]
fn a_stored_document_gives_the_same_hashes_again() {
    for case in list(&parsed(HASHES), "cases") {
        let document = Document::from_json(case["document"].clone()).unwrap();
        assert_eq!(document.identity_hash().to_string(), text(&case["document"], "identity_hash"));
        assert_eq!(document.content_hash().to_string(), text(&case["document"], "content_hash"));
        assert_eq!(content_hash(document.payload()), document.content_hash());
        assert_eq!(Value::Object(document.to_json()), case["document"], "{}", case["name"]);
    }
}

/// Every field that a type has, and one that none has yet.
#[test]
fn every_field_but_two_is_covered_by_the_content_hash() {
    for case in list(&parsed(HASHES), "cases") {
        let document = Document::from_json(case["document"].clone()).unwrap();
        let hash = document.content_hash();
        let names = document.payload().keys().map(String::as_str).chain(["a_field_of_the_future"]);
        for name in names {
            let mut changed = document.payload().clone();
            changed.insert(name.to_owned(), "changed".into());
            let covered = !["source_hash", "content_hash"].contains(&name);
            assert_eq!(content_hash(&changed) != hash, covered, "{name} of {}", case["name"]);
        }
    }
}

/// Builds a document as the library does for a new object.
fn made(golden: &Value, make: &Value) -> Document {
    let session = SessionId::new(text(golden, "sessionId")).unwrap();
    match text(make, "type") {
        "file" => {
            let source = FilesystemSource {
                filesystem_id: text(golden, "filesystemId").into(),
                path: text(make, "path").into(),
            };
            let content = make["text"].as_str().map(str::to_owned);
            let hash = content.as_ref().map(|text| Digest::of(text.as_bytes()));
            Document::file(source, content, hash)
        }
        "toolcall" => {
            Document::toolcall(ObjectId::new(text(make, "id")), &ObjectId::chat(&session), toolcall(make))
        }
        "chat" => Document::chat(&session),
        "system_prompt" => Document::system_prompt(&session, text(make, "text")),
        "session" => Sets::default().document(&session),
        other => panic!("unknown type {other}"),
    }
}

fn toolcall(make: &Value) -> Toolcall {
    let args: Map<String, Value> = make["args"].as_object().unwrap().clone();
    let refs = make.get("fileRefs").and_then(Value::as_array);
    Toolcall {
        id: text(make, "id").into(),
        tool: text(make, "tool").into(),
        args,
        args_display: make.get("argsDisplay").and_then(Value::as_str).map(str::to_owned),
        content: text(make, "content").into(),
        status: serde_json::from_value(make["status"].clone()).unwrap(),
        file_refs: refs.into_iter().flatten().map(|id| ObjectId::new(id.as_str().unwrap())).collect(),
        parent: None,
    }
}
