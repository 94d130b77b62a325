//! Text that the owner of a store wants to forget is in no file of it any more, and everything else is unchanged.

use std::io::Cursor;

use context_model::error::ErrorCode;
use context_model::id::{ObjectId, SessionId};
use context_store::{AsOf, Erase, OwnedStore, Store, Write, transfer};
use serde_json::json;

use crate::secrets::{SECRETS, all, file, in_files, open, plant, readable, secret, write};

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_secrets_are_in_no_file_any_more() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    let store = open(&path);
    plant(&store).await;
    assert!(in_files(place.path()) > 100 && readable(&store).await >= SECRETS);
    let (kept, versions) =
        (file("/kept", "nothing to hide"), store.history(file("/versions", "").id()).await.unwrap());
    write(&*store, vec![Write::put(kept.clone())]).await;

    let count = store.erase(all(), "live keys").await.unwrap();
    assert!(count.versions >= SECRETS as u64, "{count:?}");
    assert_eq!((in_files(place.path()), readable(&store).await), (0, 0));
    assert_eq!(store.verify().await.unwrap(), []);

    // Envelopes, hashes, times and numbers are as they were, and the versions say what happened.
    let now = store.history(file("/versions", "").id()).await.unwrap();
    assert_eq!(now.len(), versions.len());
    for (now, before) in now.iter().zip(&versions) {
        assert_eq!(
            (now.tx_id, now.tx_time, now.valid_time),
            (before.tx_id, before.tx_time, before.valid_time)
        );
        assert_eq!(now.document.source_hash(), before.document.source_hash());
        assert_eq!((now.document.content(), now.erased.as_ref().unwrap().why.as_str()), (None, "live keys"));
    }
    let chat =
        store.get(&ObjectId::chat(&SessionId::new("s").unwrap()), AsOf::default()).await.unwrap().unwrap();
    assert_eq!(chat.document.field("turns").unwrap().as_array().unwrap().len(), SECRETS / 5);
    assert!(chat.erased.is_some());
    let untouched = store.get(kept.id(), AsOf::default()).await.unwrap().unwrap();
    assert_eq!((untouched.document, untouched.erased), (kept, None));

    // A second call finds nothing, and later writes stay.
    assert_eq!(store.erase(all(), "again").await.unwrap().versions, 0);
    write(&*store, vec![Write::put(file("/new", "a new text"))]).await;
    store.close().await.unwrap();
    let store = open(&path);
    assert_eq!((in_files(place.path()), readable(&store).await), (0, 0));
    assert!(store.get(file("/new", "").id(), AsOf::default()).await.unwrap().is_some());
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_a_path_and_a_session_can_be_forgotten() {
    let place = tempfile::tempdir().unwrap();
    let store = open(&place.path().join("store.db"));
    plant(&store).await;
    store
        .erase(vec![Erase::Object(ObjectId::new("c2")), Erase::Path("/versions".into())], "mine")
        .await
        .unwrap();
    let call = store.get(&ObjectId::new("c2"), AsOf::default()).await.unwrap().unwrap();
    assert_eq!(call.document.field("args"), Some(&json!({})));
    assert_eq!((call.document.field("args_display"), call.document.content()), (None, None));
    let versions = store.history(file("/versions", "").id()).await.unwrap();
    assert!(versions.iter().all(|version| version.document.content().is_none() && version.erased.is_some()));
    // Another call had the same output, which is one text: it is also erased there, and the call says so.
    let other = store.get(&ObjectId::new("c7"), AsOf::default()).await.unwrap().unwrap();
    assert!(other.document.content().is_none() && other.erased.is_some());
    assert!(other.document.field("args").unwrap().to_string().contains(&secret(7)));
    assert_eq!(store.verify().await.unwrap(), []);
    store.close().await.unwrap();
}

/// Neither an import nor a repeated recording restores an erased text.
#[tokio::test(flavor = "multi_thread")]
async fn erased_text_is_not_restored() {
    let place = tempfile::tempdir().unwrap();
    let store = open(&place.path().join("store.db"));
    plant(&store).await;
    let ids = transfer::all_objects(&*store).await.unwrap();
    let mut export = Vec::new();
    transfer::export(&*store, &ids, &mut export).await.unwrap();
    store.erase(all(), "live keys").await.unwrap();
    let summary = transfer::import(&mut Cursor::new(export), &*store).await.unwrap();
    assert_eq!((summary.written, readable(&store).await), (0, 0));
    // The same text again, also as another file's.
    let text = format!("key = {}\n", secret(0));
    write(&*store, vec![Write::put(file("/short/0", &text)), Write::put(file("/copy", &text))]).await;
    let copy = store.get(file("/copy", "").id(), AsOf::default()).await.unwrap().unwrap();
    assert!(copy.document.content().is_none() && copy.erased.is_some());
    assert_eq!(
        (store.history(file("/short/0", "").id()).await.unwrap().len(), readable(&store).await),
        (1, 0)
    );
    assert_eq!(store.verify().await.unwrap(), []);
    // A later export can be imported elsewhere.
    let mut export = Vec::new();
    transfer::export(&*store, &ids, &mut export).await.unwrap();
    let other = open(&place.path().join("other.db"));
    transfer::import(&mut Cursor::new(export), &*other).await.unwrap();
    assert_eq!(readable(&other).await, 0);
    other.close().await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_missing_objects_and_erases_nothing() {
    let place = tempfile::tempdir().unwrap();
    let store = open(&place.path().join("store.db"));
    plant(&store).await;
    let there = Erase::Path("/versions".into());
    for (wanted, word) in [
        (Erase::Object(ObjectId::new("absent")), "no object absent"),
        (Erase::Path("/outside".into()), "no file /outside"),
        (Erase::Session(SessionId::new("other").unwrap()), "no session other"),
        (Erase::Text("ab".into()), "at least 6 bytes"),
    ] {
        let error = store.erase(vec![there.clone(), wanted], "x").await.unwrap_err();
        assert!(error.code() == ErrorCode::InvalidArgument && error.to_string().contains(word), "{error}");
    }
    assert!(readable(&store).await >= SECRETS);
    store.close().await.unwrap();
}

/// One text in 10,000 versions is taken out of all of them.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "lasts 3 seconds: `npm run test:full`"]
async fn a_text_in_ten_thousand_versions() {
    let place = tempfile::tempdir().unwrap();
    let store = open(&place.path().join("store.db"));
    for batch in 0..100 {
        let text = "the same secret text everywhere";
        let writes = (0..100).map(|n| Write::put(file(&format!("/{batch}/{n}"), text))).collect();
        write(&*store, writes).await;
    }
    let count = store.erase(vec![Erase::Text("secret text".into())], "x").await.unwrap();
    assert_eq!((count.texts, count.versions), (1, 10_000));
    assert_eq!(store.verify().await.unwrap(), []);
    store.close().await.unwrap();
}

/// The same in one file that keeps its secret while everything around it changes: its versions are stored as differences.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_in_a_thousand_versions_of_one_file() {
    let place = tempfile::tempdir().unwrap();
    let store = open(&place.path().join("store.db"));
    let lines: String = (0..20).map(|n| format!("let value_{n} = {};\n", n * 7_919 % 1_000)).collect();
    for batch in 0..10 {
        let text = |n: usize| format!("{lines}{}\nversion {batch} {n}\n", secret(0));
        write(&*store, (0..100).map(|n| Write::put(file("/one", &text(n)))).collect()).await;
    }
    let count = store.erase(vec![Erase::Text(secret(0))], "x").await.unwrap();
    assert_eq!((count.texts, count.versions), (1_000, 1_000));
    assert_eq!((in_files(place.path()), readable(&store).await), (0, 0));
    assert_eq!(store.verify().await.unwrap(), []);
    store.close().await.unwrap();
}
