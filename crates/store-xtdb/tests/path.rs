//! What stands between a machine and its node: answers that come late, are about something else, or are no answers. Needs no
//! XTDB: the node is the one of the engine's simulation.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code)] // the simulation uses more of it
#[path = "../../engine/tests/simulation/node.rs"]
mod node;

mod fleet;

use std::sync::Arc;

use context_store::{AsOf, Store};
use fleet::gate::{Act, Gate};
use fleet::{Machine, PATIENCE, file, open, text};
use node::{Node, Port};
use tokio::sync::{Notify, mpsc};

/// A machine behind a gate, and another one that is not.
struct Pair {
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
        let store = open(place.path(), &gate.url).await;
        let other = Machine::start(&node).await;
        Self { gate, one: Machine { place, port, store }, other }
    }
}

/// The first answer with a version of a file is on its way while the next version is written and heard of.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_is_heard_of_while_the_version_before_is_on_its_way_is_fetched() {
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
async fn an_object_that_is_heard_of_while_it_is_asked_for_is_not_absent() {
    let Pair { gate, one, other, .. } = Pair::start().await;
    one.put("/known", "known").await;
    one.store.flush().await.unwrap();
    let (held, mut is_held) = mpsc::unbounded_channel();
    let release = Arc::new(Notify::new());
    let (until, mut is_first) = (Arc::clone(&release), true);
    let id = file("/f", "").id().clone();
    gate.set(move |target, _, body| {
        if is_first && target.contains("entity-tx") && body.contains(":error") {
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
