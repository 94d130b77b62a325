//! What the model's request shows, piece by piece, and what of it has become stale.

use std::collections::{HashMap, HashSet};

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::marker;
use context_model::pricing::{Charge, Item, Ledger, Policy, Roll};
use context_model::time::TxId;
use context_model::tokens;

use super::piece::{Arguments, Carried, Excerpts, Form, Output, Piece, PieceKind, ShownLines};
use crate::session::Session;

/// From so many tokens on a read is not kept through its user turn. An agent looks at a part of such a file when it
/// needs it again (docs/replay.md), which is cheaper than to keep it.
const LARGE_READ: u64 = 2_500;

/// The pieces of the request that is visible now, and the rent that the stale ones have paid.
#[derive(Default)]
pub(crate) struct Pieces {
    ledger: Ledger,
    pieces: Vec<Piece>,
    /// Where an object's result, and the arguments of its call, are.
    places: HashMap<ObjectId, Vec<usize>>,
    /// Where an object is shown by the result of another call, which brought it back.
    carriers: HashMap<ObjectId, Vec<usize>>,
    /// The arguments that wait for a call's result, by call ID.
    awaiting: HashMap<String, usize>,
    /// The reads of each file, also those that a later one covers: they are in sight until a roll takes them.
    reads: HashMap<ObjectId, Vec<HeldRead>>,
    /// The newest reads of the current user turn that are not large: they stay until it ends.
    guarded: HashSet<usize>,
    /// Results and arguments of the current user turn: those that are active are whole until it ends.
    current: HashSet<usize>,
    /// What answers of the current user turn have pointed to: it stays until that ends.
    pointed_at: HashSet<usize>,
    /// What a person brought back by undoing a roll, and for how many more user turns it stays whole.
    brought_back: HashMap<usize, usize>,
}

/// A read that is in the request, or was until it was rolled.
#[derive(Clone, Debug)]
struct HeldRead {
    place: usize,
    hash: Digest,
    tx: TxId,
    first: usize,
    last: usize,
}

impl Pieces {
    /// Appends text that always stays.
    pub fn push_fixed(&mut self, key: &str, tokens: u64) {
        self.push(key, PieceKind::Fixed, Item::fixed(tokens));
    }

    /// Appends the output of a tool call as it is shown.
    pub fn push_result(&mut self, key: &str, output: Output, session: &Session) {
        let item = Item::new(output.born_tokens, size(&output.reference));
        let (object, shown, carries) = (output.object.clone(), output.shown.clone(), output.carries.clone());
        let is_large = output.born_tokens >= LARGE_READ;
        let place = self.push(key, PieceKind::Result(Box::new(output)), item);
        self.places.entry(object).or_default().push(place);
        if let Some(Carried { object, whole }) = carries {
            let earlier = self.carriers.entry(object).or_default();
            let covered = if whole { std::mem::take(earlier) } else { Vec::new() };
            earlier.push(place);
            for earlier in covered {
                self.pieces[earlier].superseded = true;
                self.judge(earlier, session);
            }
        }
        if let Some(lines) = shown {
            self.hold(place, lines, session);
            if !is_large {
                self.guarded.insert(place);
            }
        }
        self.judge(place, session);
    }

    /// Notes what a read shows; earlier reads whose lines it covers are superseded.
    fn hold(&mut self, place: usize, lines: ShownLines, session: &Session) {
        let ShownLines { file, hash, tx, first, last } = lines;
        let held = self.reads.entry(file).or_default();
        let pieces = &self.pieces;
        let covered: Vec<usize> = held
            .iter()
            .filter(|earlier| first <= earlier.first && earlier.last <= last)
            .map(|earlier| earlier.place)
            .filter(|place| !pieces[*place].superseded)
            .collect();
        held.push(HeldRead { place, hash, tx, first, last });
        for earlier in covered {
            self.pieces[earlier].superseded = true;
            self.guarded.remove(&earlier);
            self.judge(earlier, session);
        }
    }

    /// Appends the arguments of an answer's calls, where collapsing them saves something.
    pub fn push_arguments(&mut self, key: &str, arguments: Arguments) {
        let full = tokens::of_chars(arguments.units) as u64;
        let collapsed = tokens::of_chars(arguments.collapsed_units()) as u64;
        let ids: Vec<String> = arguments.calls.iter().map(|call| call.call_id.clone()).collect();
        let place = self.push(key, PieceKind::Arguments(arguments), Item::new(full, collapsed));
        self.awaiting.extend(ids.into_iter().map(|id| (id, place)));
    }

    /// Tells which object a call became, once its result is known: the markers of its collapsed arguments name that.
    pub fn answer(&mut self, call_id: &str, object: &ObjectId, handle: &str, cwd: &str) {
        let Some(place) = self.awaiting.get(call_id).copied() else { return };
        let PieceKind::Arguments(arguments) = &mut self.pieces[place].kind else { return };
        let mut waiting = arguments.calls.iter_mut().filter(|c| c.call_id == call_id && c.object.is_none());
        let Some(call) = waiting.next() else { return };
        call.object = Some(object.clone());
        if let Some(collapsed) = marker::collapse_args(&call.tool, &call.args, handle, cwd) {
            call.args = collapsed.args;
            call.saved = collapsed.saved_chars;
        }
        if waiting.next().is_none() {
            self.awaiting.remove(call_id);
        }
        self.ledger.retarget(place, tokens::of_chars(arguments.collapsed_units()) as u64);
        self.places.entry(object.clone()).or_default().push(place);
    }

    /// Looks again at the pieces of an object whose place in a set has changed.
    pub fn touch(&mut self, object: &ObjectId, session: &Session) {
        let places = [&self.places, &self.carriers].into_iter().filter_map(|all| all.get(object)).flatten();
        let reads = self.reads.get(object).into_iter().flatten().map(|read| &read.place);
        let all: Vec<usize> = places.chain(reads).copied().collect();
        for place in all {
            self.judge(place, session);
        }
    }

    /// A user's turn starts: what the last one needed is like everything older now.
    pub fn start_turn(&mut self, session: &Session) {
        let mut over: Vec<usize> = std::mem::take(&mut self.current).into_iter().collect();
        self.pointed_at.clear();
        self.brought_back.retain(|place, turns| {
            *turns -= 1;
            if *turns == 0 {
                over.push(*place);
            }
            *turns > 0
        });
        for place in over {
            self.judge(place, session);
        }
    }

    /// An object's output is needed in this user turn too.
    pub fn renew(&mut self, object: &ObjectId, session: &Session) {
        let places = [&self.places, &self.carriers].into_iter().filter_map(|all| all.get(object));
        let all: Vec<usize> = places.flatten().copied().collect();
        for place in all {
            self.current.insert(place);
            self.judge(place, session);
        }
    }

    /// An answer that is under way says that lines stand in the result of a call.
    pub fn point_to(&mut self, object: &ObjectId, session: &Session) {
        self.pointed_at.extend(self.places.get(object).into_iter().flatten());
        self.renew(object, session);
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
                PieceKind::Result(_) => result,
                // They were rolled together, so the last of their results brings them all.
                PieceKind::Arguments(all) if all.calls.iter().any(|call| call.object.is_none()) => Form::Born,
                PieceKind::Arguments(_) => arguments,
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

    /// Makes pieces whole again that a roll replaced. They stay so for as many user turns as an output stays active.
    pub fn undo(&mut self, roll: &Roll, turns: usize, session: &Session) {
        for place in &roll.items {
            self.brought_back.insert(*place, turns.max(1));
            let piece = &mut self.pieces[*place];
            piece.form = Form::Born;
            match &piece.kind {
                PieceKind::Result(output) => {
                    self.ledger.replace(*place, Item::new(output.born_tokens, size(&output.reference)));
                }
                _ => {
                    self.ledger.set_rolled(*place, false);
                }
            }
            self.judge(*place, session);
        }
    }

    /// Whether an object's text is in the request in full: not rolled, and not as an excerpt.
    pub fn shows_whole(&self, object: &ObjectId) -> bool {
        let is_born = |place: &&usize| self.pieces[**place].form == Form::Born;
        let own = self.places.get(object).into_iter().flatten().filter(is_born).any(|place| {
            matches!(&self.pieces[*place].kind, PieceKind::Result(output) if output.excerpts.born.is_none())
        });
        let carried = || {
            self.carriers.get(object).into_iter().flatten().filter(is_born).any(|place| {
                matches!(&self.pieces[*place].kind, PieceKind::Result(output)
                    if output.carries.as_ref().is_some_and(|carried| carried.whole))
            })
        };
        own || carried()
    }

    /// Whether the result of a call is in the request as it came.
    pub fn shows(&self, call: &ObjectId) -> bool {
        let places = self.places.get(call).into_iter().flatten();
        let mut born = places.filter(|place| self.pieces[**place].form == Form::Born);
        born.any(|place| self.output_at(*place).is_some())
    }

    /// Whether the arguments of an object's call are collapsed.
    pub fn hides_arguments(&self, object: &ObjectId) -> bool {
        self.places.get(object).into_iter().flatten().any(|place| {
            let Piece { kind, form, .. } = &self.pieces[*place];
            *form == Form::Reference && matches!(kind, PieceKind::Arguments(_))
        })
    }

    /// The tool call whose visible result shows these lines of this version of a file, under a name that the model sees.
    pub fn showing(&self, lines: &ShownLines) -> Option<&ObjectId> {
        self.visible_reads(&lines.file)
            .filter(|read| read.hash == lines.hash && read.first <= lines.first && lines.last <= read.last)
            .filter(|read| !self.pieces[read.place].superseded)
            .filter_map(|read| self.output_at(read.place))
            .find(|output| output.named)
            .map(|output| &output.object)
    }

    /// The versions of a file of which lines are visible, one for each result: the hash, and a transaction as of which
    /// the file is that version.
    pub fn held(&self, file: &ObjectId) -> impl Iterator<Item = (Digest, TxId)> {
        self.visible_reads(file).map(|read| (read.hash, read.tx))
    }

    /// The lines that a tool call's result showed when it came.
    pub fn lines_of(&self, object: &ObjectId) -> Option<&ShownLines> {
        self.places.get(object)?.iter().find_map(|place| self.output_at(*place)?.shown.as_ref())
    }

    /// Whether an object's output has a place in the request, in whatever form.
    pub fn knows(&self, object: &ObjectId) -> bool {
        self.places.get(object).into_iter().flatten().any(|place| self.output_at(*place).is_some())
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

    fn visible_reads(&self, file: &ObjectId) -> impl Iterator<Item = &HeldRead> {
        let held = self.reads.get(file).into_iter().flatten();
        held.filter(|read| self.pieces[read.place].form == Form::Born)
    }

    fn output_at(&self, place: usize) -> Option<&Output> {
        match &self.pieces.get(place)?.kind {
            PieceKind::Result(output) => Some(output),
            _ => None,
        }
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
    fn judge(&mut self, place: usize, session: &Session) {
        let piece = &self.pieces[place];
        let is_current = self.current.contains(&place);
        let is_brought_back = self.brought_back.contains_key(&place);
        let is_fresh = is_current || is_brought_back;
        let next = match &piece.kind {
            _ if is_brought_back => None,
            PieceKind::Fixed => None,
            PieceKind::Result(output) => {
                let pinned = |id: &ObjectId| session.sets.pinned().contains(id);
                let carried = output.carries.as_ref().map(|carried| &carried.object);
                let carries = carried.is_some_and(|id| !piece.superseded && !session.is_inactive(id));
                let held = session.keeps_whole(&output.object)
                    || carries
                    || output.shown.as_ref().is_some_and(|lines| pinned(&lines.file))
                    || (is_current && self.guarded.contains(&place))
                    || self.pointed_at.contains(&place);
                if held {
                    None
                } else if piece.superseded || session.is_inactive(&output.object) {
                    Some(Form::Reference)
                } else {
                    (!is_fresh).then_some(Form::Faded)
                }
            }
            PieceKind::Arguments(arguments) => {
                let pinned = |id: &ObjectId| session.sets.pinned().contains(id);
                let old = |id: &ObjectId| session.is_inactive(id) || !(is_fresh || pinned(id));
                let all = arguments.calls.iter().all(|call| call.object.as_ref().is_some_and(old));
                all.then_some(Form::Reference)
            }
        };
        let stale = next.is_some_and(|form| self.aim(place, form));
        self.ledger.set_stale(place, stale);
    }

    /// Sets what a roll makes of a piece; whether that is less than what is shown.
    fn aim(&mut self, place: usize, next: Form) -> bool {
        let piece = &mut self.pieces[place];
        if let PieceKind::Result(output) = &piece.kind {
            let text = match next {
                Form::Faded if piece.form == Form::Born => output.excerpts.faded.as_ref(),
                Form::Reference if piece.form != Form::Reference => Some(&output.reference),
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
        if let (Form::Faded, PieceKind::Result(output)) = (piece.form, &piece.kind)
            && let Output { excerpts: Excerpts { faded: Some(text), .. }, reference, .. } = &**output
        {
            self.ledger.replace(place, Item::new(size(text), size(reference)));
        }
    }
}

fn size(text: &str) -> u64 {
    tokens::estimate(text) as u64
}
