//! The auto-collapse window of the specification: which tool calls stay active.

use std::collections::HashSet;

use crate::id::ObjectId;

/// The time for which tool calls stay active without being pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The number of the most recent tool calls of one turn that stay active.
    pub per_turn: usize,
    /// The number of turns back for which tool calls stay active; the current turn counts as the first.
    pub turns_back: usize,
}

impl Default for Window {
    fn default() -> Self {
        Self { per_turn: 5, turns_back: 3 }
    }
}

/// True if a tool controls the context itself. Its calls don't count in the window; otherwise, five answers of
/// `unpin` would push five outputs out of it (design change: the specification does not mention such tools).
#[must_use]
pub fn is_control(tool: &str) -> bool {
    matches!(tool, "activate" | "deactivate" | "pin" | "unpin")
}

/// A tool call in the active set, and the turn in which it was made or last activated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveCall {
    /// The tool call.
    pub id: ObjectId,
    /// The turn, counted from 0.
    pub turn: usize,
}

/// The tool calls that leave the active set now, in the given order.
///
/// `active` is in order of creation or last activation, oldest first. Pinned ones are exempt and do not use
/// up the per-turn limit. Files are never passed in: they are not auto-collapsed.
#[must_use]
pub fn collapsing(
    active: &[ActiveCall],
    current_turn: usize,
    window: Window,
    pinned: impl Fn(&ObjectId) -> bool,
) -> Vec<ObjectId> {
    let mut kept: HashSet<&ObjectId> = HashSet::new();
    let mut of_turn: std::collections::HashMap<usize, usize> = std::collections::HashMap::new();
    for stay in active.iter().rev() {
        if pinned(&stay.id) {
            kept.insert(&stay.id);
        } else if stay.turn + window.turns_back > current_turn {
            let count = of_turn.entry(stay.turn).or_default();
            if *count < window.per_turn {
                *count += 1;
                kept.insert(&stay.id);
            }
        }
    }
    active.iter().filter(|s| !kept.contains(&s.id)).map(|s| s.id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn stays(text: &str) -> Vec<ActiveCall> {
        text.split_whitespace()
            .map(|t| {
                let (id, turn) = t.split_once('@').unwrap();
                ActiveCall { id: ObjectId::new(id), turn: turn.parse().unwrap() }
            })
            .collect()
    }

    #[rstest]
    #[case::sixth_of_a_turn("a@0 b@0 c@0 d@0 e@0 f@0", 0, "", "a")]
    #[case::third_turn_still_in("a@0", 2, "", "")]
    #[case::fourth_turn_out("a@0 b@1", 3, "", "a")]
    #[case::pinned_is_exempt("a@0 b@1", 9, "a", "b")]
    #[case::pinned_takes_no_place("a@0 b@0 c@0 d@0 e@0 f@0", 0, "f", "")]
    #[case::renewed_counts_as_new("b@0 c@0 d@0 e@0 f@0 a@0", 0, "", "b")]
    fn table(#[case] active: &str, #[case] turn: usize, #[case] pinned: &str, #[case] leaves: &str) {
        let out = collapsing(&stays(active), turn, Window::default(), |id| pinned.contains(id.as_str()));
        let ids: Vec<&str> = out.iter().map(ObjectId::as_str).collect();
        assert_eq!(ids.join(" "), leaves);
    }
}
