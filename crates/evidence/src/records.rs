//! The evidence of a call that is about to be recorded: found while what tools have passed in is still known exactly.

use std::borrow::Cow;
use std::sync::Arc;

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::{Status, Toolcall};
use context_model::time::TxId;
use context_tools::OutputOf::{Reader, Shell};
use context_tools::shown_by_shell;
use serde_json::{Map, Value};

use crate::archive::Archive;
use crate::call::{first_line, is_file_tool};
use crate::difference::is_all_new_within;
use crate::evidence::{Bytes, Evidence};
use crate::in_flight::{Base, InFlight, InFlightKind, PassedIn, Wrote};
use crate::known::Way;
use crate::passage::{Shows, nothing_of, passage_of};
use crate::seen::{At, Seen, SeenVersion, Unseen};
use crate::statement::{Content, Passage};
use crate::written::{After, Leaves};

/// The records of statements to the model, and the entries of tools whose results have not come yet.
///
/// A decision that needs a version which was not read yet ends with [`Unseen`]; what it noted before stays, and is noted
/// once.
#[derive(Default)]
pub struct Records {
    /// The statements in results and notices.
    pub archive: Archive,
    /// The reads, writes and answers that tools have passed in.
    pub passed_in: PassedIn,
}

/// A write of a file whose result the model has not seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unreported {
    /// No such write, or the file has the text that the model knew before it.
    Nothing,
    /// The model knew this text before it.
    After(String),
    /// The model's knowledge before it is undetermined.
    AfterUnknown,
}

impl Records {
    /// Returns the evidence of a call that is about to be recorded: found by the call's ID if the harness gives it, else by
    /// path and bytes. `None` if no passed-in entry fits. `way` is that of the path in the arguments.
    ///
    /// # Errors
    /// `Unseen` if a version was not read yet, as all decisions here.
    pub fn evidence_for(
        &mut self,
        input: &Toolcall,
        way: Option<&Way>,
        seen: &Seen,
    ) -> Result<Option<Evidence>, Unseen> {
        let Toolcall { tool, args, content: output, id: call_id, .. } = input;
        if is_file_tool(tool) || tool == "activate" {
            let answer = self.archive.for_answer(call_id, output).cloned();
            if answer.is_some() {
                return Ok(answer);
            }
        }
        let is_ok = input.status == Status::Ok;
        if !is_file_tool(tool) {
            return if is_ok { self.several_for(input, seen) } else { Ok(None) };
        }
        let Some(way) = way.filter(|_| is_ok) else { return Ok(None) };
        let written = args.get("content").and_then(Value::as_str).map(Bytes::hash_of);
        let first = first_line(args);
        let mut best: Option<(u64, Evidence, Shows)> = None;
        for one in self.entries_of(call_id, way) {
            let is_same_call = one.call.is_some();
            let file = &one.way.file;
            let (evidence, shows) = match one.what {
                InFlightKind::Wrote(Wrote { content, before, .. })
                    if tool != "read"
                        && (is_same_call || written.is_none_or(|written| content.hash == Some(written))) =>
                {
                    let base = match self.passed_in.notified(call_id, output, way) {
                        Some(told) => Some(told),
                        None => self.base_before(one.number, &one.way, before, seen)?,
                    };
                    let made = self.made(&Leaves::of(args), base.as_ref(), file, content, call_id, seen)?;
                    (Some(made), Shows::All)
                }
                InFlightKind::Read { content, text } if tool == "read" => {
                    let shown = match text {
                        Some(text) => passage_of(&text, content, first, output, Reader),
                        None => seen.passage_read(file, content, first, output)?,
                    };
                    let shown = shown.filter(|(_, shows)| *shows != Shows::More);
                    let shows = shown.map_or(Shows::More, |(_, shows)| shows);
                    (shown.and_then(|(lines, _)| lines.of(file)).map(Evidence::Shows), shows)
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
        self.passed_in.claim(number, call_id, &evidence);
        Ok(Some(evidence))
    }

    /// Returns the evidence of a call that changed files which its path does not name, as a patch does: the files that were
    /// passed in with its ID, or that the patch names.
    fn several_for(&mut self, input: &Toolcall, seen: &Seen) -> Result<Option<Evidence>, Unseen> {
        let Toolcall { args, id: call_id, .. } = input;
        let waiting: Vec<InFlight> =
            self.passed_in.iter().filter(|one| one.may_be_of(call_id, &one.way)).cloned().collect();
        let mut all = Vec::new();
        for one in waiting {
            let InFlightKind::Wrote(Wrote { content, before, .. }) = one.what else { continue };
            let leaves = Leaves::of_patch(args, &one.way.path);
            if one.call.is_none() && matches!(leaves, Leaves::Unsaid) {
                continue;
            }
            let base = self.base_before(one.number, &one.way, before, seen)?;
            let made = self.made(&leaves, base.as_ref(), &one.way.file, content, call_id, seen)?;
            self.passed_in.claim(one.number, call_id, &made);
            all.push(made);
        }
        Ok((!all.is_empty()).then_some(Evidence::Several(all)))
    }

    /// Returns the evidence of a shell command that has shown lines of a file as they are on disk. `state` are the bytes and
    /// the text that the file has now.
    pub fn shown_by_shell(
        &mut self,
        input: &Toolcall,
        way: Way,
        (hash, text): (Digest, &str),
    ) -> Option<Evidence> {
        let Toolcall { tool, args, content: output, id: call_id, .. } = input;
        let shown = shown_by_shell(tool, args).filter(|_| input.status == Status::Ok)?;
        let content = Content::lost(hash);
        let nothing = nothing_of(text, content, output).filter(|_| shown.first == 1);
        let nothing = nothing.map(|lines| (lines, Shows::All));
        let (lines, shows) = nothing.or_else(|| passage_of(text, content, shown.first, output, Shell))?;
        // An output that ends before is of another version, or cut.
        let is_all = shows != Shows::More && lines.last >= shown.last.min(text.lines().count());
        let evidence = lines.of(&way.file).filter(|_| is_all).map(Evidence::Shows)?;
        let read = InFlightKind::Read { content, text: Some(text.into()) };
        self.passed_in.add_claimed(call_id, way, read, &evidence);
        Some(evidence)
    }

    /// Returns the evidence of a call about the file's content after it, as far as the model knows that, and notes a text that
    /// no version has. `before` is the content that the model knew; `unsure` is an ID for bytes whose content is undetermined.
    pub fn made(
        &mut self,
        leaves: &Leaves<'_>,
        before: Option<&Base>,
        file: &ObjectId,
        now: Content,
        unsure: &str,
        seen: &Seen,
    ) -> Result<Evidence, Unseen> {
        let made = |hash, left| Evidence::Made { bytes: Bytes { file: file.clone(), hash }, left };
        let all = now.hash.unwrap_or_else(|| Bytes::hash_of(unsure));
        let Some(text) = self.archive.text_of(file, &now, seen)? else { return Ok(made(all, None)) };
        let known = match before {
            Some(base) if base.content.hash != now.hash => {
                Some(self.archive.text_of(&base.file, &base.content, seen)?.unwrap_or_default())
            }
            _ => None,
        };
        let older = if known.is_some() { seen.older(file, now)? } else { None };
        let older = older.and_then(SeenVersion::text);
        let hash = match leaves.known_after(known.as_deref(), older, &text) {
            After::All => return Ok(made(all, None)),
            After::Only(text) => self.archive.draft(&text),
            After::Unsure => Bytes::hash_of(unsure),
        };
        // A model that had a notice of another version, and has changed that one, needs no further notice.
        let told = before.and_then(|base| base.told.filter(|told| base.content.hash != Some(*told)));
        let told = match told {
            Some(hash) => {
                let content = seen.content_of(&Bytes { file: file.clone(), hash }, seen.newest())?;
                self.archive.text_of(file, &content, seen)?
            }
            None => None,
        };
        let is_told = told.is_some() && leaves.known_after(told.as_deref(), older, &text) == After::All;
        Ok(made(hash, now.hash.filter(|_| is_told)))
    }

    /// Returns what the model knew of a path before a call that a tool has not passed in: what the result reports, or what
    /// the request says (`before`) and other results of the same answer have added.
    pub fn base_of(
        &mut self,
        input: &Toolcall,
        way: &Way,
        before: Option<Base>,
        seen: &Seen,
    ) -> Result<Option<Base>, Unseen> {
        match self.passed_in.notified(&input.id, &input.content, way) {
            Some(told) => Ok(Some(told)),
            None => self.base_before(u64::MAX, way, before, seen),
        }
    }

    /// Returns what the model knew of a path when a tool passed in the entry with this number. `before` is what it knew by its
    /// request; other results of the same answer may have added to that.
    fn base_before(
        &mut self,
        number: u64,
        way: &Way,
        before: Option<Base>,
        seen: &Seen,
    ) -> Result<Option<Base>, Unseen> {
        let Self { archive, passed_in } = self;
        let mut base = before;
        for one in passed_in.iter().filter(|one| one.number < number) {
            if one.way.path != way.path && one.way.file != way.file {
                continue;
            }
            let file = one.way.file.clone();
            match (&one.what, &one.evidence) {
                (InFlightKind::Wrote(Wrote { content, .. }), Some(Evidence::Made { bytes, left })) => {
                    let is_all = content.hash == Some(bytes.hash);
                    let content = if is_all { *content } else { Content::lost(bytes.hash) };
                    base = Some(Base { file, content, told: left.or(Some(bytes.hash)) });
                }
                (InFlightKind::Led(content), _) => base = Some(Base { file, content: *content, told: None }),
                (InFlightKind::Read { content, text }, Some(Evidence::Shows(lines))) => {
                    if let Some(text) = text {
                        archive.draft(text);
                    }
                    let shows_all = match &base {
                        Some(known) if !lines.whole && known.content.hash != content.hash => {
                            let old = archive.text_of(&known.file, &known.content, seen)?;
                            let new = archive.text_of(&file, content, seen)?;
                            let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
                            is_all_new_within(&old, &new, lines.first, lines.last)
                        }
                        _ => true,
                    };
                    if shows_all {
                        base = Some(Base { file, content: *content, told: None });
                    }
                }
                _ => {}
            }
        }
        Ok(base)
    }

    /// Notes the model's knowledge of a file after a call that no tool has passed in, and has it recorded. Returns the hash of
    /// the bytes that it knows. `now` is the file's content, `object` that of the call.
    pub fn found_written(
        &mut self,
        input: &Toolcall,
        way: Option<Way>,
        now: Content,
        object: &ObjectId,
        made: Evidence,
    ) -> Option<Digest> {
        let hash = made.bytes().map(|bytes| bytes.hash);
        if let Some(way) = way {
            let (call, path) = (Some(input.id.clone()), Arc::clone(&way.path));
            let wrote = Wrote { content: now, before: None, call, path };
            self.passed_in.add_claimed(&input.id, way, InFlightKind::Wrote(wrote), &made);
        }
        if self.archive.for_call(object).is_none() {
            self.archive.found(object, Some(made));
        }
        hash
    }

    /// Returns the model's knowledge of a file before a write whose result it has not seen: the written file may contain
    /// changes by others.
    pub(crate) fn unreported(&self, file: &ObjectId, now: Digest, seen: &Seen) -> Result<Unreported, Unseen> {
        let mut open = self.passed_in.iter().filter(|one| one.owner.is_none() && one.way.file == *file);
        let wrote = open.find_map(|one| match &one.what {
            InFlightKind::Wrote(wrote) => Some(wrote),
            _ => None,
        });
        let Some(wrote) = wrote else { return Ok(Unreported::Nothing) };
        Ok(match &wrote.before {
            Some(before) if before.content.hash == Some(now) => Unreported::Nothing,
            Some(before) => match self.archive.text_of(&before.file, &before.content, seen)? {
                Some(text) => Unreported::After(text.into_owned()),
                None => Unreported::AfterUnknown,
            },
            None if seen.older(file, wrote.content)?.is_some() => Unreported::AfterUnknown,
            None => Unreported::Nothing,
        })
    }

    /// Finds a text again that no version has: one that a call of earlier messages made of the text that the model knew.
    /// `known` is that content, and the file that had it.
    pub fn draft_again(
        &mut self,
        path: &str,
        (call, args): (&ObjectId, &Map<String, Value>),
        hash: Digest,
        known: Option<(ObjectId, Content)>,
        seen: &Seen,
    ) -> Result<(), Unseen> {
        if self.archive.text(&hash).is_some() {
            return Ok(());
        }
        // Arguments may have collapsed since; the record has them whole.
        let args = recorded_args(call, seen)?.unwrap_or(args);
        let known = match known {
            Some((file, content)) => self.archive.text_of(&file, &content, seen)?,
            None => None,
        };
        let made = Leaves::at(args, path).makes_of(known.as_deref());
        if let Some(text) = made.filter(|text| Bytes::hash_of(text) == hash) {
            self.archive.draft(&text);
        }
        Ok(())
    }

    /// Returns the lines in an output of a file that a tool passed in, and the number of that entry. Results come in a
    /// different order from the tools' reads, and some do not show the text that was read, so the oldest of the best matches is
    /// taken.
    pub(crate) fn passage_passed_in(
        &self,
        file: &ObjectId,
        tx: TxId,
        first: usize,
        output: &str,
        seen: &Seen,
    ) -> Result<Option<(u64, Passage)>, Unseen> {
        let mut best: Option<(u64, Passage, Shows)> = None;
        for one in self.passed_in.iter().filter(|one| one.is_read_of(file)) {
            let InFlightKind::Read { content, text } = &one.what else { continue };
            let shown = match text {
                Some(text) => passage_of(text, *content, first, output, Reader),
                None => {
                    let content = Content { tx: content.tx.or(Some(tx)), ..*content };
                    seen.passage_read(file, content, first, output)?
                }
            };
            if let Some((lines, shows)) = shown.filter(|(_, shows)| *shows != Shows::More)
                && best.as_ref().is_none_or(|(.., so_far)| shows > *so_far)
            {
                best = Some((one.number, lines, shows));
            }
        }
        Ok(best.map(|(number, lines, _)| (number, lines)))
    }

    fn entries_of(&self, call_id: &str, way: &Way) -> Vec<InFlight> {
        self.passed_in.iter().filter(|one| one.may_be_of(call_id, way)).cloned().collect()
    }
}

impl Archive {
    /// Returns the text of bytes that a file had, or that only the model knows; `None` if they were never stored, or are not
    /// text.
    ///
    /// # Errors
    /// `Unseen` if the version was not read yet.
    pub fn text_of<'s>(
        &self,
        file: &ObjectId,
        content: &Content,
        seen: &'s Seen,
    ) -> Result<Option<Cow<'s, str>>, Unseen> {
        match content.tx {
            Some(tx) => Ok(seen.text(file, At::By(tx))?.map(Cow::Borrowed)),
            None => {
                Ok(content.hash.and_then(|hash| self.text(&hash)).map(|text| Cow::Owned(text.to_string())))
            }
        }
    }

    /// True if a text of these bytes can be compared with others.
    #[must_use]
    pub fn has_text(&self, content: &Content) -> bool {
        content.tx.is_some() || content.hash.is_some_and(|hash| self.text(&hash).is_some())
    }
}

/// The arguments of a recorded call.
pub(crate) fn recorded_args<'s>(
    call: &ObjectId,
    seen: &'s Seen,
) -> Result<Option<&'s Map<String, Value>>, Unseen> {
    let recorded = seen.version(call, At::Now)?;
    Ok(recorded.and_then(|version| version.document.field("args")?.as_object()))
}
