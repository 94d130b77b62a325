//! Reads, writes and answers of ours that tools have passed in and whose results have not come yet. They give a call's evidence
//! while it is still known exactly.

use context_evidence::{
    Bytes, Content, Evidence, InFlight, InFlightKind, Leaves, Passage, Shows, Tool::Reader, Tool::Shell, Way,
    Wrote, nothing_of, passage_of,
};
use context_files::observed::Observed;
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::{Status, Toolcall};
use context_model::observe::shown_by_shell;
use context_model::outcome::outcome;
use context_model::time::TxId;
use context_session::error::Result;
use context_store::Version;
use serde_json::Value;

use crate::engine::Inner;
use crate::evidence::first_line;
use crate::inferred::{content_in, passage_in};

impl Inner {
    /// Notes a tool's read, write or answer. Returns its number.
    pub fn note_in_flight(&self, call: Option<&str>, way: Way, what: InFlightKind) -> u64 {
        let mut all = self.in_flight();
        let number = all.last().map_or(0, |last| last.number + 1);
        all.push(InFlight { number, call: call.map(str::to_owned), way, what, owner: None, evidence: None });
        number
    }

    /// Forgets a tool's latest read of a file: it will not be the tool's result.
    pub fn forget_read(&self, call: Option<&str>, file: &ObjectId) {
        let mut all = self.in_flight();
        let is_it = |one: &InFlight| one.is_read_of(file) && one.call.as_deref() == call;
        if let Some(place) = all.iter().rposition(is_it) {
            all.remove(place);
        }
    }

    /// Returns the evidence of a call that is about to be recorded: found by the call's ID if the harness gives it, else by
    /// path and bytes. `None` if no passed-in entry fits.
    pub async fn evidence_for(&self, input: &Toolcall) -> Result<Option<Evidence>> {
        let Toolcall { tool, args, content: output, id: call_id, .. } = input;
        if matches!(tool.as_str(), "read" | "write" | "edit" | "activate") {
            let answer = self.archive().for_answer(call_id, output).cloned();
            if answer.is_some() {
                return Ok(answer);
            }
        }
        let is_ok = input.status == Status::Ok;
        if !matches!(tool.as_str(), "read" | "write" | "edit") {
            return if is_ok { self.several_for(input).await } else { Ok(None) };
        }
        let path = args.get("path").and_then(Value::as_str);
        let Some(way) = path.and_then(|path| self.way_of(path)) else { return Ok(None) };
        let waiting = self.in_flight().clone();
        let written = args.get("content").and_then(Value::as_str).map(Bytes::hash_of);
        let first = first_line(args);
        let mut best: Option<(u64, Evidence, Shows)> = None;
        for one in waiting.iter().filter(|one| one.may_be_of(call_id, &way)).cloned() {
            let is_same_call = one.call.is_some();
            let file = one.way.file.clone();
            let (evidence, shows) = match one.what {
                InFlightKind::Wrote(Wrote { content, before, .. })
                    if is_ok
                        && tool != "read"
                        && (is_same_call || written.is_none_or(|written| content.hash == Some(written))) =>
                {
                    let told = self.told_with(input, &way);
                    let base = match told {
                        Some(told) => Some(told),
                        None => self.base_of(one.number, &one.way, before).await?,
                    };
                    let leaves = Leaves::of(args);
                    let made = self.made(&leaves, base.as_ref(), &file, content, call_id).await?;
                    (Some(made), Shows::All)
                }
                InFlightKind::Read { content, text } if is_ok && tool == "read" => {
                    let shown = match text {
                        Some(text) => passage_of(&text, content, first, output, Reader),
                        None => self.passage_read(&file, content, first, output).await?,
                    };
                    let shown = shown.filter(|(_, shows)| *shows != Shows::More);
                    let shows = shown.map_or(Shows::More, |(_, shows)| shows);
                    (shown.and_then(|(lines, _)| lines.of(&file)).map(Evidence::Shows), shows)
                }
                _ => continue,
            };
            // The oldest of the best matches: results come in a different order from the tools' reads.
            if let Some(evidence) = evidence
                && best.as_ref().is_none_or(|(.., so_far)| shows > *so_far)
            {
                best = Some((one.number, evidence, shows));
            }
        }
        let Some((number, evidence, _)) = best else { return Ok(None) };
        self.claim(number, call_id, &evidence);
        Ok(Some(evidence))
    }

    /// Returns the evidence of a call that changed files which its path does not name, as a patch does: the files that were
    /// passed in with its ID, or that the patch names.
    async fn several_for(&self, input: &Toolcall) -> Result<Option<Evidence>> {
        let Toolcall { args, id: call_id, .. } = input;
        let waiting = self.in_flight().clone();
        let mut all = Vec::new();
        for one in waiting.into_iter().filter(|one| one.may_be_of(call_id, &one.way)) {
            let InFlightKind::Wrote(Wrote { content, before, .. }) = one.what else { continue };
            let leaves = Leaves::of_patch(args, &one.way.path);
            if one.call.is_none() && matches!(leaves, Leaves::Unsaid) {
                continue;
            }
            let base = self.base_of(one.number, &one.way, before).await?;
            let made = self.made(&leaves, base.as_ref(), &one.way.file, content, call_id).await?;
            self.claim(one.number, call_id, &made);
            all.push(made);
        }
        Ok((!all.is_empty()).then_some(Evidence::Several(all)))
    }

    /// The lines of a file that a shell command has shown as they are on disk.
    pub fn shown_by_shell(&self, input: &Toolcall, observed: &Observed) -> Option<Evidence> {
        let Toolcall { tool, args, content: output, id: call_id, .. } = input;
        let shown = shown_by_shell(tool, args).filter(|_| input.status == Status::Ok)?;
        let way = self.way_of(&shown.path)?;
        let (seen, _) = observed.files.iter().find(|(seen, _)| seen.id == way.file)?;
        let (content, text) = (Content::lost(seen.state.hash()?), seen.state.text()?);
        let nothing = nothing_of(text, content, output).filter(|_| shown.first == 1);
        let nothing = nothing.map(|lines| (lines, Shows::All));
        let (lines, shows) = nothing.or_else(|| passage_of(text, content, shown.first, output, Shell))?;
        // An output that ends before is of another version, or cut.
        let is_all = shows != Shows::More && lines.last >= shown.last.min(text.lines().count());
        let evidence = lines.of(&way.file).filter(|_| is_all).map(Evidence::Shows)?;
        let number =
            self.note_in_flight(Some(call_id), way, InFlightKind::Read { content, text: Some(text.into()) });
        self.claim(number, call_id, &evidence);
        Some(evidence)
    }

    /// Records that an entry belongs to a call, and the evidence of that call's result.
    fn claim(&self, number: u64, call_id: &str, evidence: &Evidence) {
        for one in self.in_flight().iter_mut().filter(|one| one.number == number) {
            one.owner = Some(call_id.to_owned());
            one.evidence = Some(evidence.clone());
        }
    }

    /// The lines that an output shows of a stored version.
    pub async fn passage_read(
        &self,
        file: &ObjectId,
        content: Content,
        first: usize,
        output: &str,
    ) -> Result<Option<(Passage, Shows)>> {
        let newest = content.tx.unwrap_or_else(|| self.client.newest());
        let version = self.version_with(file, content.hash, newest).await?;
        Ok(version.and_then(|version| passage_in(&version, first, output)))
    }

    /// Returns the newest version of a file with these bytes, or in which it was gone, up to a transaction.
    async fn version_with(&self, file: &ObjectId, hash: Option<Digest>, tx: TxId) -> Result<Option<Version>> {
        let mut found = None;
        self.walk(file, tx, |version| {
            found = Some(version).filter(|version| version.document.source_hash() == hash);
            found.is_some()
        })
        .await?;
        Ok(found)
    }

    /// Recorded bytes as a version of this store: the newest one with them up to a transaction.
    pub async fn content_of(&self, bytes: &Bytes, tx: TxId) -> Result<Content> {
        let version = self.version_with(&bytes.file, Some(bytes.hash), tx).await?;
        Ok(version.map_or(Content::lost(bytes.hash), |version| content_in(&version)))
    }
}

/// Returns the outcome of a call without secrets: they are removed whether or not the store keeps them, because the line would
/// otherwise read differently after a restart.
pub(crate) fn outcome_of(input: &Toolcall, evidence: Option<&Evidence>) -> Option<String> {
    let Toolcall { tool, args, content, status, .. } = input;
    let shows = match evidence {
        Some(Evidence::Shows(lines) | Evidence::Points { lines, .. } | Evidence::Unstored { lines, .. }) => {
            Some((lines.first, lines.last))
        }
        // A difference or a pointer, whose lines are not those of the file.
        Some(Evidence::LedTo(_) | Evidence::Refers { .. }) => return None,
        Some(Evidence::Made { .. } | Evidence::Several(_)) | None => None,
    };
    let told = outcome(tool, args, content, *status, shows)?;
    Some(context_secrets::redacted(&told, None).map_or(told, |(without, _)| without))
}

#[cfg(test)]
mod tests {
    use context_model::object::Status;
    use serde_json::json;

    use super::*;

    #[test]
    fn secret_in_an_error_is_removed() {
        let secret = concat!("AKIA", "QYLPMN5HHHFPZAM2");
        let args = json!({ "command": "./deploy" }).as_object().cloned().unwrap();
        let input = Toolcall {
            status: Status::Fail,
            ..Toolcall::new(
                "call",
                "bash",
                args,
                format!("error: key {secret} is not valid\n\nCommand exited with code 1"),
            )
        };
        let told = outcome_of(&input, None).unwrap();
        assert!(told.starts_with("exit 1: \"error: key [redacted: ") && !told.contains(secret), "{told}");
    }
}
