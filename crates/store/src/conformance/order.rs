//! Checks of the order of versions that arrive late.

use std::sync::Arc;

use context_model::object::Document;
use context_model::patch::{self, Patch};
use context_model::time::{Timestamp, TxId};
use serde_json::json;

use super::given::{file_in, put, put_at, session, turn, unique, write};
use crate::{AsOf, Change, Store, Write};

/// In whatever order versions arrive, a transaction's number identifies its writes, and a history is oldest first.
pub(super) async fn a_transaction_names_its_version(store: Arc<dyn Store>) {
    for order in [[1, 2, 3], [3, 1, 2], [3, 2, 1], [2, 3, 1], [2, 1, 3], [1, 3, 2]] {
        let filesystem = unique("f");
        let id = file_in(&filesystem, "/x", None).id().clone();
        let mut written = Vec::new();
        for n in order {
            let text = n.to_string();
            written.push((
                put_at(&*store, file_in(&filesystem, "/x", Some(&text)), n * 1_000).await.tx_id,
                text,
            ));
            // Other objects' transactions lie between.
            put(&*store, file_in(&filesystem, &format!("/other{n}"), Some("other"))).await;
        }
        for (tx, text) in &written {
            let version = store.version(&id, *tx).await.unwrap().unwrap();
            assert_eq!((version.tx_id, version.document.content()), (*tx, Some(&**text)), "{order:?}");
            assert_eq!(store.version(&id, TxId(tx.0 + 1)).await.unwrap(), None, "{order:?}");
        }
        for tx in [0, u64::MAX] {
            assert_eq!(store.version(&id, TxId(tx)).await.unwrap(), None);
        }
        let history = store.history(&id).await.unwrap();
        let texts: Vec<_> = history.iter().filter_map(|version| version.document.content()).collect();
        assert_eq!(texts, ["1", "2", "3"], "{order:?}");
        let journal = store.journal(&id).await.unwrap();
        assert!(journal.iter().map(|entry| entry.valid_time).is_sorted(), "{order:?}");
        let mut pages = Vec::new();
        let mut after = None;
        loop {
            let page = store.history_part(&id, after, 1).await.unwrap();
            let Some(last) = page.last() else { break };
            after = Some((last.valid_time, last.tx_id));
            pages.extend(page);
        }
        assert_eq!(pages, history, "{order:?}");
        let mut paged = store.history_page(&id, TxId(0), 9).await.unwrap();
        assert!(paged.iter().map(|version| version.tx_id).is_sorted(), "{order:?}");
        paged.sort_by_key(|version| version.valid_time);
        assert_eq!(paged, history, "{order:?}");
    }
}

/// A machine whose clock runs fast dates versions ahead. What another machine writes then replaces them: the latest version is always
/// the one that was written last.
pub(super) async fn a_write_replaces_a_version_dated_ahead(store: Arc<dyn Store>) {
    let filesystem = unique("f");
    let file = |text| file_in(&filesystem, "/x", Some(text));
    let id = file("now").id().clone();
    put(&*store, file("now")).await;
    let far = 4_000_000_000_000;
    put_at(&*store, file("ahead"), far).await;
    assert_eq!(put(&*store, file("ahead")).await.written, [false], "the file has not changed since");
    for text in ["now", "later"] {
        let receipt = put(&*store, file(text)).await;
        assert_eq!(receipt.written, [true], "{text}");
        let latest = store.get(&id, AsOf::default()).await.unwrap().unwrap();
        assert_eq!((latest.document.content(), latest.tx_id), (Some(text), receipt.tx_id));
        assert!(latest.valid_time.millis() >= far, "{}", latest.valid_time);
        let version = store.version(&id, receipt.tx_id).await.unwrap().unwrap();
        assert_eq!(version.document.content(), Some(text));
    }
    let history = store.history(&id).await.unwrap();
    let texts: Vec<_> = history.iter().filter_map(|version| version.document.content()).collect();
    assert_eq!(texts, ["now", "ahead", "now", "later"]);
    assert_eq!(store.journal(&id).await.unwrap().len(), 4);
}

/// A document that arrives later and lies between two versions of a chain does not become the base of the next patch.
pub(super) async fn a_journal_keeps_its_sense_when_an_older_version_arrives_later(store: Arc<dyn Store>) {
    let chat = Document::chat(&session());
    let id = chat.id().clone();
    let at = |n, millis| Write::Patch {
        id: id.clone(),
        patch: turn(n),
        valid_time: Some(Timestamp::from_millis(millis)),
    };
    put_at(&*store, chat.clone(), 1_000).await;
    for n in 1..=3 {
        write(&*store, vec![at(n, 1_000 + 1_000 * i64::try_from(n).unwrap())]).await;
    }
    let mut late = Patch::new();
    late.set(&["turn_count"], json!(77));
    put_at(&*store, patch::apply(chat, [&late]).unwrap(), 2_500).await;
    let history = store.history(&id).await.unwrap();
    assert_eq!(
        history.iter().map(|v| v.valid_time.millis()).collect::<Vec<_>>(),
        [1_000, 2_000, 2_500, 3_000, 4_000]
    );
    let mut last: Option<Document> = None;
    for (entry, version) in store.journal(&id).await.unwrap().into_iter().zip(&history) {
        let document = match entry.change {
            Change::Document(document) => document,
            Change::Patch(patch) => patch::apply(last.unwrap(), [&patch]).unwrap(),
        };
        assert_eq!((&document, entry.tx_id), (&version.document, version.tx_id));
        last = Some(document);
    }
}
