//! Export and import between stores: nothing is lost, nothing comes twice, nothing damaged gets in.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use async_trait::async_trait;
use context_model::error::ErrorCode;
use context_model::hash::{Digest, identity_hash};
use context_model::id::{ObjectId, SessionId};
use context_model::object::{Document, ObjectType};
use context_model::session::{Sets, SetsChange};
use context_model::source::Source;
use context_model::time::{Timestamp, TxId};
use context_store::around::{Around, StoreCall};
use context_store::conformance::given::{file_in, turn, write};
use context_store::memory::MemoryStore;
use context_store::transfer::{TransferError, all_objects, check, export, import, session_objects};
use context_store::{AsOf, Filter, Result, Store, StoreError, Transaction, Write};
use context_store_sqlite::{Durability, SqliteStore};
use proptest::prelude::*;
use serde_json::json;

fn session() -> SessionId {
    SessionId::new("s").unwrap()
}

fn file(path: &str, text: Option<&str>) -> Document {
    file_in("f", path, text)
}

/// A store with every kind of object and of history.
async fn filled() -> Arc<MemoryStore> {
    let store = MemoryStore::new();
    let foreign = Source::from_value(json!({ "type": "s3", "bucket": "b", "key": "k" })).unwrap();
    let id = ObjectId::sourced(identity_hash(ObjectType::File, Some(&foreign)));
    let payload =
        serde_json::Map::from_iter([("content".to_owned(), json!(null)), ("etag".to_owned(), json!(1.5))]);
    let foreign = Document::new(id, ObjectType::File, Some(foreign), payload).unwrap();
    let at = |document, millis| Write::Put { document, valid_time: Some(Timestamp::from_millis(millis)) };
    let mut sets = Sets::default();
    let mut change = SetsChange::default();
    sets.activate(file("/a", None).id(), &mut change);
    sets.promote(foreign.id(), &mut change);
    sets.apply(change);
    write(&*store, vec![Write::put(file("/a", Some("1"))), Write::put(foreign)]).await;
    write(&*store, vec![Write::put(Document::chat(&session()))]).await;
    for n in 1..=150 {
        write(&*store, vec![Write::patch(ObjectId::chat(&session()), turn(n))]).await;
    }
    write(
        &*store,
        vec![at(file("/a", None), 1_000), at(file("/a", Some("1")), 500), at(file("/a", Some("0")), 500)],
    )
    .await;
    write(
        &*store,
        vec![Write::put(sets.document(&session())), Write::put(Document::system_prompt(&session(), "p"))],
    )
    .await;
    write(&*store, vec![Write::put(file("/not-in-the-session", Some("x")))]).await;
    store
}

async fn exported(store: &dyn Store) -> Vec<u8> {
    let mut bytes = Vec::new();
    export(store, &all_objects(store).await.unwrap(), &mut bytes).await.unwrap();
    bytes
}

/// Everything that must be equal in two stores: each version, and the time from which it holds.
async fn everything(store: &dyn Store) -> Vec<(ObjectId, Vec<(Document, Timestamp)>)> {
    let mut all = Vec::new();
    for id in store.query(&Filter::default()).await.unwrap() {
        let versions = store.history(&id).await.unwrap();
        all.push((id, versions.into_iter().map(|v| (v.document, v.valid_time)).collect()));
    }
    all
}

#[tokio::test]
async fn a_store_goes_round_all_backends_and_loses_nothing() {
    let place = tempfile::tempdir().unwrap();
    let memory = filled().await;
    let sqlite = SqliteStore::open(place.path().join("a.db"), Durability::Process).unwrap();
    let back = MemoryStore::new();
    let bytes = exported(&*memory).await;
    let there = import(&mut Cursor::new(&bytes), &*sqlite).await.unwrap();
    assert_eq!((there.objects, there.versions, there.written), (6, 159, 159));
    let home = exported(&*sqlite).await;
    import(&mut Cursor::new(&home), &*back).await.unwrap();
    let expected = everything(&*memory).await;
    assert_eq!(everything(&*sqlite).await, expected);
    assert_eq!(everything(&*back).await, expected);
    // A transaction's number names one version, as it did.
    for (id, _) in &expected {
        let history = sqlite.history(id).await.unwrap();
        assert!(history.windows(2).all(|pair| pair[0].tx_id < pair[1].tx_id), "{id}");
    }
    // The original transactions travel as data.
    let first: serde_json::Value =
        serde_json::from_slice(bytes.split(|b| *b == b'\n').nth(1).unwrap()).unwrap();
    let oldest = memory.history(&expected[0].0).await.unwrap().remove(0);
    assert_eq!((&first["tx_id"], &first["position"]), (&json!(oldest.tx_id), &json!(0)));
    assert!(first["tx_time"].is_string());
}

#[tokio::test]
async fn a_session_takes_its_objects_along_and_no_others() {
    let memory = filled().await;
    let ids = session_objects(&*memory, &session()).await.unwrap();
    let mut bytes = Vec::new();
    let summary = export(&*memory, &ids, &mut bytes).await.unwrap();
    assert_eq!(summary.objects, 5);
    let other = MemoryStore::new();
    import(&mut Cursor::new(&bytes), &*other).await.unwrap();
    let sets = Sets::from_document(
        &other.get(&ObjectId::session(&session()), AsOf::default()).await.unwrap().unwrap().document,
    );
    assert_eq!(sets.unwrap().index().len(), 2);
    assert_eq!(other.get(file("/not-in-the-session", None).id(), AsOf::default()).await.unwrap(), None);
    assert_eq!(session_objects(&*memory, &SessionId::new("none").unwrap()).await.unwrap(), []);
}

#[tokio::test]
async fn a_repeated_import_writes_nothing() {
    let bytes = exported(&*filled().await).await;
    let place = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(place.path().join("a.db"), Durability::Process).unwrap();
    for written in [159, 0, 0] {
        assert_eq!(import(&mut Cursor::new(&bytes), &*sqlite).await.unwrap().written, written);
    }
}

/// A store that fails from its n-th transaction on, as one whose machine disappears does.
struct Failing {
    store: Arc<MemoryStore>,
    left: AtomicUsize,
}

#[async_trait]
impl Around for Failing {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    async fn before(&self, call: StoreCall) -> Result<()> {
        if call != StoreCall::Transact {
            return Ok(());
        }
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        left.map(drop).map_err(|_| StoreError::Unavailable("gone".into()))
    }
}

#[tokio::test]
async fn an_interrupted_import_resumes_where_it_was() {
    let memory = filled().await;
    let bytes = exported(&*memory).await;
    let expected = everything(&*memory).await;
    let mut interrupted = 0;
    for transactions in (0..).step_by(7) {
        let store = Failing { store: MemoryStore::new(), left: AtomicUsize::new(transactions) };
        let first = import(&mut Cursor::new(&bytes), &store).await;
        store.left.store(usize::MAX, Ordering::Relaxed);
        import(&mut Cursor::new(&bytes), &store).await.unwrap();
        assert_eq!(everything(&store).await, expected, "interrupted after {transactions} transactions");
        if first.is_ok() {
            break;
        }
        interrupted += 1;
    }
    assert!(interrupted > 8, "{interrupted}");
}

#[tokio::test]
async fn a_damaged_file_changes_nothing() {
    let bytes = exported(&*filled().await).await;
    let lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
    let mut bad: Vec<(String, Vec<u8>)> = vec![
        ("empty".into(), Vec::new()),
        ("another file".into(), b"{\"type\":\"session\",\"version\":3}\n".to_vec()),
        ("another format".into(), b"{\"format\":\"x\",\"version\":1}\n".to_vec()),
        ("a newer format".into(), bytes.replacen_once(b"\"version\":1", b"\"version\":2")),
        ("something after it".into(), [&bytes[..], b"{}\n"].concat()),
        ("a line is missing".into(), [&lines[..9], &lines[10..]].concat().concat()),
        ("a line twice".into(), [&lines[..9], &lines[8..]].concat().concat()),
        (
            "a document of another ID".into(),
            bytes.replacen_once(b"\"object\":\"chat:s\"", b"\"object\":\"chat:t\""),
        ),
        ("a changed text".into(), bytes.replacen_once(b"\"content\":\"p\"", b"\"content\":\"q\"")),
        (
            "a changed time".into(),
            bytes.replacen_once(b"1970-01-01T00:00:01.000Z", b"1970-01-01T00:00:02.000Z"),
        ),
    ];
    for part in 1..20 {
        bad.push((format!("cut at {part}/20"), bytes[..bytes.len() * part / 20].to_vec()));
    }
    bad.push(("without its last line".into(), lines[..lines.len() - 1].concat()));
    for (name, file) in bad {
        assert_ne!(file, bytes, "{name}");
        let store = MemoryStore::new();
        let error = import(&mut Cursor::new(&file), &*store).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument, "{name}: {error}");
        assert!(error.to_string().starts_with("line "), "{name}: {error}");
        assert_eq!(store.latest_tx().await.unwrap(), TxId(0), "{name}");
        assert!(check(&mut Cursor::new(&file)).is_err());
    }
}

#[tokio::test]
async fn a_file_known_to_both_keeps_the_versions_of_both() {
    let (here, there) = (MemoryStore::new(), MemoryStore::new());
    let at = |text, millis| {
        vec![Write::Put {
            document: file("/a", Some(text)),
            valid_time: Some(Timestamp::from_millis(millis)),
        }]
    };
    for (store, text, millis) in
        [(&here, "1", 1_000), (&there, "1", 1_000), (&here, "2", 2_000), (&there, "3", 3_000)]
    {
        write(&**store, at(text, millis)).await;
    }
    let bytes = exported(&*here).await;
    for written in [1, 0] {
        assert_eq!(import(&mut Cursor::new(&bytes), &*there).await.unwrap().written, written);
    }
    let history = there.history(file("/a", None).id()).await.unwrap();
    let mut times: Vec<i64> = history.iter().map(|v| v.valid_time.millis()).collect();
    times.sort_unstable();
    assert_eq!(times, [1_000, 2_000, 3_000]);
    let latest = there.get(file("/a", None).id(), AsOf::default()).await.unwrap().unwrap();
    assert_eq!(latest.document.content(), Some("3"));
}

#[tokio::test]
async fn a_session_with_another_history_is_not_mixed_up() {
    let (here, there) = (MemoryStore::new(), MemoryStore::new());
    write(&*here, vec![Write::put(Document::system_prompt(&session(), "here"))]).await;
    write(&*there, vec![Write::put(Document::system_prompt(&session(), "there"))]).await;
    let bytes = exported(&*here).await;
    let error = import(&mut Cursor::new(&bytes), &*there).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Conflict);
    assert_eq!(there.history(&ObjectId::system_prompt(&session())).await.unwrap().len(), 1);
}

trait ReplaceOnce {
    fn replacen_once(&self, from: &[u8], to: &[u8]) -> Vec<u8>;
}

impl ReplaceOnce for Vec<u8> {
    fn replacen_once(&self, from: &[u8], to: &[u8]) -> Vec<u8> {
        let at = self.windows(from.len()).position(|w| w == from).unwrap();
        [&self[..at], to, &self[at + from.len()..]].concat()
    }
}

fn is_long() -> bool {
    std::env::var_os("CONTEXT_LONG").is_some()
}

/// An export of a few objects, made once.
fn sample() -> &'static [u8] {
    static SAMPLE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    SAMPLE.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = MemoryStore::new();
            for text in [Some("a"), None, Some("b")] {
                write(&*store, vec![Write::put(file("/a", text))]).await;
            }
            write(&*store, vec![Write::put(Document::chat(&session()))]).await;
            write(&*store, vec![Write::patch(ObjectId::chat(&session()), turn(1))]).await;
            exported(&*store).await
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if is_long() { 1_000_000 } else { 1_000 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any file is imported, or refused with a code, and the resulting store can be read.
    #[test]
    fn any_file_is_imported_or_refused_and_never_a_panic(
        damages in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..5, any::<u8>(), any::<bool>()), 1..5),
    ) {
        let mut lines: Vec<Vec<u8>> = sample().split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
        for (place, what, byte, sealed) in damages {
            let line = place.index(lines.len());
            // An earlier damage may have left nothing of it.
            if lines[line].is_empty() {
                continue;
            }
            let at = (usize::from(byte) * 7) % lines[line].len();
            match what {
                0 => lines[line][at] = byte,
                1 => lines[line].truncate(at),
                2 => lines[line].insert(at, byte),
                3 => drop(lines.remove(line)),
                _ => lines.push(lines[line].clone()),
            }
            if lines.is_empty() {
                break;
            }
            if sealed {
                // With a hash that fits: the lines themselves must be refused.
                let last = lines.len() - 1;
                let hash = Digest::of(&lines[..last].concat()).to_string();
                let text = String::from_utf8_lossy(&lines[last]).into_owned();
                if let Some(at) = text.find("\"sha256\":\"").filter(|at| text.len() >= at + 75)
                    && text.is_char_boundary(at + 10)
                    && text.is_char_boundary(at + 74)
                {
                    lines[last] = format!("{}{hash}{}", &text[..at + 10], &text[at + 74..]).into_bytes();
                }
            }
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = MemoryStore::new();
            let outcome = import(&mut Cursor::new(&lines.concat()), &*store).await;
            if let Err(error) = outcome {
                let codes = [ErrorCode::InvalidArgument, ErrorCode::Conflict, ErrorCode::StoreCorrupt];
                assert!(codes.contains(&error.code()), "{error}");
                if error.code() == ErrorCode::InvalidArgument && matches!(error, TransferError::Damaged { .. }) {
                    assert_eq!(store.latest_tx().await.unwrap(), TxId(0), "nothing was written");
                }
            }
            for (id, versions) in everything(&*store).await {
                assert!(!versions.is_empty(), "{id}");
            }
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if is_long() { 10_000 } else { 64 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any history, with any order of valid times, is the same one after an import that was interrupted anywhere.
    #[test]
    fn any_history_is_imported_as_it_was(
        steps in prop::collection::vec((0_usize..3, 0_usize..4, prop::option::of(0_i64..6)), 1..30),
        cut in 0_usize..6,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let now = Arc::new(AtomicI64::new(3));
            let clock = Arc::clone(&now);
            let source = MemoryStore::with_clock(Arc::new(move || Timestamp::from_millis(clock.fetch_add(1, Ordering::Relaxed))));
            for (object, text, valid) in steps {
                let valid_time = valid.map(Timestamp::from_millis);
                let write = match object {
                    0 | 1 => Write::Put { document: file(&format!("/{object}"), Some(["", "a", "b", "c"][text])), valid_time },
                    _ if text == 0 => Write::Put { document: Document::chat(&session()), valid_time },
                    _ => Write::Patch { id: ObjectId::chat(&session()), patch: turn(text), valid_time },
                };
                // A patch of nothing, or of before its base, is refused and changes nothing.
                let _ = source.transact(Transaction { writes: vec![write], expected: vec![] }).await;
            }
            let bytes = exported(&*source).await;
            let store = Failing { store: MemoryStore::new(), left: AtomicUsize::new(cut) };
            let _ = import(&mut Cursor::new(&bytes), &store).await;
            store.left.store(usize::MAX, Ordering::Relaxed);
            import(&mut Cursor::new(&bytes), &store).await.unwrap();
            assert_eq!(everything(&store).await, everything(&*source).await);
        });
    }
}
