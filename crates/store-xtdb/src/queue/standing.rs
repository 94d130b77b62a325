//! The sender of a journal, and its position in the database that answers.
//!
//! A journal may be copied with its home folder or machine, come back from a backup, or meet a database that did. Then two
//! machines would send under one name, or a position would be about something else. So the journal's file, the hint file
//! and the writer's mark in XTDB each say what they are about, and none of them is believed if it does not fit.

use serde_json::{Value, json};

use super::journal_writer::JournalWriter;
use super::progress::{JournalPlace, Sent};
use super::shared::Shared;
use crate::XtdbStore;
use crate::random::random_name;
use context_model::time::TxId;
use context_store::{Result, StoreError};

/// A position in the journal: everything up to the n-th version of a transaction, or all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JournalPosition {
    pub tx: u64,
    /// Number of versions of the next transaction that are included.
    pub more: u64,
}

/// The state in which a sender begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// XTDB has everything up to this position.
    At(JournalPosition),
    /// Another copy of this journal has sent under this name. XTDB had everything up to that position before.
    Taken(Sent),
    /// The database has lost the versions that this writer sent after that, or is another one.
    Lost(Sent),
}

impl Shared {
    /// Begins a run of the sender.
    pub(super) async fn begin_run(&self) -> Result<()> {
        let mut writer = JournalWriter::of(&self.journal).await?;
        writer.begin_run()?;
        // A hint that does not fit the journal is not about it.
        let sent = self.progress.sent();
        if self.is_there(&sent)? {
            writer.sent = sent;
        }
        writer.save(&self.journal).await?;
        self.become_writer(writer);
        Ok(())
    }

    /// Reads which writer the sending process is.
    pub(super) async fn find_writer(&self) -> Result<()> {
        let writer = JournalWriter::of(&self.journal).await?;
        self.become_writer(writer);
        Ok(())
    }

    /// Takes another name, after a copy of this journal has sent under the present one, and continues from there.
    pub(super) async fn rename(&self, sent: Sent) -> Result<()> {
        let before = self.writer();
        let runs = before.runs.last().cloned().into_iter().collect();
        let writer = JournalWriter { name: random_name()?, runs, sent: sent.clone() };
        writer.save(&self.journal).await?;
        self.progress.note_sent(sent)?;
        tracing::info!("another copy of this journal sends under its name, so it takes a new one");
        self.become_writer(writer);
        Ok(())
    }

    /// Forgets the notes about a database that has lost them, or is another one.
    pub(super) async fn lost(&self, sent: Sent) -> Result<()> {
        let mut writer = self.writer();
        writer.sent = sent;
        writer.save(&self.journal).await?;
        self.progress.note_sent(writer.sent.clone())?;
        self.become_writer(writer);
        Ok(())
    }

    /// Reads how far this journal has come in the database that answers.
    ///
    /// The mark's own note tells it only where this run has written the mark: a run before may have gone on in the original
    /// while this copy was made, and two copies may have a transaction of one number and millisecond.
    pub(super) async fn standing(&self, remote: &XtdbStore) -> Result<(Standing, Option<Value>)> {
        let mark = remote.mark().await?;
        let (writer, hint) = (self.writer(), self.progress.sent());
        let number_of =
            |sent: &Sent| sent.mark.as_ref().filter(|(name, _)| *name == writer.name).map(|(_, n)| *n);
        let known = number_of(&hint).max(number_of(&writer.sent));
        let number = mark.as_ref().and_then(|mark| mark["number"].as_u64());
        let run = mark.as_ref().and_then(|mark| mark["run"].as_str());
        let note = mark.as_ref().map(|mark| &mark["note"]);
        let noted = match note.and_then(JournalPosition::from_note) {
            Some((position, place)) if self.fits(place)? => Some(position),
            _ => None,
        };
        let is_own = mark.as_ref().is_some_and(|mark| writer.wrote(mark));
        if number < known {
            let sent = match (noted.filter(|_| is_own), number) {
                (Some(position), Some(number)) => Sent {
                    place: self.place(position.tx)?,
                    mark: Some((writer.name.clone(), number)),
                    mark_tx: remote.mark_tx().await?.map(|tx| tx.0),
                },
                _ => Sent::default(),
            };
            return Ok((Standing::Lost(sent), mark));
        }
        if let (Some(noted), true) = (noted, is_own) {
            let is_of_this_run = run.is_none() || run == writer.run();
            let mut position = if is_of_this_run { noted } else { JournalPosition::default() };
            if !is_of_this_run || number_of(&hint) == number {
                for sent in [&hint, &writer.sent] {
                    if self.is_there(sent)? {
                        position = position.max(JournalPosition { tx: sent.place.tx, more: 0 });
                    }
                }
            }
            return Ok((Standing::At(position), mark));
        }
        let mut best = Sent::default();
        for sent in [hint, writer.sent.clone()] {
            if sent.place.tx > best.place.tx
                && self.is_there(&sent)?
                && self.has_kept(remote, &writer, &sent, mark.is_none()).await?
            {
                best = sent;
            }
        }
        let standing = match mark {
            None => Standing::At(JournalPosition { tx: best.place.tx, more: 0 }),
            Some(_) => Standing::Taken(best),
        };
        Ok((standing, mark))
    }

    /// The transaction that wrote the mark with this number, which the database has now.
    pub(super) async fn mark_tx(&self, remote: &XtdbStore, number: u64) -> Result<TxId> {
        let Sent { mark, mark_tx, .. } = self.progress.sent();
        let is_noted = mark.is_some_and(|noted| noted == (self.writer().name, number));
        match mark_tx.filter(|_| is_noted) {
            Some(tx) => Ok(TxId(tx)),
            None => remote.mark_tx().await?.ok_or_else(|| {
                StoreError::Unavailable(format!(
                    "XTDB at {} no longer shows this writer's mark",
                    remote.current_url()
                ))
            }),
        }
    }

    /// True if this journal has what was noted to be sent.
    fn is_there(&self, sent: &Sent) -> Result<bool> {
        Ok(sent.place.millis.is_some() && self.fits(sent.place)?)
    }

    /// True if the database still has the mark that was noted with this. The present mark does not tell: it is missing
    /// after this journal took another name, or another copy has written it, maybe after a loss.
    async fn has_kept(
        &self,
        remote: &XtdbStore,
        writer: &JournalWriter,
        sent: &Sent,
        is_unmarked: bool,
    ) -> Result<bool> {
        let Some((name, number)) = &sent.mark else { return Ok(true) };
        let Some(tx) = sent.mark_tx else {
            // Of an earlier version of this library.
            return Ok(is_unmarked || *name == writer.name);
        };
        let mark = remote.mark_at(name, TxId(tx)).await?;
        Ok(mark.is_some_and(|mark| mark["number"].as_u64() == Some(*number) && writer.wrote(&mark)))
    }

    /// A transaction of the journal, to be noted.
    pub(super) fn place(&self, tx: u64) -> Result<JournalPlace> {
        let before = tx.checked_sub(1).map(TxId);
        let time = before.map_or(Ok(None), |before| self.journal.time_after(before))?;
        Ok(JournalPlace { tx, millis: time.map(|time| time.millis()) })
    }

    /// True if this journal has such a transaction.
    pub(super) fn fits(&self, place: JournalPlace) -> Result<bool> {
        Ok(match (place.tx, place.millis) {
            (0, _) => true,
            (tx, Some(_)) => self.place(tx)? == place,
            // Of an earlier version of this library.
            (tx, None) => self.place(tx)?.millis.is_some(),
        })
    }
}

impl JournalPosition {
    fn from_note(note: &Value) -> Option<(Self, JournalPlace)> {
        let (tx, more) = (note["tx"].as_u64()?, note["more"].as_u64()?);
        Some((Self { tx, more }, JournalPlace { tx, millis: note["time"].as_i64() }))
    }

    /// The note of this position, for the writer's mark.
    pub(super) fn note(self, place: JournalPlace) -> Value {
        json!({ "tx": self.tx, "more": self.more, "time": place.millis })
    }
}
