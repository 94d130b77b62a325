//! Comparing a session's files with the disk: at a resume, after lost events, and for clients that do not
//! watch.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::SystemTime;

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::index::Observation;
use context_model::source::FilesystemSource;
use context_model::time::TxId;
use context_session::Session;
use context_session::catalog::Meta;
use context_session::client::Client;
use context_session::error::Result;
use context_session::paths::{Disk, Place};
use context_store::{AsOf, KnownAt, StoreError};

use super::index::{FileReader, ReadFor};
use super::observed::{ObservedFile, file_id};
use super::reading::FileState;
use super::stamps::{Stamp, StampNote, Stamps};

/// How many threads read files while a session is reconciled. More than the number of cores, because most of the time
/// is spent waiting for a cold disk.
const READERS: usize = 8;

/// The findings of a comparison of files with the disk.
#[derive(Default)]
pub struct Compared {
    /// Files that differ from their stored version.
    pub changed: Vec<ObservedFile>,
    /// Files about which nothing is known, because their directory is missing or can't be read.
    pub unreachable: Vec<Place>,
    /// Files without bytes that had some in an earlier version.
    pub lost: Vec<ObjectId>,
}

/// The stored state of a session's files (or only of those in `only`); `is_known` tells which texts the model knows.
pub fn stored_files(
    file_reader: &FileReader,
    session: &Session,
    only: Option<&HashSet<ObjectId>>,
    is_known: impl Fn(&ObjectId) -> bool,
) -> Vec<Stored> {
    let ids = session.sets.index().iter().filter(|id| only.is_none_or(|only| only.contains(*id)));
    ids.filter_map(|id| Stored::of(session.catalog.get(id)?, file_reader.need(session, id, is_known(id))))
        .collect()
}

/// Compares files with the disk, and attaches trackers on the way. What can't be reached keeps its last version.
pub async fn compare_all(
    file_reader: &FileReader,
    note: &StampNote,
    mut files: Vec<Stored>,
) -> Result<Compared> {
    let mut found = Compared::default();
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
    let since = client.newest();
    let shares = files.len().div_ceil(READERS).max(16);
    let mut readers = Vec::new();
    for share in files.chunks(shares) {
        let (share, file_reader, stamps) = (share.to_vec(), file_reader.clone(), Arc::clone(&stamps));
        readers.push(tokio::task::spawn_blocking(move || {
            let paths = &file_reader.client.paths;
            let compared = share.into_iter().map(|stored| {
                let disk = paths.locate(&stored.source);
                if let Disk::At(path) = &disk {
                    file_reader.tracking.track(path, &stored.source);
                }
                let limit = file_reader.limit(stored.need);
                compare(&file_reader, disk, stored, (&stamps, since), limit)
            });
            compared.collect::<Vec<_>>()
        }));
    }
    let mut fresh = Vec::new();
    for reader in readers {
        for outcome in reader.await.map_err(|e| StoreError::Unavailable(e.to_string()))? {
            match outcome {
                Comparison::Changed(seen) => found.changed.push(*seen),
                Comparison::Read(id, hash, stamp) => fresh.push((id, (hash, stamp))),
                Comparison::Unreachable(place) => found.unreachable.push(place),
                Comparison::Same => {}
            }
        }
    }
    note.add(client, &stamps, fresh).await?;
    Ok(found)
}

/// Returns whether an object without content and hash had either in an earlier version: then it was deleted, not just
/// discovered.
async fn was_more(client: &Client, stored: &Stored) -> Result<bool> {
    let before = AsOf { known: Some(KnownAt::Tx(TxId(stored.tx.0.saturating_sub(1)))), valid_time: None };
    Ok(client.store().get(&file_id(&stored.source), before).await?.is_some())
}

/// The stored state of a file, as far as a comparison needs it.
#[derive(Clone)]
pub struct Stored {
    source: FilesystemSource,
    hash: Option<Digest>,
    is_null: bool,
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
        let (hash, is_null) = (current.source_hash, current.is_null);
        let lacks_text = need == ReadFor::Text && meta.lacks_text();
        Some(Self { source, hash, is_null, lacks_text, tx: meta.tx, need, only_discovered: false })
    }

    /// Returns whether it is only discovered, or deleted, or too large.
    fn is_blank(&self) -> bool {
        self.is_null && self.hash.is_none()
    }
}

/// The outcome of comparing a file with its stored version.
enum Comparison {
    /// It differs from its stored version.
    Changed(Box<ObservedFile>),
    /// It equals its stored version. It had to be read this time, but need not be next time.
    Read(ObjectId, Digest, Stamp),
    /// Nothing can be said.
    Unreachable(Place),
    /// It equals its stored version.
    Same,
}

/// Returns what has changed at a place, if anything. A path that was only discovered stays so until it is read.
fn compare(
    file_reader: &FileReader,
    disk: Disk,
    stored: Stored,
    (stamps, since): (&Stamps, TxId),
    limit: u64,
) -> Comparison {
    let Disk::At(path) = &disk else { return Comparison::Same };
    if stored.only_discovered {
        return Comparison::Same;
    }
    let id = file_id(&stored.source);
    let stamp = Stamp::of(path);
    if let (Some((hash, before)), Some(now)) = (stamps.get(&id), &stamp)
        && stored.hash == Some(*hash)
        && before == now
        && !stored.lacks_text
    {
        return Comparison::Same;
    }
    let state = file_reader.read(path, limit);
    let paths = &file_reader.client.paths;
    if state == FileState::Unreachable {
        return Comparison::Unreachable(paths.place(stored.source, disk));
    }
    let read = state.hash();
    let same = match state.observation() {
        Observation::Read(_) => stored.hash == read && !(stored.lacks_text && state.text().is_some()),
        Observation::Deleted | Observation::Oversized => stored.is_blank(),
        Observation::Discovered | Observation::Unreadable | Observation::Unreachable => true,
    };
    if same {
        let settled =
            stamp.filter(|stamp| stamp.is_settled(SystemTime::now()) && Stamp::of(path) == Some(*stamp));
        return match (read, settled) {
            (Some(hash), Some(stamp)) => Comparison::Read(id, hash, stamp),
            _ => Comparison::Same,
        };
    }
    let seen = ObservedFile::of(paths.place(stored.source, disk), state, Some(since));
    Comparison::Changed(Box::new(seen.made()))
}

#[cfg(test)]
mod tests {
    use camino::{Utf8Path, Utf8PathBuf};

    use super::*;
    use crate::tracking::Tracking;
    use context_session::options::Options;

    fn stored(path: &Utf8Path, text: &str) -> Stored {
        Stored {
            source: FilesystemSource { filesystem_id: "disk".into(), path: path.to_string() },
            hash: Some(Digest::of(text.as_bytes())),
            is_null: false,
            lacks_text: false,
            tx: TxId(1),
            need: ReadFor::Text,
            only_discovered: false,
        }
    }

    async fn outcome(path: &Utf8Path, stored: Stored) -> Comparison {
        let client = Arc::new(
            crate::tests::client_with(|options| Options { cwd: "/no/where".into(), ..options }).await,
        );
        let file_reader = FileReader { client, tracking: Arc::new(Tracking::new(false, 0)) };
        compare(&file_reader, Disk::At(path.to_owned()), stored, (&Stamps::new(), TxId(1)), 1 << 20)
    }

    /// A file that was read once need not be read again, unless it may be written again within the same tick of the
    /// clock.
    #[tokio::test]
    async fn a_file_that_had_to_be_read_is_stamped_if_it_is_settled() {
        // A file that was there before the test was compiled.
        let old = Utf8PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let text = std::fs::read_to_string(&old).unwrap();
        let Comparison::Read(id, hash, stamp) = outcome(&old, stored(&old, &text)).await else {
            panic!("it is as it was, and no stamp was known")
        };
        assert_eq!(id, file_id(&stored(&old, &text).source));
        assert_eq!((hash, Some(stamp)), (Digest::of(text.as_bytes()), Stamp::of(&old)));

        let directory = tempfile::tempdir().unwrap();
        let new = Utf8Path::from_path(directory.path()).unwrap().join("new");
        std::fs::write(&new, "text").unwrap();
        let later = SystemTime::now() + std::time::Duration::from_secs(3_600);
        std::fs::File::options().write(true).open(&new).unwrap().set_modified(later).unwrap();
        assert!(matches!(outcome(&new, stored(&new, "text")).await, Comparison::Same));
        assert!(matches!(outcome(&new, stored(&new, "other")).await, Comparison::Changed(_)));
        let by_hash = Stored { lacks_text: true, ..stored(&new, "text") };
        assert!(matches!(outcome(&new, by_hash).await, Comparison::Changed(_)));
        let gone = new.with_file_name("gone");
        assert!(matches!(outcome(&gone, stored(&gone, "text")).await, Comparison::Changed(_)));
        let blank = Stored { hash: None, is_null: true, ..stored(&gone, "") };
        assert!(matches!(outcome(&gone, blank).await, Comparison::Same));
        let far = new.with_file_name("no").join("where");
        assert!(matches!(outcome(&far, stored(&far, "text")).await, Comparison::Unreachable(_)));
    }
}
