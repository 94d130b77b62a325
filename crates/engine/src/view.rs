//! What of the canonical view still holds since it was last assembled, so that the next one costs a copy and what
//! is new. Nothing is kept before somebody asks for a view.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::render;
use context_model::time::TxId;
use context_store::AsOf;
use serde_json::{Map, Value};

use crate::assemble::{Assembled, chat_text, render_turn};
use crate::catalog::Catalog;
use crate::engine::Inner;
use crate::error::Result;
use crate::state::{State, Work};

/// The sections, each `None` until it is needed and whenever it does not hold any more.
#[derive(Default)]
pub(crate) struct View {
    prompt: Option<String>,
    pool: Option<Pool>,
    chat: Option<Conversation>,
    active: Option<Active>,
}

/// The second section, and the state of the catalog that it shows.
struct Pool {
    catalog: u64,
    text: String,
}

/// The third section.
struct Conversation {
    /// The chat's payload.
    chat: Value,
    /// Its turns as far as they are rendered.
    turns: Vec<Turn>,
}

struct Turn {
    messages: Arc<[Value]>,
    text: String,
}

/// The fourth section.
struct Active {
    catalog: u64,
    text: String,
    /// The objects, and where their contents stand in the text.
    blocks: Arc<[(ObjectId, Range<usize>)]>,
    /// The versions that the blocks show.
    versions: Vec<Option<TxId>>,
}

impl View {
    /// Follows a transaction of this client's that has become durable.
    pub fn after<'a>(
        &mut self,
        work: &Work,
        written: impl Iterator<Item = &'a ObjectId>,
        chat: &ObjectId,
        prompt: &ObjectId,
    ) {
        for id in written {
            if id == prompt {
                self.prompt = None;
            }
            if id == chat {
                self.chat = None;
            }
        }
        if !work.change.touched().is_empty() {
            self.pool = None;
            if let Some(active) = &mut self.active {
                // The blocks may be of use, but not as they stand.
                active.catalog = u64::MAX;
            }
        }
        if let Some(conversation) = &mut self.chat {
            if work.chat.change(&mut conversation.chat).is_ok() {
                let first =
                    work.chat.paths().filter_map(|path| first_turn(path, conversation.turns.len())).min();
                conversation.turns.truncate(first.unwrap_or(usize::MAX));
            } else {
                self.chat = None;
            }
        }
    }

    /// Follows what other clients have written.
    pub fn foreign(
        &mut self,
        changes: &BTreeMap<ObjectId, TxId>,
        (chat, own): (&ObjectId, Option<TxId>),
        prompt: &ObjectId,
    ) {
        if changes.contains_key(prompt) {
            self.prompt = None;
        }
        if changes.get(chat).copied() > own {
            self.chat = None;
        }
    }

    /// The view; all sections are there.
    pub fn assembled(&self) -> Assembled {
        let prompt = self.prompt.as_deref().unwrap_or_default();
        let pool = self.pool.as_ref().map_or("", |pool| pool.text.as_str());
        let turns = self.chat.as_ref().map_or(&[][..], |conversation| &conversation.turns);
        let active = self.active.as_ref().map_or("", |active| active.text.as_str());
        let spoken: Vec<&str> =
            turns.iter().filter(|turn| !turn.messages.is_empty()).map(|turn| turn.text.as_str()).collect();
        // Within the section an empty paragraph is one, too.
        let is_silent = spoken.len() < 2 && spoken.iter().all(|text| text.is_empty());
        let size =
            spoken.iter().chain([&prompt, &pool, &active]).map(|part| part.len() + SEPARATOR.len()).sum();
        let mut text = Paragraphs { text: String::with_capacity(size), ..Paragraphs::default() };
        let prompt = text.section(prompt);
        let pool = text.section(pool);
        if !is_silent {
            for part in spoken {
                text.push(part);
            }
        }
        let active = text.section(active);
        Assembled {
            text: text.text,
            prompt,
            pool,
            active,
            turns: turns.iter().map(|turn| Arc::clone(&turn.messages)).collect(),
            blocks: self.active.as_ref().map(|active| Arc::clone(&active.blocks)).unwrap_or_default(),
        }
    }
}

/// Between paragraphs.
const SEPARATOR: &str = "\n\n";

/// A text in the making.
#[derive(Default)]
struct Paragraphs {
    text: String,
    begun: bool,
}

impl Paragraphs {
    /// Adds a paragraph. Returns where it stands.
    fn push(&mut self, part: &str) -> Range<usize> {
        if std::mem::replace(&mut self.begun, true) {
            self.text.push_str(SEPARATOR);
        }
        let start = self.text.len();
        self.text.push_str(part);
        start..self.text.len()
    }

    /// As [`Paragraphs::push`] for a section, which is left out where it is empty.
    fn section(&mut self, part: &str) -> Range<usize> {
        if part.is_empty() { 0..0 } else { self.push(part) }
    }
}

/// The first turn that an operation at this path changes, of so many; `None` where it changes none.
fn first_turn(path: &str, turns: usize) -> Option<usize> {
    let rest = path.strip_prefix("/turns")?;
    let turn = rest.strip_prefix('/').and_then(|rest| rest.split('/').next());
    // The whole list, or something like it, changes from the first one on.
    Some(match turn {
        Some("-") => turns,
        Some(number) => number.parse().unwrap_or(0),
        None => 0,
    })
}

impl Inner {
    /// Reads and renders what the view lacks.
    pub async fn complete_view(&self, state: &mut State) -> Result<()> {
        if state.view.prompt.is_none() {
            let prompt = self.store().get(&self.prompt_id, AsOf::default()).await?;
            let prompt = prompt.and_then(|version| version.document.content().map(str::to_owned));
            state.view.prompt = Some(prompt.unwrap_or_default());
        }
        if state.view.chat.is_none() {
            let chat = self.store().get(&self.chat_id, AsOf::default()).await?;
            let chat = chat.map_or_else(Map::new, |version| version.document.into_parts().3);
            state.view.chat = Some(Conversation { chat: Value::Object(chat), turns: Vec::new() });
        }
        let State { view, catalog, sets, .. } = state;
        if let Some(conversation) = &mut view.chat {
            conversation.render(catalog);
        }
        if view.pool.as_ref().is_none_or(|pool| pool.catalog != catalog.changes()) {
            let display = |source: &_| self.paths.display(source);
            let lines: Vec<String> = sets.pool().iter().filter_map(|id| catalog.line(id, display)).collect();
            view.pool = Some(Pool { catalog: catalog.changes(), text: lines.join("\n") });
        }
        if view.active.as_ref().is_none_or(|active| active.catalog != catalog.changes()) {
            let before = view.active.take();
            let active = self.active(state, before).await?;
            state.view.active = Some(active);
        }
        Ok(())
    }

    /// The fourth section; of the one before it, blocks are taken over whose version is still the latest one.
    async fn active(&self, state: &State, before: Option<Active>) -> Result<Active> {
        let version = |id: &ObjectId| state.catalog.get(id).map(|meta| meta.tx);
        let mut known: HashMap<&ObjectId, &str> = HashMap::new();
        if let Some(before) = &before {
            for ((id, place), shown) in before.blocks.iter().zip(&before.versions) {
                if shown.is_some() && *shown == version(id) {
                    known.insert(id, &before.text[place.clone()]);
                }
            }
        }
        let ids = state.sets.active().iter();
        let missing: Vec<ObjectId> = ids.filter(|id| !known.contains_key(*id)).cloned().collect();
        let found = self.store().get_many(&missing, AsOf::default()).await?;
        let found: HashMap<ObjectId, Document> =
            found.into_iter().flatten().map(|v| (v.document.id().clone(), v.document)).collect();
        let mut text = Paragraphs::default();
        let (mut blocks, mut versions) = (Vec::new(), Vec::new());
        for id in state.sets.active() {
            let read = || found.get(id).and_then(Document::content);
            let Some(content) = known.get(id).copied().or_else(read) else { continue };
            let end = text.push(&render::active_block(id, content)).end;
            blocks.push((id.clone(), end - content.len()..end));
            versions.push(version(id));
        }
        Ok(Active { catalog: state.catalog.changes(), text: text.text, blocks: blocks.into(), versions })
    }
}

impl Conversation {
    /// Renders the turns that are not rendered yet.
    fn render(&mut self, catalog: &Catalog) {
        let turns = self.chat.get("turns").and_then(Value::as_array);
        for turn in turns.into_iter().flatten().skip(self.turns.len()) {
            let mut messages = Vec::new();
            render_turn(turn, |id| catalog.get(id).map(|meta| meta.kind.clone()), &mut messages);
            let text = chat_text(&messages);
            self.turns.push(Turn { messages: messages.into(), text });
        }
    }
}
