//! What results of tool calls tell the model of files.

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::Status;
use context_model::time::TxId;
use context_store::AsOf;
use serde_json::{Map, Value};

use super::job::ToolcallInput;
use super::passages::{LOOKED_BACK, ReadAt, adorns, lost};
use super::pointed::{pointed_lines, points_nowhere};
use super::results::Taking;
use super::truth::{is_end_of_difference, told_path};
use super::{Inner, State, Written};
use crate::files::difference::{common_lines, is_all_new_within, unified};
use crate::files::evidence::{Evidence, FIELD};
use crate::files::known::{KnownVersion, Read, Way};
use crate::files::said::{Content, Passage, Says};
use crate::files::seen::file_id;
use crate::files::written::{Fit, Leaves};
use crate::ground::error::Result;
use crate::ground::paths::Place;
use crate::session::catalog::Meta;
use crate::sight::piece::{Carried, ShownLines};

impl Inner {
    /// The lines of a file that an output shows which brings back a read of it, or the file itself.
    pub async fn lines_carried(
        &self,
        state: &mut State,
        call: &ObjectId,
        carried: &Carried,
    ) -> Result<Option<ShownLines>> {
        let Carried { object, whole: true, .. } = carried else { return Ok(None) };
        if state.session.is_toolcall(object) {
            let in_sight = state.sight.pieces.lines_of(object).map(|lines| lines.file.clone());
            let shown = in_sight.and_then(|file| Some((state.known.shown_by(&file, object)?, file)));
            let shown = if shown.is_some() { shown } else { self.lines_recorded(state, object).await? };
            let Some((lines, file)) = shown else { return Ok(None) };
            if state.known.get(&file).is_none() {
                state.known.saw(&file, lines.content);
            }
            state.known.says(&file, Some(call), None, Says::Again(lines));
            return Ok(shown_lines(file, &lines, TxId(0)));
        }
        let (Some(hash), Some(text)) = (state.session.hash_of(object), self.text_at(object, None).await?)
        else {
            return Ok(None);
        };
        let tx = state.session.catalog.get(object).map_or(TxId(0), |meta| meta.tx);
        let content = Content::stored(Some(hash), tx);
        let lines = Passage { content, first: 1, last: text.split('\n').count(), whole: true };
        state.known.saw(object, content);
        state.known.says(object, Some(call), None, Says::Lines(lines));
        Ok(shown_lines(object.clone(), &lines, tx))
    }

    /// What a result tells the model of a file: the lines that a read shows, what a write or an edit has left, or the
    /// version that a difference leads to.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn note_file(
        &self,
        state: &mut State,
        call: &ObjectId,
        input: &ToolcallInput,
        (args, output): (&Map<String, Value>, &str),
        taking: Taking,
    ) -> Result<Option<ShownLines>> {
        let tool = input.tool.as_str();
        let path = args.get("path").and_then(Value::as_str);
        let Some(path) = path.filter(|_| matches!(tool, "read" | "write" | "edit")) else { return Ok(None) };
        let Some(way) = self.way_of(path) else { return Ok(None) };
        let Some(tx) = state.session.catalog.get(call).map(|meta| meta.tx) else { return Ok(None) };
        if let Some(evidence) = self.evidence_of(state, call).await? {
            let way = self.way_to(state, way, &evidence.bytes().file);
            return self.note_evidence(state, &way, (call, tx), &evidence, (args, output), taking).await;
        }
        let (file, via) = (way.file.clone(), Some(&way.path));
        if tool != "read" && input.status == Status::Ok {
            state.known.uses(&way);
            let content = self.written(state, &file, (call, tx), args, taking).await?;
            state.known.says(&file, Some(call), via, Says::All(content));
            return Ok(None);
        }
        if self.file_told(output).as_ref() == Some(&file) {
            if let Some(content) = self.led_to(state, &file, tx, output).await? {
                if taking.again {
                    state.known.wrote(&file, content);
                }
                state.known.uses(&way);
                state.known.rests_on_sight(&file, content);
                state.known.says(&file, Some(call), via, Says::All(content));
            }
            return Ok(None);
        }
        if tool != "read" || input.status != Status::Ok {
            return Ok(None);
        }
        if points_nowhere(output) {
            return Ok(None);
        }
        if let Some((handle, first, last)) = pointed_lines(output) {
            let shown = state.session.catalog.find(handle).and_then(|at| state.known.shown_by(&file, &at));
            if let Some(shown) = shown {
                let whole = shown.whole && first == shown.first && last == shown.last;
                // The file may have had other bytes between that result and this answer.
                let latest = self
                    .version_at(&file, tx)
                    .await?
                    .filter(|version| version.document.source_hash() == shown.content.hash);
                let content =
                    latest.map_or(shown.content, |it| Content::stored(shown.content.hash, it.tx_id));
                let lines = Passage { content, first, last, whole };
                self.note_pointed(state, &way, call, lines, taking).await?;
            }
            return Ok(None);
        }
        let first = args.get("offset").and_then(Value::as_u64).map_or(1, |n| n as usize).max(1);
        let is_limited = first > 1 || args.get("limit").is_some_and(|limit| !limit.is_null());
        self.note_read(state, &way, (call, tx), (first, is_limited), output, taking).await
    }

    /// What the model knows of a file after a read of it from a line on.
    async fn note_read(
        &self,
        state: &mut State,
        way: &Way,
        (call, tx): (&ObjectId, TxId),
        (first, is_limited): (usize, bool),
        output: &str,
        taking: Taking,
    ) -> Result<Option<ShownLines>> {
        let (file, via) = (way.file.clone(), Some(&way.path));
        // A recorded message may show less than the tool gave: what that was says of which version it is.
        let recorded = if taking.record { None } else { self.text_at(call, None).await? };
        // Of a tool that numbers its lines the record has the numbers, and the harness hands over the lines alone.
        let is_bare = recorded.as_deref().is_some_and(|recorded| adorns(recorded, output));
        let text = recorded.as_deref().filter(|_| !is_bare).unwrap_or(output);
        let in_sight = |lines: Passage| lines_in_sight(lines, text, output);
        // What is recorded already was not handed over just now.
        let is_handed = taking.record && self.in_flight().iter().any(|one| one.is_read_of(&file));
        let handed = match is_handed {
            true => self.passage_handed(&file, tx, first, text).await?,
            false => None,
        };
        let first_hand = state.known.read_by(call).filter(|read| !taking.record && read.file == file);
        let shown =
            match handed.map(|lines| (lines, true)).or(first_hand.map(|read| (read.lines, read.is_all))) {
                Some(shown) => Some(shown),
                None => {
                    let read = ReadAt {
                        likely: state.known.spoken_of(&file),
                        late: taking.again && taking.record,
                        before: state.known.get(&file).and_then(|known| known.content.tx),
                    };
                    self.passage_shown(&file, tx, read, first, text).await?
                }
            };
        // A read that may have come before anything was stored, and that goes to the end of another text than this.
        let is_cut = |(lines, _): &(Passage, bool)| !is_limited && !lines.whole && text.ends_with('\n');
        let is_other = taking.again && taking.record && shown.as_ref().is_some_and(is_cut);
        let shown = shown.filter(|_| !is_other);
        let Some((lines, is_all)) = shown else {
            if is_bare || (!is_handed && !is_other && !self.is_plain(&file, tx, first, text).await?) {
                return Ok(None);
            }
            // What a tool makes of bytes that are no text says nothing of the file's text.
            if self.is_no_text(&file, tx).await? {
                return Ok(None);
            }
            // The tool gives files as they are, and this is none of the versions that anybody has seen.
            let lines = lost(Digest::of(text.as_bytes()), first, text);
            let Some(lines) = in_sight(lines) else { return Ok(None) };
            state.known.uses(way);
            state.known.saw(&file, lines.content);
            state.known.says(&file, Some(call), via, Says::Lines(lines));
            return Ok(shown_lines(file, &lines, tx));
        };
        if !taking.again {
            state.known.reads(call, Read { file: file.clone(), lines, is_all });
        }
        let Some(lines) = in_sight(lines) else { return Ok(None) };
        // A tool that adorns lines may have left out some of their characters.
        if !is_all && !is_bare {
            // There is text that no version has.
            let unknown = Digest::of(text.as_bytes());
            let unknown = Passage { content: Content::lost(unknown), ..lines };
            state.known.uses(way);
            state.known.saw(&file, unknown.content);
            state.known.says(&file, Some(call), via, Says::Lines(unknown));
            return Ok(shown_lines(file, &lines, tx));
        }
        self.note_lines(state, way, (call, tx), lines, taking).await
    }

    /// What the model knows of a file after a result has shown it these lines.
    async fn note_lines(
        &self,
        state: &mut State,
        way: &Way,
        (call, tx): (&ObjectId, TxId),
        lines: Passage,
        taking: Taking,
    ) -> Result<Option<ShownLines>> {
        state.known.uses(way);
        let file = way.file.clone();
        if !is_past(state, &file, &lines, taking) && self.is_all_new(state, &file, &lines).await? {
            state.known.saw(&file, lines.content);
        } else {
            state.known.has_pointed(&file);
        }
        state.known.says(&file, Some(call), Some(&way.path), Says::Lines(lines));
        Ok(shown_lines(file, &lines, tx))
    }

    /// What a result tells by its recorded evidence.
    async fn note_evidence(
        &self,
        state: &mut State,
        way: &Way,
        (call, tx): (&ObjectId, TxId),
        evidence: &Evidence,
        (args, output): (&Map<String, Value>, &str),
        taking: Taking,
    ) -> Result<Option<ShownLines>> {
        let (file, via) = (way.file.clone(), Some(&way.path));
        let content = self.content_of(evidence.bytes(), tx).await?;
        match evidence {
            Evidence::Made(_) => {
                let noted =
                    if taking.record { claimed(&mut state.written, &file, args, content.hash) } else { None };
                let content = noted.unwrap_or(content);
                state.known.uses(way);
                if noted.is_none() || taking.again {
                    state.known.wrote(&file, content);
                }
                state.known.says(&file, Some(call), via, Says::All(content));
                Ok(None)
            }
            Evidence::LedTo(_) => {
                state.known.uses(way);
                if taking.again {
                    state.known.wrote(&file, content);
                }
                state.known.rests_on_sight(&file, content);
                state.known.says(&file, Some(call), via, Says::All(content));
                Ok(None)
            }
            // A host has removed the lines from the conversation.
            Evidence::Points { at, .. } if taking.again && !state.sight.results.contains(at) => Ok(None),
            Evidence::Points { lines, .. } => {
                self.note_pointed(state, way, call, Passage::recorded(lines, content), taking).await?;
                Ok(None)
            }
            Evidence::Shows(lines) => {
                let recorded = if taking.record { None } else { self.text_at(call, None).await? };
                let is_bare = recorded.as_deref().is_some_and(|recorded| adorns(recorded, output));
                let text = recorded.as_deref().filter(|_| !is_bare).unwrap_or(output);
                let lines = lines_in_sight(Passage::recorded(lines, content), text, output);
                match lines {
                    Some(lines) => self.note_lines(state, way, (call, tx), lines, taking).await,
                    None => Ok(None),
                }
            }
        }
    }

    /// What the model knows of a file after it was told in which result these lines stand.
    async fn note_pointed(
        &self,
        state: &mut State,
        way: &Way,
        call: &ObjectId,
        lines: Passage,
        taking: Taking,
    ) -> Result<()> {
        let file = &way.file;
        let is_known = if lines.whole {
            taking.again
        } else {
            !is_past(state, file, &lines, taking) && self.is_all_new(state, file, &lines).await?
        };
        state.known.uses(way);
        if is_known {
            state.known.saw_above(file, lines.content);
        }
        let says = if lines.whole { Says::All(lines.content) } else { Says::Pointed(lines) };
        state.known.says(file, Some(call), Some(&way.path), says);
        Ok(())
    }

    /// What a recorded call shows; `None` if that was not known when it was recorded.
    async fn evidence_of(&self, state: &State, call: &ObjectId) -> Result<Option<Evidence>> {
        if let Some(evidence) = state.evidence.get(call) {
            return Ok(evidence.clone());
        }
        let recorded = self.store().get(call, AsOf::default()).await?;
        Ok(recorded.and_then(|version| version.document.field(FIELD).and_then(Evidence::of)))
    }

    /// A path as it led to a file when a call used it.
    fn way_to(&self, state: &State, way: Way, file: &ObjectId) -> Way {
        if way.file == *file {
            return way;
        }
        let own = state.session.catalog.get(file).and_then(Meta::file);
        let is_alias = own.is_none_or(|source| self.ground.paths.display(source) != *way.path);
        Way { file: file.clone(), is_alias, ..way }
    }

    /// What a call has left that wrote a file and was recorded in this transaction.
    async fn written(
        &self,
        state: &mut State,
        file: &ObjectId,
        (call, tx): (&ObjectId, TxId),
        args: &Map<String, Value>,
        taking: Taking,
    ) -> Result<Content> {
        if taking.record
            && let Some(content) = claimed(&mut state.written, file, args, None)
        {
            if taking.again {
                state.known.wrote(file, content);
            }
            return Ok(content);
        }
        // Arguments may have collapsed since; the record has them whole.
        let recorded = if taking.again { self.ground.recorded(call, AsOf::default()).await? } else { None };
        let recorded = recorded.as_ref().and_then(|version| version.document.field("args")?.as_object());
        let args = recorded.unwrap_or(args);
        let content = match self.version_written(state, file, tx, args, taking).await? {
            Some(content) => content,
            // It was gone before anybody stored it.
            None => Content::lost(match args.get("content").and_then(Value::as_str) {
                Some(text) => Digest::of(text.as_bytes()),
                None => Digest::of(call.as_str().as_bytes()),
            }),
        };
        state.known.wrote(file, content);
        Ok(content)
    }

    /// The version that a call has left. It may have been stored before the call was, and something newer since. Where
    /// nobody has stored exactly that, an edit in messages that are read again has made it of the text that the model
    /// knew, or else it is the version in which what the call has put in came up: the oldest if the process ended before
    /// the call was recorded, because one notice too many is better than none.
    async fn version_written(
        &self,
        state: &State,
        file: &ObjectId,
        mut tx: TxId,
        args: &Map<String, Value>,
        taking: Taking,
    ) -> Result<Option<Content>> {
        let leaves = Leaves::of(args);
        let known = match state.known.get(file).filter(|_| taking.again) {
            Some(known) => self.text_known(state, file, &known.content).await?,
            None => None,
        };
        let says_what = !matches!(leaves, Leaves::Unsaid);
        let made = leaves.makes_of(known.as_deref()).map(|text| Digest::of(text.as_bytes()));
        let mut perhaps = None;
        let mut version = self.version_at(file, tx).await?;
        for _ in 0..LOOKED_BACK {
            let Some(after) = version else { break };
            tx = TxId(after.tx_id.0.saturating_sub(1));
            let before = self.version_at(file, tx).await?;
            let text = before.as_ref().and_then(|before| before.document.content());
            let content = Content::stored(after.document.source_hash(), after.tx_id);
            match leaves.fits(text, after.document.content().unwrap_or_default()) {
                Fit::Yes => return Ok(Some(content)),
                _ if made.is_some() && made == content.hash => return Ok(Some(content)),
                Fit::Perhaps if taking.again && taking.record && says_what => perhaps = Some(content),
                Fit::Perhaps => perhaps = perhaps.or(Some(content)),
                Fit::No => {}
            }
            version = before;
        }
        Ok(made.map(Content::lost).or(perhaps))
    }

    /// The version to which the difference in an output leads.
    async fn led_to(
        &self,
        state: &State,
        file: &ObjectId,
        mut tx: TxId,
        output: &str,
    ) -> Result<Option<Content>> {
        let Some(told) = output.find("\n@@ ").map(|at| &output[at + 1..]) else { return Ok(None) };
        let (mut bases, mut hashes) = (Vec::new(), Vec::new());
        for Content { hash, tx } in state.known.contents(file) {
            if hashes.contains(&hash) || bases.len() == LOOKED_BACK {
                continue;
            }
            hashes.push(hash);
            if tx.is_some() {
                let text = self.text_known(state, file, &Content { hash, tx }).await?;
                bases.push(text.unwrap_or_default());
            }
        }
        // A file that is gone is like an empty one as what a difference starts from, but no difference leads there.
        let mut versions: Vec<(Content, Option<String>)> = Vec::new();
        while versions.len() < 2 * LOOKED_BACK {
            let Some(version) = self.version_at(file, tx).await? else { break };
            tx = TxId(version.tx_id.0.saturating_sub(1));
            let content = Content::stored(version.document.source_hash(), version.tx_id);
            let text = version.document.content().map(str::to_owned);
            if let Some(text) = text.as_ref().filter(|_| versions.len() < LOOKED_BACK)
                && bases.iter().any(|base| leads_to(told, base, text))
            {
                return Ok(Some(content));
            }
            versions.push((content, text));
        }
        // A host may have removed from the conversation what the difference starts from.
        let found = versions.iter().take(LOOKED_BACK).enumerate().find(|(place, (_, text))| {
            let mut earlier = versions.iter().skip(place + 1).take(LOOKED_BACK);
            text.as_ref().is_some_and(|text| {
                earlier.any(|(_, base)| leads_to(told, base.as_deref().unwrap_or_default(), text))
            })
        });
        Ok(found.map(|(_, (content, _))| *content))
    }

    /// The file of which an output tells that it has changed.
    fn file_told(&self, output: &str) -> Option<ObjectId> {
        self.file_at(&told_path(output)?)
    }

    /// The file that a tool's argument names; some models put an `@` before the path.
    pub fn file_at(&self, path: &str) -> Option<ObjectId> {
        self.way_of(path).map(|way| way.file)
    }

    /// The same with the path as the agent has it.
    pub fn way_of(&self, path: &str) -> Option<Way> {
        let place = self.ground.paths.resolve(path.strip_prefix('@').unwrap_or(path)).ok()?;
        Some(self.way(&place))
    }

    /// The agent's path of a place, and where it leads.
    pub fn way(&self, place: &Place) -> Way {
        let is_alias = self.ground.paths.display(&place.source) != place.agent_path;
        Way { path: place.agent_path.as_str().into(), file: file_id(&place.source), is_alias }
    }

    /// The text of bytes that the model knows of a file; `None` if nobody has stored them, or not their text.
    pub async fn text_known(
        &self,
        state: &State,
        file: &ObjectId,
        content: &Content,
    ) -> Result<Option<String>> {
        match content.tx {
            Some(tx) => self.text_at(&state.known.home_of(file, content), Some(tx)).await,
            None => Ok(None),
        }
    }

    /// Whether the model knows a version of a file once it has seen these lines of it: it knew no other one, or sees all
    /// that is new. Of what was never stored nobody can tell what is new.
    async fn is_all_new(&self, state: &State, file: &ObjectId, lines: &Passage) -> Result<bool> {
        let (Some(version), Some(known)) = (state.known.get(file), state.known_now(file)) else {
            return Ok(true);
        };
        let is_other = |(hash, _)| Some(hash) != lines.content.hash;
        let is_in_sight = !version.by_sight || state.sight.pieces.held(file).any(is_other);
        if known.hash == lines.content.hash || !is_in_sight || known.tx.is_none() {
            return Ok(true);
        }
        self.shows_all_new(state, file, &known, lines).await
    }

    /// Whether these lines show all that differs between a version and theirs.
    pub async fn shows_all_new(
        &self,
        state: &State,
        file: &ObjectId,
        old: &Content,
        lines: &Passage,
    ) -> Result<bool> {
        if old.tx.is_none() || lines.content.tx.is_none() {
            return Ok(false);
        }
        let old = self.text_known(state, file, old).await?.unwrap_or_default();
        let new = self.text_known(state, file, &lines.content).await?.unwrap_or_default();
        Ok(is_all_new_within(&old, &new, lines.first, lines.last))
    }
}

/// Whether an output's hunks are the difference of two texts. Most pairs of texts lack one of its lines.
fn leads_to(told: &str, old: &str, new: &str) -> bool {
    let has_lines = told.lines().all(|line| match line.split_at_checked(1) {
        Some(("+", added)) => new.contains(added),
        Some(("-", removed)) => old.contains(removed),
        _ => true,
    });
    let diff = if has_lines { unified(old, new, "", "") } else { return false };
    let hunks = diff.find("@@ ").map(|at| &diff[at..]);
    hunks.is_some_and(|hunks| told.strip_prefix(hunks).is_some_and(is_end_of_difference))
}

/// Whether the model may have written or seen a newer version since these lines were read. Messages that are read again
/// come before all that is noted.
fn is_past(state: &State, file: &ObjectId, lines: &Passage, taking: Taking) -> bool {
    let is_newer = |known: &KnownVersion| known.content.hash.is_some() && known.content.tx > lines.content.tx;
    !taking.again && state.written.contains_key(file) || state.known.get(file).is_some_and(is_newer)
}

/// What a call has written that is noted already; those before it never came as a result.
fn claimed(
    written: &mut Written,
    file: &ObjectId,
    args: &Map<String, Value>,
    hash: Option<Digest>,
) -> Option<Content> {
    let waiting = written.get_mut(file)?;
    let text = args.get("content").and_then(Value::as_str).map(|text| Digest::of(text.as_bytes()));
    let text = hash.or(text);
    let place = waiting.iter().position(|content| text.is_none() || content.hash == text);
    let content = place.and_then(|place| waiting.drain(..=place).next_back());
    if content.is_none() {
        waiting.pop_front();
    }
    if waiting.is_empty() {
        written.remove(file);
    }
    content
}

/// The part of a passage that is left in what the model is shown of a result's text.
fn lines_in_sight(lines: Passage, text: &str, output: &str) -> Option<Passage> {
    let last = lines.last.min(lines.first + common_lines(text, 1, output)? - 1);
    (last >= lines.first).then_some(Passage { last, whole: lines.whole && last == lines.last, ..lines })
}

fn shown_lines(file: ObjectId, lines: &Passage, tx: TxId) -> Option<ShownLines> {
    let Passage { content, first, last, .. } = *lines;
    Some(ShownLines { file, hash: content.hash?, tx: content.tx.unwrap_or(tx), first, last })
}
