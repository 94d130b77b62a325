//! The items of a ledger: one piece of a request each, and sums over them.

/// One piece of the request that stays or goes as a whole: a tool result, the arguments of a call, a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Item {
    /// Tokens in its present form.
    pub tokens_full: u64,
    /// Tokens of the reference that would replace it in a roll. An item that would not shrink can't be stale.
    pub tokens_ref: u64,
    /// Content blocks of the provider's format that it fills, for providers that look for a cached prefix
    /// only a few blocks back. Most items are 1.
    pub blocks: u32,
    /// It can never be rolled: prose, signed arguments, anything that the host does not let us change.
    pub fixed: bool,
}

impl Item {
    /// An item of one block that a roll may replace.
    pub fn new(tokens_full: u64, tokens_ref: u64) -> Self {
        Self { tokens_full, tokens_ref, blocks: 1, fixed: false }
    }

    /// An item of one block that always stays.
    pub fn fixed(tokens: u64) -> Self {
        Self { tokens_full: tokens, tokens_ref: tokens, blocks: 1, fixed: true }
    }

    /// Tokens that a roll would save at each call.
    pub fn saving(&self) -> u64 {
        if self.fixed { 0 } else { self.tokens_full.saturating_sub(self.tokens_ref) }
    }
}

/// P. M. Fenwick, "A new data structure for cumulative frequency tables", *Software: Practice and
/// Experience* 24, 1994.
#[derive(Debug, Clone, Default)]
pub(super) struct Fenwick {
    nodes: Vec<u64>,
}

impl Fenwick {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn push(&mut self, value: u64) {
        let place = self.nodes.len() + 1;
        let first = place - (place & place.wrapping_neg());
        let mut sum = value;
        let mut child = place - 1;
        while child > first {
            sum += self.nodes[child - 1];
            child &= child - 1;
        }
        self.nodes.push(sum);
    }

    /// Replaces the value `old` at `index` by `new`.
    pub(super) fn replace(&mut self, index: usize, old: u64, new: u64) {
        let mut place = index + 1;
        while place <= self.nodes.len() {
            self.nodes[place - 1] = self.nodes[place - 1] - old + new;
            place += place & place.wrapping_neg();
        }
    }

    /// The sum of the first `count` values.
    pub(super) fn prefix(&self, count: usize) -> u64 {
        let mut place = count.min(self.nodes.len());
        let mut sum = 0;
        while place > 0 {
            sum += self.nodes[place - 1];
            place &= place - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Push(u32),
        Replace(prop::sample::Index, u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => any::<u32>().prop_map(Step::Push),
            2 => (any::<prop::sample::Index>(), any::<u32>()).prop_map(|(at, v)| Step::Replace(at, v)),
        ]
    }

    proptest! {
        #[test]
        fn equals_a_plain_sum(steps in prop::collection::vec(step(), 0..200)) {
            let (mut tree, mut plain) = (Fenwick::default(), Vec::<u64>::new());
            for step in steps {
                match step {
                    Step::Push(value) => {
                        tree.push(value.into());
                        plain.push(value.into());
                    }
                    Step::Replace(at, value) if !plain.is_empty() => {
                        let at = at.index(plain.len());
                        tree.replace(at, plain[at], value.into());
                        plain[at] = value.into();
                    }
                    _ => {}
                }
                prop_assert_eq!(tree.len(), plain.len());
                for count in 0..=plain.len() {
                    prop_assert_eq!(tree.prefix(count), plain[..count].iter().sum::<u64>());
                }
            }
        }
    }
}
