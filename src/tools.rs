//! The recognizer of agents' tools for TypeScript: lib/tools puts its answers into the shapes that it works with.
#![cfg_attr(test, allow(dead_code, reason = "a test build does not register functions with Node"))]

use context_tools::{AgentCall, ArgumentNames, Placeholder};
use napi::JsString;
use napi::bindgen_prelude::Env;
use napi_derive::napi;
use serde_json::{Map, Value, json};

use crate::error::Outcome;
use crate::json;

/// A file that a call is about to change.
#[napi(object)]
pub(crate) struct PlannedChange {
    /// The file, as the agent wrote its path.
    pub path: String,
    /// The texts that the call replaces; absent if it replaces the whole file, or says nothing of them.
    pub old_texts: Option<Vec<String>>,
}

/// Recognizes calls of agents, all calls of a message at once. `calls` is the JSON text of a list of names and arguments, of which
/// texts and lists of texts are enough.
///
/// Returns the JSON text of a list: for each call `null` if the engine does not know its tool, or `tool` and, where there is
/// something to say, `names` (arguments that the engine calls otherwise), `items` (a list among them: its `field`, and the `names` in
/// its elements), `command` (on one line, where the arguments have it in another form), `isScript` (the command is all that the
/// engine gets), `reads`, `writes`, and `shows` (the lines that a shell shows: `path`, `first`, `last` unless it is the end,
/// `numbered`).
///
/// Throws `INVALID_ARGUMENT` for another text.
#[napi]
pub(crate) fn recognize_calls(env: &Env, calls: String) -> napi::Result<String> {
    recognized(calls).map_err(|error| error.into_napi(env))
}

/// The changes that a call would make to files; `args` is the JSON text of its arguments. Empty for a tool that changes no file.
///
/// Throws `INVALID_ARGUMENT` for another text.
#[napi]
pub(crate) fn changes_of_call(env: &Env, name: String, args: String) -> napi::Result<Vec<PlannedChange>> {
    let args = json::object(args, "arguments").map_err(|error| error.into_napi(env))?;
    let changes = context_tools::changes_of(&name, &args).into_iter();
    Ok(changes.map(|change| PlannedChange { path: change.path, old_texts: change.old_texts }).collect())
}

/// The kind of text that a host has written in place of a whole output: `cleared` (the host has left it out) or `unchanged` (a file was
/// read once more, and an earlier result has it). Null for an output.
#[napi(ts_return_type = "'cleared' | 'unchanged' | null")]
pub(crate) fn placeholder_in(output: JsString<'_>) -> napi::Result<Option<String>> {
    // Most outputs are longer, and need not cross.
    if output.utf16_len()? > Placeholder::LONGEST {
        return Ok(None);
    }
    let placeholder = Placeholder::of(output.into_utf8()?.as_str()?);
    Ok(placeholder.map(|placeholder| match placeholder {
        Placeholder::Cleared => "cleared".to_owned(),
        Placeholder::Unchanged => "unchanged".to_owned(),
    }))
}

/// The lines of a file that an output shows, without their numbers. Null if the output is anything but consecutively numbered
/// lines.
#[napi]
pub(crate) fn shown_lines(output: String) -> Option<String> {
    context_tools::shown_lines(&output)
}

/// A text without the numbers of its lines. Null if it has none.
#[napi]
pub(crate) fn without_line_numbers(text: String) -> Option<String> {
    context_tools::without_line_numbers(&text)
}

/// The output of a command in what its agent makes of it. Null if the whole text is the output.
#[napi]
pub(crate) fn output_alone(text: String) -> Option<String> {
    context_tools::output_alone(&text)
}

fn recognized(calls: String) -> Outcome<String> {
    let calls = json::value(calls)?;
    let calls: Vec<(String, Map<String, Value>)> = serde_json::from_value(calls)
        .map_err(|error| crate::error::Coded::invalid(format!("calls are names with arguments: {error}")))?;
    let all: Vec<Value> = calls.iter().map(|(name, args)| written(AgentCall::of(name, args))).collect();
    json::text(&all)
}

fn written(call: Option<AgentCall>) -> Value {
    let Some(call) = call else { return Value::Null };
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    set("tool", call.tool.into());
    if !call.names.is_empty() {
        set("names", call.names.into_iter().map(|(own, engine)| (own, Value::from(engine))).collect());
    }
    if let Some(items) = call.items {
        set("items", json!({ "field": items.field, "names": pairs(items.names) }));
    }
    if let Some(command) = call.command {
        set("command", command.into());
    }
    if call.is_script {
        set("isScript", true.into());
    }
    if let Some(path) = call.reads {
        set("reads", path.into());
    }
    if !call.writes.is_empty() {
        set("writes", call.writes.into());
    }
    if let Some(shown) = call.shows {
        let last = (shown.last != usize::MAX).then_some(shown.last);
        let lines =
            json!({ "path": shown.path, "first": shown.first, "last": last, "numbered": shown.numbered });
        set("shows", lines);
    }
    Value::Object(fields)
}

/// The names that agents have, each with the engine's.
fn pairs(names: ArgumentNames) -> Map<String, Value> {
    let pairs = names.iter().flat_map(|group| group[1..].iter().map(|name| (*name, group[0])));
    pairs.map(|(name, engine)| (name.to_owned(), engine.into())).collect()
}
