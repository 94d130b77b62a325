//! The versions that the journal has and XTDB lacks: the list of them, and the versions themselves.

use std::collections::{BTreeMap, HashMap, VecDeque};

use context_model::id::ObjectId;
use context_model::time::TxId;

use super::shared::Shared;
use super::standing::JournalPosition;
use super::status::JournalWrite;
use context_store::{Result, Store, Version};

/// The most versions that one transaction of XTDB contains.
pub(super) const MOST_VERSIONS: usize = 64;

/// The most writes that are looked up in the journal at once.
const MOST_FOUND: usize = 1_000;

/// The most versions of one object that are assembled in advance.
const AHEAD: usize = 64;

/// Versions that were read from the journal in advance: the next ones of each object. A growing document is assembled once
/// for all of them.
pub(super) type Ahead = HashMap<ObjectId, VecDeque<Version>>;

/// The objects that the transactions after a position wrote, for as many transactions as fit into a batch.
pub(super) async fn pending(
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
    let last = found.last_key_value().map_or(latest, |(tx, _)| *tx);
    let brought = shared.journal.brought_between(TxId(position.tx), last).await?;
    // Later writes are left for the next batch, so that this process recognizes its own transactions.
    found.retain(|tx, _| *tx <= latest);
    if found.is_empty() {
        found.insert(latest, Vec::new());
    }
    let mut status = shared.status();
    for (tx, written) in &mut found {
        if brought.contains(tx) || status.brought_in.contains(tx) {
            written.clear();
        }
        let known = status.written.entry(*tx).or_insert_with(|| written.clone());
        written.clone_from(known);
    }
    Ok(found)
}

/// The versions that one transaction of the journal wrote, in the same order at every attempt, and whether XTDB may already
/// have them.
pub(super) async fn versions(
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

pub(super) fn put_back(ahead: &mut Ahead, versions: Vec<(Version, bool)>) {
    for (version, _) in versions.into_iter().rev() {
        ahead.entry(version.document.id().clone()).or_default().push_front(version);
    }
}
