//! A second writing of the rule, and its agreement with the first over random histories.

use std::collections::BTreeMap;

use context_projection::{Item, Ledger, Policy, Prices, Reach};
use proptest::prelude::*;

use crate::{EXACT, check_roll, execute, reach};

/// The rule as the crate's documentation states it, written without any of its shortcuts.
#[derive(Debug, Clone, Default)]
pub struct Plain {
    pub system: u64,
    pub items: Vec<PlainItem>,
    /// Length of the last request's part that is still a prefix; `None` before the first call.
    same: usize,
    ends: Vec<usize>,
    system_cached: bool,
}

#[derive(Debug, Clone)]
pub struct PlainItem {
    pub item: Item,
    pub stale: bool,
    pub shown: bool,
    pub account: f64,
}

impl PlainItem {
    pub fn rollable(&self) -> bool {
        self.stale && self.shown
    }
}

impl Plain {
    pub fn push(&mut self, item: Item) {
        self.items.push(PlainItem { item, stale: false, shown: false, account: 0.0 });
    }

    pub fn set_stale(&mut self, place: usize, stale: bool) {
        let x = &mut self.items[place];
        if stale && x.item.saving() == 0 {
            return;
        }
        x.stale = stale;
        if !stale {
            x.account = 0.0;
        }
    }

    pub fn retarget(&mut self, place: usize, small: u64) {
        let x = &mut self.items[place];
        x.item.tokens_ref = small;
        if x.item.saving() == 0 {
            self.set_stale(place, false);
        }
    }

    pub fn replace(&mut self, place: usize, item: Item) {
        self.set_stale(place, false);
        if self.items[place].item.tokens_full != item.tokens_full {
            self.cut(place);
        }
        self.items[place].item = item;
    }

    pub fn charge(&mut self, policy: &Policy) -> f64 {
        let hit = if policy.cache_dead { 0 } else { self.hit(policy) };
        let mut cost = 0.0;
        cost += self.system as f64
            * if self.system_cached
                && !policy.cache_dead
                && !(matches!(policy.reach, Reach::Endings(_)) && hit == 0)
            {
                policy.prices.read
            } else {
                policy.prices.write
            };
        for (place, x) in self.items.iter_mut().enumerate() {
            cost += x.item.tokens_full as f64
                * if place < hit { policy.prices.read } else { policy.prices.write };
            if x.rollable() {
                x.account += x.item.saving() as f64 * policy.prices.read;
            }
            x.shown = true;
        }
        if policy.cache_dead {
            self.ends.clear();
        }
        self.same = self.items.len();
        // A call without anything new ends where the last one ended.
        if self.ends.last() != Some(&self.same) {
            self.ends.push(self.same);
        }
        self.system_cached = true;
        cost
    }

    fn hit(&self, policy: &Policy) -> usize {
        let shown = self.items.iter().filter(|x| x.shown).count();
        if self.same == shown && self.ends.last() == Some(&shown) {
            return self.same;
        }
        self.hit_before(self.same, policy)
    }

    fn hit_before(&self, cut: usize, policy: &Policy) -> usize {
        let cut = cut.min(self.same);
        let ends: Vec<usize> = self.ends.iter().copied().filter(|end| *end <= cut).collect();
        let end = ends.last().copied().unwrap_or(0);
        let (behind, most) = match policy.reach {
            Reach::AnyPrefix => return cut,
            Reach::Blocks(most) => (self.items[end..].iter().map(|x| x.item.blocks).sum(), most),
            Reach::Endings(most) => ((self.ends.len() - ends.len()) as u32 + 1, most),
        };
        if behind <= most { end } else { 0 }
    }

    /// Place, removed tokens, rent and cost of the best roll, should one pay.
    pub fn decide(&self, policy: &Policy) -> Option<(Vec<usize>, u64, f64, f64)> {
        if policy.only_at_user_turn && !policy.at_user_turn {
            return None;
        }
        let hit = if policy.cache_dead { 0 } else { self.hit(policy) };
        let mut best: Option<(Vec<usize>, u64, f64, f64)> = None;
        for cut in (0..self.items.len()).rev().filter(|cut| self.items[*cut].rollable()) {
            let items: Vec<usize> = (cut..self.items.len()).filter(|at| self.items[*at].rollable()).collect();
            let removed = items.iter().map(|at| self.items[*at].item.saving()).sum();
            let rent: f64 = items.iter().map(|at| self.items[*at].account).sum();
            let kept = if cut < hit { self.hit_before(cut, policy) } else { hit };
            let rewritten: u64 = (kept..hit)
                .map(|at| {
                    let item = self.items[at].item;
                    if items.contains(&at) { item.tokens_ref } else { item.tokens_full }
                })
                .sum();
            let system = if hit > 0 && kept == 0 && cut < hit { policy.reach } else { Reach::AnyPrefix };
            let rewritten = rewritten + if matches!(system, Reach::Endings(_)) { self.system } else { 0 };
            let cost = rewritten as f64 * (policy.prices.write - policy.prices.read);
            if best.as_ref().is_none_or(|(.., r, c)| rent - cost >= r - c) {
                best = Some((items, removed, rent, cost));
            }
        }
        best.filter(|(.., rent, cost)| rent >= cost)
    }

    pub fn apply(&mut self, items: &[usize]) {
        for at in items {
            let small = self.items[*at].item.tokens_ref;
            self.replace(*at, Item::new(small, small));
        }
    }

    pub fn cut(&mut self, at: usize) {
        self.same = self.same.min(at);
        self.ends.retain(|end| *end <= at);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Push { full: u64, small: u64, fixed: bool },
    Stale(prop::sample::Index, bool),
    Call { dead: bool },
    Break(prop::sample::Index),
    Undo(prop::sample::Index),
    Retarget(prop::sample::Index, u64),
    Replace(prop::sample::Index, u64, u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1_u64..4_000, 0_u64..40, prop::bool::weighted(0.3))
            .prop_map(|(full, small, fixed)| Step::Push { full, small, fixed }),
        6 => (any::<prop::sample::Index>(), prop::bool::weighted(0.9)).prop_map(|(at, on)| Step::Stale(at, on)),
        6 => prop::bool::weighted(0.05).prop_map(|dead| Step::Call { dead }),
        1 => any::<prop::sample::Index>().prop_map(Step::Break),
        1 => any::<prop::sample::Index>().prop_map(Step::Undo),
        2 => (any::<prop::sample::Index>(), 0_u64..2_000).prop_map(|(at, small)| Step::Retarget(at, small)),
        1 => (any::<prop::sample::Index>(), 1_u64..2_000, 0_u64..40)
            .prop_map(|(at, full, small)| Step::Replace(at, full, small)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn equals_the_plain_rule(
        steps in prop::collection::vec(step(), 1..160),
        system in 0_u64..5_000,
        reach in reach(1..12),
        uncached in prop::bool::weighted(0.1),
        only_at_user_turn: bool,
    ) {
        let prices = if uncached { Prices::UNCACHED } else { EXACT };
        let (mut ledger, mut plain) = (Ledger::new(system), Plain { system, ..Plain::default() });
        let mut rolled = BTreeMap::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Push { full, small, fixed } => {
                    let item = Item { fixed, ..Item::new(full, small) };
                    prop_assert_eq!(ledger.push(item), plain.items.len());
                    plain.push(item);
                }
                Step::Stale(at, stale) if !ledger.is_empty() => {
                    let at = at.index(ledger.len());
                    ledger.set_stale(at, stale);
                    plain.set_stale(at, stale);
                }
                Step::Break(at) if !ledger.is_empty() => {
                    let at = at.index(ledger.len());
                    ledger.break_at(at);
                    plain.cut(at);
                }
                Step::Undo(at) if !ledger.is_empty() => {
                    let at = at.index(ledger.len());
                    if let Some(item) = rolled.remove(&at) {
                        ledger.replace(at, item);
                        plain.replace(at, item);
                    }
                }
                Step::Retarget(at, small) if !ledger.is_empty() => {
                    let at = at.index(ledger.len());
                    ledger.retarget(at, small);
                    plain.retarget(at, small);
                }
                Step::Replace(at, full, small) if !ledger.is_empty() => {
                    let at = at.index(ledger.len());
                    ledger.replace(at, Item::new(full, small));
                    plain.replace(at, Item::new(full, small));
                }
                Step::Call { dead } => {
                    let policy = Policy {
                        reach,
                        cache_dead: dead,
                        only_at_user_turn,
                        at_user_turn: number % 3 == 0,
                        ..Policy::new(prices)
                    };
                    let roll = ledger.decide(&policy);
                    if let Some(roll) = &roll {
                        check_roll(&ledger, roll);
                    }
                    let got = roll.clone().map(|r| (r.items, r.removed_tokens, r.rent, r.cost));
                    prop_assert_eq!(&got, &plain.decide(&policy));
                    if let Some(roll) = roll {
                        let before = ledger.total_tokens();
                        for at in &roll.items {
                            rolled.entry(*at).or_insert(plain.items[*at].item);
                        }
                        prop_assert_eq!(execute(&mut ledger, &roll), roll.removed_tokens);
                        prop_assert_eq!(ledger.total_tokens(), before - roll.removed_tokens);
                        plain.apply(&roll.items);
                    }
                    prop_assert_eq!(ledger.charge_call(&policy).cost(&prices), plain.charge(&policy));
                }
                _ => {}
            }
            prop_assert_eq!(ledger.len(), plain.items.len());
            for (at, x) in plain.items.iter().enumerate() {
                prop_assert_eq!(ledger.item(at), Some(&x.item));
            }
            let rollable = plain.items.iter().enumerate().filter(|(_, x)| x.rollable());
            let (places, accounts): (Vec<usize>, Vec<f64>) = rollable.map(|(at, x)| (at, x.account)).unzip();
            let all = ledger.asked(&Policy::new(prices));
            prop_assert_eq!(all.as_ref().map_or(0.0, |all| all.rent), accounts.iter().sum::<f64>());
            prop_assert_eq!(all.map_or_else(Vec::new, |all| all.items), places);
            let stale = plain.items.iter().filter(|x| x.stale);
            prop_assert_eq!(ledger.stale_tokens(), stale.map(|x| x.item.saving()).sum::<u64>());
        }
    }
}
