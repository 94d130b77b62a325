//! The reads and writes of tools, and their calls: what the model knows of a file that it has written.

use crate::files::index::FileEntry;
use crate::files::observed::Observed;
use crate::session::error::Result;
use context_evidence::{Content, Evidence, Leaves, path_of};
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::Toolcall;
use context_store::AsOf;
use context_tools::shown_by_shell;
use serde_json::{Map, Value};

use crate::engine::{Inner, State};

impl Inner {
    /// Returns the evidence of a call that is about to be recorded: by what tools have passed in, or by what is observed on the
    /// disk. `None` if nothing fits.
    pub(crate) async fn evidence_for(
        &self,
        input: &Toolcall,
        observed: &Observed,
    ) -> Result<Option<Evidence>> {
        let path = path_of(&input.tool, &input.args);
        let way = path.and_then(|path| self.way_of(&path));
        let found = self.decide(|records, seen| records.evidence_for(input, way.as_ref(), seen)).await?;
        let Some(way) = way.filter(|_| found.is_none()) else { return Ok(found) };
        if shown_by_shell(&input.tool, &input.args).is_none() {
            return Ok(None);
        }
        let seen = observed.files.iter().find(|(seen, _)| seen.id == way.file);
        let state = seen.and_then(|(seen, _)| Some((seen.state.hash()?, seen.state.text()?)));
        Ok(state.and_then(|state| self.records().shown_by_shell(input, way, state)))
    }

    /// Notes the model's knowledge of the files that a recorded call has written: their present content is the one that the
    /// call left.
    pub(crate) async fn note_written(
        &self,
        state: &mut State,
        input: &Toolcall,
        observed: &Observed,
        id: &ObjectId,
    ) {
        let made = observed.evidence.as_ref().map(Evidence::made).unwrap_or_default();
        let seen =
            observed.files.iter().filter(|(_, entry)| *entry == FileEntry::Written).map(|(seen, _)| &seen.id);
        let unseen =
            made.iter().map(|bytes| &bytes.file).filter(|file| !seen.clone().any(|one| one == *file));
        let named = input.args.get("path").and_then(Value::as_str).filter(|_| observed.is_late);
        let named = named.and_then(|path| self.file_at(path));
        for file in seen.clone().chain(unseen) {
            if named.as_ref() == Some(file) && state.known.keeps(file) {
                // The disk no longer has the content that the call left.
                continue;
            }
            let recorded = made.iter().find(|bytes| bytes.file == *file).map(|bytes| bytes.hash);
            if state.written.has(file) {
                // `index_written` noted the text that the agent wrote; the file may have a newer one.
                let State { known, written, .. } = state;
                if let (Some(wrote), Some(hash)) = (written.of(file, &input.id), recorded) {
                    known.learns(wrote, file, hash);
                }
                continue;
            }
            let Some(meta) = state.session.catalog.get(file) else { continue };
            let now = Content::stored(state.session.hash_of(file), meta.tx);
            let known = match recorded {
                _ if observed.is_late => now.hash,
                Some(hash) => Some(hash),
                None => self.found_written(state, input, (file, now), id).await.unwrap_or(now.hash),
            };
            let content = if known == now.hash { now } else { Content { hash: known, tx: None } };
            state.known.wrote(file, content);
        }
    }

    /// Finds the model's knowledge of a file after a call, and has it recorded.
    async fn found_written(
        &self,
        state: &State,
        input: &Toolcall,
        (file, now): (&ObjectId, Content),
        id: &ObjectId,
    ) -> Result<Option<Digest>> {
        // A host may have other names for its arguments: the record has the host's.
        let way = match input.args.get("path").and_then(Value::as_str) {
            Some(path) => self.way_of(path),
            None => self.way_of(&self.path_known(state, file)).map(|way| Self::way_to(way, file)),
        };
        let before = way.as_ref().map(|way| (way, state.known.base(way, state.in_sight())));
        self.decide(|records, seen| {
            let base = match &before {
                Some((way, before)) => records.base_of(input, way, before.clone(), seen)?,
                None => None,
            };
            let leaves = Leaves::of(&input.args);
            let made = records.made(&leaves, base.as_ref(), file, now, id.as_str(), seen)?;
            Ok(records.found_written(input, way.clone(), now, id, made))
        })
        .await
    }

    /// Keeps what the model knows of its writes when a turn has passed and their results have not come.
    pub(crate) async fn unclaimed(&self, state: &mut State) -> Result<()> {
        let mut made = Vec::new();
        for (file, wrote) in state.written.all() {
            let args = self.args_of(wrote.call.as_deref()).await?;
            let leaves = Leaves::of_patch(&args, &wrote.path);
            let unsure = wrote.call.as_deref().unwrap_or(&wrote.path);
            let before = wrote.before.as_ref();
            made.push(
                self.decide(|records, seen| records.made(&leaves, before, file, wrote.content, unsure, seen))
                    .await?,
            );
        }
        let State { known, written, .. } = state;
        for ((file, wrote), made) in written.take().zip(&made) {
            known.take_unclaimed(&file, &wrote, made);
        }
        Ok(())
    }

    /// The recorded arguments of a call.
    async fn args_of(&self, call: Option<&str>) -> Result<Map<String, Value>> {
        let Some(call) = call else { return Ok(Map::new()) };
        let recorded = self.recorded(&ObjectId::toolcall(call), AsOf::default()).await?;
        let args = recorded.as_ref().and_then(|version| version.document.field("args")?.as_object());
        Ok(args.cloned().unwrap_or_default())
    }
}
