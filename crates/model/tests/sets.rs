//! A session's sets: the invariants after any sequence of operations, several operations in one change, and the equality of the
//! patch chain with the whole document.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod long;

use context_model::error::ErrorCode;
use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::patch;
use context_model::session::{Sets, SetsChange};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

#[derive(Clone, Debug)]
enum Step {
    Encounter(usize),
    Promote(usize),
    Demote(usize),
    Activate(usize),
    Deactivate(usize),
    Pin(usize),
    Unpin(usize),
    /// Back to the sets as they were after an earlier step.
    Restore(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let id = 0..8_usize;
    prop_oneof![
        1 => id.clone().prop_map(Step::Encounter),
        1 => id.clone().prop_map(Step::Promote),
        1 => id.clone().prop_map(Step::Demote),
        3 => id.clone().prop_map(Step::Activate),
        2 => id.clone().prop_map(Step::Deactivate),
        1 => id.clone().prop_map(Step::Pin),
        1 => id.prop_map(Step::Unpin),
        1 => (0..100_usize).prop_map(Step::Restore),
    ]
}

fn id(n: usize) -> ObjectId {
    ObjectId::new(format!("object/{n}~"))
}

fn session() -> SessionId {
    SessionId::new("s").unwrap()
}

/// Adds a step to a change.
fn add(sets: &Sets, step: &Step, past: &[Sets], change: &mut SetsChange) {
    match step {
        Step::Encounter(n) => sets.encounter(&id(*n), change),
        Step::Promote(n) => sets.promote(&id(*n), change),
        Step::Demote(n) => sets.demote(&id(*n), change),
        Step::Activate(n) => sets.activate(&id(*n), change),
        Step::Deactivate(n) => {
            let was = sets.after(change).active().any(|one| *one == id(*n));
            assert_eq!(sets.deactivate(&id(*n), change), was);
        }
        Step::Pin(n) => sets.pin(&id(*n), change),
        Step::Unpin(n) => {
            let was = sets.after(change).is_pinned(&id(*n));
            assert_eq!(sets.unpin(&id(*n), change), was);
        }
        Step::Restore(n) => sets.restore(&past[n % past.len()], change),
    }
}

/// Makes one step.
fn apply(sets: &mut Sets, step: &Step, past: &[Sets]) -> SetsChange {
    let mut change = SetsChange::default();
    add(sets, step, past, &mut change);
    sets.apply(change.clone());
    change
}

/// Checks the meaning of each operation for the object that it names, as the specification has it.
fn check_meaning(sets: &Sets, step: &Step, before: &Sets, past: &[Sets]) {
    match step {
        Step::Encounter(n) => assert!(sets.index().contains(&id(*n))),
        Step::Promote(n) => assert!(sets.pool().contains(&id(*n))),
        Step::Demote(n) => {
            assert!(!sets.pool().contains(&id(*n)) && !sets.active().contains(&id(*n)));
            assert_eq!(sets.index(), before.index());
        }
        Step::Activate(n) => assert_eq!(sets.active().last(), Some(&id(*n))),
        Step::Deactivate(n) => {
            assert!(!sets.active().contains(&id(*n)));
            assert_eq!(sets.pool(), before.pool());
        }
        Step::Pin(n) => assert!(sets.pinned().contains(&id(*n))),
        Step::Unpin(n) => assert!(!sets.pinned().contains(&id(*n))),
        Step::Restore(n) => {
            let point = &past[n % past.len()];
            assert!(sets.pool().iter().eq(point.pool()));
            assert!(sets.active().iter().eq(point.active()));
            assert!(sets.pinned().iter().eq(point.pinned()));
            assert!(point.index().is_subset(sets.index()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(long::cases(10_000)))]

    #[test]
    fn the_invariants_hold_after_every_operation(steps in prop::collection::vec(step(), 1..100)) {
        let mut sets = Sets::default();
        let mut past = vec![sets.clone()];
        for step in &steps {
            let before = sets.clone();
            let change = apply(&mut sets, step, &past);
            check_meaning(&sets, step, &before, &past);
            prop_assert!(sets.holds());
            prop_assert!(sets.active().is_subset(sets.pool()) && sets.pool().is_subset(sets.index()));
            // The index never shrinks, and what is in it keeps its place.
            prop_assert!(sets.index().iter().take(before.index().len()).eq(before.index()));
            prop_assert_eq!(change.is_empty(), sets_are_same(&sets, &before));
            past.push(sets.clone());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(long::cases(2_000)))]

    #[test]
    fn steps_of_one_change_do_what_they_do_one_by_one(
        steps in prop::collection::vec(step(), 1..30),
        together in prop::collection::vec(step(), 1..20),
    ) {
        let mut sets = Sets::default();
        let mut past = vec![sets.clone()];
        for step in &steps {
            apply(&mut sets, step, &past);
            past.push(sets.clone());
        }
        let mut single = sets.clone();
        let mut change = SetsChange::default();
        for step in &together {
            apply(&mut single, step, &past);
            add(&sets, step, &past, &mut change);
            let after = sets.after(&change);
            prop_assert!(after.active().eq(single.active()));
            for id in (0..8).map(id) {
                let expected = (single.index().contains(&id), single.pinned().contains(&id));
                prop_assert_eq!((after.is_indexed(&id), after.is_pinned(&id)), expected);
            }
        }
        sets.apply(change);
        prop_assert!(sets_are_same(&sets, &single));
    }

    #[test]
    fn the_patches_put_together_are_the_whole_document(batches in prop::collection::vec(prop::collection::vec(step(), 0..8), 1..20)) {
        let mut sets = Sets::default();
        let mut past = vec![sets.clone()];
        let base = sets.document(&session());
        let mut patches = Vec::new();
        for batch in &batches {
            let mut change = SetsChange::default();
            for step in batch {
                add(&sets, step, &past, &mut change);
            }
            patches.push(change.patch().clone());
            sets.apply(change);
            past.push(sets.clone());
        }
        let patched = patch::apply(base, &patches).unwrap();
        prop_assert_eq!(&patched, &sets.document(&session()));
        prop_assert!(sets_are_same(&Sets::from_document(&patched).unwrap(), &sets));
    }

    #[test]
    fn touched_names_every_object_whose_place_changed(steps in prop::collection::vec(step(), 1..40)) {
        let mut sets = Sets::default();
        let mut past = vec![sets.clone()];
        for step in &steps {
            let before = sets.clone();
            let change = apply(&mut sets, step, &past);
            for n in 0..8 {
                let id = id(n);
                let place = |s: &Sets| [s.index(), s.pool(), s.active(), s.pinned()].map(|set| set.contains(&id));
                prop_assert!(place(&before) == place(&sets) || change.touched().contains(&id));
            }
            past.push(sets.clone());
        }
    }
}

/// Equal with the order of each set.
fn sets_are_same(a: &Sets, b: &Sets) -> bool {
    [(a.index(), b.index()), (a.pool(), b.pool()), (a.active(), b.active()), (a.pinned(), b.pinned())]
        .into_iter()
        .all(|(a, b)| a.iter().eq(b))
}

fn with(fields: &[(&str, Value)]) -> Document {
    let (id, kind, source, mut payload) = Sets::default().document(&session()).into_parts();
    for (name, value) in fields {
        payload.insert((*name).into(), value.clone());
    }
    Document::new(id, kind, source, payload).unwrap()
}

#[rstest]
#[case::active_outside_the_pool(&[("session_index", json!(["a"])), ("active_set", json!(["a"]))])]
#[case::pool_outside_the_index(&[("metadata_pool", json!(["a"]))])]
#[case::pinned_outside_the_index(&[("pinned_set", json!(["a"]))])]
#[case::twice(&[("session_index", json!(["a", "b", "a"]))])]
#[case::not_a_list(&[("session_index", json!("a"))])]
#[case::not_ids(&[("session_index", json!([1]))])]
#[case::missing(&[("session_index", Value::Null)])]
fn a_damaged_session_document_is_refused(#[case] fields: &[(&str, Value)]) {
    let error = Sets::from_document(&with(fields)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
}

#[test]
fn another_type_of_document_is_no_session() {
    assert!(Sets::from_document(&Document::chat(&session())).is_err());
}

#[test]
fn a_session_document_holds_ids_and_references_only() {
    let mut sets = Sets::default();
    apply(&mut sets, &Step::Activate(1), &[]);
    let document = sets.document(&session());
    let mut names: Vec<&str> = document.payload().keys().map(String::as_str).collect();
    names.sort_unstable();
    let expected = [
        "active_set",
        "chat_ref",
        "content_hash",
        "metadata_pool",
        "pinned_set",
        "session_id",
        "session_index",
        "system_prompt_ref",
    ];
    assert_eq!(names, expected);
    assert_eq!(document.field("active_set"), Some(&json!([id(1)])));
    assert_eq!(document.text("chat_ref"), Some("chat:s"));
    assert_eq!(document.text("system_prompt_ref"), Some("system_prompt:s"));
}
