//! The evidence in a result whose tool has passed nothing in.

use std::ops::ControlFlow;

use context_model::id::ObjectId;
use context_model::object::Status;
use context_model::time::TxId;
use serde_json::{Map, Value};

use crate::call::{first_line, is_limited};
use crate::evidence::{Bytes, Evidence};
use crate::records::recorded_args;
use crate::search::{LOOKED_BACK, ReadAt, ReadResult, ReadSearch, WriteSearch};
use crate::seen::{At, Seen, SeenVersion, Unseen, before};
use crate::sight::Sight;
use crate::statement::Content;
use crate::taken::{Arrival, TakenResult};
use crate::unclaimed::UnclaimedWrites;
use crate::written::Leaves;

/// The evidence that was found in a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inferred {
    /// The evidence; `None` if the result says nothing of the file.
    pub evidence: Option<Evidence>,
    /// The entries of tools that it was found by.
    pub entries: Vec<u64>,
}

impl<F: Fn(&ObjectId) -> bool> Sight<'_, F> {
    /// Returns the evidence in a result about the file that its call names. `others` are the files that the session knows under
    /// the path of a result that is recorded late.
    ///
    /// # Errors
    /// `Unseen` if a version was not read yet.
    pub fn infer(
        &self,
        result: &TakenResult<'_>,
        file: &ObjectId,
        others: &[ObjectId],
        writes: &UnclaimedWrites,
    ) -> Result<Inferred, Unseen> {
        let tool = result.input.tool.as_str();
        let mut inferred = Inferred::default();
        if result.input.status != Status::Ok {
            return Ok(inferred);
        }
        if tool != "read" {
            inferred.evidence = Some(self.infer_write(result, file, others, writes)?);
            return Ok(inferred);
        }
        inferred.evidence = self.infer_read(result, file, &mut inferred.entries)?;
        for file in others {
            if matches!(inferred.evidence, Some(Evidence::Shows(_))) {
                break;
            }
            let shown = self.infer_read(result, file, &mut inferred.entries)?;
            if matches!(shown, Some(Evidence::Shows(_))) {
                inferred.evidence = shown;
            }
        }
        Ok(inferred)
    }

    /// Returns the bytes that a call left in the first of these files that has them.
    fn infer_write(
        &self,
        result: &TakenResult<'_>,
        file: &ObjectId,
        others: &[ObjectId],
        writes: &UnclaimedWrites,
    ) -> Result<Evidence, Unseen> {
        // Arguments may have collapsed since; the record has them whole.
        let recorded = match result.arrival {
            Arrival::New => None,
            Arrival::Late | Arrival::Again => recorded_args(result.call, self.seen)?,
        };
        let args = recorded.unwrap_or(&result.input.args);
        let mut made = None;
        for file in std::iter::once(file).chain(others) {
            let Some(content) = self.written(result, file, args, writes)? else { continue };
            let Some(hash) = content.hash.filter(|_| made.is_none() || content.tx.is_some()) else {
                continue;
            };
            made = Some(Bytes { file: file.clone(), hash });
            if content.tx.is_some() {
                break;
            }
        }
        // It may have been gone before it was stored.
        let lost = || match args.get("content") {
            Some(Value::String(text)) => Bytes::hash_of(text),
            _ => Bytes::hash_of(result.call.as_str()),
        };
        let bytes = made.unwrap_or_else(|| Bytes { file: file.clone(), hash: lost() });
        Ok(Evidence::Made { bytes, left: None })
    }

    /// Returns the evidence of a read of a file, and adds the entry of the tool that it was found by.
    fn infer_read(
        &self,
        result: &TakenResult<'_>,
        file: &ObjectId,
        entries: &mut Vec<u64>,
    ) -> Result<Option<Evidence>, Unseen> {
        let TakenResult { tx, arrival, .. } = *result;
        let args = &result.input.args;
        let (output, is_bare) = self.given(result)?;
        let first = first_line(args);
        // A result that is recorded already was not passed in just now.
        let is_passed_in =
            arrival.is_recorded_now() && self.records.passed_in.iter().any(|one| one.is_read_of(file));
        let passed_in = match is_passed_in {
            true => self.records.passage_passed_in(file, tx, first, output, self.seen)?,
            false => None,
        };
        entries.extend(passed_in.map(|(number, _)| number));
        let passed_in = passed_in.map(|(_, lines)| lines);
        let at = ReadAt {
            likely: self.known.spoken_of(file),
            late: arrival == Arrival::Late,
            before: self.known.get(file).and_then(|known| known.content.tx),
        };
        let read = ReadResult { first, is_limited: is_limited(args), output, is_bare, is_passed_in, at };
        let mut search = ReadSearch::new(read);
        match &passed_in {
            None => self.seen.search(file, tx, &mut search)?,
            // The evidence then depends only on whether the newest version has text.
            Some(lines) if read.may_be_of_another(lines) => {
                if let Some(version) = self.seen.version(file, At::After(tx))? {
                    search.look(version.content(), version.text());
                }
            }
            Some(_) => {}
        }
        Ok(search.evidence(file, passed_in))
    }

    /// Returns the content that a call left, if that is noted already; else the version that a search finds.
    fn written(
        &self,
        result: &TakenResult<'_>,
        file: &ObjectId,
        args: &Map<String, Value>,
        writes: &UnclaimedWrites,
    ) -> Result<Option<Content>, Unseen> {
        if result.arrival.is_recorded_now()
            && let Some(content) = writes.left_by(file, args)
        {
            return Ok(Some(content));
        }
        let known = match self.known_now(file) {
            Some(known) => self.text_known(file, &known)?,
            None => None,
        };
        let is_late = result.arrival == Arrival::Late;
        let mut search = WriteSearch::new(Leaves::of(args), known.as_deref(), is_late);
        let mut version = self.seen.version(file, At::After(result.tx))?;
        for _ in 0..LOOKED_BACK {
            let Some(after) = version else { break };
            let older = self.seen.version(file, At::After(before(after.tx)))?;
            if !search.look(after.content(), after.text(), older.and_then(SeenVersion::text)) {
                break;
            }
            version = older;
        }
        Ok(search.content())
    }
}

impl Seen {
    /// Searches the versions of a file, from the newest after a transaction on.
    ///
    /// # Errors
    /// As [`Seen::version`].
    pub fn search(&self, file: &ObjectId, tx: TxId, search: &mut ReadSearch<'_>) -> Result<(), Unseen> {
        let mut versions = self.walk(file, tx);
        let done = versions.try_for_each(|version| match version {
            Ok(version) if search.look(version.content(), version.text()) => ControlFlow::Continue(()),
            other => ControlFlow::Break(other.map(drop)),
        });
        done.break_value().unwrap_or(Ok(()))
    }
}
