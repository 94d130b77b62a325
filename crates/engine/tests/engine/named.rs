//! Large files that were only named by a shell command: their text is stored when a client reads it.

use std::fs;

use context_engine::{Engine, Options};
use context_model::error::ErrorCode;
use context_model::hash::source_hash;
use context_model::id::ObjectId;
use context_model::index::Action;
use context_store::{Erase, OwnedStore as _};
use context_store_sqlite::{Durability, SqliteStore};
use rstest::rstest;
use serde_json::json;

use crate::bench::Backend::{Memory, Sqlite};
use crate::bench::{Backend, Bench, refused, session, tool};
use crate::chat::Chat;

/// Lines of a log with about this many KiB; line `changed` is another one.
fn log(kib: usize, changed: usize) -> String {
    let lines = (0..kib * 16)
        .map(|n| format!("{:<63}\n", if n == changed { format!("new {n}") } else { n.to_string() }));
    lines.collect()
}

async fn open(bench: &Bench, session: &str) -> Engine {
    // Nothing rests: each flush takes what is on disk.
    let options = Options { watch: true, pace: 0, store: bench.second_store(), ..bench.options(session) };
    Engine::open(options).await.unwrap()
}

/// A shell command names a file. Returns the file's object.
async fn tail(engine: &Engine, path: &str) -> ObjectId {
    let output = fs::read_to_string(path).unwrap().lines().last().unwrap().to_owned();
    let call = tool("tail", "bash", json!({ "command": format!("tail -1 {path}") }), &output);
    engine.record_toolcall(call).await.unwrap();
    let pool = engine.session_sets().await.unwrap().metadata_pool;
    pool.into_iter().find(|id| !id.as_str().starts_with("tail")).unwrap()
}

async fn is_latest(bench: &Bench, id: &ObjectId, bytes: &str, has_text: bool) {
    let latest = bench.latest(id).await.unwrap();
    assert_eq!(latest.source_hash(), Some(source_hash(bytes.as_bytes())), "the version is of these bytes");
    assert_eq!(latest.content().is_some(), has_text, "whether the text is stored");
    assert!(latest.content().is_none_or(|text| text == bytes));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn large_named_file_gets_its_text_at_the_first_read(
    #[values(Memory, Sqlite)] backend: Backend,
    #[values("read", "indexFile", "indexFiles", "activate", "written")] how: &str,
) {
    let bench = Bench::new(backend);
    let engine = open(&bench, "s").await;
    let path = bench.write("server.log", log(300, 0));
    let id = tail(&engine, &path).await;
    is_latest(&bench, &id, &log(300, 0), false).await;
    for changed in 1..4 {
        bench.write("server.log", log(300 + changed, changed));
        engine.flush().await.unwrap();
        is_latest(&bench, &id, &log(300 + changed, changed), false).await;
    }
    let text = log(303, 3);
    match how {
        "read" => {
            engine.record_toolcall(tool("r", "read", json!({ "path": path }), &text)).await.unwrap();
        }
        "indexFile" => drop(engine.index_file(&path, Some(text.clone().into_bytes()), None).await.unwrap()),
        "indexFiles" => drop(engine.index_files(vec![path.clone()]).await.unwrap()),
        "activate" => {
            let change = engine.activate(id.as_str(), None).await.unwrap();
            assert_eq!(change.content.as_deref().map(str::len), Some(text.len()));
        }
        _ => drop(engine.index_written(&path, None, None).await.unwrap()),
    }
    is_latest(&bench, &id, &text, true).await;
    let versions = bench.versions(&id).await.len();
    // Named again, and as it was: nothing is written.
    tail(&engine, &path).await;
    assert_eq!(bench.versions(&id).await.len(), versions);
    // From now on, each version has text; also when a shell command comes before the event.
    bench.write("server.log", log(310, 4));
    engine.flush().await.unwrap();
    is_latest(&bench, &id, &log(310, 4), true).await;
    bench.write("server.log", log(310, 5));
    tail(&engine, &path).await;
    is_latest(&bench, &id, &log(310, 5), true).await;
    engine.close().await.unwrap();
    // The same holds after a restart, while no client looked.
    bench.write("server.log", log(310, 6));
    open(&bench, "s").await;
    is_latest(&bench, &id, &log(310, 6), true).await;
}

/// A small log is stored with its text, and no longer once it has grown; a restart changes nothing about that.
#[tokio::test(flavor = "multi_thread")]
async fn named_log_has_text_while_it_is_small() {
    let bench = Bench::new(Sqlite);
    let engine = open(&bench, "s").await;
    let path = bench.write("server.log", log(256, 0));
    let id = tail(&engine, &path).await;
    is_latest(&bench, &id, &log(256, 0), true).await;
    bench.write("server.log", log(300, 0));
    engine.flush().await.unwrap();
    is_latest(&bench, &id, &log(300, 0), false).await;
    let [text, hash] = &engine.history(id.as_str()).await.unwrap()[..] else { panic!() };
    let difference = engine.diff(id.as_str(), text.tx_id, hash.tx_id);
    let error = refused(&bench, &engine, ErrorCode::InvalidArgument, difference).await;
    assert!(error.contains("only the hash of"), "{error}");
    engine.close().await.unwrap();
    let before = bench.versions(&id).await.len();
    let engine = open(&bench, "s").await;
    assert_eq!(bench.versions(&id).await.len(), before, "nothing has changed");
    engine.close().await.unwrap();
    bench.write("server.log", log(400, 0));
    let engine = open(&bench, "s").await;
    is_latest(&bench, &id, &log(400, 0), false).await;
    bench.write("server.log", log(10, 0));
    engine.flush().await.unwrap();
    is_latest(&bench, &id, &log(10, 0), true).await;
}

/// Two sessions on one store: the one has read the file, the other has only named it. The reader's notice has the exact change
/// of the text that it sees, whichever of them looks first.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn reader_of_a_large_file_gets_an_exact_notice(
    #[values(Memory, Sqlite)] backend: Backend,
    #[values(true, false)] reader_is_first: bool,
) {
    let bench = Bench::new(backend);
    let path = bench.write("server.log", log(300, 0));
    let options = |session: &str| Options { store: bench.second_store(), ..bench.options(session) };
    let other = Engine::open(options("other")).await.unwrap();
    let id = tail(&other, &path).await;
    let mut chat = Chat::new(Engine::open(options("s")).await.unwrap());
    chat.user("read the beginning");
    chat.read("r", &path, Some((1, 20))).await;
    chat.ends().await;
    let look = async |chat: &Chat| {
        let engines = if reader_is_first { [&chat.engine, &other] } else { [&other, &chat.engine] };
        for engine in engines {
            engine.reconcile().await.unwrap();
        }
    };
    for changed in [4_000, 7] {
        bench.write("server.log", log(300, changed));
        look(&chat).await;
        chat.is_told(" +2 -2").await;
        is_latest(&bench, &id, &log(300, changed), true).await;
        assert_eq!(chat.turn("next.").await.notices, Vec::<String>::new());
    }
    // Only the other one has looked, as if the reader had lost the event.
    bench.write("server.log", log(300, 4_001));
    other.reconcile().await.unwrap();
    is_latest(&bench, &id, &log(300, 4_001), true).await;
    // The reader continues in a new process.
    chat.resync(Engine::open(options("s")).await.unwrap(), chat.messages.len()).await;
    chat.is_told(" +2 -2").await;
}

/// Only the hash of a version is stored, and the reader sees lines of the file: before its notice, the session reads the
/// version.
#[tokio::test(flavor = "multi_thread")]
async fn version_stored_by_hash_is_read_before_a_notice() {
    let bench = Bench::new(Memory);
    let path = bench.write("server.log", log(200, 0));
    let other = bench.open("other").await;
    let id = tail(&other, &path).await;
    let mut chat = Chat::new(bench.open("s").await);
    chat.user("read the beginning");
    chat.read("r", &path, Some((1, 20))).await;
    chat.ends().await;
    bench.write("server.log", log(300, 7));
    other.reconcile().await.unwrap();
    is_latest(&bench, &id, &log(300, 7), false).await;
    chat.is_told(" +1602 -2").await;
    is_latest(&bench, &id, &log(300, 7), true).await;
}

/// A text that the store's owner has erased is not one that was never stored.
#[tokio::test(flavor = "multi_thread")]
async fn an_erased_text_is_not_stored_by_the_next_read() {
    let (bench, engine) = session(Sqlite).await;
    let path = bench.write("server.log", log(300, 0));
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    let owned = SqliteStore::open(bench.database(), Durability::Process).unwrap();
    owned.erase(vec![Erase::Object(id.clone())], "a test").await.unwrap();
    let before = bench.versions(&id).await.len();
    for _ in 0..2 {
        let engine = bench.open("later").await;
        assert_eq!(engine.index_file(&path, None, None).await.unwrap().action, Action::Unchanged);
        assert_eq!(bench.latest(&id).await.unwrap().content(), None);
    }
    assert_eq!(bench.versions(&id).await.len(), before);
}

/// Another session has stored only the hash of a version of a file that is active here: comparing with the disk adds its text,
/// also after a restart.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_active_file_has_text_again_after_a_look(#[values(true, false)] restart: bool) {
    let bench = Bench::new(Sqlite);
    let path = bench.write("server.log", log(200, 0));
    let mut engine = bench.open("s").await;
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    engine.pin(id.as_str()).await.unwrap();
    engine.reconcile().await.unwrap();
    bench.write("server.log", log(300, 0));
    let other =
        Engine::open(Options { store: bench.second_store(), ..bench.options("other") }).await.unwrap();
    tail(&other, &path).await;
    is_latest(&bench, &id, &log(300, 0), false).await;
    if restart {
        engine.close().await.unwrap();
        engine = bench.open("s").await;
    } else {
        engine.assemble().await.unwrap();
        engine.reconcile().await.unwrap();
    }
    is_latest(&bench, &id, &log(300, 0), true).await;
    assert!(engine.assemble().await.unwrap().text().contains("4799"));
}
