//! Object documents: an immutable envelope and a mutable payload.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::error::ModelError;
use crate::hash::{Digest, HashedText, content_hash, identity_hash};
use crate::id::{ObjectId, SessionId};
pub use crate::object_type::ObjectType;
use crate::source::{FilesystemSource, Source};
use crate::tokens::utf16_len;
pub use crate::toolcall::{Status, Toolcall};

/// One version of an object as it is in the store.
///
/// The envelope (`xt/id`, `type`, `source`, `identity_hash`) never changes; everything else is payload and is covered
/// by `content_hash`, which is in the payload next to `source_hash`.
#[derive(Clone, Debug)]
pub struct Document {
    id: ObjectId,
    object_type: ObjectType,
    source: Option<Source>,
    identity_hash: Digest,
    payload: Map<String, Value>,
    /// SHA-256 of the content, if already known.
    text_hash: Option<Digest>,
}

/// The fields of the envelope, which no payload may use.
const ENVELOPE: [&str; 4] = ["xt/id", "type", "source", "identity_hash"];

impl Document {
    /// Builds a document and computes its hashes.
    ///
    /// `source_hash`, if the object is sourced, is expected in the payload.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the payload uses a name of the envelope, or a sourced object's ID is not its
    /// identity hash.
    pub fn new(
        id: ObjectId,
        object_type: ObjectType,
        source: Option<Source>,
        payload: Map<String, Value>,
    ) -> Result<Self, ModelError> {
        let identity = identity_hash(object_type, source.as_ref());
        if source.is_some() && id.as_str() != identity.to_string() {
            return Err(ModelError::Invalid("the ID of a sourced object is its identity hash".into()));
        }
        if let Some(name) = ENVELOPE.iter().find(|name| payload.contains_key(**name)) {
            return Err(ModelError::Invalid(format!("the payload can't have a field named {name}")));
        }
        Ok(Self::hashed(id, object_type, source, identity, payload))
    }

    fn hashed(
        id: ObjectId,
        object_type: ObjectType,
        source: Option<Source>,
        identity_hash: Digest,
        mut payload: Map<String, Value>,
    ) -> Self {
        payload.insert("content_hash".into(), content_hash(&payload).to_string().into());
        Self { id, object_type, source, identity_hash, payload, text_hash: None }
    }

    /// A version of a file whose bytes are this text.
    #[must_use]
    pub fn text_file(source: FilesystemSource, text: HashedText) -> Self {
        let (text, hash) = text.into_parts();
        Self { text_hash: Some(hash), ..Self::file(source, Some(text), Some(hash)) }
    }

    /// A version of a file. `text` is null for a file that is deleted, not text, unreadable or only discovered;
    /// `source_hash` is null if its bytes are not known.
    #[must_use]
    pub fn file(source: FilesystemSource, text: Option<String>, source_hash: Option<Digest>) -> Self {
        let mut payload = fields(json!({
            "file_type": file_type(&source.path),
            "char_count": text.as_deref().map_or(0, utf16_len),
            "source_hash": source_hash,
        }));
        // Moved, because `json!` would copy it.
        payload.insert("content".into(), text.into());
        let source = Source::Filesystem(source);
        let identity = identity_hash(ObjectType::File, Some(&source));
        let id = ObjectId::sourced(identity);
        Self::hashed(id, ObjectType::File, Some(source), identity, payload)
    }

    /// The result of a tool execution, which belongs to a chat.
    #[must_use]
    pub fn toolcall(id: ObjectId, chat_ref: &ObjectId, call: Toolcall) -> Self {
        Self::toolcall_with(id, chat_ref, call, None, None)
    }

    /// The same with more than the specification's fields: the client's evidence of the lines and the version of a file that it
    /// shows (field `evidence`), and the outcome of its output (field `outcome`).
    #[must_use]
    pub fn toolcall_with(
        id: ObjectId,
        chat_ref: &ObjectId,
        call: Toolcall,
        evidence: Option<Value>,
        outcome: Option<&str>,
    ) -> Self {
        let mut payload = fields(json!({
            "tool": call.tool,
            "status": call.status,
            "chat_ref": chat_ref,
        }));
        payload.insert("content".into(), call.content.into());
        payload.insert("args".into(), call.args.into());
        if let Some(display) = call.args_display {
            payload.insert("args_display".into(), display.into());
        }
        if !call.file_refs.is_empty() {
            payload.insert("file_refs".into(), json!(call.file_refs));
        }
        if let Some(parent) = call.parent {
            payload.insert("parent_ref".into(), json!(ObjectId::toolcall(&parent)));
        }
        if let Some(evidence) = evidence {
            payload.insert("evidence".into(), evidence);
        }
        if let Some(outcome) = outcome {
            payload.insert("outcome".into(), outcome.into());
        }
        Self::built(id, ObjectType::Toolcall, None, payload)
    }

    /// A session's chat object before its first turn.
    #[must_use]
    pub fn chat(session: &SessionId) -> Self {
        let payload = fields(json!({
            "content": "",
            "turns": [],
            "session_ref": ObjectId::session(session),
            "turn_count": 0,
            "toolcall_refs": [],
        }));
        Self::built(ObjectId::chat(session), ObjectType::Chat, None, payload)
    }

    /// A session's system prompt object.
    #[must_use]
    pub fn system_prompt(session: &SessionId, text: &str) -> Self {
        let payload = fields(json!({ "content": text }));
        Self::built(ObjectId::system_prompt(session), ObjectType::SystemPrompt, None, payload)
    }

    fn built(id: ObjectId, kind: ObjectType, source: Option<Source>, payload: Map<String, Value>) -> Self {
        Self::new(id, kind, source, payload)
            .unwrap_or_else(|e| unreachable!("the constructors give well-formed documents: {e}"))
    }

    /// Reads a document from its JSON form and recomputes its hashes.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the envelope is incomplete or contradicts itself.
    pub fn from_json(value: Value) -> Result<Self, ModelError> {
        let Value::Object(mut map) = value else {
            return Err(ModelError::Invalid("a document is a JSON object".into()));
        };
        let mut text = |name: &str| match map.remove(name) {
            Some(Value::String(text)) => Ok(text),
            _ => Err(ModelError::Invalid(format!("a document has a text field {name}"))),
        };
        let id = ObjectId::new(text("xt/id")?);
        let object_type = text("type")?.parse()?;
        let identity: Digest = text("identity_hash")?.parse()?;
        let source = match map.remove("source") {
            None | Some(Value::Null) => None,
            Some(value) => Some(Source::from_value(value)?),
        };
        let document = Self::new(id, object_type, source, map)?;
        if document.identity_hash != identity {
            return Err(ModelError::Invalid(
                "the document's identity_hash does not match its envelope".into(),
            ));
        }
        Ok(document)
    }

    /// The document's JSON form: the envelope's fields, then the payload's.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut map = self.payload.clone();
        map.insert("xt/id".into(), self.id.as_str().into());
        map.insert("type".into(), self.object_type.as_str().into());
        map.insert("source".into(), json!(self.source));
        map.insert("identity_hash".into(), self.identity_hash.to_string().into());
        map
    }

    /// The object's ID.
    pub fn id(&self) -> &ObjectId {
        &self.id
    }

    /// The object's type.
    pub fn object_type(&self) -> ObjectType {
        self.object_type
    }

    /// The source binding; `None` for an unsourced object.
    pub fn source(&self) -> Option<&Source> {
        self.source.as_ref()
    }

    /// SHA-256 of the envelope.
    pub fn identity_hash(&self) -> Digest {
        self.identity_hash
    }

    /// All payload fields, including `source_hash` and `content_hash`.
    pub fn payload(&self) -> &Map<String, Value> {
        &self.payload
    }

    /// One payload field.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.payload.get(name)
    }

    /// One payload field, if it is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.field(name).and_then(Value::as_str)
    }

    /// The content, if it is not null.
    pub fn content(&self) -> Option<&str> {
        self.text("content")
    }

    /// The hash of the source's raw bytes, if they are known.
    pub fn source_hash(&self) -> Option<Digest> {
        self.text("source_hash").and_then(|t| t.parse().ok())
    }

    /// The hash of the payload; see [`content_hash`].
    pub fn content_hash(&self) -> Digest {
        self.text("content_hash").and_then(|t| t.parse().ok()).unwrap_or_else(|| content_hash(&self.payload))
    }

    /// SHA-256 of the content, if there is one: known for a [`Document::text_file`], otherwise computed.
    pub fn text_hash(&self) -> Option<Digest> {
        self.text_hash.or_else(|| self.content().map(|text| Digest::of(text.as_bytes())))
    }

    /// Splits the document into ID, type, source and payload.
    pub fn into_parts(self) -> (ObjectId, ObjectType, Option<Source>, Map<String, Value>) {
        (self.id, self.object_type, self.source, self.payload)
    }
}

/// The same envelope and the same payload.
impl PartialEq for Document {
    fn eq(&self, other: &Self) -> bool {
        let envelope = (&self.id, self.object_type, &self.source, self.identity_hash);
        envelope == (&other.id, other.object_type, &other.source, other.identity_hash)
            && self.payload == other.payload
    }
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_json(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// The `file_type` of a path: its last extension in lower case without the dot; `text` if there is none.
#[must_use]
pub fn file_type(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() && !extension.is_empty() => extension.to_lowercase(),
        _ => "text".to_owned(),
    }
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => unreachable!("called with object literals only"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/a/main.TS", "ts")]
    #[case("/a/archive.tar.gz", "gz")]
    #[case("/a.d/Makefile", "text")]
    #[case("/a/.gitignore", "text")]
    #[case("/a/odd.", "text")]
    fn file_types(#[case] path: &str, #[case] expected: &str) {
        assert_eq!(file_type(path), expected);
    }

    #[test]
    fn a_document_survives_its_json_form() {
        let file = Document::file(
            FilesystemSource { filesystem_id: "f".into(), path: "/a/b.rs".into() },
            Some("fn main() {}\u{1F600}".into()),
            Some(Digest::of(b"x")),
        );
        assert_eq!(file.field("char_count"), Some(&json!(14)));
        assert_eq!(Document::from_json(Value::Object(file.to_json())).unwrap(), file);
    }

    #[test]
    fn hashed_text_makes_the_same_document() {
        let source = FilesystemSource { filesystem_id: "f".into(), path: "/a/b.rs".into() };
        let (text, hash) = ("fn main() {}\u{1F600}", Digest::of("fn main() {}\u{1F600}".as_bytes()));
        let hashed = Document::text_file(source.clone(), HashedText::new(text.into()));
        let plain = Document::file(source.clone(), Some(text.into()), Some(hash));
        assert_eq!(hashed, plain);
        assert_eq!((hashed.text_hash(), plain.text_hash()), (Some(hash), Some(hash)));
        assert_eq!(Document::file(source, None, Some(hash)).text_hash(), None);
    }

    #[test]
    fn contradictory_envelope_is_refused() {
        let mut map = Document::system_prompt(&SessionId::new("s").unwrap(), "x").to_json();
        map.insert("identity_hash".into(), Digest::of(b"other").to_string().into());
        assert!(Document::from_json(Value::Object(map)).is_err());
    }

    #[test]
    fn every_payload_field_but_two_is_covered_by_the_content_hash() {
        let base = Document::system_prompt(&SessionId::new("s").unwrap(), "x");
        let with = |name: &str| {
            let (id, kind, source, mut payload) = base.clone().into_parts();
            payload.insert(name.into(), "v".into());
            Document::new(id, kind, source, payload).unwrap().content_hash()
        };
        assert_ne!(with("a_field_of_the_future"), base.content_hash());
        assert_eq!(with("source_hash"), base.content_hash());
        assert_eq!(with("content_hash"), base.content_hash());
    }
}
