//! Damaged stores, bit by bit, and copies of whole ones: a version is right, or it is named.

use super::*;

/// The written versions, by object and transaction.
type Truth = BTreeMap<(ObjectId, TxId), Version>;

/// Writes a store with everything in it, and returns its versions.
async fn sample(path: &Path) -> Truth {
    let store = open(path);
    write(&*store, vec![Write::put(chat())]).await;
    for n in 1..=25 {
        let text = format!("{n} {}", "a line of a file\n".repeat(n * n % 400));
        write(&*store, vec![Write::put(file(&format!("/{}", n % 7), &text)), turn(n)]).await;
    }
    store.flush().await.unwrap();
    let mut truth = Truth::new();
    for id in ids() {
        for version in store.history(&id).await.unwrap() {
            truth.insert((id.clone(), version.tx_id), version);
        }
    }
    store.close().await.unwrap();
    truth
}

fn ids() -> Vec<ObjectId> {
    let files = (0..7).map(|n| file(&format!("/{n}"), "").id().clone());
    files.chain([chat().id().clone()]).collect()
}

/// Whatever happens to an object's envelope, or to the way to it: it is not taken for one that was never there.
#[tokio::test]
async fn a_damaged_envelope_is_no_absence() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    let truth = sample(&path).await;
    let whole = fs::read(&path).unwrap();
    let id = file("/3", "").id().clone();
    let name = id.as_str().as_bytes();
    let places: Vec<usize> =
        (0..whole.len() - name.len()).filter(|at| whole[*at..].starts_with(name)).collect();
    // In the table and in its index.
    assert!(places.len() >= 2, "{places:?}");
    let mut corrupt = 0;
    for at in places {
        for offset in [0, name.len() / 2, name.len() - 1] {
            let mut bytes = whole.clone();
            bytes[at + offset] = if bytes[at + offset] == b'0' { b'f' } else { b'0' };
            fs::write(&path, bytes).unwrap();
            let Ok(store) = SqliteStore::open(&path, Durability::Power) else { continue };
            match store.get(&id, AsOf::default()).await {
                Ok(found) => {
                    let latest = truth
                        .iter()
                        .filter(|((other, _), _)| *other == id)
                        .map(|(_, version)| version)
                        .next_back();
                    assert_eq!(found.as_ref(), latest);
                }
                Err(error) => {
                    assert_eq!(error.code(), ErrorCode::StoreCorrupt, "{error}");
                    corrupt += 1;
                }
            }
            assert!(
                store
                    .history(&id)
                    .await
                    .map_or_else(|e| e.code() == ErrorCode::StoreCorrupt, |h| !h.is_empty())
            );
            store.close().await.unwrap();
        }
    }
    assert!(corrupt > 0);
    fs::write(&path, whole).unwrap();
    let store = open(&path);
    assert_eq!(store.get(&ObjectId::new("never"), AsOf::default()).await.unwrap(), None);
    store.close().await.unwrap();
}

/// Counts of the answers of damaged stores.
#[derive(Default)]
struct Tally {
    refused: usize,
    unreadable: usize,
    readable: usize,
    named: usize,
}

/// Reads everything from a damaged store: each answer is right or an error.
async fn read_damaged(path: &Path, truth: &Truth, whole: bool, tally: &mut Tally) {
    let store = match SqliteStore::open(path, Durability::Power) {
        Ok(store) => store,
        Err(error) => {
            assert!(
                [ErrorCode::StoreCorrupt, ErrorCode::StoreUnavailable, ErrorCode::StoreNewer]
                    .contains(&error.code()),
                "{error}"
            );
            tally.refused += 1;
            return;
        }
    };
    let damages = store.verify().await;
    let mut complete = true;
    for ((id, tx), expected) in truth {
        let at = AsOf { valid_time: None, known: Some(KnownAt::Tx(*tx)) };
        match store.get(id, at).await {
            Ok(Some(version)) => {
                let genuine = &truth[&(id.clone(), version.tx_id)];
                assert!(version == *genuine, "wrong content was returned for {id} {tx}");
                complete &= version == *expected;
                tally.readable += 1;
            }
            Ok(None) => complete = false,
            Err(error) => {
                assert_eq!(error.code(), ErrorCode::StoreCorrupt, "{error}");
                complete = false;
                tally.unreadable += 1;
            }
        }
    }
    for id in ids() {
        for version in store.history(&id).await.unwrap_or_default() {
            assert!(version == truth[&(id.clone(), version.tx_id)], "wrong content in the history of {id}");
        }
    }
    for outline in store.outlines(&ids()).await.into_iter().flatten().flatten() {
        let genuine = &truth[&(outline.id.clone(), outline.tx_id)];
        for (name, value) in &outline.payload {
            assert_eq!(Some(value), genuine.document.field(name), "wrong field in an outline");
        }
        assert_eq!(outline.valid_time, genuine.valid_time);
    }
    match damages {
        Ok(damages) if damages.is_empty() => {
            assert!(complete || !whole, "verify found nothing, but something is missing");
        }
        Ok(damages) => {
            tally.named += 1;
            // Whatever can't be read is named.
            for (id, tx) in truth.keys() {
                let at = AsOf { valid_time: None, known: Some(KnownAt::Tx(*tx)) };
                if store.get(id, at).await.is_err() {
                    let named = |d: &context_store::Damage| d.id.as_ref() == Some(id) || d.id.is_none();
                    assert!(damages.iter().any(named), "{id} {tx} is damaged and not named: {damages:?}");
                }
            }
        }
        Err(error) => assert_eq!(error.code(), ErrorCode::StoreCorrupt, "{error}"),
    }
    let _ = store.close().await;
}

fn flips() -> usize {
    let set = |name| std::env::var_os(name).is_some_and(|value| value == "1");
    if set("CONTEXT_LONG") { 1_000 } else { 40 }
}

#[tokio::test]
async fn a_flipped_bit_never_gives_wrong_content() {
    let place = tempfile::tempdir().unwrap();
    let original = place.path().join("original.db");
    let truth = sample(&original).await;
    let bytes = fs::read(&original).unwrap();
    let (mut next, mut tally) = (numbers(), Tally::default());
    for n in 0..flips() {
        let path = place.path().join(format!("{n}.db"));
        let at = next(bytes.len());
        fs::write(&path, with_bytes(bytes.clone(), at, &[bytes[at] ^ (1 << next(8))])).unwrap();
        read_damaged(&path, &truth, true, &mut tally).await;
        fs::remove_file(&path).unwrap();
    }
    let Tally { refused, unreadable, readable, named } = tally;
    eprintln!(
        "{} bits flipped in the database: {named} named by verify, {refused} refused at opening, \
         {readable} versions readable, {unreadable} not, 0 wrong",
        flips()
    );
    assert!(named > 0 && unreadable > 0);
}

/// In the log a flipped bit ends the recovery there: older versions stay, and nothing is wrong.
#[tokio::test]
async fn a_flipped_bit_in_the_log_never_gives_wrong_content() {
    let place = tempfile::tempdir().unwrap();
    let original = place.path().join("original.db");
    let truth = sample(&original).await;
    // A store that is open has a log; its files are copied as a crash would leave them.
    let store = open(&original);
    let mut truth = truth;
    for n in 26..=40 {
        let receipt =
            write(&*store, vec![Write::put(file(&format!("/{}", n % 7), &format!("{n}"))), turn(n)]).await;
        for id in [file(&format!("/{}", n % 7), "").id(), chat().id()] {
            let version = store.get(id, AsOf::default()).await.unwrap().unwrap();
            truth.insert((id.clone(), receipt.tx_id), version);
        }
    }
    let log = place.path().join("original.db-wal");
    let (bytes, log) = (fs::read(&original).unwrap(), fs::read(log).unwrap());
    assert!(log.len() > 100_000);
    let (mut next, mut tally) = (numbers(), Tally::default());
    for n in 0..flips() / 2 {
        let path = place.path().join(format!("{n}.db"));
        let log_path = place.path().join(format!("{n}.db-wal"));
        let at = next(log.len());
        fs::write(&path, &bytes).unwrap();
        fs::write(&log_path, with_bytes(log.clone(), at, &[log[at] ^ (1 << next(8))])).unwrap();
        read_damaged(&path, &truth, false, &mut tally).await;
        fs::remove_file(&path).unwrap();
        let _ = fs::remove_file(&log_path);
    }
    store.close().await.unwrap();
    eprintln!("{} bits flipped in the log: {} versions readable, 0 wrong", flips() / 2, tally.readable);
    assert!(tally.readable > 0);
}

#[cfg(unix)]
#[tokio::test]
async fn a_copy_holds_everything_and_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    let truth = sample(&path).await;
    let store = open(&path);
    let size = store.size().await.unwrap();
    assert_eq!((size.objects, size.versions as usize), (8, truth.len()));
    assert_eq!(size.transactions, 26);
    assert!(size.content_bytes > 10_000 && size.file_bytes > size.content_bytes);
    assert_eq!(size.tables.iter().map(|(_, bytes)| bytes).sum::<u64>() + size.free_bytes, size.file_bytes);

    let copy = place.path().join("copy.db");
    store.backup(&copy).await.unwrap();
    assert_eq!(store.backup(&copy).await.unwrap_err().code(), ErrorCode::StoreUnavailable);
    write(&*store, vec![turn(26)]).await;
    store.close().await.unwrap();
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    let mut tally = Tally::default();
    read_damaged(&copy, &truth, true, &mut tally).await;
    assert_eq!((tally.readable, tally.named), (truth.len(), 0));
}

/// Damages texts in the file itself, as far as their rows are not protected.
fn damage(path: &Path, texts: &[&str]) {
    let other = rusqlite::Connection::open(path).unwrap();
    let names: Vec<String> = other
        .prepare("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<rusqlite::Result<_>>()
        .unwrap();
    for name in names {
        other.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    }
    for text in texts {
        let hash = Digest::of(text.as_bytes());
        let statement = "UPDATE contents SET text = 'nothing of the kind' WHERE sha256 = ?";
        assert_eq!(other.execute(statement, [hash.as_bytes().as_slice()]).unwrap(), 1);
    }
}

#[rstest]
#[case::short("")]
#[case::stored_as_changes(&"a line of a file\n".repeat(400))]
#[tokio::test]
async fn one_damaged_text_ends_no_search(#[case] more: &str) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    let store = open(&path);
    let texts = ["one", "two", "three"].map(|n| format!("{more}a heron of {n}\n"));
    for (n, text) in texts.iter().enumerate() {
        write(&*store, vec![Write::put(file(&format!("/{n}"), text))]).await;
    }
    let query = |text: &str| Search { text: text.into(), limit: 9, object_type: None, within: None };
    assert_eq!(store.search(&query("heron")).await.unwrap().len(), 3);
    store.close().await.unwrap();
    damage(&path, &[&texts[2]]);

    let store = open(&path);
    let [whole, other, damaged] = [0, 1, 2].map(|n| file(&format!("/{n}"), "").id().clone());
    let found = store.search(&query("heron")).await.unwrap();
    let line = |id: &ObjectId| found.iter().find(|hit| hit.id == *id).map(|hit| (hit.line, &*hit.snippet));
    let at = more.lines().count() + 1;
    assert_eq!(line(&whole), Some((at, "a heron of one")));
    assert_eq!(line(&other), Some((at, "a heron of two")));
    assert_eq!(line(&damaged), Some((0, DAMAGED_TEXT)));
    assert!(store.outlines(&[damaged]).await.unwrap()[0].is_some());
    store.close().await.unwrap();
}

#[rstest]
#[case::versions("versions")]
#[case::contents("contents")]
#[tokio::test]
async fn store_without_one_of_its_tables_is_damaged(#[case] table: &str) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    sample(&path).await;
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch(&format!("PRAGMA foreign_keys = OFF; DROP TABLE {table}")).unwrap();
    drop(other);
    let read = async {
        let store = SqliteStore::open(&path, Durability::Power)?;
        store.get(&ids()[0], AsOf::default()).await
    };
    let error = read.await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreCorrupt, "{error}");
    assert!(error.to_string().contains(table), "{error}");
}
