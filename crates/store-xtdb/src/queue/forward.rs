//! Sends the journal's transactions to XTDB, in order, each exactly once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use context_model::id::ObjectId;
use context_model::object::{Document, ObjectType};
use context_model::time::TxId;

use super::pending::{Ahead, MOST_VERSIONS, pending, put_back, versions};
use super::progress::{Sent, private};
use super::shared::Shared;
use super::standing::{JournalPosition, Standing};
use super::status::JournalWrite;
use crate::XtdbStore;
use crate::inner::WRITERS;
use crate::mark::Marks;
use crate::write::Late;
use context_store::{Result, Store, StoreError, Version, Write};

/// The most bytes of documents that one transaction of XTDB contains; a longer version gets its own transaction. A node
/// holds the transactions of all its clients in memory, which takes several times their length.
const MOST_BYTES: usize = 1 << 20;

/// Time that the sender waits for the end of a turn after its first write, so that a turn becomes one transaction of XTDB.
const MOST_LINGER: Duration = Duration::from_secs(1);

/// Time that it waits after that for the writes that follow the turn's check for others' writes: those of the messages and
/// of the session. A caller that waits for everything to be sent ends it sooner.
const LINGER: Duration = Duration::from_millis(100);

/// Interval at which the sender checks for writes of other processes to the journal.
const LOOK: Duration = Duration::from_millis(500);

/// Notice for users about a database that has lost versions that this machine sent.
const LOST: &str = "it lacks what this machine had sent to it, so that is sent again";

/// The longest pause between attempts to reach a node.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The sender writes only what the database still lacks, so a list of its objects from before another store was opened will do.
const ANY_STORE: u64 = 0;

/// The sender: runs until the store is closed.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut pause = Duration::from_millis(50);
    let Some(_lock) = lock(&shared).await else { return };
    while let Err(error) = shared.begin_run().await {
        if matches!(error, StoreError::Closed) || shared.is_closing.load(Ordering::Acquire) {
            return;
        }
        shared.failed(&error);
        tokio::time::sleep(LONGEST_PAUSE).await;
    }
    shared.status().is_sender = true;
    loop {
        if shared.is_closing.load(Ordering::Acquire) {
            return;
        }
        match send_all(&shared).await {
            Ok(()) => pause = Duration::from_millis(50),
            Err(StoreError::Closed) => return,
            // The writer's mark is not the one that it left: begin from the position in the mark.
            Err(StoreError::Conflict(id)) if id.as_str().starts_with(WRITERS) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => {
                shared.failed(&error);
                let _ = tokio::time::timeout(pause, next_caller(&shared)).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// The lock that the one sender of a journal holds. It is released when the process ends, however it ends.
async fn lock(shared: &Shared) -> Option<File> {
    let file = loop {
        match private(&shared.lock_file) {
            Ok(file) => break file,
            Err(error) => {
                let path = shared.lock_file.display();
                shared.failed(&StoreError::Unavailable(format!(
                    "{path} can't be opened, so nothing is sent: {}",
                    context_platform::reason(&error)
                )));
            }
        }
        if shared.is_closing.load(Ordering::Acquire) {
            return None;
        }
        tokio::time::sleep(LONGEST_PAUSE).await;
    };
    while file.try_lock().is_err() {
        if shared.is_closing.load(Ordering::Acquire) {
            return None;
        }
        // The sending process tells the others through the hint file next to the journal.
        advance(shared, shared.progress.reload());
        shared.is_compared.send_replace(true);
        if let Err(error) = shared.find_writer().await {
            shared.failed(&error);
        }
        if let Err(error) = shared.probe().await {
            shared.failed(&error);
        }
        tokio::time::sleep(LOOK).await;
    }
    Some(file)
}

/// Sends everything queued and then everything that arrives, until something fails or another node or name is to be used.
async fn send_all(shared: &Shared) -> Result<()> {
    let remote = shared.probe().await?;
    let (standing, mark) = shared.standing(&remote).await?;
    let mut position = match standing {
        Standing::At(position) => position,
        Standing::Taken(sent) => {
            if mark.is_some_and(|mark| mark["run"].as_str() == shared.writer().run()) {
                // The copy was made while this process was running, which may have taken the other's changes for its own.
                shared.progress.forget_positions()?;
            }
            return shared.rename(sent).await;
        }
        Standing::Lost(sent) => {
            shared.lost(sent).await?;
            return shared.forget(&remote, LOST);
        }
    };
    remote.sends_as(shared.writer().run()).await;
    let mark = match mark.and_then(|mark| mark["number"].as_u64()) {
        Some(number) => Some((number, shared.mark_tx(&remote, number).await?)),
        None => None,
    };
    let mut sender = Sender { remote, mark, is_unnoted: false };
    sent(shared, position, sender.mark)?;
    shared.compared(&sender.remote);
    let mut ahead = Ahead::new();
    loop {
        let latest = shared.journal.latest_tx().await?;
        if position.tx >= latest.0 {
            ahead.clear();
            if sender.is_unnoted {
                // All of it was there. Without a note, nothing would tell that the database has lost it.
                sender.note(shared, position).await?;
            }
            sent(shared, position, sender.mark)?;
            tokio::select! {
                () = shared.work.notified() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
            if !Arc::ptr_eq(&shared.probe().await?, &sender.remote) {
                return Ok(());
            }
            // The write that woke it may have been sent already, and a turn that begins now must not be split at its start.
            if shared.journal.latest_tx().await? > latest {
                turn_end(shared).await;
            }
            continue;
        }
        let pending = pending(shared, position, latest).await?;
        position = sender.send(shared, position, pending, &mut ahead).await?;
        sent(shared, position, sender.mark)?;
        shared.went_well();
    }
}

/// The connection of a sender, and its mark there.
struct Sender {
    remote: Arc<XtdbStore>,
    /// The number of the mark and the transaction that wrote it; `None` before the first one.
    mark: Option<(u64, TxId)>,
    /// Something of this machine was found there after the mark was written.
    is_unnoted: bool,
}

/// Waits for a caller that begins to wait for everything to be sent: maybe it knows that the node is back.
async fn next_caller(shared: &Shared) {
    let mut turn = shared.turn.subscribe();
    while turn.changed().await.is_ok() && shared.waiting.load(Ordering::Acquire) == 0 {}
}

/// Waits for the next check for others' writes and for the turn's writes after it, or for a request to send now.
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

fn sent(shared: &Shared, position: JournalPosition, mark: Option<(u64, TxId)>) -> Result<()> {
    advance(shared, TxId(position.tx));
    let noted = shared.progress.sent();
    let mark_tx = mark.map(|(_, tx)| tx.0);
    let mark = mark.map(|(number, _)| (shared.writer().name, number));
    let is_noted = (&noted.mark, noted.mark_tx) == (&mark, mark_tx);
    if noted.place.tx == position.tx && is_noted && noted.place.millis.is_some() {
        return Ok(());
    }
    shared.progress.note_sent(Sent { place: shared.place(position.tx)?, mark, mark_tx })
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

impl Sender {
    /// Sends one batch. Returns the position after it.
    async fn send(
        &mut self,
        shared: &Shared,
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
                let length = self.remote.growth(before, &version.document);
                let is_full = batch.len() >= MOST_VERSIONS || (bytes > 0 && bytes + length > MOST_BYTES);
                // In one transaction, XTDB keeps several versions of an object only if their valid times differ. Versions are
                // named by their transactions, so each has one, but for those of chats and sessions, of which each call makes some.
                let is_named =
                    !matches!(version.document.object_type(), ObjectType::Chat | ObjectType::Session);
                if is_full || last.get(&id).is_some_and(|before| is_named || *before >= time) {
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
        let is_any = !batch.is_empty();
        meet_first(shared, &self.remote, &batch).await?;
        let missing = missing(shared, &self.remote, batch).await?;
        if missing.is_empty() {
            self.is_unnoted |= is_any;
            return Ok(end);
        }
        let ids: Vec<ObjectId> = missing.iter().map(|version| version.document.id().clone()).collect();
        let absent = {
            let status = shared.status();
            let content = missing.iter().map(|version| &version.document);
            let content = content.filter(|document| document.object_type().is_content());
            let new = content
                .map(Document::id)
                .filter(|id| status.names.lacks(id, ANY_STORE) && !doubtful.contains(*id));
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
        let note = end.note(shared.place(end.tx)?);
        match self.remote.forward(writes, &Late { note, marks, absent }).await {
            Ok(Some(mark)) => {
                shared.status().names.add(&ids);
                (self.mark, self.is_unnoted) = (Some(mark), false);
                Ok(end)
            }
            Ok(None) => {
                shared.status().names.add(&ids);
                self.is_unnoted = true;
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

    /// Notes the position in the mark, with nothing else.
    async fn note(&mut self, shared: &Shared, position: JournalPosition) -> Result<()> {
        let mark = self.remote.note(position.note(shared.place(position.tx)?)).await?;
        (self.mark, self.is_unnoted) = (Some(mark), false);
        Ok(())
    }
}

/// Fetches XTDB's latest versions of those objects that a batch begins in the journal. Others' changes to them that were
/// heard of before that were passed over as changes of objects unknown to this machine, and the last one may hold from a
/// later moment than the machine's own version.
async fn meet_first(shared: &Shared, remote: &XtdbStore, batch: &[(Version, bool)]) -> Result<()> {
    let known: BTreeMap<ObjectId, TxId> = {
        let status = shared.status();
        let versions = batch.iter().rev().map(|(version, _)| version);
        let there = versions.filter(|version| !status.names.lacks(version.document.id(), ANY_STORE));
        there.map(|version| (version.document.id().clone(), version.tx_id)).collect()
    };
    let mut ids = Vec::new();
    for (id, tx) in known {
        let first = shared.journal.history_page(&id, TxId(0), 1).await?.pop();
        if first.is_some_and(|version| version.tx_id == tx) {
            ids.push(id);
        }
    }
    match shared.meet_in(remote, &ids).await {
        // A version that can't be read must not hold up what is to be sent.
        Err(error) if !matches!(error, StoreError::Unavailable(_) | StoreError::Closed) => {
            tracing::warn!(%error, "another client's version of an object can't be fetched");
            shared.failed(&error);
            Ok(())
        }
        met => met,
    }
}

/// Those of a batch that XTDB lacks. If versions share a millisecond and a content, XTDB must have as many of them as the
/// journal has up to this one.
async fn missing(shared: &Shared, remote: &XtdbStore, batch: Vec<(Version, bool)>) -> Result<Vec<Version>> {
    let (mut asked, mut counts) = (Vec::new(), Vec::new());
    {
        let status = shared.status();
        for (place, (version, is_doubtful)) in batch.iter().enumerate() {
            if *is_doubtful && !status.names.lacks(version.document.id(), ANY_STORE) {
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
        let here = shared.journal.versions_at(version.document.id(), version.valid_time).await?;
        let alike = here.iter().filter(|one| one.tx_id <= version.tx_id && one.is_like(version));
        if count >= alike.count() {
            there.insert(place);
        }
    }
    let versions = batch.into_iter().map(|(version, _)| version).enumerate();
    Ok(versions.filter(|(place, _)| !there.contains(place)).map(|(_, version)| version).collect())
}
