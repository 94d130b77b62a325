//! Checks of the stores' contents.

use crate::check::changes;
use crate::client::Client;
use crate::conversation::Output;
use crate::violation::{Kind, Outcome, violation};
use crate::world::{Content, World};
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::session::Sets;
use context_store::AsOf;
use serde_json::Value;
use std::collections::BTreeSet;

/// The recorded chat is the conversation.
pub async fn chat(client: &Client) -> Outcome {
    let version = client.store.inner().get(&client.document("chat"), AsOf::default()).await.unwrap();
    let Some(document) = version.map(|version| version.document) else {
        return violation(Kind::Chat, "there is none");
    };
    let mut turns: Vec<(Value, Vec<Value>, usize)> = Vec::new();
    // Calls that are equal in everything are one call, and one object.
    let (mut args, mut calls) = (Vec::new(), BTreeSet::new());
    let sent = client.messages.iter().take(client.sent);
    for message in sent.filter(|message| !message.is_notice) {
        let raw = &message.raw;
        if message.role() == "user" {
            turns.push((raw["content"].clone(), Vec::new(), 0));
            continue;
        }
        if turns.is_empty() {
            turns.push((Value::Null, Vec::new(), 0));
        }
        let last = turns.last_mut().unwrap();
        if message.role() == "assistant" {
            last.1.push(raw["content"].clone());
            args = raw["content"].as_array().cloned().unwrap_or_default();
            continue;
        }
        let call = args.iter().find(|block| block["id"] == raw["toolCallId"]);
        let new = calls.insert(format!("{call:?} {} {}", raw["isError"], message.output));
        last.2 += usize::from(new);
    }
    let list = |turn: &Value, name: &str| turn[name].as_array().cloned().unwrap_or_default();
    let stored = document.field("turns").and_then(Value::as_array).cloned().unwrap_or_default();
    let stored: Vec<(Value, Vec<Value>, usize)> = stored
        .iter()
        .map(|turn| {
            let answers = list(turn, "assistant").iter().map(|answer| answer["content"].clone()).collect();
            let calls: BTreeSet<String> = list(turn, "toolcall_ids").iter().map(Value::to_string).collect();
            (turn["user"].clone(), answers, calls.len())
        })
        .collect();
    let brief = |turns: &[(Value, Vec<Value>, usize)]| {
        turns.iter().map(|turn| format!("{} {} {}", turn.0, turn.1.len(), turn.2)).collect::<Vec<_>>()
    };
    if stored != turns {
        let what = format!("{} has\n{:?}\nand not\n{:?}", client.session, brief(&stored), brief(&turns));
        return violation(Kind::Chat, what);
    }
    Ok(())
}

/// The sets fit each other, and the store has them.
pub async fn sets(client: &mut Client) -> Outcome {
    let Some(engine) = client.engine.clone() else { return Ok(()) };
    let Ok(sets) = engine.session_sets().await else { return Ok(()) };
    let within = |inner: &[ObjectId], outer: &[ObjectId]| inner.iter().all(|id| outer.contains(id));
    let fits = within(&sets.active_set, &sets.metadata_pool)
        && within(&sets.metadata_pool, &sets.session_index)
        && within(&sets.pinned_set, &sets.session_index);
    if !fits {
        return violation(Kind::Sets, format!("{}: {sets:?}", client.session));
    }
    let version = client.store.inner().get(&client.document("session"), AsOf::default()).await.unwrap();
    let stored = version.and_then(|version| Sets::from_document(&version.document).ok());
    let same = stored.is_some_and(|stored| {
        let equal = |one: &[ObjectId], other: &indexmap::IndexSet<ObjectId>| {
            one.len() == other.len() && one.iter().all(|id| other.contains(id))
        };
        equal(&sets.session_index, stored.index())
            && equal(&sets.metadata_pool, stored.pool())
            && equal(&sets.active_set, stored.active())
            && equal(&sets.pinned_set, stored.pinned())
    });
    if !same && !client.doubt && !client.unsure {
        return violation(Kind::Sets, format!("{}: the store has other sets than\n{sets:?}", client.session));
    }
    Ok(())
}

/// Every output that was acknowledged is there, byte for byte.
pub async fn acknowledged(client: &Client) -> Outcome {
    for Output { object: id, text, .. } in &client.outputs {
        let version = client.store.inner().get(id, AsOf::default()).await.unwrap();
        if version.is_none_or(|version| version.document.content() != Some(text)) {
            return violation(Kind::Lost, format!("{id} of {}", client.session));
        }
    }
    Ok(())
}

/// The database that machines share has what is on the disk, as far as anybody has looked at it.
pub fn shared(world: &World) -> Outcome {
    for (number, file) in world.files.iter().enumerate() {
        // A path that was only seen has no text.
        let Some(stored) = world.shared(number).filter(|stored| stored.is_some()) else { continue };
        if stored != world.now(number) {
            let change = changes(stored.as_deref(), world.now(number).as_deref());
            return violation(Kind::Behind, format!("{} in the database:\n{change}", file.name));
        }
    }
    Ok(())
}

/// The versions of a file are those that were on the disk, in that order, and none is there twice in a row: only a text may
/// follow its hash, once a client has read it.
pub async fn histories(world: &World) -> Outcome {
    // Behind a link there are two files, and `past` has what was at the link.
    let own = world.files.iter().enumerate().filter(|(number, _)| !world.is_link(*number));
    for (number, file) in own {
        let versions = world.store.history(&world.ids(number)[0]).await.unwrap();
        let hash_of = |content: &Content| content.as_ref().map(|text| Digest::of(text.as_bytes()));
        let mut past = file.past.iter().map(hash_of).peekable();
        let mut before: Option<(Option<Digest>, bool)> = None;
        for version in versions {
            let (hash, text) = (version.document.source_hash(), version.document.content());
            // A path that was only seen has neither yet.
            let is_known = hash.is_some() || before.is_some();
            let is_first_text = text.is_some() && before == Some((hash, false));
            if is_known && !is_first_text && before.is_some_and(|(before, _)| before == hash) {
                return violation(Kind::History, format!("{} has a version twice: {text:?}", file.name));
            }
            while is_known && past.peek().is_some_and(|state| *state != hash) {
                past.next();
            }
            let is_its_text = text.is_none_or(|text| Some(Digest::of(text.as_bytes())) == hash);
            if is_known && (past.peek().is_none() || !is_its_text) {
                let what = format!("{} was never this, or not at that time: {hash:?} {text:?}", file.name);
                return violation(Kind::History, what);
            }
            before = is_known.then_some((hash, text.is_some()));
        }
    }
    Ok(())
}
