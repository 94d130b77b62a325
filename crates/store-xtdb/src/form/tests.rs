use std::sync::LazyLock;

use context_model::id::SessionId;
use context_model::source::FilesystemSource;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::resolve::Past;
use crate::wire::{Coordinates, Tx};
use context_model::time::TxId;

fn chat(turns: usize) -> Document {
    let (id, kind, source, mut payload) = Document::chat(&SessionId::new("s").unwrap()).into_parts();
    let turn = |n: usize| json!({ "user": format!("question {n}"), "toolcall_ids": [n] });
    payload.insert("turns".into(), (0..turns).map(turn).collect());
    payload.insert("turn_count".into(), turns.into());
    Document::new(id, kind, source, payload).unwrap()
}

fn at(millis: usize) -> Timestamp {
    Timestamp::from_millis(i64::try_from(millis).unwrap())
}

/// The documents of a chat that grows turn by turn, as they are sent.
fn sent(turns: usize) -> Vec<Value> {
    let mut before = chat(0);
    let mut form = StoredForm::whole(&before);
    let mut sent = vec![form.value(&before)];
    for n in 1..=turns {
        let next = chat(n);
        form = form.next(&before, at(n - 1), &next);
        sent.push(form.value(&next));
        before = next;
    }
    sent
}

#[test]
fn sent_bytes_grow_with_the_turns_and_not_with_their_square() {
    let bytes = |turns| sent(turns).iter().map(|value| value.to_string().len()).sum::<usize>();
    let (few, many) = (bytes(100), bytes(400));
    assert!(many < few * 5, "{few} bytes for 100 turns, {many} for 400");
    assert!(many < 400 * 2_000, "{many}");
}

#[test]
fn every_version_is_resolved_from_earlier_ones() {
    let sent = sent(120);
    let whole = sent.iter().filter(|value| value.get(PATCH).is_none()).count();
    assert!((2..60).contains(&whole), "{whole} whole documents");
    let row = |(n, value): (usize, &Value)| {
        let tx = Tx { id: TxId(n as u64 + 1), time: at(n) };
        (json!({ "doc": value }), Coordinates { valid_time: at(n), tx, is_deletion: false, document: None })
    };
    let mut past = Past::new(sent.iter().enumerate().map(row).collect());
    for (n, value) in sent.iter().enumerate() {
        let (version, _) = past.next().unwrap().unwrap();
        assert_eq!((version.document, version.valid_time), (chat(n), at(n)));
        if let Given::Changed(wanted) = Given::read(value.clone()).unwrap() {
            let since = usize::try_from(wanted.since().millis()).unwrap();
            assert!(sent[since].get(PATCH).is_none());
            let before = sent[since..n].iter().map(|value| Given::read(value.clone()).unwrap());
            let (document, form) = resolve(wanted, before.collect()).unwrap().unwrap();
            assert_eq!((&document, &form.value(&document)), (&chat(n), value));
        }
    }
}

/// The versions that are put back of an erased object have one transaction, one content and several valid times.
#[test]
fn erased_versions_of_one_transaction_stay_apart_and_a_repeated_one_does_not() {
    let source = FilesystemSource { filesystem_id: "f".into(), path: "/a".into() };
    let (id, kind, source, payload) = Document::file(source, None, None).into_parts();
    let erased = |source_hash: &str, before: &str| {
        let mut payload = payload.clone();
        payload.insert("source_hash".into(), Digest::of(source_hash.as_bytes()).to_string().into());
        let document = Document::new(id.clone(), kind, source.clone(), payload).unwrap();
        let mut value = serde_json::to_value(document).unwrap();
        let mark = json!({ "at": at(9), "why": "why", "hash": Digest::of(before.as_bytes()) });
        value[ERASED] = mark.to_string().into();
        value
    };
    let put = |hashes: &[(&str, &str)]| {
        let row = |(n, (source_hash, before)): (usize, &(&str, &str))| {
            let tx = Tx { id: TxId(9), time: at(9) };
            let place = Coordinates { valid_time: at(n), tx, is_deletion: false, document: None };
            (json!({ "doc": erased(source_hash, before) }), place)
        };
        let mut past = Past::new(hashes.iter().enumerate().map(row).collect());
        std::iter::from_fn(|| past.next().unwrap()).count()
    };
    assert_eq!(put(&[("1", "a"), ("2", "b"), ("3", "c")]), 3);
    assert_eq!(put(&[("1", "a"), ("1", "b")]), 2);
    assert_eq!(put(&[("1", "a"), ("2", "b"), ("1", "a")]), 3);
    assert_eq!(put(&[("1", "a"), ("1", "a")]), 1);
}

#[test]
fn a_change_that_does_not_fit_is_damaged() {
    let sent = sent(120);
    let place = (1..120).find(|n| sent[*n].get(PATCH).is_some() && sent[n + 1].get(PATCH).is_some()).unwrap();
    let changed = |value: &Value| match Given::read(value.clone()).unwrap() {
        Given::Changed(changed) => changed,
        Given::Whole(_) => panic!("a patch"),
    };
    // The wrong base; a changed patch; a missing version; no patch at all.
    assert!(changed(&sent[place + 1]).resolve(chat(place - 1)).is_err());
    let mut other = sent[place].clone();
    other[PATCH] = other[PATCH].as_str().unwrap().replace("question", "answer").into();
    assert!(changed(&other).resolve(chat(place - 1)).is_err());
    assert!(resolve(changed(&sent[place + 1]), vec![Given::Whole(chat(0))]).unwrap().is_none());
    other[PATCH] = json!("[]");
    assert!(Given::read(other).is_err());
    // A reader that does not know patches also refuses it.
    assert!(crate::wire::document(sent[place].clone()).is_err());
}

fn texts() -> impl Strategy<Value = String> {
    const WORDS: [&str; 11] = [
        "\"op\":\"copy\"",
        "\"from\":\"\"",
        "\"path\":\"\"",
        "/turns",
        "[",
        "]",
        "0",
        "-1",
        "1e99",
        "\\ud800",
        "",
    ];
    prop_oneof![prop::sample::select(&WORDS[..]).prop_map(str::to_owned), ".{0,8}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    /// Any alteration of a change is refused, or gives the original version.
    #[test]
    fn an_altered_change_is_refused_or_as_it_was(
        place in 1_usize..30, from in any::<prop::sample::Index>(), length in 0_usize..40, text in texts(),
    ) {
        static SENT: LazyLock<Vec<Value>> = LazyLock::new(|| sent(30));
        let mut value = SENT[place].clone();
        if let Some(patch) = value.get(PATCH).and_then(Value::as_str).map(str::to_owned) {
            let from = from.index(patch.len());
            let end = (from + length).min(patch.len());
            if let (Some(start), Some(rest)) = (patch.get(..from), patch.get(end..)) {
                value[PATCH] = format!("{start}{text}{rest}").into();
            }
        }
        let before = SENT[..place].iter().map(|value| Given::read(value.clone()).unwrap()).collect();
        if let Ok(Given::Changed(wanted)) = Given::read(value)
            && let Ok(Some((document, _))) = resolve(wanted, before)
        {
            prop_assert_eq!(document, chat(place));
        }
    }
}

/// Number of cases of the property; more with `CONTEXT_LONG`.
fn cases() -> u32 {
    if std::env::var_os("CONTEXT_LONG").is_some() { 200_000 } else { 200 }
}

#[test]
fn content_is_always_whole() {
    let (id, _, _, payload) = chat(3).into_parts();
    let call = |n: usize| {
        let mut payload = payload.clone();
        payload.insert("content".into(), "long ".repeat(n).into());
        Document::new(id.clone(), context_model::object::ObjectType::Toolcall, None, payload).unwrap()
    };
    let form = StoredForm::whole(&call(1_000)).next(&call(1_000), at(1), &call(1_001));
    assert!(form.value(&call(1_001)).get(PATCH).is_none());
}
