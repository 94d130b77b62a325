//! Text that one machine forgot is not stored again when another machine writes it, however short it is.

use crate::rig::objects::{queued, write};
use crate::rig::{Kind, Node};
use crate::secrets::{call, file};
use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::patch::Patch;
use context_model::session::Sets;
use context_store::{AsOf, Erase, Filter, OwnedStore, Store, Write};
use serde_json::json;

/// Texts of messages, arguments and outputs, all of them short.
const TEXTS: [&str; 3] = ["my pin is 4711 zq", "zqk", "the name of the customer is zqzq"];

/// Says all texts in a chat, and in a call and a file with these names. Returns the objects.
async fn say(store: &dyn Store, chat: &SessionId, name: &str) -> Vec<ObjectId> {
    let id = ObjectId::chat(chat);
    let before = store.get(&id, AsOf::default()).await.unwrap();
    let turns = before.and_then(|chat| chat.document.field("turn_count")?.as_u64());
    if turns.is_none() {
        write(store, vec![Write::put(Document::chat(chat))]).await;
    }
    let mut patch = Patch::new();
    let blocks: Vec<_> = TEXTS.iter().map(|text| json!({ "type": "text", "text": text })).collect();
    // Long enough that the version is stored as a change.
    let padding = "said at length ".repeat(60);
    patch.append(
        &["turns"],
        json!({ "user": TEXTS[0], "assistant": [{ "content": blocks }], "padding": padding }),
    );
    patch.set(&["turn_count"], json!(turns.unwrap_or(0) + 1));
    write(store, vec![Write::patch(id.clone(), patch)]).await;
    let (call, file) = (call(name, TEXTS[1], TEXTS[2]), file(&format!("/{name}"), TEXTS[0]));
    let ids = vec![id, call.id().clone(), file.id().clone()];
    write(store, vec![Write::put(call), Write::put(file)]).await;
    ids
}

/// All that a node answers about its whole log and its documents.
async fn answers(node: &Node) -> String {
    let pull = "query?query-edn=%7B%3Afind%20%5B%28pull%20e%20%5B%2A%5D%29%5D%20%3Awhere%20%5B%5Be%20%3Axt%2Fid%5D%5D%7D";
    let mut answers = String::new();
    for path in ["tx-log?with-ops%3F=true", pull] {
        let accept = [("accept", "application/json")];
        answers += &crate::ask::ask(&format!("{}/_xtdb/{path}", node.url()), &accept, None).await.1;
    }
    assert!(answers.contains("txOps"));
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn text_said_again_on_another_machine_stays_forgotten() {
    let Some(script) = crate::rig::start_script("forgotten", include_str!("forgotten.rs")) else { return };
    let node = Node::start(&script, Kind::Memory);
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let one = queued(places[0].path(), &node).await;
    let two = queued(places[1].path(), &node).await;
    let (own, other) = (SessionId::new("own").unwrap(), SessionId::new("other").unwrap());
    for _ in 0..2 {
        say(&*two, &own, "first").await;
    }
    let ids = say(&*two, &own, "first").await;
    two.flush().await.unwrap();
    one.pull().await.unwrap();
    assert!(TEXTS.iter().all(|text| node_has(&node, text)));
    one.erase(ids.into_iter().map(Erase::Object).collect(), "over").await.unwrap();
    assert_eq!(TEXTS.iter().find(|text| node_has(&node, text)), None);

    // The second machine has not heard of it when it says the same in the same session and in another one.
    say(&*two, &own, "second").await;
    say(&*two, &other, "third").await;
    two.flush().await.unwrap();
    assert_eq!(TEXTS.iter().find(|text| node_has(&node, text)), None, "said before it heard");
    two.pull().await.unwrap();
    say(&*two, &other, "fourth").await;
    two.flush().await.unwrap();
    assert_eq!(TEXTS.iter().find(|text| node_has(&node, text)), None, "said after it heard");
    // Neither does the first one read it.
    one.pull().await.unwrap();
    for id in one.query(&Filter::default()).await.unwrap() {
        let read = format!("{:?}", one.history(&id).await.unwrap());
        assert_eq!(TEXTS.iter().find(|text| read.contains(**text)), None, "{id}");
    }
    assert_eq!(one.verify().await.unwrap(), []);
    one.close().await.unwrap();
    two.close().await.unwrap();
}

/// The first machine read the list of names at its start, so the list lacks the objects that the second one writes later.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_begun_elsewhere_later_is_forgotten_with_all_its_objects() {
    let Some(script) = crate::rig::start_script("forgotten", include_str!("forgotten.rs")) else { return };
    let node = Node::start(&script, Kind::Memory);
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let one = queued(places[0].path(), &node).await;
    let two = queued(places[1].path(), &node).await;
    // Until the list has been read, the first machine asks for each.
    for n in 0.. {
        let file = file(&format!("/before/{n}"), "nothing to hide");
        let id = file.id().clone();
        write(&*two, vec![Write::put(file)]).await;
        two.flush().await.unwrap();
        if one.outlines(&[id]).await.unwrap()[0].is_none() {
            break;
        }
    }
    let late = SessionId::new("late").unwrap();
    let ids = say(&*two, &late, "first").await;
    let mut sets = Patch::new();
    sets.set(&["session_index"], json!(ids[1..]));
    let wrapper =
        vec![Write::put(Sets::default().document(&late)), Write::patch(ObjectId::session(&late), sets)];
    write(&*two, wrapper).await;
    two.flush().await.unwrap();
    assert!(TEXTS.iter().all(|text| node_has(&node, text)));
    one.erase(vec![Erase::Session(late)], "over").await.unwrap();
    assert_eq!(TEXTS.iter().find(|text| node_has(&node, text)), None);
    one.close().await.unwrap();
    two.close().await.unwrap();
}

fn node_has(node: &Node, text: &str) -> bool {
    let answers = answers(node);
    let answers = tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(answers));
    answers.contains(text)
}
