//! Programs between a machine and its node: answers that come late, are about something else, or are not answers. Needs no
//! XTDB: the node is the one of the engine's simulation.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::fleet::gate::{Act, Gate};
use crate::fleet::{LAG_MS, Machine, PATIENCE, assert_once, direct, file, open, open_with, text, there};
use crate::node::{Node, Port};
use context_model::error::ErrorCode;
use context_model::id::{ObjectId, SessionId};
use context_model::session::Sets;
use context_store::conformance::given::put;
use context_store::{AsOf, KnownAt, Store, clock};
use tokio::sync::{Notify, mpsc};

/// A machine behind a gate, and another one that is not.
struct Pair {
    node: Arc<Node>,
    gate: Gate,
    one: Machine,
    other: Machine,
}

impl Pair {
    async fn start() -> Self {
        let node = Arc::new(Node::default());
        let place = tempfile::tempdir().unwrap();
        let port = Port::open(Arc::clone(&node)).await;
        let gate = Gate::start(&port.url).await;
        let clock = clock::system();
        let store = open_with(place.path(), &gate.url, &clock, LAG_MS).await;
        let other = Machine::start(&node).await;
        Self { node, gate, one: Machine { place, port, store, clock, lag_ms: LAG_MS }, other }
    }
}

/// The first answer with a version of a file is on its way while the next version is written and heard of.
#[tokio::test(flavor = "multi_thread")]
async fn fetches_a_change_reported_while_the_version_before_is_on_its_way() {
    for by_history in [false, true] {
        let Pair { gate, one, other, .. } = Pair::start().await;
        one.put("/known", "known").await;
        other.put("/f", "first").await;
        other.store.flush().await.unwrap();
        let (held, mut is_held) = mpsc::unbounded_channel();
        let release = Arc::new(Notify::new());
        let (until, mut is_first) = (Arc::clone(&release), true);
        gate.set(move |_, _, body| {
            if is_first && body.contains("first") {
                is_first = false;
                held.send(()).unwrap();
                return Act::Hold(Arc::clone(&until));
            }
            Act::Pass
        });
        let (store, id) = (Arc::clone(&one.store), file("/f", "").id().clone());
        let reading = tokio::spawn(async move {
            if by_history {
                store.history(&id).await.map(drop)
            } else {
                store.get(&id, AsOf::default()).await.map(drop)
            }
        });
        tokio::time::timeout(PATIENCE, is_held.recv()).await.unwrap().unwrap();
        other.put("/f", "second").await;
        other.store.flush().await.unwrap();
        one.store.pull().await.unwrap();
        release.notify_one();
        reading.await.unwrap().unwrap();
        assert_eq!(text(&*one.store, "/f").await.as_deref(), Some("second"), "by history: {by_history}");
    }
}

/// The same for an object that is not there yet when it is asked for.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_reported_while_it_is_asked_for_is_not_absent() {
    let Pair { gate, one, other, .. } = Pair::start().await;
    one.put("/known", "known").await;
    one.store.flush().await.unwrap();
    let (held, mut is_held) = mpsc::unbounded_channel();
    let release = Arc::new(Notify::new());
    let (until, mut is_first) = (Arc::clone(&release), true);
    let id = file("/f", "").id().clone();
    gate.set(move |target, _, body| {
        if is_first && target.contains("query") && body.contains("([nil") {
            is_first = false;
            held.send(()).unwrap();
            return Act::Hold(Arc::clone(&until));
        }
        Act::Pass
    });
    let store = Arc::clone(&one.store);
    let asked = id.clone();
    let reading = tokio::spawn(async move { store.get(&asked, AsOf::default()).await.map(drop) });
    tokio::time::timeout(PATIENCE, is_held.recv()).await.unwrap().unwrap();
    other.put("/f", "new").await;
    other.store.flush().await.unwrap();
    one.store.pull().await.unwrap();
    release.notify_one();
    reading.await.unwrap().unwrap();
    assert_eq!(text(&*one.store, "/f").await.as_deref(), Some("new"));
}

/// Answers that something on the way may give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noise {
    /// This status, type and text for each read but the status.
    Page(u16, &'static str, &'static str),
    /// The answer before, of the same endpoint.
    Mixed,
    /// The first answer to the same question, whatever it should wait for.
    Cached,
}

const NOISE: [Noise; 12] = [
    Noise::Page(200, "application/json", r#"{"error":"login_required"}"#),
    Noise::Page(200, "application/json", "0"),
    Noise::Page(200, "application/json", "[]"),
    Noise::Page(200, "application/json", "null"),
    Noise::Page(200, "text/html", "<html><body>Please log in</body></html>"),
    Noise::Page(200, "application/edn", "[[[[[[[["),
    Noise::Page(404, "application/json", "{}"),
    Noise::Page(404, "application/json", r#"{"error":"not found"}"#),
    Noise::Page(404, "application/edn", "{:error \"file:other entity-tx not found\"}"),
    Noise::Page(404, "text/html", ""),
    Noise::Mixed,
    Noise::Cached,
];

impl Noise {
    fn make(self, gate: &Gate) {
        let mut said: HashMap<String, String> = HashMap::new();
        let mut count = 0;
        gate.set(move |target, asked, answer| {
            let endpoint = target.split('?').next().unwrap_or_default().to_owned();
            if endpoint.ends_with("status") {
                return Act::Pass;
            }
            count += 1;
            let kind = if answer.contains(":xtdb.api") { "application/edn" } else { "application/json" };
            match self {
                Self::Page(status, kind, text) => Act::Say(status, kind, text.to_owned()),
                Self::Mixed => match said.insert(format!("{endpoint}{kind}"), answer.to_owned()) {
                    Some(before) if count % 2 == 0 && before.contains("not found") => {
                        Act::Say(404, kind, before)
                    }
                    Some(before) if count % 2 == 0 => Act::Say(200, kind, before),
                    _ => Act::Pass,
                },
                Self::Cached => {
                    let question = target.split('&').filter(|part| !part.contains("await-tx"));
                    let question = question.collect::<Vec<_>>().join("&") + asked;
                    match said.get(&question) {
                        Some(before) if before.contains(":error") || before.contains("\"error\"") => {
                            Act::Say(404, kind, before.clone())
                        }
                        Some(before) => Act::Say(200, kind, before.clone()),
                        None => {
                            said.insert(question, answer.to_owned());
                            Act::Pass
                        }
                    }
                }
            }
        });
    }
}

/// No answer of something else costs a change, makes a second version, or is taken for damage.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_in_between_costs_no_change_and_does_not_count_as_damage() {
    for noise in NOISE {
        let Pair { node, gate, one, other } = Pair::start().await;
        for (machine, path) in [(&one, "/one"), (&other, "/other"), (&other, "/shared")] {
            machine.put(path, "0").await;
            machine.store.flush().await.unwrap();
        }
        for path in ["/other", "/shared"] {
            one.hears(path, "0").await;
        }
        other.put("/unknown", "0").await;
        other.put("/shared", "1").await;
        other.store.flush().await.unwrap();
        noise.make(&gate);
        one.put("/one", "1").await;
        for path in ["/one", "/shared", "/unknown"] {
            let id = file(path, "").id().clone();
            for error in [
                one.store.pull().await.err(),
                one.store.get(&id, AsOf::default()).await.err(),
                // A part of a history is not given as the whole: an error says so, and it is not damage.
                one.store
                    .history(&id)
                    .await
                    .err()
                    .filter(|error| error.code() != ErrorCode::StoreUnavailable),
                one.store.get_many(std::slice::from_ref(&id), AsOf::default()).await.err(),
                one.store.outlines(std::slice::from_ref(&id)).await.err(),
            ] {
                assert!(error.is_none(), "{noise:?}, {path}: {}", error.unwrap());
            }
        }
        let again = open(one.place.path(), &gate.url).await;
        again.pull().await.unwrap();
        gate.open();
        one.hears("/shared", "1").await;
        one.hears("/unknown", "0").await;
        one.put("/shared", "2").await;
        one.store.flush().await.unwrap();
        other.hears("/shared", "2").await;
        other.hears("/one", "1").await;
        let there = there(&node).await;
        for (path, texts) in [("/one", &["0", "1"][..]), ("/shared", &["0", "1", "2"]), ("/unknown", &["0"])]
        {
            texts.iter().for_each(|text| assert_once(&there, path, text));
            let versions = one.store.history(file(path, "").id()).await.unwrap();
            let here: Vec<_> = versions.iter().filter_map(|v| v.document.content()).collect();
            let mut sorted = here.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, texts, "{noise:?}, {path}");
        }
        again.close().await.unwrap();
    }
}

/// Without a journal such an answer is not damage either.
#[tokio::test(flavor = "multi_thread")]
async fn such_answers_are_unavailable_where_nothing_else_can_answer() {
    let Pair { node: _node, gate, one: _one, other } = Pair::start().await;
    other.put("/f", "text").await;
    other.store.flush().await.unwrap();
    let id = file("/f", "").id().clone();
    for noise in &NOISE[..2] {
        gate.open();
        let options = context_store_xtdb::XtdbOptions::new([gate.url.clone()]);
        let store = context_store_xtdb::XtdbStore::connect(options).await.unwrap();
        noise.make(&gate);
        for error in
            [store.get(&id, AsOf::default()).await.unwrap_err(), store.history(&id).await.unwrap_err()]
        {
            assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{noise:?}: {error}");
        }
    }
}

/// A question about an earlier point of either time gets the answer to a later question about the same object: the answer
/// names the object and not the point.
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_about_a_later_point_is_not_the_version_of_an_earlier_one() {
    let Pair { node: _node, gate, one: _one, other } = Pair::start().await;
    let writer = direct(&other.port).await;
    put(&*writer, file("/f", "first")).await;
    let id = file("/f", "").id().clone();
    let first = writer.get(&id, AsOf::default()).await.unwrap().unwrap();
    // No version between them: their times differ by at least a millisecond.
    while (clock::system())() <= first.valid_time.max(first.tx_time) {
        tokio::task::yield_now().await;
    }
    put(&*writer, file("/f", "second")).await;
    let points = [
        AsOf { known: Some(KnownAt::Tx(first.tx_id)), ..AsOf::default() },
        AsOf { known: Some(KnownAt::Time(first.tx_time)), ..AsOf::default() },
        AsOf { valid_time: Some(first.valid_time), ..AsOf::default() },
    ];
    for at in points {
        gate.open();
        let options = context_store_xtdb::XtdbOptions::new([gate.url.clone()]);
        let reader = context_store_xtdb::XtdbStore::connect(options).await.unwrap();
        let mut later = None;
        gate.set(move |target, _, answer| match (target.contains("entity-tx"), &later) {
            (false, _) => Act::Pass,
            (true, None) => {
                later = Some(answer.to_owned());
                Act::Pass
            }
            (true, Some(later)) => Act::Say(200, "application/edn", later.clone()),
        });
        let newest = reader.get(&id, AsOf::default()).await.unwrap().unwrap();
        assert_eq!(newest.document.content(), Some("second"));
        let error = reader.get(&id, at).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{at:?}: {error}");
        let error = reader.get_many(std::slice::from_ref(&id), at).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{at:?}: {error}");
        gate.open();
        let found = reader.get(&id, at).await;
        assert_eq!(found.unwrap_or_else(|error| panic!("{at:?}: {error}")).as_ref(), Some(&first), "{at:?}");
    }
}

/// A session that can't be looked up is not a new one: away, and away while it is asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_can_not_be_looked_up_does_not_count_as_new() {
    let Pair { node: _node, gate, one, other } = Pair::start().await;
    let session = SessionId::new("s").unwrap();
    let id = ObjectId::session(&session);
    put(&*other.store, Sets::default().document(&session)).await;
    other.store.flush().await.unwrap();
    one.put("/known", "known").await;
    one.store.flush().await.unwrap();
    gate.set(|_, _, _| Act::Say(502, "text/html", "<h1>Bad gateway</h1>".to_owned()));
    for _ in 0..2 {
        let error = one.store.get(&id, AsOf::default()).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::StoreUnavailable);
        assert!(error.to_string().contains("another one has it"), "{error}");
    }
    // Everything else continues.
    one.put("/known", "more").await;
    assert_eq!(text(&*one.store, "/known").await.as_deref(), Some("more"));
    assert_eq!(text(&*one.store, "/unknown").await, None);
    gate.open();
    one.store.flush().await.unwrap();
    assert!(one.store.get(&id, AsOf::default()).await.unwrap().is_some());
    let new = ObjectId::session(&SessionId::new("new").unwrap());
    assert_eq!(one.store.get(&new, AsOf::default()).await.unwrap(), None);
    // One that the journal has is opened at any time.
    gate.set(|_, _, _| Act::Say(502, "text/html", "<h1>Bad gateway</h1>".to_owned()));
    assert!(one.store.get(&id, AsOf::default()).await.unwrap().is_some());
    // Without its chat it is only a part of that session.
    let error = one.store.get(&ObjectId::chat(&session), AsOf::default()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
}

/// Only the answers about a session are lost, while others show that the node is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_does_not_count_as_new_because_the_node_answers_other_questions() {
    let Pair { node: _node, gate, one, .. } = Pair::start().await;
    let id = ObjectId::session(&SessionId::new("s").unwrap());
    one.put("/known", "known").await;
    one.store.flush().await.unwrap();
    gate.set(|target, body, _| match target.contains("session%3As") || body.contains("session:s") {
        true => Act::Say(502, "text/html", "<h1>Bad gateway</h1>".to_owned()),
        false => Act::Pass,
    });
    let store = Arc::clone(&one.store);
    let others = tokio::spawn(async move {
        for n in 0.. {
            store.get(file(&format!("/unknown/{n}"), "").id(), AsOf::default()).await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    for _ in 0..12 {
        one.reconnects().await;
        let found = one.store.get(&id, AsOf::default()).await;
        assert_eq!(found.map_err(|error| error.code()), Err(ErrorCode::StoreUnavailable));
    }
    others.abort();
    gate.open();
    one.reconnects().await;
    assert_eq!(one.store.get(&id, AsOf::default()).await.unwrap(), None);
}

/// The answers to one of these questions are those of an earlier transaction, which was committed, for three times.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_write_is_written_although_the_answers_are_about_another_transaction() {
    for endpoint in ["submit-tx", "tx-committed", "entity"] {
        let Pair { node, gate, one, other, .. } = Pair::start().await;
        let left = Arc::new(AtomicUsize::new(0));
        let (mut earlier, mixed) = (None, Arc::clone(&left));
        gate.set(move |target, _, answer| {
            if !target.split('?').next().unwrap_or_default().ends_with(endpoint) || answer.contains("error") {
                return Act::Pass;
            }
            let kind = if answer.contains(":xtdb.api") { "application/edn" } else { "application/json" };
            let before = earlier.get_or_insert_with(|| answer.to_owned()).clone();
            let take = |left: usize| left.checked_sub(1);
            match mixed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
                Ok(_) => Act::Say(200, kind, before),
                Err(_) => Act::Pass,
            }
        });
        one.put("/f", "first").await;
        one.store.flush().await.unwrap();
        // The version that this machine remembers as the latest is not the latest any more, so its next transaction is refused.
        put(&*direct(&other.port).await, file("/f", "second")).await;
        left.store(3, Ordering::Relaxed);
        one.put("/f", "third").await;
        one.store.flush().await.unwrap();
        for text in ["first", "second", "third"] {
            assert_once(&there(&node).await, "/f", text);
        }
    }
}
