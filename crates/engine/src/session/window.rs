//! Turns, stays, and what the window of SSOT 4.3 collapses.

use context_model::collapse::{Stay, Window, collapsing, is_control};
use context_model::id::ObjectId;

use super::Session;
use super::catalog::Kind;
use super::commit::Work;

impl Session {
    /// Deactivates what the window collapses at this turn, as part of a transaction under construction. Calls that
    /// steer the context take no place in the window: they are active in their own turn.
    pub fn collapse(&mut self, window: Window, turn: usize, work: &mut Work) {
        let (mut active, mut over) = (Vec::new(), Vec::new());
        for id in self.sets.active() {
            let Some(Kind::Toolcall { tool, .. }) = self.catalog.get(id).map(|meta| &meta.kind) else {
                continue;
            };
            let stay = Stay { id: id.clone(), turn: self.stays.get(id).copied().unwrap_or(0) };
            if !is_control(tool) {
                active.push(stay);
            } else if stay.turn < turn && !self.sets.pinned().contains(id) {
                over.push(stay.id);
            }
        }
        over.extend(collapsing(&active, turn, window, |id| self.sets.pinned().contains(id)));
        for id in over {
            self.sets.deactivate(&id, &mut work.change);
        }
    }

    /// Makes a recorded call part of the current turn, and active.
    pub fn join_turn(&mut self, id: &ObjectId, window: Window, work: &mut Work) {
        work.chat.toolcall(id);
        self.sets.activate(id, &mut work.change);
        self.stay(id, work.chat.current_turn(), work);
        self.collapse(window, work.chat.current_turn(), work);
    }

    /// Activates an object because the model or a person wants it, and notes that with the current turn: it renews the
    /// stay of a tool call.
    pub fn activate(&mut self, id: &ObjectId, work: &mut Work) {
        self.sets.activate(id, &mut work.change);
        let turn = work.chat.current_turn();
        let is_new = self.activated.insert(id.clone());
        if is_new {
            work.activated.push(id.clone());
        }
        let stays_on = self.stays.get(id) != Some(&turn) && self.is_toolcall(id);
        let is_noted = (is_new || stays_on) && work.chat.activation(id);
        if is_noted && stays_on {
            self.stay(id, turn, work);
        }
        work.renewed.push(id.clone());
    }

    /// Notes in which turn a tool call was made or last activated.
    fn stay(&mut self, id: &ObjectId, turn: usize, work: &mut Work) {
        work.stays_before.push((id.clone(), self.stays.insert(id.clone(), turn)));
        work.renewed.push(id.clone());
    }
}
