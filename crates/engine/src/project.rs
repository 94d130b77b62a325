//! The projection of a harness's messages on their way to the provider.

use std::sync::LazyLock;
use std::time::Instant;

use crate::session::client::Fsync;
use crate::session::error::Result;
use context_evidence::{Arrival, Sentences, StatementKind};
use context_model::chat::Notice;
use context_model::object::Toolcall;
use context_model::time::Timestamp;
use context_projection::request::answers::first_excerpt;
use context_projection::request::messages::{lines_of, lines_of_ours};
use context_projection::request::plan::{Call, IncomingMessage, Plan, Received, is_as_sent};
use context_projection::{Binding, Moment};
use serde_json::Value;
use tracing::instrument;

use crate::engine::{Engine, Inner, State};
use crate::handed::{Handed, Pending};
use crate::incoming::Taking;
use crate::namesakes::Namesakes;

/// The time in milliseconds for which the writes of other machines are not fetched again.
const PULL_AGE_MS: i64 = 1_000;

/// The same at the start of a user's turn, where a harness may call twice.
const USER_TURN_PULL_AGE_MS: i64 = 100;

impl Engine {
    /// Records a tool result before the harness stores it, and returns what to put before it. The record then
    /// survives the end of the process, and after [`Engine::settle`] a power loss.
    ///
    /// # Errors
    /// As [`Engine::record_toolcall`], except for arguments that are nested too deeply: the part that is too deep is
    /// kept as JSON text.
    #[instrument(level = "debug", skip_all, fields(call = ?input.id, tool = ?input.tool), err(level = "debug"))]
    pub async fn receive(&self, input: Toolcall) -> Result<Received> {
        let excerpt = first_excerpt(&input.tool, &input.content);
        let (length, call_id) = (input.content.len(), input.id.clone());
        let is_nested = input.parent.is_some();
        let id = self.inner.record(input, Fsync::WithSettle).await?;
        let mut state = self.inner.lock().await?;
        let handle = state.session.handle(&id);
        if is_nested {
            return Ok(Received { id, handle, header: None });
        }
        let header =
            (length > 2 * state.session.plain_reference(&id).len()).then(|| state.session.header(&id));
        state.request.gated.insert(id.clone(), excerpt);
        state.request.expect(&call_id, &id);
        Ok(Received { id, handle, header })
    }

    /// Takes in the messages that are new since the last call, records those that are not recorded yet, and decides what the
    /// next model call will see. The records then survive the end of the process, and after [`Engine::settle`] a power loss.
    ///
    /// # Errors
    /// Errors of the store. The harness then sends its own messages unchanged and passes them in again, with [`Engine::resync`]
    /// or this method: messages taken in before the failure are not taken in twice.
    #[instrument(level = "debug", skip_all, fields(messages = incoming.len()), err(level = "debug"))]
    pub async fn advance(&self, incoming: Vec<IncomingMessage>, call: &Call) -> Result<Plan> {
        let begins = incoming.iter().any(|one| one.message["role"] == "user");
        // A file that can't be stored now keeps waiting, and the model gets its notice once it is stored.
        let looked =
            if begins { self.inner.read_pending(true).await } else { self.inner.read_visible().await };
        if let Err(error) = looked {
            tracing::debug!(%error, "a changed file is looked at again later");
        }
        let mut state = self.inner.lock().await?;
        if state.came_back {
            self.inner.forget_underway(&mut state);
        }
        if call.sent_ms.is_some() {
            state.request.clock.ask_again(call.sent_ms, moment(call));
        }
        let policy = state.request.policy(call, moment(call));
        let policy = state.handed.policy(policy);
        let was_dead = policy.cache_dead;
        state.request.segments.set_shortens(call.shortens);
        state.request.segments.set_system_tokens(call.system_tokens);
        // After an answer without calls a user's message comes next, and writes of others until then count.
        let is_over = incoming.last().is_some_and(|one| one.message["role"] == "assistant");
        // The first answer is that to the last request, which had everything before it.
        let continues = incoming.first().is_none_or(|one| one.message["role"] != "user");
        let answers = incoming.iter().filter(|one| one.message["role"] == "assistant").count() as u64;
        let together = (answers > 1).then(|| answers.saturating_sub(u64::from(continues)));
        for one in incoming {
            if state.handed.has(&one) {
                continue;
            }
            // An output that is new is cut also where nothing that was sent may change.
            let excerpts = call.rolls || call.repeats;
            let taking = Taking { arrival: Arrival::New, excerpts, now: moment(call) };
            self.inner.take_in(&mut state, &one, &policy, taking).await?;
            state.handed.add(one, &policy);
        }
        if let Some(together) = together {
            state.request.segments.note_together(together);
        }
        self.inner.note_whole(&mut state).await?;
        let age = if begins { USER_TURN_PULL_AGE_MS } else { PULL_AGE_MS };
        if is_over || (0..age).contains(&call.now_ms.saturating_sub(state.session.pulled_ms)) {
            self.inner.refresh(&mut state).await?;
        } else {
            state.session.pulled_ms = call.now_ms;
            self.inner.refresh_at_turn(&mut state).await?;
        }
        if let Some(now) = state.unsent.arrived(state.request.made) {
            state.request.date_now(&now);
        }
        if call.rolls || call.repeats {
            let State { request, pending, .. } = &mut *state;
            pending.edits.extend(request.missing_edits());
        }
        if call.rolls {
            // An answer among the messages has warmed the cache again.
            let policy = state.request.policy(call, moment(call));
            if policy.binding == Binding::Refuses
                && let Some(from) = state.request.segments.unbound
            {
                if let Some(roll) = state.request.segments.reasoning_roll(from, &state.session) {
                    self.inner.execute(&mut state, Fsync::WithSettle, roll).await?;
                }
                state.request.segments.unbound = None;
            }
            let State { request, session, .. } = &mut *state;
            request.segments.ripen(&policy, session);
            if let Some(roll) = request.segments.decide(&policy, session) {
                self.inner.execute(&mut state, Fsync::WithSettle, roll).await?;
                // While the roll was recorded, another client may have stored a version.
                self.inner.refresh(&mut state).await?;
            }
        }
        self.inner.notices(&mut state, Fsync::WithSettle, Some(call)).await?;
        self.inner.note_arrivals(&mut state, together.map(|answers| (answers, was_dead)), call.rolls).await?;
        let times = self.inner.times().await?;
        // The rest cannot fail, and all reads of tools have come as results.
        self.inner.forget_passed_in();
        Ok(state.planned(call, times, &self.inner.client.options.sentences))
    }

    /// Rebuilds what is visible from the messages of the branch that the harness is on now, with earlier edits
    /// already in them. The first `recorded` messages are part of the recorded session; later ones are taken in as by
    /// [`Engine::advance`]. Messages that were replaced before but are there in full again (the process ended before
    /// the harness stored the edit, or the harness stores no edits) are replaced by the next [`Engine::advance`] that
    /// may roll or repeat.
    #[instrument(level = "debug", skip_all, fields(messages = incoming.len()), err(level = "debug"))]
    pub async fn resync(&self, incoming: Vec<IncomingMessage>, recorded: usize, call: &Call) -> Result<Plan> {
        let mut plan = Plan::default();
        let mut state = self.inner.lock().await?;
        state.request.forget();
        state.namesakes = Namesakes::default();
        state.known.forget();
        state.unread.clear();
        state.pending = Pending::default();
        let policy = state.request.policy(call, moment(call));
        state.request.segments.set_shortens(call.shortens);
        state.request.segments.guess_system_tokens(call.system_tokens);
        let unchanged = is_as_sent(&incoming);
        state.is_anew = incoming.is_empty() && !state.request.rolled.entries().is_empty();
        self.inner.inserted(&mut state, &incoming[..recorded.min(incoming.len())], call).await?;
        let mut kept = usize::MAX;
        for (number, one) in incoming.into_iter().enumerate() {
            if call.sent_messages == Some(number) {
                kept = state.request.segments.count();
            }
            let record = number >= recorded && !state.handed.has(&one);
            let arrival = if record { Arrival::Late } else { Arrival::Again };
            self.inner
                .take_in(&mut state, &one, &policy, Taking { arrival, excerpts: false, now: moment(call) })
                .await?;
            let said = self.inner.notices_in(&one.message);
            for Notice { file, hash, path, .. } in said {
                let way = self.inner.way_of(&path).map(|way| Inner::way_to(way, &file));
                if let Some(way) = &way {
                    state.known.uses(way);
                }
                let via = way.as_ref().map(|way| &way.path);
                state.known.add_statement(&file, None, via, StatementKind::Other(hash));
            }
            if record {
                state.handed.add(one, &policy);
            }
        }
        self.inner.note_whole(&mut state).await?;
        let State { request, session, unsent, .. } = &mut *state;
        request.segments.count_calls(request.made);
        request.repeat_arrivals(unsent.arrived(request.made).as_ref());
        request.repeat_call_digests(session);
        request.note_unbound();
        let turn = session.turns.saturating_sub(1);
        request.keep_what_was_brought_back(turn, self.inner.client.options.window.turns_back, session);
        self.inner.keep_evidence(&mut state).await;
        self.inner.forget_underway(&mut state);
        if call.sent_ms.is_some() {
            state.request.clock.ask_again(call.sent_ms, moment(call));
        }
        let is_cached = call.sent_ms.is_some() || (unchanged && state.request.pending.is_empty());
        state.request.assume_sent(if is_cached { kept } else { 0 });
        state.request.repeat_spending();
        state.request.finish(&mut plan);
        state.handed = Handed::default();
        Ok(plan)
    }
}

impl State {
    /// The plan of a hand-over, which then is over.
    fn planned(&mut self, call: &Call, times: [Timestamp; 2], sentences: &Sentences) -> Plan {
        self.handed = Handed::default();
        self.compared = 0;
        let policy = self.request.policy(call, moment(call));
        let mut plan = Plan {
            notices: if call.closed { Vec::new() } else { self.say(sentences) },
            rewrite_cost: self.request.segments.rewrite_cost(&policy),
            spent: self.request.spent,
            point: Some((self.session.point, times)),
            ..Plan::default()
        };
        self.pending.give(&mut plan);
        self.request.finish(&mut plan);
        self.request.clock.ask(moment(call));
        self.request.asked_dead = Some(policy.cache_dead);
        plan
    }
}

impl Inner {
    /// Returns the notices in a message. A notice that some hosts store as a user's message is the whole message: a user's text
    /// is never a notice.
    fn notices_in(&self, message: &Value) -> Vec<Notice> {
        let archive = &self.records().archive;
        let is_users = message["role"] == "user";
        let lines = if is_users { lines_of(message) } else { lines_of_ours(message) };
        let found: Vec<&[Notice]> = lines.into_iter().map(|line| archive.notices(line)).collect();
        if is_users && found.iter().any(|notices| notices.is_empty()) { Vec::new() } else { found.concat() }
    }

    /// Forgets the reads and writes of tools that are in none of the branch's messages.
    fn forget_underway(&self, state: &mut State) {
        state.came_back = false;
        state.written.clear();
        self.forget_passed_in();
    }

    fn forget_passed_in(&self) {
        let mut records = self.records();
        records.passed_in.clear();
        records.archive.settle();
    }
}

/// Now, by the host's clock and our own.
pub(crate) fn moment(call: &Call) -> Moment {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let own = i64::try_from(START.elapsed().as_millis()).unwrap_or(i64::MAX);
    Moment { host: call.now_ms, own }
}
