//! The visible contents of the model's request, segment by segment.

use std::collections::{HashMap, HashSet};

use context_lines::marker;
use context_model::{id::ObjectId, tokens};

use super::schedule::Schedule;
use super::segment::{Arguments, Carried, Form, Output, Prose, Segment, SegmentKind, Step, TextKind};
use super::size::size;
use crate::{Binding, Charge, Item, Ledger, Need, Objects, Policy, need::Stays};

/// The segments of the request that is visible now, and the rent that the stale ones have paid.
#[derive(Default)]
pub struct Segments {
    pub(super) ledger: Ledger,
    pub(super) segments: Vec<Segment>,
    /// The places of an object's result and of its call's arguments.
    pub(super) places: HashMap<ObjectId, Vec<usize>>,
    /// Calls whose results always stay, because they have images.
    pub(super) pictured: HashSet<ObjectId>,
    /// The places where another call's result brought an object back.
    pub(super) carriers: HashMap<ObjectId, Vec<usize>>,
    /// The place of the arguments of a call that has no result yet, by call ID.
    pub(super) awaiting: HashMap<String, usize>,
    /// The places of each file's reads, including those that a later read covers: they stay in sight until a roll removes
    /// them.
    pub(super) reads: HashMap<ObjectId, Vec<usize>>,
    /// The places that answers in the current user turn have pointed to. They stay until the turn ends.
    pointed_at: HashSet<usize>,
    /// The answers with calls, oldest first.
    pub(super) steps: Vec<Step>,
    /// The answers that made a call, by the call's object. Several have made the very same one.
    pub(super) step_of: HashMap<ObjectId, Vec<usize>>,
    /// Model calls made with the visible messages.
    pub(super) calls: u64,
    /// The number of calls made before those of the transcript from which the request was rebuilt.
    pub(super) uncounted: u64,
    /// The calls whose requests did not have the segments of their time, because these came later and together: the first and the
    /// last one of each row, ascending.
    pub(super) rows: Vec<(u64, u64)>,
    /// The call before which the segments were last looked at.
    pub(super) ripened: u64,
    /// The model call at which each segment that is not stale yet becomes stale.
    pub(super) schedule: Schedule,
    /// When answers with calls may become lines, by their number.
    pub(super) ripening: Schedule,
    /// The segments that are stale for this call only, because its cache is dead or a user asked for a roll.
    pub(super) early: Vec<usize>,
    /// The prices that the schedule was computed with.
    pub(super) need: Option<Need>,
    /// The time for which text of some kinds stays.
    pub stays: Stays,
    /// True if the harness can leave out messages and shorten texts.
    pub(super) shortens: bool,
    /// The provider's treatment of reasoning behind a change.
    pub(super) binding: Binding,
    /// Text of an answer with calls is part of its reasoning.
    pub text_is_reasoning: bool,
    /// The IDs of texts that the record can't give back. They stay whole.
    pub unrecorded: HashSet<String>,
    /// The place of the first change that left the reasoning behind it, on a model that does not bind it.
    pub unbound: Option<usize>,
    /// The last answer has no calls, so that a user speaks next.
    pub turn_is_over: bool,
    /// The last message is the system's. The next one has to be an answer, as the provider wants it.
    pub(super) behind_system: bool,
    /// The segments that a user restored by undoing a roll, and the number of user turns for which they still stay whole.
    brought_back: HashMap<usize, usize>,
    pub(super) newest_answer: usize,
    /// The places where the user's first and newest messages begin.
    pub(super) users: Option<(usize, usize)>,
}

impl Segments {
    /// An empty request.
    pub fn new(stays: Stays) -> Self {
        Self { stays, ..Self::default() }
    }

    /// An empty request with the same settings, to be rebuilt from a transcript.
    pub fn renewed(&self) -> Self {
        let Self { binding, text_is_reasoning, .. } = *self;
        let mut renewed = Self { binding, text_is_reasoning, ..Self::new(self.stays) };
        renewed.ledger.rebuild();
        renewed
    }

    /// Sets whether the harness can leave out messages and shorten texts.
    pub fn set_shortens(&mut self, shortens: bool) {
        if self.shortens != shortens {
            self.shortens = shortens;
            // Forces everything to be judged again before the next decision.
            self.need = None;
        }
    }

    /// Sets the binding of the next call's provider: its treatment of reasoning behind a change.
    pub fn set_binding(&mut self, binding: Binding, text_is_reasoning: bool) {
        self.text_is_reasoning = text_is_reasoning;
        if self.binding != binding {
            self.binding = binding;
            self.need = None;
        }
    }

    /// Returns what a missed use weighs now.
    pub fn lambda(&self) -> f64 {
        self.stays.weight(self.shortens)
    }

    /// Appends a message of the system among the others, which always stays.
    pub fn push_system(&mut self, key: &str, tokens: u64) {
        self.push_fixed(key, tokens);
        self.behind_system = true;
    }

    /// Appends text that always stays.
    pub fn push_fixed(&mut self, key: &str, tokens: u64) {
        self.push(key, SegmentKind::Fixed, Item::fixed(tokens));
    }

    /// Appends a result that always stays.
    pub fn push_pictured(&mut self, key: &str, tokens: u64, call: ObjectId) {
        self.push_fixed(key, tokens);
        self.pictured.insert(call);
    }

    /// A user's message comes next. The previous one is no longer the newest.
    pub fn begin_user(&mut self, objects: &dyn Objects) {
        self.turn_is_over = false;
        self.ledger.start_turn();
        let start = self.segments.len();
        let before = self.users.replace((self.users.map_or(start, |(first, _)| first), start));
        let from = before.map_or(0, |(_, newest)| newest);
        let is_it = |segment: &Segment| matches!(&segment.kind, SegmentKind::Prose(prose) if prose.what != TextKind::Prose);
        let places: Vec<usize> = (from..start).filter(|place| is_it(&self.segments[*place])).collect();
        self.end_newest(&places, |segments, prose| {
            prose.what == TextKind::User || segments.waits_for_user(prose)
        });
        self.judge_all(places, objects);
    }

    /// An answer comes next; `is_step` says whether it has calls that can become lines. The previous one is no longer
    /// the newest.
    pub fn begin_answer(&mut self, is_step: bool, objects: &dyn Objects) {
        let before = std::mem::replace(&mut self.newest_answer, self.segments.len());
        if is_step {
            self.steps.push(Step { first: self.segments.len(), since: self.calls, ..Step::default() });
        }
        let is_prose = |place: &usize| matches!(self.segments[*place].kind, SegmentKind::Prose(_));
        let places: Vec<usize> = (before..self.newest_answer).filter(is_prose).collect();
        self.end_newest(&places, |_, prose| prose.what == TextKind::Thinking);
        self.judge_all(places, objects);
    }

    /// Appends prose that may leave. Returns their place.
    pub(super) fn push_prose(&mut self, key: &str, prose: Prose, objects: &dyn Objects) -> usize {
        let item = Item::new(tokens::of_chars(prose.chars) as u64, 0);
        let (is_answers, is_thinking) = (prose.what != TextKind::User, prose.what == TextKind::Thinking);
        let chars = prose.chars as u64;
        let place = self.push(key, SegmentKind::Prose(prose), item);
        if is_thinking {
            self.ledger.set_reasoning(place, chars);
        }
        if is_answers {
            self.join_step(place);
        }
        self.judge(place, objects);
        place
    }

    /// Appends a tool call's output as it is shown. Returns its place.
    pub fn push_result(&mut self, key: &str, output: Output, objects: &dyn Objects) -> usize {
        // A provider counts a run of results as one.
        let follows = matches!(self.segments.last().map(|last| &last.kind), Some(SegmentKind::Result(_)));
        let item =
            Item { blocks: u32::from(!follows), ..Item::new(output.full_tokens, size(&output.reference)) };
        self.turn_is_over = false;
        let (object, shown, carries) = (output.object.clone(), output.shown.clone(), output.carries.clone());
        let place = self.push(key, SegmentKind::Result(Box::new(output)), item);
        self.places.entry(object.clone()).or_default().push(place);
        self.answer_step(place, &object);
        if let Some(Carried { object, whole, .. }) = carries {
            let earlier = self.carriers.entry(object).or_default();
            let covered = if whole { std::mem::take(earlier) } else { Vec::new() };
            earlier.push(place);
            for earlier in covered {
                self.segments[earlier].superseded = true;
                self.judge(earlier, objects);
            }
        }
        if let Some(lines) = shown {
            self.hold(place, &lines, objects);
        }
        self.judge(place, objects);
        place
    }

    /// Appends the arguments of an answer's calls.
    pub(super) fn push_arguments(&mut self, key: &str, arguments: Arguments) {
        let full = tokens::of_chars(arguments.units) as u64;
        let collapsed = tokens::of_chars(arguments.units_in(Form::Reference)) as u64;
        let ids: Vec<String> = arguments.calls.iter().map(|call| call.call_id.clone()).collect();
        let place = self.push(key, SegmentKind::Arguments(arguments), Item::new(full, collapsed));
        self.join_step(place);
        self.awaiting.extend(ids.into_iter().map(|id| (id, place)));
    }

    /// Records which object a call became, once its result is known: the markers in its collapsed arguments name that
    /// object.
    pub fn answer(
        &mut self,
        call_id: &str,
        object: &ObjectId,
        is_ok: bool,
        objects: &dyn Objects,
        cwd: &str,
    ) {
        let handle = objects.handle_of(object);
        let Some(place) = self.awaiting.get(call_id).copied() else { return };
        let Segment { kind: SegmentKind::Arguments(arguments), step, .. } = &mut self.segments[place] else {
            return;
        };
        let mut waiting = arguments.calls.iter_mut().filter(|c| c.call_id == call_id && c.object.is_none());
        let Some(call) = waiting.next() else { return };
        call.object = Some(object.clone());
        let args = std::mem::take(&mut call.args);
        let is_shorter = call.collapsed.is_some();
        if is_shorter {
            call.new_text = marker::collapse_old_text(&call.tool, &args, &handle).filter(|_| is_ok);
            call.collapsed = marker::collapse_args(&call.tool, &args, &handle, cwd);
        }
        if waiting.next().is_none() {
            self.awaiting.remove(call_id);
        }
        if let Some(number) = *step {
            self.step_of.entry(object.clone()).or_default().push(number);
            self.price_line(object, objects);
        }
        if is_shorter {
            self.places.entry(object.clone()).or_default().push(place);
            self.judge(place, objects);
        }
    }

    /// Judges the segments of an object again after its place in a set has changed.
    pub fn touch(&mut self, object: &ObjectId, objects: &dyn Objects) {
        let places = [&self.places, &self.carriers].into_iter().filter_map(|all| all.get(object));
        let all: Vec<usize> = places.chain(self.reads.get(object)).flatten().copied().collect();
        self.judge_all(all, objects);
    }

    /// Starts a user's turn: results that answers have pointed to may leave, and restored segments have stayed for one more
    /// turn.
    pub fn start_turn(&mut self, objects: &dyn Objects) {
        let mut over: Vec<usize> = self.pointed_at.drain().collect();
        self.brought_back.retain(|place, turns| {
            *turns -= 1;
            if *turns == 0 {
                over.push(*place);
            }
            *turns > 0
        });
        self.judge_all(over, objects);
    }

    /// An object's output is needed now, so its age restarts at 0.
    pub fn renew(&mut self, object: &ObjectId, objects: &dyn Objects) {
        let places = [&self.places, &self.carriers].into_iter().filter_map(|all| all.get(object));
        let all: Vec<usize> = places.flatten().copied().collect();
        all.iter().for_each(|place| self.segments[*place].since = self.calls);
        self.judge_all(all, objects);
    }

    /// An answer in progress points to lines in a call's result.
    pub fn point_to(&mut self, object: &ObjectId, objects: &dyn Objects) {
        self.pointed_at.extend(self.places.get(object).into_iter().flatten());
        self.renew(object, objects);
    }

    /// A model call was made with what is shown.
    pub fn charge(&mut self, policy: &Policy) -> Charge {
        self.calls += 1;
        self.ledger.charge_call(policy)
    }

    /// True if reasoning of the running turn depends on what is before a place.
    pub fn has_running_reasoning(&self, place: usize) -> bool {
        !self.turn_is_over && self.ledger.reasoning_from(place).any(|(_, is_running)| is_running)
    }

    /// Returns what the provider of the next call does with reasoning behind a change.
    pub fn binding(&self) -> Binding {
        self.binding
    }

    /// Keeps restored segments whole for `turns` user turns.
    pub(super) fn bring_back(&mut self, place: usize, turns: usize) {
        self.brought_back.insert(place, turns.max(1));
    }

    pub(super) fn is_brought_back(&self, place: usize) -> bool {
        self.brought_back.contains_key(&place)
    }

    /// True if an answer in the current user turn points to lines here.
    pub(super) fn is_pointed_at(&self, place: usize) -> bool {
        self.pointed_at.contains(&place)
    }

    /// The size of the system prompt and the tool declarations.
    pub fn set_system_tokens(&mut self, tokens: u64) {
        self.ledger.set_system_tokens(tokens);
    }

    /// The size of the system part, as far as known before the next call.
    pub fn guess_system_tokens(&mut self, tokens: u64) {
        self.ledger.guess_system_tokens(tokens);
    }

    /// Estimated tokens of the request.
    pub fn tokens(&self) -> u64 {
        self.ledger.total_tokens()
    }

    /// Returns the estimated tokens that a roll could remove.
    pub fn stale_tokens(&self) -> u64 {
        self.ledger.stale_tokens()
    }

    /// Returns the cost of rewriting the whole request, given that the provider has part of it cached.
    pub fn rewrite_cost(&self, policy: &Policy) -> f64 {
        self.ledger.cached_tokens(policy) as f64 * policy.prices.rewrite() * policy.kept
    }

    /// Sets the number of the session's calls; calls that the transcript no longer has precede those that it has.
    pub fn count_calls(&mut self, made: u64) {
        let gone = made.saturating_sub(self.calls);
        self.calls += gone;
        self.uncounted = gone;
        for segment in &mut self.segments {
            segment.since += gone;
            segment.newest_until += if segment.newest_until > 0 { gone } else { 0 };
        }
        self.steps.iter_mut().for_each(|step| step.since += gone);
        // Forces everything to be judged again before the next decision.
        self.need = None;
    }

    /// Notes that another process or branch already sent the contents rebuilt from a transcript. The provider may still have this
    /// number of first segments cached, up to the last answer.
    pub(super) fn assume_sent(&mut self, unchanged: usize) {
        self.ledger.assume_shown(unchanged);
    }

    /// The number of segments.
    pub fn count(&self) -> usize {
        self.segments.len()
    }

    pub(super) fn output_at(&self, place: usize) -> Option<&Output> {
        match &self.segments.get(place)?.kind {
            SegmentKind::Result(output) => Some(output),
            _ => None,
        }
    }

    fn push(&mut self, key: &str, kind: SegmentKind, item: Item) -> usize {
        let place = self.ledger.push(item);
        self.behind_system = false;
        let (form, next, since) = (Form::Full, Form::Reference, self.calls);
        let key = key.to_owned();
        self.segments.push(Segment {
            key,
            kind,
            superseded: false,
            form,
            next,
            since,
            newest_until: 0,
            step: None,
        });
        place
    }
}

#[cfg(test)]
#[path = "segments_tests.rs"]
mod tests;
