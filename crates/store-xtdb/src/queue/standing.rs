//! The sender of a journal, and its position in the database that answers.
//!
//! A journal may be copied with its home folder or machine, come back from a backup, or meet a database that did. Then two
//! machines would send under one name, or a position would be about something else. So the journal's file, the hint file
//! and the writer's mark in XTDB each say what they are about, and none of them is believed if it does not fit.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::progress::{JournalPlace, Sent};
use super::shared::Shared;
use crate::XtdbStore;
use crate::write::random_name;
use context_model::time::TxId;
use context_store::{Result, Store};
use context_store_sqlite::SqliteStore;

/// The note of the journal with the writer.
const WRITER: &str = "xtdb writer";

/// Number of runs of the sender that a journal knows.
const MOST_RUNS: usize = 16;

/// The writer that a journal sends as.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JournalWriter {
    pub name: String,
    /// The last runs of the sender: each process that begins to send takes a random name for its run, and notes it here
    /// before it sends. So a mark of a run that is not here was written with another copy of this journal.
    #[serde(default)]
    runs: Vec<String>,
    /// The position known to be sent when the last run began.
    #[serde(default)]
    sent: Sent,
}

/// A position in the journal: everything up to the n-th version of a transaction, or all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JournalPosition {
    pub tx: u64,
    /// Number of versions of the next transaction that are included.
    pub more: u64,
}

/// The state in which a sender begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// XTDB has everything up to this position.
    At(JournalPosition),
    /// Another copy of this journal has sent under this name. XTDB had everything up to this position before.
    Taken(JournalPosition),
    /// The database has lost the versions that this writer sent after this position, or is another one.
    Lost(JournalPosition),
}

impl JournalWriter {
    /// Reads the writer of a journal, and gives it one the first time.
    pub async fn of(journal: &SqliteStore) -> Result<Self> {
        let noted = journal.note(WRITER).await?.and_then(|text| serde_json::from_str(&text).ok());
        Ok(match noted {
            Some(writer) => writer,
            // The place where earlier versions of this library had the name.
            None => Self { name: journal.local_value(WRITER, &random_name()?).await?, ..Self::default() },
        })
    }

    /// The current run of the sender, whichever process that is.
    pub fn run(&self) -> Option<&str> {
        self.runs.last().map(String::as_str)
    }

    async fn save(&self, journal: &SqliteStore) -> Result<()> {
        journal.set_note(WRITER, &serde_json::to_string(self).unwrap_or_default()).await
    }
}

impl Shared {
    /// Begins a run of the sender.
    pub(super) async fn begin_run(&self) -> Result<()> {
        let mut writer = JournalWriter::of(&self.journal).await?;
        let more = writer.runs.len().saturating_sub(MOST_RUNS - 1);
        writer.runs.drain(..more);
        writer.runs.push(random_name()?[..16].to_owned());
        // A hint that does not fit the journal is not about it.
        let sent = self.progress.sent();
        if self.fits(sent.place)? {
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

    /// Takes another name, after a copy of this journal has sent under the present one, and continues from this position.
    pub(super) async fn rename(&self, position: JournalPosition) -> Result<()> {
        let before = self.writer();
        let sent = Sent { place: self.place(position.tx)?, mark: None };
        let runs = before.runs.last().cloned().into_iter().collect();
        let writer = JournalWriter { name: random_name()?, runs, sent: sent.clone() };
        writer.save(&self.journal).await?;
        self.progress.note_sent(sent)?;
        tracing::info!("another copy of this journal sends under its name, so it takes a new one");
        self.become_writer(writer);
        Ok(())
    }

    /// Forgets the notes about a database that has lost them, or is another one.
    pub(super) async fn lost(&self, position: JournalPosition) -> Result<()> {
        let mut writer = self.writer();
        writer.sent = Sent { place: self.place(position.tx)?, mark: None };
        writer.save(&self.journal).await?;
        self.progress.note_sent(writer.sent.clone())?;
        self.become_writer(writer);
        Ok(())
    }

    /// Reads how far this journal has come in the database that answers.
    pub(super) async fn standing(&self, remote: &XtdbStore) -> Result<(Standing, Option<Value>)> {
        let mark = remote.mark().await?;
        let (writer, hint) = (self.writer(), self.progress.sent());
        let number_of =
            |sent: &Sent| sent.mark.as_ref().filter(|(name, _)| *name == writer.name).map(|(_, n)| *n);
        let known = number_of(&hint).max(number_of(&writer.sent));
        let number = mark.as_ref().and_then(|mark| mark["number"].as_u64());
        let note = mark.as_ref().map(|mark| &mark["note"]);
        let noted = match note.and_then(JournalPosition::from_note) {
            Some((position, place)) if self.fits(place)? => Some(position),
            _ => None,
        };
        let is_own = mark.as_ref().is_some_and(|mark| match mark["run"].as_str() {
            Some(run) => writer.runs.iter().any(|own| own == run),
            // Of an earlier version of this library.
            None => true,
        });
        if number < known {
            return Ok((Standing::Lost(noted.filter(|_| is_own).unwrap_or_default()), mark));
        }
        let mut best = JournalPosition::default();
        for sent in [&hint, &writer.sent] {
            // A position noted with another mark may be about a state that the database has lost.
            let is_about_this = mark.is_none() || number_of(sent).is_some() || sent.mark.is_none();
            if is_about_this && sent.place.millis.is_some() && self.fits(sent.place)? {
                best = best.max(JournalPosition { tx: sent.place.tx, more: 0 });
            }
        }
        let standing = match (&mark, noted) {
            (None, _) => Standing::At(best),
            (Some(_), Some(noted)) if is_own => {
                let is_newest = number.is_some() && number_of(&hint) == number;
                Standing::At(if is_newest { noted.max(best) } else { noted })
            }
            (Some(_), noted) => Standing::Taken(best.max(noted.unwrap_or_default())),
        };
        Ok((standing, mark))
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
    pub fn note(self, place: JournalPlace) -> Value {
        json!({ "tx": self.tx, "more": self.more, "time": place.millis })
    }
}
