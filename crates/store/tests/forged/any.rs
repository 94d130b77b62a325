//! Whatever an export holds, it is taken and sound, or refused.

use super::*;

fn cases(short: u32, long: u32) -> u32 {
    let asked = std::env::var("CONTEXT_FUZZ_CASES").ok().and_then(|cases| cases.parse().ok());
    asked.unwrap_or(if std::env::var_os("CONTEXT_LONG").is_some() { long } else { short })
}

/// A valid export with everything in it, as values.
fn sample() -> Vec<Value> {
    let mut lines = vec![whole(0, &file("/a", "1")), whole(1, &file("/a", "2")), whole(0, &call("call_1"))];
    lines
        .extend(chat_and(&[turn(), json!([{ "op": "add", "path": "/toolcall_refs/-", "value": "call_1" }])]));
    lines.push(whole(0, &Document::system_prompt(&session(), "p")));
    lines.extend(session_and(&[
        json!([{ "op": "add", "path": "/session_index/-", "value": "x" }, { "op": "add", "path": "/metadata_pool/-", "value": "x" }]),
        json!([{ "op": "add", "path": "/active_set/-", "value": "x" }]),
        json!([{ "op": "remove", "path": "/active_set/1" }]),
    ]));
    lines
}

/// Values that go where others were.
fn value() -> impl Strategy<Value = Value> {
    let ids = [
        "call_1",
        "x",
        "chat:s",
        "session:s",
        "",
        "add",
        "remove",
        "copy",
        "move",
        "/turns/0",
        "/active_set/-",
        "ok",
    ];
    let leaf = prop_oneof![
        prop::sample::select(ids.to_vec()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_/]{0,12}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    match value {
        Value::Array(list) => list.iter().enumerate().for_each(|(n, v)| places(v, &format!("{at}/{n}"), all)),
        Value::Object(map) => map.iter().for_each(|(k, v)| {
            places(v, &format!("{at}/{}", k.replace('~', "~0").replace('/', "~1")), all);
        }),
        _ => {}
    }
}

/// Gives a document of a line the hashes of its present content, so that only the rules are left to refuse it.
fn rehash(line: &mut Value) {
    let Some(mut document) = line.get("document").and_then(Value::as_object).cloned() else { return };
    let hash = context_model::hash::content_hash(&{
        let mut payload = document.clone();
        ["xt/id", "type", "source", "identity_hash"].iter().for_each(|name| drop(payload.remove(*name)));
        payload
    });
    document.insert("content_hash".into(), json!(hash));
    line["document"] = Value::Object(document);
}

/// Whatever was taken can be read, exported and taken again, and keeps the rules.
async fn is_sound(store: &dyn Store) {
    for id in store.query(&Filter::default()).await.unwrap() {
        let history = store.history(&id).await.unwrap();
        assert!(!history.is_empty());
        let latest = store.get(&id, AsOf::default()).await.unwrap().unwrap();
        assert!(serde_json::to_string(&latest.document).is_ok());
        store.outlines(std::slice::from_ref(&id)).await.unwrap();
        for version in &history {
            if id.as_str().starts_with("session:") {
                let sets = Sets::from_document(&version.document).unwrap();
                assert!(sets.index().iter().all(|id| !id.as_str().starts_with("chat:")));
            }
            let document = &version.document;
            if let (Some(text), Some(_)) = (document.content(), document.source()) {
                assert_eq!(document.source_hash(), Some(Digest::of(text.as_bytes())));
            }
        }
    }
    let words = Search { text: "1 p a".into(), limit: 9, object_type: None, within: None };
    store.search(&words).await.unwrap();
    let mut bytes = Vec::new();
    export(store, &all_objects(store).await.unwrap(), &mut bytes).await.unwrap();
    let other = MemoryStore::new();
    import(&mut Cursor::new(&bytes), &*other).await.unwrap();
    let mut again = Vec::new();
    export(&*other, &all_objects(&*other).await.unwrap(), &mut again).await.unwrap();
    assert_eq!(bytes.split(|b| *b == b'\n').count(), again.split(|b| *b == b'\n').count());
}

async fn taken_or_refused(store: &dyn Store, bytes: &[u8], tally: &Tally) {
    match import(&mut Cursor::new(bytes), store).await {
        Ok(_) => tally.taken(),
        Err(error) => {
            assert_eq!(error.code(), ErrorCode::InvalidArgument, "{error}");
            assert_eq!(store.latest_tx().await.unwrap(), TxId(0), "{error}");
        }
    }
    is_sound(store).await;
}

/// Counts of all exports and of the accepted ones: a test that accepts none would show little.
#[derive(Default)]
struct Tally(std::sync::atomic::AtomicUsize, std::sync::atomic::AtomicUsize);

impl Tally {
    fn taken(&self) {
        self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

    fn tell(&self, what: &str) {
        let count = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        if count.is_power_of_two() && count > 512 {
            eprintln!("{what}: {count} files, {} taken", self.1.load(std::sync::atomic::Ordering::Relaxed));
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

static VALUES: Tally = Tally(std::sync::atomic::AtomicUsize::new(0), std::sync::atomic::AtomicUsize::new(0));
static BYTES: Tally = Tally(std::sync::atomic::AtomicUsize::new(0), std::sync::atomic::AtomicUsize::new(0));

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(400, 200_000), failure_persistence: None, ..ProptestConfig::default() })]

    /// Any value anywhere, with all hashes fitting: an accepted document keeps the rules.
    #[test]
    fn any_value_anywhere_is_refused_or_sound(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0_u8..5, value()), 1..4),
        on_disk in prop::bool::weighted(0.02),
    ) {
        let mut lines = sample();
        for (which, place, what, new) in changes {
            if lines.is_empty() {
                break;
            }
            let at = which.index(lines.len());
            let mut all = Vec::new();
            places(&lines[at], "", &mut all);
            let path = all[place.index(all.len())].clone();
            match what {
                0 => drop(lines.remove(at)),
                1 => {
                    let copy = lines[place.index(lines.len())].clone();
                    lines.insert(at, copy);
                }
                2 => if let Some((parent, name)) = path.rsplit_once('/') {
                    match lines[at].pointer_mut(parent) {
                        Some(Value::Object(map)) => drop(map.remove(name)),
                        Some(Value::Array(list)) => drop(list.pop()),
                        _ => {}
                    }
                },
                3 => match lines[at].pointer_mut(&path) {
                    Some(Value::Array(list)) => list.push(new),
                    Some(Value::Object(map)) => drop(map.insert("x".into(), new)),
                    Some(other) => *other = new,
                    None => {}
                },
                _ => if let Some(old) = lines[at].pointer_mut(&path) { *old = new; },
            }
            if let Some(line) = lines.get_mut(at) {
                rehash(line);
            }
        }
        VALUES.tell("values");
        runtime().block_on(async {
            let bytes = sealed(&lines);
            taken_or_refused(&*MemoryStore::new(), &bytes, &VALUES).await;
            if on_disk {
                let place = tempfile::tempdir().unwrap();
                let store = SqliteStore::open(place.path().join("store.db"), Durability::Process).unwrap();
                taken_or_refused(&*store, &bytes, &VALUES).await;
                store.close().await.unwrap();
            }
        });
    }

    /// Any bytes, alone or within a valid file.
    #[test]
    fn any_bytes_are_taken_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        at in any::<prop::sample::Index>(),
        length in 0_usize..40,
        alone in any::<bool>(),
    ) {
        let mut file = sealed(&sample());
        if alone {
            file.clone_from(&bytes);
        } else {
            let at = at.index(file.len());
            let end = (at + length).min(file.len());
            file.splice(at..end, bytes);
        }
        BYTES.tell("bytes");
        runtime().block_on(taken_or_refused(&*MemoryStore::new(), &file, &BYTES));
    }
}
