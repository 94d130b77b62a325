//! What is recorded about what results and notices tell the model: by call, by the text of an answer of ours whose call is
//! not recorded yet, and by the line of a notice. It is looked up whenever messages are read again, so that no sentence has
//! to be understood.

use std::collections::{HashMap, HashSet};

use context_model::chat::{Chat, Notice};
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::Document;
use serde_json::{Value, json};

use super::evidence::Evidence;

/// The fields of an entry of the chat.
const CALL: &str = "call";
const ANSWER: &str = "answer";
const EVIDENCE: &str = "evidence";

/// What is recorded about what results and notices tell.
#[derive(Default)]
pub(crate) struct Archive {
    /// What the results of calls say, where it is not in the record of the call itself; `None` of one that says nothing of
    /// any file.
    calls: HashMap<ObjectId, Option<Evidence>>,
    /// Calls that were recorded just now, with nothing that they say.
    unknown: HashSet<ObjectId>,
    answers: Vec<Given>,
    lines: HashMap<Digest, Notice>,
    /// Notices of an earlier version, which recorded no lines.
    unlined: Vec<Notice>,
    /// The session was begun by an earlier version, which did not record everything.
    is_old: bool,
    /// What the chat does not have yet.
    pending: Vec<Value>,
}

/// An answer of ours to a tool.
struct Given {
    /// The harness's ID of the call, if it says.
    call: Option<String>,
    /// The answer, if it was given in this process.
    text: Option<String>,
    hash: Digest,
    bytes: usize,
    evidence: Evidence,
}

impl Archive {
    /// Takes in what a chat has. What is known already stays.
    pub fn read(&mut self, document: Option<&Document>) {
        self.is_old = document.is_some_and(|document| !Chat::records_evidence(document));
        let Some(document) = document else { return };
        self.unlined.clear();
        for notice in Chat::of(document).notices() {
            self.tell(&notice);
        }
        for entry in Chat::of(document).evidence() {
            self.read_entry(entry);
        }
    }

    fn read_entry(&mut self, entry: &Value) {
        let evidence = entry.get(EVIDENCE).and_then(Evidence::of);
        if let Some(call) = entry.get(CALL).and_then(Value::as_str) {
            self.calls.entry(ObjectId::new(call)).or_insert(evidence);
        } else if let (Some(answer), Some(evidence)) = (entry.get(ANSWER), evidence) {
            let hash = answer.get("text").and_then(Value::as_str).and_then(|hash| hash.parse().ok());
            let bytes = answer.get("bytes").and_then(Value::as_u64);
            let (Some(hash), Some(bytes)) = (hash, bytes) else { return };
            let call = answer.get(CALL).and_then(Value::as_str).map(str::to_owned);
            if !self.answers.iter().any(|one| one.hash == hash && one.call == call) {
                self.answers.push(Given { call, text: None, hash, bytes: bytes as usize, evidence });
            }
        }
    }

    /// Whether the session was begun by an earlier version, which did not record everything.
    pub fn is_old(&self) -> bool {
        self.is_old
    }

    /// The model is told this.
    pub fn tell(&mut self, notice: &Notice) {
        match notice.line {
            Some(line) => {
                self.lines.insert(line, notice.clone());
            }
            None => self.unlined.push(notice.clone()),
        }
    }

    /// The notice that a line of a message is.
    pub fn notice(&self, line: &str) -> Option<&Notice> {
        if self.lines.is_empty() { None } else { self.lines.get(&Digest::of(line.as_bytes())) }
    }

    /// The notices of an earlier version.
    pub fn unlined(&self) -> &[Notice] {
        &self.unlined
    }

    /// A call was recorded with this evidence, or with none.
    pub fn recorded(&mut self, call: &ObjectId, evidence: Option<&Evidence>) {
        match evidence {
            Some(evidence) => {
                self.calls.insert(call.clone(), Some(evidence.clone()));
            }
            None => {
                self.unknown.insert(call.clone());
            }
        }
    }

    /// What the calls say that were recorded so far has been asked for.
    pub fn settle(&mut self) {
        self.unknown.clear();
        self.answers.iter_mut().for_each(|given| given.text = None);
    }

    /// What a call's result says: `None` if that is not known here.
    pub fn of_call(&self, call: &ObjectId) -> Option<&Option<Evidence>> {
        self.calls.get(call)
    }

    /// Whether a call's own record is known to have nothing.
    pub fn is_unknown(&self, call: &ObjectId) -> bool {
        self.unknown.contains(call)
    }

    /// What a call's result says was found out, and is to be recorded.
    pub fn found(&mut self, call: &ObjectId, evidence: Option<Evidence>) {
        let value = evidence.as_ref().map(Evidence::to_value);
        self.pending.push(json!({ CALL: call, EVIDENCE: value }));
        self.calls.insert(call.clone(), evidence);
    }

    /// An answer to a call, which is to be recorded: what the call's result says once it comes.
    pub fn gives(&mut self, call: Option<&str>, text: &str, evidence: Evidence) {
        let hash = Digest::of(text.as_bytes());
        let answer = json!({ CALL: call, "text": hash, "bytes": text.len() });
        self.pending.push(json!({ ANSWER: answer, EVIDENCE: evidence.to_value() }));
        self.answers.push(Given {
            call: call.map(str::to_owned),
            text: Some(text.to_owned()),
            hash,
            bytes: text.len(),
            evidence,
        });
    }

    /// What the output of a call says, if it is an answer of ours. The newest one counts.
    pub fn of_answer(&self, call: &str, output: &str) -> Option<&Evidence> {
        let is_its = |given: &&Given| given.call.as_deref().is_none_or(|its| its == call);
        let answers = self.answers.iter().rev().filter(is_its);
        answers.into_iter().find(|given| given.is_in(output)).map(|given| &given.evidence)
    }

    /// What is to be recorded.
    pub fn pending(&self) -> &[Value] {
        &self.pending
    }

    /// So many of the oldest entries are recorded.
    pub fn kept(&mut self, count: usize) {
        self.pending.drain(..count.min(self.pending.len()));
    }
}

impl Given {
    fn is_in(&self, output: &str) -> bool {
        if let Some(text) = &self.text {
            return output.contains(text.as_str());
        }
        // Of an earlier process only the hash is left. What stands below the answer is not ours.
        let Some((answer, below)) = output.split_at_checked(self.bytes) else { return false };
        (below.is_empty() || below.starts_with('\n')) && Digest::of(answer.as_bytes()) == self.hash
    }
}
