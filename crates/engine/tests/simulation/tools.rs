//! Tools: their effects on the disk and their outputs for the model. They ask the engine as a harness does.

use std::sync::Arc;

use context_model::id::ObjectId;
use context_model::object::{Status, Toolcall};
use serde_json::{Map, Value, json};

use crate::client::{Client, Style};
use crate::control::control;
use crate::conversation::{Open, Pointer};
use crate::editing::edit;
use crate::knowledge::{self, Note, What};
use crate::patch::applied;
use crate::steps::{CallId, Spelling, Tool};
use crate::violation::{Kind, Outcome, violation};
use crate::world::World;

#[derive(Default)]
pub struct Said {
    pub output: String,
    pub is_error: bool,
    pub notes: Vec<Note>,
    pub pointers: Vec<Pointer>,
    /// The disk was changed, and this client knows of it only by a later event.
    pub changed: Option<(usize, bool)>,
}

/// Runs a tool. Returns the file that it changed, and true if the client's own engine was notified.
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
    // A harness with its own tools knows the call; `transformContext` sees only the conversation.
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
pub fn input(one: &Open) -> Toolcall {
    Toolcall {
        status: if one.is_error { Status::Fail } else { Status::Ok },
        ..Toolcall::new(one.call_id.clone(), one.tool, one.args.clone(), one.output.clone())
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
            let lines = knowledge::lines(&text, first, last).filter(|_| first <= last);
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
    said.output = knowledge::lines(&text, first, last).unwrap();
    if last < total {
        let left = total - last;
        let next = last + 1;
        said.output += &format!("\n\n[{left} more lines in file. Use offset={next} to continue.]");
    }
    said.notes.push(Note { file, what: What::Shown { text, first, last } });
    Ok(("read", args.into(), said))
}

/// True if a result of this object shows these lines in the request as it is now.
pub fn in_sight(client: &Client, object: &ObjectId, lines: &str) -> bool {
    client.visible().any(|message| message.object.as_ref() == Some(object) && message.shows(lines))
}

pub async fn write(
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
