//! The auto-collapse window against a reference that follows the sentence word by word.

mod long;

use std::collections::BTreeSet;

use context_model::collapse::{ActiveCall, Window, collapsing};
use context_model::id::ObjectId;
use proptest::prelude::*;

/// For each tool call: is its turn one of the last `turns_back`, and are fewer than `per_turn` unpinned ones of
/// the same turn more recent?
fn reference(
    active: &[ActiveCall],
    current: usize,
    window: Window,
    pinned: &BTreeSet<usize>,
) -> Vec<ObjectId> {
    let mut leaves = Vec::new();
    for (place, stay) in active.iter().enumerate() {
        if pinned.contains(&place) {
            continue;
        }
        let recent_turn = (0..window.turns_back).any(|back| current.checked_sub(back) == Some(stay.turn))
            || stay.turn > current;
        let newer = active[place + 1..]
            .iter()
            .enumerate()
            .filter(|(after, other)| other.turn == stay.turn && !pinned.contains(&(place + 1 + after)))
            .count();
        if !(recent_turn && newer < window.per_turn) {
            leaves.push(stay.id.clone());
        }
    }
    leaves
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(long::cases(10_000)))]

    #[test]
    fn it_is_the_window_of_the_specification(
        turns in prop::collection::vec(0..6_usize, 0..30),
        pins in prop::collection::btree_set(0..30_usize, 0..6),
        current in 0..7_usize,
        per_turn in 0..7_usize,
        turns_back in 0..5_usize,
    ) {
        let active: Vec<ActiveCall> = turns
            .iter()
            .enumerate()
            .filter(|(_, turn)| **turn <= current)
            .map(|(n, turn)| ActiveCall { id: ObjectId::new(format!("call_{n}")), turn: *turn })
            .collect();
        let window = Window { per_turn, turns_back };
        let is_pinned = |id: &ObjectId| pins.iter().any(|p| active.get(*p).is_some_and(|stay| stay.id == *id));
        let leaves = collapsing(&active, current, window, is_pinned);
        prop_assert_eq!(&leaves, &reference(&active, current, window, &pins));

        // Calls that stay now stay at the next request: the window is not a ratchet.
        let rest: Vec<ActiveCall> = active.iter().filter(|s| !leaves.contains(&s.id)).cloned().collect();
        prop_assert!(collapsing(&rest, current, window, is_pinned).is_empty());
    }
}
