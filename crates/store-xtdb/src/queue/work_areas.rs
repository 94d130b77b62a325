//! The areas that a store works in. The stores of a process on one journal share everything but these: a turn of one asks for
//! nothing that only another one needs.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use lru::LruCache;

use crate::areas::Area;

/// Interval at which turns ask for others' writes in a session of this process. A session that is worked on here is not
/// worked on elsewhere, as a rule; a client that reads it as a whole asks anyway.
const SESSION_PAUSE: Duration = Duration::from_secs(30);

/// The most areas that a store asks for at each turn: those in which it worked last. When it returns to another one, it
/// first asks for that.
const MOST_AREAS: NonZeroUsize = NonZeroUsize::new(16).unwrap();

/// The areas that a store works in, and the time of its last request for others' writes there.
#[derive(Clone)]
pub(super) struct WorkAreas {
    areas: Arc<Mutex<Areas>>,
    /// The number of the store, in the order in which the stores of this process were opened, from 0.
    pub number: u64,
}

/// The same of several stores, as long as these are open.
#[derive(Default)]
pub(super) struct AllWorkAreas {
    all: Vec<Weak<Mutex<Areas>>>,
    next: u64,
}

type Areas = LruCache<Area, Option<Instant>>;

impl WorkAreas {
    /// Notes that the store works in this area. True if that is new.
    pub(super) fn enter(&self, area: Area) -> bool {
        let mut areas = self.locked();
        if areas.get(&area).is_some() {
            return false;
        }
        areas.put(area, None);
        true
    }

    pub(super) fn has(&self, area: &Area) -> bool {
        self.locked().contains(area)
    }

    /// Notes that others' writes in an area are asked for now, if the store works there.
    pub(super) fn asks(&self, area: &Area) {
        if let Some(asked) = self.locked().peek_mut(area) {
            *asked = Some(Instant::now());
        }
    }

    /// Notes that it does not have everything yet.
    pub(super) fn is_late(&self, area: &Area) {
        if let Some(asked) = self.locked().peek_mut(area) {
            *asked = None;
        }
    }

    /// Those to ask about at a turn: all but those of sessions that were asked about a moment ago.
    pub(super) fn due(&self) -> Vec<Area> {
        let is_due = |(area, asked): &(&Area, &Option<Instant>)| {
            !area.is_of_a_session() || asked.is_none_or(|asked| asked.elapsed() >= SESSION_PAUSE)
        };
        self.locked().iter().filter(is_due).map(|(area, _)| area.clone()).collect()
    }

    /// True if both are of the same store.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.number == other.number
    }

    fn locked(&self) -> MutexGuard<'_, Areas> {
        self.areas.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AllWorkAreas {
    /// Those of one more store, which works nowhere yet.
    pub(super) fn begin(&mut self) -> WorkAreas {
        let areas = Arc::new(Mutex::new(LruCache::new(MOST_AREAS)));
        self.all.retain(|one| one.strong_count() > 0);
        self.all.push(Arc::downgrade(&areas));
        self.next += 1;
        WorkAreas { areas, number: self.next - 1 }
    }

    /// The number of the newest store; 0 also before the first one, for which all of this is opened.
    pub(super) fn newest(&self) -> u64 {
        self.next.saturating_sub(1)
    }

    /// Notes that nothing is known of any of them.
    pub(super) fn ask_again(&self) {
        for areas in self.all.iter().filter_map(Weak::upgrade) {
            let mut areas = areas.lock().unwrap_or_else(PoisonError::into_inner);
            areas.iter_mut().for_each(|(_, asked)| *asked = None);
        }
    }
}
