//! What several users in this process have open together, by key: the first one opens it, others join it, and the last one to leave ends
//! it.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

/// Something that several users can have open together.
pub trait Shareable: Sized + 'static {
    /// The users with the same key share it.
    type Key: Clone + Eq + Hash;
    /// The lock that a user holds while it opens one.
    type Opening: Default;

    /// True if a further user can join.
    fn is_sound(&self) -> bool;
}

/// The resources of one kind that are open.
pub struct SharedTable<R: Shareable> {
    slots: LazyLock<Mutex<Slots<R>>>,
}

type Slots<R> = HashMap<<R as Shareable>::Key, Weak<Slot<R>>>;

/// The place of a key in its table.
pub struct SharedPlace<R: Shareable>(Arc<Slot<R>>);

/// A user's right to an open resource. Dropping it also leaves the resource.
pub struct Seat<R: Shareable> {
    used: Arc<Used<R>>,
    /// `None` if the resource is this user's alone.
    slot: Option<Arc<Slot<R>>>,
    has_left: AtomicBool,
}

/// The table does not keep a slot: it ends with its places and seats.
struct Slot<R: Shareable> {
    table: &'static SharedTable<R>,
    key: R::Key,
    /// Locked while the resource is joined or left.
    open: Mutex<Weak<Used<R>>>,
    opening: R::Opening,
}

struct Used<R> {
    resource: R,
    users: AtomicUsize,
}

impl<R: Shareable> SharedTable<R> {
    /// A table in which nothing is open.
    #[must_use]
    pub const fn empty() -> Self {
        Self { slots: LazyLock::new(Mutex::default) }
    }

    /// The place of a key.
    pub fn place(&'static self, key: R::Key) -> SharedPlace<R> {
        let mut slots = locked(&self.slots);
        if let Some(slot) = slots.get(&key).and_then(Weak::upgrade) {
            return SharedPlace(slot);
        }
        let slot =
            Arc::new(Slot { table: self, key, open: Mutex::default(), opening: R::Opening::default() });
        slots.insert(slot.key.clone(), Arc::downgrade(&slot));
        SharedPlace(slot)
    }
}

impl<R: Shareable> SharedPlace<R> {
    /// The key as the table has it.
    pub fn key(&self) -> &R::Key {
        &self.0.key
    }

    /// The lock that a user holds while it opens the resource.
    pub fn opening(&self) -> &R::Opening {
        &self.0.opening
    }

    /// A seat at what is open here. `None` if nothing is, if all users have left it, or if it is not sound.
    pub fn join(&self) -> Option<Seat<R>> {
        let open = locked(&self.0.open);
        let used = open.upgrade()?;
        if used.users.load(Ordering::Acquire) == 0 || !used.resource.is_sound() {
            return None;
        }
        used.users.fetch_add(1, Ordering::AcqRel);
        Some(Seat::new(used, Some(Arc::clone(&self.0))))
    }

    /// Offers what the caller has opened to later users, and gives the caller a seat.
    pub fn share(&self, resource: R) -> Seat<R> {
        let used = Used::new(resource);
        *locked(&self.0.open) = Arc::downgrade(&used);
        Seat::new(used, Some(Arc::clone(&self.0)))
    }
}

impl<R: Shareable> Seat<R> {
    /// A seat at a resource that no other user can join.
    pub fn alone(resource: R) -> Self {
        Self::new(Used::new(resource), None)
    }

    /// Gives up the resource. True if that leaves it without a user: then the caller is to end it. Later calls do nothing.
    pub fn leave(&self) -> bool {
        if self.has_left.swap(true, Ordering::AcqRel) {
            return false;
        }
        let _joining = self.slot.as_ref().map(|slot| locked(&slot.open));
        self.used.users.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// True if both are seats at one resource.
    pub fn is_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.used, &other.used)
    }

    fn new(used: Arc<Used<R>>, slot: Option<Arc<Slot<R>>>) -> Self {
        Self { used, slot, has_left: AtomicBool::new(false) }
    }
}

impl<R: Shareable> Deref for Seat<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.used.resource
    }
}

impl<R: Shareable> Drop for Seat<R> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<R: Shareable> Drop for Slot<R> {
    fn drop(&mut self) {
        let mut slots = locked(&self.table.slots);
        // Another user may have made a new slot of this key by now.
        if slots.get(&self.key).is_some_and(|slot| slot.strong_count() == 0) {
            slots.remove(&self.key);
        }
    }
}

impl<R> Used<R> {
    fn new(resource: R) -> Arc<Self> {
        Arc::new(Self { resource, users: AtomicUsize::new(1) })
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Resource {
        is_sound: AtomicBool,
    }

    impl Shareable for Resource {
        type Key = &'static str;
        type Opening = Mutex<()>;

        fn is_sound(&self) -> bool {
            self.is_sound.load(Ordering::Acquire)
        }
    }

    fn opened() -> Resource {
        Resource { is_sound: AtomicBool::new(true) }
    }

    fn table() -> &'static SharedTable<Resource> {
        Box::leak(Box::new(SharedTable::empty()))
    }

    #[test]
    fn users_of_one_key_share_a_resource_until_the_last_one_leaves() {
        let table = table();
        assert!(table.place("a").join().is_none());
        let first = table.place("a").share(opened());
        let second = table.place("a").join().unwrap();
        assert!(first.is_beside(&second));
        assert!(table.place("b").join().is_none());
        assert!(!first.leave());
        assert!(!first.leave(), "a user that leaves twice takes no other user's seat");
        assert!(second.leave());
        assert!(table.place("a").join().is_none(), "an ended resource is not joined while it is still held");
    }

    #[test]
    fn dropped_seat_is_left() {
        let table = table();
        let first = table.place("a").share(opened());
        drop(table.place("a").join());
        assert!(first.leave());
    }

    #[test]
    fn unsound_resource_is_not_joined_and_keeps_its_own_users() {
        let table = table();
        let (first, second) = (table.place("a").share(opened()), table.place("a").join().unwrap());
        first.is_sound.store(false, Ordering::Release);
        assert!(table.place("a").join().is_none());
        let third = table.place("a").share(opened());
        assert!(!third.is_beside(&first));
        assert!(!first.leave());
        let fourth = table.place("a").join().unwrap();
        assert!(fourth.is_beside(&third));
        assert!(second.leave());
        assert!(!third.leave());
    }

    #[test]
    fn resource_of_one_user_ends_with_it() {
        assert!(Seat::alone(opened()).leave());
    }

    #[test]
    fn table_keeps_only_places_in_use() {
        let table = table();
        let len = || locked(&table.slots).len();
        let places = (table.place("a"), table.place("a"));
        assert_eq!(places.0.key(), &"a");
        let held = places.1.opening().lock().unwrap();
        assert!(places.0.opening().try_lock().is_err(), "both are one place");
        drop(held);
        assert_eq!(len(), 1);
        drop(places);
        assert_eq!(len(), 0, "of failed openings nothing stays");
        let seat = table.place("b").share(opened());
        assert_eq!(len(), 1);
        drop(seat);
        assert_eq!(len(), 0);
    }
}
