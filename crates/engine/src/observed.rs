//! Files that a tool call read, wrote or named (SSOT 5.6): found by the engine, so that every harness gets it.

use context_model::id::ObjectId;
use serde_json::{Map, Value};

use crate::engine::Inner;
use crate::error::Result;
use crate::files::FileState;
use crate::ingest::{Entry, Seen, file_id};
use crate::record::ToolcallInput;
use crate::state::{State, Work};

/// What a tool call shows of files, looked at on disk.
#[derive(Default)]
pub(crate) struct Observed {
    pub files: Vec<(Seen, Entry)>,
}

impl Inner {
    /// Looks at the files that a tool call concerns. What can't be looked at is left out: an observation is a
    /// by-product and never makes a tool call fail.
    pub async fn observe(&self, input: &ToolcallInput) -> Result<Observed> {
        let mut observed = Observed::default();
        let entry = match input.tool.as_str() {
            "read" => Entry::Read,
            "write" | "edit" => Entry::Written,
            _ => return Ok(observed),
        };
        let Some(path) = input.args.get("path").and_then(Value::as_str) else { return Ok(observed) };
        let Ok(place) = self.paths.resolve(path.strip_prefix('@').unwrap_or(path)) else { return Ok(observed) };
        let state = self.look(&place, None).await?;
        if let (FileState::Text { .. } | FileState::NoText { .. }, Some(observation)) = (&state, state.observation()) {
            let reason = state.reason().map(str::to_owned);
            observed.files.push((Seen { place, observation, reason }, entry));
        }
        Ok(observed)
    }

    /// Adds what was observed to a transaction in the making. Returns the objects of the files.
    pub async fn add_observed(
        &self,
        state: &mut State,
        observed: &Observed,
        work: &mut Work,
    ) -> Result<Vec<ObjectId>> {
        let mut ids = Vec::with_capacity(observed.files.len());
        for (seen, entry) in &observed.files {
            for result in self.prepare(state, std::slice::from_ref(seen), *entry, work).await? {
                if !ids.contains(&result.id) {
                    ids.push(result.id);
                }
            }
        }
        Ok(ids)
    }

    /// The file that a `read` with these arguments shows whole: it has neither offset nor limit.
    pub fn whole_read(&self, state: &State, tool: &str, args: &Map<String, Value>) -> Option<ObjectId> {
        if tool != "read" {
            return None;
        }
        let is_part = ["offset", "limit"].iter().any(|n| args.get(*n).is_some_and(|v| !v.is_null()));
        let path = args.get("path").and_then(Value::as_str).filter(|_| !is_part)?;
        let place = self.paths.resolve(path.strip_prefix('@').unwrap_or(path)).ok()?;
        let id = file_id(&place.source);
        state.sets.index().contains(&id).then_some(id)
    }
}
