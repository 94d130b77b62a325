//! The texts that may be in a request: the recorded text, a form of it that names its ID, or a notice.

use std::collections::HashSet;

use context_engine::Engine;
use context_lines::marker;
use context_model::chat::said_id;
use context_model::object::Document;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Map, Value};

type Checked = Result<(), TestCaseError>;

/// Checks a request: each pair is a message as it was handed over, and as it is shown (null if it is left out).
pub async fn check_request(engine: &Engine, messages: &[(&Value, &Value)]) -> Checked {
    let mut lines = HashSet::new();
    for (raw, shown) in messages {
        match raw["role"].as_str() {
            Some("toolResult") => {
                if !shown.is_null() {
                    check_result(engine, raw, shown, &mut lines).await?;
                }
            }
            Some("user" | "assistant") => {
                check_words(engine, raw, shown).await?;
                if !shown.is_null() {
                    check_calls(engine, raw, shown).await?;
                }
            }
            _ => prop_assert_eq!(shown, raw),
        }
    }
    check_pairs(messages)?;
    for (raw, shown) in messages {
        let changes = matches!(raw["toolName"].as_str(), Some("edit" | "write"));
        if shown.is_null() && changes {
            let id = raw["toolCallId"].as_str().unwrap_or_default();
            prop_assert!(lines.contains(id), "no line is left of {id}, which has changed something");
        }
    }
    Ok(())
}

/// Calls and results stay and leave together, and no message is empty.
fn check_pairs(messages: &[(&Value, &Value)]) -> Checked {
    let mut open: Vec<&str> = Vec::new();
    for (_, shown) in messages.iter().filter(|(_, shown)| !shown.is_null()) {
        if shown["role"] == "toolResult" {
            let id = shown["toolCallId"].as_str().unwrap_or_default();
            let place = open.iter().position(|call| *call == id);
            prop_assert!(place == Some(0), "a result out of its place: {id}");
            open.remove(0);
            continue;
        }
        prop_assert!(open.is_empty(), "calls without results: {open:?}");
        let blocks = shown["content"].as_array();
        if let Some(blocks) = blocks {
            prop_assert!(!blocks.is_empty(), "a message became empty");
            let calls = blocks.iter().filter(|block| block["type"] == "toolCall");
            open.extend(calls.filter_map(|call| call["id"].as_str()));
        }
    }
    prop_assert!(open.is_empty(), "calls without results: {open:?}");
    Ok(())
}

async fn get(engine: &Engine, name: &str) -> Result<Document, TestCaseError> {
    let found = engine.get(name).await.unwrap();
    found.ok_or_else(|| TestCaseError::fail(format!("nothing has the name {name:?}")))
}

fn texts(message: &Value) -> Vec<String> {
    let blocks = message["content"].as_array().cloned().unwrap_or_default();
    let texts = blocks.iter().filter_map(|b| b["text"].as_str().or(b["thinking"].as_str()));
    message["content"].as_str().into_iter().chain(texts).map(str::to_owned).collect()
}

/// A result: as it came, its reference with lines of later calls, or an excerpt.
async fn check_result(engine: &Engine, raw: &Value, shown: &Value, named: &mut HashSet<String>) -> Checked {
    let (was, is) = (texts(raw).join(""), texts(shown).join(""));
    if was == is {
        return Ok(());
    }
    let (first, rest) = is.split_once('\n').unwrap_or((&is, ""));
    let name = first.strip_prefix("toolcall_ref ");
    let handle = name.unwrap_or(first).strip_prefix("id=").and_then(|rest| rest.split(' ').next());
    let own = get(engine, handle.unwrap_or_default()).await?;
    prop_assert_eq!(own.id().as_str(), raw["toolCallId"].as_str().unwrap());
    if name.is_none() {
        return check_excerpt(rest, own.content().unwrap_or_default());
    }
    for line in rest.lines() {
        if let Some(words) = line.strip_prefix("said: ") {
            check_said(engine, words).await?;
            continue;
        }
        let (_, handle) = line.rsplit_once(" id=").unwrap_or_default();
        let call = get(engine, handle).await?;
        prop_assert!(line.starts_with(&format!("{} ", call.text("tool").unwrap_or_default())), "{line}");
        named.insert(call.id().as_str().to_owned());
    }
    Ok(())
}

/// Lines of the output in their order, and marks for what is left out.
fn check_excerpt(shown: &str, output: &str) -> Checked {
    let lines: Vec<&str> = output.lines().collect();
    let mut at = 0;
    for line in shown.lines() {
        if lines.get(at) == Some(&line) {
            at += 1;
            continue;
        }
        let mark = line.strip_prefix("... ").and_then(|rest| rest.strip_suffix(" ..."));
        let one = mark.and_then(|mark| mark.strip_prefix("line ")?.split(' ').next());
        let many = mark.and_then(|mark| Some(mark.rsplit_once(" left out: lines ")?.1));
        let (from, to) = many.or(one).map_or(("", ""), |many| many.split_once('-').unwrap_or((many, many)));
        prop_assert_eq!(from.parse().ok(), Some(at + 1), "not the output's: {}", line);
        at = to.parse().unwrap();
    }
    prop_assert_eq!(at, lines.len());
    Ok(())
}

/// The line that is left of an answer's words: all of them, or their beginning and the name of the rest.
async fn check_said(engine: &Engine, words: &str) -> Checked {
    let (begin, id) = words.rsplit_once("... id=").unwrap_or((words, ""));
    let id = if id.is_empty() { said_id(words) } else { id.to_owned() };
    let whole = engine.activate(&id, None).await.unwrap().content.unwrap_or_default();
    prop_assert!(whole.trim().replace('\n', " ").starts_with(begin), "not what was said: {words}");
    Ok(())
}

/// Words: as they were said, or the beginning and the name of the rest, which restores the hidden text.
async fn check_words(engine: &Engine, raw: &Value, shown: &Value) -> Checked {
    let (was, is) = (texts(raw), texts(shown));
    for text in is.iter().filter(|text| !was.contains(text)) {
        let (begin, mark) = text.rsplit_once("\n[... ").unwrap_or_default();
        let id = mark.rsplit_once("id=").and_then(|(_, id)| id.strip_suffix(']')).unwrap_or_default();
        let whole = engine.activate(id, None).await.unwrap().content.unwrap_or_default();
        prop_assert!(was.contains(&whole) && whole.starts_with(begin), "no form of what was said: {text}");
    }
    for text in was.iter().filter(|text| !is.contains(text)) {
        let back = engine.activate(&said_id(text), None).await.unwrap();
        prop_assert_eq!(back.content.as_ref(), Some(text));
    }
    Ok(())
}

/// The arguments of calls: as they were given, or with marks that name the call in place of long texts.
async fn check_calls(engine: &Engine, raw: &Value, shown: &Value) -> Checked {
    let calls = |message: &Value| -> Vec<Value> {
        let blocks = message["content"].as_array().cloned().unwrap_or_default();
        blocks.into_iter().filter(|block| block["type"] == "toolCall").collect()
    };
    let (was, is) = (calls(raw), calls(shown));
    prop_assert_eq!(was.len(), is.len());
    for (was, is) in was.iter().zip(&is) {
        prop_assert_eq!((&was["id"], &was["name"]), (&is["id"], &is["name"]));
        check_arguments(engine, &was["id"], &was["arguments"], &is["arguments"]).await?;
    }
    Ok(())
}

async fn check_arguments(engine: &Engine, id: &Value, was: &Value, is: &Value) -> Checked {
    let empty = Map::new();
    let marks = marker::tags_in(is.as_object().unwrap_or(&empty));
    for mark in &marks {
        let call = get(engine, mark).await?;
        prop_assert_eq!((Some(call.id().as_str()), call.field("args")), (id.as_str(), Some(was)));
    }
    prop_assert_eq!(marks.is_empty(), was == is, "{}", is);
    check_shape(was, is)
}

fn check_shape(was: &Value, is: &Value) -> Checked {
    match (was, is) {
        (Value::Object(was), Value::Object(is)) => {
            prop_assert!(was.keys().eq(is.keys()));
            was.iter().try_for_each(|(name, value)| check_shape(value, &is[name]))
        }
        (Value::Array(was), Value::Array(is)) => {
            prop_assert_eq!(was.len(), is.len());
            was.iter().zip(is).try_for_each(|(was, is)| check_shape(was, is))
        }
        (Value::String(was), Value::String(is)) => {
            prop_assert!(was == is || marker::tag_in(is).is_some(), "{was} became {is}");
            Ok(())
        }
        _ => {
            prop_assert_eq!(was, is);
            Ok(())
        }
    }
}
