//! Results of tool calls on their way into the request: which object each is, and what it tells the model of files.

use std::collections::VecDeque;

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::Status;
use context_model::time::TxId;
use context_model::tokens;
use context_store::{AsOf, Known as Bound, Version};
use serde_json::{Map, Value};

use super::job::{ToolcallInput, fingerprint};
use super::truth::{is_pointer, told_path};
use super::{Inner, State};
use crate::files::difference::{common_lines, differs_only_within};
use crate::files::seen::file_id;
use crate::ground::error::Result;
use crate::session::catalog::is_handle_of;
use crate::sight::answers::{excerpts, handle_before, named_object};
use crate::sight::messages::{has_image, message_tokens, result_text, text_of};
use crate::sight::piece::{Carried, Excerpts, Form, Output, ShownLines};
use crate::sight::plan::Edit;

/// How many versions of a file are looked at for the one that an output shows.
const LOOKED_BACK: usize = 8;

/// How messages are taken in.
#[derive(Clone, Copy)]
pub(crate) struct Taking {
    /// They are not part of the record yet.
    pub record: bool,
    /// What the model knows is read from all of its messages, and not noted as it comes.
    pub again: bool,
    /// Large outputs may be shown as excerpts. Where nothing may collapse nothing is cut at birth either.
    pub excerpts: bool,
}

impl Inner {
    /// Takes in one result: records it where nobody has, and finds out what it shows.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn take_in_result(
        &self,
        state: &mut State,
        key: &str,
        message: &Value,
        taking: Taking,
    ) -> Result<()> {
        let call_id = text_of(message, "toolCallId");
        let text = result_text(message);
        let input = input_of(state, message, &text);
        let object = match self.recorded_as(state, &input, &text, taking).await? {
            Some(object) => {
                if taking.record && !state.session.stays.contains_key(&object) {
                    self.rejoin(state, &object).await?;
                }
                object
            }
            None if taking.record => {
                let excerpts = excerpts(&input.tool, &input.content);
                let id = self.record_now(state, input.clone()).await?;
                state.sight.gated.insert(id.clone(), excerpts);
                id
            }
            None => {
                state.sight.pieces.push_fixed(key, message_tokens(message));
                return Ok(());
            }
        };
        let handle = state.session.catalog.handle_of(&object);
        state.sight.pieces.answer(call_id, &object, &handle, &self.ground.options.cwd);
        let args = state.sight.open_calls.remove(call_id).unwrap_or_default();
        let reference = state.session.reference(&object);
        if text == reference || has_image(message) {
            state.sight.pieces.push_fixed(key, message_tokens(message));
            return Ok(());
        }
        let mut excerpts = match state.sight.gated.remove(&object) {
            Some(excerpts) => excerpts,
            None if taking.record => Excerpts::default(),
            None => self.excerpts_of(&object).await?,
        };
        if taking.record && !taking.excerpts {
            excerpts.born = None;
        }
        for excerpt in [&mut excerpts.born, &mut excerpts.faded].into_iter().flatten() {
            *excerpt = state.session.headed(&object, excerpt);
        }
        let born_tokens = tokens::estimate(excerpts.born.as_ref().unwrap_or(&text)) as u64;
        if let Some(excerpt) = &excerpts.born {
            let is_born = taking.record || state.sight.rolled.form_of(&object) == Form::Born;
            if is_born && *excerpt != text {
                let text = Some(excerpt.clone());
                let edit = Edit::Result { key: key.to_owned(), object: object.clone(), text };
                // Those of new messages are a part of the next plan, also where nothing may roll.
                state.sight.pending.push(edit);
            }
        }
        let output = state.session.without_header(&object, &text).to_owned();
        let named = output.len() < text.len();
        let carries = self.carried(state, &input.tool, &args, &output).await?;
        let shown = match &carries {
            Some(carried) => self.lines_carried(state, carried).await?,
            None => self.note_file(state, &object, &input, (&args, &output), taking).await?,
        };
        let told = self.file_told(&output).filter(|_| matches!(input.tool.as_str(), "read" | "edit"));
        let tells = told.and_then(|file| Some((file.clone(), state.known.get(&file)?.hash)));
        let piece =
            Output { object: object.clone(), named, shown, carries, tells, excerpts, reference, born_tokens };
        let State { sight, session, .. } = state;
        sight.pieces.push_result(key, piece, session);
        if !taking.record {
            sight.repeat_rolls(&object, &text);
        }
        Ok(())
    }

    /// The object as which a result was recorded before it came as a message.
    async fn recorded_as(
        &self,
        state: &mut State,
        input: &ToolcallInput,
        text: &str,
        taking: Taking,
    ) -> Result<Option<ObjectId>> {
        let call_id = &input.call_id;
        if let Some(object) = state.session.object_in(call_id, text) {
            let waiting = state.sight.received.get_mut(call_id);
            if let Some(waiting) = waiting {
                waiting.retain(|one| *one != object);
            }
            return Ok(Some(object));
        }
        if let Some(object) = state.sight.expected(call_id) {
            return Ok(Some(object));
        }
        let is_free =
            |id: &ObjectId| state.session.sets.index().contains(id) && !state.sight.pieces.knows(id);
        let marked = ObjectId::repeated_toolcall(call_id, &fingerprint(input));
        if is_free(&marked) {
            return Ok(Some(marked));
        }
        let plain = ObjectId::toolcall(call_id);
        if !is_free(&plain) {
            return Ok(None);
        }
        if !taking.record {
            return Ok(Some(plain));
        }
        // A call ID that comes again is another call, unless it is this very one.
        let stored = self.store().get(&plain, AsOf::default()).await?;
        let is_same = stored.is_some_and(|stored| {
            stored.document.content() == Some(&input.content)
                && stored.document.text("tool") == Some(&input.tool)
        });
        Ok(is_same.then_some(plain))
    }

    /// The excerpts of a recorded output.
    async fn excerpts_of(&self, object: &ObjectId) -> Result<Excerpts> {
        let version = self.store().get(object, AsOf::default()).await?;
        let document = version.map(|version| version.document);
        let tool = document.as_ref().and_then(|document| document.text("tool")).unwrap_or_default();
        let content = document.as_ref().and_then(|document| document.content());
        Ok(content.map(|content| excerpts(tool, content)).unwrap_or_default())
    }

    /// The object whose text an output brings back, if it does.
    async fn carried(
        &self,
        state: &State,
        tool: &str,
        args: &Map<String, Value>,
        output: &str,
    ) -> Result<Option<Carried>> {
        let Some(object) = named_object(&state.session, tool, args) else { return Ok(None) };
        let Some(text) = self.text_at(&object, None).await? else { return Ok(None) };
        let whole = output.starts_with(&text);
        Ok(Some(Carried { object, whole }))
    }

    /// The lines of a file that an output shows which brings back a read of it, or the file itself.
    async fn lines_carried(&self, state: &mut State, carried: &Carried) -> Result<Option<ShownLines>> {
        let Carried { object, whole: true } = carried else { return Ok(None) };
        if state.session.is_toolcall(object) {
            let in_sight = state.sight.pieces.lines_of(object).cloned();
            let lines = if in_sight.is_some() { in_sight } else { self.lines_recorded(object).await? };
            if let Some(ShownLines { file, hash, .. }) = &lines
                && state.session.hash_of(file) != Some(*hash)
            {
                // What told of the change may have left the model's sight since.
                state.known.untell(file, *hash);
            }
            return Ok(lines);
        }
        let (Some(hash), Some(text)) = (state.session.hash_of(object), self.text_at(object, None).await?)
        else {
            return Ok(None);
        };
        let tx = state.session.catalog.get(object).map_or(TxId(0), |meta| meta.tx);
        state.known.saw(object, Some(hash), tx);
        Ok(Some(ShownLines { file: object.clone(), hash, tx, first: 1, last: text.split('\n').count() }))
    }

    /// The lines of a file that a recorded read has shown, of whose result the request knows nothing.
    async fn lines_recorded(&self, call: &ObjectId) -> Result<Option<ShownLines>> {
        let Some(read) = self.store().get(call, AsOf::default()).await? else { return Ok(None) };
        let args = read.document.field("args");
        let arg = |name: &str| args.and_then(|args| args.get(name));
        let path = arg("path").and_then(Value::as_str).filter(|_| read.document.text("tool") == Some("read"));
        let (Some(path), Some(output)) = (path, read.document.content()) else { return Ok(None) };
        let Some(file) = self.file_at(path) else { return Ok(None) };
        let first = arg("offset").and_then(Value::as_u64).map_or(1, |n| n as usize).max(1);
        let Some((version, last, _)) = self.version_shown(&file, read.tx_id, None, first, output).await?
        else {
            return Ok(None);
        };
        let Some(hash) = version.document.source_hash() else { return Ok(None) };
        Ok(Some(ShownLines { file, hash, tx: version.tx_id, first, last }))
    }

    /// What a result tells the model of a file: the lines that a read shows, by comparing them with the version of that
    /// moment; what a write or an edit has left.
    async fn note_file(
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
        let Some(file) = self.file_at(path) else { return Ok(None) };
        let Some(tx) = state.session.catalog.get(call).map(|meta| meta.tx) else { return Ok(None) };
        if tool != "read" && input.status == Status::Ok {
            self.note_written(state, &file, tx, args).await?;
            return Ok(None);
        }
        let handed = match tool {
            "read" => self.handed().get_mut(&file).and_then(VecDeque::pop_front),
            _ => None,
        };
        if self.file_told(output).as_ref() == Some(&file) {
            // Who told it has noted it; only where the messages are read again is there nobody who has.
            if taking.again
                && let Some(version) = self.version_at(&file, tx).await?
            {
                state.known.knows(&file, version.document.source_hash(), version.tx_id);
            }
            return Ok(None);
        }
        if tool != "read" || is_pointer(output) {
            return Ok(None);
        }
        let offset = args.get("offset").and_then(Value::as_u64).map(|n| n as usize);
        let first = offset.unwrap_or(1).max(1);
        let Some((version, last, is_all)) = self.version_shown(&file, tx, handed, first, output).await?
        else {
            // The tool gives files as they are, and this is none of the versions that anybody has seen.
            if handed.is_some() && input.status == Status::Ok {
                state.known.saw_unknown(&file, tx);
                let last = first + output.split('\n').count() - 1;
                return Ok(Some(ShownLines { file, hash: Digest::of(output.as_bytes()), tx, first, last }));
            }
            return Ok(None);
        };
        let (Some(text), Some(hash)) = (version.document.content(), version.document.source_hash()) else {
            return Ok(None);
        };
        let lines = ShownLines { file, hash, tx: version.tx_id, first, last };
        if !is_all && !taking.again {
            // Where messages are read again, the rest may be that of an excerpt.
            state.known.saw_unknown(&lines.file, version.tx_id);
        } else if state
            .known
            .get(&lines.file)
            .is_some_and(|known| known.hash.is_some() && known.tx > version.tx_id)
        {
            // The model has written or seen a newer one since.
            state.known.saw_some(&lines.file);
        } else if self.is_all_new(state, &lines, text).await? {
            state.known.saw(&lines.file, Some(hash), version.tx_id);
        } else {
            state.known.saw_some(&lines.file);
        }
        Ok(Some(lines))
    }

    /// The version of a file whose lines an output shows from one on, of those that were the newest when the call was
    /// recorded or shortly before: the file may have changed while the call was under way. With it comes the last line that
    /// is shown, and whether nothing else is.
    async fn version_shown(
        &self,
        file: &ObjectId,
        mut tx: TxId,
        handed: Option<Digest>,
        first: usize,
        output: &str,
    ) -> Result<Option<(Version, usize, bool)>> {
        let mut best: Option<(Version, usize, Shows)> = None;
        for _ in 0..LOOKED_BACK {
            let Some(version) = self.version_at(file, tx).await? else { break };
            tx = TxId(version.tx_id.0.saturating_sub(1));
            let shown = version.document.content().and_then(|text| common_lines(text, first, output));
            let Some(last) = shown else { continue };
            let shows = Shows::of(output, last + 1 - first);
            let is_handed = handed.is_some() && version.document.source_hash() == handed;
            let is_sure = shows == Shows::All && (is_handed || handed.is_none());
            if is_sure || best.as_ref().is_none_or(|(_, most, so_far)| (shows, last) > (*so_far, *most)) {
                best = Some((version, last, shows));
            }
            if is_sure {
                break;
            }
        }
        Ok(best.map(|(version, last, shows)| (version, last, shows != Shows::More)))
    }

    /// What the model knows of a file that it has written by a call that was recorded in this transaction.
    async fn note_written(
        &self,
        state: &mut State,
        file: &ObjectId,
        tx: TxId,
        args: &Map<String, Value>,
    ) -> Result<()> {
        if let Some(count) = state.written.get_mut(file) {
            *count -= 1;
            if *count == 0 {
                state.written.remove(file);
            }
            return Ok(());
        }
        // What was written may have been stored before the call was, and something newer since.
        let mut at = tx;
        for _ in 0..LOOKED_BACK {
            let Some(version) = self.version_at(file, at).await? else { break };
            at = TxId(version.tx_id.0.saturating_sub(1));
            let text = version.document.content().unwrap_or_default();
            if holds_what_was_written(text, args).unwrap_or(true) {
                state.known.knows(file, version.document.source_hash(), version.tx_id);
                return Ok(());
            }
        }
        // It was gone before anybody stored it.
        if state.known.get(file).is_some() {
            state.known.saw_unknown(file, tx);
        }
        Ok(())
    }

    /// The file of which an output tells that it has changed.
    fn file_told(&self, output: &str) -> Option<ObjectId> {
        self.file_at(&told_path(output)?)
    }

    /// The file that a tool's argument names; some models put an `@` before the path.
    fn file_at(&self, path: &str) -> Option<ObjectId> {
        let place = self.ground.paths.resolve(path.strip_prefix('@').unwrap_or(path)).ok()?;
        Some(file_id(&place.source))
    }

    async fn version_at(&self, file: &ObjectId, tx: TxId) -> Result<Option<Version>> {
        let at = AsOf { known: Some(Bound::Tx(tx)), valid_time: None };
        Ok(self.store().get(file, at).await?)
    }

    /// Whether the model knows a version of a file once it has seen these lines of it: it knew no other one, or sees all
    /// that is new.
    async fn is_all_new(&self, state: &State, lines: &ShownLines, text: &str) -> Result<bool> {
        let Some(known) = state.known_now(&lines.file) else { return Ok(true) };
        let sees_other = state.sight.pieces.held(&lines.file).any(|(hash, _)| hash != lines.hash);
        if known.hash == Some(lines.hash) || !sees_other {
            return Ok(true);
        }
        let old = self.text_at(&lines.file, Some(known.tx)).await?.unwrap_or_default();
        Ok(differs_only_within(&old, text, lines.first, lines.last))
    }
}

/// What an output shows besides the lines that it has in common with a version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shows {
    /// Other text.
    More,
    /// A line break, which the tool may have added or which may be the file's.
    Break,
    /// Nothing, or a note of the tool's own in brackets, such as how to go on.
    All,
}

impl Shows {
    fn of(output: &str, lines: usize) -> Self {
        match output.splitn(lines + 1, '\n').nth(lines) {
            None => Self::All,
            Some("") => Self::Break,
            Some(rest) if rest.trim_start_matches('\n').starts_with('[') => Self::All,
            Some(_) => Self::More,
        }
    }
}

/// Whether a text is what a `write` of these arguments leaves, or may be what an `edit` of them does; `None` where they do
/// not say.
fn holds_what_was_written(text: &str, args: &Map<String, Value>) -> Option<bool> {
    let part = |value: &Value| value.get("newText").and_then(Value::as_str).map(str::to_owned);
    if let Some(content) = args.get("content").and_then(Value::as_str) {
        return Some(content == text);
    }
    let edits = args.get("edits").and_then(Value::as_array).into_iter().flatten();
    let one = args.get("newText").and_then(Value::as_str).map(str::to_owned);
    let mut parts = edits.filter_map(part).chain(one).peekable();
    parts.peek()?;
    Some(parts.all(|part| text.contains(&part)))
}

/// A result as a tool call: its arguments are those of the call that it answers.
fn input_of(state: &State, message: &Value, text: &str) -> ToolcallInput {
    let call_id = text_of(message, "toolCallId");
    let mut input = ToolcallInput {
        call_id: call_id.to_owned(),
        tool: match text_of(message, "toolName") {
            "" => "unknown".to_owned(),
            name => name.to_owned(),
        },
        args: state.sight.open_calls.get(call_id).cloned().unwrap_or_default(),
        args_display: None,
        content: text.to_owned(),
        status: if message.get("isError") == Some(&Value::Bool(true)) { Status::Fail } else { Status::Ok },
        file_refs: Vec::new(),
        parent: None,
    };
    // A store that has lost the call meets our line in the harness's copy of the output.
    if let Some((handle, rest)) = handle_before(text) {
        rest.clone_into(&mut input.content);
        let ids = [ObjectId::toolcall(call_id), ObjectId::repeated_toolcall(call_id, &fingerprint(&input))];
        if !ids.iter().any(|id| is_handle_of(handle, id)) {
            text.clone_into(&mut input.content);
        }
    }
    input
}
