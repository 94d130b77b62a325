//! A roll, as its turn records it.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::Receipt;
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
    /// Reasoning that left, and prose and users' texts that were shortened, by the [`said_id`](super::said_id) of each.
    pub words: Vec<String>,
    /// Answers that became lines after the last result of an earlier answer: the first call of that answer, and the first
    /// call of each.
    pub pages: Vec<Vec<ObjectId>>,
    /// Calls after whose references only the lines of calls that changed something have stayed.
    pub lines: Vec<ObjectId>,
    /// Of the calls whose results became references, those whose file had other bytes by then.
    pub changed: Vec<ObjectId>,
    /// What the roll removed and cost; `None` if it only undoes another one.
    pub receipt: Option<Receipt>,
    /// The reasoning behind what changed left, too, because the provider binds it to what comes before it.
    pub bound: bool,
    /// True if this undoes the latest roll, so that everything listed is shown as before that.
    pub undone: bool,
}

impl RollEntry {
    pub(super) fn of(entry: &Value) -> Self {
        let ids = |name| texts(entry, name).map(ObjectId::new).collect();
        Self {
            results: ids("results"),
            arguments: ids("arguments"),
            old_texts: ids("old_texts"),
            words: texts(entry, "words").map(str::to_owned).collect(),
            pages: list(entry, "pages")
                .map(|page| {
                    let ids = page.as_array().into_iter().flatten();
                    ids.filter_map(Value::as_str).map(ObjectId::new).collect()
                })
                .collect(),
            lines: ids("lines"),
            changed: ids("changed"),
            receipt: entry.get("receipt").and_then(|receipt| serde_json::from_value(receipt.clone()).ok()),
            bound: entry.get("bound") == Some(&Value::Bool(true)),
            undone: entry.get("undone") == Some(&Value::Bool(true)),
        }
    }

    /// The roll without these calls and texts, the latter by their [`said_id`](super::said_id)s; `None` if nothing is left.
    pub(super) fn without(&self, calls: &HashSet<&str>, texts: &HashSet<String>) -> Option<Self> {
        let rest = |ids: &[ObjectId]| -> Vec<ObjectId> {
            ids.iter().filter(|id| !calls.contains(id.as_str())).cloned().collect()
        };
        let pages = self.pages.iter().map(|page| rest(page)).filter(|page| page.len() > 1);
        let left = Self {
            results: rest(&self.results),
            arguments: rest(&self.arguments),
            old_texts: rest(&self.old_texts),
            words: self.words.iter().filter(|id| !texts.contains(*id)).cloned().collect(),
            pages: pages.collect(),
            lines: rest(&self.lines),
            changed: rest(&self.changed),
            ..Self::default()
        };
        let has_any = left != Self::default();
        has_any.then(|| Self {
            receipt: self.receipt.clone(),
            bound: self.bound,
            undone: self.undone,
            ..left
        })
    }

    pub(super) fn to_json(&self) -> Value {
        let Self { results, arguments, old_texts, words, pages, lines, changed, receipt, bound, undone } =
            self;
        let mut entry = json!({ "results": results, "excerpts": [], "arguments": arguments });
        let others = [
            ("old_texts", json!(old_texts)),
            ("words", json!(words)),
            ("pages", json!(pages)),
            ("lines", json!(lines)),
            ("changed", json!(changed)),
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
        entry
    }
}
