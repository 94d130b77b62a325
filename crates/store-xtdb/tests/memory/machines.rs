//! Several machines on one database: copied, moved and restored journals, databases that come back from a backup, and
//! clocks that differ. Needs no XTDB: the node is the one of the engine's simulation.

use std::sync::Arc;

use crate::fleet::{Machine, assert_once, copy_files, direct, file, open, text, there};
use crate::node::{Node, Port, Way};
use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::time::Timestamp;
use context_store::conformance::given::{put, turn};
use context_store::{AsOf, Store, StoreError, Transaction, Version, Write, clock};
use context_store_sqlite::{Durability, SqliteStore};

/// The outcome is the same whatever the original had sent before the copy.
#[tokio::test(flavor = "multi_thread")]
async fn a_copied_journal_sends_all_of_its_own_and_hears_of_the_original() {
    for (more, offline) in [(5, 1), (5, 5), (5, 12), (0, 3), (12, 0)] {
        let node = Arc::new(Node::default());
        let mut original = Machine::start(&node).await;
        original.put("/shared", "first").await;
        original.store.flush().await.unwrap();
        original.store.close().await.unwrap();
        let copy = Machine::in_place(&node, original.copied()).await;
        copy.port.set(Way::Away);
        original.store = open(original.place.path(), &original.port.url).await;
        for n in 0..more {
            original.put(&format!("/original/{n}"), "original").await;
        }
        original.put("/shared", "second").await;
        original.store.flush().await.unwrap();
        copy.put_offline("copy", offline).await;
        copy.store.flush().await.unwrap();
        copy.hears("/shared", "second").await;
        copy.put("/shared", "third").await;
        copy.store.flush().await.unwrap();
        original.hears("/shared", "third").await;
        original.put("/shared", "fourth").await;
        original.store.flush().await.unwrap();
        copy.hears("/shared", "fourth").await;
        let there = there(&node).await;
        (0..more).for_each(|n| assert_once(&there, &format!("/original/{n}"), "original"));
        (0..offline).for_each(|n| assert_once(&there, &format!("/copy/{n}"), "copy"));
        for text in ["first", "second", "third", "fourth"] {
            assert_once(&there, "/shared", text);
        }
    }
}

/// A copy that is made while the original runs; both continue.
#[tokio::test(flavor = "multi_thread")]
async fn two_running_machines_with_one_name_notice() {
    let node = Arc::new(Node::default());
    let one = Machine::start(&node).await;
    one.put("/shared", "0").await;
    one.store.flush().await.unwrap();
    let two = Machine::in_place(&node, one.copied()).await;
    for n in 0..6 {
        let (writer, reader) = if n % 2 == 0 { (&one, &two) } else { (&two, &one) };
        let text = format!("{}", n + 1);
        writer.put("/shared", &text).await;
        writer.put(&format!("/own/{n}"), "own").await;
        writer.store.flush().await.unwrap();
        reader.hears("/shared", &text).await;
    }
    let there = there(&node).await;
    for n in 0..6 {
        assert_once(&there, &format!("/own/{n}"), "own");
        assert_once(&there, "/shared", &n.to_string());
    }
}

/// The journal alone is restored, or together with the files beside it, and is worked on without the network.
#[tokio::test(flavor = "multi_thread")]
async fn a_restored_journal_sends_its_gains_and_fetches_its_losses() {
    for (with_hint, offline) in [(true, 2), (false, 2), (true, 30), (false, 30)] {
        let node = Arc::new(Node::default());
        let other = Machine::start(&node).await;
        let mut one = Machine::start(&node).await;
        one.put("/mine", "first").await;
        other.put("/shared", "first").await;
        other.store.flush().await.unwrap();
        one.hears("/shared", "first").await;
        one.restart().await;
        one.store.close().await.unwrap();
        let backup = one.copied();
        one.store = open(one.place.path(), &one.port.url).await;
        for n in 0..10 {
            one.put(&format!("/lost/{n}"), "lost").await;
        }
        other.put("/shared", "second").await;
        other.store.flush().await.unwrap();
        one.hears("/shared", "second").await;
        one.restart().await;
        one.store.close().await.unwrap();
        let names = ["journal.db", "journal.db-wal", "journal.db-shm"];
        for name in names {
            let _ = std::fs::remove_file(one.place.path().join(name));
        }
        if with_hint {
            copy_files(backup.path(), one.place.path());
        } else {
            std::fs::copy(backup.path().join(names[0]), one.place.path().join(names[0])).unwrap();
        }
        one.store = open(one.place.path(), &one.port.url).await;
        one.put_offline("new", offline).await;
        one.store.flush().await.unwrap();
        one.hears("/shared", "second").await;
        other.put("/shared", "third").await;
        other.store.flush().await.unwrap();
        one.hears("/shared", "third").await;
        let there = there(&node).await;
        (0..10).for_each(|n| assert_once(&there, &format!("/lost/{n}"), "lost"));
        (0..offline).for_each(|n| assert_once(&there, &format!("/new/{n}"), "new"));
        assert_once(&there, "/mine", "first");
        assert_eq!(text(&*one.store, "/lost/3").await.as_deref(), Some("lost"));
    }
}

/// The node loses its newest transactions, or all of them, while the machines run or are away; and others may have written
/// as many as were lost before they come back.
#[tokio::test(flavor = "multi_thread")]
async fn a_restored_database_gets_back_its_losses() {
    for (kept, is_running, overtaken) in [
        (4, true, 0),
        (4, false, 0),
        (0, true, 0),
        (0, false, 0),
        (4, true, 60),
        (4, false, 60),
        (0, false, 60),
    ] {
        let node = Arc::new(Node::default());
        let mut one = Machine::start(&node).await;
        let mut two = Machine::start(&node).await;
        one.put("/shared", "first").await;
        one.store.flush().await.unwrap();
        two.hears("/shared", "first").await;
        for n in 0..8 {
            one.put(&format!("/one/{n}"), "one").await;
            one.store.flush().await.unwrap();
            two.put(&format!("/two/{n}"), "two").await;
            two.store.flush().await.unwrap();
        }
        two.put("/shared", "second").await;
        two.store.flush().await.unwrap();
        one.hears("/shared", "second").await;
        if is_running {
            one.port.set(Way::Away);
            two.port.set(Way::Away);
        } else {
            one.store.close().await.unwrap();
            two.store.close().await.unwrap();
        }
        node.rewind(kept);
        let port = Port::open(Arc::clone(&node)).await;
        let third = direct(&port).await;
        for n in 0..overtaken {
            put(&*third, file(&format!("/third/{n}"), "third")).await;
        }
        for machine in [&mut one, &mut two] {
            machine.port.set(Way::Open);
            if !is_running {
                machine.store = open(machine.place.path(), &machine.port.url).await;
            }
        }
        one.put("/shared", "third").await;
        one.store.flush().await.unwrap();
        two.hears("/shared", "third").await;
        two.put("/shared", "fourth").await;
        two.store.flush().await.unwrap();
        one.hears("/shared", "fourth").await;
        let there = there(&node).await;
        for n in 0..8 {
            assert_once(&there, &format!("/one/{n}"), "one");
            assert_once(&there, &format!("/two/{n}"), "two");
        }
        for text in ["second", "third", "fourth"] {
            assert_once(&there, "/shared", text);
        }
        for machine in [&one, &two] {
            let notice = machine.store.state().notice.unwrap_or_default();
            assert!(notice.contains("restored, emptied or replaced"), "{notice}");
        }
    }
}

/// A journal that is given another database sends this machine's writes to it, and not the versions that it has read of
/// others.
#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_database_gets_this_machines_writes() {
    let (node, another) = (Arc::new(Node::default()), Arc::new(Node::default()));
    let one = Machine::start(&node).await;
    let other = Machine::start(&node).await;
    one.put("/mine", "mine").await;
    other.put("/theirs", "theirs").await;
    other.store.flush().await.unwrap();
    one.hears("/theirs", "theirs").await;
    one.store.flush().await.unwrap();
    one.store.close().await.unwrap();
    let filler = Machine::start(&another).await;
    for n in 0..30 {
        filler.put(&format!("/filler/{n}"), "filler").await;
    }
    filler.store.flush().await.unwrap();
    let port = Port::open(Arc::clone(&another)).await;
    let store = open(one.place.path(), &port.url).await;
    store.flush().await.unwrap();
    assert_once(&there(&another).await, "/mine", "mine");
    assert_eq!(there(&another).await.keys().filter(|(path, _)| path == "/theirs").count(), 0);
}

/// A machine with a slow clock replaces the version of a fast one, in the same process and in the next one.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_replaces_its_base_after_a_restart() {
    let node = Arc::new(Node::default());
    let port = Port::open(Arc::clone(&node)).await;
    let fast = direct(&port).await;
    let hours = Timestamp::from_millis(clock::system()().millis() + 3 * 3_600_000);
    let ahead = |document: Document| Write::Put { document, valid_time: Some(hours) };
    let chat = ObjectId::chat(&SessionId::new("s").unwrap());
    let writes = vec![ahead(file("/f", "fast")), ahead(Document::chat(&SessionId::new("s").unwrap()))];
    fast.transact(Transaction { writes, expected: Vec::new() }).await.unwrap();
    let mut slow = Machine::start(&node).await;
    slow.hears("/f", "fast").await;
    assert!(slow.store.get(&chat, AsOf::default()).await.unwrap().is_some());
    slow.restart().await;
    let beside = open(slow.place.path(), &slow.port.url).await;
    for (store, text, n) in [(&slow.store, "slow", 1), (&beside, "beside", 2), (&slow.store, "again", 3)] {
        let writes = vec![Write::put(file("/f", text)), Write::patch(chat.clone(), turn(n))];
        store.transact(Transaction { writes, expected: Vec::new() }).await.unwrap();
        assert_eq!(self::text(&**store, "/f").await.as_deref(), Some(text));
    }
    slow.store.flush().await.unwrap();
    assert_eq!(text(&*direct(&port).await, "/f").await.as_deref(), Some("again"));
    let third = Machine::start(&node).await;
    assert_eq!(third.pulled("/f").await.as_deref(), Some("again"));
    let turns = |version: Option<Version>| version.unwrap().document.field("turn_count").cloned();
    assert_eq!(turns(third.store.get(&chat, AsOf::default()).await.unwrap()), Some(3.into()));
    beside.close().await.unwrap();
}

/// Others' sessions stay theirs: they are not sent again when their owner has removed them.
#[tokio::test(flavor = "multi_thread")]
async fn a_pruned_session_does_not_come_back_by_itself() {
    let node = Arc::new(Node::default());
    let owner = Machine::start(&node).await;
    let session = SessionId::new("s").unwrap();
    for document in [
        Document::chat(&session),
        Document::system_prompt(&session, "be brief"),
        context_model::session::Sets::default().document(&session),
    ] {
        put(&*owner.store, document).await;
    }
    owner.store.flush().await.unwrap();
    let ids = [ObjectId::chat(&session), ObjectId::system_prompt(&session), ObjectId::session(&session)];
    let mut reader = Machine::start(&node).await;
    assert!(reader.store.get_many(&ids, AsOf::default()).await.unwrap().iter().all(Option::is_some));
    node.evict(&ids.each_ref().map(ObjectId::as_str));
    let left = || ids.iter().filter(|id| node.latest(id.as_str()).is_some()).count();
    assert_eq!(left(), 0);
    // With its hint file, without it, and after a write under its own name.
    for round in 0..4 {
        reader.store.close().await.unwrap();
        if round == 1 {
            std::fs::remove_file(reader.place.path().join("journal.db.progress")).unwrap();
        }
        reader.store = open(reader.place.path(), &reader.port.url).await;
        if round == 2 {
            reader.put("/mine", "mine").await;
        }
        reader.store.flush().await.unwrap();
        assert_eq!(left(), 0, "round {round}");
    }
}

/// A machine that has only read asks for as much when it opens as one that has not.
#[tokio::test(flavor = "multi_thread")]
async fn opening_does_not_grow_with_earlier_reads() {
    let node = Arc::new(Node::default());
    let writer = Machine::start(&node).await;
    for n in 0..90 {
        writer.put(&format!("/{n}"), "text").await;
    }
    writer.store.flush().await.unwrap();
    let mut asked = Vec::new();
    for read in [0, 30, 90] {
        let mut reader = Machine::start(&node).await;
        let ids: Vec<ObjectId> = (0..read).map(|n| file(&format!("/{n}"), "").id().clone()).collect();
        reader.store.get_many(&ids, AsOf::default()).await.unwrap();
        for is_first in [true, false] {
            reader.store.close().await.unwrap();
            if is_first {
                std::fs::remove_file(reader.place.path().join("journal.db.progress")).unwrap();
            }
            node.requests();
            reader.store = open(reader.place.path(), &reader.port.url).await;
            reader.store.flush().await.unwrap();
            asked.push(node.requests());
        }
    }
    assert!(asked.iter().all(|count| *count <= asked[0] + 3), "{asked:?}");
}

/// The journal and the hint file of an earlier version of this library continue where they were.
#[tokio::test(flavor = "multi_thread")]
async fn a_journal_never_sent_before_is_sent_once() {
    let place = tempfile::tempdir().unwrap();
    let journal = SqliteStore::open(place.path().join("journal.db"), Durability::Process).unwrap();
    for n in 0..5 {
        put(&*journal, file(&format!("/{n}"), "old")).await;
    }
    journal.close().await.unwrap();
    std::fs::write(place.path().join("journal.db.progress"), r#"{"sent":0,"seen":0}"#).unwrap();
    let node = Arc::new(Node::default());
    let mut one = Machine::in_place(&node, place).await;
    one.store.flush().await.unwrap();
    let count = node.count();
    one.restart().await;
    one.store.flush().await.unwrap();
    assert_eq!(node.count(), count);
    let there = there(&node).await;
    (0..5).for_each(|n| assert_once(&there, &format!("/{n}"), "old"));
}

/// A machine passes over another one's change to a file that it does not know, and then writes the file itself. The version
/// that holds from the later moment is the last one on all machines, whichever machine's clock is ahead.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_passed_over_before_the_first_write_arrives_with_it() {
    const HOURS: i64 = 3 * 3_600_000;
    for (ahead, last) in [(HOURS, "theirs"), (-HOURS, "mine")] {
        for is_restarted in [false, true] {
            let node = Arc::new(Node::default());
            let clock: clock::Clock =
                Arc::new(move || Timestamp::from_millis(clock::system()().millis() + ahead));
            let other = Machine::with_clock(&node, tempfile::tempdir().unwrap(), clock).await;
            let mut one = Machine::start(&node).await;
            // Now it works in the area of the files.
            one.put("/known", "first").await;
            one.store.flush().await.unwrap();
            other.put("/new", "theirs").await;
            other.hears("/known", "first").await;
            other.put("/known", "second").await;
            other.store.flush().await.unwrap();
            // It has heard of everything up to this change, and so of the one to the unknown file.
            one.hears("/known", "second").await;
            if is_restarted {
                one.restart().await;
                one.port.set(Way::Away);
            }
            one.put("/new", "mine").await;
            one.port.set(Way::Open);
            if is_restarted {
                one.reconnects().await;
            }
            one.store.flush().await.unwrap();
            for machine in [&one, &other] {
                machine.hears("/new", last).await;
                let history = machine.store.history(file("/new", "").id()).await.unwrap();
                assert_eq!(history.len(), 2, "{history:?}");
            }
            let there = there(&node).await;
            ["mine", "theirs"].iter().for_each(|text| assert_once(&there, "/new", text));
        }
    }
}

/// A client that does not know whether its transaction arrived finds its mark, and the next transaction is not refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_after_one_without_an_answer_is_accepted_at_once() {
    let node = Arc::new(Node::default());
    let port = Port::open(Arc::clone(&node)).await;
    let store = direct(&port).await;
    put(&*store, file("/first", "text")).await;
    let before = node.count();
    port.set(Way::Cut);
    let second = Write::Put { document: file("/second", "text"), valid_time: None };
    let unanswered = store.transact(Transaction { writes: vec![second], expected: Vec::new() }).await;
    assert!(matches!(unanswered, Err(StoreError::Unavailable(_))));
    assert_eq!(node.count(), before + 1);
    port.set(Way::Open);
    put(&*store, file("/third", "text")).await;
    assert_eq!(node.count(), before + 2);
    ["/first", "/second", "/third"]
        .iter()
        .for_each(|path| assert!(node.latest(file(path, "").id().as_str()).is_some()));
}
