//! Stamps of files: they change whenever a file's bytes do, so that a file can be compared without reading it.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::session::client::Client;
use crate::session::error::Result;
use camino::Utf8Path;
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_platform::{Facts, PathKind};
use context_store::StoreError;

/// The number of seconds without a change after which a file counts as settled.
const SETTLED_SECONDS: i64 = 2;

/// A value that changes whenever a file's bytes do: two equal stamps of settled files mean equal bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds of the last change of the bytes, and of the inode, which no program can set.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// The stamp of the regular file at a path.
    #[must_use]
    pub fn of(path: &Utf8Path) -> Option<Self> {
        let Facts { kind, device, number, size, modified, changed } = Facts::at(path.as_std_path()).ok()?;
        (kind == PathKind::File).then_some(Self { device, inode: number, size, modified, changed })
    }

    /// True if any later write is sure to get another stamp. File systems' clocks are coarse, so a file that
    /// was just written could be written again within the same tick.
    pub fn is_settled(&self, now: SystemTime) -> bool {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs().cast_signed());
        self.modified.0.max(self.changed.0) + SETTLED_SECONDS < now
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, inode, size, modified, changed } = self;
        write!(f, "{device} {inode} {size} {} {} {} {}", modified.0, modified.1, changed.0, changed.1)
    }
}

impl FromStr for Stamp {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let mut parts = text.split(' ');
        let mut unsigned = || parts.next().unwrap_or_default().parse();
        let (device, inode, size) = (unsigned()?, unsigned()?, unsigned()?);
        let mut signed = || parts.next().unwrap_or_default().parse();
        Ok(Self { device, inode, size, modified: (signed()?, signed()?), changed: (signed()?, signed()?) })
    }
}

/// By file object: the hash of the file's bytes, and its stamp at that time.
pub(crate) type Stamps = HashMap<ObjectId, (Digest, Stamp)>;

/// The stamps left by comparisons of a session's files, kept as a note in the store for this client.
#[derive(Default)]
pub(crate) struct StampNote(Mutex<Option<Arc<Stamps>>>);

impl StampNote {
    /// The stamps of earlier comparisons, by this process and earlier ones.
    pub(crate) async fn read(&self, client: &Client) -> Result<Arc<Stamps>> {
        if let Some(known) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(Arc::clone(known));
        }
        let note = client.store().note(&name(client)).await?.unwrap_or_default();
        let line = |line: &str| {
            let (id, rest) = line.split_once(' ')?;
            let (hash, stamp) = rest.split_once(' ')?;
            Some((ObjectId::new(id), (hash.parse().ok()?, stamp.parse().ok()?)))
        };
        let stamps = Arc::new(note.lines().filter_map(line).collect::<Stamps>());
        self.keep(&stamps);
        Ok(stamps)
    }

    /// Adds stamps to the known ones.
    ///
    /// # Errors
    /// Errors of the store, except `STORE_FULL`: then the files are read again at the next resume, and the session opens
    /// anyway.
    pub(crate) async fn add(
        &self,
        client: &Client,
        known: &Stamps,
        fresh: Vec<(ObjectId, (Digest, Stamp))>,
    ) -> Result<()> {
        if fresh.is_empty() {
            return Ok(());
        }
        let mut all = known.clone();
        all.extend(fresh);
        let mut text = String::with_capacity(all.len() * 220);
        for (id, (hash, stamp)) in &all {
            // Writing to a String can't fail.
            let _ = writeln!(text, "{id} {hash} {stamp}");
        }
        self.keep(&Arc::new(all));
        match client.store().set_note(&name(client), &text).await {
            Err(StoreError::Full(_)) => Ok(()),
            other => Ok(other?),
        }
    }

    fn keep(&self, stamps: &Arc<Stamps>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(stamps));
    }
}

fn name(client: &Client) -> String {
    format!("stamps:{}", client.session_object)
}

#[cfg(test)]
mod tests {
    use context_store_sqlite::{Durability, SqliteStore};

    use super::*;
    use crate::session::options::Options;

    const STAMP: Stamp = Stamp { device: 1, inode: 2, size: 3, modified: (100, 5), changed: (90, 6) };

    #[test]
    fn a_file_is_settled_after_more_than_two_seconds_without_a_change() {
        let at = |seconds| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        assert_eq!([101, 102, 103].map(|now| STAMP.is_settled(at(now))), [false, false, true]);
        let renamed = Stamp { modified: (50, 0), changed: (100, 0), ..STAMP };
        assert_eq!([102, 103].map(|now| renamed.is_settled(at(now))), [false, true]);
    }

    #[tokio::test]
    async fn stamps_are_kept_in_memory_and_in_the_store() {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(directory.path().join("context.db"), Durability::Process).unwrap();
        let client = crate::files::tests::client_with(|options| Options { store, ..options }).await;
        let entry = |name: &str| (ObjectId::new(name), (Digest::of(name.as_bytes()), STAMP));
        let note = StampNote::default();
        assert!(note.read(&client).await.unwrap().is_empty());
        note.add(&client, &Stamps::default(), vec![entry("a")]).await.unwrap();
        let known = note.read(&client).await.unwrap();
        note.add(&client, &known, vec![entry("b")]).await.unwrap();
        let both = Stamps::from([entry("a"), entry("b")]);
        assert_eq!(*note.read(&client).await.unwrap(), both);
        assert_eq!(*StampNote::default().read(&client).await.unwrap(), both, "as a later process reads it");
        note.add(&client, &Stamps::default(), Vec::new()).await.unwrap();
        assert_eq!(*note.read(&client).await.unwrap(), both, "nothing was added");
        client.store().set_note(&name(&client), "").await.unwrap();
        assert_eq!(*note.read(&client).await.unwrap(), both, "the store is asked once");
    }
}
