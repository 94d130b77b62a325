//! Documents of the older shape (implementation plan, "Migration").
//!
//! In that shape, files were named `file:{path}` and had no source binding. Every document had `locked`, `provenance` and
//! `nickname`, and its hashes were computed differently. A session's metadata pool held copies of metadata, and it
//! included the chat and the system prompt, which are now infrastructure.

use context_model::error::ModelError;
use context_model::hash::{Digest, identity_hash};
use context_model::id::{ObjectId, SessionId};
use context_model::object::{Document, ObjectType, file_type};
use context_model::session::{Change, Sets};
use context_model::source::Source;
use context_model::tokens::utf16_len;
use serde_json::{Map, Value, json};

/// Fields of the older shape that no longer exist.
const STALE: [&str; 12] = [
    "id",
    "xt/id",
    "type",
    "source",
    "identity_hash",
    "locked",
    "provenance",
    "nickname",
    "object_hash",
    "metadata_view_hash",
    "content_hash",
    "mtime_ms",
];

/// Converts a document of the older shape to the present one. A document of the present shape stays unchanged.
///
/// `filesystem_id` is the namespace of the older paths: that of the machine on which the older store was used.
///
/// # Errors
/// `INVALID_ARGUMENT` if it has neither shape.
pub fn migrate(old: Value, filesystem_id: &str) -> Result<Document, ModelError> {
    if old.get("identity_hash").is_some() {
        return Document::from_json(old);
    }
    let Value::Object(mut old) = old else {
        return Err(ModelError::Invalid("a document is a JSON object".into()));
    };
    let id = text(&old, "xt/id").or_else(|| text(&old, "id"));
    let id = id.ok_or_else(|| ModelError::Invalid("a document has a text field xt/id".into()))?;
    let object_type: ObjectType = text(&old, "type")
        .ok_or_else(|| ModelError::Invalid("a document has a text field type".into()))?
        .parse()?;
    for name in STALE {
        old.remove(name);
    }
    match object_type {
        ObjectType::File => file(&id, old, filesystem_id),
        ObjectType::Toolcall => toolcall(id, old, filesystem_id),
        ObjectType::Chat => chat(&id, old),
        ObjectType::SystemPrompt => {
            let session = session_of(&id, "system_prompt:", &old)?;
            old.retain(|name, _| name == "content");
            old.entry("content").or_insert_with(|| "".into());
            Document::new(ObjectId::system_prompt(&session), object_type, None, old)
        }
        ObjectType::Session => session(&id, &old, filesystem_id),
    }
}

fn file(id: &str, mut old: Map<String, Value>, filesystem_id: &str) -> Result<Document, ModelError> {
    let path = match old.remove("path") {
        Some(Value::String(path)) => path,
        _ => id.strip_prefix("file:").unwrap_or_default().to_owned(),
    };
    if !path.starts_with('/') {
        return Err(ModelError::Invalid(format!("the older file {id} has no absolute path")));
    }
    let content = text(&old, "content");
    old.insert("char_count".into(), json!(content.as_deref().map_or(0, utf16_len)));
    old.insert("file_type".into(), file_type(&path).into());
    old.insert("source_hash".into(), json!(content.as_deref().map(|text| Digest::of(text.as_bytes()))));
    old.insert("content".into(), json!(content));
    let source = Source::file(filesystem_id, path);
    let id = ObjectId::sourced(identity_hash(ObjectType::File, Some(&source)));
    Document::new(id, ObjectType::File, Some(source), old)
}

fn toolcall(id: String, mut old: Map<String, Value>, filesystem_id: &str) -> Result<Document, ModelError> {
    if let Some(refs) = old.get("file_refs") {
        let refs = ids(refs, filesystem_id);
        old.insert("file_refs".into(), json!(refs));
    }
    for (name, default) in
        [("content", json!("")), ("tool", json!("")), ("args", json!({})), ("status", json!("ok"))]
    {
        old.entry(name).or_insert(default);
    }
    Document::new(ObjectId::new(id), ObjectType::Toolcall, None, old)
}

fn chat(id: &str, mut old: Map<String, Value>) -> Result<Document, ModelError> {
    let session = session_of(id, "chat:", &old)?;
    let turns = old.get("turns").and_then(Value::as_array).map_or(0, Vec::len);
    old.insert("turn_count".into(), json!(turns));
    old.insert("session_ref".into(), json!(ObjectId::session(&session)));
    for (name, default) in [("content", json!("")), ("turns", json!([])), ("toolcall_refs", json!([]))] {
        old.entry(name).or_insert(default);
    }
    Document::new(ObjectId::chat(&session), ObjectType::Chat, None, old)
}

/// The sets contain only IDs of content objects, and each set is a subset of the next larger one.
fn session(id: &str, old: &Map<String, Value>, filesystem_id: &str) -> Result<Document, ModelError> {
    let session = session_of(id, "session:", old)?;
    let set = |name: &str| old.get(name).map_or_else(Vec::new, |value| ids(value, filesystem_id));
    let mut sets = Sets::default();
    let mut change = Change::default();
    for id in set("session_index") {
        sets.encounter(&id, &mut change);
    }
    for id in set("metadata_pool") {
        sets.promote(&id, &mut change);
    }
    for id in set("active_set") {
        sets.activate(&id, &mut change);
    }
    for id in set("pinned_set") {
        sets.pin(&id, &mut change);
    }
    Ok(sets.document(&session))
}

fn session_of(id: &str, prefix: &str, old: &Map<String, Value>) -> Result<SessionId, ModelError> {
    let given = text(old, "session_id").or_else(|| {
        text(old, "session_ref").map(|reference| reference.trim_start_matches("session:").to_owned())
    });
    SessionId::new(given.unwrap_or_else(|| id.strip_prefix(prefix).unwrap_or(id).to_owned()))
}

/// The IDs in a list of IDs or of entries with an `id`, without those of infrastructure objects.
fn ids(value: &Value, filesystem_id: &str) -> Vec<ObjectId> {
    let name = |item: &Value| match item {
        Value::String(id) => Some(id.clone()),
        Value::Object(entry) => text(entry, "xt/id").or_else(|| text(entry, "id")),
        _ => None,
    };
    let is_content = |id: &String| !["chat:", "system_prompt:", "session:"].iter().any(|p| id.starts_with(p));
    let present = |id: String| match id.strip_prefix("file:") {
        Some(path) => {
            ObjectId::sourced(identity_hash(ObjectType::File, Some(&Source::file(filesystem_id, path))))
        }
        None => ObjectId::new(id),
    };
    value.as_array().into_iter().flatten().filter_map(name).filter(is_content).map(present).collect()
}

fn text(map: &Map<String, Value>, name: &str) -> Option<String> {
    map.get(name).and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn stale(mut value: Value) -> Value {
        for (name, field) in [
            ("locked", json!(false)),
            ("provenance", json!({ "origin": "tool", "by": "read" })),
            ("nickname", json!("main")),
            ("object_hash", json!("00")),
            ("metadata_view_hash", json!("00")),
            ("content_hash", json!("00")),
        ] {
            value[name] = field;
        }
        value
    }

    #[test]
    fn a_file_gets_its_source_and_the_id_of_it() {
        let old = stale(json!({
            "xt/id": "file:/p/main.TS", "id": "file:/p/main.TS", "type": "file", "path": "/p/main.TS",
            "content": "let \u{1F600}", "file_type": "ts", "char_count": 5, "mtime_ms": 1.5,
        }));
        let new = migrate(old, "fs").unwrap();
        let source =
            context_model::source::FilesystemSource { filesystem_id: "fs".into(), path: "/p/main.TS".into() };
        let expected = Document::file(
            source,
            Some("let \u{1F600}".into()),
            Some(Digest::of("let \u{1F600}".as_bytes())),
        );
        assert_eq!(new, expected);
        assert_eq!(migrate(Value::Object(new.to_json()), "other").unwrap(), new);
    }

    #[test]
    fn a_deleted_file_has_neither_content_nor_hash() {
        let new = migrate(json!({ "xt/id": "file:/a", "type": "file", "content": null }), "fs").unwrap();
        assert_eq!(
            (new.content(), new.source_hash(), new.field("char_count")),
            (None, None, Some(&json!(0)))
        );
    }

    #[test]
    fn a_toolcall_refers_to_files_by_their_present_ids() {
        let old = stale(json!({
            "xt/id": "call_1", "type": "toolcall", "tool": "read", "args": { "path": "/a" }, "status": "fail",
            "content": "no such file", "chat_ref": "chat:s", "file_refs": ["file:/a"], "extra": 1,
        }));
        let file = migrate(json!({ "xt/id": "file:/a", "type": "file", "content": "" }), "fs").unwrap();
        let new = migrate(old, "fs").unwrap();
        assert_eq!(new.id().as_str(), "call_1");
        assert_eq!(new.field("file_refs"), Some(&json!([file.id()])));
        assert_eq!(new.field("extra"), Some(&json!(1)));
        assert!(STALE[5..10].iter().all(|name| new.field(name).is_none()));
    }

    #[test]
    fn a_session_holds_ids_of_content_objects_only() {
        let old = stale(json!({
            "xt/id": "session:s", "type": "session", "session_id": "s", "chat_ref": "chat:s",
            "metadata_pool": [
                { "id": "chat:s", "type": "chat" }, { "id": "system_prompt:s", "type": "system_prompt" },
                { "id": "file:/a", "type": "file", "path": "/a" }, { "id": "call_1", "type": "toolcall" },
            ],
            "active_set": ["chat:s", "call_1", "call_2"], "pinned_set": ["file:/b"],
        }));
        let new = migrate(old, "fs").unwrap();
        let sets = Sets::from_document(&new).unwrap();
        let a = migrate(json!({ "xt/id": "file:/a", "type": "file" }), "fs").unwrap();
        assert_eq!(new.id().as_str(), "session:s");
        assert_eq!(sets.index().len(), 4);
        assert!(sets.pool().contains(a.id()) && sets.pool().len() == 3);
        assert_eq!(sets.active().iter().map(ObjectId::as_str).collect::<Vec<_>>(), ["call_1", "call_2"]);
        assert_eq!(sets.pinned().len(), 1);
    }

    #[test]
    fn chats_and_prompts_keep_their_ids() {
        let chat =
            migrate(stale(json!({ "xt/id": "chat:s", "type": "chat", "turns": [{ "user": "x" }] })), "fs");
        let chat = chat.unwrap();
        assert_eq!((chat.id().as_str(), chat.field("turn_count")), ("chat:s", Some(&json!(1))));
        assert_eq!(chat.field("session_ref"), Some(&json!("session:s")));
        let old = stale(json!({ "xt/id": "system_prompt:s", "type": "system_prompt", "content": "be good" }));
        let session = SessionId::new("s").unwrap();
        assert_eq!(migrate(old, "fs").unwrap(), Document::system_prompt(&session, "be good"));
    }

    #[rstest]
    #[case(json!([]))]
    #[case(json!({ "type": "file", "path": "/a" }))]
    #[case(json!({ "xt/id": "file:/a" }))]
    #[case(json!({ "xt/id": "x", "type": "book" }))]
    #[case(json!({ "xt/id": "file:relative", "type": "file" }))]
    #[case(json!({ "xt/id": "session:", "type": "session" }))]
    fn what_has_neither_shape_is_refused(#[case] old: Value) {
        assert!(migrate(old, "fs").is_err());
    }
}
