//! A cache of texts by name with a limit in bytes; the least recently used text leaves first.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Texts kept in memory. The sum of their names and texts, in UTF-8 bytes, never exceeds the capacity.
#[derive(Debug)]
pub struct OutputCache {
    capacity: usize,
    threshold: usize,
    bytes: usize,
    clock: u64,
    entries: HashMap<Arc<str>, Entry>,
    /// Names by the time of their last use. The times of two entries always differ.
    by_use: BTreeMap<u64, Arc<str>>,
}

#[derive(Debug)]
struct Entry {
    text: Box<str>,
    used: u64,
}

impl OutputCache {
    /// A cache of at most `capacity` bytes for texts shorter than `threshold` bytes. A capacity of 0 keeps
    /// nothing.
    #[must_use]
    pub fn new(capacity: usize, threshold: usize) -> Self {
        let (entries, by_use) = (HashMap::new(), BTreeMap::new());
        Self { capacity, threshold, bytes: 0, clock: 0, entries, by_use }
    }

    /// Stores a text, replacing the one of that name, and drops the least recently used texts until everything fits.
    /// Returns whether it was kept: a text of `threshold` bytes or more, or one larger than the whole cache, is not
    /// (and drops nothing but an older text of its name).
    pub fn put(&mut self, name: &str, text: &str) -> bool {
        self.remove(name);
        let size = name.len() + text.len();
        if text.len() >= self.threshold || size > self.capacity {
            return false;
        }
        while self.bytes + size > self.capacity {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            self.forget(&oldest);
        }
        self.clock += 1;
        let name: Arc<str> = Arc::from(name);
        self.by_use.insert(self.clock, Arc::clone(&name));
        self.entries.insert(name, Entry { text: text.into(), used: self.clock });
        self.bytes += size;
        true
    }

    /// The text of a name, which thereby becomes the most recently used one.
    pub fn get(&mut self, name: &str) -> Option<&str> {
        let entry = self.entries.get_mut(name)?;
        let key = self.by_use.remove(&entry.used)?;
        self.clock += 1;
        entry.used = self.clock;
        self.by_use.insert(self.clock, key);
        Some(&entry.text)
    }

    /// Drops one text, if there is one of that name.
    pub fn remove(&mut self, name: &str) {
        if let Some(used) = self.entries.get(name).map(|e| e.used) {
            self.by_use.remove(&used);
            self.forget(name);
        }
    }

    /// Drops all texts.
    pub fn clear(&mut self) {
        *self = Self::new(self.capacity, self.threshold);
    }

    /// Bytes of all names and texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the cache holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn forget(&mut self, name: &str) {
        if let Some(entry) = self.entries.remove(name) {
            self.bytes -= name.len() + entry.text.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Put(u8, usize),
        Get(u8),
        Remove(u8),
        Clear,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => (0..12_u8, 0..40_usize).prop_map(|(name, size)| Step::Put(name, size)),
            6 => (0..12_u8).prop_map(Step::Get),
            2 => (0..12_u8).prop_map(Step::Remove),
            1 => Just(Step::Clear),
        ];
        prop::collection::vec(step, 0..120)
    }

    proptest! {
        /// The model is a list, least recently used first.
        #[test]
        fn it_equals_the_naive_list(steps in steps(), capacity in 0..150_usize, threshold in 0..40_usize) {
            let mut cache = OutputCache::new(capacity, threshold);
            let mut model: Vec<(String, String)> = Vec::new();
            let size = |model: &[(String, String)]| model.iter().map(|(n, t)| n.len() + t.len()).sum::<usize>();
            for step in steps {
                match step {
                    Step::Put(name, length) => {
                        let (name, text) = (format!("n{name}"), "x".repeat(length));
                        let kept = cache.put(&name, &text);
                        model.retain(|(n, _)| *n != name);
                        let fits = text.len() < threshold && name.len() + text.len() <= capacity;
                        prop_assert_eq!(kept, fits);
                        if fits {
                            model.push((name, text));
                            while size(&model) > capacity {
                                model.remove(0);
                            }
                        }
                    }
                    Step::Get(name) => {
                        let name = format!("n{name}");
                        let found = model.iter().position(|(n, _)| *n == name).map(|i| model.remove(i));
                        prop_assert_eq!(cache.get(&name), found.as_ref().map(|(_, t)| t.as_str()));
                        model.extend(found);
                    }
                    Step::Remove(name) => {
                        let name = format!("n{name}");
                        cache.remove(&name);
                        model.retain(|(n, _)| *n != name);
                    }
                    Step::Clear => {
                        cache.clear();
                        model.clear();
                    }
                }
                prop_assert!(cache.bytes() <= capacity);
                prop_assert_eq!(cache.bytes(), size(&model));
                prop_assert_eq!(cache.len(), model.len());
                prop_assert_eq!(cache.is_empty(), model.is_empty());
            }
        }
    }
}
