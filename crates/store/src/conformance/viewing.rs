//! Checks of the view that only reads.

use std::sync::Arc;

use context_model::error::ErrorCode;
use context_model::id::ObjectId;

use super::given::{prompt, put, refused, session, turn, write};
use super::searching::look_for;
use crate::{AsOf, Store, Write};

pub(super) async fn a_view_shows_what_is_written_after_it_was_opened(store: Arc<dyn Store>) {
    let session = session();
    let (id, chat) = (ObjectId::system_prompt(&session), ObjectId::chat(&session));
    let view = Arc::clone(&store).read_only().unwrap();
    assert_eq!(view.get(&id, AsOf::default()).await.unwrap(), None);
    for n in 1..=3 {
        let word = format!("pelican{}x{n}", session.as_str().replace('-', "x"));
        put(&*store, prompt(&session, &word)).await;
        if n == 1 {
            put(&*store, context_model::object::Document::chat(&session)).await;
        }
        write(&*store, vec![Write::patch(chat.clone(), turn(n))]).await;
        assert_eq!(view.latest_tx().await.unwrap(), store.latest_tx().await.unwrap());
        let ids = [id.clone(), chat.clone()];
        assert_eq!(
            view.get_many(&ids, AsOf::default()).await.unwrap(),
            store.get_many(&ids, AsOf::default()).await.unwrap()
        );
        for id in &ids {
            assert_eq!(view.history(id).await.unwrap(), store.history(id).await.unwrap());
            assert_eq!(view.journal(id).await.unwrap(), store.journal(id).await.unwrap());
        }
        assert_eq!(view.outlines(&ids).await.unwrap(), store.outlines(&ids).await.unwrap());
        let hits = view.search(&look_for(&word)).await.unwrap();
        assert_eq!(hits.iter().map(|hit| &hit.id).collect::<Vec<_>>(), [&id]);
    }
    view.close().await.unwrap();
}

pub(super) async fn a_view_refuses_writes_and_is_closed_by_itself(store: Arc<dyn Store>) {
    let session = session();
    let id = ObjectId::system_prompt(&session);
    put(&*store, prompt(&session, "x")).await;
    let view = Arc::clone(&store).read_only().unwrap();
    let before = store.latest_tx().await.unwrap();
    let code = refused(&*view, vec![Write::put(prompt(&session, "y"))]).await;
    assert_eq!(code, ErrorCode::StoreUnavailable);
    assert_eq!(view.set_note("n", "text").await.unwrap_err().code(), ErrorCode::StoreUnavailable);
    let missing = view.local_value("view-without-a-value", "x").await;
    assert_eq!(missing.unwrap_err().code(), ErrorCode::StoreUnavailable);
    assert_eq!(store.latest_tx().await.unwrap(), before);
    let other = Arc::clone(&view).read_only().unwrap();
    view.close().await.unwrap();
    view.close().await.unwrap();
    assert_eq!(view.get(&id, AsOf::default()).await.unwrap_err().code(), ErrorCode::Closed);
    assert_eq!(view.search(&look_for("x")).await.unwrap_err().code(), ErrorCode::Closed);
    assert!(view.read_only().is_err());
    for open in [&store, &other] {
        assert!(open.get(&id, AsOf::default()).await.unwrap().is_some());
    }
    put(&*store, prompt(&session, "z")).await;
    let seen = other.get(&id, AsOf::default()).await.unwrap().unwrap();
    assert_eq!(seen.document.content(), Some("z"));
    other.close().await.unwrap();
}
