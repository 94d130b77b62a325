//! What the model is told about files: a read answered by what is still visible, a notice that a file has changed, a
//! refusal of an edit that conflicts with an unseen change.

use context_knowledge::difference::{counted, touches_nothing_new, unified};
use context_knowledge::evidence::{Bytes, Evidence, Lines};
use context_knowledge::in_flight::Taken;
use context_knowledge::notices::{self, Change, PendingNotice};
use context_knowledge::sentences::{Sentences, filled};
use context_knowledge::statement::{Content, Knowledge, Outstanding, Passage, Says};
use context_model::chat::Notice;
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::time::TxId;
use context_model::{marker, render};
use context_store::{AsOf, Known as Bound};
use serde_json::{Map, Value};
use tracing::instrument;

use super::{Engine, Inner, State};
use crate::base::Durability;
use crate::base::error::Result;
use crate::files::index::display_of;
use crate::request::segment::ShownLines;
use crate::session::Session;
use crate::session::commit::Work;

/// A diff replaces the whole text if it is at most one part in this many of that text.
const DIFF_SHARE: usize = 2;

/// What a tool should answer instead of what it was about to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The text for the model.
    pub text: String,
    /// The tool call in whose result the lines are still visible.
    pub object: ObjectId,
}

impl Engine {
    /// The answer to a read of lines that are still visible in the model's request: where they are, or how they have
    /// changed since. `None`: show the lines.
    ///
    /// The answer describes the file as it is on disk now if the client can see it, otherwise as it was last indexed.
    /// It renews the stay of the result that it points to, so that this is still there when the model looks. A second
    /// read in a row is always served in full. With the ID of the tool call, its result counts as this answer.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an impossible path; what the store reports.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn answer_read(
        &self,
        path: &str,
        offset: Option<usize>,
        limit: Option<usize>,
        call_id: Option<&str>,
    ) -> Result<Option<Answer>> {
        let place = self.inner.client.paths.resolve(path)?;
        let way = self.inner.way(&place);
        let id = way.file.clone();
        self.inner.look_at_one(place).await?;
        let mut state = self.inner.lock().await?;
        self.inner.refresh(&mut state).await?;
        let Some(hash) = state.session.hash_of(&id) else { return Ok(None) };
        if state.known.has_pointed(&id) {
            return Ok(None);
        }
        let Some(text) = self.inner.text_at(&id, None).await? else { return Ok(None) };
        let total = text.split('\n').count();
        let first = offset.unwrap_or(1).max(1);
        let last = limit.map_or(total, |limit| total.min(first.saturating_add(limit).saturating_sub(1)));
        if first > last {
            // Past the end: the tool reports that.
            self.inner.forget_read(call_id, &id);
            return Ok(None);
        }
        let tx = self.inner.client.newest();
        let lines = ShownLines { file: id.clone(), hash, tx, first, last };

        let sentences = &self.inner.client.options.sentences;
        let is_above = state.request.segments.showing(&lines).cloned();
        let is_change = is_above.is_none();
        let answer = if let Some(object) = is_above {
            let text = self.inner.lines_at(&state, sentences.lines_above, (path, first, last), &object);
            Some(Answer { text, object })
        } else {
            self.inner.changed_since(&state, &lines, path, &text).await?
        };
        if let Some(answer) = &answer {
            self.inner.forget_read(call_id, &id);
            let bytes = Bytes { file: id.clone(), hash };
            let whole = first == 1 && last == total;
            let evidence = match is_change {
                true => Evidence::LedTo(bytes),
                false => {
                    let lines = Lines { bytes, first, last, whole };
                    let place = (path, first, last);
                    let left = self.inner.lines_at(&state, sentences.lines_left, place, &answer.object);
                    Evidence::Points { lines, at: answer.object.clone(), left: Some(left) }
                }
            };
            let renew = |session: &mut Session, work: &mut Work| {
                session.activate(&answer.object, work);
                Ok(())
            };
            self.inner.commit(&mut state, Durability::Now, renew).await?;
            self.inner.give(&mut state, call_id, &answer.text, evidence).await;
            if is_change {
                state.wrote(&id);
                let led = state.known.get(&id).map(|known| known.content);
                if let Some(led) = led {
                    self.inner.take_off(call_id, way.clone(), Taken::Led(led));
                }
            } else if first == 1 && last == total {
                let tx = state.session.catalog.get(&id).map_or(tx, |meta| meta.tx);
                state.known.saw(&id, Content::stored(Some(hash), tx));
            }
            state.known.points(&id);
            let State { request, session, .. } = &mut *state;
            request.segments.point_to(&answer.object, session);
        }
        Ok(answer)
    }

    /// Checks an edit of which nothing but the path is known; see [`Engine::guard_edit`].
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn check_edit(&self, path: &str) -> Result<Option<String>> {
        match self.guard_edit(path, None, None).await? {
            EditGuard::Refused(text) => Ok(Some(text)),
            EditGuard::Allowed { .. } => Ok(None),
        }
    }

    /// Checks an edit before it is made, if the file has changed since the model last saw or wrote it.
    ///
    /// `old_texts` are the texts that the edit replaces. If each of them occurs exactly once in the file as it is now, and
    /// the change has touched none of their lines, the edit may go through, and the difference comes with its result.
    /// Otherwise, and for an edit of which nothing is known or that replaces the whole file, the answer is a refusal with
    /// the difference. The model has then seen the change, and its next edit is allowed.
    ///
    /// With the ID of the tool call, the result counts as exactly this answer.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an impossible path; what the store reports.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn guard_edit(
        &self,
        path: &str,
        old_texts: Option<&[String]>,
        call_id: Option<&str>,
    ) -> Result<EditGuard> {
        const ALLOWED: EditGuard = EditGuard::Allowed { difference: None };
        let place = self.inner.client.paths.resolve(path)?;
        let way = self.inner.way(&place);
        let id = way.file.clone();
        {
            let mut state = self.inner.lock().await?;
            self.inner.follow_path(&mut state, Durability::Now, place.clone()).await?;
            if state.known.get(&id).is_none() {
                return Ok(ALLOWED);
            }
        }
        let looked = self.inner.look_at_one(place).await?;
        let mut state = self.inner.lock().await?;
        self.inner.refresh(&mut state).await?;
        // Of a file that was gone before anybody stored it only the disk knows that it is back.
        let is_met = state.session.catalog.get(&id).is_some();
        let hash = state.session.hash_of(&id).or(looked.filter(|_| !is_met));
        let (Some(hash), Some(known)) = (hash, state.known_now(&id)) else {
            return Ok(ALLOWED);
        };
        // What could not be stored may still be on disk.
        if known.hash == Some(hash) || (looked.is_some() && known.hash == looked) {
            return Ok(ALLOWED);
        }
        let path = render::text(path);
        let sentences = &self.inner.client.options.sentences;
        let old = match known.tx {
            Some(_) => Some(self.inner.text_known(&state, &id, &known).await?.unwrap_or_default()),
            None => self.inner.text_known(&state, &id, &known).await?,
        };
        let new = self.inner.text_at(&id, None).await?.unwrap_or_default();
        // The version that is most like what was read may be the present one.
        let diff = old.as_ref().map(|old| unified(old, &new, "as you know it", "as it is now"));
        let (Some(old), Some(diff)) = (old, diff.filter(|diff| !diff.is_empty())) else {
            return Ok(EditGuard::Refused(filled(sentences.edit_unknown, &[("path", &path)])));
        };
        let values = [("path", &*path), ("diff", &*diff)];
        if old_texts.is_some_and(|texts| touches_nothing_new(&old, &new, texts)) {
            // Until the edit is made, the model knows nothing of the change.
            let text = filled(sentences.edit_beside, &values);
            let tx = state.session.catalog.get(&id).map(|meta| meta.tx);
            let content =
                Content { hash: Some(hash), tx: tx.filter(|_| state.session.hash_of(&id) == Some(hash)) };
            self.inner.take_off(call_id, way, Taken::Told { text: text.clone(), content });
            return Ok(EditGuard::Allowed { difference: Some(text) });
        }
        state.wrote(&id);
        let led = state.known.get(&id).map(|known| known.content);
        if let Some(led) = led {
            self.inner.take_off(call_id, way.clone(), Taken::Led(led));
        }
        let text = filled(sentences.edit_refused, &values);
        let evidence = Evidence::LedTo(Bytes { file: id, hash });
        self.inner.give(&mut state, call_id, &text, evidence).await;
        Ok(EditGuard::Refused(text))
    }

    /// Checks a call's arguments. If a whole argument is a marker for collapsed text, returns the sentence to refuse
    /// the call with. `None`: go on.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn check_arguments(&self, args: &Map<String, Value>) -> Result<Option<String>> {
        let state = self.inner.lock().await?;
        Ok(marker::imitation(args, |tag| state.request.issued.contains(tag)))
    }

    /// Lines for the model about files whose current version differs from the one it knows, once per version. Cheap
    /// if nothing changed.
    ///
    /// # Errors
    /// What the store reports; the next call then returns the lines.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn stale_notices(&self) -> Result<Vec<String>> {
        self.inner.look_at_due(true).await?;
        let mut state = self.inner.lock().await?;
        self.inner.refresh(&mut state).await?;
        self.inner.notices(&mut state, Durability::Now).await?;
        Ok(state.say())
    }
}

/// What an edit tool should do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditGuard {
    /// Make the edit.
    Allowed {
        /// What to add to the edit's result: the file has changed elsewhere, and how.
        difference: Option<String>,
    },
    /// Don't make it, and answer with this.
    Refused(String),
}

impl State {
    /// Returns what the model knows about a file. What has left its sight no longer counts if something else is in
    /// sight.
    pub fn known_now(&self, file: &ObjectId) -> Option<Content> {
        let known = self.known.get(file)?;
        if !known.from_results {
            return Some(known.content);
        }
        let sum = self.sum(file);
        let is_there = sum.contents.contains(&known.content.hash);
        Some(if is_there { known.content } else { sum.base.unwrap_or(known.content) })
    }

    /// The lines for the model that are due. One that a failure has delayed may be about a version that is no longer the
    /// newest.
    pub fn say(&mut self) -> Vec<String> {
        let pending = std::mem::take(&mut self.pending).into_iter();
        let is_true = |one: &PendingNotice| self.session.hash_of(&one.notice.file) == one.notice.hash;
        let mut lines: Vec<String> = pending.filter(is_true).map(|one| one.line).collect();
        lines.sort();
        lines
    }

    /// Returns what the request says about a file, as far as it is in sight.
    pub fn sum(&self, file: &ObjectId) -> Knowledge {
        self.known.sum(file, |call| self.request.segments.shows(call))
    }
}

impl Inner {
    /// For a read whose lines are visible in an older version: the difference, if that is shorter.
    async fn changed_since(
        &self,
        state: &State,
        lines: &ShownLines,
        path: &str,
        new: &str,
    ) -> Result<Option<Answer>> {
        let whole = lines.first == 1 && lines.last == new.split('\n').count();
        let Some(known) = state.known_now(&lines.file).filter(|_| whole) else { return Ok(None) };
        let Content { hash: Some(hash), tx: Some(tx) } = known else { return Ok(None) };
        let Some(old) = self.text_known(state, &lines.file, &known).await? else { return Ok(None) };
        let last = old.split('\n').count();
        let all = ShownLines { file: state.known.home_of(&lines.file, &known), hash, tx, first: 1, last };
        let Some(object) = state.request.segments.showing(&all) else { return Ok(None) };
        let handle = state.session.handle(object);
        let diff = unified(&old, new, &format!("in the result id={handle}"), "now");
        if diff.is_empty() || diff.len() * DIFF_SHARE > new.len() {
            return Ok(None);
        }
        let values = [("path", &*render::text(path)), ("id", &*handle), ("diff", &*diff)];
        let text = filled(self.client.options.sentences.difference, &values);
        Ok(Some(Answer { text, object: object.clone() }))
    }

    /// A sentence about lines of a file and the result in which they are, or were.
    fn lines_at(
        &self,
        state: &State,
        sentence: &str,
        (path, first, last): (&str, usize, usize),
        at: &ObjectId,
    ) -> String {
        let (first, last) = (first.to_string(), last.to_string());
        let values = [
            ("first", &*first),
            ("last", &*last),
            ("path", &*render::text(path)),
            ("id", &*state.session.handle(at)),
        ];
        filled(sentence, &values)
    }

    /// An activation's answer that refers to the result in which the text is.
    pub async fn refer(&self, state: &mut State, done: String, at: &ObjectId) -> String {
        let Sentences { text_above, text_left, .. } = self.client.options.sentences;
        let handle = state.session.handle(at);
        let values = [("done", &*done), ("id", &*handle)];
        let text = filled(text_above, &values);
        let evidence = Evidence::Refers { at: at.clone(), left: filled(text_left, &values) };
        self.give(state, None, &text, evidence).await;
        text
    }

    /// Records what an answer to a tool says, before the tool's call is recorded: the process may end in between.
    async fn give(&self, state: &mut State, call: Option<&str>, text: &str, evidence: Evidence) {
        self.archive().gives(call, text, evidence);
        self.keep_evidence(state).await;
    }

    /// Adds what the model must be told about files to the pending notices, and records that with the turn.
    ///
    /// # Errors
    /// What the store reports; nothing then counts as told.
    #[instrument(level = "debug", skip_all)]
    pub async fn notices(&self, state: &mut State, durability: Durability) -> Result<()> {
        self.unclaimed(state).await?;
        self.follow_paths(state, durability).await?;
        loop {
            self.meet_spoken_of(state, durability).await?;
            self.read_waived(state, durability).await?;
            let open = state.known.open();
            let (mut told, mut lines) = (Vec::new(), Vec::new());
            for file in &open {
                if let Some(base) = self.outstanding(state, file).await? {
                    let path = self.path_known(state, file);
                    let text = self.notice(state, (file, &path), base).await?;
                    let line = Digest::of(text.as_bytes());
                    let (file, hash) = (file.clone(), state.session.hash_of(file));
                    let notice = Notice { file, hash, line, path };
                    lines.push(PendingNotice { notice: notice.clone(), line: text });
                    told.push(notice);
                }
            }
            let note = |session: &mut Session, work: &mut Work| {
                if told.iter().any(|notice| session.hash_of(&notice.file) != notice.hash) {
                    return Ok(false);
                }
                work.chat.notices(&told);
                // Another client may store a newer version at this moment.
                let latest = |file| session.catalog.get(file).map(|meta| meta.tx);
                work.expected.extend(told.iter().map(|Notice { file, .. }| (file.clone(), latest(file))));
                Ok(true)
            };
            if told.is_empty() {
                // Of a file that nobody has stored yet, another client's version may still come.
                let is_known = |file: &&ObjectId| state.session.catalog.get(file).is_some();
                let known: Vec<ObjectId> = open.iter().filter(is_known).cloned().collect();
                state.known.settle(&known);
                return Ok(());
            }
            if !self.commit(state, durability, note).await? {
                continue;
            }
            for notice in told {
                self.archive().tell(&notice);
                let via = notice.path.as_str().into();
                state.known.says(&notice.file, None, Some(&via), Says::Other(notice.hash));
            }
            state.pending.retain(|one| lines.iter().all(|new| new.notice.file != one.notice.file));
            state.pending.append(&mut lines);
            // While this was written, another client may have stored something else.
            self.refresh(state).await?;
        }
    }

    /// The bytes that the model believes a file has, if the file has changed and nothing in sight says so.
    async fn outstanding(&self, state: &State, file: &ObjectId) -> Result<Option<Content>> {
        if state.session.catalog.get(file).is_none() {
            return Ok(None);
        }
        let (sum, now) = (state.sum(file), state.session.hash_of(file));
        let Some(base) = sum.base else { return Ok(None) };
        if !sum.speaks_of(now) && base.hash != now {
            return Ok(Some(base));
        }
        let outdated = self.outdated(state, file, now, &sum.standing).await?;
        Ok(if sum.speaks_of(now) { outdated } else { outdated.or(Some(base)) })
    }

    /// The bytes that the first outdated ones of these lines belong to.
    async fn outdated(
        &self,
        state: &State,
        file: &ObjectId,
        now: Option<Digest>,
        standing: &[Outstanding],
    ) -> Result<Option<Content>> {
        let mut newest = None;
        for Outstanding { lines, later } in standing.iter().filter(|one| one.lines.content.hash != now) {
            let content = lines.content;
            if newest.is_none() {
                newest = Some(self.text_at(file, None).await?);
            }
            let text = self.text_known(state, file, &content).await?;
            if let (Some(text), Some(Some(new))) = (&text, &newest)
                && some_lines(text, lines).eq(some_lines(new, lines))
            {
                continue;
            }
            let mut is_told = false;
            for part in later {
                is_told = is_told || self.shows_all_new(state, file, &content, part).await?;
            }
            if !is_told {
                return Ok(Some(content));
            }
        }
        Ok(None)
    }

    /// The path by which the model knows a file.
    pub fn path_known(&self, state: &State, id: &ObjectId) -> String {
        let own = || display_of(&self.client, &state.session, id);
        state.known.path_to(id).map_or_else(own, ToString::to_string)
    }

    async fn notice(&self, state: &State, (id, path): (&ObjectId, &str), base: Content) -> Result<String> {
        let session = &state.session;
        let now = session.hash_of(id);
        let is_gone = now.is_none() && session.catalog.get(id).is_none_or(|meta| meta.is_null);
        let change = if is_gone {
            Change::Deleted
        } else if base.hash == now {
            Change::SameAgain
        } else {
            let old = self.text_known(state, id, &base).await?;
            match (old, self.text_at(id, None).await?) {
                (Some(old), Some(new)) => counted(&old, &new).map_or(Change::Unknown, Change::Counted),
                _ => Change::Unknown,
            }
        };
        Ok(notices::line(&self.client.options.sentences, &session.handle(id), path, now, &change))
    }

    /// The text of a file's latest version, or of the version as of a transaction.
    pub async fn text_at(&self, id: &ObjectId, tx: Option<TxId>) -> Result<Option<String>> {
        let at = AsOf { known: tx.map(Bound::Tx), valid_time: None };
        let version = self.client.recorded(id, at).await?;
        Ok(version.and_then(|version| version.document.content().map(str::to_owned)))
    }
}

/// The lines of a text at another passage's position.
fn some_lines<'a>(text: &'a str, lines: &Passage) -> impl Iterator<Item = &'a str> {
    text.split('\n').skip(lines.first - 1).take((lines.last - lines.first).saturating_add(1))
}
