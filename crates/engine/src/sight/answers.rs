//! Answers with their calls, and the lines by which their results are named.

use context_model::excerpt::{Gate, excerpt};
use context_model::id::ObjectId;
use context_model::{marker, render, tokens};
use serde_json::{Map, Value};

use super::Sight;
use super::messages::{block_units, text_of};
use super::piece::{Arguments, ArgumentsOf, Excerpts};
use crate::session::Session;
use crate::session::catalog::Kind;

/// What stands for a handle while its object is not known: as long as most handles.
const SOME_HANDLE: &str = "00000000";

impl Sight {
    /// Appends an answer: its prose, and the arguments of its calls.
    pub fn push_answer(&mut self, key: &str, message: &Value, cwd: &str) {
        let blocks = message.get("content").and_then(Value::as_array);
        let mut prose = 0;
        let mut arguments = Arguments::default();
        let mut position = 0;
        for block in blocks.into_iter().flatten() {
            if text_of(block, "type") != "toolCall" {
                prose += block_units(block);
                continue;
            }
            let call_id = text_of(block, "id");
            let args = block.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
            arguments.units += block_units(block);
            let signed = block.get("thoughtSignature").is_some_and(|s| !s.is_null());
            if !signed {
                arguments.calls.extend(self.shorter(call_id, position, text_of(block, "name"), &args, cwd));
            }
            position += 1;
            self.open_calls.insert(call_id.to_owned(), args);
        }
        self.pieces.push_fixed(key, tokens::of_chars(prose) as u64);
        if arguments.calls.is_empty() {
            self.pieces.push_fixed(key, tokens::of_chars(arguments.units) as u64);
        } else {
            self.pieces.push_arguments(key, arguments);
        }
    }

    /// A call whose arguments have a shorter form. Which, is known once its object is.
    fn shorter(
        &mut self,
        call_id: &str,
        position: usize,
        tool: &str,
        args: &Map<String, Value>,
        cwd: &str,
    ) -> Option<ArgumentsOf> {
        self.issued.extend(marker::tags_in(args));
        let saved = marker::collapse_args(tool, args, SOME_HANDLE, cwd)?.saved_chars;
        Some(ArgumentsOf {
            call_id: call_id.to_owned(),
            position,
            tool: tool.to_owned(),
            object: None,
            args: args.clone(),
            saved,
        })
    }
}

impl Session {
    /// The line before an output: the name under which it can be had again. The call above it says the rest.
    pub fn header(&self, id: &ObjectId) -> String {
        format!("id={}", render::word(self.handle(id).as_str()))
    }

    /// An excerpt under its object's header.
    pub fn headed(&self, id: &ObjectId, excerpt: &str) -> String {
        format!("{}\n{excerpt}", self.header(id))
    }

    /// An output as the tool gave it, without the line that was put before it.
    pub fn without_header<'a>(&self, id: &ObjectId, text: &'a str) -> &'a str {
        text.strip_prefix(self.header(id).as_str()).and_then(|rest| rest.strip_prefix('\n')).unwrap_or(text)
    }

    /// The line that stands in place of an object's output, under its handle.
    pub fn reference(&self, id: &ObjectId) -> String {
        match self.catalog.get(id).map(|meta| &meta.kind) {
            Some(Kind::Toolcall { tool, status }) => {
                render::toolcall_ref(&ObjectId::new(self.handle(id)), tool, *status)
            }
            _ => String::new(),
        }
    }

    /// The object that a result's first line names: its header, or the reference that replaced it. An output can
    /// say anything, so only an object of this very call is believed.
    pub fn object_in(&self, call_id: &str, text: &str) -> Option<ObjectId> {
        let first = text.lines().next()?;
        let rest = first.strip_prefix("toolcall_ref ").unwrap_or(first);
        let handle = rest.strip_prefix("id=")?.split(' ').next()?;
        let id = self.catalog.find(handle)?;
        (id.is_toolcall(call_id) && (self.header(&id) == first || self.reference(&id) == first)).then_some(id)
    }
}

/// The handle that a header before this text names, and the text below it.
pub(crate) fn handle_before(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once('\n')?;
    Some((first.strip_prefix("id=")?, rest))
}

/// What is shown of an output in place of all of it, without a header.
pub(crate) fn excerpts(tool: &str, content: &str) -> Excerpts {
    let text = |gate: Gate| excerpt(content, &gate).map(|excerpt| excerpt.text);
    Excerpts { born: Gate::for_tool(tool).and_then(text), faded: text(Gate::fading(tool)) }
}

/// The object that the arguments of a call name, as `activate` and Pi's `read` take it: by its ID or handle. `None` for
/// an old version, which is a static reference.
pub(crate) fn named_object(session: &Session, tool: &str, args: &Map<String, Value>) -> Option<ObjectId> {
    let text = |name: &str| args.get(name).and_then(Value::as_str);
    let name = match tool {
        "activate" => text("id")?,
        "read" => {
            let path = text("path")?;
            path.strip_prefix('@').unwrap_or(path).strip_prefix("id=")?
        }
        _ => return None,
    };
    session.catalog.find(name).filter(|id| session.sets.index().contains(id))
}
