//! Prefix sums: appending and changing a value both take O(log n).

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
    use super::*;
    use proptest::prelude::*;

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
