//! The rules that a history must keep to be imported: each document those of its type, and each patch those of the document
//! that results from it. Checking a patch takes time in proportion to what it changes, however long the document is.

use std::collections::HashSet;

use context_model::canonical::{MAX_DEPTH, is_deeper_than};
use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::{Document, ObjectType};
use context_model::patch::Patch;
use context_model::session::Sets;
use context_model::source::Source;
use context_model::time::Timestamp;
use context_model::tokens::utf16_len;
use json_patch::PatchOperation;
use serde_json::{Map, Value};

use super::lists::{Refused, Touched, change_list, is_infrastructure, lists, within};
use crate::Change;
use crate::redacted::has_marks;

/// The deepest nesting of a document. Arguments and messages may have [`MAX_DEPTH`] levels and are themselves a few levels
/// deep.
const MOST_LEVELS: usize = MAX_DEPTH + 8;

/// The most list elements that may be moved while one object's history is reconstructed: some seconds' worth.
const MOST_MOVES: usize = 2_000_000_000;

/// An object whose history is read version by version.
pub(super) struct History {
    id: ObjectId,
    object_type: ObjectType,
    source: Option<Source>,
    /// The latest version.
    payload: Value,
    valid_time: Timestamp,
    /// For a session: the contents of its lists.
    lists: Option<[HashSet<String>; 4]>,
    moves: usize,
}

impl History {
    /// Starts with an object's first version. Only the form of an erased version is checked.
    pub(super) fn begin(
        id: &ObjectId,
        change: &Change,
        valid_time: Timestamp,
        is_erased: bool,
    ) -> Result<Self, Refused> {
        let Change::Document(document) = change else {
            return Err("a history begins with a patch, which has nothing to change".into());
        };
        let mut history = Self {
            id: id.clone(),
            object_type: document.object_type(),
            source: document.source().cloned(),
            payload: Value::Null,
            valid_time,
            lists: None,
            moves: 0,
        };
        history.take(document, valid_time, is_erased)?;
        Ok(history)
    }

    /// Continues with the next version.
    pub(super) fn go_on(
        &mut self,
        change: &Change,
        valid_time: Timestamp,
        is_erased: bool,
    ) -> Result<(), Refused> {
        if self.object_type == ObjectType::Toolcall {
            return Err(format!("tool call {} has a second version", self.id));
        }
        match change {
            Change::Document(document) => self.take(document, valid_time, is_erased),
            Change::Patch(patch) => self.patch(patch, valid_time),
        }
    }

    /// The latest version, whole.
    pub(super) fn document(&self) -> Result<Document, Refused> {
        let payload = self.payload.as_object().cloned().unwrap_or_default();
        Document::new(self.id.clone(), self.object_type, self.source.clone(), payload)
            .map_err(|error| error.to_string())
    }

    fn take(&mut self, document: &Document, valid_time: Timestamp, is_erased: bool) -> Result<(), Refused> {
        if (document.object_type(), document.source()) != (self.object_type, self.source.as_ref()) {
            return Err(format!("{} changes its type or source, which never change", self.id));
        }
        whole(document, is_erased)?;
        // A document with an earlier valid time is not the latest version.
        if self.payload.is_null() || self.valid_time <= valid_time {
            self.lists = (self.object_type == ObjectType::Session).then(|| lists(document.payload()));
            self.payload = Value::Object(document.payload().clone());
            self.valid_time = valid_time;
        }
        Ok(())
    }

    fn patch(&mut self, patch: &Patch, valid_time: Timestamp) -> Result<(), Refused> {
        if !matches!(self.object_type, ObjectType::Chat | ObjectType::Session) {
            return Err(format!("{} has a patch, which only chats and sessions may have", self.id));
        }
        if valid_time < self.valid_time {
            return Err(format!(
                "a patch of {} has an earlier valid time than the version that it changes",
                self.id
            ));
        }
        self.valid_time = valid_time;
        let unfit = |_| format!("a patch of {} can't be applied", self.id);
        let operations: json_patch::Patch =
            serde_json::to_value(patch).and_then(serde_json::from_value).map_err(unfit)?;
        let mut touched = Vec::new();
        for operation in &operations.0 {
            let (path, value) = match operation {
                PatchOperation::Add(add) => (&add.path, Some(&add.value)),
                PatchOperation::Replace(replace) => (&replace.path, Some(&replace.value)),
                PatchOperation::Remove(remove) => (&remove.path, None),
                _ => return Err("a patch has operations other than add, remove and replace".into()),
            };
            let tokens: Vec<String> = path.tokens().map(|token| token.decoded().into_owned()).collect();
            self.is_allowed(&tokens, value)?;
            if let Some(lists) = &mut self.lists {
                change_list(lists, &self.payload, &tokens, operation, &mut touched)?;
            }
            json_patch::patch_unsafe(&mut self.payload, std::slice::from_ref(operation))
                .map_err(|_| format!("a patch of {} can't be applied", self.id))?;
            if self.object_type == ObjectType::Chat {
                self.turn(&tokens)?;
            }
        }
        match &self.lists {
            Some(lists) => {
                within(lists, &touched)?;
                references(&self.id, self.payload.as_object())
            }
            None => chat(&self.id, self.payload.as_object(), false),
        }
    }

    /// Checks that a patch may change this place, and counts the list elements that it moves.
    fn is_allowed(&mut self, tokens: &[String], value: Option<&Value>) -> Result<(), Refused> {
        const KEPT: [&str; 6] = ["xt/id", "type", "source", "identity_hash", "content_hash", "source_hash"];
        let Some(first) = tokens.first().filter(|first| !KEPT.contains(&first.as_str())) else {
            return Err(format!("a patch of {} changes a field that patches must not change", self.id));
        };
        let room = MOST_LEVELS.checked_sub(tokens.len());
        if room.is_none_or(|room| value.is_some_and(|value| is_deeper_than(value, room))) {
            return Err(deep(&self.id));
        }
        let (last, before) = tokens.split_last().unwrap_or((first, &[]));
        if let Ok(index) = last.parse::<usize>() {
            let mut parent = Some(&self.payload);
            for token in before {
                parent = parent.and_then(|parent| match parent {
                    Value::Array(list) => list.get(token.parse::<usize>().ok()?),
                    parent => parent.get(token),
                });
            }
            let length = parent.and_then(Value::as_array).map_or(0, Vec::len);
            self.moves += length.saturating_sub(index);
            if self.moves > MOST_MOVES {
                return Err(format!("the history of {} would take too long to reconstruct", self.id));
            }
        }
        Ok(())
    }

    /// Checks the element of a chat's list that a path leads to.
    fn turn(&self, tokens: &[String]) -> Result<(), Refused> {
        let [list, index, ..] = tokens else {
            return chat(&self.id, self.payload.as_object(), true);
        };
        let found = match self.payload.get(list) {
            Some(Value::Array(list)) => match index.parse::<usize>() {
                Ok(index) => list.get(index),
                Err(_) => list.last(),
            },
            _ => None,
        };
        let is_right = match (list.as_str(), found) {
            ("turns", Some(turn)) => turn.is_object(),
            ("toolcall_refs", Some(id)) => id.is_string(),
            _ => true,
        };
        if is_right { Ok(()) } else { Err(strange(&self.id)) }
    }
}

/// Checks a document that is stored whole.
fn whole(document: &Document, is_erased: bool) -> Result<(), Refused> {
    let id = document.id();
    if document.payload().values().any(|value| is_deeper_than(value, MOST_LEVELS - 1)) {
        return Err(deep(id));
    }
    let is_emptied = is_erased && document.content().is_none();
    if is_emptied
        && matches!(
            document.object_type(),
            ObjectType::File | ObjectType::Toolcall | ObjectType::SystemPrompt
        )
    {
        return Ok(());
    }
    let payload = Some(document.payload());
    match (document.object_type(), document.source()) {
        (ObjectType::File, Some(Source::Filesystem(_))) => file(document, is_erased),
        // A later version may know more about sources of other types; they are kept as they are.
        (ObjectType::File, Some(Source::Other(_)))
            if document.field("content").is_none_or(|content| is_text_or_null(Some(content))) =>
        {
            Ok(())
        }
        (ObjectType::Toolcall, None) => toolcall(document),
        (ObjectType::Chat, None) => chat(id, payload, true),
        (ObjectType::SystemPrompt, None) => {
            session_of(id, "system_prompt:")?;
            if document.content().is_some() { Ok(()) } else { Err(strange(id)) }
        }
        (ObjectType::Session, None) => {
            Sets::from_document(document).map_err(|error| error.to_string())?;
            within(&lists(document.payload()), &[Touched::All])?;
            references(id, payload)
        }
        _ => Err(strange(id)),
    }
}

fn file(document: &Document, is_erased: bool) -> Result<(), Refused> {
    let (content, count) = (document.field("content"), document.field("char_count"));
    // The length and the hash of a file that was redacted or erased in part are those of the original.
    let (text, is_redacted) = (document.content(), is_erased || has_marks(document));
    let is_length = |count| is_redacted || count == text.map_or(0, utf16_len) as u64;
    if !is_text_or_null(content) || !count.and_then(Value::as_u64).is_some_and(is_length) {
        return Err(strange(document.id()));
    }
    let hash = document.field("source_hash").unwrap_or(&Value::Null);
    if !hash.is_null() && document.source_hash().is_none() {
        return Err(strange(document.id()));
    }
    match text {
        Some(text) if !is_redacted && document.source_hash() != Some(Digest::of(text.as_bytes())) => {
            Err(format!("the content of file {} does not match its source_hash", document.id()))
        }
        _ => Ok(()),
    }
}

fn toolcall(document: &Document) -> Result<(), Refused> {
    let id = document.id();
    let text = id.as_str();
    let is_digest = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if text.is_empty() || is_digest || is_infrastructure(text) {
        return Err(format!("{id} is not a valid ID for a tool call"));
    }
    let is_list = |value: &Value| value.as_array().is_some_and(|list| list.iter().all(Value::is_string));
    let is_right = document.text("tool").is_some()
        && matches!(document.text("status"), Some("ok" | "fail"))
        && document
            .field("chat_ref")
            .is_none_or(|chat| chat.as_str().is_some_and(|chat| chat.starts_with("chat:")))
        && document.content().is_some()
        && document.field("args").is_some_and(Value::is_object)
        && document.field("args_display").is_none_or(Value::is_string)
        && document.field("outcome").is_none_or(Value::is_string)
        && document.field("parent_ref").is_none_or(Value::is_string)
        && document.field("file_refs").is_none_or(is_list);
    if is_right { Ok(()) } else { Err(strange(id)) }
}

/// Checks a chat's fields. With `all`, also every element of its lists.
fn chat(id: &ObjectId, payload: Option<&Map<String, Value>>, all: bool) -> Result<(), Refused> {
    let session = session_of(id, "chat:")?;
    let field = |name: &str| payload.and_then(|payload| payload.get(name));
    let list = |name: &str, is_right: fn(&Value) -> bool| {
        let list = field(name).and_then(Value::as_array);
        list.is_some_and(|list| !all || list.iter().all(is_right))
    };
    let is_right = field("content").is_some_and(Value::is_string)
        && field("turn_count").is_some_and(Value::is_u64)
        && field("session_ref").and_then(Value::as_str) == Some(ObjectId::session(&session).as_str())
        && list("turns", Value::is_object)
        && list("toolcall_refs", Value::is_string);
    if is_right { Ok(()) } else { Err(strange(id)) }
}

/// Checks the references of a session document.
fn references(id: &ObjectId, payload: Option<&Map<String, Value>>) -> Result<(), Refused> {
    let session = session_of(id, "session:")?;
    let text = |name: &str| payload.and_then(|payload| payload.get(name)).and_then(Value::as_str);
    let is_right = text("session_id") == Some(session.as_str())
        && text("chat_ref") == Some(ObjectId::chat(&session).as_str())
        && text("system_prompt_ref") == Some(ObjectId::system_prompt(&session).as_str());
    if is_right { Ok(()) } else { Err(strange(id)) }
}

fn session_of(id: &ObjectId, prefix: &str) -> Result<SessionId, Refused> {
    let session = id.as_str().strip_prefix(prefix).and_then(|session| SessionId::new(session).ok());
    session.ok_or_else(|| format!("{id} is not a valid ID for its type"))
}

fn is_text_or_null(value: Option<&Value>) -> bool {
    value.is_some_and(|value| value.is_string() || value.is_null())
}

fn deep(id: &ObjectId) -> Refused {
    format!("{id} is nested more than {MOST_LEVELS} levels deep")
}

fn strange(id: &ObjectId) -> Refused {
    format!("{id} does not have the fields of its type")
}
