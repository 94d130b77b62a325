//! The sequence of a request's items, and the rent that each stale item has paid.

use std::collections::BTreeMap;

use super::items::{Fenwick, Item};
use super::policy::Policy;
use super::prices::Prices;
use super::provider::Reach;
use super::reasoning::Reasoning;

/// The tokens that one model call read from the cache, and those that it sent fresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Charge {
    /// Tokens of the longest cached prefix.
    pub read_tokens: u64,
    /// Tokens after it.
    pub written_tokens: u64,
}

impl Charge {
    /// Returns the cost of the call, in fresh input tokens, without the tokens of the answer.
    pub fn cost(&self, prices: &Prices) -> f64 {
        self.read_tokens as f64 * prices.read + self.written_tokens as f64 * prices.write
    }
}

/// The items that the request shows, in order, and which parts of it are stale.
///
/// Items are only appended. Two watermarks say how far the model has seen them and how far the provider has cached them, so
/// the time of a call depends on what is new since the last one and not on the history: `push` and `replace`
/// take O(log n), `charge_call` O(new items), `decide` O(stale items * log n).
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    pub(super) system_tokens: u64,
    system_cached: bool,
    /// The size of the system part is only a guess, and nothing is concluded from it.
    system_guessed: bool,
    items: Vec<Item>,
    /// Tokens as now shown.
    pub(super) tokens: Fenwick,
    /// `blocks[i]` is the number of blocks before item `i`; one entry more than there are items.
    blocks: Vec<u64>,
    /// Items before this place have been in a request.
    shown: usize,
    /// Items before this place are as the last request had them.
    pub(super) cached: usize,
    /// The places, ascending, at which those requests ended that are still a prefix of what is shown.
    pub(super) ends: Vec<usize>,
    /// Stale, visible items and the rent that each has paid.
    pub(super) stale: BTreeMap<usize, Account>,
    stale_tokens: u64,
    /// Model calls so far.
    pub(super) calls: u64,
    /// The cost of these calls, in fresh input tokens, without the answers.
    pub(super) spent: f64,
    /// The cost of all rolls, less what the removed text has saved since. Negative once they have paid.
    pub(super) debt: f64,
    /// The cost of rolls that no call has been charged for yet.
    pub(super) unspent: f64,
    /// Tokens by which rolls have shortened the request, as it is now.
    pub(super) removed: i64,
    /// The reasoning that is shown.
    pub(super) reasoning: Reasoning,
    /// The contents are being rebuilt from a transcript. What changes meanwhile takes the form in which it was last sent.
    is_rebuilding: bool,
    /// Sum of the cached-read prices of all calls. An account is the item's saving times the advance of this clock, so a call
    /// need not visit the accounts.
    pub(super) clock: f64,
    /// The sums after each call since the contents were rebuilt, or else since the first.
    pub(super) charged: Vec<Charged>,
}

/// The sums of a ledger after one of its calls.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Charged {
    pub clock: f64,
    pub spent: f64,
    /// The number of items in its request.
    pub end: usize,
    /// The call's cost if it had found nothing cached.
    pub fresh: f64,
    /// The price of a token that it would have written then.
    pub write: f64,
}

/// The rent that a stale item pays.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    /// Rent paid before `since`.
    paid: f64,
    /// The value of the rent clock from which on it pays for its present saving.
    since: f64,
}

impl Ledger {
    /// An empty ledger after a system part (prompt and tool declarations) of this many tokens.
    pub fn new(system_tokens: u64) -> Self {
        Self { system_tokens, ..Self::default() }
    }

    /// Replaces the size of the system part. A changed system part leaves nothing of the request cached.
    pub fn set_system_tokens(&mut self, tokens: u64) {
        if std::mem::take(&mut self.system_guessed) {
            self.system_tokens = tokens;
        }
        if tokens != self.system_tokens {
            self.system_tokens = tokens;
            self.system_cached = false;
            self.break_at(0);
        }
    }

    /// Sets the size of the system part to the last known value. If it turns out to be different, that does not count as a
    /// change.
    pub fn guess_system_tokens(&mut self, tokens: u64) {
        self.system_tokens = tokens;
        self.system_guessed = true;
    }

    /// Appends an item and returns its place.
    pub fn push(&mut self, item: Item) -> usize {
        let place = self.items.len();
        if self.blocks.is_empty() {
            self.blocks.push(0);
        }
        self.blocks.push(self.blocks[place] + u64::from(item.blocks));
        self.tokens.push(item.tokens_full);
        self.items.push(item);
        place
    }

    /// Sets whether an item is stale. A stale one pays rent from the first call after the one that shows it; one that is needed
    /// again loses its account. Returns true if that changed anything: an item that is fixed, unknown or no larger
    /// than its reference is never stale.
    pub fn set_stale(&mut self, place: usize, stale: bool) -> bool {
        let Some(item) = self.items.get(place) else { return false };
        let saving = item.saving();
        if !stale {
            let was = self.stale.remove(&place).is_some();
            self.stale_tokens -= if was { saving } else { 0 };
            return was;
        }
        if saving == 0 || self.stale.contains_key(&place) {
            return false;
        }
        self.stale.insert(place, Account { paid: 0.0, since: self.clock });
        self.stale_tokens += saving;
        true
    }

    /// Makes an item stale that has been so since a number of calls, counted from the first one since the contents were rebuilt: it
    /// has paid since then, also where no roll was allowed and so none was asked for. If there are not as many, it begins now.
    pub fn set_stale_since(&mut self, place: usize, calls: u64) {
        if !self.set_stale(place, true) {
            return;
        }
        let last = usize::try_from(calls).unwrap_or(usize::MAX).checked_sub(1);
        let since = last.and_then(|last| self.charged.get(last));
        if let (Some(since), Some(account)) = (since, self.stale.get_mut(&place)) {
            account.since = since.clock;
        }
    }

    /// Accounts for one model call with the current request: stale items that were shown before pay their rent, and everything
    /// counts as shown and cached from now on. Returns what the call read and wrote.
    pub fn charge_call(&mut self, policy: &Policy) -> Charge {
        let read = self.cached_tokens(policy);
        let charge = Charge { read_tokens: read, written_tokens: self.total_tokens() - read };

        let factor = policy.price_steps.factor_at(self.total_tokens());
        let price = if policy.cache_dead { policy.prices.write } else { policy.prices.read };
        self.calls += 1;
        self.spent += charge.cost(&policy.prices) * factor;
        self.unspent = 0.0;
        self.debt -= self.removed as f64 * price * factor;
        self.clock += policy.prices.read * factor;
        let write = policy.prices.write * factor;
        self.charged.push(Charged {
            clock: self.clock,
            spent: self.spent,
            end: self.items.len(),
            fresh: self.total_tokens() as f64 * write,
            write,
        });
        for account in self.stale.range_mut(self.shown..).map(|(_, account)| account) {
            account.since = self.clock;
        }
        if policy.cache_dead {
            self.ends.clear();
        }
        self.shown = self.items.len();
        self.cached = self.items.len();
        self.system_cached = true;
        if self.ends.last() != Some(&self.cached) {
            self.ends.push(self.cached);
        }
        charge
    }

    /// Changes the reference that would replace an item in a roll. The rent that it has paid stays paid.
    pub fn retarget(&mut self, place: usize, tokens_ref: u64) {
        let Some(item) = self.items.get_mut(place) else { return };
        if item.tokens_ref == tokens_ref {
            return;
        }
        let before = item.saving();
        item.tokens_ref = tokens_ref;
        let saving = item.saving();
        if let Some(account) = self.stale.get_mut(&place) {
            account.paid += before as f64 * (self.clock - account.since);
            account.since = self.clock;
            self.stale_tokens = self.stale_tokens - before + saving;
        }
        if saving == 0 {
            self.stale.remove(&place);
        }
    }

    /// Replaces an item with another one that is not stale: with its reference in a roll, with the earlier item when that is
    /// undone. If its size differs from the size shown there, nothing from there on is cached any more.
    pub fn replace(&mut self, place: usize, item: Item) {
        self.set_stale(place, false);
        let Some(shown) = self.items.get_mut(place) else { return };
        let before = std::mem::replace(shown, item).tokens_full;
        if item.tokens_full != before {
            self.tokens.replace(place, before, item.tokens_full);
            self.note_size(place, before, item.tokens_full);
        }
        if item.tokens_full == 0 {
            self.reasoning.forget(place);
        }
    }

    /// An item is another size than in the last request, so nothing from there on is cached.
    fn note_size(&mut self, place: usize, before: u64, now: u64) {
        self.removed += before.cast_signed() - now.cast_signed();
        if !self.is_rebuilding {
            self.break_at(place);
        }
    }

    /// Another program changed the request from this place on, so nothing at or after it is cached.
    pub fn break_at(&mut self, place: usize) {
        self.cached = self.cached.min(place);
        while self.ends.last().is_some_and(|end| *end > place) {
            self.ends.pop();
        }
    }

    /// The contents are rebuilt from a transcript until [`Ledger::assume_shown`].
    pub fn rebuild(&mut self) {
        self.is_rebuilding = true;
    }

    /// Notes that the contents were rebuilt from a transcript: they have been in requests, and stale ones have paid their rent
    /// there. The provider may still have the first `unchanged` items cached, up to the last answer; if there are none, it does
    /// not have the system part either.
    pub fn assume_shown(&mut self, unchanged: usize) {
        self.is_rebuilding = false;
        if unchanged == 0 {
            self.shown = self.items.len();
            self.system_cached = false;
        }
        self.break_at(unchanged);
    }

    /// True if rolls have made the request shorter than it came.
    pub fn is_shortened(&self) -> bool {
        self.removed > 0
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// True if there are no items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The item at a place.
    pub fn item(&self, place: usize) -> Option<&Item> {
        self.items.get(place)
    }

    /// Tokens of the whole request as it would be sent now, including the system part.
    pub fn total_tokens(&self) -> u64 {
        self.system_tokens + self.tokens.prefix(self.tokens.len())
    }

    /// Tokens of the next request, including the system part, that the provider has in its cache.
    pub fn cached_tokens(&self, policy: &Policy) -> u64 {
        if policy.cache_dead {
            return 0;
        }
        let hit = self.hit(policy.reach);
        let has_system = self.system_cached && (hit > 0 || policy.reach.marks_system());
        self.tokens.prefix(hit) + if has_system { self.system_tokens } else { 0 }
    }

    /// Tokens that a roll of everything stale would remove.
    pub fn stale_tokens(&self) -> u64 {
        self.stale_tokens
    }

    /// Stale items that a roll may take, from the last to the first: place, tokens saved, rent paid.
    pub(super) fn rollable(&self) -> impl Iterator<Item = (usize, u64, f64)> + '_ {
        let shown = self.stale.range(..self.shown).rev();
        shown.map(|(at, account)| (*at, self.items[*at].saving(), self.paid(*at, *account)))
    }

    /// The place up to which the provider would find the current request in its cache.
    pub(super) fn hit(&self, reach: Reach) -> usize {
        // A request that only grew counts as a hit, no matter how much it grew.
        let grew = self.cached == self.shown && self.ends.last() == Some(&self.cached);
        if grew { self.cached } else { self.hit_before(self.cached, reach) }
    }

    /// The place up to which the provider would find the request in its cache if it were changed at `cut`.
    pub(super) fn hit_before(&self, cut: usize, reach: Reach) -> usize {
        let same = cut.min(self.cached);
        let count = self.ends.partition_point(|end| *end <= same);
        let end = count.checked_sub(1).map_or(0, |last| self.ends[last]);
        let (behind, most) = match reach {
            Reach::AnyPrefix => return same,
            Reach::Blocks(most) => {
                let all = self.blocks.last().copied().unwrap_or(0);
                (all - self.blocks.get(end).copied().unwrap_or(0), most)
            }
            // The next request ends once more.
            Reach::Endings(most) => ((self.ends.len() - count) as u64 + 1, most),
        };
        if behind <= u64::from(most) { end } else { 0 }
    }

    /// Tokens of an item as it is shown.
    pub(super) fn tokens_at(&self, place: usize) -> u64 {
        self.items.get(place).map_or(0, |item| item.tokens_full)
    }

    /// Returns the average number of tokens that a model call adds.
    pub(super) fn growth(&self) -> f64 {
        let added = self.tokens.prefix(self.tokens.len()) as f64 + self.removed.max(0) as f64;
        (added / self.calls.max(1) as f64).max(1.0)
    }

    fn paid(&self, place: usize, account: Account) -> f64 {
        account.paid + self.items[place].saving() as f64 * (self.clock - account.since)
    }
}
