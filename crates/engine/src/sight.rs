//! What the model's request shows, piece by piece, and what of it has become stale.
//!
//! State and sight are two things. The sets change at once; what is visible lags behind until a roll, because
//! changing a request breaks the provider's prefix cache. This module keeps the second in step with the first.

use std::collections::HashMap;

use context_model::id::ObjectId;
use context_model::pricing::{Charge, Item, Ledger, Policy, Roll};
use context_model::session::Sets;
use context_model::tokens;
use serde_json::{Map, Value};

/// The pieces of the request that is visible now, and the rent that the stale ones have paid.
#[derive(Default)]
pub(crate) struct Sight {
    ledger: Ledger,
    pieces: Vec<Piece>,
    /// Where an object's result, and the arguments of its call, are.
    places: HashMap<ObjectId, Vec<usize>>,
    /// The newest read of each file.
    reads: HashMap<ObjectId, usize>,
    /// The newest reads of the current user turn, which stay until it ends.
    guarded: Vec<usize>,
}

/// One piece of the request.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// The harness's name for the message.
    pub key: String,
    pub kind: PieceKind,
    /// A later read of the same file took its place.
    pub superseded: bool,
}

/// What a piece is, and what replaces it in a roll.
#[derive(Clone, Debug)]
pub(crate) enum PieceKind {
    /// Text that always stays.
    Fixed,
    /// The output of a tool call; a roll leaves the reference line.
    Result {
        object: ObjectId,
        /// The file that it shows, where it is a read.
        file: Option<ObjectId>,
        reference: String,
    },
    /// The arguments of an answer's calls; a roll leaves their collapsed form.
    Arguments { calls: Vec<CollapsedCall> },
}

/// The collapsed arguments of one call.
#[derive(Clone, Debug, PartialEq)]
pub struct CollapsedCall {
    /// The harness's call ID.
    pub call_id: String,
    /// The call's position among the calls of its message.
    pub position: usize,
    /// The object of the call, once its result is known.
    pub object: Option<ObjectId>,
    /// The arguments that stand in place of the full ones.
    pub args: Map<String, Value>,
}

impl Sight {
    /// Appends text that always stays.
    pub fn push_fixed(&mut self, key: &str, tokens: u64) {
        self.push(key, PieceKind::Fixed, Item::fixed(tokens));
    }

    /// Appends the output of a tool call as it is shown; one that is a reference already can't be rolled.
    pub fn push_result(
        &mut self,
        key: &str,
        object: &ObjectId,
        file: Option<ObjectId>,
        reference: String,
        shown_tokens: u64,
        sets: &Sets,
    ) {
        let item = Item::new(shown_tokens, tokens::estimate(&reference) as u64);
        let kind = PieceKind::Result { object: object.clone(), file: file.clone(), reference };
        let place = self.push(key, kind, item);
        self.places.entry(object.clone()).or_default().push(place);
        if let Some(file) = file {
            self.guarded.push(place);
            if let Some(earlier) = self.reads.insert(file, place) {
                self.pieces[earlier].superseded = true;
                self.guarded.retain(|guarded| *guarded != earlier);
                self.judge(earlier, sets);
            }
        }
        self.judge(place, sets);
    }

    /// Appends the arguments of an answer's calls, where collapsing them saves something.
    pub fn push_arguments(&mut self, key: &str, calls: Vec<CollapsedCall>, full: u64, collapsed: u64) {
        let place = self.push(key, PieceKind::Arguments { calls: Vec::new() }, Item::new(full, collapsed));
        for object in calls.iter().filter_map(|call| call.object.clone()) {
            self.places.entry(object).or_default().push(place);
        }
        self.pieces[place].kind = PieceKind::Arguments { calls };
    }

    /// Tells which object a call became, once its result is known.
    pub fn answer(&mut self, call_id: &str, object: &ObjectId) {
        for place in (0..self.pieces.len()).rev() {
            match &mut self.pieces[place].kind {
                PieceKind::Arguments { calls } => {
                    if let Some(call) = calls.iter_mut().find(|c| c.call_id == call_id && c.object.is_none()) {
                        call.object = Some(object.clone());
                        self.places.entry(object.clone()).or_default().push(place);
                    }
                    return;
                }
                // Only results stand between a call and its own result.
                PieceKind::Result { .. } => {}
                PieceKind::Fixed => return,
            }
        }
    }

    /// Looks again at the pieces of an object whose place in a set has changed.
    pub fn touch(&mut self, object: &ObjectId, sets: &Sets) {
        for place in self.places.get(object).cloned().unwrap_or_default() {
            self.judge(place, sets);
        }
        if let Some(place) = self.reads.get(object).copied() {
            self.judge(place, sets);
        }
    }

    /// A user's turn starts: the reads that the last one needed are like all others now.
    pub fn start_turn(&mut self, sets: &Sets) {
        for place in std::mem::take(&mut self.guarded) {
            self.judge(place, sets);
        }
    }

    /// A model call was made with what is shown.
    pub fn charge(&mut self, policy: &Policy) -> Charge {
        self.ledger.charge_call(policy)
    }

    /// The roll to execute before the next call, if any.
    pub fn decide(&self, policy: &Policy) -> Option<Roll> {
        self.ledger.decide(policy)
    }

    /// The roll of everything stale, because a person asked for it.
    pub fn asked(&self, policy: &Policy) -> Option<Roll> {
        self.ledger.asked(policy)
    }

    /// Executes a roll and gives the pieces that it replaces.
    pub fn apply(&mut self, roll: &Roll) -> Vec<&Piece> {
        self.ledger.apply(roll);
        roll.items.iter().filter_map(|place| self.pieces.get(*place)).collect()
    }

    /// Makes pieces whole again that a roll replaced, and gives them.
    pub fn undo(&mut self, roll: &Roll) -> Vec<&Piece> {
        for place in &roll.items {
            self.ledger.set_rolled(*place, false);
        }
        roll.items.iter().filter_map(|place| self.pieces.get(*place)).collect()
    }

    /// Whether an object's output is in the request in full, or as the excerpt that it was born with.
    pub fn shows(&self, object: &ObjectId) -> bool {
        self.places.get(object).into_iter().flatten().any(|place| {
            matches!(&self.pieces[*place].kind, PieceKind::Result { .. }) && !self.ledger.is_rolled(*place)
        })
    }

    /// Whether an object's output has a place in the request, in whatever form.
    pub fn knows(&self, object: &ObjectId) -> bool {
        self.places.get(object).into_iter().flatten().any(|p| matches!(self.pieces[*p].kind, PieceKind::Result { .. }))
    }

    /// The newest read of a file, if it is still visible.
    pub fn visible_read(&self, file: &ObjectId) -> Option<&Piece> {
        let place = *self.reads.get(file)?;
        (!self.ledger.is_rolled(place)).then(|| &self.pieces[place])
    }

    /// The size of the system prompt and the tool declarations.
    pub fn set_system_tokens(&mut self, tokens: u64) {
        self.ledger.set_system_tokens(tokens);
    }

    /// Estimated tokens of the request.
    pub fn tokens(&self) -> u64 {
        self.ledger.total_tokens()
    }

    /// Estimated tokens of what could be rolled.
    pub fn stale_tokens(&self) -> u64 {
        self.ledger.stale_tokens()
    }

    /// What was rebuilt from a transcript has been sent before, by another process or another branch.
    pub fn assume_sent(&mut self) {
        self.ledger.assume_shown();
    }

    fn push(&mut self, key: &str, kind: PieceKind, item: Item) -> usize {
        self.pieces.push(Piece { key: key.to_owned(), kind, superseded: false });
        self.ledger.push(item)
    }

    /// Decides whether a piece is stale: its object is inactive or was read again later, and nothing holds it.
    fn judge(&mut self, place: usize, sets: &Sets) {
        let piece = &self.pieces[place];
        let gone = |id: &ObjectId| !sets.active().contains(id) && !sets.pinned().contains(id);
        let stale = match &piece.kind {
            PieceKind::Fixed => false,
            PieceKind::Result { object, file, .. } => {
                let held = sets.pinned().contains(object)
                    || file.as_ref().is_some_and(|file| sets.pinned().contains(file))
                    || self.guarded.contains(&place);
                !held && (piece.superseded || gone(object))
            }
            PieceKind::Arguments { calls } => {
                calls.iter().all(|call| call.object.as_ref().is_some_and(&gone))
            }
        };
        self.ledger.set_stale(place, stale);
    }
}
