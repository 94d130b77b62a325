//! Edits: requested before they are made, or made by hosts that do not ask.

use crate::check::changes;
use crate::client::Client;
use crate::knowledge::{Knowledge, Note, What};
use crate::patch::applied;
use crate::tools::{Said, write};
use crate::violation::{Kind, Outcome, violation};
use crate::world::{World, with_line};
use context_engine::EditGuard;
use serde_json::{Value, json};
use std::sync::Arc;

pub async fn edit(
    world: &mut World,
    client: &mut Client,
    file: usize,
    line: usize,
    call: Option<&str>,
) -> Outcome<(&'static str, Value, Said)> {
    let path = world.files[file].path.clone();
    let new = world.line(file);
    let now = world.now(file);
    let lines: Vec<&str> = now.as_ref().map_or_else(Vec::new, |text| text.lines().collect());
    let old = lines.get(line % lines.len().max(1)).copied().unwrap_or_default().to_owned();
    let old = old.as_str();
    let args = json!({ "path": path, "edits": [{ "oldText": old, "newText": new }] });
    let Some(now) = now.filter(|_| !old.is_empty()) else {
        let output = format!("Text not found: {path}");
        return Ok(("edit", args, Said { output, is_error: true, ..Said::default() }));
    };
    let seen = Knowledge::seen(file, client.heard().iter());
    let knowledge = Knowledge::of(file, client.heard().iter());
    if world.unguarded {
        return unguarded(world, client, (file, &now, &knowledge), (line, old, &new), call, args).await;
    }
    let faulty = client.store.is_faulty();
    // Half of the harnesses know what the edit replaces.
    let replaced = [old.to_owned()];
    let replaced = call.map(|_| &replaced[..]);
    let guard = match client.engine.clone().unwrap().guard_edit(&path, replaced, call).await {
        Ok(guard) => guard,
        Err(error) => {
            client.allow(faulty, "guard_edit", &error)?;
            return unguarded(world, client, (file, &now, &knowledge), (line, old, &new), call, args).await;
        }
    };
    let (refusal, beside) = match guard {
        EditGuard::Refused(text) => (Some(text), None),
        EditGuard::Allowed { difference } => (None, difference),
    };
    let is_now = |known: &Option<Arc<str>>| known.as_ref() == Some(&now);
    // Who has seen a part of it has seen it, or not.
    let parts = [&seen.partly, &seen.known_partly, &knowledge.partly, &knowledge.known_partly];
    let has_part = parts.into_iter().any(is_now);
    // Once the process that read a part has ended, it is undetermined which of two versions with this part it read.
    let is_doubtful = client.recovered
        && seen.led_to.is_empty()
        && !seen.fragments.is_empty()
        && seen.fragments.iter().all(|part| part.is_as_in(Some(&now)));
    // Only its result shows the text that an edit has made of the file, which counts once it is recorded.
    let wrote = |note: &Note| note.file == file && matches!(note.what, What::Wrote { .. });
    let is_unreported = client.open.iter().any(|one| one.born.is_none() && one.notes.iter().any(wrote));
    if let Some(difference) = beside {
        let diff = difference.split_once('\n').map_or("", |(_, diff)| diff);
        let mut bases = bases(world, client, file, (&seen, &knowledge)).await.into_iter();
        let is_base =
            |known: &Arc<str>| applied(known, diff).as_deref() == Some(&*now) && known.contains(old);
        let Some(base) = bases.find(is_base) else {
            return violation(Kind::FalseDifference, difference);
        };
        let mut said = write(world, client, file, with_line(&now, line, Some(&new)), call).await?;
        said.notes.push(Note { file, what: What::Untold { text: base.replacen(old, &new, 1).into() } });
        said.output += &format!("\n\n{difference}");
        return Ok(("edit", args, said));
    }
    match refusal {
        // A notice that comes with this very answer may count as seen, or not.
        None if !has_part
            && !knowledge.bases().any(|base| *base == now)
            && seen.known_visibly.is_some()
            && !is_now(&seen.known)
            && !is_now(&knowledge.known)
            && !is_doubtful
            && !is_unreported
            && !faulty =>
        {
            let change = changes(seen.known.as_deref(), Some(&now));
            let what = format!("{path} was edited, and the model has not seen this change:\n{change}");
            violation(Kind::Unrefused, what)
        }
        None => unguarded(world, client, (file, &now, &knowledge), (line, old, &new), call, args).await,
        // As above, notices with this very answer may count: a difference to another version, for instance. The version of a
        // part is undetermined once the process has ended: one refusal too many is still true.
        Some(text)
            if knowledge.catted.is_empty()
                && [&seen.known, &seen.known_visibly, &knowledge.known].into_iter().all(is_now)
                && !world.alike(file, &knowledge, client.recovered).iter().any(|text| *text != now) =>
        {
            violation(Kind::WronglyRefused, text)
        }
        // Lines that were brought back are all that it may have seen.
        Some(text) if knowledge.bases().next().is_none() => violation(Kind::WronglyRefused, text),
        // The text that it saw was never stored, so the change cannot be shown. After the process has ended, that may be its
        // own edit of a text in which something else had changed.
        Some(text)
            if text.ends_with(": read it again first.")
                && (!is_now(&seen.known)
                    || client.recovered && knowledge.has_led_to(&Some(Arc::clone(&now)))) =>
        {
            Ok(("edit", args, Said { output: text, is_error: true, ..Said::default() }))
        }
        Some(text) => {
            let diff = text.split_once("The change:\n").map_or("", |(_, rest)| rest);
            let diff = diff.split_once("\nCheck that your edit").map_or(diff, |(diff, _)| diff);
            let mut bases = bases(world, client, file, (&seen, &knowledge)).await.into_iter();
            if !bases.any(|known| applied(&known, diff).as_deref() == Some(&*now) && known != now) {
                return violation(Kind::FalseRefusal, text);
            }
            let notes = vec![Note { file, what: What::Told { text: now } }];
            Ok(("edit", args, Said { output: text, is_error: true, notes, ..Said::default() }))
        }
    }
}

/// Returns the texts that a difference may begin with: the client's knowledge of a file, and texts that its engine may take for
/// it.
async fn bases(
    world: &World,
    client: &Client,
    file: usize,
    (seen, knowledge): (&Knowledge, &Knowledge),
) -> Vec<Arc<str>> {
    let alike = world.alike(file, knowledge, client.recovered);
    let taken_for = world.taken_for(file, &seen.known).await;
    // Once the process that edited has ended, it is undetermined which changes stored with its edit it has seen.
    let edited = client.recovered && !knowledge.led_to.is_empty();
    let with_edit = if edited { world.stored(file).await } else { Vec::new() };
    let bases = seen.bases().chain(knowledge.bases()).chain(&alike);
    bases.chain(&taken_for).chain(&with_edit).cloned().collect()
}

/// An edit that was not checked: the model then knows the text that it knew before, and the text that it has put in.
async fn unguarded(
    world: &mut World,
    client: &mut Client,
    (file, now, knowledge): (usize, &Arc<str>, &Knowledge),
    (line, old, new): (usize, &str, &str),
    call: Option<&str>,
    args: Value,
) -> Outcome<(&'static str, Value, Said)> {
    let left = with_line(now, line, Some(new));
    let mut said = write(world, client, file, left.clone(), call).await?;
    let is_in = |known: &str| !old.is_empty() && known.matches(old).count() == 1;
    let catted = knowledge.catted.iter().filter(|text| **text != *now && is_in(text));
    // If the lines that a shell has shown count as read, the model knows them with its edit.
    let catted = catted.map(|text| What::Catted { text: text.replacen(old, new, 1).into() });
    said.notes.extend(catted.map(|what| Note { file, what }));
    let Some(known) = knowledge.known.as_ref().filter(|known| **known != *now) else {
        return Ok(("edit", args, said));
    };
    let is_once = is_in(known);
    // It is undetermined what the model knows of a text at a place that it does not know.
    let text = if is_once { known.replacen(old, new, 1) } else { format!("{left} and something else") };
    said.notes = vec![Note { file, what: What::Wrote { text: text.into() } }];
    let told = Some(Arc::clone(now));
    if knowledge.told.as_ref() == Some(&told) && knowledge.outdated(&told).next().is_none() {
        said.notes.push(Note { file, what: What::Announced { version: Some(left.into()) } });
    }
    Ok(("edit", args, said))
}
