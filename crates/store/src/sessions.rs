//! The sessions of a store, described for people, and which of them to remove.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use context_model::id::{ObjectId, SessionId};
use context_model::object::ObjectType;
use context_model::session::folder_of;
use context_model::source::Source;
use context_model::time::{Timestamp, TxId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::opening;
use crate::{AsOf, Filter, Outline, Result, Store, StoreError, Version};

/// One session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    /// Its ID.
    pub id: SessionId,
    /// Turns of its chat.
    pub turns: u64,
    /// Objects that it has encountered.
    pub objects: usize,
    /// When its chat or its sets were last written.
    pub last_written: Timestamp,
    /// The folder that it worked in: the one in its system prompt or its host's first words, otherwise its recorded working
    /// directory; without any of these the one that contains all of its files.
    pub folder: Option<String>,
    /// The beginning of the user's own first words, on one line.
    pub first_prompt: Option<String>,
}

/// The sessions to remove from a store, together with the objects that only they have encountered. Sessions written or
/// opened within the last day stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prune {
    /// Those that were neither written nor opened since this time.
    pub before: Option<Timestamp>,
    /// As many of the oldest ones as necessary to use no more bytes than this.
    pub max_bytes: Option<u64>,
    /// Only sessions that worked in this folder or below it; all of those if no other condition is given.
    pub project: Option<String>,
    /// Only report what would be removed.
    pub is_dry_run: bool,
}

impl Prune {
    /// Fails without a condition.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if no condition is given.
    pub fn check(&self) -> Result<()> {
        if self.before.is_none() && self.max_bytes.is_none() && self.project.is_none() {
            return Err(StoreError::Invalid(
                "say which sessions to remove: by age, by size or by project".into(),
            ));
        }
        Ok(())
    }

    /// Those that worked in the project, if one is given.
    pub fn among<'s>(&self, all: &'s [SessionSummary]) -> impl Iterator<Item = &'s SessionSummary> {
        let project = self.project.as_deref().map(|project| project.trim_end_matches('/').to_owned());
        all.iter().filter(move |summary| {
            let Some(project) = &project else { return true };
            let below = summary.folder.as_deref().and_then(|folder| folder.strip_prefix(&**project));
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

/// The sessions and objects that were removed from a store, or would be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pruned {
    /// The sessions, the oldest first.
    pub sessions: Vec<SessionSummary>,
    /// Objects, including the sessions' own documents.
    pub objects: u64,
    /// About how many bytes of the file become free.
    pub freed_bytes: u64,
    /// Bytes of the file that were in use before.
    pub used_bytes: u64,
    /// True if the file has shrunk. If not, new data will use the free space.
    pub is_shorter: bool,
}

/// The limits that the owner of a store has set. While the store is idle, sessions beyond them are removed automatically.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Most bytes of the file that may be in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// Sessions that have not been opened for this many days are removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_days: Option<u32>,
}

/// Number of turns searched for the user's own words: some hosts fill the first ones.
const TURNS: usize = 8;

/// Number of files of a session that are checked for the folder that they share.
const FILES: usize = 200;

/// The sessions of a store, most recently written first.
pub async fn summaries(store: &dyn Store) -> Result<Vec<SessionSummary>> {
    let sessions = Filter { object_type: Some(ObjectType::Session), ..Filter::default() };
    let mut all = Vec::new();
    for id in store.query(&sessions).await? {
        let Some(session) = id.as_str().strip_prefix("session:").and_then(|id| SessionId::new(id).ok())
        else {
            continue;
        };
        all.extend(summary(store, session).await?);
    }
    all.sort_by(|a, b| b.last_written.cmp(&a.last_written).then_with(|| a.id.as_str().cmp(b.id.as_str())));
    Ok(all)
}

/// The newest session that has encountered each of these objects. Objects of no session are absent.
pub async fn of_objects(
    store: &dyn Store,
    objects: &[ObjectId],
) -> Result<HashMap<ObjectId, Arc<SessionSummary>>> {
    let mut found = HashMap::new();
    let mut missing: HashSet<&str> = objects.iter().map(ObjectId::as_str).collect();
    let sessions = Filter { object_type: Some(ObjectType::Session), ..Filter::default() };
    // In the order of their first transactions.
    for id in store.query(&sessions).await?.into_iter().rev() {
        if missing.is_empty() {
            break;
        }
        let Some(version) = store.get(&id, AsOf::default()).await? else { continue };
        let index = version.document.field("session_index").and_then(Value::as_array);
        let here: Vec<&str> =
            index.into_iter().flatten().filter_map(|id| missing.take(id.as_str()?)).collect();
        let Some(session) = id.as_str().strip_prefix("session:").filter(|_| !here.is_empty()) else {
            continue;
        };
        if let Some(summary) = summary(store, SessionId::new(session)?).await? {
            let summary = Arc::new(summary);
            found.extend(here.into_iter().map(|id| (ObjectId::new(id), Arc::clone(&summary))));
        }
    }
    Ok(found)
}

async fn summary(store: &dyn Store, id: SessionId) -> Result<Option<SessionSummary>> {
    let Some(session) = store.get(&ObjectId::session(&id), AsOf::default()).await? else { return Ok(None) };
    let index =
        session.document.field("session_index").and_then(Value::as_array).cloned().unwrap_or_default();
    let chat = store.outlines(&[ObjectId::chat(&id)]).await?.pop().flatten();
    let turns = chat.as_ref().and_then(|chat| chat.payload.get("turn_count")?.as_u64()).unwrap_or_default();
    let last_written = chat.map_or(session.valid_time, |chat| chat.valid_time.max(session.valid_time));
    let said = if turns == 0 { Vec::new() } else { first_texts(store, &id).await? };
    let named =
        prompted_folder(store, &id).await?.or_else(|| said.iter().find_map(|text| hosts_folder(text)));
    let recorded = || folder_of(&session.document).map(str::to_owned);
    let folder = match named.or_else(recorded) {
        Some(folder) => Some(folder),
        // An earlier version of this library began it.
        None => shared_folder(store, &index).await?,
    };
    let first_prompt = opening::first_words(&said);
    Ok(Some(SessionSummary { id, turns, objects: index.len(), last_written, folder, first_prompt }))
}

async fn prompted_folder(store: &dyn Store, id: &SessionId) -> Result<Option<String>> {
    let prompt = store.get(&ObjectId::system_prompt(id), AsOf::default()).await?;
    Ok(prompt.and_then(|prompt| opening::folder_in(prompt.document.content()?)))
}

/// The folder that a host names in the user's name.
fn hosts_folder(text: &str) -> Option<String> {
    text.trim_start().starts_with('<').then(|| opening::folder_in(text)).flatten()
}

async fn shared_folder(store: &dyn Store, index: &[Value]) -> Result<Option<String>> {
    let ids: Vec<ObjectId> = index.iter().filter_map(Value::as_str).map(ObjectId::new).collect();
    let mut shared: Option<String> = None;
    let mut files = 0;
    for part in ids.chunks(FILES) {
        for outline in store.outlines(part).await?.into_iter().flatten() {
            let Some(path) = path_of(&outline) else { continue };
            files += 1;
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            shared =
                Some(shared.map_or_else(|| folder.to_owned(), |shared| common(&shared, folder).to_owned()));
        }
        if files >= FILES {
            break;
        }
    }
    Ok(shared.filter(|folder| !folder.is_empty()))
}

fn path_of(outline: &Outline) -> Option<String> {
    match outline.source.as_ref()? {
        Source::Filesystem(source) => Some(source.path.clone()),
        Source::Other(_) => None,
    }
}

/// The folder that is the same in both paths.
fn common<'a>(left: &'a str, right: &str) -> &'a str {
    let mut length = 0;
    for (a, b) in left.split('/').zip(right.split('/')) {
        if a != b {
            break;
        }
        length += a.len() + 1;
    }
    left.get(..length.saturating_sub(1)).unwrap_or(left)
}

/// The users' words in the first turns of a session, with the texts that hosts put there; the texts of each message.
async fn first_texts(store: &dyn Store, id: &SessionId) -> Result<Vec<String>> {
    let chat = ObjectId::chat(id);
    let early = store.history_page(&chat, TxId(0), 4).await?;
    let all = texts_of_turns(early.iter().rev().find_map(turns_of));
    if opening::first_words(&all).is_some() {
        return Ok(all);
    }
    // A conversation that began elsewhere may come with outputs of its past first, each in a transaction, and its texts after them.
    let whole = store.get(&chat, AsOf::default()).await?;
    Ok(texts_of_turns(whole.as_ref().and_then(turns_of)))
}

fn turns_of(version: &Version) -> Option<&Vec<Value>> {
    version.document.field("turns")?.as_array().filter(|turns| !turns.is_empty())
}

fn texts_of_turns(turns: Option<&Vec<Value>>) -> Vec<String> {
    let mut all = Vec::new();
    for said in turns.into_iter().flatten().take(TURNS).filter_map(|turn| turn.get("user")) {
        texts(said, &mut all);
    }
    all
}

/// The texts of a message, whose content is a single text or a list of parts.
fn texts(message: &Value, all: &mut Vec<String>) {
    match message {
        Value::String(text) => all.push(text.clone()),
        Value::Array(parts) => parts.iter().for_each(|part| texts(part, all)),
        Value::Object(part) => {
            if let Some(text) = part.get("text").or_else(|| part.get("content")) {
                texts(text, all);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_shared_at_the_borders_of_names() {
        for (left, right, shared) in [
            ("/a/bc", "/a/bc", "/a/bc"),
            ("/a/bc", "/a/b", "/a"),
            ("/a/b/c", "/a/b", "/a/b"),
            ("/a", "/b", ""),
            ("", "/b", ""),
        ] {
            assert_eq!(common(left, right), shared, "{left} {right}");
        }
    }
}
