//! Comparing a session's files with the disk: at a resume, after lost events, and for clients that do not
//! watch.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::SystemTime;

use crate::session::Session;
use crate::session::catalog::Meta;
use crate::session::client::Client;
use crate::session::error::Result;
use crate::session::paths::{Disk, Place};
use camino::Utf8PathBuf;
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::index::{Action, Current, decide};
use context_model::source::FilesystemSource;
use context_model::time::TxId;
use context_store::{AsOf, KnownAt, StoreError};

use super::index::{FileReader, ReadFor};
use super::look::{ObservedFile, file_id};
use super::reading::FileState;
use super::stamps::{Stamp, StampNote, Stamps};

/// The number of threads that read files while a session is reconciled. It exceeds the number of cores, because most of the
/// time is spent waiting for a cold disk.
const READERS: usize = 8;

/// The findings of a comparison of files with the disk.
#[derive(Default)]
pub(crate) struct DiskComparison {
    /// Files that differ from their stored version.
    pub changed: Vec<ObservedFile>,
    /// Files about which nothing is known, because their directory is missing or can't be read.
    pub unreachable: Vec<Place>,
    /// Files without bytes that had some in an earlier version.
    pub lost: Vec<ObjectId>,
    /// Stamps of files that had to be read and equal their stored version: they need not be read next time.
    fresh: Vec<(ObjectId, (Digest, Stamp))>,
}

/// Returns the stored state of a session's files (or only of those in `only`); `is_known` is true for texts that the model
/// knows.
pub(crate) fn stored_files(
    file_reader: &FileReader,
    session: &Session,
    only: Option<&HashSet<ObjectId>>,
    is_known: impl Fn(&ObjectId) -> bool,
) -> Vec<Stored> {
    let ids = session.sets.index().iter().filter(|id| only.is_none_or(|only| only.contains(*id)));
    ids.filter_map(|id| Stored::of(session.catalog.get(id)?, file_reader.need(session, id, is_known(id))))
        .collect()
}

/// Compares files with the disk, and attaches trackers on the way. Files out of reach keep their last version.
pub(crate) async fn compare_all(
    file_reader: &FileReader,
    note: &StampNote,
    mut files: Vec<Stored>,
) -> Result<DiskComparison> {
    let mut found = DiskComparison::default();
    if files.is_empty() {
        return Ok(found);
    }
    let client = &file_reader.client;
    for stored in files.iter_mut().filter(|stored| stored.is_blank()) {
        stored.only_discovered = !was_more(client, stored).await?;
        if !stored.only_discovered {
            found.lost.push(file_id(&stored.source));
        }
    }
    let stamps = note.read(client).await?;
    file_reader.tracking.drives.read(client).await?;
    // On one thread, before the others begin: each tracked file takes a lock that all of them share, and a new watch waits for a
    // thread that they would keep from its core.
    let tracker = file_reader.clone();
    let located = tokio::task::spawn_blocking(move || {
        let locate = |stored: Stored| {
            let Disk::At(path) = tracker.client.paths.locate(&stored.source) else { return None };
            // Also if it need not be read.
            tracker.tracking.track(&path, &stored.source);
            Some((path, stored))
        };
        files.into_iter().filter_map(locate).collect::<Vec<_>>()
    });
    let located = located.await.map_err(|e| StoreError::Unavailable(e.to_string()))?;
    let shares = located.len().div_ceil(READERS).max(16);
    let mut readers = Vec::new();
    for share in located.chunks(shares) {
        let (share, file_reader, stamps) = (share.to_vec(), file_reader.clone(), Arc::clone(&stamps));
        readers.push(tokio::task::spawn_blocking(move || {
            let mut part = DiskComparison::default();
            for (path, stored) in share {
                part.compare(&file_reader, &stamps, path, stored);
            }
            part
        }));
    }
    for reader in readers {
        let part = reader.await.map_err(|e| StoreError::Unavailable(e.to_string()))?;
        found.changed.extend(part.changed);
        found.unreachable.extend(part.unreachable);
        found.fresh.extend(part.fresh);
    }
    note.add(client, &stamps, std::mem::take(&mut found.fresh)).await?;
    file_reader.tracking.drives.save(client).await?;
    Ok(found)
}

/// True if an object without content and hash had either in an earlier version: then it was deleted, not just
/// discovered.
async fn was_more(client: &Client, stored: &Stored) -> Result<bool> {
    let before = AsOf { known: Some(KnownAt::Tx(TxId(stored.tx.0.saturating_sub(1)))), valid_time: None };
    Ok(client.store().get(&file_id(&stored.source), before).await?.is_some())
}

/// The stored state of a file, as far as a comparison needs it.
#[derive(Clone)]
pub(crate) struct Stored {
    source: FilesystemSource,
    current: Current,
    /// Only the hash of the bytes is stored, and the text is needed.
    lacks_text: bool,
    tx: TxId,
    need: ReadFor,
    /// It has never been read.
    only_discovered: bool,
}

impl Stored {
    fn of(meta: &Meta, need: ReadFor) -> Option<Self> {
        let current = meta.current()?;
        let source = meta.file()?.clone();
        let lacks_text = need == ReadFor::Text && meta.lacks_text();
        Some(Self { source, current, lacks_text, tx: meta.tx, need, only_discovered: false })
    }

    /// True if it is only discovered, or deleted, or too large.
    fn is_blank(&self) -> bool {
        self.current.is_null && self.current.source_hash.is_none()
    }
}

impl DiskComparison {
    /// Adds the change of a file at a path, if any. A path that was only discovered stays so until it is read.
    fn compare(&mut self, file_reader: &FileReader, stamps: &Stamps, path: Utf8PathBuf, stored: Stored) {
        if stored.only_discovered {
            return;
        }
        let (id, stamp) = (file_id(&stored.source), Stamp::of(&path));
        if let (Some((hash, before)), Some(now)) = (stamps.get(&id), &stamp)
            && stored.current.source_hash == Some(*hash)
            && before == now
            && !stored.lacks_text
        {
            return;
        }
        let place = file_reader.client.paths.place(stored.source, Disk::At(path.clone()));
        let seen = file_reader.read_now(place, stored.need);
        if seen.state == FileState::Unreachable {
            self.unreachable.push(seen.place);
            return;
        }
        let brings_text = stored.lacks_text && seen.state.text().is_some();
        if brings_text || decide(Some(stored.current), seen.state.observation()) != Action::Unchanged {
            self.changed.push(seen.made());
            return;
        }
        let settled =
            stamp.filter(|stamp| stamp.is_settled(SystemTime::now()) && Stamp::of(&path) == Some(*stamp));
        if let (Some(hash), Some(stamp)) = (seen.state.hash(), settled) {
            self.fresh.push((id, (hash, stamp)));
        }
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;
    use crate::files::tracking::Tracking;
    use crate::session::options::Options;

    fn stored(path: &Utf8Path, text: &str) -> Stored {
        Stored {
            source: FilesystemSource { filesystem_id: "disk".into(), path: path.to_string() },
            current: Current { source_hash: Some(Digest::of(text.as_bytes())), is_null: false },
            lacks_text: false,
            tx: TxId(1),
            need: ReadFor::Text,
            only_discovered: false,
        }
    }

    async fn outcome(path: &Utf8Path, stored: Stored) -> DiskComparison {
        let client = Arc::new(
            crate::files::tests::client_with(|options| Options { cwd: "/no/where".into(), ..options }).await,
        );
        let file_reader = FileReader { client, tracking: Arc::new(Tracking::new(false, 0)) };
        let mut found = DiskComparison::default();
        found.compare(&file_reader, &Stamps::new(), path.to_owned(), stored);
        found
    }

    /// Returns the number of files reported as changed, as out of reach, and with a new stamp.
    async fn counts(path: &Utf8Path, stored: Stored) -> [usize; 3] {
        let found = outcome(path, stored).await;
        [found.changed.len(), found.unreachable.len(), found.fresh.len()]
    }

    /// A file that was read once need not be read again, unless it may be written again within the same tick of the
    /// clock.
    #[tokio::test]
    async fn settled_file_is_stamped_when_it_is_read() {
        // A file that was there before the test was compiled.
        let old = Utf8PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let text = std::fs::read_to_string(&old).unwrap();
        assert_eq!(counts(&old, stored(&old, &text)).await, [0, 0, 1], "no stamp was known");
        let (id, (hash, stamp)) = outcome(&old, stored(&old, &text)).await.fresh.remove(0);
        assert_eq!(id, file_id(&stored(&old, &text).source));
        assert_eq!((hash, Some(stamp)), (Digest::of(text.as_bytes()), Stamp::of(&old)));

        let directory = tempfile::tempdir().unwrap();
        let new = Utf8Path::from_path(directory.path()).unwrap().join("new");
        std::fs::write(&new, "text").unwrap();
        let later = SystemTime::now() + std::time::Duration::from_secs(3_600);
        std::fs::File::options().write(true).open(&new).unwrap().set_modified(later).unwrap();
        assert_eq!(counts(&new, stored(&new, "text")).await, [0, 0, 0]);
        assert_eq!(counts(&new, stored(&new, "other")).await, [1, 0, 0]);
        let by_hash = Stored { lacks_text: true, ..stored(&new, "text") };
        assert_eq!(counts(&new, by_hash).await, [1, 0, 0]);
        let gone = new.with_file_name("gone");
        assert_eq!(counts(&gone, stored(&gone, "text")).await, [1, 0, 0]);
        let blank = Stored { current: Current { source_hash: None, is_null: true }, ..stored(&gone, "") };
        assert_eq!(counts(&gone, blank).await, [0, 0, 0]);
        let far = new.with_file_name("no").join("where");
        assert_eq!(counts(&far, stored(&far, "text")).await, [0, 1, 0]);
    }
}
