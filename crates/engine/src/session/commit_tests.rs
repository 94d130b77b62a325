//! Documents of a transaction, and how it is saved.

use context_model::source::FilesystemSource;
use context_model::time::Timestamp;

use context_model::object::Document;
use context_model::patch::Patch;

use crate::session::work::Documents;

use super::*;

/// Only objects that got a version from the transaction are noted as written by it.
#[tokio::test]
async fn session_notes_only_versions_that_its_transaction_made() {
    let client = Client::of_test(|options| options).await;
    let ids = [client.session_object.clone(), client.chat_id.clone(), ObjectId::new("call")];
    for (written, session_tx, chat_tx) in [
        ([true, true, true], Some(TxId(8)), Some(TxId(8))),
        ([true, false, false], Some(TxId(8)), Some(TxId(3))),
        ([false, true, false], Some(TxId(2)), Some(TxId(8))),
        ([false, false, true], Some(TxId(2)), Some(TxId(3))),
    ] {
        for (seen, then) in [(7, 8), (6, 6), (8, 8)] {
            let mut session = Session {
                session_tx: Some(TxId(2)),
                chat_tx: Some(TxId(3)),
                seen: TxId(seen),
                ..Session::default()
            };
            let receipt =
                Receipt { tx_id: TxId(8), tx_time: Timestamp::from_millis(0), written: written.to_vec() };
            note_written(&client, &mut session, &receipt, &ids);
            assert_eq!((session.session_tx, session.chat_tx), (session_tx, chat_tx), "{written:?}");
            assert_eq!(
                (session.seen, session.point),
                (TxId(then), TxId(8)),
                "others have written until {seen}"
            );
        }
    }
    let mut session = Session { seen: TxId(7), ..Session::default() };
    let receipt = Receipt { tx_id: TxId(8), tx_time: Timestamp::from_millis(0), written: vec![false; 3] };
    note_written(&client, &mut session, &receipt, &ids);
    assert_eq!((session.seen, session.point), (TxId(7), TxId(0)), "it is another client's transaction");
}

#[test]
fn first_path_creates_the_field_of_paths() {
    let id = ObjectId::new("f");
    for (has_displays, is_first) in [(false, true), (true, false)] {
        let session = Session { has_displays, ..Session::default() };
        let (mut work, mut expected) = (Work::default(), Patch::new());
        if is_first {
            expected.put(&["display_paths"], json!({}));
        }
        for path in ["./f", "../f"] {
            work.show_as(&session, &id, path);
            expected.put(&["display_paths", "f"], json!(path));
        }
        assert_eq!(work.session, expected);
    }
}

fn file(path: usize, content: Option<&str>) -> Document {
    let source = FilesystemSource { filesystem_id: "f".into(), path: format!("/{path}") };
    Document::file(source, content.map(str::to_owned), None)
}

/// The number of comparisons grows linearly with the documents, not with their square.
#[test]
fn a_document_is_compared_with_those_of_its_object_only() {
    let mut documents = Documents::default();
    for _ in 0..2 {
        (0..2_000).for_each(|path| documents.push_new(file(path, None)));
    }
    assert_eq!(documents.compared, 2_000);
    assert_eq!(documents.ids().count(), 2_000);
    assert_eq!(documents.take().len(), 2_000);
}

#[test]
fn versions_of_one_object_stay_in_their_order_and_equal_ones_come_once() {
    let mut documents = Documents::default();
    for content in [Some("a"), None, Some("a"), Some("b"), None] {
        documents.push_new(file(1, content));
    }
    assert!(documents.has(file(1, None).id()) && !documents.has(file(2, None).id()));
    assert_eq!(documents.take(), [file(1, Some("a")), file(1, None), file(1, Some("b"))]);
    assert!(!documents.has(file(1, None).id()));
}
