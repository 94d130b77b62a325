//! Outputs that restore another object's text: an earlier read of a file, or the file itself.

use crate::session::error::Result;
use crate::session::references::named_object;
use context_evidence::{
    Bytes, Content, Evidence, LOOKED_BACK, Passage, ReadAt, ReadResult, ReadSearch, StatementKind, Way,
    first_line, passage_of, path_of, restores,
};
use context_model::id::ObjectId;
use context_model::object::Toolcall;
use context_model::time::TxId;
use context_projection::request::segment::{Carried, ShownLines};
use context_store::{AsOf, KnownAt};
use context_tools::OutputOf;
use serde_json::Value;

use crate::engine::{Inner, State};
use crate::shown::shown_lines;

/// The object whose text an output restores, and the lines of a file in it.
pub(crate) struct Restored {
    /// The object.
    pub carried: Carried,
    lines: Option<RestoredLines>,
}

/// The lines of a file in an output that restores them.
enum RestoredLines {
    /// Those of an earlier read, and the path that it used if it is out of sight.
    Read { lines: Passage, file: ObjectId, way: Option<Way> },
    /// All of the file itself.
    File { lines: Passage, tx: TxId },
}

impl Inner {
    /// Returns the object whose text an output restores, if any, with the lines of a file in it.
    pub(crate) async fn restored(
        &self,
        state: &State,
        input: &Toolcall,
        output: &str,
    ) -> Result<Option<Restored>> {
        let Some(object) = named_object(&state.session, &input.tool, &input.args) else { return Ok(None) };
        let Some(text) = self.newest_text(&object).await? else { return Ok(None) };
        let whole = restores(output, &text);
        let version = state.session.hash_of(&object);
        let lines = if whole { self.lines_in(state, &object, &text).await? } else { None };
        Ok(Some(Restored { carried: Carried { object, whole, version }, lines }))
    }

    /// Returns the lines of a file in the whole text of an object.
    async fn lines_in(&self, state: &State, object: &ObjectId, text: &str) -> Result<Option<RestoredLines>> {
        if state.session.is_toolcall(object) {
            let in_sight = state.request.segments.lines_of(object).map(|lines| lines.file.clone());
            let shown = in_sight.and_then(|file| Some((state.known.shown_by(&file, object)?, file)));
            let shown = shown.map(|(lines, file)| (lines, file, None));
            let shown = if shown.is_some() { shown } else { self.lines_recorded(state, object).await? };
            return Ok(shown.map(|(lines, file, way)| RestoredLines::Read { lines, file, way }));
        }
        let Some(hash) = state.session.hash_of(object) else { return Ok(None) };
        let tx = state.session.catalog.get(object).map_or(TxId(0), |meta| meta.tx);
        let content = Content::stored(Some(hash), tx);
        let lines = Passage { content, first: 1, last: text.split('\n').count(), whole: true };
        Ok(Some(RestoredLines::File { lines, tx }))
    }

    /// Returns the lines of a file shown by a recorded call whose result is not in the request: a read, or a call that restored
    /// one. With them comes the path that the read used, and the file that it leads to now.
    pub(crate) async fn lines_recorded(
        &self,
        state: &State,
        call: &ObjectId,
    ) -> Result<Option<(Passage, ObjectId, Option<Way>)>> {
        let session = &state.session;
        let mut call = call.clone();
        for _ in 0..LOOKED_BACK {
            let Some(result) = self.recorded(&call, AsOf::default()).await? else { break };
            let shown = match self.evidence_of(&call).await?.flatten() {
                Some(Evidence::Shows(lines)) => Some((lines.bytes.clone(), lines)),
                Some(Evidence::Unstored { lines, like }) => {
                    let hash = like.unwrap_or(lines.bytes.hash);
                    Some((Bytes { hash, ..lines.bytes.clone() }, lines))
                }
                _ => None,
            };
            let tool = result.document.text("tool").unwrap_or_default();
            let args = result.document.field("args").and_then(Value::as_object);
            let way = args.and_then(|args| path_of(tool, args)).and_then(|path| self.way_of(&path));
            if let Some((bytes, lines)) = shown {
                let content = self.decide(|_, seen| seen.content_of(&bytes, result.tx_id)).await?;
                return Ok(Some((Passage::recorded(&lines, content), bytes.file, way)));
            }
            let (Some(args), Some(output)) = (args, result.document.content()) else { break };
            if let Some(object) = named_object(session, tool, args) {
                let at = AsOf { known: Some(KnownAt::Tx(result.tx_id)), valid_time: None };
                let Some(version) = self.recorded(&object, at).await? else { break };
                let Some(text) = version.document.content().filter(|text| restores(output, text)) else {
                    break;
                };
                if !session.is_toolcall(&object) {
                    let content = Content::stored(version.document.source_hash(), version.tx_id);
                    let shown = passage_of(text, content, 1, output, OutputOf::Reader);
                    return Ok(shown.map(|(lines, _)| (lines, object, None)));
                }
                call = object;
                continue;
            }
            let Some(way) = way.filter(|_| tool == "read") else { break };
            let file = way.file.clone();
            let first = first_line(args);
            let (is_limited, is_bare, is_passed_in, at) = (false, false, false, ReadAt::default());
            let read = ReadResult { first, is_limited, output, is_bare, is_passed_in, at };
            let lines = self
                .decide(|_, seen| {
                    let mut search = ReadSearch::new(read);
                    seen.search(&file, result.tx_id, &mut search)?;
                    Ok(search.lines())
                })
                .await?;
            return Ok(lines.map(|(lines, _)| (lines, file, Some(way))));
        }
        Ok(None)
    }
}

impl State {
    /// Notes the lines of a file that the output of a call restores. Returns them.
    pub(crate) fn note_restored(&mut self, call: &ObjectId, restored: &Restored) -> Option<ShownLines> {
        let known = &mut self.known;
        match restored.lines.as_ref()? {
            RestoredLines::Read { lines, file, way } => {
                // The model believes that the path has the text read here, wherever the path leads by now.
                let at =
                    way.as_ref().map_or_else(|| file.clone(), |way| known.recalls(way, file, lines.content));
                if known.get(&at).is_none() {
                    known.saw(&at, lines.content);
                }
                let via = way.as_ref().map(|way| &way.path);
                known.add_statement(&at, Some(call), via, StatementKind::Again(*lines));
                shown_lines(file.clone(), lines, TxId(0))
            }
            RestoredLines::File { lines, tx } => {
                let file = &restored.carried.object;
                known.saw(file, lines.content);
                known.add_statement(file, Some(call), None, StatementKind::Lines(*lines));
                shown_lines(file.clone(), lines, *tx)
            }
        }
    }
}
