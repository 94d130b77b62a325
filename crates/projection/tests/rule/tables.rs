//! The rule on small numbers that can be checked by hand.

use context_model::chat::RollReason;
use context_projection::{Item, Ledger, Policy, Prices, Reach, TIMES, TIMES_IN_TURN};
use rstest::rstest;

use crate::{EXACT, execute, refer, rent, steady};

/// The contents of Pi's catalogue, by kind: input, cached read, cache write.
#[rstest]
#[case::five_minute_write(3.0, 0.3, 3.75, None, 2..=40)]
#[case::wide_gap(4.0, 0.2, 5.0, None, 2..=40)]
#[case::very_wide_gap(1.0, 0.025, 1.25, None, 2..=40)]
#[case::deep_discount(1.0, 0.008, 0.0, None, 1..=40)]
#[case::free_write(1.25, 0.125, 0.0, None, 2..=40)]
#[case::half(1.0, 0.5, 0.0, None, 2..=60)]
#[case::storage_surcharge(1.5, 0.15, 0.083333, None, 2..=40)]
#[case::no_cached_read(0.3, 0.0, 0.0, None, 2..=40)]
#[case::local(0.0, 0.0, 0.0, None, 2..=40)]
#[case::no_discount(30.0, 30.0, 0.0, None, 190..=200)]
#[case::caches_nothing(3.0, 0.3, 3.75, Some(false), 190..=200)]
fn rolls_in_200_calls(
    #[case] input: f64,
    #[case] read: f64,
    #[case] write: f64,
    #[case] caches: Option<bool>,
    #[case] expected: std::ops::RangeInclusive<usize>,
) {
    let (rolls, _) = steady(&Policy::new(Prices::from_catalogue(input, read, write, caches)));
    assert!(expected.contains(&rolls), "{rolls} rolls, expected {expected:?}");
}

/// Sessions of a few calls are left alone by the price itself.
#[rstest]
#[case::two_turns(2, 3, 1_000)]
#[case::small_results(6, 6, 60)]
#[case::one_long_turn(1, 40, 2_000)]
fn small_sessions_are_left_alone(#[case] turns: usize, #[case] calls: usize, #[case] tokens: u64) {
    let mut ledger = Ledger::new(4_000);
    let policy = Policy { context_window: 200_000, ..Policy::new(Prices::new(0.1, 1.25)) };
    for turn in 0..turns {
        for _ in 0..calls {
            assert_eq!(ledger.decide(&policy), None);
            ledger.push(Item::fixed(300));
            ledger.push(Item::new(tokens, 15));
            ledger.charge_call(&policy);
        }
        // Three turns count as the current ones; what is older is stale.
        let old = (turn + 1).saturating_sub(3) * calls * 2;
        (0..old).for_each(|place| _ = ledger.set_stale(place, true));
    }
}

/// Ten results of 1,000 tokens shown once, then `stale` of them stale, and `calls` further calls.
fn held(stale: std::ops::Range<usize>, calls: usize, policy: &Policy) -> Ledger {
    let mut ledger = Ledger::new(1_000);
    (0..10).for_each(|_| _ = ledger.push(Item::new(1_000, 0)));
    ledger.charge_call(policy);
    stale.for_each(|place| assert!(ledger.set_stale(place, true)));
    (0..calls).for_each(|_| _ = ledger.charge_call(policy));
    ledger
}

/// At r = 0.125 and w = 1.25 a stale result of 1,000 tokens pays 125 a call, and k results behind it cost
/// 1,125 k to write again: nine calls for each that stays.
#[rstest]
#[case::last_one_is_free_to_take(9..10, 0, Some((vec![9], 0.0, RollReason::Free)))]
#[case::one_behind_not_yet(8..9, 8, None)]
#[case::one_behind_now(8..9, 9, Some((vec![8], 1_125.0, RollReason::Pays)))]
#[case::two_share_the_price(7..9, 5, Some((vec![7, 8], 1_125.0, RollReason::Pays)))]
#[case::nine_behind(0..1, 80, None)]
#[case::nine_behind_at_last(0..1, 81, Some((vec![0], 10_125.0, RollReason::Pays)))]
#[case::all(0..10, 0, Some(((0..10).collect(), 0.0, RollReason::Free)))]
fn break_even(
    #[case] stale: std::ops::Range<usize>,
    #[case] calls: usize,
    #[case] expected: Option<(Vec<usize>, f64, RollReason)>,
) {
    let policy = Policy::new(EXACT);
    let roll = held(stale, calls, &policy).decide(&policy);
    assert_eq!(roll.map(|r| (r.items, r.cost, r.reason)), expected);
}

/// Nine calls of rent are the price: the text must have paid it twice where a turn begins or has ended, and three times within.
#[rstest]
#[case::a_turn_begins(true, false, 18)]
#[case::a_turn_has_ended(false, true, 18)]
#[case::within_a_turn(false, false, 27)]
fn within_a_turn_text_pays_more_often(
    #[case] at_user_turn: bool,
    #[case] turn_is_over: bool,
    #[case] calls: usize,
) {
    let policy = Policy {
        times: TIMES,
        times_in_turn: TIMES_IN_TURN,
        at_user_turn,
        turn_is_over,
        ..Policy::new(EXACT)
    };
    let decided = |calls| held(8..9, calls, &policy).decide(&policy).map(|roll| roll.reason);
    assert_eq!((decided(calls - 1), decided(calls)), (None, Some(RollReason::Pays)));
}

#[test]
fn cut_has_the_largest_gain() {
    let policy = Policy::new(EXACT);
    let mut ledger = held(6..9, 4, &policy);
    assert_eq!(ledger.decide(&policy).unwrap().items, [6, 7, 8]);
    // A stale item far back would make nine results be written again for its little rent.
    assert!(ledger.set_stale(0, true));
    ledger.charge_call(&policy);
    let roll = ledger.decide(&policy).unwrap();
    assert_eq!(roll.items, [6, 7, 8]);
    assert_eq!((roll.cost, roll.gain, roll.pays_back_after_calls), (1_125.0, 375.0, Some(3)));
    execute(&mut ledger, &roll);
    assert_eq!(rent(&ledger), 125.0, "what stays keeps its account");
}

#[test]
fn unsent_text_is_neither_rolled_nor_charged() {
    let policy = Policy { cache_dead: true, ..Policy::new(EXACT) };
    let mut ledger = held(0..0, 0, &policy);
    let fresh = ledger.push(Item::new(5_000, 10));
    assert!(ledger.set_stale(fresh, true));
    assert_eq!(ledger.decide(&policy), None, "even on a dead cache");
    assert_eq!(ledger.asked(&policy), None, "even when asked");
    let policy = Policy::new(EXACT);
    assert_eq!(ledger.charge_call(&policy).written_tokens, 5_000);
    assert_eq!(rent(&ledger), 0.0, "the call that shows it charges no rent");
    ledger.charge_call(&policy);
    assert_eq!(rent(&ledger), 4_990.0 * 0.125);
}

/// The price of a cut is what it writes again, times the likelihood that the provider still has that: 6 calls of rent pay for
/// it if that is certain, half of them if it is as likely as not.
#[rstest]
#[case::certain(1.0, 1_125.0, 3)]
#[case::likely(0.75, 843.75, 3)]
#[case::as_likely_as_not(0.5, 562.5, 2)]
#[case::hardly(0.125, 140.625, 1)]
fn price_of_a_cut_is_expected(#[case] kept: f64, #[case] cost: f64, #[case] back: u32) {
    let policy = Policy { kept, ..Policy::new(EXACT) };
    let mut ledger = held(6..9, 0, &policy);
    let mut calls = 0;
    let roll = loop {
        if let Some(roll) = ledger.decide(&policy) {
            break roll;
        }
        calls += 1;
        ledger.charge_call(&policy);
    };
    assert!((roll.cost - cost).abs() < 1e-9 && (roll.most - 1_125.0).abs() < 1e-9, "{roll:?}");
    assert_eq!(roll.pays_back_after_calls, Some(back));
    assert!(roll.rent >= cost && roll.rent - roll.gain < cost, "not a call earlier: {calls}");
}

#[test]
fn a_dead_cache_rolls_everything_stale_for_nothing() {
    let policy = Policy { cache_dead: true, ..Policy::new(EXACT) };
    let mut ledger = held(2..5, 0, &policy);
    let roll = ledger.decide(&policy).unwrap();
    assert_eq!((roll.items.as_slice(), roll.cost, roll.reason), (&[2, 3, 4][..], 0.0, RollReason::Free));
    assert_eq!(roll.pays_back_after_calls, Some(0));
    execute(&mut ledger, &roll);
    assert_eq!(ledger.charge_call(&policy).read_tokens, 0);
    assert_eq!(ledger.charge_call(&Policy::new(EXACT)).read_tokens, 8_000);
}

#[test]
fn text_behind_a_break_leaves_free() {
    let policy = Policy::new(EXACT);
    let mut ledger = held(2..7, 0, &policy);
    ledger.set_stale(3, false);
    ledger.break_at(5);
    let roll = ledger.decide(&policy).unwrap();
    assert_eq!((roll.items.as_slice(), roll.reason), (&[4, 5, 6][..], RollReason::Free), "2 would move 3");
}

/// 10 results of one block each behind the system part, in five calls of two; the second is stale.
#[rstest]
#[case::any_prefix(Reach::AnyPrefix, 8_000)]
#[case::within_reach(Reach::Blocks(20), 9_000)]
#[case::just_within_reach(Reach::Blocks(10), 9_000)]
#[case::too_deep(Reach::Blocks(9), 9_000)]
#[case::before_the_first_ending(Reach::Endings(20), 10_000)]
fn deep_edits_rewrite_all_messages(#[case] reach: Reach, #[case] rewritten: u64) {
    let policy = Policy { reach, ..Policy::new(EXACT) };
    let mut ledger = Ledger::new(1_000);
    for _ in 0..5 {
        ledger.push(Item::new(1_000, 0));
        ledger.push(Item::new(1_000, 0));
        ledger.charge_call(&policy);
    }
    ledger.set_stale(1, true);
    let roll = ledger.asked(&policy).unwrap();
    assert_eq!(roll.cost, rewritten as f64 * EXACT.rewrite());
    execute(&mut ledger, &roll);
    let charge = ledger.charge_call(&policy);
    assert_eq!(charge.written_tokens, rewritten, "the decision and the meter agree");
}

/// Five requests of two results each; the sixth result is stale.
#[rstest]
#[case::blocks(Reach::Blocks(6), 5_000)]
#[case::too_few_blocks(Reach::Blocks(5), 9_000)]
#[case::endings(Reach::Endings(4), 5_000)]
#[case::too_few_endings(Reach::Endings(3), 10_000)]
fn shallow_edit_starts_again_at_the_last_request_before_it(#[case] reach: Reach, #[case] rewritten: u64) {
    let policy = Policy { reach, ..Policy::new(EXACT) };
    let mut ledger = Ledger::new(1_000);
    for _ in 0..5 {
        ledger.push(Item::new(1_000, 0));
        ledger.push(Item::new(1_000, 0));
        ledger.charge_call(&policy);
    }
    ledger.set_stale(5, true);
    assert_eq!(ledger.asked(&policy).unwrap().cost, rewritten as f64 * EXACT.rewrite());
}

/// 10,000 tokens behind 1,000; 0 to 6 but 1 are stale, without rent, so that only pressure moves them.
#[rstest]
#[case::far_from_full(50_000, None)]
#[case::unknown_window(0, None)]
#[case::soft_but_no_rent(15_000, None)]
#[case::hard_takes_what_is_needed(12_500, Some((vec![2, 3, 4, 5, 6], RollReason::Hard)))]
#[case::over_full(5_000, Some((vec![0, 2, 3, 4, 5, 6], RollReason::Hard)))]
fn pressure(#[case] context_window: u64, #[case] expected: Option<(Vec<usize>, RollReason)>) {
    let policy = Policy { context_window, ..Policy::new(EXACT) };
    let mut ledger = held(0..7, 0, &policy);
    ledger.set_stale(1, false);
    assert_eq!(ledger.decide(&policy).map(|r| (r.items, r.reason)), expected);
}

#[test]
fn hard_pressure_takes_no_less_than_is_needed() {
    // 11,000 of 12,500 tokens; 8,125 are the soft threshold. What is free to take, the last one, is not enough.
    let policy = Policy { context_window: 12_500, ..Policy::new(EXACT) };
    let mut ledger = held(4..7, 0, &policy);
    assert!(ledger.set_stale(9, true));
    let roll = ledger.decide(&policy).unwrap();
    assert_eq!((roll.items.as_slice(), roll.reason), (&[4, 5, 6, 9][..], RollReason::Hard));
    assert_eq!(roll.cost, 2_000.0 * EXACT.rewrite());
}

#[test]
fn the_soft_threshold_lowers_the_price() {
    // 11,000 of 14,667 tokens are 75 %: half way from soft to hard, so half the price is asked.
    let policy = Policy { context_window: 14_667, ..Policy::new(EXACT) };
    assert_eq!(held(8..9, 4, &policy).decide(&policy), None);
    let roll = held(8..9, 5, &policy).decide(&policy).unwrap();
    assert_eq!((roll.cost, roll.reason), (1_125.0, RollReason::Pressure));
    assert_eq!(held(8..9, 9, &policy).decide(&policy).unwrap().reason, RollReason::Pays);
}

#[test]
fn full_window_with_little_to_take_does_not_roll_at_every_call() {
    let policy = Policy { context_window: 100_000, ..Policy::new(Prices::new(0.1, 1.25)) };
    let mut ledger = Ledger::new(86_000);
    let mut rolls = 0;
    for call in 0..100 {
        if call >= 3 {
            ledger.set_stale((call - 3) * 2, true);
        }
        if let Some(roll) = ledger.decide(&policy) {
            execute(&mut ledger, &roll);
            rolls += 1;
        }
        ledger.push(Item::new(60, 10));
        ledger.push(Item::fixed(40));
        ledger.charge_call(&policy);
    }
    assert!((1..=20).contains(&rolls), "{rolls} rolls");
}

#[rstest]
#[case::inside_a_turn(false, 0, None)]
#[case::at_its_start(true, 0, Some(RollReason::Free))]
#[case::hard_pressure_does_not_wait(false, 5_000, Some(RollReason::Free))]
fn user_turns(#[case] at_user_turn: bool, #[case] context_window: u64, #[case] expected: Option<RollReason>) {
    let policy = Policy {
        only_at_user_turn: true,
        at_user_turn,
        cache_dead: true,
        context_window,
        ..Policy::new(EXACT)
    };
    assert_eq!(held(0..5, 0, &policy).decide(&policy).map(|r| r.reason), expected);
}

#[test]
fn stale_means_it_can_shrink() {
    let mut ledger = Ledger::new(0);
    let small = ledger.push(Item::new(10, 15));
    let fixed = ledger.push(Item::fixed(5_000));
    let result = ledger.push(Item::new(5_000, 15));
    assert!(!ledger.set_stale(small, true) && !ledger.set_stale(fixed, true) && !ledger.set_stale(99, true));
    assert!(ledger.set_stale(result, true) && !ledger.set_stale(result, true));
    assert_eq!(ledger.stale_tokens(), 4_985);
    assert!(ledger.set_stale(result, false) && !ledger.set_stale(result, false));
    assert_eq!(refer(&mut ledger, result), 4_985);
    assert!(!ledger.set_stale(result, true), "a reference pays no rent");
}

#[test]
fn rent_restarts_after_a_new_use() {
    let policy = Policy::new(EXACT);
    let mut ledger = held(3..4, 5, &policy);
    assert_eq!(rent(&ledger), 625.0);
    ledger.set_stale(3, false);
    ledger.set_stale(3, true);
    assert_eq!(rent(&ledger), 0.0);
}

#[test]
fn resumed_ledger_knows_the_sent_text() {
    let policy = Policy::new(EXACT);
    let mut ledger = Ledger::new(1_000);
    for _ in 0..4 {
        let place = ledger.push(Item::new(1_000, 10));
        ledger.set_stale(place, true);
    }
    refer(&mut ledger, 0);
    assert_eq!(ledger.decide(&policy), None);
    ledger.assume_shown(0);
    let roll = ledger.decide(&policy).unwrap();
    assert_eq!((roll.items.as_slice(), roll.reason), (&[1, 2, 3][..], RollReason::Free));
}

#[test]
fn resumed_ledger_with_a_live_cache_rolls_only_what_pays() {
    let policy = Policy::new(EXACT);
    let mut ledger = held(3..6, 9, &policy);
    ledger.push(Item::new(500, 0));
    ledger.guess_system_tokens(0);
    ledger.set_system_tokens(1_000);
    let paid = rent(&ledger);
    ledger.assume_shown(usize::MAX);
    assert_eq!(rent(&ledger), paid);
    assert_eq!(ledger.decide(&policy), None);
    let charge = ledger.charge_call(&policy);
    assert_eq!((charge.read_tokens, charge.written_tokens), (11_000, 500));
}

/// The transcript has each message as it came; what it was sent as is found out after it.
#[test]
fn rebuilt_ledger_has_the_sent_form_in_the_cache() {
    let policy = Policy::new(EXACT);
    for (is_cached, read) in [(true, 3_010), (false, 0)] {
        let mut ledger = Ledger::new(1_000);
        ledger.rebuild();
        (0..3).for_each(|_| _ = ledger.push(Item::new(1_000, 10)));
        ledger.charge_call(&policy);
        refer(&mut ledger, 0);
        ledger.assume_shown(if is_cached { usize::MAX } else { 0 });
        ledger.push(Item::new(500, 10));
        assert_eq!(ledger.charge_call(&policy).read_tokens, read);
        refer(&mut ledger, 1);
        assert_eq!(ledger.charge_call(&policy).read_tokens, 1_010, "what changes from then on breaks it");
    }
}

/// Until the first call it is only known what the system part was before.
#[test]
fn correcting_a_guessed_system_part_is_not_a_change() {
    let policy = Policy::new(EXACT);
    let mut ledger = held(3..4, 0, &policy);
    ledger.guess_system_tokens(500);
    ledger.set_system_tokens(2_000);
    assert_eq!(ledger.charge_call(&policy).read_tokens, 12_000);
    ledger.set_system_tokens(2_001);
    assert_eq!(ledger.charge_call(&policy).read_tokens, 0);
}

#[test]
fn a_changed_system_part_leaves_nothing_cached() {
    let policy = Policy::new(EXACT);
    let mut ledger = held(3..4, 0, &policy);
    ledger.set_system_tokens(1_000);
    assert_eq!(ledger.charge_call(&policy).read_tokens, 11_000);
    ledger.set_system_tokens(1_001);
    assert_eq!(ledger.decide(&policy).map(|r| r.reason), Some(RollReason::Free));
    assert_eq!(ledger.charge_call(&policy).read_tokens, 0);
}
