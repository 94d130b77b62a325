//! Forgotten text stays forgotten, whatever its length and wherever it is said again.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::sync::Arc;

use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::patch::Patch;
use serde_json::{Value, json};

use super::given::{file_in, prompt, put, session, toolcall, unique, write};
use super::owning::is_intact;
use crate::memory::MemoryStore;
use crate::{AsOf, Erase, OwnedStore, Store, Write, transfer};

/// Places where a text may occur.
const PLACES: [&str; 7] = ["user", "block", "thinking", "arguments", "call", "output", "file"];

/// The turn of a chat with these texts at one of the first places.
fn turn(place: &str, texts: &[String]) -> Value {
    let blocks = |kind: &str, field: &str| -> Vec<Value> {
        texts.iter().map(|text| json!({ "type": kind, field: text })).collect()
    };
    match place {
        "user" => json!({ "user": blocks("text", "text"), "toolcall_ids": [] }),
        "block" => json!({ "user": "a question", "assistant": [{ "content": blocks("text", "text") }] }),
        "thinking" => {
            json!({ "user": null, "assistant": [{ "content": blocks("thinking", "thinking") }] })
        }
        _ => {
            let call =
                json!({ "type": "toolCall", "name": "write", "arguments": { "deep": [{ "list": texts }] } });
            json!({ "user": null, "assistant": [{ "content": [call] }] })
        }
    }
}

/// Writes these texts at a place; contents get one version each. Returns the objects.
async fn say(store: &Arc<dyn Store>, session: &SessionId, place: &str, texts: &[String]) -> Vec<ObjectId> {
    match place {
        "call" => {
            let mut parts = toolcall(&unique("call"), session, "nothing").into_parts();
            parts.3.insert(
                "args".into(),
                json!({ "type": "text", "list": texts, "nested": { "name": texts[0] } }),
            );
            parts.3.insert("args_display".into(), format!("list: {}", texts[0]).into());
            let id = parts.0.clone();
            put(&**store, Document::new(parts.0, parts.1, parts.2, parts.3).unwrap()).await;
            vec![id]
        }
        "output" | "file" => {
            let mut ids = Vec::new();
            for text in texts {
                let document = match place {
                    "output" => toolcall(&unique("call"), session, text),
                    _ => file_in(&unique("f"), "/a", Some(text)),
                };
                ids.push(document.id().clone());
                put(&**store, document).await;
            }
            ids
        }
        _ => {
            let id = ObjectId::chat(session);
            if store.get(&id, AsOf::default()).await.unwrap().is_none() {
                put(&**store, Document::chat(session)).await;
            }
            let mut patch = Patch::new();
            patch.append(&["turns"], turn(place, texts));
            patch.set(&["turn_count"], json!(1));
            write(&**store, vec![Write::patch(id.clone(), patch)]).await;
            vec![id]
        }
    }
}

/// All strings of all versions of these objects.
async fn strings(store: &Arc<dyn Store>, ids: &[ObjectId]) -> BTreeSet<String> {
    fn of(value: &Value, strings: &mut BTreeSet<String>) {
        match value {
            Value::String(text) => drop(strings.insert(text.clone())),
            Value::Array(items) => items.iter().for_each(|item| of(item, strings)),
            Value::Object(fields) => fields.values().for_each(|value| of(value, strings)),
            _ => {}
        }
    }
    let mut strings = BTreeSet::new();
    for id in ids {
        for version in store.history(id).await.unwrap() {
            version.document.payload().values().for_each(|value| of(value, &mut strings));
        }
    }
    strings
}

/// Texts of many lengths that no other check has.
fn texts() -> Vec<String> {
    let name = unique("said");
    let long = |length: usize| format!("{name} {}", "x".repeat(length));
    ["~", "¿", "yº"].map(str::to_owned).into_iter().chain([1, 200, 255, 300, 5_000].map(long)).collect()
}

pub(super) async fn a_text_of_any_length_stays_forgotten_in_any_place(owned: Arc<dyn OwnedStore>) {
    let store = Arc::clone(&owned) as Arc<dyn Store>;
    let mut written = Vec::new();
    for origin in PLACES {
        let texts = texts();
        let ids = say(&store, &session(), origin, &texts).await;
        let whole = ids.iter().cloned().map(Erase::Object).collect();
        owned.erase(whole, "over").await.unwrap();

        let mut again = ids;
        for place in PLACES {
            again.extend(say(&store, &session(), place, &texts).await);
            let found = strings(&store, &again).await;
            for text in &texts {
                let is_it = |one: &&String| *one == text || (text.len() > 10 && one.contains(text));
                assert_eq!(found.iter().find(is_it), None, "forgotten as {origin}, said as {place}");
            }
        }
        written.extend(again);
    }
    assert!(is_intact(&store, &written).await);
}

pub(super) async fn a_text_stays_forgotten_inside_of_new_ones(owned: Arc<dyn OwnedStore>) {
    let store = Arc::clone(&owned) as Arc<dyn Store>;
    let secret = format!("{}\"quoted\"", unique("key"));
    let before = file_in(&unique("f"), "/before", Some(&format!("key = {secret}\n")));
    put(&*store, before).await;
    owned.erase(vec![Erase::Text(secret.clone())], "keys").await.unwrap();

    let json = json!({ "key": secret }).to_string();
    let new: Vec<String> = vec![
        format!("{secret} first"),
        format!("a new text with {secret} in it, and {secret}"),
        format!("{}{secret}", "long ".repeat(5_000)),
        json,
    ];
    let mut ids = vec![ObjectId::system_prompt(&session())];
    for place in PLACES {
        ids.extend(say(&store, &session(), place, &new).await);
    }
    let about = session();
    put(&*store, prompt(&about, &new[1])).await;
    ids.push(ObjectId::system_prompt(&about));
    let found = strings(&store, &ids).await;
    let escaped = serde_json::to_string(&secret).unwrap();
    let hidden = &escaped[1..escaped.len() - 1];
    assert!(found.iter().all(|one| !one.contains(&secret) && !one.contains(hidden)), "{found:?}");
    // Only the secret is missing, also from the contents.
    for text in &new {
        let rest = text.replace(&secret, "[erased]").replace(hidden, "[erased]");
        assert!(found.contains(&rest), "{rest}");
    }
    let now = store.get(&ObjectId::system_prompt(&about), AsOf::default()).await.unwrap().unwrap();
    assert_eq!(now.document.content(), Some("a new text with [erased] in it, and [erased]"));
    assert!(now.erased.is_some());
    assert_eq!(put(&*store, prompt(&about, &new[1])).await.written, [false], "it is the same version");

    // It can be exported, and imported again.
    let mut export = Vec::new();
    transfer::export(&*store, &ids, &mut export).await.unwrap();
    assert!(!String::from_utf8_lossy(&export).contains(&secret));
    transfer::import(&mut std::io::Cursor::new(export), &*store).await.unwrap();
    let damages = store.verify().await.unwrap();
    assert!(
        damages.iter().all(|damage| !damage.id.as_ref().is_some_and(|id| ids.contains(id))),
        "{damages:?}"
    );
}

/// The mark of an erased version comes along with an export, so that its store can export it again.
pub(super) async fn an_imported_version_keeps_its_mark(store: Arc<dyn OwnedStore>) {
    let first = MemoryStore::new();
    let (secret, session, path) = (unique("secret"), session(), unique("/imported"));
    let text = format!("a {secret}");
    let (one, two) = (file_in("f", &path, Some("before")), file_in("f", &path, Some(&text)));
    let chat = ObjectId::chat(&session);
    for document in [one.clone(), two, Document::chat(&session)] {
        put(&*first, document).await;
    }
    for said in ["hello", &text, "bye"] {
        let mut patch = Patch::new();
        patch.append(&["turns"], turn("user", &[said.to_owned()]));
        write(&*first, vec![Write::patch(chat.clone(), patch)]).await;
    }
    let ids = [one.id().clone(), chat.clone()];
    let mut before = Vec::new();
    transfer::export(&*first, &ids, &mut before).await.unwrap();
    first.erase(vec![Erase::Text(secret.clone())], "told so").await.unwrap();
    let marks = async |store: &dyn Store| {
        let mut found = Vec::new();
        for id in &ids {
            let history = store.history(id).await.unwrap();
            found.push(history.into_iter().map(|version| version.erased).collect::<Vec<_>>());
        }
        found
    };
    let wanted = marks(&*first).await;
    assert_eq!(wanted[0].iter().map(Option::is_some).collect::<Vec<_>>(), [false, true]);
    let mut export = Vec::new();
    transfer::export(&*first, &ids, &mut export).await.unwrap();
    transfer::import(&mut Cursor::new(&export), &*store).await.unwrap();
    assert_eq!(marks(&*store).await, wanted);
    let mut again = Vec::new();
    transfer::export(&*store, &ids, &mut again).await.unwrap();
    let third = MemoryStore::new();
    transfer::import(&mut Cursor::new(again), &*third).await.unwrap();
    assert_eq!(marks(&*third).await, wanted);
    // A store that has the versions already keeps them.
    let other = MemoryStore::new();
    transfer::import(&mut Cursor::new(before), &*other).await.unwrap();
    assert_eq!(transfer::import(&mut Cursor::new(export), &*other).await.unwrap().written, 0);
}
