//! Turns, stays, and what the window of the specification collapses.

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

#[cfg(test)]
mod tests {
    use context_model::chat::ChatPatch;
    use context_model::object::Status;
    use context_model::time::TxId;
    use rstest::rstest;

    use super::*;
    use crate::catalog::Meta;

    /// An activation is noted in the chat if it is the first one, or if it renews the stay of a tool call.
    #[rstest]
    #[case::a_call_of_this_turn("call", Some(2), false, true, Some(2))]
    #[case::again("call", Some(2), true, false, Some(2))]
    #[case::a_call_of_an_earlier_turn("call", Some(0), false, true, Some(2))]
    #[case::again_in_a_later_turn("call", Some(0), true, true, Some(2))]
    #[case::a_call_without_a_stay("call", None, true, true, Some(2))]
    #[case::a_file("file", None, false, true, None)]
    #[case::a_file_again("file", None, true, false, None)]
    fn what_an_activation_notes(
        #[case] id: &str,
        #[case] stay: Option<usize>,
        #[case] was_activated: bool,
        #[case] is_noted: bool,
        #[case] stays: Option<usize>,
    ) {
        let id = ObjectId::new(id);
        let mut session = Session { turns: 3, ..Session::default() };
        let kind = Kind::Toolcall { tool: "bash".into(), status: Status::Ok, outcome: None };
        session.catalog.put(&ObjectId::new("call"), Meta { kind, is_null: false, tx: TxId(1) });
        session.stays.extend(stay.map(|turn| (id.clone(), turn)));
        session.activated.extend(was_activated.then(|| id.clone()));
        let mut work = Work { chat: ChatPatch::new(3), ..Work::default() };
        session.activate(&id, &mut work);
        assert!(session.sets.active().contains(&id) && session.activated.contains(&id));
        assert_eq!(!work.chat.is_empty(), is_noted);
        assert_eq!(session.stays.get(&id).copied(), stays);
        assert!(work.renewed.contains(&id));
        assert_eq!(work.activated.is_empty(), was_activated);
    }

    /// Without a turn there is no place for a note, and so no stay.
    #[test]
    fn before_the_first_turn_nothing_is_noted() {
        let (mut session, mut work, id) = (Session::default(), Work::default(), ObjectId::new("call"));
        let kind = Kind::Toolcall { tool: "bash".into(), status: Status::Ok, outcome: None };
        session.catalog.put(&id, Meta { kind, is_null: false, tx: TxId(1) });
        session.activate(&id, &mut work);
        assert!(work.chat.is_empty() && session.stays.is_empty());
        assert!(session.is_toolcall(&id) && !session.is_toolcall(&ObjectId::new("file")));
    }
}
