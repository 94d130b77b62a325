//! The writer that a journal sends as, which is noted in the journal itself.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::progress::Sent;
use crate::random::random_name;
use context_store::{Result, Store as _};
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
    pub runs: Vec<String>,
    /// The position known to be sent when the last run began.
    #[serde(default)]
    pub sent: Sent,
}

impl JournalWriter {
    /// Reads the writer of a journal, and gives it one the first time.
    pub(super) async fn of(journal: &SqliteStore) -> Result<Self> {
        let noted = journal.note(WRITER).await?.and_then(|text| serde_json::from_str(&text).ok());
        Ok(match noted {
            Some(writer) => writer,
            // The place where earlier versions of this library had the name.
            None => Self { name: journal.local_value(WRITER, &random_name()?).await?, ..Self::default() },
        })
    }

    /// Begins a run of the sender, and forgets the oldest one of too many.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` if the system has no random numbers.
    pub(super) fn begin_run(&mut self) -> Result<()> {
        let more = self.runs.len().saturating_sub(MOST_RUNS - 1);
        self.runs.drain(..more);
        self.runs.push(random_name()?[..16].to_owned());
        Ok(())
    }

    /// The current run of the sender, whichever process that is.
    pub(super) fn run(&self) -> Option<&str> {
        self.runs.last().map(String::as_str)
    }

    /// True if one of the runs that this journal knows has written a mark.
    pub(super) fn wrote(&self, mark: &Value) -> bool {
        match mark["run"].as_str() {
            Some(run) => self.runs.iter().any(|own| own == run),
            // Of an earlier version of this library.
            None => true,
        }
    }

    /// Notes it in its journal.
    pub(super) async fn save(&self, journal: &SqliteStore) -> Result<()> {
        journal.set_note(WRITER, &serde_json::to_string(self).unwrap_or_default()).await
    }
}
