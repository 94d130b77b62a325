//! What tools do to the disk and say to the model, with the engine asked as a harness asks it.

use std::sync::Arc;

use context_engine::{EditGuard, ToolcallInput};
use context_model::id::ObjectId;
use context_model::object::Status;
use serde_json::{Map, Value, json};

use crate::belief::{self, Belief, Note, What};
use crate::check::changes;
use crate::client::{Client, Style};
use crate::control::control;
use crate::conversation::{Open, Pointer};
use crate::patch::applied;
use crate::steps::{CallId, Spelling, Tool};
use crate::violation::{Kind, Outcome, violation};
use crate::world::{World, with_line};

#[derive(Default)]
pub struct Said {
    pub output: String,
    pub is_error: bool,
    pub notes: Vec<Note>,
    pub pointers: Vec<Pointer>,
    /// The disk was changed, and this client knows of it only by what it will be told.
    pub changed: Option<(usize, bool)>,
}

/// Runs a tool. Returns the file that it changed, and whether the client's own engine was told.
pub async fn act(
    world: &mut World,
    client: &mut Client,
    tool: Tool,
    call: CallId,
) -> Outcome<Option<(usize, bool)>> {
    let number = client.fresh();
    let fresh = format!("call_{}_{number}", client.session);
    // A provider repeats an ID from answer to answer, but not within one. Two machines that give one ID to two calls
    // before they hear of each other make two versions of one object: docs/xtdb.md.
    let machine = world.port(client.machine).map_or_else(String::new, |_| format!("_{}", client.machine));
    let call_id = match call {
        CallId::Repeated(n) if client.open.iter().all(|one| one.call_id != format!("call_{n}{machine}")) => {
            format!("call_{n}{machine}")
        }
        _ => fresh,
    };
    // A harness of its own tools knows the call; `transformContext` sees only the conversation.
    let given = (client.style == Style::Stores).then(|| call_id.clone());
    let given = given.as_deref();
    let (name, args, said) = match tool {
        Tool::Read { file, part, spelling } => {
            read(world, client, world.number(file), (part, spelling), given).await?
        }
        Tool::Write { file, lines } => {
            let file = world.number(file);
            let text = world.text(file, lines);
            let args = json!({ "path": world.files[file].path, "content": text });
            ("write", args, write(world, client, file, text, given).await?)
        }
        Tool::Edit { file, line } => edit(world, client, world.number(file), line, given).await?,
        Tool::Append { file } => {
            let file = world.number(file);
            let line = world.line(file);
            let old = world.now(file).map_or_else(String::new, |text| text.to_string());
            world.put(file, Some(format!("{old}{line}\n")));
            let args = json!({ "command": format!("echo '{line}' >> {}", world.files[file].name) });
            ("bash", args, Said { changed: Some((file, false)), ..Said::default() })
        }
        Tool::Cat { file } => {
            let file = world.number(file);
            let args = json!({ "command": format!("cat {}", world.files[file].name) });
            let text = world.now(file);
            let is_error = text.is_none();
            let missing = || format!("cat: {}: No such file or directory\n", world.files[file].name);
            let output = if is_error { missing() } else { text_of(world, file) };
            let notes = text.into_iter().map(|text| Note { file, what: What::Catted { text } }).collect();
            ("bash", args, Said { output, is_error, notes, ..Said::default() })
        }
        Tool::Remove { file } => {
            let file = world.number(file);
            let changed = world.put(file, None).then_some((file, false));
            let args = json!({ "command": format!("rm -f {}", world.files[file].name) });
            ("bash", args, Said { changed, ..Said::default() })
        }
        Tool::List => {
            let names = world.files.iter().filter(|file| file.past.last() != Some(&None));
            let output = names.map(|file| format!("{}\n", file.name)).collect();
            ("ls", json!({}), Said { output, ..Said::default() })
        }
        Tool::Grep { file } => {
            let file = world.number(file);
            let (text, name) = (text_of(world, file), &world.files[file].name);
            let hits = text.lines().enumerate().filter(|(_, line)| line.contains("line 1"));
            let output = hits.map(|(n, line)| format!("{name}:{}: {line}\n", n + 1)).collect();
            ("grep", json!({ "pattern": "line 1" }), Said { output, ..Said::default() })
        }
        Tool::Custom { lines } => {
            let output = world.text(9, lines);
            ("custom", json!({ "lines": lines }), Said { output, ..Said::default() })
        }
        Tool::Activate { .. } | Tool::Deactivate { .. } | Tool::Pin { .. } | Tool::Unpin { .. } => {
            match control(client, tool).await? {
                Some(said) => said,
                None => return Ok(None),
            }
        }
    };
    let Said { output, is_error, notes, pointers, changed } = said;
    let args = args.as_object().unwrap().clone();
    client.open.push(Open {
        call_id,
        tool: name,
        args,
        output,
        is_error,
        notes,
        pointers,
        born: None,
        reported: false,
    });
    Ok(changed)
}

/// A result as the harness reports it.
pub fn input(one: &Open) -> ToolcallInput {
    ToolcallInput {
        status: if one.is_error { Status::Fail } else { Status::Ok },
        ..ToolcallInput::new(one.call_id.clone(), one.tool, one.args.clone(), one.output.clone())
    }
}

fn text_of(world: &World, file: usize) -> String {
    world.now(file).map_or_else(String::new, |text| text.to_string())
}

async fn read(
    world: &World,
    client: &mut Client,
    file: usize,
    (part, spelling): (Option<(usize, usize)>, Spelling),
    call: Option<&str>,
) -> Outcome<(&'static str, Value, Said)> {
    let (path, name) = (&world.files[file].path, &world.files[file].name);
    let written = match spelling {
        Spelling::Absolute => path.clone(),
        Spelling::Relative => name.clone(),
        Spelling::At => format!("@{name}"),
    };
    let mut args = Map::from_iter([("path".to_owned(), json!(written))]);
    if let Some((offset, limit)) = part {
        args.extend([("offset".to_owned(), json!(offset)), ("limit".to_owned(), json!(limit))]);
    }
    let failed = |output: String| Said { output, is_error: true, ..Said::default() };
    let Some(text) = world.now(file) else {
        return Ok((
            "read",
            args.into(),
            failed(format!("ENOENT: no such file or directory, open '{path}'")),
        ));
    };
    let engine = client.engine.clone().unwrap();
    let faulty = client.store.is_faulty();
    if let Err(error) = engine.index_file(path, Some(text.as_bytes().to_vec()), call).await {
        client.allow(faulty, "index_file", &error)?;
    }
    let total = text.split('\n').count();
    let (offset, limit) = part.unzip();
    let first = offset.unwrap_or(1);
    let last = limit.map_or(total, |limit| total.min(first + limit - 1));
    let answer = match engine.answer_read(path, offset, limit, call).await {
        Ok(answer) => answer,
        Err(error) => {
            client.allow(faulty, "answer_read", &error)?;
            None
        }
    };
    let mut said = Said::default();
    if let Some(answer) = answer {
        said.output = answer.text.clone();
        let is_part = first > 1 || last < total;
        let text_of_it = Arc::clone(&text);
        let what = match is_part {
            true => What::Pointed { text: text_of_it, first, last },
            false => What::Told { text: text_of_it },
        };
        said.notes.push(Note { file, what });
        if answer.text.starts_with("unchanged") {
            let lines = belief::lines(&text, first, last).filter(|_| first <= last);
            let stated = format!("lines {first}-{last} of ");
            let Some(lines) = lines.filter(|_| answer.text.contains(&stated)) else {
                return violation(
                    Kind::FalseUnchanged,
                    format!("of a file of {total} lines: {}", answer.text),
                );
            };
            if !in_sight(client, &answer.object, &lines) {
                let what = format!("{}: these lines are not there:\n{lines}", answer.text);
                return violation(Kind::FalseUnchanged, what);
            }
            said.pointers.push(Pointer { object: answer.object, lines });
        } else {
            let shown = client.visible().find(|m| m.object.as_ref() == Some(&answer.object) && m.is_whole());
            let diff = answer.text.split_once('\n').map_or("", |(_, diff)| diff);
            let now = shown.and_then(|message| applied(&message.output, diff));
            if now.as_deref() != Some(&*text) {
                return violation(Kind::FalseDifference, answer.text);
            }
        }
        if first > total {
            said = failed(format!("Offset {first} is beyond end of file ({total} lines total)"));
        }
        return Ok(("read", args.into(), said));
    }
    if first > total {
        let output = format!("Offset {first} is beyond end of file ({total} lines total)");
        return Ok(("read", args.into(), failed(output)));
    }
    said.output = belief::lines(&text, first, last).unwrap();
    if last < total {
        let left = total - last;
        let next = last + 1;
        said.output += &format!("\n\n[{left} more lines in file. Use offset={next} to continue.]");
    }
    said.notes.push(Note { file, what: What::Shown { text, first, last } });
    Ok(("read", args.into(), said))
}

/// Returns whether a result of this object shows these lines in the request as it is now.
pub fn in_sight(client: &Client, object: &ObjectId, lines: &str) -> bool {
    client.visible().any(|message| message.object.as_ref() == Some(object) && message.shows(lines))
}

async fn write(
    world: &mut World,
    client: &mut Client,
    file: usize,
    text: String,
    call: Option<&str>,
) -> Outcome<Said> {
    let path = world.files[file].path.clone();
    world.put(file, Some(text.clone()));
    let engine = client.engine.clone().unwrap();
    let faulty = client.store.is_faulty();
    let told = match engine.index_written(&path, Some(text.as_bytes().to_vec()), call).await {
        Ok(_) => true,
        Err(error) => {
            client.allow(faulty, "index_written", &error)?;
            false
        }
    };
    let output = format!("Successfully wrote {} bytes to {path}", text.len());
    let notes = vec![Note { file, what: What::Wrote { text: text.into() } }];
    Ok(Said { output, notes, changed: Some((file, told)), ..Said::default() })
}

async fn edit(
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
    let seen = Belief::seen(file, client.heard().iter());
    let believed = Belief::of(file, client.heard().iter());
    if world.unguarded {
        return unguarded(world, client, (file, &now, &believed), (line, old, &new), call, args).await;
    }
    let faulty = client.store.is_faulty();
    // Half of the harnesses know what the edit replaces.
    let replaced = [old.to_owned()];
    let replaced = call.map(|_| &replaced[..]);
    let guard = match client.engine.clone().unwrap().guard_edit(&path, replaced, call).await {
        Ok(guard) => guard,
        Err(error) => {
            client.allow(faulty, "guard_edit", &error)?;
            return unguarded(world, client, (file, &now, &believed), (line, old, &new), call, args).await;
        }
    };
    let (refusal, beside) = match guard {
        EditGuard::Refused(text) => (Some(text), None),
        EditGuard::Allowed { difference } => (None, difference),
    };
    let is_now = |known: &Option<Arc<str>>| known.as_ref() == Some(&now);
    // Who has seen a part of it has seen it, or not.
    let parts = [&seen.partly, &seen.known_partly, &believed.partly, &believed.known_partly];
    let has_part = parts.into_iter().any(is_now);
    // Once the process that read a part has ended, nobody can tell which of two versions it was that have this part.
    let is_doubtful = client.recovered
        && seen.led_to.is_empty()
        && !seen.fragments.is_empty()
        && seen.fragments.iter().all(|part| part.is_as_in(Some(&now)));
    // What an edit has made of the file says its result alone, which counts once it is recorded.
    let wrote = |note: &Note| note.file == file && matches!(note.what, What::Wrote { .. });
    let is_unreported = client.open.iter().any(|one| one.born.is_none() && one.notes.iter().any(wrote));
    if let Some(difference) = beside {
        let diff = difference.split_once('\n').map_or("", |(_, diff)| diff);
        let alike = world.alike(file, &believed, client.recovered);
        let taken_for = world.taken_for(file, &seen.known).await;
        let edited = client.recovered && !believed.led_to.is_empty();
        let with_edit = if edited { world.stored(file).await } else { Vec::new() };
        let bases = seen.bases().chain(believed.bases()).chain(&alike);
        let mut bases = bases.chain(&taken_for).chain(&with_edit);
        let is_base =
            |known: &&Arc<str>| applied(known, diff).as_deref() == Some(&*now) && known.contains(old);
        let Some(base) = bases.find(is_base).cloned() else {
            return violation(Kind::FalseDifference, difference);
        };
        let mut said = write(world, client, file, with_line(&now, line, Some(&new)), call).await?;
        said.notes.push(Note { file, what: What::Untold { text: base.replacen(old, &new, 1).into() } });
        said.output += &format!("\n\n{difference}");
        return Ok(("edit", args, said));
    }
    match refusal {
        // What comes with this very answer may count as seen, or not.
        None if !has_part
            && !believed.bases().any(|base| *base == now)
            && seen.known_visibly.is_some()
            && !is_now(&seen.known)
            && !is_now(&believed.known)
            && !is_doubtful
            && !is_unreported
            && !faulty =>
        {
            let change = changes(seen.known.as_deref(), Some(&now));
            let what = format!("{path} was edited, and the model has not seen this change:\n{change}");
            violation(Kind::Unrefused, what)
        }
        None => unguarded(world, client, (file, &now, &believed), (line, old, &new), call, args).await,
        // As above, what came with this very answer may count: a difference to another version, for instance.
        // Nor which version it was that a part is of, once the process has ended: one refusal too many tells no lie.
        Some(text)
            if believed.catted.is_empty()
                && [&seen.known, &seen.known_visibly, &believed.known].into_iter().all(is_now)
                && !world.alike(file, &believed, client.recovered).iter().any(|text| *text != now) =>
        {
            violation(Kind::WronglyRefused, text)
        }
        // Lines that were brought back are all that it may have seen.
        Some(text) if believed.bases().next().is_none() => violation(Kind::WronglyRefused, text),
        // What it saw was never stored: nobody can show the change. After the process has ended, that may be its own edit
        // of a text in which something else had changed.
        Some(text)
            if text.ends_with(": read it again first.")
                && (!is_now(&seen.known)
                    || client.recovered && believed.has_led_to(&Some(Arc::clone(&now)))) =>
        {
            Ok(("edit", args, Said { output: text, is_error: true, ..Said::default() }))
        }
        Some(text) => {
            let diff = text.split_once("The change:\n").map_or("", |(_, rest)| rest);
            let diff = diff.split_once("\nCheck that your edit").map_or(diff, |(diff, _)| diff);
            let alike = world.alike(file, &believed, client.recovered);
            let taken_for = world.taken_for(file, &seen.known).await;
            // Nor can anybody tell then which of the changes that were stored with its edit it has seen.
            let edited = client.recovered && !believed.led_to.is_empty();
            let with_edit = if edited { world.stored(file).await } else { Vec::new() };
            let bases = seen.bases().chain(believed.bases()).chain(&alike);
            let mut bases = bases.chain(&taken_for).chain(&with_edit);
            if !bases.any(|known| applied(known, diff).as_deref() == Some(&*now) && *known != now) {
                return violation(Kind::FalseRefusal, text);
            }
            let notes = vec![Note { file, what: What::Told { text: now } }];
            Ok(("edit", args, Said { output: text, is_error: true, notes, ..Said::default() }))
        }
    }
}

/// An edit that nobody has checked: the model then knows what it knew before, and what it has put in.
async fn unguarded(
    world: &mut World,
    client: &mut Client,
    (file, now, believed): (usize, &Arc<str>, &Belief),
    (line, old, new): (usize, &str, &str),
    call: Option<&str>,
    args: Value,
) -> Outcome<(&'static str, Value, Said)> {
    let left = with_line(now, line, Some(new));
    let mut said = write(world, client, file, left.clone(), call).await?;
    let is_in = |known: &str| !old.is_empty() && known.matches(old).count() == 1;
    let catted = believed.catted.iter().filter(|text| **text != *now && is_in(text));
    // Where what a shell has shown counts as read, the model knows that with its edit.
    let catted = catted.map(|text| What::Catted { text: text.replacen(old, new, 1).into() });
    said.notes.extend(catted.map(|what| Note { file, what }));
    let Some(known) = believed.known.as_ref().filter(|known| **known != *now) else {
        return Ok(("edit", args, said));
    };
    let is_once = is_in(known);
    // Of what stands where it does not know it, nobody can say what it knows.
    let text = if is_once { known.replacen(old, new, 1) } else { format!("{left} and something else") };
    said.notes = vec![Note { file, what: What::Wrote { text: text.into() } }];
    let told = Some(Arc::clone(now));
    if believed.told.as_ref() == Some(&told) && believed.outdated(&told).next().is_none() {
        said.notes.push(Note { file, what: What::Announced { version: Some(left.into()) } });
    }
    Ok(("edit", args, said))
}
