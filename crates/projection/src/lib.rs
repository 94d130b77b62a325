//! When does replacing old text by a reference pay? The rule is **rent = price**.
//!
//! Providers bill a prompt by its longest cached prefix: a token inside costs `r` (about a tenth of a fresh one), a token
//! after the first changed byte costs `w`. So text that is no longer needed costs rent at every call, and removing it costs
//! a price once, because everything after it has to be written again.
//!
//! - **Rent.** At each model call every stale, visible item that the model has seen pays
//!   `(n - ref) * r` into its own account (`n` its tokens, `ref` the tokens of the reference that would
//!   replace it).
//! - **Price.** A roll at a cut costs `C = (tokens after the cut that stay and are cached) * (w - r)`.
//! - **Rule.** With `R` the accounts at or after the cut, roll when `R >= C`, at the cut with the largest
//!   `R - C`, and empty the accounts of what was rolled.
//!
//! It has no horizon, no batch size and no guess at the session's length. If items become stale at a steady rate, it is the
//! economic order quantity (F. W. Harris, "How many parts to make at once",
//! *Factory, The Magazine of Management* 10, 1913): holding cost equals ordering cost at the optimum. Against
//! an unknown future it is ski rental (Karlin, Manasse, Rudolph and Sleator, "Competitive snoopy caching",
//! *Algorithmica* 3, 1988), and with many items that share one price it is the acknowledgment problem of
//! Dooly, Goldman and Scott ("On-line analysis of the TCP acknowledgment delay problem", *Journal of the ACM*
//! 48, 2001): acknowledge when the collected delay equals the cost of one acknowledgment.
//!
//! Two bounds follow from the rule. The total cost of rolls never exceeds the rent that the rolled text has paid before, so a
//! session costs at most what it would have cost without rolls, plus that rent. And the rent that is still outstanding is
//! less than the cost of writing the current context once.
//!
//! ```
//! use context_projection::{Item, Ledger, Policy, Prices};
//!
//! // A cached token costs a tenth of a fresh one, and writing one to the cache costs 1.25.
//! let policy = Policy::new(Prices::new(0.1, 1.25));
//! let mut ledger = Ledger::new(2_000);
//! let output = ledger.push(Item::new(10_000, 20));
//! ledger.push(Item::new(1_000, 20));
//! ledger.charge_call(&policy);
//!
//! // Stale, its 9,980 tokens pay 998 at each call; removing them has 1,000 tokens and a reference written again.
//! ledger.set_stale(output, true);
//! let mut calls = 0;
//! while ledger.decide(&policy).is_none() {
//!     ledger.charge_call(&policy);
//!     calls += 1;
//! }
//! assert_eq!(calls, 2);
//! ```
//!
//! All of this is a function of its arguments, in units of one fresh input token, and works on plain numbers. [`request`]
//! applies it to the segments of a request; of the session it knows what [`Objects`] says.
#![warn(unreachable_pub)]

mod bound;
mod clock;
mod decide;
mod held;
mod items;
mod ledger;
mod limits;
mod need;
mod objects;
mod policy;
mod prices;
mod provider;
mod reasoning;
pub mod request;
mod roll;
mod spending;

pub use clock::{CacheClock, Moment};
pub use held::{Because, Chance, HeldBack};
pub use items::Item;
pub use ledger::{Charge, Ledger};
pub use limits::{DEBT_CAP, LONG_SLACK, SLACK, TIMES, TIMES_IN_TURN};
pub use need::{Curve, DEAD_CACHE, Need, Stay, Stays};
pub use objects::Objects;
pub use policy::Policy;
pub use prices::{PriceStep, PriceSteps, Prices};
pub use provider::{Binding, Reach};
pub use request::messages::Accounting;
pub use roll::Roll;
