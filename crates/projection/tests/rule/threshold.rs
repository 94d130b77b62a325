//! Sessions that are continued from a transcript, and windows that fill up.

use context_projection::{Item, Ledger, Policy};

use crate::{EXACT, rent};

/// A process that continues a session knows from the transcript since when text was stale, and one that runs on knows it also
/// where it could not roll and so did not ask.
#[test]
fn stale_text_in_a_transcript_has_paid_its_rent() {
    let policy = Policy::new(EXACT);
    let transcript = |rebuilds: bool| {
        let mut ledger = Ledger::new(1_000);
        if rebuilds {
            ledger.rebuild();
        }
        ledger
    };
    let (mut going, mut again, mut late) = (transcript(false), transcript(true), transcript(false));
    for call in 0..8 {
        for ledger in [&mut going, &mut again, &mut late] {
            ledger.push(Item::new(1_000, 10));
            ledger.charge_call(&policy);
        }
        if call >= 2 {
            going.set_stale(call - 2, true);
        }
    }
    again.assume_shown(usize::MAX);
    for ledger in [&mut again, &mut late] {
        (0..6).for_each(|place| ledger.set_stale_since(place, place as u64 + 3));
        assert_eq!(rent(ledger), rent(&going));
    }
    assert!(rent(&again) > 0.0);
    for ledger in [&mut going, &mut again, &mut late] {
        ledger.charge_call(&policy);
        ledger.set_stale_since(6, 0);
    }
    for ledger in [&again, &late] {
        assert_eq!(rent(ledger), rent(&going), "what is found later begins then");
        assert_eq!(ledger.decide(&policy), going.decide(&policy));
    }
}

/// With one token too few the roll is not worth its cost in requests that can't be cached.
#[test]
fn roll_at_the_hard_threshold_frees_an_eighth_of_the_rest() {
    for (removed, is_rolled) in [(12, false), (13, true), (14, true)] {
        let mut ledger = Ledger::new(0);
        ledger.push(Item::new(896, 896 - removed));
        let policy = Policy { context_window: 1_000, cache_dead: false, ..Policy::new(EXACT) };
        ledger.charge_call(&policy);
        ledger.set_stale(0, true);
        assert_eq!(ledger.decide(&policy).is_some(), is_rolled, "{removed}");
    }
}

#[test]
fn length_of_a_ledger() {
    let mut ledger = Ledger::new(1);
    assert!(ledger.is_empty());
    ledger.push(Item::fixed(0));
    assert!(!ledger.is_empty() && ledger.len() == 1);
}
