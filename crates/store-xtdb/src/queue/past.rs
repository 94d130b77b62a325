//! The past of objects that other machines wrote: fetched when a read needs it, or reported as out of reach.
//!
//! The journal usually has only the latest version of others' objects. A note in the journal says so (`past of ID`:
//! `part`), until the whole history has been fetched (`whole`). An object without a note is one that this machine wrote
//! itself.

use std::collections::{HashMap, HashSet};

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::time::{Timestamp, TxId};

use super::contact::InTransit;
use super::shared::Shared;
use super::ties::Ties;
use crate::XtdbStore;
use crate::form::between;
use crate::resolve::Past;
use context_store::{AsOf, KnownAt, Receipt, Result, Store, StoreError, Transaction, Version, Write};

/// Factor by which a whole history may take longer than another read.
const PATIENCE: u32 = 10;

/// Number of attempts to write a version while other clients write to its object.
const MOST_ATTEMPTS: u32 = 8;

const PART: &str = "part";
const WHOLE: &str = "whole";

/// True if a read is one of the past that the journal may lack. Only the journal knows its state after one of its
/// transactions.
pub(super) fn is_past(at: AsOf) -> bool {
    match at.known {
        None => at.valid_time.is_some(),
        Some(KnownAt::Time(_)) => true,
        Some(KnownAt::Tx(_)) => false,
    }
}

impl Shared {
    /// Notes that only the latest versions of these objects are brought in, so that the journal may lack earlier ones.
    pub(super) async fn lacks_past(&self, versions: impl Iterator<Item = &Version>) -> Result<()> {
        let names: Vec<String> = versions.map(|version| note(version.document.id())).collect();
        if names.is_empty() { Ok(()) } else { self.journal.set_notes(names, PART).await }
    }

    /// The versions of some objects as of a point in the past.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` if XTDB can't be asked and the journal may lack one of them.
    pub(super) async fn get_past(&self, ids: &[ObjectId], at: AsOf) -> Result<Vec<Option<Version>>> {
        let here = self.journal.get_many(ids, at).await?;
        let mut answers = here.clone();
        let unsure = |(_, version): &(&ObjectId, &Option<Version>)| match (version, at.known) {
            // If a version begins to hold at exactly that moment, the journal cannot lack a closer one.
            (Some(version), None) => Some(version.valid_time) != at.valid_time,
            // The journal learned of it in time.
            (Some(_), Some(_)) => false,
            (None, _) => true,
        };
        let asked: Vec<ObjectId> = ids.iter().zip(&here).filter(unsure).map(|(id, _)| id.clone()).collect();
        if asked.is_empty() {
            return Ok(answers);
        }
        let there = match self.reachable() {
            Some(remote) => self.bounded(remote.get_many(&asked, at)).await.map(|there| (remote, there)),
            None => Err(self.unreachable()),
        };
        let (remote, there) = match there {
            Ok(there) => there,
            Err(StoreError::Unavailable(why)) => {
                self.tolerate(Err(StoreError::Unavailable(why.clone())))?;
                for id in &asked {
                    self.check_whole(id, &why).await?;
                }
                return Ok(answers);
            }
            Err(error) => return Err(error),
        };
        let new: Vec<Version> = there.into_iter().flatten().collect();
        let times: HashMap<ObjectId, Timestamp> =
            new.iter().map(|version| (version.document.id().clone(), version.valid_time)).collect();
        self.bring_in(&remote, new.into_iter().map(|version| vec![version]).collect()).await?;
        for (id, answer) in ids.iter().zip(&mut answers) {
            let Some(time) = times.get(id) else { continue };
            let found = AsOf { valid_time: at.known.map_or(at.valid_time, |_| Some(*time)), known: None };
            *answer = self.journal.get(id, found).await?;
        }
        Ok(answers)
    }

    /// Fetches all versions of an object that XTDB has and the journal lacks.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` if XTDB can't be asked and the journal may lack some of them.
    pub(super) async fn know_past(&self, id: &ObjectId) -> Result<()> {
        let why = match self.fetch_past(id).await {
            Ok(()) => return Ok(()),
            Err(StoreError::Unavailable(why)) => why,
            Err(error) => return Err(error),
        };
        self.tolerate(Err(StoreError::Unavailable(why.clone())))?;
        self.check_whole(id, &why).await
    }

    /// As [`Self::know_past`], for a caller that accepts the journal's versions. Fetches only the latest version of a chat or session.
    pub(super) async fn bring_history(&self, id: &ObjectId) -> Result<()> {
        let one = std::slice::from_ref(id);
        let mut known = self.journal.outlines(one).await?.pop().flatten();
        if known.is_none() {
            self.meet(one).await?;
            known = self.journal.outlines(one).await?.pop().flatten();
        }
        if self.reachable().is_none() || known.is_none_or(|outline| !outline.object_type.is_content()) {
            return Ok(());
        }
        let fetched = self.fetch_past(id).await;
        self.tolerate(fetched)
    }

    async fn fetch_past(&self, id: &ObjectId) -> Result<()> {
        let remote = self.reachable().ok_or_else(|| self.unreachable())?;
        if self.journal.outlines(std::slice::from_ref(id)).await?.iter().all(Option::is_none) {
            // The latest version first: if the rest does not come, an old one must not count as the latest. Where several hold
            // from its moment on, their order must stay.
            let times = self.bounded(remote.valid_times(id)).await?;
            if twice(&times).last() != times.last().copied() {
                self.bounded(self.meet_some(&remote, vec![id.clone()])).await?;
            }
        }
        loop {
            let way = InTransit::begin(self, vec![id.clone()]);
            let there = self.bounded(remote.valid_times(id)).await?;
            self.went_well();
            let here = self.journal.valid_times(id).await?;
            if !has_all(&here, &there) || self.has_unsent() {
                let past = tokio::time::timeout(self.read_timeout * PATIENCE, remote.past(id)).await;
                let past = past.unwrap_or_else(|_| Err(self.unreachable()))?;
                self.write_past(&remote, id, past, here, &there).await?;
            }
            if way.end(&mut self.status()).is_empty() {
                break;
            }
        }
        let note = note(id);
        if self.journal.note(&note).await?.as_deref() == Some(PART) {
            self.journal.set_note(&note, WHOLE).await?;
        }
        Ok(())
    }

    /// Writes those versions of a past that the journal lacks. A version of a growing document that follows one of them is
    /// written as the change that made it.
    ///
    /// `there`: from when on each of them holds.
    async fn write_past(
        &self,
        remote: &XtdbStore,
        id: &ObjectId,
        mut past: Past,
        here: Vec<Timestamp>,
        there: &[Timestamp],
    ) -> Result<()> {
        let shared: HashSet<Timestamp> = [&here, there].into_iter().flat_map(twice).collect();
        let mut stored: HashMap<Timestamp, usize> = HashMap::new();
        here.into_iter().for_each(|time| *stored.entry(time).or_default() += 1);
        let unsent = self.unsent_since();
        let _one = self.contact.lock().await;
        let mut ties = Ties::new();
        let mut before: Option<(Version, TxId)> = None;
        let mut alike: HashMap<Timestamp, Vec<Digest>> = HashMap::new();
        while let Some((version, _)) = past.next().map_err(|error| remote.told(error))? {
            let hash = version.document.content_hash();
            let same = alike.entry(version.valid_time).or_default();
            same.push(hash);
            let n = same.iter().filter(|other| **other == hash).count();
            let is_stored = match stored.get_mut(&version.valid_time).filter(|count| **count > 0) {
                // Another machine's version may share the moment with one that waits to be sent, or with any other.
                Some(_)
                    if shared.contains(&version.valid_time)
                        || unsent.is_some_and(|since| version.valid_time >= since) =>
                {
                    ties.insert((id.clone(), version.valid_time));
                    self.has(&version, n).await?
                }
                Some(count) => {
                    *count -= 1;
                    true
                }
                None => false,
            };
            if is_stored {
                before = None;
                continue;
            }
            let written = self.write_one_past(id, &version, n, before.as_ref()).await?;
            // Text erased in a version counts as erased in all versions that are stored as changes of it.
            before = written.filter(|_| version.erased.is_none()).map(|tx| (version, tx));
        }
        self.settle(remote, ties).await
    }

    /// Writes the n-th version like this one; returns its transaction, and `None` if it is stored meanwhile or refused.
    async fn write_one_past(
        &self,
        id: &ObjectId,
        version: &Version,
        n: usize,
        before: Option<&(Version, TxId)>,
    ) -> Result<Option<TxId>> {
        let mut before = before.filter(|_| version.erased.is_none());
        for attempt in 0.. {
            let latest = self.journal.outlines(std::slice::from_ref(id)).await?.pop().flatten();
            let latest = latest.map(|outline| outline.tx_id);
            if attempt > 0 && self.has(version, n).await? {
                return Ok(None);
            }
            let change = before.and_then(|(old, tx)| Some((between(&old.document, &version.document)?, *tx)));
            let written = match change {
                Some((patch, of)) => {
                    self.journal.write_grown(id.clone(), patch, version.valid_time, of, latest).await
                }
                None => {
                    let (document, valid_time) = (version.document.clone(), Some(version.valid_time));
                    let writes = vec![Write::Put { document, valid_time }];
                    let transaction = Transaction { writes, expected: vec![(id.clone(), latest)] };
                    self.journal.bring_in(transaction, std::slice::from_ref(&version.erased)).await
                }
            };
            match written {
                Ok(receipt) => return Ok(self.wrote_for_others(&receipt).then_some(receipt.tx_id)),
                Err(StoreError::Conflict(_)) if attempt < MOST_ATTEMPTS => before = None,
                // A version that the journal will never accept must not block the others.
                Err(error @ StoreError::Invalid(_)) => {
                    tracing::warn!(%error, "a version of another client can't be stored");
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Notes that a transaction of the journal wrote a version of others. True if it did.
    pub(super) fn wrote_for_others(&self, receipt: &Receipt) -> bool {
        let mut status = self.status();
        status.latest = status.latest.max(receipt.tx_id);
        let is_written = receipt.written.contains(&true);
        if is_written {
            status.brought_in.insert(receipt.tx_id);
        }
        is_written
    }

    /// # Errors
    /// `STORE_UNAVAILABLE` if the journal may lack versions of an object.
    async fn check_whole(&self, id: &ObjectId, why: &str) -> Result<()> {
        let is_known = self.journal.outlines(std::slice::from_ref(id)).await?.pop().flatten().is_some();
        let is_whole = if is_known {
            self.journal.note(&note(id)).await?.as_deref() != Some(PART)
        } else {
            let newest = self.areas().newest();
            self.status().names.lacks(id, newest)
        };
        if is_whole {
            return Ok(());
        }
        Err(StoreError::Unavailable(format!(
            "the journal may lack versions of {id} that another machine wrote, and the database can't be asked for them ({why}); \
             try again once it answers"
        )))
    }

    fn unreachable(&self) -> StoreError {
        let error = self.status().last_error.clone();
        StoreError::Unavailable(error.unwrap_or_else(|| format!("XTDB at {} does not answer", self.urls())))
    }

    fn has_unsent(&self) -> bool {
        let latest = self.status().latest;
        *self.sent.borrow() < latest
    }

    /// The time from which versions may wait to be sent.
    fn unsent_since(&self) -> Option<Timestamp> {
        let sent = *self.sent.borrow();
        self.has_unsent().then(|| self.journal.time_after(sent).unwrap_or(None)).flatten()
    }
}

/// True if at each moment as many versions begin to hold here as there.
fn has_all(here: &[Timestamp], there: &[Timestamp]) -> bool {
    let mut counts: HashMap<Timestamp, isize> = HashMap::new();
    here.iter().for_each(|time| *counts.entry(*time).or_default() += 1);
    there.iter().for_each(|time| *counts.entry(*time).or_default() -= 1);
    counts.values().all(|count| *count >= 0)
}

/// The moments from which several versions hold; both lists are in order.
fn twice(times: &[Timestamp]) -> impl Iterator<Item = Timestamp> + '_ {
    times.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

fn note(id: &ObjectId) -> String {
    format!("past of {id}")
}
