//! The erased texts, as hashes, and the code that takes them out of a document.

use std::collections::{BTreeMap, BTreeSet};

use context_model::hash::Digest;
use context_model::object::Document;
use context_model::source::Source;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::MARK;
use super::fragments::{Fragments, Needles};
use super::position;
use super::position::{Position, each_said, each_said_in_patch};

/// A string of a payload with at least this many bytes is its own text: it is erased wherever it occurs.
const LONG: usize = 256;

/// The hashes of erased texts, so that only a holder of a text can check whether it was erased.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gone {
    /// By SHA-256. With a text: what stands in its place. Without: it goes as a whole.
    texts: BTreeMap<Digest, Option<String>>,
    /// Shorter contents and strings of messages and arguments: they go where they are a whole content, message or argument
    /// again. Elsewhere they may be words that mean something else.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    said: BTreeSet<Digest>,
    /// Texts that go wherever they occur in a content, message or argument.
    #[serde(default, skip_serializing_if = "Fragments::is_empty")]
    fragments: Fragments,
}

/// The stored rest of a content in which something is erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Nothing.
    None,
    /// This text.
    Text(String),
}

impl Gone {
    /// True if no text is erased.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.said.is_empty() && self.fragments.is_empty()
    }

    /// Number of texts that go as a whole.
    pub fn count(&self) -> u64 {
        self.texts.values().filter(|instead| instead.is_none()).count() as u64
    }

    /// Adds the texts of another set.
    pub fn extend(&mut self, other: Self) {
        for (key, instead) in other.texts {
            self.add(key, instead);
        }
        self.said.extend(other.said);
        self.fragments.extend(other.fragments);
    }

    /// Adds the texts to look for, so that they also go out of texts that are written later.
    pub fn add_fragments(&mut self, needles: &Needles) {
        needles.each_plain(|text| self.fragments.add(text));
    }

    /// Adds a short content, or a string of an erased message or argument.
    pub fn add_said(&mut self, text: &str) {
        if !text.is_empty() && text.len() < LONG && text != MARK {
            self.said.insert(Digest::of(text.as_bytes()));
        }
    }

    /// Adds a string that contains a needle.
    pub fn add_match(&mut self, text: &str, needles: &Needles) {
        if let Some(instead) = needles.replaced_in(text) {
            self.add(Digest::of(text.as_bytes()), Some(instead));
        }
    }

    /// Takes back [`Gone::add_said`] for a string that also occurs in a remaining object: it reveals nothing about the
    /// erased ones.
    pub fn spare(&mut self, text: &str) {
        if !self.said.is_empty() && text.len() < LONG {
            self.said.remove(&Digest::of(text.as_bytes()));
        }
    }

    /// [`Gone::spare`] for the texts with these hashes.
    pub fn spare_if(&mut self, mut stays: impl FnMut(&Digest) -> bool) {
        self.said.retain(|key| !stays(key));
    }

    /// [`Gone::spare`] for the path of a file, which stays, and its ends.
    pub fn spare_path(&mut self, path: &str) {
        if self.said.is_empty() {
            return;
        }
        self.spare(path);
        for (at, _) in path.match_indices('/') {
            self.spare(&path[at + 1..]);
        }
    }

    /// [`Gone::spare`] for the content and all words of a document that stays. A content that goes everywhere is not spared.
    pub fn spare_all_of(&mut self, document: &Document) {
        if self.said.is_empty() {
            return;
        }
        if let Some(Source::Filesystem(file)) = document.source() {
            self.spare_path(&file.path);
        }
        if let Some(text) = document.content().filter(|text| text.len() < LONG)
            && !self.texts.contains_key(&Digest::of(text.as_bytes()))
        {
            self.spare(text);
        }
        each_said_of(document, &mut |text| self.spare(text));
    }

    /// Adds the texts of a version whose object is erased as a whole.
    pub fn add_all_of(&mut self, document: &Document) {
        if let (Some(text), Some(key)) = (document.content(), document.text_hash())
            && !text.is_empty()
        {
            self.add(key, None);
            self.add_said(text);
        }
        each_text(document, &mut |text| {
            if text.len() >= LONG && text != MARK {
                self.add(Digest::of(text.as_bytes()), None);
            }
        });
        each_said_of(document, &mut |text| self.add_said(text));
    }

    /// Adds those texts of a version that contain a needle.
    pub fn add_matches(&mut self, document: &Document, needles: &Needles) {
        if needles.is_empty() {
            return;
        }
        if let (Some(text), Some(key)) = (document.content(), document.text_hash())
            && needles.is_in(text)
        {
            self.add(key, None);
        }
        each_text(document, &mut |text| {
            self.add_match(text, needles);
        });
    }

    fn add(&mut self, key: Digest, instead: Option<String>) {
        let known = self.texts.entry(key).or_insert_with(|| instead.clone());
        if instead.is_none() {
            *known = None;
        }
    }

    /// The document without these texts; with `whole` also without all of its content, messages and arguments. `None` if it
    /// has nothing of that.
    pub fn taken_out_of(&self, document: &Document, whole: bool) -> Option<Document> {
        if self.is_empty() && !whole {
            return None;
        }
        let content = document.content().zip(document.text_hash()).filter(|(text, _)| !text.is_empty());
        let rest = match content {
            Some(_) if whole => Some(Rest::None),
            Some((text, key)) => self.rest_of(text, &key),
            None => None,
        };
        let (id, kind, source, mut payload) = document.clone().into_parts();
        let mut is_changed = rest.is_some();
        match rest {
            Some(Rest::None) => drop(payload.insert("content".into(), Value::Null)),
            Some(Rest::Text(text)) => drop(payload.insert("content".into(), text.into())),
            None => {}
        }
        if whole {
            let before = payload.clone();
            position::strip(&mut payload);
            is_changed |= payload != before;
        }
        if !self.is_empty() {
            is_changed |= self.mask_payload(&mut payload);
        }
        if is_changed { Document::new(id, kind, source, payload).ok() } else { None }
    }

    /// Returns the text stored instead of this content; `None` if nothing in it is erased.
    pub fn rest_of(&self, content: &str, key: &Digest) -> Option<Rest> {
        if content.is_empty() {
            return None;
        }
        if self.texts.get(key).is_some_and(Option::is_none) || self.said.contains(key) {
            return Some(Rest::None);
        }
        self.fragments.replaced_in(content).map(Rest::Text)
    }

    /// Puts marks in place of these texts in a payload, except for its content. True if the payload had one of them.
    pub fn mask_payload(&self, payload: &mut Map<String, Value>) -> bool {
        let mut is_changed = payload.get_mut(CHANGE).is_some_and(|operations| self.mask_patch(operations));
        if let Some(arguments) = payload.get_mut("args")
            && self.mask(arguments, Position::Arguments)
        {
            is_changed = true;
            // It repeats the arguments, often only parts of them.
            if let Some(display) = payload.get_mut("args_display") {
                *display = MARK.into();
            }
        }
        let others = ["content", "content_hash", "source_hash", CHANGE];
        let held: Vec<_> = others.iter().filter_map(|name| payload.remove_entry(*name)).collect();
        let mut rest = Value::Object(std::mem::take(payload));
        is_changed |= self.mask(&mut rest, Position::Payload);
        if let Value::Object(fields) = rest {
            *payload = fields;
        }
        payload.extend(held);
        is_changed
    }

    /// The same in the operations of a patch.
    pub fn mask_patch(&self, operations: &mut Value) -> bool {
        let mut is_changed = false;
        for operation in operations.as_array_mut().into_iter().flatten() {
            let position =
                Position::at_path(operation.get("path").and_then(Value::as_str).unwrap_or_default());
            if let Some(value) = operation.get_mut("value") {
                is_changed |= self.mask(value, position);
            }
        }
        is_changed
    }

    fn mask(&self, value: &mut Value, position: Position) -> bool {
        match value {
            Value::String(text) => match self.instead_of(text, position) {
                Some(instead) => {
                    *text = instead;
                    true
                }
                None => false,
            },
            Value::Array(items) => {
                items.iter_mut().fold(false, |done, item| self.mask(item, position) | done)
            }
            Value::Object(fields) => {
                let mask = |done: bool, (name, value): (&String, &mut Value)| {
                    self.mask(value, position.at_field(name)) | done
                };
                let mut done = fields.iter_mut().fold(false, mask);
                let instead = |name: &str| self.instead_of(name, Position::Structure);
                if fields.keys().any(|name| instead(name).is_some()) {
                    let renamed = std::mem::take(fields).into_iter();
                    let renamed = renamed.map(|(name, value)| (instead(&name).unwrap_or(name), value));
                    *fields = renamed.collect::<Map<_, _>>();
                    done = true;
                }
                done
            }
            _ => false,
        }
    }

    fn instead_of(&self, text: &str, position: Position) -> Option<String> {
        let key = Digest::of(text.as_bytes());
        match self.texts.get(&key) {
            Some(Some(instead)) => Some(instead.clone()),
            Some(None) if text.len() >= LONG => Some(MARK.to_owned()),
            // A short text may be a word that means something else here.
            _ if !position.is_said() => None,
            _ if self.said.contains(&key) => Some(MARK.to_owned()),
            _ => self.fragments.replaced_in(text),
        }
    }
}

/// The field in which a backend keeps the operations of a version that it stores as a change of the one before.
pub const CHANGE: &str = "context/patch";

/// All words of a document except for its content.
fn each_said_of(document: &Document, use_it: &mut impl FnMut(&str)) {
    for (name, value) in document.payload() {
        match name.as_str() {
            "content" => {}
            CHANGE => each_said_in_patch(value, use_it),
            name => each_said(value, Position::Payload.at_field(name), use_it),
        }
    }
}

/// All strings of a payload, with the names of fields, except for the content.
fn each_text(document: &Document, use_it: &mut impl FnMut(&str)) {
    fn of(value: &Value, use_it: &mut impl FnMut(&str)) {
        match value {
            Value::String(text) => use_it(text),
            Value::Array(items) => items.iter().for_each(|item| of(item, use_it)),
            Value::Object(fields) => fields.iter().for_each(|(name, value)| {
                use_it(name);
                of(value, use_it);
            }),
            _ => {}
        }
    }
    for (name, value) in document.payload() {
        if !matches!(name.as_str(), "content" | "content_hash" | "source_hash") {
            use_it(name);
            of(value, use_it);
        }
    }
}
