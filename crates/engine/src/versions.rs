//! Which version of a file the model knows, and what follows from it: a read that is answered by what is
//! still visible, a notice that a file has changed, an edit that would go against an unseen change.

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::time::TxId;
use context_model::{marker, render};
use context_store::{AsOf, Known as Bound};
use serde_json::{Map, Value};
use similar::{ChangeTag, TextDiff};

use crate::catalog::Kind;
use crate::engine::{Engine, Inner};
use crate::error::Result;
use crate::files::FileState;
use crate::ingest::Entry;
use crate::piece::ShownLines;
use crate::reading::unified;
use crate::seen::{Seen, file_id};
use crate::state::{State, Work};

/// A diff is worth showing in place of the whole text up to this share of it.
const DIFF_SHARE: usize = 2;

/// Files above this many bytes are announced without counting their changed lines.
const MAX_COUNTED: usize = 512 * 1024;

/// The version of a file that the model has last seen or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownVersion {
    pub hash: Digest,
    pub tx: TxId,
    /// The newest version that a notice has named.
    pub announced: Digest,
    /// The last answer to a read was that its lines are visible above; the next one is served in full.
    pub pointed: bool,
}

/// What a tool shall answer in place of what it was about to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The text for the model.
    pub text: String,
    /// The tool call in whose result the lines are still visible.
    pub object: ObjectId,
}

impl Engine {
    /// What to answer to a read of a file whose lines are still visible in the model's request: where they are,
    /// or what has changed in them since. `None`: show the lines.
    ///
    /// The file has just been indexed. The answer renews the stay of what it points to, so that it is still
    /// there when the model looks; a second read in a row is always served in full.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an impossible path; what the store reports.
    pub async fn answer_read(
        &self,
        path: &str,
        offset: Option<usize>,
        limit: Option<usize>,
    ) -> Result<Option<Answer>> {
        let id = file_id(&self.inner.paths.resolve(path)?.source);
        let mut state = self.inner.lock().await?;
        let Some(hash) = state.hash_of(&id) else { return Ok(None) };
        if state.known.get(&id).is_some_and(|known| known.pointed) {
            if let Some(known) = state.known.get_mut(&id) {
                known.pointed = false;
            }
            return Ok(None);
        }
        let Some(text) = self.inner.text_at(&id, None).await? else { return Ok(None) };
        let total = text.split('\n').count();
        let first = offset.unwrap_or(1).max(1);
        let last = limit.map_or(total, |limit| total.min(first.saturating_add(limit).saturating_sub(1)));
        let lines = ShownLines { file: id.clone(), hash, first, last };

        let answer = if let Some(object) = state.sight.showing(&lines).cloned() {
            let handle = state.handle(&object);
            let text = format!(
                "unchanged: lines {first}-{last} of {} are above in this conversation, in the result id={handle}",
                render::text(path)
            );
            Some(Answer { text, object })
        } else {
            self.inner.changed_since(&state, &lines, path, &text).await?
        };
        if let Some(answer) = &answer {
            self.inner.renew(&mut state, &answer.object).await?;
            if let Some(known) = state.known.get_mut(&id) {
                known.pointed = true;
                known.hash = hash;
                known.announced = hash;
            }
        }
        Ok(answer)
    }

    /// Checks an edit: if the file has changed since the model last saw or wrote it, the refusal with the
    /// difference; the model has seen that then, and its next edit is let through. `None`: go on.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an impossible path; what the store reports.
    pub async fn check_edit(&self, path: &str) -> Result<Option<String>> {
        let place = self.inner.paths.resolve(path)?;
        let id = file_id(&place.source);
        if !self.inner.lock().await?.known.contains_key(&id) {
            return Ok(None);
        }
        let (file, since) = self.inner.look(&place, None).await?;
        let was_read = matches!(file, FileState::Text(_) | FileState::NoText { .. });
        if let Some(seen) = Seen::of(place, file, since).filter(|_| was_read) {
            self.inner.index(vec![seen], Entry::Tracked).await?;
        }
        let mut state = self.inner.lock().await?;
        let (Some(hash), Some(known)) = (state.hash_of(&id), state.known.get(&id).copied()) else {
            return Ok(None);
        };
        if known.hash == hash {
            return Ok(None);
        }
        let old = self.inner.text_at(&id, Some(known.tx)).await?.unwrap_or_default();
        let new = self.inner.text_at(&id, None).await?.unwrap_or_default();
        state.know(&id, hash);
        let diff = unified(&old, &new, "as you know it", "as it is now");
        let path = render::text(path);
        Ok(Some(format!(
            "{path} has changed since you last saw it, so it was not edited. The change:\n{diff}\n\
             Check that your edit still fits, and repeat it."
        )))
    }

    /// Checks a call's arguments: where a whole one is a marker that stands for collapsed text, the sentence to
    /// refuse the call with. `None`: go on.
    ///
    /// # Errors
    /// `CLOSED`.
    pub async fn check_arguments(&self, args: &Map<String, Value>) -> Result<Option<String>> {
        let state = self.inner.lock().await?;
        Ok(marker::imitation(args, |tag| state.issued.contains(tag)))
    }

    /// Lines for the model about files that it knows in another version than they are in now, each version
    /// once. Cheap where nothing changed.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn stale_notices(&self) -> Result<Vec<String>> {
        let mut state = self.inner.lock().await?;
        self.inner.notices(&mut state).await
    }
}

impl Inner {
    /// A read whose lines are visible in an older version: the difference, where that is the shorter text.
    async fn changed_since(
        &self,
        state: &State,
        lines: &ShownLines,
        path: &str,
        new: &str,
    ) -> Result<Option<Answer>> {
        let whole = lines.first == 1 && lines.last == new.split('\n').count();
        let Some(known) = state.known.get(&lines.file).filter(|_| whole) else { return Ok(None) };
        let Some(object) =
            state.sight.held(&lines.file).find(|(_, hash)| *hash == known.hash).map(|(o, _)| o)
        else {
            return Ok(None);
        };
        let Some(old) = self.text_at(&lines.file, Some(known.tx)).await? else { return Ok(None) };
        let handle = state.handle(object);
        let diff = unified(&old, new, &format!("in the result id={handle}"), "now");
        if diff.len() * DIFF_SHARE > new.len() {
            return Ok(None);
        }
        let text = format!("{} has changed since the result id={handle}:\n{diff}", render::text(path));
        Ok(Some(Answer { text, object: object.clone() }))
    }

    /// Makes a tool call the most recently activated one, so that the window and the next roll spare it.
    async fn renew(&self, state: &mut State, id: &ObjectId) -> Result<()> {
        for attempt in 0.. {
            let mut work = Work::default();
            state.sets.activate(id, &mut work.change);
            self.note_stay(state, id, &mut work);
            match self.save(state, work).await {
                Ok(_) => break,
                Err(error) => self.retry(state, attempt, error).await?,
            }
        }
        Ok(())
    }

    /// See [`Engine::stale_notices`].
    pub async fn notices(&self, state: &mut State) -> Result<Vec<String>> {
        let changed: Vec<(ObjectId, KnownVersion)> =
            state.changed.drain().filter_map(|id| Some((id.clone(), *state.known.get(&id)?))).collect();
        let mut notices = Vec::new();
        for (id, known) in changed {
            let current = state.catalog.get(&id).map(|meta| (meta.is_null, state.hash_of(&id)));
            let Some((is_null, hash)) = current else { continue };
            let now = hash.unwrap_or(Digest::of(b""));
            if now == known.announced || state.sight.held(&id).next().is_none() {
                continue;
            }
            if let Some(known) = state.known.get_mut(&id) {
                known.announced = now;
            }
            let what = if is_null {
                "deleted".to_owned()
            } else if now == known.hash {
                "as you know it again".to_owned()
            } else {
                let old = self.text_at(&id, Some(known.tx)).await?.unwrap_or_default();
                let new = self.text_at(&id, None).await?.unwrap_or_default();
                counted(&old, &new)
            };
            let path = self.display_of(state, &id);
            notices.push(format!("stale id={} path={} {what}", state.handle(&id), render::text(&path)));
        }
        notices.sort();
        Ok(notices)
    }

    /// The text of a file's latest version, or of the one that a transaction left.
    pub async fn text_at(&self, id: &ObjectId, tx: Option<TxId>) -> Result<Option<String>> {
        let at = AsOf { known: tx.map(Bound::Tx), valid_time: None };
        let version = self.store().get(id, at).await?;
        Ok(version.and_then(|version| version.document.content().map(str::to_owned)))
    }

    /// The path of a file as the agent knows it.
    pub fn display_of(&self, state: &State, id: &ObjectId) -> String {
        let source = state.catalog.get(id).and_then(|meta| meta.file());
        match (state.catalog.display(id), source) {
            (Some(path), _) => path.to_owned(),
            (None, Some(source)) => self.paths.display(source),
            (None, None) => id.to_string(),
        }
    }

    /// Which lines of a file a read's output shows, by comparing them with the version of that moment.
    pub async fn lines_shown(
        &self,
        state: &State,
        call: &ObjectId,
        path: &str,
        offset: Option<usize>,
        output: &str,
    ) -> Result<Option<ShownLines>> {
        let Ok(place) = self.paths.resolve(path.strip_prefix('@').unwrap_or(path)) else { return Ok(None) };
        let file = file_id(&place.source);
        let Some(tx) = state.catalog.get(call).map(|meta| meta.tx) else { return Ok(None) };
        let at = AsOf { known: Some(Bound::Tx(tx)), valid_time: None };
        let Some(version) = self.store().get(&file, at).await? else { return Ok(None) };
        let (Some(text), Some(hash)) = (version.document.content(), version.document.source_hash()) else {
            return Ok(None);
        };
        let first = offset.unwrap_or(1).max(1);
        Ok(common_lines(text, first, output).map(|last| ShownLines { file, hash, first, last }))
    }
}

impl State {
    /// The hash of a file's current bytes, as far as they are known.
    pub fn hash_of(&self, id: &ObjectId) -> Option<Digest> {
        match &self.catalog.get(id)?.kind {
            Kind::File { source_hash, .. } => *source_hash,
            Kind::Toolcall { .. } => None,
        }
    }

    /// The model has seen or written this version of a file.
    pub fn know(&mut self, id: &ObjectId, hash: Digest) {
        let Some(tx) = self.catalog.get(id).map(|meta| meta.tx) else { return };
        self.known.insert(id.clone(), KnownVersion { hash, tx, announced: hash, pointed: false });
    }
}

/// The last line of a text, counted from 1, up to which an output shows it from line `first` on; `None` where
/// it does not show even that one.
fn common_lines(text: &str, first: usize, output: &str) -> Option<usize> {
    let mut shown = output.split('\n');
    let mut last = None;
    for (number, line) in text.split('\n').enumerate().skip(first - 1) {
        if shown.next() != Some(line) {
            break;
        }
        last = Some(number + 1);
    }
    last
}

/// `+12 -4`: how many lines came and went.
fn counted(old: &str, new: &str) -> String {
    if old.len().max(new.len()) > MAX_COUNTED {
        return "changed".to_owned();
    }
    let diff = TextDiff::from_lines(old, new);
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    format!("+{} -{}", count(ChangeTag::Insert), count(ChangeTag::Delete))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_output_shows_is_found_by_comparing_lines() {
        let text = "a\nb\nc\nd\n";
        assert_eq!(common_lines(text, 1, "a\nb\nc\nd\n"), Some(5));
        assert_eq!(
            common_lines(text, 1, "a\nb\n\n[2 more lines in file. Use offset=3 to continue.]"),
            Some(2)
        );
        assert_eq!(common_lines(text, 2, "b\nc"), Some(3));
        assert_eq!(common_lines(text, 1, "[Line 1 is 60KB]"), None);
        assert_eq!(common_lines(text, 9, "x"), None);
    }

    #[test]
    fn changed_lines_are_counted() {
        assert_eq!(counted("a\nb\nc\n", "a\nx\ny\nc\n"), "+2 -1");
    }
}
