//! The sessions that leave a store without SQL, and the objects that leave with them. The embedded store has the same rules
//! in SQL.

use std::collections::{BTreeSet, HashMap};

use context_model::id::{ObjectId, SessionId};
use context_model::object::ObjectType;
use context_model::time::Timestamp;

use crate::backend::erasing::index_of;
use crate::sessions::{self, Prune, Pruned};
use crate::{Filter, Result, Store};

/// Everything written less than this many milliseconds ago stays: a day.
const YOUNG: i64 = 24 * 60 * 60 * 1_000;

/// The position of everything that stays.
const STAYS: usize = usize::MAX;

/// The space that an object takes up.
#[derive(Clone, Copy, Debug)]
pub struct Weight {
    /// About how many bytes its versions have.
    pub bytes: u64,
    /// When it was last written.
    pub newest: Timestamp,
}

/// The objects that leave a store.
pub struct Leaving {
    /// The objects; a session's own document comes after everything that leaves with it, so that an interrupted removal
    /// can be repeated.
    pub objects: Vec<ObjectId>,
    /// The same for people.
    pub pruned: Pruned,
}

/// Chooses the sessions to remove, the oldest first.
///
/// # Errors
/// `INVALID_ARGUMENT` without a condition; errors of the store.
pub async fn choose(
    store: &dyn Store,
    wanted: &Prune,
    weights: &HashMap<ObjectId, Weight>,
    now: Timestamp,
) -> Result<Leaving> {
    wanted.check()?;
    let is_young = |time: Timestamp| time.millis() > now.millis() - YOUNG;
    let all = sessions::summaries(store).await?;
    let mut oldest = Vec::new();
    for summary in wanted.among(&all) {
        // Without a weight, it was written after the weights were taken.
        if let Some(last) = age(store, &summary.id, weights).await?
            && !is_young(last)
        {
            oldest.push((last, summary));
        }
    }
    oldest.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.id.as_str().cmp(b.1.id.as_str())));
    let mut positions: HashMap<ObjectId, usize> = HashMap::new();
    for (place, (_, summary)) in oldest.iter().enumerate() {
        let id = &summary.id;
        for own in [ObjectId::session(id), ObjectId::chat(id), ObjectId::system_prompt(id)] {
            positions.insert(own, place);
        }
    }
    let sessions = Filter { object_type: Some(ObjectType::Session), ..Filter::default() };
    for session in store.query(&sessions).await? {
        let place = positions.get(&session).copied().unwrap_or(STAYS);
        for id in index_of(store, &session).await?.into_iter().flatten() {
            let last = positions.entry(id).or_insert(place);
            *last = place.max(*last);
        }
    }
    positions.retain(|id, place| {
        *place != STAYS && weights.get(id).is_some_and(|weight| !is_young(weight.newest))
    });
    let mut freed = vec![0; oldest.len()];
    for (id, place) in &positions {
        freed[*place] += weights[id].bytes;
    }
    let used: u64 = weights.values().map(|weight| weight.bytes).sum();
    let count = count(wanted, &oldest.iter().map(|(last, _)| *last).collect::<Vec<_>>(), &freed, used);
    let leaving: BTreeSet<(bool, ObjectId)> = positions
        .into_iter()
        .filter(|(_, place)| *place < count)
        .map(|(id, _)| (id.as_str().starts_with("session:"), id))
        .collect();
    let pruned = Pruned {
        sessions: oldest.into_iter().take(count).map(|(_, summary)| summary.clone()).collect(),
        objects: leaving.len() as u64,
        freed_bytes: freed.iter().take(count).sum(),
        used_bytes: used,
        is_shorter: false,
    };
    Ok(Leaving { objects: leaving.into_iter().map(|(_, id)| id).collect(), pruned })
}

/// Number of the oldest sessions that leave.
fn count(wanted: &Prune, last: &[Timestamp], freed: &[u64], used: u64) -> usize {
    let by_age = match (wanted.before, wanted.max_bytes) {
        (Some(before), _) => last.iter().take_while(|last| **last < before).count(),
        (None, Some(_)) => 0,
        (None, None) => last.len(),
    };
    let Some(most) = wanted.max_bytes else { return by_age };
    let mut used = used;
    let by_size = freed.iter().take_while(|freed| {
        let is_more = used > most;
        used = used.saturating_sub(**freed);
        is_more
    });
    by_age.max(by_size.count())
}

/// When a session was last written or opened; `None` if it has no weight.
async fn age(
    store: &dyn Store,
    session: &SessionId,
    weights: &HashMap<ObjectId, Weight>,
) -> Result<Option<Timestamp>> {
    let opened = store.note(&format!("opened:{session}")).await?.and_then(|millis| millis.parse().ok());
    let written = [ObjectId::session(session), ObjectId::chat(session)];
    let written = written.iter().filter_map(|id| weights.get(id)).map(|weight| weight.newest);
    let opened = Timestamp::from_millis(opened.unwrap_or(0));
    Ok(written.max().map(|written| written.max(opened)))
}

#[cfg(test)]
mod tests {
    use context_model::object::Document;
    use context_model::session::Sets;

    use super::*;
    use crate::memory::MemoryStore;
    use crate::{Transaction, Write};

    /// On XTDB, the weights come from the log before the sessions come from a query.
    #[tokio::test]
    async fn a_session_written_after_weighing_stays() {
        let store = MemoryStore::new();
        let session = SessionId::new("s").unwrap();
        let writes = [Document::chat(&session), Sets::default().document(&session)].map(Write::put);
        store.transact(Transaction { writes: writes.into(), expected: Vec::new() }).await.unwrap();
        let all = Prune { before: Some(Timestamp::from_millis(i64::MAX)), ..Prune::default() };
        let now = Timestamp::from_millis(i64::MAX);
        let old = [ObjectId::session(&session), ObjectId::chat(&session)]
            .map(|id| (id, Weight { bytes: 1, newest: Timestamp::from_millis(0) }));
        for (weights, count) in [(HashMap::new(), 0), (HashMap::from(old), 1)] {
            let Leaving { objects, pruned } = choose(&*store, &all, &weights, now).await.unwrap();
            assert_eq!((pruned.sessions.len(), objects.len()), (count, 2 * count));
        }
    }
}
