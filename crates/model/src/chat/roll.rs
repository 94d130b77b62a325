//! A roll and its receipt, as its turn records them and a user sees them.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::fields::{list, texts};
use crate::id::ObjectId;

/// A roll as recorded in its turn, so that a resumed session shows the same as before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RollEntry {
    /// Calls whose results became references.
    pub results: Vec<ObjectId>,
    /// Calls whose arguments were collapsed.
    pub arguments: Vec<ObjectId>,
    /// Edits whose old text was left out.
    pub old_texts: Vec<ObjectId>,
    /// Reasoning that left, and prose and users' texts that were shortened, by the [`said_id`](super::said_id) of each,
    /// [`numbered`] where equal ones came before it.
    pub prose: Vec<String>,
    /// Answers that became lines after the last result of an earlier answer: the first call of that answer, and the first
    /// call of each.
    pub call_digests: Vec<Vec<ObjectId>>,
    /// Calls after whose references only the lines of calls that changed something have stayed.
    pub lines: Vec<ObjectId>,
    /// Those calls, among the ones whose results became references, whose file had other bytes by then.
    pub changed: Vec<ObjectId>,
    /// Calls whose large results were sent whole, because nothing could be cut when they came.
    pub whole: Vec<ObjectId>,
    /// The receipt for the removed text and its cost; `None` if it only undoes another one.
    pub receipt: Option<RollReceipt>,
    /// The reasoning behind the change also left, because the provider binds it to the text before it.
    pub bound: bool,
    /// True if this undoes the latest roll, so that everything listed is shown as before that.
    pub undone: bool,
    /// The costs up to this change; `None` in records of earlier versions.
    pub spending: Option<Spending>,
    /// True if it is the beginning of another conversation in the same session: no roll before it is of the messages after it.
    pub anew: bool,
}

/// The costs of a conversation up to a change of its request, and the answers whose requests the provider can still have cached. A later
/// process prices and limits rolls by them (docs/economics.md). In estimated tokens; costs at the price of fresh input.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spending {
    /// The conversation's answers by then.
    pub answers: u64,
    /// Those of them whose requests end before the change. The provider has cached no later request as it is since then.
    pub kept: u64,
    /// The cost of the client's own requests, had nothing left them.
    pub untouched: f64,
    /// The cost of all rolls, this one included, less what the text that left has saved since. Negative once they have paid.
    pub debt: f64,
    /// Tokens by which the request is shorter than it came, this change included.
    pub removed: i64,
    /// The request with the change was decided on a dead cache: its call reads nothing from it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dead: bool,
}

impl RollEntry {
    pub(super) fn of(entry: &Value) -> Self {
        let ids = |name| texts(entry, name).map(ObjectId::new).collect();
        Self {
            results: ids("results"),
            arguments: ids("arguments"),
            old_texts: ids("old_texts"),
            prose: texts(entry, "words").map(str::to_owned).collect(),
            call_digests: list(entry, "pages")
                .map(|call_digest| {
                    let ids = call_digest.as_array().into_iter().flatten();
                    ids.filter_map(Value::as_str).map(ObjectId::new).collect()
                })
                .collect(),
            lines: ids("lines"),
            changed: ids("changed"),
            whole: ids("whole"),
            receipt: entry.get("receipt").and_then(|receipt| serde_json::from_value(receipt.clone()).ok()),
            bound: entry.get("bound") == Some(&Value::Bool(true)),
            undone: entry.get("undone") == Some(&Value::Bool(true)),
            spending: entry.get("spending").and_then(|spending| Spending::deserialize(spending).ok()),
            anew: entry.get("anew") == Some(&Value::Bool(true)),
        }
    }

    /// The roll without these calls and texts, the latter by their [`said_id`](super::said_id)s; `None` if nothing is left.
    pub(super) fn without(&self, calls: &HashSet<&str>, texts: &HashSet<String>) -> Option<Self> {
        let rest = |ids: &[ObjectId]| -> Vec<ObjectId> {
            ids.iter().filter(|id| !calls.contains(id.as_str())).cloned().collect()
        };
        let call_digests = self
            .call_digests
            .iter()
            .map(|call_digest| rest(call_digest))
            .filter(|call_digest| call_digest.len() > 1);
        let left = Self {
            results: rest(&self.results),
            arguments: rest(&self.arguments),
            old_texts: rest(&self.old_texts),
            prose: self.prose.iter().filter(|name| !texts.contains(id_in(name))).cloned().collect(),
            call_digests: call_digests.collect(),
            lines: rest(&self.lines),
            changed: rest(&self.changed),
            whole: rest(&self.whole),
            ..Self::default()
        };
        let has_any = left != Self::default();
        has_any.then(|| Self {
            receipt: self.receipt.clone(),
            bound: self.bound,
            undone: self.undone,
            spending: self.spending,
            ..left
        })
    }

    pub(super) fn to_json(&self) -> Value {
        let Self {
            results,
            arguments,
            old_texts,
            prose,
            call_digests,
            lines,
            changed,
            whole,
            receipt,
            bound,
            undone,
            spending,
            anew,
        } = self;
        let mut entry = json!({ "results": results, "excerpts": [], "arguments": arguments });
        let others = [
            ("old_texts", json!(old_texts)),
            ("words", json!(prose)),
            ("pages", json!(call_digests)),
            ("lines", json!(lines)),
            ("changed", json!(changed)),
            ("whole", json!(whole)),
        ];
        for (name, list) in others {
            if list != json!([]) {
                entry[name] = list;
            }
        }
        if let Some(receipt) = receipt {
            entry["receipt"] = json!(receipt);
        }
        if *bound {
            entry["bound"] = Value::Bool(true);
        }
        if *undone {
            entry["undone"] = Value::Bool(true);
        }
        if let Some(spending) = spending {
            entry["spending"] = json!(spending);
        }
        if *anew {
            entry["anew"] = Value::Bool(true);
        }
        entry
    }
}

/// Why a roll happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RollReason {
    /// Nothing after the cut is cached, so changing it costs nothing.
    Free,
    /// The rent that was paid has reached the price.
    Pays,
    /// The context fills the window beyond the soft threshold, which lowers the required price.
    Pressure,
    /// The context fills the window beyond the hard threshold.
    Hard,
    /// A user or a program asked for it.
    Asked,
}

/// The receipt of a roll: what it removed, what it cost, and when it has paid for itself. For the user and never for
/// the chat, because a price in the transcript would be text that changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RollReceipt {
    /// The number of items replaced with references.
    pub items: usize,
    /// Blocks of reasoning that were not stale but depended on what changed: they also left, or the provider drops them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning_lost: usize,
    /// Those of them that belonged to the turn in which the roll happened.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning_lost_running: usize,
    /// Tokens that left the request.
    pub removed_tokens: u64,
    /// The cost, paid once, in fresh input tokens.
    pub cost: f64,
    /// The saving of each later call, in fresh input tokens.
    pub gain: f64,
    /// Model calls until it has paid for itself; 0 if it was free, `None` if it never does.
    pub pays_back_after_calls: Option<u32>,
    /// Why it happened.
    pub reason: RollReason,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl fmt::Display for RollReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.items == 1 { "" } else { "s" };
        write!(f, "{} item{plural}, -{} tokens", self.items, self.removed_tokens)?;
        match self.reasoning_lost {
            0 => {}
            1 => f.write_str(", reasoning of 1 step lost")?,
            steps => write!(f, ", reasoning of {steps} steps lost")?,
        }
        if self.cost <= 0.0 {
            return f.write_str(", free");
        }
        write!(f, ", cost {:.0} input tokens", self.cost)?;
        match self.pays_back_after_calls {
            Some(1) => f.write_str(", pays back in 1 call"),
            Some(calls) => write!(f, ", pays back in {calls} calls"),
            None => f.write_str(", does not pay back"),
        }
    }
}

/// The name of one of several equal texts in the record of a roll: its [`said_id`](super::said_id), with the number of those before
/// it unless that is 0.
#[must_use]
pub fn numbered(id: &str, earlier: usize) -> String {
    if earlier == 0 { id.to_owned() } else { format!("{id}~{earlier}") }
}

/// The ID in a name.
fn id_in(name: &str) -> &str {
    name.split_once('~').map_or(name, |(id, _)| id)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(
        12,
        61_000,
        9_000.4,
        Some(7),
        0,
        "12 items, -61000 tokens, cost 9000 input tokens, pays back in 7 calls"
    )]
    #[case(1, 900, 80.0, Some(1), 0, "1 item, -900 tokens, cost 80 input tokens, pays back in 1 call")]
    #[case(3, 900, 0.0, Some(0), 0, "3 items, -900 tokens, free")]
    #[case(3, 900, 5.0, None, 0, "3 items, -900 tokens, cost 5 input tokens, does not pay back")]
    #[case(
        3,
        900,
        5.0,
        Some(1),
        1,
        "3 items, -900 tokens, reasoning of 1 step lost, cost 5 input tokens, pays back in 1 call"
    )]
    #[case(3, 900, 0.0, Some(0), 14, "3 items, -900 tokens, reasoning of 14 steps lost, free")]
    fn receipt_reads_as_a_sentence(
        #[case] items: usize,
        #[case] removed_tokens: u64,
        #[case] cost: f64,
        #[case] pays_back_after_calls: Option<u32>,
        #[case] reasoning_lost: usize,
        #[case] sentence: &str,
    ) {
        let receipt = RollReceipt {
            items,
            reasoning_lost,
            reasoning_lost_running: 0,
            removed_tokens,
            cost,
            gain: 1.0,
            pays_back_after_calls,
            reason: RollReason::Pays,
        };
        assert_eq!(receipt.to_string(), sentence);
    }

    #[test]
    fn roll_without_a_text_names_none_of_several_equal_ones() {
        let prose = vec![numbered("a", 0), numbered("b", 0), numbered("a", 1)];
        let roll = RollEntry { prose, ..RollEntry::default() };
        let left = roll.without(&HashSet::new(), &HashSet::from(["a".to_owned()])).unwrap();
        assert_eq!(left.prose, ["b"]);
    }
}
