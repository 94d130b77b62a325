//! Questions with a name, which their answers repeat.
//!
//! Most answers of XTDB do not tell the question: a document names its object and not its version, a history not even its
//! object. A program in between may give the answer of a moment before, or the one to another machine's question. A query can
//! be given a random name that its rows must repeat. So whatever another endpoint has answered is confirmed by a query.

use std::collections::{HashMap, HashSet};

use context_model::id::ObjectId;
use context_model::time::Timestamp;
use serde_json::Value;

use super::edn::{Edn, quote};
use super::http::{Format, NodeAnswer, NodeRequest};
use super::inner::XtdbClient;
use super::random;
use super::read::{IDS_A_QUERY, known, valid_at};
use super::wire::{Coordinates, is_of};
use context_store::{AsOf, Result};

/// The results of a query, the variable or tuple that is one of the given values, and its clauses.
type Query<'a> = (&'a str, &'a str, &'a str);

impl XtdbClient {
    /// Fields of the documents at these coordinates, which hold at that point. `pattern` is a pull pattern with `:xt/id`.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` also if one of them does not hold then.
    pub(super) async fn pull(
        &self,
        placed: &[(ObjectId, Coordinates)],
        pattern: &str,
        at: AsOf,
    ) -> Result<Vec<(ObjectId, Value)>> {
        let found = self.pull_some(placed, pattern, at).await?;
        match placed.iter().find(|(id, _)| !found.contains_key(id)) {
            None => Ok(found.into_iter().collect()),
            Some((id, _)) => Err(self.nodes.foreign(id.as_str())),
        }
    }

    /// The same for those of them that hold at that point.
    pub(super) async fn pull_some(
        &self,
        placed: &[(ObjectId, Coordinates)],
        pattern: &str,
        at: AsOf,
    ) -> Result<HashMap<ObjectId, Value>> {
        let find = format!("e (pull e {pattern})");
        let args = placed
            .iter()
            .map(|(id, place)| format!("[{} #inst \"{}\"]", quote(id.as_str()), place.valid_time));
        let clauses = "[e :xt/id] [(get-start-valid-time e) since] [(<= since vt)]";
        let (answer, rows) = self.rows((&find, "[e vt]", clauses), args.collect(), at).await?;
        let mut asked: HashSet<&ObjectId> = placed.iter().map(|(id, _)| id).collect();
        let mut found = HashMap::with_capacity(rows.len());
        for row in rows {
            match row {
                Value::Array(mut row) if row.len() == 2 => {
                    let value = row[1].take();
                    let id = row[0].as_str().map(ObjectId::new);
                    let Some(id) = id.filter(|id| asked.remove(id) && is_of(&value, id.as_str())) else {
                        return Err(answer.strange("a document of something else"));
                    };
                    found.insert(id, value);
                }
                _ => return Err(answer.strange("a row of another length")),
            }
        }
        Ok(found)
    }

    /// From when on the documents of these objects hold that hold at a point of the two times, which may be earlier than the
    /// last version with that document; an object without one is left out.
    pub(super) async fn held(&self, ids: &[ObjectId], at: AsOf) -> Result<HashMap<ObjectId, Timestamp>> {
        let mut found = HashMap::new();
        for part in ids.chunks(IDS_A_QUERY) {
            let args = part.iter().map(|id| quote(id.as_str())).collect();
            let clauses = "[e :xt/id] [(get-start-valid-time e) vt]";
            let request = |name: &str| nested(("e vt", "e", clauses), args, name);
            let (answer, name) = self.ask(request, Format::Edn, at).await?;
            let edn = answer.edn()?;
            let row = edn.items().and_then(|rows| if let [row] = rows { row.items() } else { None });
            let rows = match row {
                Some([rows, said]) if *said == Edn::Text(name) => rows.items().unwrap_or_default(),
                _ => return Err(answer.strange("the answer to another question")),
            };
            for row in rows {
                let pair = match row.items() {
                    Some([Edn::Text(id), time]) => time.time().map(|time| (ObjectId::new(id.as_str()), time)),
                    _ => None,
                };
                let (id, time) = pair.ok_or_else(|| answer.strange("a row of another kind"))?;
                found.insert(id, time);
            }
        }
        Ok(found)
    }

    /// The content hashes of the latest versions of those objects that the database has.
    pub(super) async fn content_hashes(&self, ids: &[ObjectId]) -> Result<HashMap<ObjectId, Value>> {
        let query = ("e h", "e", "[e :content_hash h]");
        let (answer, rows) = self.datalog(query, ids.iter().map(ObjectId::as_str), AsOf::default()).await?;
        let asked: HashSet<&str> = ids.iter().map(ObjectId::as_str).collect();
        let pair = |mut row: Value| {
            let id = row.get(0).and_then(Value::as_str).filter(|id| asked.contains(id)).map(ObjectId::new);
            id.map(|id| (id, row[1].take())).ok_or_else(|| answer.strange("a row about something else"))
        };
        rows.into_iter().map(pair).collect()
    }

    /// The rows that a query finds, given texts that its variable may be.
    pub(super) async fn datalog(
        &self,
        query: Query<'_>,
        texts: impl Iterator<Item = &str>,
        at: AsOf,
    ) -> Result<(NodeAnswer, Vec<Value>)> {
        self.rows(query, texts.map(quote).collect(), at).await
    }

    /// The same, given values in EDN.
    pub(super) async fn rows(
        &self,
        (find, variable, clauses): Query<'_>,
        values: Vec<String>,
        at: AsOf,
    ) -> Result<(NodeAnswer, Vec<Value>)> {
        let query = text(&format!("{find} name"), &format!("{} name", bound(variable)), clauses);
        let request =
            |name: &str| format!("{{:query {query} :in-args [[{}] {}]}}", values.join(" "), quote(name));
        let (answer, name) = self.ask(request, Format::Json, at).await?;
        let Value::Array(mut rows) = answer.json()? else { return Err(answer.strange("no list of rows")) };
        let mut is_answered =
            |row: &mut Value| row.as_array_mut().and_then(Vec::pop).is_some_and(|said| said == *name);
        if !rows.iter_mut().all(&mut is_answered) {
            return Err(answer.strange("the answer to another question"));
        }
        if !rows.is_empty() {
            return Ok((answer, rows));
        }
        // No row says to which question there are none.
        let request = |name: &str| nested((find, variable, clauses), values, name);
        let (answer, name) = self.ask(request, Format::Json, at).await?;
        match answer.json()? {
            Value::Array(mut all) if all.len() == 1 && all[0][1] == *name => match all[0][0].take() {
                Value::Null => Ok((answer, Vec::new())),
                Value::Array(rows) => Ok((answer, rows)),
                _ => Err(answer.strange("no list of rows")),
            },
            _ => Err(answer.strange("the answer to another question")),
        }
    }

    /// The answer to a question, given its text for a name, and the name.
    async fn ask(
        &self,
        question: impl FnOnce(&str) -> String,
        accept: Format,
        at: AsOf,
    ) -> Result<(NodeAnswer, String)> {
        let name = name()?;
        let request = NodeRequest::post("query", accept, Format::Edn, question(&name));
        let bare = valid_at(self.after_known(request), at.valid_time);
        let mut answer = self.nodes.send(&known(bare.clone(), at.known)).await?;
        if answer.is_out_of_sync() {
            // The bound is later than the newest transaction, so it doesn't limit anything.
            answer = self.nodes.send(&bare).await?;
        }
        Ok((answer, name))
    }
}

/// A random name of a question.
///
/// # Errors
/// `STORE_UNAVAILABLE` if the system has no random numbers.
pub(super) fn name() -> Result<String> {
    Ok(format!("question:{:016x}", random::word()?))
}

/// A query whose answer is a single row: the rows of this one, and its name.
fn nested((find, variable, clauses): Query<'_>, values: Vec<String>, name: &str) -> String {
    let inner = text(find, &bound(variable), clauses);
    let query = text("rows name", "values name", &format!("[(q {inner} values) rows]"));
    format!("{{:query {query} :in-args [[{}] {}]}}", values.join(" "), quote(name))
}

/// The binding of a variable, or of a tuple of them, to one of several values.
fn bound(variable: &str) -> String {
    if variable.starts_with('[') { format!("[{variable}]") } else { format!("[{variable} ...]") }
}

fn text(find: &str, inputs: &str, clauses: &str) -> String {
    let clauses = if clauses.is_empty() { String::new() } else { format!(" :where [{clauses}]") };
    format!("{{:find [{find}] :in [{inputs}]{clauses}}}")
}
