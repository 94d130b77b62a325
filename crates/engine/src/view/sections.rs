//! The parts of the last assembled canonical view that are still valid, so that the next one costs a copy plus the changed
//! parts. Nothing is kept until a caller asks for a view.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use crate::files::recorded;
use crate::session::catalog::{Catalog, Meta};
use crate::session::client::Client;
use crate::session::error::Result;
use crate::session::{Session, SessionWrite};
use context_lines::{active_block, orphaned};
use context_model::chat::Chat;
use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::time::TxId;
use context_store::AsOf;
use serde_json::{Map, Value};

use super::{Assembled, chat_text, render_turn};

/// The sections, each `None` until it is needed, and again when it is no longer valid.
#[derive(Default)]
pub(crate) struct View {
    prompt: Option<String>,
    pool: Option<PoolSection>,
    chat: Option<Conversation>,
    active: Option<Active>,
}

/// The second section, with the state of the catalog that it shows.
struct PoolSection {
    catalog: u64,
    text: String,
}

/// The third section.
struct Conversation {
    /// The chat's payload.
    chat: Value,
    /// Its turns as far as they are rendered.
    turns: Vec<RenderedTurn>,
}

struct RenderedTurn {
    messages: Arc<[Value]>,
    text: String,
}

/// The fourth section.
struct Active {
    catalog: u64,
    text: String,
    /// The objects, and where their contents are in the text.
    blocks: Arc<[(ObjectId, Range<usize>)]>,
    /// The versions that the blocks show.
    versions: Vec<Option<TxId>>,
}

impl View {
    /// Takes in one of the session's transactions.
    pub(crate) fn follow(&mut self, written: &SessionWrite, client: &Client) {
        for id in &written.documents {
            if *id == client.prompt_id {
                self.prompt = None;
            }
            if *id == client.chat_id {
                self.chat = None;
            }
        }
        if !written.touched.is_empty() {
            self.pool = None;
            if let Some(active) = &mut self.active {
                // The blocks can be reused, but not the section as a whole.
                active.catalog = u64::MAX;
            }
        }
        if let Some(conversation) = &mut self.chat {
            if written.chat.change(&mut conversation.chat).is_ok() {
                let first =
                    written.chat.paths().filter_map(|path| first_turn(path, conversation.turns.len())).min();
                conversation.turns.truncate(first.unwrap_or(usize::MAX));
            } else {
                self.chat = None;
            }
        }
    }

    /// Takes in transactions of other clients.
    pub(crate) fn foreign(&mut self, changes: &BTreeMap<ObjectId, TxId>, client: &Client, session: &Session) {
        if changes.contains_key(&client.prompt_id) {
            self.prompt = None;
        }
        if changes.get(&client.chat_id).copied() > session.chat_tx {
            self.chat = None;
        }
    }

    /// The view; all sections must be present.
    pub(crate) fn assembled(&self) -> Assembled {
        let prompt = self.prompt.as_deref().unwrap_or_default();
        let pool = self.pool.as_ref().map_or("", |pool| pool.text.as_str());
        let turns = self.chat.as_ref().map_or(&[][..], |conversation| &conversation.turns);
        let active = self.active.as_ref().map_or("", |active| active.text.as_str());
        let spoken: Vec<&str> =
            turns.iter().filter(|turn| !turn.messages.is_empty()).map(|turn| turn.text.as_str()).collect();
        // Within the section, an empty paragraph also counts.
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

/// A text under construction.
#[derive(Default)]
struct Paragraphs {
    text: String,
    begun: bool,
}

impl Paragraphs {
    /// Adds a paragraph. Returns where it is.
    fn push(&mut self, part: &str) -> Range<usize> {
        if std::mem::replace(&mut self.begun, true) {
            self.text.push_str(SEPARATOR);
        }
        let start = self.text.len();
        self.text.push_str(part);
        start..self.text.len()
    }

    /// As [`Paragraphs::push`], for a section; an empty one is left out.
    fn section(&mut self, part: &str) -> Range<usize> {
        if part.is_empty() { 0..0 } else { self.push(part) }
    }
}

/// The first of `turns` turns that an operation at this path changes; `None` if it changes none.
fn first_turn(path: &str, turns: usize) -> Option<usize> {
    let rest = path.strip_prefix("/turns")?;
    let turn = rest.strip_prefix('/').and_then(|rest| rest.split('/').next());
    // The operation concerns the whole list, so it changes every turn from the first on.
    Some(match turn {
        Some("-") => turns,
        Some(number) => number.parse().unwrap_or(0),
        None => 0,
    })
}

impl View {
    /// Reads and renders the missing parts of the view.
    pub(crate) async fn complete(&mut self, client: &Client, session: &Session) -> Result<()> {
        if self.prompt.is_none() {
            let prompt = recorded::version(client, &client.prompt_id, AsOf::default()).await?;
            let prompt = prompt.and_then(|version| version.document.content().map(str::to_owned));
            self.prompt = Some(prompt.unwrap_or_default());
        }
        if self.chat.is_none() {
            let chat = recorded::version(client, &client.chat_id, AsOf::default()).await?;
            let chat = chat.map_or_else(Map::new, |version| version.document.into_parts().3);
            self.chat = Some(Conversation { chat: Value::Object(chat), turns: Vec::new() });
        }
        let Session { catalog, sets, .. } = session;
        if let Some(conversation) = &mut self.chat {
            conversation.render(catalog);
        }
        if self.pool.as_ref().is_none_or(|pool| pool.catalog != catalog.changes()) {
            let display = |source: &_| client.paths.display(source);
            let line = |id: &ObjectId| {
                let line = catalog.line(id, display)?;
                let source = catalog.get(id).and_then(Meta::file);
                let is_foreign = source.is_some_and(|source| client.paths.is_foreign(source));
                Some(if is_foreign { orphaned(&line) } else { line })
            };
            let lines: Vec<String> = sets.pool().iter().filter_map(line).collect();
            self.pool = Some(PoolSection { catalog: catalog.changes(), text: lines.join("\n") });
        }
        if self.active.as_ref().is_none_or(|active| active.catalog != catalog.changes()) {
            let before = self.active.take();
            self.active = Some(active(client, session, before).await?);
        }
        Ok(())
    }
}

/// The fourth section. Reuses those blocks of the previous one whose version is still the latest.
async fn active(client: &Client, session: &Session, before: Option<Active>) -> Result<Active> {
    let version = |id: &ObjectId| session.catalog.get(id).map(|meta| meta.tx);
    let mut known: HashMap<&ObjectId, &str> = HashMap::new();
    if let Some(before) = &before {
        for ((id, place), shown) in before.blocks.iter().zip(&before.versions) {
            if shown.is_some() && *shown == version(id) {
                known.insert(id, &before.text[place.clone()]);
            }
        }
    }
    let ids = session.sets.active().iter();
    let missing: Vec<ObjectId> = ids.filter(|id| !known.contains_key(*id)).cloned().collect();
    let found = recorded::versions(client, &missing, AsOf::default()).await?;
    let found: HashMap<ObjectId, Document> =
        found.into_iter().flatten().map(|v| (v.document.id().clone(), v.document)).collect();
    let mut text = Paragraphs::default();
    let (mut blocks, mut versions) = (Vec::new(), Vec::new());
    for id in session.sets.active() {
        let read = || found.get(id).and_then(Document::content);
        let Some(content) = known.get(id).copied().or_else(read) else { continue };
        let end = text.push(&active_block(id, content)).end;
        blocks.push((id.clone(), end - content.len()..end));
        versions.push(version(id));
    }
    Ok(Active { catalog: session.catalog.changes(), text: text.text, blocks: blocks.into(), versions })
}

impl Conversation {
    /// Renders the turns that are not rendered yet.
    fn render(&mut self, catalog: &Catalog) {
        for turn in Chat::of_payload(&self.chat).turns().skip(self.turns.len()) {
            let messages = render_turn(turn, |id| catalog.get(id).map(|meta| meta.kind.clone()));
            let text = chat_text(&messages);
            self.turns.push(RenderedTurn { messages: messages.into(), text });
        }
    }
}
