//! The checks after each step.

use std::sync::Arc;

use context_engine::Plan;
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_store::AsOf;

use crate::client::Client;
use crate::knowledge::{Fragment, Knowledge, Note, What, is_all_new_within};
use crate::tools::in_sight;
use crate::violation::{Kind, Outcome, violation};
use crate::world::{Content, World};

/// Shows what a plan says: between two rolls, what was sent before stays as it is.
pub fn plan(client: &mut Client, plan: &Plan, first: usize) -> Outcome {
    let rebuilt = !client.rebuilt.is_empty();
    for edit in &plan.edits {
        let place = client.messages.iter().position(|message| message.key == edit.key());
        if place.is_some_and(|place| place < first) && plan.receipt.is_none() && !rebuilt {
            return violation(Kind::Rewritten, format!("a sent message changes without a roll: {edit:?}"));
        }
    }
    let unknown = client.apply(plan);
    if !unknown.is_empty() {
        return violation(Kind::Rewritten, format!("an edit of {unknown:?}, which is not there"));
    }
    Ok(())
}

/// Notices are true and news, and become part of the request.
pub async fn notices(world: &World, client: &mut Client, lines: &[String]) -> Outcome {
    if lines.is_empty() {
        return Ok(());
    }
    let mut notes = Vec::new();
    for line in lines {
        let Some(file) = world.files.iter().position(|file| line.contains(&format!("{} ", file.name))) else {
            return violation(Kind::FalseNotice, format!("of no file: {line}"));
        };
        let knowledge = Knowledge::of(file, client.heard().iter());
        let seen = Knowledge::seen(file, client.heard().iter());
        let rebuilt = client.rebuilt.contains(&file);
        let what = line.split(&format!("{} ", world.files[file].name)).last().unwrap_or_default();
        let named = what.strip_prefix("version=").map(|rest| rest.split_once(' ').unwrap_or_default());
        let what = named.map_or(what, |(_, what)| what);
        // A client that has not heard of a link in the file's place uses the file.
        let mut ids = vec![world.id(file)];
        ids.extend(world.ids(file).into_iter().filter(|_| !client.clean));
        let mut version = None;
        for id in &ids {
            let one = stored(client, id).await;
            let fits = |one: &Content| named.map_or(one.is_none(), |(named, _)| is_named(one, named));
            version = version.or(one.filter(fits));
        }
        let Some(version) = version else {
            return violation(Kind::FalseNotice, format!("it is another version, or not stored: {line}"));
        };
        // Once the process that edited has ended, it is undetermined whether a change that was stored with the edit came before
        // it or after it, and which of several versions a part is of; then one notice too many is better than none.
        let alike = world.alike(file, &knowledge, client.recovered);
        let is_another = |text: &Arc<str>| version.as_ref() != Some(text);
        let is_doubtful = !knowledge.catted.is_empty()
            || client.recovered && knowledge.has_led_to(&version)
            || !knowledge.announced && alike.iter().any(is_another);
        if !is_doubtful && !knowledge.is_news(&version, rebuilt) && !seen.is_news(&version, rebuilt) {
            return violation(Kind::Repeated, format!("to {}: {line}", client.session));
        }
        let taken_for = world.taken_for(file, &knowledge.known).await;
        let texts: Vec<_> = knowledge.bases().chain(seen.bases()).chain(&alike).chain(&taken_for).collect();
        if texts.is_empty() {
            return violation(Kind::FalseNotice, format!("the model has never seen it: {line}"));
        }
        let is_true = match (&version, what) {
            (None, what) => what == "deleted",
            (Some(now), "as you know it again") => texts.contains(&now),
            // A notice about text that the model was shown and that could not be stored.
            (Some(now), "changed") => texts.iter().any(|known| **known != *now),
            (Some(now), what) => texts.iter().any(|known| **known != *now && is_count(what, known, now)),
        };
        if !is_true {
            let change = changes(knowledge.known.as_deref(), version.as_deref());
            return violation(Kind::FalseNotice, format!("{line}, and it is\n{change}"));
        }
        notes.push(Note { file, what: What::Announced { version } });
    }
    // A client that is notified of the file at a link knows the link from then on.
    let of_now = notes.iter().filter(|note| match &note.what {
        What::Announced { version } => *version == world.now(note.file),
        _ => false,
    });
    client.uses(world, of_now.map(|note| note.file).collect::<Vec<_>>());
    client.notice(lines.join("\n"), notes);
    Ok(())
}

/// True if a name is that of a version: the beginning of its hash.
fn is_named(version: &Content, name: &str) -> bool {
    version.as_ref().is_some_and(|text| Digest::of(text.as_bytes()).to_string().starts_with(name))
}

/// True if `+3 -1` can be the difference of two texts.
fn is_count(what: &str, old: &str, new: &str) -> bool {
    let Some((added, removed)) = what.strip_prefix('+').and_then(|rest| rest.split_once(" -")) else {
        return false;
    };
    let (Ok(added), Ok(removed)) = (added.parse::<usize>(), removed.parse::<usize>()) else { return false };
    let count = |text: &str| text.split_inclusive('\n').count();
    added + removed > 0 && count(old) + added == count(new) + removed && removed <= count(old)
}

/// Returns what the client's store has of an object.
async fn stored(client: &Client, id: &ObjectId) -> Option<Content> {
    let version = client.store.inner().get(id, AsOf::default()).await.unwrap()?;
    Some(version.document.content().map(Into::into))
}

/// Checks that the lines in new pointers are in the request, and that held texts are whole.
pub async fn request(client: &mut Client, first: usize) -> Outcome {
    for message in client.messages.iter().skip(first) {
        for pointer in &message.pointers {
            if !in_sight(client, &pointer.object, &pointer.lines) {
                let what = format!("{}, of {}", message.text(), pointer.object);
                return violation(Kind::PointerGone, what);
            }
        }
    }
    held(client).await
}

/// Checks that pinned and activated texts are whole.
pub async fn held(client: &mut Client) -> Outcome {
    if client.held.is_empty() {
        return Ok(());
    }
    let Ok(sets) = client.engine.as_ref().unwrap().session_sets().await else { return Ok(()) };
    client.held.retain(|held| {
        if held.pinned {
            sets.pinned_set.contains(&held.object)
        } else {
            sets.active_set.contains(&held.object)
        }
    });
    let shown = |text: &str| {
        let open = client.open.iter().any(|one| one.output == text);
        open || client.visible().any(|message| message.shows(text))
    };
    match client.held.iter().find(|held| !shown(&held.text)) {
        Some(held) => {
            let how = if held.pinned { "pinned" } else { "activated" };
            let rest = client.visible().find(|message| message.object.as_ref() == Some(&held.object));
            let rest = rest.map(|message| message.text().to_owned());
            violation(
                Kind::NotWhole,
                format!("{} is {how}, and its text is not in sight: {rest:?}", held.object),
            )
        }
        None => Ok(()),
    }
}

/// Returns the content that the client's store has for each file.
pub async fn all_stored(world: &World, client: &Client) -> Vec<Option<Content>> {
    let mut all = Vec::new();
    for number in 0..world.files.len() {
        all.push(stored(client, &world.id(number)).await);
    }
    all
}

/// Checks that each difference between the model's knowledge and the disk was announced. Changes that another machine sent
/// while the client took its turn (`before` has the versions from its start) are announced with the next turn.
pub async fn knowledge(world: &World, client: &Client, before: &[Option<Content>]) -> Outcome {
    let heard = client.heard();
    let after = all_stored(world, client).await;
    let is_judged = |number: &usize| !world.is_shared() || before[*number] == after[*number];
    for number in (0..world.files.len()).filter(is_judged) {
        let file = &world.files[number];
        let knowledge = Knowledge::of(number, heard.iter());
        let Some(told) = knowledge.told.as_ref().filter(|_| knowledge.catted.is_empty()) else { continue };
        if knowledge.fragments.is_empty() && !knowledge.wrote {
            continue;
        }
        if !client.clean && world.is_behind_link(number) && client.plain.contains(&number) {
            continue;
        }
        let Some(now) = stored(client, &world.id(number)).await else {
            let mut is_stored = false;
            for id in world.ids(number) {
                is_stored |= stored(client, &id).await.is_some();
            }
            // The model cannot hear of content that was never stored, at the link or where it led.
            if client.clean && world.is_link(number) && is_stored && *told != world.now(number) {
                return violation(Kind::Missed, format!("where the link {} leads is not stored", file.name));
            }
            continue;
        };
        if client.clean && now != world.now(number) {
            let change = changes(now.as_deref(), world.now(number).as_deref());
            return violation(
                Kind::Behind,
                format!("{} is in another version on the disk:\n{change}", file.name),
            );
        }
        let same = knowledge.fragments.iter().all(|part| part.is_as_in(now.as_deref()));
        // Once the process that read a part has ended, it is undetermined which of two versions with this part it read, and a
        // model that has only ever seen a part believes nothing of the rest.
        let is_of_no_concern = client.recovered && knowledge.told_of_a_part && same;
        // A text that a process has read and could not store ends with it: only the harness's message has it, and no process
        // knows which file it was.
        if client.recovered && world.was_lost(number, told).await {
            continue;
        }
        if *told != now && !is_of_no_concern && (knowledge.partly.is_none() || knowledge.partly != now) {
            let change = changes(told.as_deref(), now.as_deref());
            let what = format!("{} has not heard of this change of {}:\n{change}", client.session, file.name);
            let kind = if same { Kind::MissedRest } else { Kind::Missed };
            return violation(kind, what);
        }
        // The part may be of another version that has its lines. If a notice is about a version that came after that one, or
        // a later part shows all that is new since, nothing is missing.
        let is_completed = |part: &&Fragment| {
            let alike = world.alike(
                number,
                &Knowledge { fragments: vec![(*part).clone()], ..Knowledge::default() },
                client.recovered,
            );
            let is_past = |version: &Content| alike.iter().any(|text| version.as_ref() != Some(text));
            if part.announced.iter().any(is_past) {
                return true;
            }
            let Some(now) = &now else { return false };
            let mut later = knowledge.fragments.iter().filter(|later| later.text == *now);
            later.any(|later| alike.iter().any(|text| is_all_new_within(text, now, later.first, later.last)))
        };
        if let Some(part) = knowledge.outdated(&now).find(|part| !is_completed(part)) {
            let what = format!(
                "{} was shown lines {}-{} of {}, which are others now",
                client.session, part.first, part.last, file.name
            );
            return violation(Kind::MissedPart, what);
        }
    }
    Ok(())
}

/// Each change of a session's files was heard, and none of them twice. All events were delivered, and nothing is wrong
/// with the store. Where machines share a database, the versions of others have times and places of their own.
pub async fn listener(world: &World, client: &mut Client) -> Outcome {
    let is_checked = !client.doubt && client.wire.is_used() && !world.is_shared();
    let Some(engine) = client.engine.clone().filter(|_| is_checked) else { return Ok(()) };
    let heard = client.listener.take();
    let store = client.store.inner();
    let newest = store.latest_tx().await.unwrap();
    let files: Vec<ObjectId> = (0..world.files.len()).flat_map(|file| world.ids(file)).collect();
    if let Some((since, before)) = &client.listener.since {
        for id in before {
            let versions = store.history(id).await.unwrap();
            let hash = |version: &context_store::Version| version.document.source_hash();
            let then = versions.iter().rev().find(|version| version.tx_id <= *since).and_then(hash);
            let later = versions.iter().filter(|version| version.tx_id > *since);
            // The first bytes of a path that was only seen are no change.
            let mut had_bytes = versions.iter().any(|one| one.tx_id <= *since && hash(one).is_some());
            let (mut last, mut changes, was_read) = (then, 0, had_bytes);
            for version in later {
                changes += usize::from(hash(version) != last && had_bytes);
                had_bytes |= hash(version).is_some();
                last = hash(version);
            }
            let count = heard.get(id).copied().unwrap_or_default();
            // A link that was pointed elsewhere is a change of its path without one of the file.
            let is_link =
                (0..world.files.len()).any(|file| world.is_link(file) && world.ids(file).contains(id));
            let most = changes + usize::from(!was_read && had_bytes);
            if count > most && !is_link || count == 0 && changes > 0 && last != then {
                let what = format!("{} heard {count} times of {changes} changes of {id}", client.session);
                return violation(Kind::Unheard, what);
            }
        }
    }
    let Ok(sets) = engine.session_sets().await else { return Ok(()) };
    let known = files.into_iter().filter(|id| sets.session_index.contains(id)).collect();
    client.listener.since = Some((newest, known));
    Ok(())
}

/// Returns the changes from one text to another, in few lines.
pub fn changes(old: Option<&str>, new: Option<&str>) -> String {
    let (Some(old), Some(new)) = (old, new) else {
        let what =
            |text: Option<&str>| text.map_or("no file".to_owned(), |text| format!("{} bytes", text.len()));
        return format!("{} -> {}", what(old), what(new));
    };
    let diff = similar::TextDiff::from_lines(old, new).unified_diff().context_radius(0).to_string();
    diff.lines().take(8).collect::<Vec<_>>().join("\n")
}
