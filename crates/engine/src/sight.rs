//! What the model's request shows, piece by piece, and what of it has become stale.
//!
//! State and sight are two things. The sets change at once; what is visible lags behind until a roll, because
//! changing a request breaks the provider's prefix cache. This module keeps the second in step with the first.

use std::collections::{HashMap, HashSet};

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::pricing::{Charge, Item, Ledger, Policy, Roll};
use context_model::session::Sets;
use context_model::tokens;

use crate::piece::{CollapsedCall, Excerpts, Form, NewResult, Piece, PieceKind, ShownLines};

/// From so many tokens on a read is not kept through its user turn. An agent looks at a part of such a file when it
/// needs it again (docs/replay.md), which is cheaper than to keep it.
const LARGE_READ: u64 = 2_500;

/// The pieces of the request that is visible now, and the rent that the stale ones have paid.
#[derive(Default)]
pub(crate) struct Sight {
    ledger: Ledger,
    pieces: Vec<Piece>,
    /// Where an object's result, and the arguments of its call, are.
    places: HashMap<ObjectId, Vec<usize>>,
    /// The reads of each file that no later one covers.
    reads: HashMap<ObjectId, Vec<HeldRead>>,
    /// The newest reads of the current user turn that are not large: they stay until it ends.
    guarded: HashSet<usize>,
    /// Results and arguments of the current user turn: those that are active are whole until it ends.
    current: HashSet<usize>,
    /// What a person brought back by undoing a roll: it is whole while it is active.
    brought_back: HashSet<usize>,
}

/// A read that is in the request, or was until it was rolled.
#[derive(Clone, Debug)]
struct HeldRead {
    place: usize,
    hash: Digest,
    first: usize,
    last: usize,
}

impl Sight {
    /// Appends text that always stays.
    pub fn push_fixed(&mut self, key: &str, tokens: u64) {
        self.push(key, PieceKind::Fixed, Item::fixed(tokens));
    }

    /// Appends the output of a tool call as it is shown.
    pub fn push_result(&mut self, key: &str, result: NewResult, sets: &Sets) {
        let NewResult { object, shown, excerpts, reference, tokens: born_tokens } = result;
        let item = Item::new(born_tokens, size(&reference));
        let file = shown.as_ref().map(|lines| lines.file.clone());
        let kind = PieceKind::Result { object: object.clone(), file, excerpts, reference, born_tokens };
        let place = self.push(key, kind, item);
        self.places.entry(object).or_default().push(place);
        if let Some(lines) = shown {
            self.hold(place, lines, sets);
            if born_tokens < LARGE_READ {
                self.guarded.insert(place);
            }
        }
        self.judge(place, sets);
    }

    /// Notes what a read shows; earlier reads whose lines it covers are superseded.
    fn hold(&mut self, place: usize, lines: ShownLines, sets: &Sets) {
        let ShownLines { file, hash, first, last } = lines;
        let held = self.reads.entry(file).or_default();
        let covered: Vec<usize> = held
            .extract_if(.., |earlier| first <= earlier.first && earlier.last <= last)
            .map(|earlier| earlier.place)
            .collect();
        held.push(HeldRead { place, hash, first, last });
        for earlier in covered {
            self.pieces[earlier].superseded = true;
            self.guarded.remove(&earlier);
            self.judge(earlier, sets);
        }
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
                    if let Some(call) = calls.iter_mut().find(|c| c.call_id == call_id && c.object.is_none())
                    {
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
        let reads: Vec<usize> = self.reads.get(object).into_iter().flatten().map(|read| read.place).collect();
        for place in reads {
            self.judge(place, sets);
        }
    }

    /// A user's turn starts: what the last one needed is like everything older now.
    pub fn start_turn(&mut self, sets: &Sets) {
        for place in std::mem::take(&mut self.current) {
            self.judge(place, sets);
        }
    }

    /// An object's output is needed in this user turn too.
    pub fn renew(&mut self, object: &ObjectId, sets: &Sets) {
        for place in self.places.get(object).cloned().unwrap_or_default() {
            self.current.insert(place);
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
        for place in &roll.items {
            self.settle(*place);
        }
        roll.items.iter().filter_map(|place| self.pieces.get(*place)).collect()
    }

    /// The pieces of a roll.
    pub fn pieces_of<'a>(&'a self, roll: &'a Roll) -> impl Iterator<Item = &'a Piece> {
        roll.items.iter().filter_map(|place| self.pieces.get(*place))
    }

    /// Rolls pieces of a call that were rolled before what is visible was rebuilt, and gives them.
    pub fn roll_again(&mut self, object: &ObjectId, result: Form, arguments: Form) -> Vec<&Piece> {
        let mut rolled = Vec::new();
        for place in self.places.get(object).cloned().unwrap_or_default() {
            let wanted = match &self.pieces[place].kind {
                PieceKind::Fixed => Form::Born,
                PieceKind::Result { .. } => result,
                PieceKind::Arguments { .. } => arguments,
            };
            if wanted == Form::Born || self.pieces[place].form == wanted || !self.aim(place, wanted) {
                continue;
            }
            if self.ledger.set_rolled(place, true) > 0 {
                self.settle(place);
                rolled.push(place);
            }
        }
        rolled.into_iter().map(|place| &self.pieces[place]).collect()
    }

    /// Makes pieces whole again that a roll replaced.
    pub fn undo(&mut self, roll: &Roll) {
        for place in &roll.items {
            self.brought_back.insert(*place);
            let piece = &mut self.pieces[*place];
            piece.form = Form::Born;
            match &piece.kind {
                PieceKind::Result { reference, born_tokens, .. } => {
                    self.ledger.replace(*place, Item::new(*born_tokens, size(reference)));
                }
                _ => {
                    self.ledger.set_rolled(*place, false);
                }
            }
        }
    }

    /// Whether an object's output is in the request in full: not rolled, and not as an excerpt.
    pub fn shows_whole(&self, object: &ObjectId) -> bool {
        self.places.get(object).into_iter().flatten().any(|place| {
            let Piece { kind, form, .. } = &self.pieces[*place];
            *form == Form::Born
                && matches!(kind, PieceKind::Result { excerpts: Excerpts { born: None, .. }, .. })
        })
    }

    /// Whether the arguments of an object's call are collapsed.
    pub fn hides_arguments(&self, object: &ObjectId) -> bool {
        self.places.get(object).into_iter().flatten().any(|place| {
            let Piece { kind, form, .. } = &self.pieces[*place];
            *form == Form::Reference && matches!(kind, PieceKind::Arguments { .. })
        })
    }

    /// The tool call whose visible result shows these lines of this version of a file.
    pub fn showing(&self, lines: &ShownLines) -> Option<&ObjectId> {
        self.visible_reads(&lines.file)
            .filter(|read| read.hash == lines.hash && read.first <= lines.first && lines.last <= read.last)
            .find_map(|read| self.object_at(read.place))
    }

    /// The tool calls whose visible results show lines of a file, with the version's hash.
    pub fn held(&self, file: &ObjectId) -> impl Iterator<Item = (&ObjectId, Digest)> {
        self.visible_reads(file).filter_map(|read| Some((self.object_at(read.place)?, read.hash)))
    }

    fn visible_reads(&self, file: &ObjectId) -> impl Iterator<Item = &HeldRead> {
        let held = self.reads.get(file).into_iter().flatten();
        held.filter(|read| self.pieces[read.place].form == Form::Born)
    }

    fn object_at(&self, place: usize) -> Option<&ObjectId> {
        match &self.pieces.get(place)?.kind {
            PieceKind::Result { object, .. } => Some(object),
            _ => None,
        }
    }

    /// Whether an object's output has a place in the request, in whatever form.
    pub fn knows(&self, object: &ObjectId) -> bool {
        self.places
            .get(object)
            .into_iter()
            .flatten()
            .any(|p| matches!(self.pieces[*p].kind, PieceKind::Result { .. }))
    }

    /// The size of the system prompt and the tool declarations.
    pub fn set_system_tokens(&mut self, tokens: u64) {
        self.ledger.set_system_tokens(tokens);
    }

    /// The size of the system part as far as it is known before the next call.
    pub fn guess_system_tokens(&mut self, tokens: u64) {
        self.ledger.guess_system_tokens(tokens);
    }

    /// Estimated tokens of the request.
    pub fn tokens(&self) -> u64 {
        self.ledger.total_tokens()
    }

    /// Estimated tokens of what could be rolled.
    pub fn stale_tokens(&self) -> u64 {
        self.ledger.stale_tokens()
    }

    /// What writing the whole request anew would cost, where the provider has a part of it.
    pub fn rewrite_cost(&self, policy: &Policy) -> f64 {
        self.ledger.cached_tokens(policy) as f64 * policy.prices.rewrite()
    }

    /// What was rebuilt from a transcript has been sent before, by another process or another branch; the
    /// provider may have it cached still, up to the last answer.
    pub fn assume_sent(&mut self, is_cached: bool) {
        self.ledger.assume_shown(is_cached);
    }

    fn push(&mut self, key: &str, kind: PieceKind, item: Item) -> usize {
        let place = self.ledger.push(item);
        if !matches!(kind, PieceKind::Fixed) {
            self.current.insert(place);
        }
        let (form, next) = (Form::Born, Form::Reference);
        self.pieces.push(Piece { key: key.to_owned(), kind, superseded: false, form, next });
        place
    }

    /// Decides whether a piece is stale, and what a roll makes of it.
    fn judge(&mut self, place: usize, sets: &Sets) {
        let piece = &self.pieces[place];
        let pinned = |id: &ObjectId| sets.pinned().contains(id);
        let gone = |id: &ObjectId| !sets.active().contains(id) && !pinned(id);
        let is_current = self.current.contains(&place);
        let is_fresh = is_current || self.brought_back.contains(&place);
        let next = match &piece.kind {
            PieceKind::Fixed => None,
            PieceKind::Result { object, file, .. } => {
                let held = pinned(object)
                    || file.as_ref().is_some_and(pinned)
                    || (is_current && self.guarded.contains(&place));
                if held {
                    None
                } else if piece.superseded || gone(object) {
                    Some(Form::Reference)
                } else {
                    (!is_fresh).then_some(Form::Faded)
                }
            }
            PieceKind::Arguments { calls } => {
                let old = |id: &ObjectId| gone(id) || !(is_fresh || pinned(id));
                let all = calls.iter().all(|call| call.object.as_ref().is_some_and(old));
                all.then_some(Form::Reference)
            }
        };
        let stale = next.is_some_and(|form| self.aim(place, form));
        self.ledger.set_stale(place, stale);
    }

    /// Sets what a roll makes of a piece; whether that is less than what is shown.
    fn aim(&mut self, place: usize, next: Form) -> bool {
        let piece = &mut self.pieces[place];
        if let PieceKind::Result { excerpts, reference, .. } = &piece.kind {
            let text = match next {
                Form::Faded if piece.form == Form::Born => excerpts.faded.as_ref(),
                Form::Reference if piece.form != Form::Reference => Some(reference),
                _ => None,
            };
            let Some(text) = text else { return false };
            self.ledger.retarget(place, size(text));
        }
        piece.next = next;
        true
    }

    /// What was rolled is shown in its next form.
    fn settle(&mut self, place: usize) {
        if !self.ledger.is_rolled(place) {
            return;
        }
        let piece = &mut self.pieces[place];
        piece.form = piece.next;
        if let (
            Form::Faded,
            PieceKind::Result { excerpts: Excerpts { faded: Some(text), .. }, reference, .. },
        ) = (piece.form, &piece.kind)
        {
            self.ledger.replace(place, Item::new(size(text), size(reference)));
        }
    }
}

fn size(text: &str) -> u64 {
    tokens::estimate(text) as u64
}
