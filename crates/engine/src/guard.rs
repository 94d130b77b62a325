//! The answers that keep the model's knowledge of files true: a read answered by text that is still visible, a notice that a
//! file has changed, a refusal of an edit that conflicts with an unseen change.

use std::borrow::Cow;

use crate::session::Session;
use crate::session::client::Fsync;
use crate::session::commit::Work;
use crate::session::error::Result;
use context_evidence::{AskedEdit, Bytes, Content, EditGuard, Evidence, InFlightKind, Lines, asked_lines};
use context_lines::marker;
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_projection::request::segment::ShownLines;
use serde_json::{Map, Value};
use tracing::instrument;

use crate::engine::{Engine, Inner, State};

/// The answer that a tool should give instead of what it was about to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadAnswer {
    /// The text for the model.
    pub text: String,
    /// The tool call in whose result the lines are still visible.
    pub object: ObjectId,
}

impl Engine {
    /// Returns the answer to a read of lines that are still visible in the model's request: their place, or their changes
    /// since. `None`: show the lines.
    ///
    /// The answer describes the file as it is on disk now if the client can see it, otherwise as it was last indexed.
    /// It renews the stay of the result that it points to, so that this is still there when the model looks. A second
    /// read in a row is always served in full. With the ID of the tool call, its result counts as this answer.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an impossible path; errors of the store.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn answer_read(
        &self,
        path: &str,
        offset: Option<usize>,
        limit: Option<usize>,
        call_id: Option<&str>,
    ) -> Result<Option<ReadAnswer>> {
        let place = self.inner.client.paths.resolve(path)?;
        let way = self.inner.way(&place);
        let id = way.file.clone();
        let looked = self.inner.read_one(place).await?;
        let mut state = self.inner.lock().await?;
        self.inner.refresh(&mut state).await?;
        // If the present content could not be stored, the store's version is an older one.
        let is_now = |hash: &Digest| looked.is_none_or(|looked| looked == *hash);
        let Some(hash) = state.session.hash_of(&id).filter(is_now) else { return Ok(None) };
        if state.known.has_pointed(&id) {
            return Ok(None);
        }
        let Some(text) = self.inner.newest_text(&id).await? else { return Ok(None) };
        let Some((first, last, whole)) = asked_lines(&text, offset, limit) else {
            // Past the end: the tool reports that.
            self.inner.records().passed_in.forget_read(call_id, &id);
            return Ok(None);
        };
        let tx = self.inner.client.newest();
        let lines = ShownLines { file: id.clone(), hash, tx, first, last };

        let sentences = &self.inner.client.options.sentences;
        let is_above = state.request.segments.showing(&lines).cloned();
        let is_change = is_above.is_none();
        let answer = if let Some(object) = is_above {
            let text = sentences.lines_are_in(path, (first, last), &state.session.handle(&object));
            Some(ReadAnswer { text, object })
        } else if whole {
            self.inner.changed_since(&state, &id, path, &text).await?
        } else {
            None
        };
        if let Some(answer) = &answer {
            self.inner.records().passed_in.forget_read(call_id, &id);
            let bytes = Bytes { file: id.clone(), hash };
            let evidence = match is_change {
                true => Evidence::LedTo(bytes),
                false => {
                    let lines = Lines { bytes, first, last, whole };
                    Evidence::Points { lines, at: answer.object.clone() }
                }
            };
            let renew = |session: &Session, work: &mut Work| {
                session.activate(&answer.object, work);
                Ok(())
            };
            self.inner.commit(&mut state, Fsync::Now, renew).await?;
            self.inner.give(&mut state, call_id, &answer.text, evidence).await;
            if is_change {
                state.wrote(&id);
                let led = state.known.get(&id).map(|known| known.content);
                if let Some(led) = led {
                    self.inner.records().passed_in.add(call_id, way, InFlightKind::Led(led));
                }
            } else if whole {
                let tx = state.session.catalog.get(&id).map_or(tx, |meta| meta.tx);
                state.known.saw(&id, Content::stored(Some(hash), tx));
            }
            state.known.points(&id);
            let State { request, session, .. } = &mut *state;
            request.segments.point_to(&answer.object, session);
        }
        Ok(answer)
    }

    /// Checks an edit of which only the path is known; see [`Engine::guard_edit`].
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
    /// the change has touched none of their lines or the model has read these since, the edit may go through, and the
    /// difference comes with its result.
    /// Otherwise, and for an edit of which nothing is known or that replaces the whole file, the answer is a refusal with
    /// the difference. The model has then seen the change, and its next edit is allowed.
    ///
    /// The difference has a limit of [`MAX_SHOWN`](context_evidence::MAX_SHOWN) UTF-16 units. For a longer one, the
    /// answer has the beginning and the count of changed lines, or neither if that would be above a share of the file, or beyond
    /// [`MAX_TOGETHER`](context_evidence::MAX_TOGETHER) for the calls of one answer; the model has
    /// then not seen the change, and its edits of these lines are refused until it has read the file again.
    ///
    /// With the ID of the tool call, the result counts as exactly this answer.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an impossible path; errors of the store.
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
            self.inner.follow_path(&mut state, Fsync::Now, place.clone()).await?;
            if state.known.get(&id).is_none() {
                return Ok(ALLOWED);
            }
        }
        let looked = self.inner.read_one(place).await?;
        let mut state = self.inner.lock().await?;
        self.inner.refresh(&mut state).await?;
        // If a file was gone before it was stored, only the disk knows that it is back.
        let is_met = state.session.catalog.get(&id).is_some();
        let hash = state.session.hash_of(&id).or(looked.filter(|_| !is_met));
        let (Some(hash), Some(known)) = (hash, state.known_now(&id)) else {
            return Ok(ALLOWED);
        };
        // Content that could not be stored may still be on disk.
        if known.hash == Some(hash) || (looked.is_some() && known.hash == looked) {
            return Ok(ALLOWED);
        }
        let is_stored = state.session.hash_of(&id) == Some(hash);
        let edit = AskedEdit {
            path,
            file: &id,
            known,
            now: hash,
            is_stored,
            replaced: old_texts,
            compared: state.compared,
        };
        let (from, sentences) = (&*state, &self.inner.client.options.sentences);
        let judged =
            self.inner.decide(|records, seen| from.sight(records, seen).judge_edit(&edit, sentences)).await?;
        state.compared += judged.units;
        if !judged.shows_all {
            return Ok(judged.guard);
        }
        match &judged.guard {
            // The model does not know of the change before the edit is made.
            EditGuard::Allowed { difference } => {
                let tx = state.session.catalog.get(&id).map(|meta| meta.tx);
                let content = Content { hash: Some(hash), tx: tx.filter(|_| is_stored) };
                let text = difference.clone().unwrap_or_default();
                let notified = InFlightKind::Notified { text, content };
                self.inner.records().passed_in.add(call_id, way, notified);
            }
            EditGuard::Refused(text) => {
                state.wrote(&id);
                if let Some(led) = state.known.get(&id).map(|known| known.content) {
                    self.inner.records().passed_in.add(call_id, way, InFlightKind::Led(led));
                }
                let evidence = Evidence::LedTo(Bytes { file: id, hash });
                self.inner.give(&mut state, call_id, text, evidence).await;
            }
        }
        Ok(judged.guard)
    }

    /// Checks a call's arguments. If a whole argument is a marker for collapsed text, returns the sentence to refuse the call
    /// with; `None` if the call may run.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn check_arguments(&self, args: &Map<String, Value>) -> Result<Option<String>> {
        let state = self.inner.lock().await?;
        Ok(marker::imitation(args, |tag| state.request.issued.contains(tag)))
    }

    /// Lines for the model about files whose current version differs from the one it knows, once per version. Cheap
    /// if nothing changed.
    ///
    /// # Errors
    /// Errors of the store; the next call then returns the lines.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn stale_notices(&self) -> Result<Vec<String>> {
        self.inner.read_pending(true).await?;
        let mut state = self.inner.lock().await?;
        self.inner.refresh(&mut state).await?;
        self.inner.notices(&mut state, Fsync::Now, None).await?;
        Ok(state.say(&self.inner.client.options.sentences))
    }
}

impl Inner {
    /// For a read of a whole file that is visible in an older version: the difference, if that is shorter.
    async fn changed_since(
        &self,
        state: &State,
        file: &ObjectId,
        path: &str,
        new: &str,
    ) -> Result<Option<ReadAnswer>> {
        let Some(known) = state.known_now(file) else { return Ok(None) };
        let Content { hash: Some(hash), tx: Some(tx) } = known else { return Ok(None) };
        let old = self
            .decide(|records, seen| {
                let text = state.sight(records, seen).text_known(file, &known)?;
                Ok(text.map(Cow::into_owned))
            })
            .await?;
        let Some(old) = old else { return Ok(None) };
        let last = old.split('\n').count();
        let all = ShownLines { file: state.known.home_of(file, &known), hash, tx, first: 1, last };
        let Some(object) = state.request.segments.showing(&all) else { return Ok(None) };
        let sentences = &self.client.options.sentences;
        let text = sentences.changed_since(path, (&old, new), &state.session.handle(object));
        Ok(text.map(|text| ReadAnswer { text, object: object.clone() }))
    }

    /// An activation's answer that refers to the result in which the text is.
    pub(crate) async fn refer(&self, state: &mut State, done: String, at: &ObjectId) -> String {
        let text = self.client.options.sentences.text_is_in(&done, &state.session.handle(at));
        let evidence = Evidence::Refers { at: at.clone() };
        self.give(state, None, &text, evidence).await;
        text
    }

    /// Records the evidence of an answer to a tool, before the tool's call is recorded: the process may end in between.
    async fn give(&self, state: &mut State, call: Option<&str>, text: &str, evidence: Evidence) {
        self.records().archive.gives(call, text, evidence);
        self.keep_evidence(state).await;
    }
}
