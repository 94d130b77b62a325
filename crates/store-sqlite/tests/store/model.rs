//! Random sequences of operations give the same answers from SQLite, also after it was closed and opened
//! again, as from the reference model in memory: 40 sequences, and 10,000 with `CONTEXT_LONG` set.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::{Document, ObjectType};
use context_model::patch::Patch;
use context_model::source::FilesystemSource;
use context_model::time::{Timestamp, TxId};
use context_store::clock::Clock;
use context_store::memory::MemoryStore;
use context_store::{AsOf, Filter, KnownAt, Receipt, Result, Search, Store, Transaction, Write};
use context_store_sqlite::{Durability, SqliteStore};
use proptest::prelude::*;
use serde_json::json;

const TEXTS: [&str; 5] = ["", "alpha", "alpha beta\nbeta", "gamma_ray.x\r\nalpha", "\u{1F600} ünï \0 end"];

/// One write, in a form that proptest can shrink.
#[derive(Clone, Debug)]
enum Put {
    File { path: usize, text: Option<usize>, valid: Option<i64> },
    Chat { chat: usize, turns: usize, valid: Option<i64> },
    Prompt { chat: usize, text: usize },
    Other { chat: usize },
    Patch { chat: usize, steps: Vec<Step>, valid: Option<i64> },
}

/// One operation of a patch; some do not fit.
#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    RemoveTurn(usize),
    Count(usize),
    Content(Option<usize>),
    Deep(usize),
    Member(usize),
    New,
    NoList,
}

#[derive(Clone, Debug)]
enum Op {
    Write { puts: Vec<Put>, expect: Option<(usize, Expect)> },
    Clock(i64),
    Get { object: usize, valid: Option<i64>, tx: Option<u64> },
    GetAtTime { object: usize, valid: Option<i64>, time: i64 },
    Reopen,
    Flush,
    Search(usize),
}

#[derive(Clone, Debug)]
enum Expect {
    Latest,
    Absent,
    Tx(u64),
}

fn valid() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![3 => Just(None), 2 => (0_i64..40).prop_map(|t| Some(t * 50)), 1 => Just(Some(i64::MAX))]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_usize..3).prop_map(Step::Append),
        2 => (0_usize..4).prop_map(Step::RemoveTurn),
        2 => (0_usize..4).prop_map(Step::Count),
        1 => proptest::option::of(0..TEXTS.len()).prop_map(Step::Content),
        1 => (0_usize..3).prop_map(Step::Deep),
        1 => (0_usize..3).prop_map(Step::Member),
        1 => Just(Step::New),
        1 => Just(Step::NoList),
    ]
}

fn put() -> impl Strategy<Value = Put> {
    prop_oneof![
        4 => (0_usize..4, proptest::option::of(0..TEXTS.len()), valid())
            .prop_map(|(path, text, valid)| Put::File { path, text, valid }),
        1 => (0_usize..2, 0_usize..3, valid()).prop_map(|(chat, turns, valid)| Put::Chat { chat, turns, valid }),
        1 => (0_usize..2, 0..TEXTS.len()).prop_map(|(chat, text)| Put::Prompt { chat, text }),
        1 => (0_usize..2).prop_map(|chat| Put::Other { chat }),
        4 => (0_usize..2, proptest::collection::vec(step(), 0..3), valid())
            .prop_map(|(chat, steps, valid)| Put::Patch { chat, steps, valid }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let expect = prop_oneof![Just(Expect::Latest), Just(Expect::Absent), (0_u64..30).prop_map(Expect::Tx)];
    prop_oneof![
        12 => (proptest::collection::vec(put(), 0..4), proptest::option::weighted(0.3, (0_usize..8, expect)))
            .prop_map(|(puts, expect)| Op::Write { puts, expect }),
        2 => prop_oneof![-500_i64..2_500, Just(i64::MIN), Just(253_402_207_199_990)].prop_map(Op::Clock),
        4 => (0_usize..9, valid(), proptest::option::of(0_u64..40))
            .prop_map(|(object, valid, tx)| Op::Get { object, valid, tx }),
        2 => (0_usize..9, valid(), -100_i64..2_500)
            .prop_map(|(object, valid, time)| Op::GetAtTime { object, valid, time }),
        1 => Just(Op::Reopen),
        1 => Just(Op::Flush),
        1 => (0_usize..4).prop_map(Op::Search),
    ]
}

fn session(n: usize) -> SessionId {
    SessionId::new(format!("s{n}")).unwrap()
}

fn file(path: usize, text: Option<usize>) -> Document {
    let text = text.map(|t| TEXTS[t]);
    let path = ["/a", "/a/b.rs", "/ab", "/ü"][path];
    Document::file(
        FilesystemSource { filesystem_id: "f".into(), path: path.into() },
        text.map(str::to_owned),
        text.map(|t| Digest::of(t.as_bytes())),
    )
}

fn chat(n: usize, turns: usize) -> Document {
    let (id, kind, source, mut payload) = Document::chat(&session(n)).into_parts();
    payload.insert("turns".into(), json!((0..turns).map(|t| json!({ "ids": [t] })).collect::<Vec<_>>()));
    Document::new(id, kind, source, payload).unwrap()
}

/// Every object that a sequence can write, and one that it can't.
fn object(n: usize) -> ObjectId {
    match n {
        0..=3 => file(n, None).id().clone(),
        4 | 5 => ObjectId::chat(&session(n - 4)),
        6 | 7 => ObjectId::system_prompt(&session(n - 6)),
        _ => ObjectId::new("absent"),
    }
}

fn write(put: &Put) -> Write {
    let time = |valid: &Option<i64>| valid.map(Timestamp::from_millis);
    match put {
        Put::File { path, text, valid } => {
            Write::Put { document: file(*path, *text), valid_time: time(valid) }
        }
        Put::Chat { chat: n, turns, valid } => {
            Write::Put { document: chat(*n, *turns), valid_time: time(valid) }
        }
        Put::Prompt { chat, text } => Write::put(Document::system_prompt(&session(*chat), TEXTS[*text])),
        Put::Other { chat } => Write::put(
            Document::new(ObjectId::chat(&session(*chat)), ObjectType::Toolcall, None, Default::default())
                .unwrap(),
        ),
        Put::Patch { chat, steps, valid } => Write::Patch {
            id: ObjectId::chat(&session(*chat)),
            patch: steps.iter().fold(Patch::new(), patch),
            valid_time: time(valid),
        },
    }
}

fn patch(mut patch: Patch, step: &Step) -> Patch {
    match step {
        Step::Append(n) => patch.append(&["turns"], json!({ "ids": [n] })),
        Step::RemoveTurn(n) => patch.remove(&["turns"], *n),
        Step::Count(n) => patch.set(&["turn_count"], json!(n)),
        Step::Content(text) => patch.set(&["content"], json!(text.map(|t| TEXTS[t]))),
        Step::Deep(n) => patch.append(&["turns", &n.to_string(), "ids"], json!("deep")),
        Step::Member(n) => patch.put(&["state", &n.to_string()], json!(n)),
        Step::New => patch.put(&["state"], json!({ "a": 1 })),
        Step::NoList => patch.append(&["turn_count"], json!(1)),
    }
    patch
}

struct Pair {
    model: Arc<MemoryStore>,
    sqlite: Arc<SqliteStore>,
    place: tempfile::TempDir,
    clock: Clock,
    now: Arc<AtomicI64>,
}

impl Pair {
    fn new() -> Self {
        let now = Arc::new(AtomicI64::new(1_000));
        let reading = Arc::clone(&now);
        let clock: Clock = Arc::new(move || Timestamp::from_millis(reading.load(Ordering::Relaxed)));
        // This test checks the logic: a directory in memory spares the disk thousands of small files.
        let memory = std::path::Path::new("/dev/shm");
        let place = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let sqlite =
            SqliteStore::open_with(place.path().join("db"), Durability::Process, Arc::clone(&clock)).unwrap();
        Self { model: MemoryStore::with_clock(Arc::clone(&clock)), sqlite, place, clock, now }
    }

    async fn run(&mut self, op: &Op) {
        match op {
            Op::Write { puts, expect } => self.write(puts, expect.as_ref()).await,
            Op::Clock(millis) => self.now.store(*millis, Ordering::Relaxed),
            Op::Get { object: n, valid, tx } => {
                let known = tx.map(|tx| KnownAt::Tx(TxId(tx)));
                self.get(*n, AsOf { valid_time: valid.map(Timestamp::from_millis), known }).await;
            }
            Op::GetAtTime { object: n, valid, time } => {
                let known = Some(KnownAt::Time(Timestamp::from_millis(*time)));
                self.get(*n, AsOf { valid_time: valid.map(Timestamp::from_millis), known }).await;
            }
            Op::Reopen => {
                self.sqlite.close().await.unwrap();
                let path = self.place.path().join("db");
                self.sqlite =
                    SqliteStore::open_with(path, Durability::Process, Arc::clone(&self.clock)).unwrap();
            }
            Op::Flush => self.sqlite.flush().await.unwrap(),
            Op::Search(n) => {
                let text = ["alpha", "beta alpha", "gamma_ray.x", "ÜNÏ"][*n].to_owned();
                let within = [None, Some((0..3).map(object).collect())][n % 2].clone();
                let query = Search { text, limit: 100, object_type: None, within };
                let mut answers = Vec::new();
                for store in self.stores() {
                    let hits = store.search(&query).await.unwrap();
                    let mut hits: Vec<_> =
                        hits.into_iter().map(|h| (h.id, h.tx_id, h.line, h.snippet)).collect();
                    hits.sort();
                    answers.push(hits);
                }
                assert_eq!(answers[0], answers[1]);
            }
        }
    }

    fn stores(&self) -> [Arc<dyn Store>; 2] {
        [Arc::clone(&self.model) as _, Arc::clone(&self.sqlite) as _]
    }

    async fn write(&self, puts: &[Put], expect: Option<&(usize, Expect)>) {
        let mut expected = Vec::new();
        if let Some((n, expect)) = expect {
            let latest = self.model.get(&object(*n), AsOf::default()).await.unwrap();
            let tx = match expect {
                Expect::Latest => latest.map(|v| v.tx_id),
                Expect::Absent => None,
                Expect::Tx(tx) => Some(TxId(*tx)),
            };
            expected.push((object(*n), tx));
        }
        let mut answers: Vec<Result<Receipt>> = Vec::new();
        for store in self.stores() {
            let writes = puts.iter().map(write).collect();
            answers.push(store.transact(Transaction { writes, expected: expected.clone() }).await);
        }
        match (&answers[0], &answers[1]) {
            (Ok(model), Ok(sqlite)) => assert_eq!(model, sqlite),
            (model, sqlite) => {
                assert_eq!(model.as_ref().map_err(|e| e.code()), sqlite.as_ref().map_err(|e| e.code()))
            }
        }
    }

    async fn get(&self, n: usize, at: AsOf) {
        let [model, sqlite] = self.stores();
        assert_eq!(model.get(&object(n), at).await.unwrap(), sqlite.get(&object(n), at).await.unwrap());
    }

    /// Everything that can be read is equal.
    async fn compare(&self) {
        let [model, sqlite] = self.stores();
        let ids: Vec<ObjectId> = (0..9).map(object).collect();
        for id in &ids {
            let history = model.history(id).await.unwrap();
            assert_eq!(history, sqlite.history(id).await.unwrap());
            let place = |version: &context_store::Version| (version.valid_time, version.tx_id);
            assert!(history.iter().map(place).is_sorted());
            for (n, version) in history.iter().enumerate() {
                if history.get(n + 1).is_some_and(|next| next.tx_id == version.tx_id) {
                    continue;
                }
                for store in self.stores() {
                    let written = store.version(id, version.tx_id).await.unwrap().unwrap();
                    assert_eq!(written.tx_id, version.tx_id);
                    let of_tx = history.iter().rfind(|one| one.tx_id == version.tx_id);
                    assert_eq!(Some(&written), of_tx);
                    let part = store.history_part(id, Some(place(version)), usize::MAX).await.unwrap();
                    assert_eq!(part, history[n + 1..]);
                }
                let known = Some(KnownAt::Tx(version.tx_id));
                let at = AsOf { valid_time: Some(version.valid_time), known };
                assert_eq!(model.get(id, at).await.unwrap().as_ref(), Some(version));
            }
            assert_eq!(model.journal(id).await.unwrap(), sqlite.journal(id).await.unwrap());
        }
        let at = AsOf::default();
        assert_eq!(model.get_many(&ids, at).await.unwrap(), sqlite.get_many(&ids, at).await.unwrap());
        assert_eq!(model.outlines(&ids).await.unwrap(), sqlite.outlines(&ids).await.unwrap());
        assert_eq!(model.latest_tx().await.unwrap(), sqlite.latest_tx().await.unwrap());
        for tx in [0, 5, u64::MAX] {
            let tx = TxId(tx);
            assert_eq!(model.changes_since(tx).await.unwrap(), sqlite.changes_since(tx).await.unwrap());
        }
        let filters = [
            Filter::default(),
            Filter { object_type: Some(ObjectType::Chat), ..Filter::default() },
            Filter { path_prefix: Some("/a".into()), ..Filter::default() },
            Filter {
                filesystem_id: Some("f".into()),
                since: Some(Timestamp::from_millis(1_200)),
                ..Filter::default()
            },
            Filter { since: Some(Timestamp::from_millis(1_005)), ..Filter::default() },
        ];
        for filter in filters {
            assert_eq!(model.query(&filter).await.unwrap(), sqlite.query(&filter).await.unwrap());
        }
        assert_eq!(sqlite.verify().await.unwrap(), []);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if std::env::var_os("CONTEXT_LONG").is_some() { 10_000 } else { 40 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn sqlite_answers_as_the_model_does(ops in proptest::collection::vec(op(), 1..100)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut pair = Pair::new();
            for op in &ops {
                pair.run(op).await;
            }
            pair.compare().await;
            pair.run(&Op::Reopen).await;
            pair.compare().await;
            pair.sqlite.close().await.unwrap();
        });
    }
}
