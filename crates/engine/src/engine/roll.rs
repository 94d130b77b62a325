//! Rolls: executing them, and taking them back.

use context_model::chat::RollEntry;
use context_model::pricing::{Receipt, Roll};

use super::{Engine, Inner, State};
use crate::ground::error::Result;
use crate::session::Session;
use crate::session::commit::Work;
use crate::sight::plan::{Call, Edit, Plan};
use crate::sight::rolls::{entry_of, replaced, restored};

impl Engine {
    /// Rolls everything that is stale now, because a person asked for it.
    ///
    /// # Errors
    /// What the store reports; nothing is rolled then.
    pub async fn roll_now(&self, call: &Call) -> Result<Plan> {
        let mut plan = Plan::default();
        let mut state = self.inner.lock().await?;
        let policy = state.sight.policy(call);
        if let Some(roll) = state.sight.pieces.asked(&policy) {
            self.inner.execute(&mut state, &roll, &mut plan).await?;
        }
        state.sight.finish(&mut plan);
        Ok(plan)
    }

    /// Takes back the latest roll of this process: its messages are to be shown in full again, until a later
    /// roll takes them once more. No roll does before as many user turns have begun as an output stays active.
    ///
    /// # Errors
    /// What the store reports; nothing is taken back then.
    pub async fn undo_roll(&self) -> Result<Plan> {
        let mut plan = Plan::default();
        let mut state = self.inner.lock().await?;
        if let Some(roll) = state.sight.rolls.last().cloned() {
            let pieces = state.sight.pieces.pieces_of(&roll);
            let entry = RollEntry { undone: true, ..entry_of(pieces, |piece| piece.form) };
            self.inner.note_roll(&mut state, entry).await?;
            let State { sight, session, .. } = &mut *state;
            sight.rolls.pop();
            sight.pieces.undo(&roll, self.inner.ground.options.window.turns_back, session);
            plan.edits = sight.pieces.pieces_of(&roll).filter_map(restored).collect();
            state.known.looks_different();
        }
        state.sight.finish(&mut plan);
        Ok(plan)
    }

    /// The receipts of the session's rolls that are in effect, oldest first.
    ///
    /// # Errors
    /// `CLOSED`.
    pub async fn receipts(&self) -> Result<Vec<Receipt>> {
        Ok(self.inner.lock().await?.sight.rolled.receipts().to_vec())
    }
}

impl Inner {
    /// Executes a roll: records it, and adds its edits to a plan.
    ///
    /// # Errors
    /// What the store reports; nothing is rolled then.
    pub async fn execute(&self, state: &mut State, roll: &Roll, plan: &mut Plan) -> Result<()> {
        let receipt = roll.receipt();
        let pieces = state.sight.pieces.pieces_of(roll);
        let entry = RollEntry { receipt: Some(receipt.clone()), ..entry_of(pieces, |piece| piece.next) };
        self.note_roll(state, entry).await?;
        let rolled = state.sight.pieces.apply(roll);
        let edits: Vec<Edit> = rolled.into_iter().filter_map(replaced).collect();
        state.sight.issue(&edits);
        plan.edits.extend(edits);
        plan.receipt = Some(receipt);
        state.sight.rolls.push(roll.clone());
        state.known.looks_different();
        Ok(())
    }

    async fn note_roll(&self, state: &mut State, entry: RollEntry) -> Result<()> {
        let note = |session: &mut Session, work: &mut Work| {
            work.chat.roll(&entry);
            // What a person wants back and is active is kept whole like what the model activates, also by a process that
            // comes later.
            let wanted = entry.results.iter().chain(&entry.excerpts).filter(|_| entry.undone);
            for id in wanted.cloned().collect::<Vec<_>>() {
                if session.sets.active().contains(&id) {
                    session.activate(&id, work);
                }
            }
            Ok(())
        };
        self.commit(state, note).await?;
        state.sight.rolled.note(entry);
        Ok(())
    }
}
