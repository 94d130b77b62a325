//! Sends the journal's transactions to XTDB, in order, each exactly once.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::time::TxId;
use serde_json::{Value, json};

use super::progress::private;
use super::shared::Shared;
use super::status::JournalWrite;
use crate::XtdbStore;
use crate::mark::Marks;
use crate::write::Late;
use context_store::{Result, Store, StoreError, Version, Write};

/// How many versions one transaction of XTDB contains at most.
const MOST_VERSIONS: usize = 64;

/// How many bytes of documents one transaction of XTDB contains at most; a longer version gets its own transaction. A node
/// holds the transactions of all its clients in memory, which takes several times their length.
const MOST_BYTES: usize = 1 << 20;

/// How long the sender waits for the end of a turn after its first write, so that a turn becomes one transaction of XTDB.
const MOST_LINGER: Duration = Duration::from_secs(1);

/// How long it waits after that for the writes that follow the turn's check for others' writes: those of the messages and
/// of the session. A caller that waits for everything to be sent ends it sooner.
const LINGER: Duration = Duration::from_millis(100);

/// How often the sender checks for writes of other processes to the journal.
const LOOK: Duration = Duration::from_millis(500);

/// The longest pause between attempts to reach a node.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How many writes are looked up in the journal at once at most.
const MOST_FOUND: usize = 1_000;

/// How many versions of one object are assembled in advance at most.
const AHEAD: usize = 64;

/// Versions that were read from the journal in advance: the next ones of each object. A growing document is assembled once
/// for all of them.
type Ahead = HashMap<ObjectId, VecDeque<Version>>;

/// A position in the journal: everything up to the n-th version of a transaction, or all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct JournalPosition {
    tx: u64,
    /// How many versions of the next transaction are included.
    more: u64,
}

impl JournalPosition {
    fn from_note(note: &Value) -> Option<Self> {
        Some(Self { tx: note["tx"].as_u64()?, more: note["more"].as_u64()? })
    }

    fn note(self) -> Value {
        json!({ "tx": self.tx, "more": self.more })
    }
}

/// The sender: runs until the store is closed.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut pause = Duration::from_millis(50);
    let Some(_lock) = lock(&shared).await else { return };
    shared.status().is_sender = true;
    loop {
        if shared.is_closing.load(Ordering::Acquire) {
            return;
        }
        match send_all(&shared).await {
            Ok(()) => pause = Duration::from_millis(50),
            Err(StoreError::Closed) => return,
            Err(error) => {
                shared.failed(&error);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// The lock that the one sender of a journal holds. It is released when the process ends, however it ends.
async fn lock(shared: &Shared) -> Option<File> {
    let file = private(&shared.lock_file);
    let file = match file {
        Ok(file) => file,
        Err(error) => {
            let path = shared.lock_file.display();
            shared.failed(&StoreError::Unavailable(format!(
                "{path} can't be opened, so nothing is sent: {error}"
            )));
            return None;
        }
    };
    while file.try_lock().is_err() {
        if shared.is_closing.load(Ordering::Acquire) {
            return None;
        }
        // The sending process tells the others through the hint file next to the journal.
        advance(shared, shared.progress.reload());
        if let Err(error) = probe(shared).await {
            shared.failed(&error);
        }
        tokio::time::sleep(LOOK).await;
    }
    Some(file)
}

/// Probes the node, unless it is known to answer.
async fn probe(shared: &Shared) -> Result<Arc<XtdbStore>> {
    let remote = shared.connect().await?;
    if !shared.status().is_connected {
        remote.latest_tx().await?;
        shared.went_well();
    }
    Ok(remote)
}

/// Sends everything queued and then everything that arrives, until something fails.
async fn send_all(shared: &Shared) -> Result<()> {
    let remote = probe(shared).await?;
    let note = remote.note().await?;
    let mut position = note.as_ref().and_then(JournalPosition::from_note).unwrap_or_default();
    if position.tx > shared.journal.latest_tx().await?.0 {
        // The journal is older than what was sent, for instance one from a backup. What XTDB already has is not written
        // again.
        position = JournalPosition::default();
    }
    let mut ahead = Ahead::new();
    loop {
        let latest = shared.journal.latest_tx().await?;
        if position.tx >= latest.0 {
            ahead.clear();
            sent(shared, position)?;
            tokio::select! {
                () = shared.work.notified() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
            probe(shared).await?;
            // The write that woke it may have been sent already, and a turn that begins now must not be split at its start.
            if shared.journal.latest_tx().await? > latest {
                turn_end(shared).await;
            }
            continue;
        }
        let pending = pending(shared, position, latest).await?;
        position = send(shared, &remote, position, pending, &mut ahead).await?;
        sent(shared, position)?;
        shared.went_well();
    }
}

/// Waits for the next check for others' writes and for what the turn writes after it, or for a request to send now.
async fn turn_end(shared: &Shared) {
    let mut turn = shared.turn.subscribe();
    for limit in [MOST_LINGER, LINGER] {
        // After the subscription, so that no waiting caller is missed.
        if shared.waiting.load(Ordering::Acquire) > 0 {
            return;
        }
        let _ = tokio::time::timeout(limit, turn.changed()).await;
    }
}

fn sent(shared: &Shared, position: JournalPosition) -> Result<()> {
    let tx = TxId(position.tx);
    advance(shared, tx);
    shared.progress.note_sent(tx)
}

/// Notes that XTDB has everything up to this transaction of the journal.
fn advance(shared: &Shared, tx: TxId) {
    {
        let mut status = shared.status();
        status.latest = status.latest.max(tx);
        status.written = status.written.split_off(&TxId(tx.0 + 1));
        status.brought_in.retain(|brought| *brought > tx);
    }
    shared.sent.send_if_modified(|known| std::mem::replace(known, tx) != tx);
}

/// The objects that the transactions after a position wrote, for as many transactions as fit into a batch.
async fn pending(
    shared: &Shared,
    position: JournalPosition,
    latest: TxId,
) -> Result<BTreeMap<TxId, Vec<JournalWrite>>> {
    let known = {
        let status = shared.status();
        let mut known = BTreeMap::new();
        let mut versions = 0;
        for tx in position.tx + 1..=latest.0 {
            let tx = TxId(tx);
            if status.brought_in.contains(&tx) {
                known.insert(tx, Vec::new());
                continue;
            }
            let Some(written) = status.written.get(&tx) else { break };
            versions += written.len();
            known.insert(tx, written.clone());
            if versions >= MOST_VERSIONS {
                break;
            }
        }
        known
    };
    if !known.is_empty() {
        return Ok(known);
    }
    // Written before this process started, or by another process. The journal has the list.
    let mut ids: BTreeMap<TxId, Vec<ObjectId>> = BTreeMap::new();
    for (tx, id) in shared.journal.written_after(TxId(position.tx), MOST_FOUND).await? {
        ids.entry(tx).or_default().push(id);
    }
    let counted = |(tx, ids): (TxId, Vec<ObjectId>)| (tx, JournalWrite::counted(ids.into_iter(), true));
    let mut found: BTreeMap<TxId, Vec<JournalWrite>> = ids.into_iter().map(counted).collect();
    // Later writes are left for the next batch, so that this process recognizes its own transactions.
    found.retain(|tx, _| *tx <= latest);
    if found.is_empty() {
        found.insert(latest, Vec::new());
    }
    let mut status = shared.status();
    for (tx, written) in &mut found {
        if status.brought_in.contains(tx) {
            written.clear();
        }
        let known = status.written.entry(*tx).or_insert_with(|| written.clone());
        written.clone_from(known);
    }
    Ok(found)
}

/// Sends one batch. Returns the position after it.
async fn send(
    shared: &Shared,
    remote: &XtdbStore,
    start: JournalPosition,
    pending: BTreeMap<TxId, Vec<JournalWrite>>,
    ahead: &mut Ahead,
) -> Result<JournalPosition> {
    let mut batch: Vec<(Version, bool)> = Vec::new();
    let mut last: HashMap<ObjectId, i64> = HashMap::new();
    let mut bytes = 0;
    let mut end = start;
    'all: for (tx, written) in pending {
        let skip = if tx.0 == start.tx + 1 { start.more } else { 0 };
        let versions = versions(shared, tx, &written, ahead).await?;
        for (index, (version, is_doubtful)) in (0_u64..).zip(versions.iter().cloned()) {
            if index < skip {
                continue;
            }
            let id = version.document.id().clone();
            let time = version.valid_time.millis();
            let before =
                batch.iter().rev().map(|(before, _)| before).find(|before| *before.document.id() == id);
            let length = remote.growth(before, &version.document);
            let is_full = batch.len() >= MOST_VERSIONS || (bytes > 0 && bytes + length > MOST_BYTES);
            // In one transaction, XTDB keeps several versions of an object only if their valid times differ.
            if is_full || last.get(&id).is_some_and(|before| *before >= time) {
                end = JournalPosition { tx: tx.0 - 1, more: index };
                // All of this transaction is read again with the next batch.
                put_back(ahead, versions);
                break 'all;
            }
            last.insert(id, time);
            bytes += length;
            batch.push((version, is_doubtful));
        }
        end = JournalPosition { tx: tx.0, more: 0 };
    }
    let doubtful: HashSet<ObjectId> =
        batch.iter().filter(|(_, is)| *is).map(|(version, _)| version.document.id().clone()).collect();
    let missing = missing(shared, remote, batch).await?;
    if missing.is_empty() {
        return Ok(end);
    }
    let ids: Vec<ObjectId> = missing.iter().map(|version| version.document.id().clone()).collect();
    let absent = {
        let status = shared.status();
        let content = missing.iter().map(|version| &version.document);
        let content = content.filter(|document| document.object_type().is_content());
        let new = content.map(Document::id).filter(|id| status.names.lacks(id) && !doubtful.contains(*id));
        new.cloned().collect()
    };
    let mut marks = Marks::new();
    let writes = missing.into_iter().map(|version| {
        let (document, valid_time) = (version.document, Some(version.valid_time));
        if let Some(erased) = version.erased {
            marks.insert((document.id().clone(), version.valid_time), erased);
        }
        Write::Put { document, valid_time }
    });
    let writes = writes.collect();
    match remote.forward(writes, &Late { note: end.note(), marks, absent }).await {
        Ok(()) => {
            shared.status().names.add(&ids);
            Ok(end)
        }
        // XTDB will never accept it, and later versions must not wait forever. It stays in the journal.
        Err(error @ StoreError::Invalid(_)) => {
            tracing::warn!(%error, "a version stays only in the journal");
            shared.failed(&error);
            Ok(end)
        }
        Err(error) => Err(error),
    }
}

/// Those of a batch that XTDB lacks. Of versions that share a millisecond and a content, XTDB must have as many as the
/// journal has up to this one.
async fn missing(shared: &Shared, remote: &XtdbStore, batch: Vec<(Version, bool)>) -> Result<Vec<Version>> {
    let (mut asked, mut counts) = (Vec::new(), Vec::new());
    {
        let status = shared.status();
        for (place, (version, is_doubtful)) in batch.iter().enumerate() {
            if *is_doubtful && !status.names.lacks(version.document.id()) {
                asked.push((place, version.clone()));
            }
        }
    }
    if !asked.is_empty() {
        counts = remote.count_like(asked).await?;
    }
    let mut there = HashSet::new();
    for (place, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        let (version, _) = &batch[place];
        if count >= shared.journal.count_like(version, version.tx_id).await? {
            there.insert(place);
        }
    }
    let versions = batch.into_iter().map(|(version, _)| version).enumerate();
    Ok(versions.filter(|(place, _)| !there.contains(place)).map(|(_, version)| version).collect())
}

/// The versions that one transaction of the journal wrote, in the same order at every attempt, and whether XTDB may already
/// have them.
async fn versions(
    shared: &Shared,
    tx: TxId,
    written: &[JournalWrite],
    ahead: &mut Ahead,
) -> Result<Vec<(Version, bool)>> {
    let mut versions = Vec::new();
    let mut written: Vec<&JournalWrite> = written.iter().collect();
    written.sort_by(|a, b| a.id.cmp(&b.id));
    for JournalWrite { id, times, is_doubtful } in written {
        let queue = ahead.entry(id.clone()).or_default();
        while queue.front().is_some_and(|version| version.tx_id < tx) {
            queue.pop_front();
        }
        if queue.is_empty() {
            let before = TxId(tx.0.saturating_sub(1));
            queue.extend(shared.journal.history_page(id, before, AHEAD.max(*times)).await?);
        }
        while queue.front().is_some_and(|version| version.tx_id == tx) {
            versions.extend(queue.pop_front().map(|version| (version, *is_doubtful)));
        }
        if queue.is_empty() {
            ahead.remove(id);
        }
    }
    Ok(versions)
}

fn put_back(ahead: &mut Ahead, versions: Vec<(Version, bool)>) {
    for (version, _) in versions.into_iter().rev() {
        ahead.entry(version.document.id().clone()).or_default().push_front(version);
    }
}
