//! What the model is told of files: a read that is answered by what is still visible, a notice that a file has
//! changed, an edit that would go against an unseen change.

use context_model::id::ObjectId;
use context_model::time::TxId;
use context_model::{marker, render};
use context_store::{AsOf, Known as Bound};
use serde_json::{Map, Value};

use super::{Engine, Inner, State};
use crate::files::difference::{counted, unified};
use crate::files::index::{Entry, display_of};
use crate::files::known::KnownVersion;
use crate::files::reading::FileState;
use crate::files::seen::{Seen, file_id};
use crate::ground::error::Result;
use crate::ground::paths::{Disk, Place};
use crate::session::Session;
use crate::session::commit::Work;
use crate::sight::piece::ShownLines;

/// A diff is worth showing in place of the whole text up to this share of it.
const DIFF_SHARE: usize = 2;

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
    /// The answer holds for the file as it is on disk now, where the client can see it; else as it was indexed last. It
    /// renews the stay of what it points to, so that it is still there when the model looks; a second read in a row is
    /// always served in full.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an impossible path; what the store reports.
    pub async fn answer_read(
        &self,
        path: &str,
        offset: Option<usize>,
        limit: Option<usize>,
    ) -> Result<Option<Answer>> {
        let place = self.inner.ground.paths.resolve(path)?;
        let id = file_id(&place.source);
        self.inner.look_at_one(place).await?;
        let mut state = self.inner.lock().await?;
        self.inner.refresh(&mut state).await?;
        let Some(hash) = state.session.hash_of(&id) else { return Ok(None) };
        if state.known.get(&id).is_some_and(|known| known.pointed) {
            state.known.set_pointed(&id, false);
            return Ok(None);
        }
        let Some(text) = self.inner.text_at(&id, None).await? else { return Ok(None) };
        let total = text.split('\n').count();
        let first = offset.unwrap_or(1).max(1);
        let last = limit.map_or(total, |limit| total.min(first.saturating_add(limit).saturating_sub(1)));
        if first > last {
            // Past the end: that is the tool's to say.
            return Ok(None);
        }
        let tx = self.inner.ground.newest();
        let lines = ShownLines { file: id.clone(), hash, tx, first, last };

        let is_above = state.sight.pieces.showing(&lines).cloned();
        let is_change = is_above.is_none();
        let answer = if let Some(object) = is_above {
            let handle = state.session.handle(&object);
            let text = format!("{UNCHANGED}{first}-{last} of {}{ABOVE}{handle}", render::text(path));
            Some(Answer { text, object })
        } else {
            self.inner.changed_since(&state, &lines, path, &text).await?
        };
        if let Some(answer) = &answer {
            let renew = |session: &mut Session, work: &mut Work| {
                session.activate(&answer.object, work);
                Ok(())
            };
            self.inner.commit(&mut state, renew).await?;
            let knows_it = state.known.get(&id).is_some_and(|known| known.hash == Some(hash));
            if is_change {
                state.wrote(&id);
            } else if first == 1 && last == total {
                let tx = state.session.catalog.get(&id).map_or(tx, |meta| meta.tx);
                state.known.saw(&id, Some(hash), tx);
            } else if knows_it {
                state.known.told(&id, Some(hash));
            }
            state.known.set_pointed(&id, true);
        }
        Ok(answer)
    }

    /// Checks an edit: if the file has changed since the model last saw or wrote it, the refusal with the
    /// difference; the model has seen that then, and its next edit is let through. `None`: go on.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an impossible path; what the store reports.
    pub async fn check_edit(&self, path: &str) -> Result<Option<String>> {
        let place = self.inner.ground.paths.resolve(path)?;
        let id = file_id(&place.source);
        if self.inner.lock().await?.known.get(&id).is_none() {
            return Ok(None);
        }
        self.inner.look_at_one(place).await?;
        let mut state = self.inner.lock().await?;
        self.inner.refresh(&mut state).await?;
        let (Some(hash), Some(known)) = (state.session.hash_of(&id), state.known_now(&id)) else {
            return Ok(None);
        };
        if known.hash == Some(hash) {
            return Ok(None);
        }
        let old = self.inner.text_at(&id, Some(known.tx)).await?.unwrap_or_default();
        let new = self.inner.text_at(&id, None).await?.unwrap_or_default();
        state.wrote(&id);
        let diff = unified(&old, &new, "as you know it", "as it is now");
        let path = render::text(path);
        Ok(Some(format!(
            "{path}{EDIT_REFUSED}. The change:\n{diff}\n\
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
        Ok(marker::imitation(args, |tag| state.sight.issued.contains(tag)))
    }

    /// Lines for the model about files that it knows in another version than they are in now, each version
    /// once. Cheap where nothing changed.
    ///
    /// # Errors
    /// What the store reports; what was to be said is said by the next call then.
    pub async fn stale_notices(&self) -> Result<Vec<String>> {
        self.inner.look_at_due(true).await?;
        let mut state = self.inner.lock().await?;
        self.inner.refresh(&mut state).await?;
        self.inner.notices(&mut state).await?;
        Ok(std::mem::take(&mut state.unsaid))
    }
}

/// How the refusal of an edit goes on after the path.
const EDIT_REFUSED: &str = " has changed since you last saw it, so it was not edited";

/// How the answer begins that points to where lines stand, and how it goes on after the path.
const UNCHANGED: &str = "unchanged: lines ";
const ABOVE: &str = " are above in this conversation, in the result id=";

/// Whether an output only points to where the lines of a file stand.
pub(crate) fn is_pointer(output: &str) -> bool {
    output.starts_with(UNCHANGED) && output.contains(ABOVE)
}

/// How the difference in place of a read's lines goes on after the path.
const CHANGED_SINCE: &str = " has changed since the result id=";

/// The path of the file of which an output tells, in place of its text or of an edit, how it has changed.
pub(crate) fn told_path(output: &str) -> Option<String> {
    let first = output.lines().next()?;
    let end = first.find(CHANGED_SINCE).or_else(|| first.find(EDIT_REFUSED))?;
    render::unescape(&first[..end])
}

impl State {
    /// What the model knows of a file: what has left its sight counts no more, where lines of another version are there.
    pub fn known_now(&self, file: &ObjectId) -> Option<KnownVersion> {
        let known = self.known.get(file).copied()?;
        let mut visible = self.sight.pieces.held(file);
        if !known.by_read || known.hash.is_none() || visible.any(|(hash, _)| Some(hash) == known.hash) {
            return Some(known);
        }
        let newest = self.sight.pieces.held(file).max_by_key(|(_, tx)| *tx);
        Some(newest.map_or(known, |(hash, tx)| KnownVersion { hash: Some(hash), tx, ..known }))
    }
}

impl Inner {
    /// Looks at a file that the session knows, where the client can see it, and indexes what it finds.
    async fn look_at_one(&self, place: Place) -> Result<()> {
        if !matches!(place.disk, Disk::At(_)) {
            return Ok(());
        }
        let (file, since) = self.eye().look(&place, None).await?;
        let was_read = matches!(file, FileState::Text(_) | FileState::NoText { .. } | FileState::Gone);
        if let Some(seen) = Seen::of(place, file, since).filter(|_| was_read) {
            self.index(vec![seen], Entry::Tracked).await?;
        }
        Ok(())
    }

    /// A read whose lines are visible in an older version: the difference, where that is the shorter text.
    async fn changed_since(
        &self,
        state: &State,
        lines: &ShownLines,
        path: &str,
        new: &str,
    ) -> Result<Option<Answer>> {
        let whole = lines.first == 1 && lines.last == new.split('\n').count();
        let Some(known) = state.known_now(&lines.file).filter(|_| whole) else { return Ok(None) };
        let Some(hash) = known.hash else { return Ok(None) };
        let Some(old) = self.text_at(&lines.file, Some(known.tx)).await? else { return Ok(None) };
        let last = old.split('\n').count();
        let all = ShownLines { file: lines.file.clone(), hash, tx: known.tx, first: 1, last };
        let Some(object) = state.sight.pieces.showing(&all) else { return Ok(None) };
        let handle = state.session.handle(object);
        let diff = unified(&old, new, &format!("in the result id={handle}"), "now");
        if diff.is_empty() || diff.len() * DIFF_SHARE > new.len() {
            return Ok(None);
        }
        let text = format!("{}{CHANGED_SINCE}{handle}:\n{diff}", render::text(path));
        Ok(Some(Answer { text, object: object.clone() }))
    }

    /// Puts what the model has to be told of files among what is unsaid, and records that with the turn.
    ///
    /// # Errors
    /// What the store reports; nothing counts as told then.
    pub async fn notices(&self, state: &mut State) -> Result<()> {
        let mut told = Vec::new();
        let mut lines = Vec::new();
        for (id, known) in state.known.untold(&state.session) {
            let now = state.session.hash_of(&id);
            let is_there = state.session.catalog.get(&id).is_some();
            if !is_there || state.sight.pieces.held(&id).next().is_none() {
                continue;
            }
            let known = state.known_now(&id).unwrap_or(known);
            lines.push(self.notice(state, &id, &known).await?);
            told.push((id, now));
        }
        if told.is_empty() {
            return Ok(());
        }
        let note = |_: &mut Session, work: &mut Work| {
            work.chat.notices(&told);
            Ok(())
        };
        self.commit(state, note).await?;
        for (id, hash) in told {
            state.known.told(&id, hash);
            state.known.note(id, hash);
        }
        lines.sort();
        state.unsaid.append(&mut lines);
        Ok(())
    }

    async fn notice(&self, state: &State, id: &ObjectId, known: &KnownVersion) -> Result<String> {
        let session = &state.session;
        let is_null = session.catalog.get(id).is_none_or(|meta| meta.is_null);
        let what = if is_null {
            "deleted".to_owned()
        } else if session.hash_of(id) == known.hash {
            "as you know it again".to_owned()
        } else if known.hash.is_none() {
            "changed".to_owned()
        } else {
            let old = self.text_at(id, Some(known.tx)).await?.unwrap_or_default();
            let new = self.text_at(id, None).await?.unwrap_or_default();
            counted(&old, &new)
        };
        let path = display_of(&self.ground, session, id);
        Ok(format!("stale id={} path={} {what}", session.handle(id), render::text(&path)))
    }

    /// The text of a file's latest version, or of the one that a transaction left.
    pub async fn text_at(&self, id: &ObjectId, tx: Option<TxId>) -> Result<Option<String>> {
        let at = AsOf { known: tx.map(Bound::Tx), valid_time: None };
        let version = self.store().get(id, at).await?;
        Ok(version.and_then(|version| version.document.content().map(str::to_owned)))
    }
}
