//! Rolls: executing and undoing them.

use crate::session::Session;
use crate::session::client::Fsync;
use crate::session::commit::Work;
use crate::session::error::{EngineError, Result};
use context_model::chat::RollEntry;
use context_model::chat::RollReceipt;
use context_model::id::ObjectId;
use context_projection::request::plan::{Call, Plan};
use context_projection::request::rolls::entry_of;
use context_projection::request::shape::Shape;
use context_projection::{Binding, HeldBack};
use tracing::instrument;

use crate::engine::{Engine, Inner, State};
use crate::project::moment;

/// The effect that a roll would have.
#[derive(Clone, Debug, PartialEq)]
pub struct RollPreview {
    /// The receipt that it would have.
    pub receipt: RollReceipt,
    /// The calls whose outputs it would collapse.
    pub outputs: Vec<ObjectId>,
}

impl Engine {
    /// Rolls everything that is stale now and everything that left the active set, because a user asked for it.
    ///
    /// # Errors
    /// Errors of the store; nothing is then rolled.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn roll_now(&self, call: &Call) -> Result<Plan> {
        let mut plan = Plan::default();
        let mut state = self.inner.lock().await?;
        let policy = state.request.policy(call, moment(call));
        let State { request, session, .. } = &mut *state;
        request.segments.ripen(&policy, session);
        request.segments.release_inactive(session);
        if let Some(roll) = request.segments.asked(&policy, session) {
            self.inner.execute(&mut state, Fsync::Now, roll).await?;
        }
        state.pending.give(&mut plan);
        state.request.finish(&mut plan);
        Ok(plan)
    }

    /// Returns the effect that [`Engine::roll_now`] would have, for a user who wants to know before; `None` if nothing would be
    /// rolled. Changes nothing.
    pub async fn preview_roll(&self, call: &Call) -> Result<Option<RollPreview>> {
        let mut state = self.inner.lock().await?;
        let policy = state.request.policy(call, moment(call));
        let State { request, session, .. } = &mut *state;
        request.segments.ripen(&policy, session);
        request.segments.release_inactive(session);
        let preview = request.segments.asked(&policy, session).map(|roll| RollPreview {
            receipt: roll.receipt(),
            outputs: request.segments.outputs_of(&roll).cloned().collect(),
        });
        // Text that only a user's roll takes is not stale for the others.
        request.segments.ripen(&policy, session);
        Ok(preview)
    }

    /// Returns the text that could leave the request and has not, with the reason and its next chance; `None` if there is
    /// nothing. For users: it changes nothing, and looks at all that the request shows.
    ///
    /// # Errors
    /// `CLOSED`.
    pub async fn held_back(&self, call: &Call) -> Result<Option<HeldBack>> {
        let mut state = self.inner.lock().await?;
        let policy = state.request.policy(call, moment(call));
        let State { request, session, .. } = &mut *state;
        let factor = request.accounting.factor(&request.model);
        let held = request.segments.held_back(&policy, call.rolls, session);
        Ok(held.map(|one| HeldBack { tokens: (one.tokens as f64 * factor) as u64, ..one }))
    }

    /// Undoes the latest roll of this process: its messages are shown as before it. No other roll collapses them until as
    /// many user turns have begun as an output stays active, in this process or a later one.
    ///
    /// If the provider binds reasoning to the text before it, all reasoning behind the change stays out or leaves.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the provider would refuse the request, because the reasoning of the running turn depends on what the
    /// roll has changed; errors of the store. Nothing is then undone.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn undo_roll(&self) -> Result<Plan> {
        let mut plan = Plan::default();
        let mut state = self.inner.lock().await?;
        if let Some(roll) = state.request.rolls.last().cloned() {
            let first = roll.places().min().unwrap_or(0);
            let binding = state.request.segments.binding();
            if binding == Binding::Refuses && state.request.segments.has_running_reasoning(first) {
                let why = "the provider would refuse the request: the model's reasoning in this turn depends on \
                           what the roll has changed. Undo it after the turn has ended";
                return Err(EngineError::Invalid(why.into()));
            }
            if let Some(entry) = state.request.undoing() {
                self.inner.note_roll(&mut state, Fsync::Now, entry).await?;
            }
            let State { request, session, known, pending, .. } = &mut *state;
            request.rolls.pop();
            request.segments.undo(&roll, self.inner.client.options.window.turns_back, session);
            pending.edits.extend(request.segments.edits_of(roll.places()));
            known.looks_different(request.segments.calls_at(roll.places()));
            let behind = request.segments.reasoning_roll(first, session).filter(|_| binding.is_strict());
            if let Some(roll) = behind {
                self.inner.execute(&mut state, Fsync::Now, roll).await?;
            }
        }
        state.pending.give(&mut plan);
        plan.receipt = None;
        state.request.finish(&mut plan);
        Ok(plan)
    }

    /// The receipts of the session's rolls that are in effect, oldest first.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn receipts(&self) -> Result<Vec<RollReceipt>> {
        Ok(self.inner.lock().await?.request.rolled.receipts().to_vec())
    }
}

impl Inner {
    /// Executes a roll: records it, and adds its edits to the next plan.
    ///
    /// # Errors
    /// Errors of the store; nothing is then rolled.
    #[instrument(level = "debug", skip_all)]
    pub(crate) async fn execute(&self, state: &mut State, fsync: Fsync, roll: Shape) -> Result<()> {
        let receipt = roll.receipt();
        let noted = roll.is_roll().then(|| receipt.clone());
        let entry = RollEntry { receipt: noted, ..entry_of(&state.request, &roll) };
        self.note_roll(state, fsync, entry).await?;
        let State { request, session, known, pending, .. } = &mut *state;
        request.segments.apply(&roll, session);
        let edits = request.segments.edits_of(roll.places());
        request.issue(&edits);
        pending.edits.extend(edits);
        pending.receipt = Some(receipt);
        known.looks_different(request.segments.calls_at(roll.places()));
        if roll.is_roll() {
            request.rolls.push(roll);
        }
        Ok(())
    }

    /// Records which large outputs were sent whole, so that a resumed session sends them as they were.
    pub(crate) async fn note_whole(&self, state: &mut State) -> Result<()> {
        if state.request.whole.is_empty() {
            return Ok(());
        }
        let whole = state.request.whole.clone();
        // It leaves no reasoning behind a change.
        let entry = RollEntry { whole, bound: true, ..RollEntry::default() };
        self.note_roll(state, Fsync::WithSettle, entry).await?;
        state.request.whole.clear();
        Ok(())
    }

    async fn note_roll(&self, state: &mut State, fsync: Fsync, entry: RollEntry) -> Result<()> {
        let note = |session: &Session, work: &mut Work| {
            work.chat.roll(&entry);
            // An active object that a user has restored is kept whole, like one that the model activates, even by a later
            // process.
            let wanted = entry.results.iter().filter(|_| entry.undone);
            for id in wanted.cloned().collect::<Vec<_>>() {
                if session.sets.active().contains(&id) {
                    session.activate(&id, work);
                }
            }
            Ok(())
        };
        self.commit(state, fsync, note).await?;
        let turn = state.session.turns.saturating_sub(1);
        state.request.rolled.note(entry, turn);
        Ok(())
    }
}
