//! Latest versions without their contents.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use context_model::id::ObjectId;
use context_model::object::{Document, ObjectType};
use context_model::source::Source;
use serde_json::Value;

use super::fields::{FIELDS, GROWING};
use super::http::Format;
use super::inner::XtdbClient;
use super::read::IDS_A_QUERY;
use super::wire::{Coordinates, ERASED, KEPT, PATCH};
use context_store::{AsOf, Outline, Result, StoreError};

impl XtdbClient {
    /// The latest versions without their contents. Chats and sessions, which are written as patches, have only their scalar
    /// fields, as in a store that keeps patches.
    pub(super) async fn outlines(self: &Arc<Self>, ids: &[ObjectId]) -> Result<Vec<Option<Outline>>> {
        let at = self.pinned(AsOf::default()).await?;
        let places = self.places(ids, at).await?;
        let fields = self.outline_fields().await?;
        let known: Vec<(ObjectId, Coordinates)> =
            places.iter().map(|(id, place)| (id.clone(), *place)).collect();
        let mut found = HashMap::new();
        for part in known.chunks(IDS_A_QUERY) {
            let ids: Vec<ObjectId> = part.iter().map(|(id, _)| id.clone()).collect();
            let texts = self.with_text(&ids, at).await?;
            for (id, value) in self.pull(part, &fields, at).await? {
                let (Some(place), Value::Object(mut map)) = (places.get(&id), value) else { continue };
                for name in ["content", PATCH, ERASED, KEPT] {
                    map.remove(name);
                }
                let (id, object_type, source, payload) =
                    document_without_content(Value::Object(map)).map_err(|error| self.nodes.told(error))?;
                let is_null = !texts.contains(&id);
                let mut payload = payload;
                if matches!(object_type, ObjectType::Chat | ObjectType::Session) {
                    payload.retain(|name, value| {
                        name != "content_hash" && !value.is_array() && !value.is_object()
                    });
                }
                let outline = Outline {
                    id: id.clone(),
                    object_type,
                    source,
                    payload,
                    is_null,
                    tx_id: place.tx.id,
                    valid_time: place.valid_time,
                };
                found.insert(id, outline);
            }
        }
        Ok(ids.iter().map(|id| found.get(id).cloned()).collect())
    }

    /// Those of these objects that have text as their content.
    async fn with_text(&self, ids: &[ObjectId], at: AsOf) -> Result<HashSet<ObjectId>> {
        let query = ("e", "e", "[e :content c] [(string? c)]");
        let (answer, rows) = self.datalog(query, ids.iter().map(ObjectId::as_str), at).await?;
        let asked: HashSet<&str> = ids.iter().map(ObjectId::as_str).collect();
        let id = |row: &Value| {
            let id = row.get(0).and_then(Value::as_str).filter(|id| asked.contains(id)).map(ObjectId::new);
            id.ok_or_else(|| answer.strange("a row about something else"))
        };
        rows.iter().map(id).collect()
    }

    /// A pull pattern of all fields except contents and those that grow with a session. XTDB counts the fields of new
    /// documents with a delay, so those of this library are named in any case.
    async fn outline_fields(&self) -> Result<String> {
        let answer = self.nodes.send(&self.read("attribute-stats", Format::Json)).await?;
        let Value::Object(counted) = answer.json()? else { return Err(answer.strange("no fields")) };
        let plain = |name: &String| {
            let mut bytes = name.bytes();
            let first = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
            first && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'/' | b'.'))
        };
        if !counted.keys().all(|name| plain(name) && name.matches('/').count() <= 1 && !name.ends_with('/')) {
            return Ok("[*]".to_owned());
        }
        let mut names: BTreeSet<&str> = counted.keys().map(String::as_str).chain(FIELDS).collect();
        names.retain(|name| !GROWING.contains(name));
        let names: Vec<String> = names.into_iter().map(|name| format!(":{name}")).collect();
        Ok(format!("[{}]", names.join(" ")))
    }
}

type DocumentParts = (ObjectId, ObjectType, Option<Source>, serde_json::Map<String, Value>);

/// Splits a document into envelope and payload, keeping the stored `content_hash`.
fn document_without_content(value: Value) -> Result<DocumentParts> {
    let hash = value.get("content_hash").cloned();
    let document = Document::from_json(value)
        .map_err(|e| StoreError::Corrupt(format!("a document is not in this library's shape: {e}")))?;
    let (id, object_type, source, mut payload) = document.into_parts();
    match hash {
        Some(hash) => payload.insert("content_hash".into(), hash),
        None => payload.remove("content_hash"),
    };
    Ok((id, object_type, source, payload))
}
