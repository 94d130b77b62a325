//! What a result says of a file, found by comparing its text with the versions that there are: for hosts that don't pass in
//! what their tools read and wrote. This happens once, and is recorded (see `evidence`).

use context_files::index::display_of;
use context_knowledge::evidence::{Bytes, Evidence};
use context_knowledge::known::Way;
use context_knowledge::passage::adorns;
use context_knowledge::statement::{Content, Passage};
use context_knowledge::written::{Fit, Leaves};
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::Status;
use context_model::time::TxId;
use context_projection::Moment;
use context_session::error::Result;
use context_session::{Session, refresh};
use context_store::AsOf;
use serde_json::{Map, Value};

use crate::engine::{Inner, State, Written};
use crate::evidence::{first_line, path_of, unstored};
use crate::job::{ToolcallInput, Unread};
use crate::passages::{LOOKED_BACK, ReadAt};
use crate::results::Taking;

impl Inner {
    /// Returns what a result says of the file that its call names; `None` if it says nothing.
    pub(super) async fn infer(
        &self,
        state: &State,
        way: &Way,
        (call, tx): (&ObjectId, TxId),
        input: &ToolcallInput,
        (args, output): (&Map<String, Value>, &str),
        taking: Taking,
    ) -> Result<Option<Evidence>> {
        let (tool, is_ok) = (input.tool.as_str(), input.status == Status::Ok);
        // The path of a call that is recorded late may have led elsewhere.
        let is_late = taking.again && taking.record;
        let before = if is_late { self.files_shown_as(&state.session, way) } else { Vec::new() };
        if tool != "read" && is_ok {
            // Arguments may have collapsed since; the record has them whole.
            let recorded = if taking.again { self.recorded(call, AsOf::default()).await? } else { None };
            let recorded = recorded.as_ref().and_then(|version| version.document.field("args")?.as_object());
            let args = recorded.unwrap_or(args);
            let mut made = None;
            for file in std::iter::once(&way.file).chain(&before) {
                let Some(content) = self.written(state, file, tx, args, taking).await? else { continue };
                let Some(hash) = content.hash.filter(|_| made.is_none() || content.tx.is_some()) else {
                    continue;
                };
                made = Some(Bytes { file: file.clone(), hash });
                if content.tx.is_some() {
                    break;
                }
            }
            // It may have been gone before anybody stored it.
            let lost = || match args.get("content") {
                Some(Value::String(text)) => Bytes::hash_of(text),
                _ => Bytes::hash_of(call.as_str()),
            };
            let bytes = made.unwrap_or_else(|| Bytes { file: way.file.clone(), hash: lost() });
            return Ok(Some(Evidence::Made { bytes, left: None }));
        }
        if tool != "read" || !is_ok {
            return Ok(None);
        }
        let first = first_line(args);
        let is_limited = first > 1 || args.get("limit").is_some_and(|limit| !limit.is_null());
        let found = self.read(state, &way.file, (call, tx), (first, is_limited), output, taking).await?;
        for file in before.iter().filter(|_| !matches!(found, Some(Evidence::Shows(_)))) {
            let shown = self.read(state, file, (call, tx), (first, is_limited), output, taking).await?;
            if matches!(shown, Some(Evidence::Shows(_))) {
                return Ok(shown);
            }
        }
        Ok(found)
    }

    /// The other files that the session has met at a path.
    fn files_shown_as(&self, session: &Session, way: &Way) -> Vec<ObjectId> {
        let is_it = |file: &&ObjectId| {
            **file != way.file
                && !session.is_toolcall(file)
                && display_of(&self.client, session, file) == *way.path
        };
        session.sets.index().iter().filter(is_it).cloned().collect()
    }

    /// Returns what a read of a file from a line on shows.
    async fn read(
        &self,
        state: &State,
        file: &ObjectId,
        (call, tx): (&ObjectId, TxId),
        (first, is_limited): (usize, bool),
        output: &str,
        taking: Taking,
    ) -> Result<Option<Evidence>> {
        // A recorded message may show less than the tool gave: what that was says of which version it is.
        let recorded = if taking.record { None } else { self.text_at(call, None).await? };
        // Of a tool that numbers its lines the record has the numbers, and the harness hands over the lines alone.
        let is_bare = recorded.as_deref().is_some_and(|recorded| adorns(recorded, output));
        let text = recorded.as_deref().filter(|_| !is_bare).unwrap_or(output);
        // What is recorded already was not handed over just now.
        let is_handed = taking.record && self.in_flight().iter().any(|one| one.is_read_of(file));
        let handed = match is_handed {
            true => self.passage_handed(file, tx, first, text).await?,
            false => None,
        };
        let shown = match handed {
            Some(lines) => Some((lines, true)),
            None => {
                let read = ReadAt {
                    likely: state.known.spoken_of(file),
                    late: taking.again && taking.record,
                    before: state.known.get(file).and_then(|known| known.content.tx),
                };
                self.passage_shown(file, tx, read, first, text).await?
            }
        };
        // A read that may have come before anything was stored, and that goes to the end of another text than this.
        let is_cut = |(lines, _): &(Passage, bool)| !is_limited && !lines.whole && text.ends_with('\n');
        let is_other = taking.again && taking.record && shown.as_ref().is_some_and(is_cut);
        let Some((lines, is_all)) = shown.filter(|_| !is_other) else {
            // What nobody could store before the process ended, and what is gone by now.
            let is_gone = taking.again && taking.record && self.is_gone(file, tx).await?;
            let is_plain = is_handed || is_other || is_gone;
            if is_bare || !(is_plain || self.is_plain(file, tx, first, text).await?) {
                return Ok(None);
            }
            if !is_other && self.is_adorned(file, tx, first, text).await? {
                return Ok(None);
            }
            // What a tool makes of bytes that are no text says nothing of the file's text.
            if self.is_no_text(file, tx).await? {
                return Ok(None);
            }
            // The tool gives files as they are, and this is none of the versions that anybody has seen.
            return Ok(unstored(file, first, text));
        };
        // A tool that adorns lines may have left out some of their characters.
        if is_all || is_bare {
            return Ok(lines.of(file).map(Evidence::Shows));
        }
        // There is text that no version has.
        let like = lines.content.hash;
        let lines = Passage { content: Content::lost(Digest::of(text.as_bytes())), ..lines }.of(file);
        Ok(lines.map(|lines| Evidence::Unstored { lines, like }))
    }

    /// The version that a call has left. It may have been stored before the call was, and something newer since. Where
    /// nobody has stored exactly that, an edit in messages that are read again has made it of the text that the model
    /// knew, or else it is the version in which what the call has put in came up: the oldest if the process ended before
    /// the call was recorded, because one notice too many is better than none.
    async fn written(
        &self,
        state: &State,
        file: &ObjectId,
        mut tx: TxId,
        args: &Map<String, Value>,
        taking: Taking,
    ) -> Result<Option<Content>> {
        if taking.record
            && let Some(content) = waiting(&state.written, file, args)
        {
            return Ok(Some(content));
        }
        let leaves = Leaves::of(args);
        let known = match state.known_now(file) {
            Some(known) => self.text_known(state, file, &known).await?,
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
                _ if made.is_some() && made == content.hash => return Ok(Some(content)),
                // Otherwise others had changed the file before, and the model does not know that.
                Fit::Yes if made.is_none() => return Ok(Some(content)),
                Fit::No => {}
                _ if taking.again && taking.record && says_what => perhaps = Some(content),
                _ => perhaps = perhaps.or(Some(content)),
            }
            version = before;
        }
        Ok(made.map(Content::lost).or(perhaps))
    }
}

/// Returns what a call has written that is noted already.
fn waiting(written: &Written, file: &ObjectId, args: &Map<String, Value>) -> Option<Content> {
    let text = args.get("content").and_then(Value::as_str).map(|text| Digest::of(text.as_bytes()));
    let mut waiting = written.get(file)?.iter();
    waiting.find(|wrote| text.is_none() || wrote.content.hash == text).map(|wrote| wrote.content)
}

/// So many of them are kept.
const UNREAD: usize = 16;

impl Inner {
    /// Looks once more at what reads show of which no version was known by then: another machine may have stored one later,
    /// and of a file that is gone nobody stores any.
    pub async fn note_unread(&self, state: &mut State) -> Result<()> {
        for one in std::mem::take(&mut state.unread) {
            let Some(way) = path_of(&one.input.tool, &one.args).and_then(|path| self.way_of(&path)) else {
                continue;
            };
            refresh::learn(&self.client, &mut state.session, [way.file.clone()]).await?;
            self.apply(state);
            let Unread { call, input, args, output } = &one;
            let at = (call, self.client.newest());
            let taking = Taking { record: true, again: true, excerpts: false, now: Moment::default() };
            let is_met = state.session.catalog.get(&way.file).is_some();
            let mut found = match is_met {
                true => self.infer(state, &way, at, input, (args, output), taking).await?,
                false => None,
            };
            if found.is_none() && self.is_lost(&way, output).await? && self.works_here(state).await? {
                found = unstored(&way.file, first_line(args), output);
            }
            let Some(found) = found else {
                state.unread.extend((!is_met).then_some(one));
                continue;
            };
            self.archive().found(call, Some(found.clone()));
            let Some(bytes) = found.bytes() else { continue };
            let way = Self::way_to(way, &bytes.file);
            let content = self.content_of(bytes, at.1).await?;
            self.note_evidence(state, &way, at, (&found, content), (args, output), taking).await?;
        }
        // Of files that nobody ever stores nothing comes.
        let many = state.unread.len().saturating_sub(UNREAD);
        state.unread.drain(..many);
        Ok(())
    }
}
