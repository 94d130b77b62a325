//! Full-text search.

use std::sync::Arc;

use context_model::id::ObjectId;
use context_model::object::ObjectType;

use super::given::{file_in, prompt, put, session, toolcall, unique};
use crate::{Search, Store};

pub(super) async fn a_search_finds_words_with_their_line(store: Arc<dyn Store>) {
    let (filesystem, session) = (unique("f"), session());
    // A word that occurs only in this run, because the store may contain other objects.
    let rare = unique("zq").replace('-', "x");
    let text = format!("fn main() {{\r\n    let {rare}_count = 1;\n    {rare}.Parse_Value()\n}}\n");
    put(&*store, file_in(&filesystem, "/a.rs", Some(&text))).await;
    put(&*store, file_in(&filesystem, "/a.rs", Some("gone"))).await;
    let call = toolcall(&unique("call"), &session, &format!("only {rare} here"));
    let receipt = put(&*store, call.clone()).await;
    let id = file_in(&filesystem, "/a.rs", None).id().clone();

    let found = store.search(&look_for(&rare)).await.unwrap();
    assert_eq!(found.len(), 2);
    assert!(found[0].score >= found[1].score);
    let hit = found.iter().find(|hit| hit.id == id).unwrap();
    assert_eq!((hit.line, hit.snippet.trim()), (3, format!("{rare}.Parse_Value()").as_str()));
    let hit = found.iter().find(|hit| hit.id == *call.id()).unwrap();
    assert_eq!((hit.line, hit.tx_id), (1, receipt.tx_id));

    let one = |text: String| {
        let store = Arc::clone(&store);
        async move {
            store.search(&look_for(&text)).await.unwrap().into_iter().map(|h| h.line).collect::<Vec<_>>()
        }
    };
    assert_eq!(one(format!("{rare}_COUNT")).await, [2]);
    assert_eq!(one(format!("{rare}.parse_value main")).await, [1]);
    assert_eq!(one(format!("{rare}.main")).await, [] as [usize; 0]);
    // Searching a text in which every word matches takes time in proportion to its length.
    let many = format!("{}\n{rare}q", format!("{rare}q ").repeat(100_000));
    put(&*store, toolcall(&unique("call"), &session, &many)).await;
    assert_eq!(one(format!("{rare}q")).await, [1]);
    assert_eq!(one(format!("{rare} absent{rare}")).await, [] as [usize; 0]);

    let calls = Search { object_type: Some(ObjectType::Toolcall), ..look_for(&rare) };
    assert_eq!(store.search(&calls).await.unwrap().len(), 1);
    assert_eq!(store.search(&Search { limit: 1, ..look_for(&rare) }).await.unwrap().len(), 1);
    assert_eq!(store.search(&Search { limit: 0, ..look_for(&rare) }).await.unwrap(), []);
    let within = |ids: &[&ObjectId]| Search {
        within: Some(ids.iter().map(|id| (*id).clone()).collect()),
        ..look_for(&rare)
    };
    let found = store.search(&within(&[&id, &ObjectId::new("absent")])).await.unwrap();
    assert_eq!(found.iter().map(|hit| &hit.id).collect::<Vec<_>>(), [&id]);
    assert_eq!(store.search(&within(&[&id, call.id()])).await.unwrap().len(), 2);
    assert_eq!(store.search(&within(&[])).await.unwrap(), []);
    let neither = Search { object_type: Some(ObjectType::Toolcall), ..within(&[&id]) };
    assert_eq!(store.search(&neither).await.unwrap(), []);
    // Hits outside the scope don't count toward the limit.
    let one = Search { limit: 1, ..within(&[&id]) };
    assert_eq!(store.search(&one).await.unwrap().len(), 1);
    // A hit names the newest version that has content.
    let again = put(&*store, file_in(&filesystem, "/a.rs", Some(&text))).await;
    let found = store.search(&look_for(&rare)).await.unwrap();
    assert_eq!(found.iter().find(|hit| hit.id == id).unwrap().tx_id, again.tx_id);
}

pub(super) async fn any_text_is_a_valid_search(store: Arc<dyn Store>) {
    put(&*store, prompt(&session(), "a \"quoted\" text: x AND y")).await;
    let odd = [
        "",
        "  ",
        "\"",
        "\"\"",
        "AND",
        "NOT x",
        "a* OR",
        "-x",
        "(",
        "NEAR(a b",
        "col:x",
        "\0",
        "x\0y",
        "^x",
        "ü\u{1F600}",
        "->",
        "'; --",
    ];
    for text in odd {
        store.search(&look_for(text)).await.unwrap();
    }
    assert_eq!(store.search(&look_for(" -> ")).await.unwrap(), []);
}

pub(super) fn look_for(text: &str) -> Search {
    Search { text: text.into(), limit: 10, object_type: None, within: None }
}
