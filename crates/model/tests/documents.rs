//! Documents and their parts survive their stored form, and damaged input never makes the library panic.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod long;

use context_model::hash::{Digest, content_hash, identity_hash};
use context_model::id::ObjectId;
use context_model::index::{Action, Current, Observation, decide};
use context_model::object::{Document, ObjectType, Status, Toolcall, file_type};
use context_model::source::{FilesystemSource, Source};
use context_model::{canonical, tokens};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Map, Value, json};

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec(("[a-z_]{1,8}|.{1,4}", json_value()), 0..6)
        .prop_map(|pairs| pairs.into_iter().collect())
}

fn source() -> impl Strategy<Value = Option<Source>> {
    prop_oneof![
        Just(None),
        (".{1,20}", ".{1,40}").prop_map(|(f, p)| Some(Source::file(f, format!("/{p}")))),
        ("[a-z0-9]{1,6}", object()).prop_map(|(kind, mut fields)| {
            fields.insert("type".into(), kind.into());
            Some(Source::from_value(Value::Object(fields)).unwrap())
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(long::cases(1_000)))]

    #[test]
    fn a_document_survives_its_json_text(source in source(), mut payload in object(), id in ".{0,20}") {
        for name in ["xt/id", "type", "source", "identity_hash"] {
            payload.remove(name);
        }
        let kind = if source.is_some() { ObjectType::File } else { ObjectType::Toolcall };
        let id = match &source {
            Some(source) => ObjectId::sourced(identity_hash(kind, Some(source))),
            None => ObjectId::new(id),
        };
        let document = Document::new(id, kind, source, payload).unwrap();
        let text = serde_json::to_string(&document).unwrap();
        let back: Document = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(back.content_hash(), document.content_hash());
        prop_assert_eq!(back, document);
    }

    #[test]
    fn a_tool_call_survives_its_json_text(args in object(), content: String, tool: String, display in any::<Option<String>>()) {
        let call = Toolcall {
            id: "call_1".into(),
            tool, args, content,
            args_display: display,
            status: Status::Fail,
            file_refs: vec![ObjectId::new("a")],
            parent: None,
        };
        let document = Document::toolcall(ObjectId::new("call_1"), &ObjectId::new("chat:s"), call);
        let back: Document = serde_json::from_str(&serde_json::to_string(&document).unwrap()).unwrap();
        prop_assert_eq!(back, document);
    }

    #[test]
    fn the_canonical_form_does_not_depend_on_the_order_of_keys(fields in object()) {
        let turned: Map<String, Value> = fields.clone().into_iter().rev().collect();
        let (one, other) = (canonical::to_string(&Value::Object(fields)), canonical::to_string(&Value::Object(turned)));
        prop_assert_eq!(&one, &other);
        let back: Value = serde_json::from_str(&one).unwrap();
        prop_assert_eq!(canonical::to_string(&back), one);
    }

    #[test]
    fn the_canonical_form_is_that_of_the_reference(fields in object()) {
        let value = Value::Object(fields);
        prop_assert_eq!(canonical::to_string(&value), serde_json_canonicalizer::to_string(&value).unwrap());
    }

    #[test]
    fn characters_are_counted_as_javascript_counts_them(text: String) {
        prop_assert_eq!(tokens::utf16_len(&text), text.encode_utf16().count());
        let file = Document::file(FilesystemSource { filesystem_id: "f".into(), path: "/a".into() }, Some(text.clone()), None);
        prop_assert_eq!(file.field("char_count"), Some(&json!(text.encode_utf16().count())));
    }

    #[test]
    fn a_file_type_is_one_piece_of_the_last_name(path in "[a-zA-Z./ ]{0,20}") {
        let kind = file_type(&path);
        prop_assert!(!kind.is_empty() && !kind.contains(['/', '.']));
    }
}

/// A whole document as text, with a few bytes replaced, left out or doubled.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let whole = (source(), object()).prop_map(|(source, mut payload)| {
        for name in ["xt/id", "type", "source", "identity_hash"] {
            payload.remove(name);
        }
        let kind = if source.is_some() { ObjectType::File } else { ObjectType::Session };
        let id = match &source {
            Some(source) => ObjectId::sourced(identity_hash(kind, Some(source))),
            None => ObjectId::new("session:s"),
        };
        serde_json::to_vec(&Document::new(id, kind, source, payload).unwrap()).unwrap()
    });
    let damage = (any::<prop::sample::Index>(), 0..3_u8, prop_oneof![any::<u8>(), Just(b'"'), Just(b'}')]);
    (whole, prop::collection::vec(damage, 0..4)).prop_map(|(mut bytes, damages)| {
        for (place, what, byte) in damages {
            let place = place.index(bytes.len());
            match what {
                0 => bytes[place] = byte,
                1 => bytes.truncate(place + 1),
                _ => bytes.insert(place, byte),
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(long::runs()))]

    #[test]
    fn any_json_is_read_or_refused_and_never_a_panic(value in json_value()) {
        let _ = Document::from_json(value.clone());
        let _ = Source::from_value(value);
    }

    #[test]
    fn any_bytes_are_read_or_refused_and_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = serde_json::from_slice::<Document>(&bytes);
        let _ = serde_json::from_slice::<context_model::patch::Patch>(&bytes);
    }

    /// A document read from damaged bytes has the hashes that it names.
    #[test]
    fn a_damaged_document_is_read_whole_or_refused(bytes in damaged()) {
        if let Ok(document) = serde_json::from_slice::<Document>(&bytes) {
            let _ = context_model::session::Sets::from_document(&document);
            let again: Document = serde_json::from_str(&serde_json::to_string(&document).unwrap()).unwrap();
            prop_assert_eq!(again, document);
        }
    }
}

/// Everything that can be seen of one file, one after the other.
fn observations() -> impl Strategy<Value = Vec<(Observation, Option<String>)>> {
    let one = prop_oneof![
        4 => "[ab]{0,1}".prop_map(|text| (Observation::Read(Digest::of(text.as_bytes())), Some(text))),
        1 => (0..2_u8).prop_map(|n| (Observation::Read(Digest::of(&[0, n])), None)),
        1 => Just((Observation::Discovered, None)),
        1 => Just((Observation::Unreadable, None)),
        1 => Just((Observation::Deleted, None)),
        1 => Just((Observation::Oversized, None)),
        1 => Just((Observation::Unreachable, None)),
    ];
    prop::collection::vec(one, 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(long::cases(3_000)))]

    /// The index decision over histories: what was seen last is what is stored, and equal bytes write nothing.
    #[test]
    fn latest_version_is_the_last_observation(seen in observations()) {
        let source = FilesystemSource { filesystem_id: "f".into(), path: "/a".into() };
        let mut versions: Vec<Document> = Vec::new();
        for (observation, text) in seen {
            let current = versions.last().map(Current::of);
            let action = decide(current, observation);
            let is_written = action != Action::Unchanged;
            prop_assert_eq!(action == Action::Created, versions.is_empty() && is_written);
            if is_written {
                let document = Document::file(source.clone(), text.clone(), observation.source_hash());
                if let Some(last) = versions.last() {
                    prop_assert_eq!(last.id(), document.id());
                    prop_assert_eq!(last.identity_hash(), document.identity_hash());
                    prop_assert!(last != &document, "a version that says nothing new");
                }
                versions.push(document);
            }
            let last = versions.last();
            match observation {
                Observation::Read(source_hash) => {
                    prop_assert_eq!(last.and_then(Document::source_hash), Some(source_hash));
                    prop_assert_eq!(last.and_then(Document::content), text.as_deref());
                }
                Observation::Deleted | Observation::Oversized => {
                    prop_assert_eq!(last.and_then(Document::content), None);
                    prop_assert_eq!(last.and_then(Document::source_hash), None);
                }
                Observation::Discovered | Observation::Unreadable => prop_assert!(last.is_some()),
                Observation::Unreachable => prop_assert!(!is_written),
            }
        }
    }
}

#[rstest]
#[case::same_source_same_id("f", "/a", "f", "/a", true)]
#[case::another_filesystem("f", "/a", "g", "/a", false)]
#[case::another_path("f", "/a", "f", "/b", false)]
#[case::no_confusion_at_the_border("f/", "a", "f", "/a", false)]
fn identity(#[case] f1: &str, #[case] p1: &str, #[case] f2: &str, #[case] p2: &str, #[case] same: bool) {
    let hash = |f: &str, p: &str| identity_hash(ObjectType::File, Some(&Source::file(f, p)));
    assert_eq!(hash(f1, p1) == hash(f2, p2), same);
}

#[test]
fn the_identity_of_a_file_is_the_hash_of_type_and_source_in_canonical_form() {
    let expected = r#"{"source":{"filesystemId":"f","path":"/a","type":"filesystem"},"type":"file"}"#;
    assert_eq!(
        identity_hash(ObjectType::File, Some(&Source::file("f", "/a"))),
        Digest::of(expected.as_bytes())
    );
    assert_eq!(identity_hash(ObjectType::Chat, None), Digest::of(br#"{"source":null,"type":"chat"}"#));
}

#[test]
fn the_content_hash_is_of_the_canonical_payload_without_two_fields() {
    let payload = json!({ "b": 1, "a": null, "source_hash": "x", "content_hash": "y" });
    assert_eq!(content_hash(payload.as_object().unwrap()), Digest::of(br#"{"a":null,"b":1}"#));
}

#[rstest]
#[case::not_an_object(json!([]))]
#[case::no_id(json!({ "type": "chat" }))]
#[case::unknown_type(json!({ "xt/id": "a", "type": "image", "source": null, "identity_hash": "0".repeat(64) }))]
#[case::wrong_identity(json!({ "xt/id": "a", "type": "chat", "source": null, "identity_hash": "0".repeat(64) }))]
#[case::signs_are_no_digits(json!({ "xt/id": "a", "type": "chat", "source": null, "identity_hash": "+a".repeat(32) }))]
#[case::id_is_not_the_hash(json!({
    "xt/id": "a", "type": "file", "source": { "type": "filesystem", "filesystemId": "f", "path": "/a" },
    "identity_hash": identity_hash(ObjectType::File, Some(&Source::file("f", "/a"))),
}))]
#[case::unknown_field_in_a_known_source(json!({
    "xt/id": "a", "type": "file", "source": { "type": "filesystem", "filesystemId": "f", "path": "/a", "x": 1 },
    "identity_hash": "0".repeat(64),
}))]
fn envelopes_that_contradict_themselves_are_refused(#[case] document: Value) {
    assert!(Document::from_json(document).is_err());
}

#[test]
fn a_source_type_of_the_future_is_kept_untouched() {
    let binding = json!({ "type": "s3", "bucket": "b", "key": "data/file.csv", "region": null });
    let source = Source::from_value(binding.clone()).unwrap();
    assert_eq!(source.as_filesystem(), None);
    let id = ObjectId::sourced(identity_hash(ObjectType::File, Some(&source)));
    let document = Document::new(id, ObjectType::File, Some(source), Map::new()).unwrap();
    assert_eq!(document.to_json()["source"], binding);
    assert_eq!(Document::from_json(Value::Object(document.to_json())).unwrap(), document);
}

#[test]
fn the_page_about_errors_has_every_code_in_its_order() {
    use context_model::error::ErrorCode;
    let page = include_str!("../../../docs/errors.md");
    let explained: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("## `")?.strip_suffix('`')).collect();
    assert_eq!(explained, ErrorCode::ALL.map(ErrorCode::as_str));
}

#[test]
fn a_document_knows_its_source() {
    let at = FilesystemSource { filesystem_id: "host".into(), path: "/a".into() };
    let file = Source::file("host", "/a");
    assert_eq!(file.as_filesystem(), Some(&at));
    assert_eq!(Document::file(at, None, None).source(), Some(&file));
    let other = Source::from_value(json!({ "type": "web", "url": "https://example.com" })).unwrap();
    assert_eq!(other.as_filesystem(), None);
}
