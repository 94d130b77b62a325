//! A node of XTDB as far as a queued store needs one: it keeps its transactions in memory, and each machine has a separate port
//! to it, which can be away, slow, or lose answers.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use context_model::time::Timestamp;
use serde_json::{Value, json};

#[path = "node_between.rs"]
mod node_between;
#[path = "node_port.rs"]
mod node_port;
#[path = "node_text.rs"]
mod node_text;

#[allow(unused_imports, reason = "the tests of the store use the rest, which have this node, too")]
pub use node_port::{Behind, Port, Question, Said, Way};
use node_text::{hash, plain, strings};

/// The database.
#[derive(Default)]
pub struct Node {
    data: Mutex<Data>,
    /// The number of bytes of transactions that it was sent.
    sent: AtomicUsize,
    /// The number of bytes that it has answered, and of requests.
    answered: AtomicUsize,
    requests: AtomicUsize,
}

#[derive(Default)]
struct Data {
    transactions: Vec<Tx>,
    puts: Vec<Put>,
    /// The lead of its clock, in milliseconds.
    ahead: i64,
    /// The number of versions that it has walked through from the newest on.
    walked: usize,
}

struct Tx {
    time: Timestamp,
    is_committed: bool,
    written: Vec<String>,
    /// The conditions about writers' marks. A node keeps all of them; a store reads these.
    matches: Vec<Value>,
}

struct Put {
    id: String,
    tx: usize,
    valid: Timestamp,
    document: Value,
}

/// A status and a body.
type Answer = (u16, String);

impl Node {
    /// Returns the latest version.
    pub fn latest(&self, id: &str) -> Option<Value> {
        let data = self.data.lock().unwrap();
        data.at(id, Timestamp::from_millis(i64::MAX), usize::MAX).map(|put| put.document.clone())
    }

    /// Returns the bytes of transactions that it was sent, and of those that it has answered, since the last call of this.
    #[allow(dead_code, reason = "the tests of the store ask, which have this node, too")]
    pub fn traffic(&self) -> (usize, usize) {
        (self.sent.swap(0, Ordering::Relaxed), self.answered.swap(0, Ordering::Relaxed))
    }

    /// Lets time pass for its clock.
    #[allow(dead_code, reason = "the tests of the store ask, which have this node, too")]
    pub fn pass(&self, time: Duration) {
        self.data.lock().unwrap().ahead += i64::try_from(time.as_millis()).unwrap();
    }

    /// Returns the number of versions that it has walked through from the newest on, since the last call of this.
    #[allow(dead_code, reason = "the tests of the store ask, which have this node, too")]
    pub fn walked(&self) -> usize {
        std::mem::take(&mut self.data.lock().unwrap().walked)
    }

    /// Returns the number of requests that it has answered since the last call of this.
    #[allow(dead_code, reason = "the tests of the store ask, which have this node, too")]
    pub fn requests(&self) -> usize {
        self.requests.swap(0, Ordering::Relaxed)
    }

    /// Returns the number of its transactions.
    #[allow(dead_code, reason = "the tests of the store ask, which have this node, too")]
    pub fn count(&self) -> usize {
        self.data.lock().unwrap().transactions.len()
    }

    /// Removes objects, as the owner of the database does.
    #[allow(dead_code, reason = "the tests of the store do, which have this node, too")]
    pub fn evict(&self, ids: &[&str]) {
        let ops: Vec<Value> = ids.iter().map(|id| json!(["evict", id])).collect();
        self.data.lock().unwrap().submit(&json!({ "tx-ops": ops }));
    }

    /// Goes back to its first transactions, as a node that comes from a backup.
    #[allow(dead_code, reason = "the tests of the store do, which have this node, too")]
    pub fn rewind(&self, count: usize) {
        let mut data = self.data.lock().unwrap();
        data.transactions.truncate(count);
        data.puts.retain(|put| put.tx < count);
    }

    /// Answers a request, given its target after `/_xtdb/` (after `edn ` if it asks for EDN), and its body.
    pub fn answer(&self, target: &str, body: &str) -> Answer {
        let mut data = self.data.lock().unwrap();
        let (in_edn, target) = target.strip_prefix("edn ").map_or((false, target), |target| (true, target));
        let (endpoint, query) = target.split_once('?').unwrap_or((target, ""));
        let parameters: BTreeMap<&str, String> = query
            .split('&')
            .filter_map(|one| one.split_once('='))
            .map(|(name, value)| (name, plain(value)))
            .collect();
        let number = |name: &str| parameters.get(name).and_then(|text| text.parse::<usize>().ok());
        let time = |name: &str| parameters.get(name).and_then(|text| text.parse::<Timestamp>().ok());
        let valid = time("valid-time").unwrap_or(Timestamp::from_millis(i64::MAX));
        // The number of transactions until then.
        let by_then = time("tx-time").map(|time| data.transactions.partition_point(|tx| tx.time <= time));
        let count = number("tx-id").map(|tx| tx + 1).or(by_then).unwrap_or(usize::MAX);
        let eid = parameters.get("eid").map_or("", String::as_str);
        if number("await-tx-id").is_some_and(|tx| tx >= data.transactions.len()) {
            return (500, json!({ "class": "java.util.concurrent.TimeoutException" }).to_string());
        }
        match endpoint {
            "status" => (200, json!({ "version": "1.24.3" }).to_string()),
            "latest-completed-tx" if data.transactions.is_empty() => {
                (404, missing("No latest-completed-tx found.", true))
            }
            "latest-completed-tx" => (200, data.tx(data.transactions.len() - 1)),
            "submit-tx" => {
                self.sent.fetch_add(body.len(), Ordering::Relaxed);
                (200, data.submit(&serde_json::from_str(body).unwrap()))
            }
            "tx-committed" => {
                let tx = number("tx-id").and_then(|tx| data.transactions.get(tx));
                (200, json!({ "txCommitted?": tx.is_some_and(|tx| tx.is_committed) }).to_string())
            }
            "entity-tx" | "entity" | "query"
                if number("tx-id").is_some_and(|tx| tx >= data.transactions.len())
                    || time("tx-time") > data.transactions.last().map(|tx| tx.time) =>
            {
                (400, json!({ "xtdb.error/error-type": "node-out-of-sync" }).to_string())
            }
            "entity" if parameters.contains_key("history") => {
                let bounds = time("start-valid-time")..time("end-valid-time");
                let rows = match parameters.get("sort-order").map(String::as_str) {
                    Some("desc") => data.newest(eid, (valid, count), number("end-tx-id"), bounds.end),
                    _ => data.history(eid, count, bounds, in_edn),
                };
                (200, rows)
            }
            "entity" => match data.at(eid, valid, count) {
                Some(put) => (200, put.document.to_string()),
                None => (404, missing(&format!("{eid} entity not found"), in_edn)),
            },
            "entity-tx" => match data.at(eid, valid, count) {
                Some(put) => {
                    (200, data.place(put).replacen('{', &format!("{{:xt/id #xtdb/id \"{}\", ", hash(eid)), 1))
                }
                None => (404, missing(&format!("{eid} entity-tx not found"), true)),
            },
            "tx-log" => {
                let with_documents = parameters.contains_key("with-ops?");
                (200, data.log(number("after-tx-id"), with_documents).to_string())
            }
            "attribute-stats" => (200, json!({ "xt/id": 1, "type": 1, "source": 1 }).to_string()),
            "query" => {
                let edn = parameters.get("query-edn").map_or(body, String::as_str);
                let args = parameters.get("in-args-edn").map(|args| format!("{edn} :in-args {args}"));
                (200, data.query(args.as_deref().unwrap_or(edn), valid, count, in_edn))
            }
            _ => (404, json!({ "error": endpoint }).to_string()),
        }
    }
}

impl Data {
    /// The version that holds at a valid time, after the first `count` transactions.
    fn at(&self, id: &str, valid: Timestamp, count: usize) -> Option<&Put> {
        let held = self.puts.iter().filter(|put| put.id == id && put.valid <= valid && put.tx < count);
        held.max_by_key(|put| (put.valid, put.tx))
    }

    /// From when on the document of a version holds without interruption: several versions may have the same.
    fn begun(&self, put: &Put, count: usize) -> Timestamp {
        let mut begin = put.valid;
        while let Some(before) = self.at(&put.id, Timestamp::from_millis(begin.millis() - 1), count)
            && before.document == put.document
        {
            begin = before.valid;
        }
        begin
    }

    fn submit(&mut self, body: &Value) -> String {
        let ops = body["tx-ops"].as_array().unwrap();
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let now = Timestamp::from_millis(i64::try_from(clock.as_millis()).unwrap() + self.ahead);
        let now = self.transactions.last().map_or(now, |last| last.time.max(now));
        let at =
            |value: &Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok()).unwrap_or(now);
        let fits = ops.iter().filter(|op| op[0] == "match").all(|op| {
            let found = self.at(op[1].as_str().unwrap(), at(&op[3]), usize::MAX);
            found.map_or(Value::Null, |put| put.document.clone()) == op[2]
        });
        let tx = self.transactions.len();
        let mut written = Vec::new();
        let is_mark = |op: &&Value| op[0] == "match" && op[1].as_str().unwrap().starts_with("writer:");
        let matches = ops.iter().filter(|op| fits && is_mark(op)).map(|op| {
            let none = || Value::from("0".repeat(40));
            let before = if op[2].is_null() { none() } else { op[2].clone() };
            json!(["match", hash(op[1].as_str().unwrap()), before, op[3]])
        });
        let matches = matches.collect();
        for op in ops.iter().filter(|op| fits && op[0] != "match") {
            if op[0] == "evict" {
                self.puts.retain(|put| put.id != *op[1].as_str().unwrap());
                continue;
            }
            let id = op[1]["xt/id"].as_str().unwrap().to_owned();
            written.push(id.clone());
            self.puts.push(Put { id, tx, valid: at(&op[2]), document: op[1].clone() });
        }
        self.transactions.push(Tx { time: now, is_committed: fits, written, matches });
        self.tx(tx)
    }

    fn tx(&self, tx: usize) -> String {
        format!("{{:xtdb.api/tx-id {tx}, :xtdb.api/tx-time {}}}", instant(self.transactions[tx].time))
    }

    fn place(&self, put: &Put) -> String {
        let tx = self.tx(put.tx);
        let (tx, valid, content) = (tx.trim_end_matches('}'), instant(put.valid), put.content_hash());
        format!("{tx}, :xtdb.api/valid-time {valid}, :xtdb.api/content-hash #xtdb/id \"{content}\"}}")
    }

    fn history(&self, id: &str, count: usize, bounds: Range<Option<Timestamp>>, in_edn: bool) -> String {
        let within = |put: &&Put| {
            bounds.start.is_none_or(|start| put.valid >= start)
                && bounds.end.is_none_or(|end| put.valid < end)
        };
        let puts = self.puts.iter().filter(|put| put.id == id && put.tx < count);
        let mut puts: Vec<&Put> = puts.filter(within).collect();
        puts.sort_by_key(|put| (put.valid, put.tx));
        if in_edn {
            let places: Vec<String> = puts.into_iter().map(|put| self.place(put)).collect();
            return format!("[{}]", places.join(" "));
        }
        self.rows(puts)
    }

    /// The versions after a transaction, from the newest on that holds at a valid time after the first `count` transactions.
    /// XTDB walks to the valid time and no further.
    fn newest(
        &mut self,
        id: &str,
        (valid, count): (Timestamp, usize),
        after: Option<usize>,
        end: Option<Timestamp>,
    ) -> String {
        let puts = self.puts.iter().filter(|put| put.id == id && put.valid <= valid && put.tx < count);
        let mut puts: Vec<&Put> = puts.filter(|put| end.is_none_or(|end| put.valid > end)).collect();
        self.walked += puts.len();
        puts.retain(|put| after.is_none_or(|after| put.tx > after));
        puts.sort_by_key(|put| std::cmp::Reverse((put.valid, put.tx)));
        self.rows(puts)
    }

    fn rows(&self, puts: Vec<&Put>) -> String {
        let row = |put: &Put| {
            let time = Timestamp::from_millis(self.transactions[put.tx].time.millis() / 1_000 * 1_000);
            json!({ "txId": put.tx, "txTime": time, "contentHash": put.content_hash(), "doc": put.document })
        };
        Value::from_iter(puts.into_iter().map(row)).to_string()
    }

    fn log(&self, after: Option<usize>, with_documents: bool) -> Value {
        let from = after.map_or(0, |after| after + 1);
        let all = self.transactions.iter().enumerate().skip(from).filter(|(_, tx)| tx.is_committed);
        Value::from_iter(all.map(|(number, tx)| {
            if with_documents {
                let puts = self.puts.iter().filter(|put| put.tx == number);
                let puts = puts.map(|put| json!(["put", put.document, put.valid]));
                let ops = Value::from_iter(tx.matches.iter().cloned().chain(puts));
                return json!({ "txId": number, "txTime": tx.time, "txOps": ops });
            }
            let events =
                tx.written.iter().map(|id| json!(["put", hash(id), hash(&format!("{id}@{number}"))]));
            json!({ "txId": number, "txEvents": Value::from_iter(events) })
        }))
    }

    /// The rows of a query; each has the name of the question at its end, where the query has one. A query for the rows of
    /// another one has a single row: them, and the name.
    fn query(&self, edn: &str, end: Timestamp, count: usize, in_edn: bool) -> String {
        let mut rows = self.matches(edn, end, count);
        let args = strings(edn.split_once(":in-args").map_or("", |(_, args)| args));
        let question = args.last().filter(|_| edn.contains("name]"));
        if edn.contains("[(q {") {
            let rows = Some(rows).filter(|rows| rows != &json!([])).unwrap_or_default();
            if !in_edn {
                return json!([[rows, question]]).to_string();
            }
            let rows = rows.as_array().into_iter().flatten();
            let rows: Vec<String> =
                rows.map(|row| format!("[{} {}]", row[0], row[1].as_str().unwrap())).collect();
            let rows = if rows.is_empty() { "nil".to_owned() } else { format!("({})", rows.join(" ")) };
            return format!("([{rows} {}])", json!(question));
        }
        if let Some(question) = question {
            let rows = rows.as_array_mut().into_iter().flatten();
            rows.filter_map(Value::as_array_mut).for_each(|row| row.push(json!(question)));
        }
        rows.to_string()
    }

    /// The few queries that a store has, told by what is in them.
    fn matches(&self, edn: &str, end: Timestamp, count: usize) -> Value {
        let args = strings(edn.split_once(":in-args").map_or("", |(_, args)| args));
        let mut ids: Vec<&str> = self.puts.iter().map(|put| put.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        let all =
            ids.iter().filter_map(|id| self.at(id, end, count)).filter(|put| !put.document["type"].is_null());
        let holds = |place: usize, put: &&Put| {
            !edn.contains("[[e vt]]")
                || args.get(place + 1).and_then(|time| time.parse().ok()) >= Some(self.begun(put, count))
        };
        let named = args.iter().enumerate();
        let named = named.filter_map(|(n, id)| self.at(id, end, count).filter(|put| holds(n, put)));
        if edn.contains("[e :number n]") {
            let latest = ids.iter().filter_map(|id| self.at(id, end, count));
            let numbered = latest.filter(|put| put.document["number"].is_u64());
            return Value::from_iter(numbered.map(|put| json!([put.id, put.document["number"]])));
        }
        if edn.contains("(pull h ") {
            let known = ids.iter().filter(|id| args.contains(&hash(id)));
            let documents = known.filter_map(|id| self.at(id, end, usize::MAX));
            return Value::from_iter(
                documents
                    .map(|put| json!([hash(&put.id), { "xt/id": put.id, "type": put.document["type"] }])),
            );
        }
        if edn.contains("(pull e ") {
            return Value::from_iter(named.map(|put| json!([put.id, put.document])));
        }
        if edn.contains(":find [e vt]") {
            return Value::from_iter(named.map(|put| json!([put.id, instant(self.begun(put, count))])));
        }
        if edn.contains("[e :content_hash h]") {
            return Value::from_iter(named.map(|put| json!([put.id, put.document["content_hash"]])));
        }
        if edn.contains("(string? c)") {
            return Value::from_iter(
                named.filter(|put| put.document["content"].is_string()).map(|put| json!([put.id])),
            );
        }
        if edn.contains("[e :source s]") {
            let typed = all.filter(|put| args.iter().any(|kind| put.document["type"] == **kind));
            let sourced = typed.filter(|put| !put.document["source"].is_null());
            return Value::from_iter(sourced.map(|put| json!([put.id, put.document["source"]])));
        }
        Value::from_iter(all.map(|put| json!([put.id])))
    }
}

impl Put {
    fn content_hash(&self) -> String {
        hash(&self.document.to_string())
    }
}

/// XTDB's sentence about something that it does not have.
fn missing(sentence: &str, in_edn: bool) -> String {
    let sentence = json!(sentence);
    if in_edn { format!("{{:error {sentence}}}") } else { json!({ "error": sentence }).to_string() }
}

fn instant(time: Timestamp) -> String {
    format!("#inst \"{}\"", time.to_string().replace('Z', "-00:00"))
}
