//! Answers with their calls, and the texts of users. An answer with calls and all of its results become one line for each call
//! once all of that is old.

use std::ops::RangeInclusive;

use context_lines::marker::{self, Collapsed};
use context_model::id::ObjectId;
use context_model::tokens;
use context_tools::{Gate, excerpt, has_effect};
use serde_json::{Map, Value};

use super::messages::{block_units, blocks_of, message_units, text_of, whole_text};
use super::prose::KEPT;
use super::schedule::{Departure, RipeAt};
use super::segment::{AnswerCall, Arguments, Form, Prose, RestOfAnswer, SegmentKind, Short, TextKind};
use super::segments::Segments;
use super::size::size;
use super::{Request, prose};
use crate::need::Stay;
use crate::{Curve, Objects};

/// A placeholder for a handle while its object is unknown; as long as most handles.
const SOME_HANDLE: &str = "00000000";

impl Request {
    /// Appends an answer: its reasoning, its prose, and the arguments of its calls.
    pub fn push_answer(
        &mut self,
        key: &str,
        message: &Value,
        cwd: &str,
        (is_new, objects): (bool, &dyn Objects),
    ) {
        let whole = whole_text(message);
        let blocks = blocks_of(message, whole.as_ref());
        let is_call = |block: &&&Value| text_of(block, "type") == "toolCall";
        let first = self.segments.segments.len();
        let signed = blocks.iter().filter(is_call).any(|call| is_signed(call));
        let has_calls = blocks.iter().any(|block| is_call(&block));
        let is_step =
            has_calls && !signed && blocks.iter().filter(is_call).all(|call| !text_of(call, "id").is_empty());
        let mut is_behind_system = std::mem::take(&mut self.segments.behind_system);
        let stands_alone = prose::stands_alone(message);
        let is_reasoning_alone =
            !stands_alone && blocks.iter().any(|block| text_of(block, "type") == "thinking");
        let is_reasoning = self.segments.text_is_reasoning && has_calls;
        self.segments.begin_answer(is_step, objects);
        let mut arguments = Arguments::default();
        let mut rest = 0;
        for (number, block) in blocks.iter().enumerate() {
            let prose = match text_of(block, "type") {
                "toolCall" => {
                    let call_id = text_of(block, "id");
                    let tool = text_of(block, "name");
                    let args = block.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
                    arguments.units += block_units(block);
                    let collapsed = if is_signed(block) { None } else { self.collapsed(tool, &args, cwd) };
                    arguments.calls.push(AnswerCall {
                        call_id: call_id.to_owned(),
                        position: arguments.calls.len(),
                        tool: tool.to_owned(),
                        gist: prose::gist(&args, cwd),
                        has_effect: has_effect(tool, &args),
                        args,
                        collapsed,
                        ..AnswerCall::default()
                    });
                    continue;
                }
                "thinking" => prose::thinking(number, message, block, !stands_alone).map(|prose| {
                    let stands_in =
                        prose.rest == RestOfAnswer::Nothing && std::mem::take(&mut is_behind_system);
                    if stands_in { Prose { rest: RestOfAnswer::StandIn, ..prose } } else { prose }
                }),
                // A blank text leaves with the reasoning beside it: no provider takes it alone.
                "text" if is_reasoning_alone => continue,
                "text" => prose::prose(number, text_of(block, "text"), has_calls),
                _ => None,
            };
            match prose {
                Some(prose) if is_reasoning && prose.what == TextKind::Prose => {
                    self.push_prose(key, Prose { short: Short::Whole, ..prose }, is_new, objects);
                }
                Some(prose) => self.push_prose(key, prose, is_new, objects),
                None => rest += block_units(block),
            }
        }
        // An answer without countable content still separates its neighbours.
        let is_empty = arguments.calls.is_empty() && self.segments.segments.len() == first;
        if rest > 0 || is_empty {
            self.segments.push_fixed(key, tokens::of_chars(rest) as u64);
        }
        self.segments.turn_is_over = arguments.calls.is_empty();
        if !arguments.calls.is_empty() {
            self.segments.push_arguments(key, arguments);
        }
    }

    /// Appends a user's message.
    pub fn push_user(&mut self, key: &str, message: &Value, is_new: bool, objects: &dyn Objects) {
        self.segments.begin_user(objects);
        if message.get("joined") == Some(&Value::Bool(true))
            && let Some(number) = self.segments.steps.len().checked_sub(1)
        {
            self.segments.steps[number].is_joined = true;
            self.segments.judge_step(number, objects);
        }
        let prose = prose::users(message);
        let shortened: usize = prose.iter().map(|prose| prose.chars).sum();
        let rest = message_units(message).saturating_sub(shortened);
        if rest > 0 || prose.is_empty() {
            self.segments.push_fixed(key, tokens::of_chars(rest) as u64);
        }
        for one in prose {
            self.push_prose(key, one, is_new, objects);
        }
    }

    /// Appends prose. If they were rolled before the visible request was rebuilt, they are rolled again.
    fn push_prose(&mut self, key: &str, mut prose: Prose, is_new: bool, objects: &dyn Objects) {
        // Equal texts can't be told apart later, so only the first of them is shortened.
        let is_thinking = prose.what == TextKind::Thinking;
        let may_leave = prose.short != Short::Whole || is_thinking;
        if may_leave {
            let seen = self.shortenable.entry(prose.id.clone()).or_default();
            prose.earlier = std::mem::replace(seen, *seen + 1);
        }
        if prose.earlier > 0 {
            prose.short = Short::Whole;
        }
        let was_rolled = may_leave && !is_new && self.rolled.hides_prose(&prose.name());
        if was_rolled && is_thinking {
            prose.short = Short::Nothing;
        }
        let place = self.segments.push_prose(key, prose, objects);
        if was_rolled && self.segments.repeat(place, Form::Reference, objects) {
            self.pending.insert(place);
        }
    }

    /// The shorter form of a call's arguments while its object is unknown.
    fn collapsed(&mut self, tool: &str, args: &Map<String, Value>, cwd: &str) -> Option<Collapsed> {
        self.issued.extend(marker::tags_in(args));
        marker::collapse_args(tool, args, SOME_HANDLE, cwd)
    }
}

/// True if a provider has signed a call.
fn is_signed(call: &Value) -> bool {
    call.get("thoughtSignature").is_some_and(|signature| !signature.is_null())
}

/// The excerpt that a large output is shown as from the start, without a header.
pub fn first_excerpt(tool: &str, content: &str) -> Option<String> {
    excerpt(content, &Gate::for_tool(tool)?).map(|excerpt| excerpt.text)
}

/// A call becomes a line after this many calls at the earliest.
const CALLS: u64 = 12;

/// The same on a dead cache.
const CALLS_ON_A_DEAD_CACHE: u64 = 5;

impl Segments {
    /// The calls of an answer; none until its arguments have come.
    pub(super) fn calls_of(&self, number: usize) -> &[AnswerCall] {
        let last = self.steps[number].answer.last();
        match last.map(|place| &self.segments[*place].kind) {
            Some(SegmentKind::Arguments(arguments)) => &arguments.calls,
            _ => &[],
        }
    }

    /// The places of all segments of an answer with calls; `None` while a result is missing, or if something else lies
    /// between them.
    pub(super) fn range_of(&self, number: usize) -> Option<RangeInclusive<usize>> {
        let (step, calls) = (&self.steps[number], self.calls_of(number));
        let results = calls.iter().map(|call| call.result).collect::<Option<Vec<usize>>>();
        let last = results?.into_iter().max()?;
        let count = step.answer.len() + calls.len();
        (last + 1 == step.first + count).then_some(step.first..=last)
    }

    /// The arguments that the model gave a call whose result is not known yet.
    pub fn args_of(&self, call_id: &str) -> Option<&Map<String, Value>> {
        match &self.segments[*self.awaiting.get(call_id)?].kind {
            SegmentKind::Arguments(arguments) => {
                let waiting = |call: &&AnswerCall| call.call_id == call_id && call.object.is_none();
                arguments.calls.iter().find(waiting).map(|call| &call.args)
            }
            _ => None,
        }
    }

    /// Joins a segment to the last answer, if that has calls.
    pub(super) fn join_step(&mut self, place: usize) {
        let number = self.steps.len().wrapping_sub(1);
        if let Some(step) = self.steps.last_mut().filter(|step| step.first == self.newest_answer) {
            step.answer.push(place);
            self.segments[place].step = Some(number);
        }
    }

    /// Counts the size of a call's line, at the answer that made the call.
    pub(super) fn price_line(&mut self, object: &ObjectId, objects: &dyn Objects) {
        let step = self.step_of.get(object).and_then(|all| all.last()).map(|number| &self.steps[*number]);
        let Some(place) = step.and_then(|step| step.answer.last()).copied() else { return };
        if let SegmentKind::Arguments(arguments) = &mut self.segments[place].kind {
            arguments.line_tokens += line_tokens(object, objects);
        }
    }

    /// Records the place of a call's result.
    pub(super) fn answer_step(&mut self, place: usize, object: &ObjectId) {
        // The very same call may have been made before.
        for number in self.step_of.get(object).into_iter().flatten().rev() {
            let Some(arguments) = self.steps[*number].answer.last() else { continue };
            let SegmentKind::Arguments(Arguments { calls, .. }) = &mut self.segments[*arguments].kind else {
                continue;
            };
            let named =
                calls.iter_mut().find(|call| call.object.as_ref() == Some(object) && call.result.is_none());
            if let Some(call) = named {
                call.result = Some(place);
                self.segments[place].step = Some(*number);
                return;
            }
        }
    }

    /// Decides whether an answer with calls may become lines.
    pub(super) fn judge_step(&mut self, number: usize, objects: &dyn Objects) {
        let ready = self.ready(number, objects);
        let is_ripe = ready.is_some_and(|due| due.warm <= self.calls);
        let was_ripe = std::mem::replace(&mut self.steps[number].is_ripe, is_ripe);
        self.ripening.set(number, ready.filter(|due| due.warm > self.calls));
        if is_ripe || was_ripe {
            self.aim_step(number, objects);
        }
        if is_ripe != was_ripe {
            self.aim_step(number + 1, objects);
        }
    }

    /// An answer that may become lines leaves as a whole if there is a place for the lines before it.
    pub(super) fn aim_step(&mut self, number: usize, objects: &dyn Objects) {
        let Some(step) = self.steps.get(number).filter(|step| step.call_digest.is_none()) else { return };
        let leaves = step.is_ripe && self.carrier_of(number).is_some();
        let since = self.ready(number, objects).map_or(self.calls, |due| due.warm);
        for place in self.range_of(number).into_iter().flatten() {
            if leaves {
                self.aim(place, Form::Removed);
                self.make_stale_since(place, since);
            } else if self.segments[place].next == Form::Removed {
                self.judge_alone(place, objects);
            }
        }
    }

    /// The calls from which an answer with calls may become lines: it is old enough, and everything that leaves with
    /// it costs more than its expected need.
    pub(super) fn ready(&self, number: usize, objects: &dyn Objects) -> Option<RipeAt> {
        let step = &self.steps[number];
        let need = self.need?;
        if !self.shortens || step.call_digest.is_some() || step.is_joined {
            return None;
        }
        let (warm, dead) = match self.stays.calls {
            Stay::Keep => return None,
            Stay::Needed => (CALLS, CALLS_ON_A_DEAD_CACHE),
            Stay::Calls(calls) => (calls, calls),
        };
        let mut ready =
            RipeAt { warm: step.since.saturating_add(warm), dead: step.since.saturating_add(dead) };
        let (mut wanted, mut shown, mut since) = (0.0, 0, step.since);
        for place in self.range_of(number)? {
            let (curve, chars) = self.leaves_with_step(place, objects)?;
            wanted += need.wanted(curve, chars);
            shown += self.ledger.item(place).map_or(0, |item| item.tokens_full);
            since = since.max(self.segments[place].since);
            if let Some(at) = self.set_by_a_person(place) {
                ready = RipeAt { warm: ready.warm.max(at), dead: ready.dead.max(at) };
            }
        }
        if self.stays.calls == Stay::Needed {
            let lines = self.calls_of(number).iter().filter_map(|call| call.object.as_ref());
            let saved = shown.saturating_sub(lines.map(|object| line_tokens(object, objects)).sum());
            let at = |dead| since.saturating_add(need.age_at(wanted, saved, dead));
            ready = RipeAt { warm: ready.warm.max(at(false)), dead: ready.dead.max(at(true)) };
        }
        Some(ready)
    }

    /// Returns the size of a segment's part that leaves together with its answer, in UTF-16 units, and the curve of the need
    /// for it; `None` if it has to stay.
    fn leaves_with_step(&self, place: usize, objects: &dyn Objects) -> Option<(Curve, u64)> {
        let segment = &self.segments[place];
        // Text that may leave only together with its calls is needed just like text that may leave alone.
        let may = match &segment.kind {
            SegmentKind::Prose(prose)
                if prose.what == TextKind::Thinking
                    && self.binding.is_strict()
                    && self.is_in_newest_turn(place) =>
            {
                false
            }
            SegmentKind::Prose(prose) if prose.what == TextKind::Thinking => match prose.short {
                Short::Whole => {
                    self.is_past(place) && self.stays.thinking != Stay::Keep && !self.is_brought_back(place)
                }
                Short::NothingAfterUser if self.is_in_newest_turn(place) => false,
                _ => !matches!(self.departure(place, objects), Departure::Held),
            },
            _ => !matches!(self.departure(place, objects), Departure::Held),
        };
        let is_short = segment.form >= Form::Reference;
        may.then(|| match &segment.kind {
            SegmentKind::Result(_) if is_short => (Curve::TOOL, 0),
            SegmentKind::Result(_) | SegmentKind::Fixed => (Curve::TOOL, self.chars_at(place)),
            // Its line keeps the path, or the beginning of the command.
            SegmentKind::Arguments(all) => {
                (Curve::TOOL, all.units_in(segment.form).saturating_sub(KEPT) as u64)
            }
            SegmentKind::Prose(prose) => {
                let chars = if is_short { 0 } else { prose.chars as u64 };
                match prose.what {
                    TextKind::Thinking => (Curve::THINKING, chars),
                    TextKind::Prose | TextKind::User => (Curve::PROSE, chars.saturating_sub(KEPT as u64)),
                }
            }
        })
    }

    /// The call at which a user's setting lets a segment leave.
    fn set_by_a_person(&self, place: usize) -> Option<u64> {
        let SegmentKind::Prose(prose) = &self.segments[place].kind else { return None };
        let stay = if prose.what == TextKind::Thinking { self.stays.thinking } else { self.stays.prose };
        if let Stay::Calls(calls) = stay {
            Some(self.segments[place].since.saturating_add(calls))
        } else {
            None
        }
    }
}

/// About the number of tokens in a call's line, without what the call came to.
const LINE_TOKENS: u64 = 15;

/// About the number of tokens in the line of a call.
pub(super) fn line_tokens(object: &ObjectId, objects: &dyn Objects) -> u64 {
    LINE_TOKENS + objects.outcome(object).map_or(0, size)
}

#[cfg(test)]
#[path = "answers_tests.rs"]
mod tests;
