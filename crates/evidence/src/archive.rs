//! The records of statements to the model: by call, by the text of an answer of ours whose call is not recorded yet, and by the
//! line of a notice. The engine looks them up whenever messages are read again, and so need not interpret any sentence.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use context_model::chat::{Chat, Notice};
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::Document;
use serde_json::{Value, json};

use crate::evidence::Evidence;

/// The fields of an entry of the chat.
const CALL: &str = "call";
const ANSWER: &str = "answer";
const EVIDENCE: &str = "evidence";

/// The records of statements in results and notices.
#[derive(Default)]
pub struct Archive {
    /// The evidence in the results of calls, where it is not in the record of the call itself; `None` for a result without a
    /// statement about a file.
    calls: HashMap<ObjectId, Option<Evidence>>,
    /// Calls that were recorded just now, without evidence.
    unknown: HashSet<ObjectId>,
    answers: Vec<GivenAnswer>,
    /// The notices of each line for the model. One line may represent many.
    lines: HashMap<Digest, Vec<Notice>>,
    /// The entries that the chat does not have yet.
    pending: Vec<Value>,
    /// Texts that the model knows and no version has: of a file that others had changed when the model edited it. Oldest
    /// first.
    drafts: VecDeque<(Digest, Arc<str>)>,
}

/// The number of drafts that are kept. The difference of an older one from the file is no longer known.
const DRAFTS: usize = 32;

/// An answer of ours to a tool.
struct GivenAnswer {
    /// The harness's ID of the call, if it says.
    call: Option<String>,
    /// The answer, if it was given in this process.
    text: Option<String>,
    hash: Digest,
    bytes: usize,
    evidence: Evidence,
}

impl Archive {
    /// Takes in the entries of a chat. Known entries stay.
    pub fn read(&mut self, document: Option<&Document>) {
        let Some(document) = document else { return };
        self.tell(&Chat::of(document).notices().collect::<Vec<_>>());
        for entry in Chat::of(document).evidence() {
            self.read_entry(entry);
        }
    }

    fn read_entry(&mut self, entry: &Value) {
        let evidence = entry.get(EVIDENCE).and_then(Evidence::of);
        if let Some(call) = entry.get(CALL).and_then(Value::as_str) {
            // Evidence that was undetermined at first may have been found out later.
            let known = self.calls.entry(ObjectId::new(call)).or_default();
            *known = known.take().or(evidence);
        } else if let (Some(answer), Some(evidence)) = (entry.get(ANSWER), evidence) {
            let hash = answer.get("text").and_then(Value::as_str).and_then(|hash| hash.parse().ok());
            let bytes = answer.get("bytes").and_then(Value::as_u64);
            let (Some(hash), Some(bytes)) = (hash, bytes) else { return };
            let call = answer.get(CALL).and_then(Value::as_str).map(str::to_owned);
            if !self.answers.iter().any(|one| one.hash == hash && one.call == call) {
                self.answers.push(GivenAnswer { call, text: None, hash, bytes: bytes as usize, evidence });
            }
        }
    }

    /// Adds notices to the model. Those that one line represents follow each other.
    pub fn tell(&mut self, notices: &[Notice]) {
        for of_line in notices.chunk_by(|one, next| one.line == next.line) {
            self.lines.insert(of_line[0].line, of_line.to_vec());
        }
    }

    /// The notices that a line of a message is or represents; none for another line.
    pub fn notices(&self, line: &str) -> &[Notice] {
        if self.lines.is_empty() {
            return &[];
        }
        self.lines.get(&Digest::of(line.as_bytes())).map_or(&[], Vec::as_slice)
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

    /// Notes that all statements of the calls recorded so far were requested.
    pub fn settle(&mut self) {
        self.unknown.clear();
        self.answers.iter_mut().for_each(|given| given.text = None);
    }

    /// Returns the evidence that a call's result shows: `None` if this archive does not know it.
    pub fn for_call(&self, call: &ObjectId) -> Option<&Option<Evidence>> {
        self.calls.get(call)
    }

    /// True if a call's own record is known to have no evidence.
    pub fn is_unknown(&self, call: &ObjectId) -> bool {
        self.unknown.contains(call)
    }

    /// Notes the evidence found in a call's result; it waits to be recorded.
    pub fn found(&mut self, call: &ObjectId, evidence: Option<Evidence>) {
        let value = evidence.as_ref().map(Evidence::to_value);
        self.pending.push(json!({ CALL: call, EVIDENCE: value }));
        self.calls.insert(call.clone(), evidence);
    }

    /// Notes an answer to a call, which waits to be recorded: the evidence of the call's result once it comes.
    pub fn gives(&mut self, call: Option<&str>, text: &str, evidence: Evidence) {
        let hash = Digest::of(text.as_bytes());
        let answer = json!({ CALL: call, "text": hash, "bytes": text.len() });
        self.pending.push(json!({ ANSWER: answer, EVIDENCE: evidence.to_value() }));
        self.answers.push(GivenAnswer {
            call: call.map(str::to_owned),
            text: Some(text.to_owned()),
            hash,
            bytes: text.len(),
            evidence,
        });
    }

    /// Returns the evidence of a call's output, if the output is an answer of ours. The newest one counts.
    pub fn for_answer(&self, call: &str, output: &str) -> Option<&Evidence> {
        let is_same_call = |given: &&GivenAnswer| given.call.as_deref().is_none_or(|its| its == call);
        let answers = self.answers.iter().rev().filter(is_same_call);
        answers.into_iter().find(|given| given.is_in(output)).map(|given| &given.evidence)
    }

    /// Keeps a text that the model knows and no version has. Returns its hash.
    pub fn draft(&mut self, text: &str) -> Digest {
        let hash = Digest::of(text.as_bytes());
        if self.text(&hash).is_none() {
            if self.drafts.len() == DRAFTS {
                self.drafts.pop_front();
            }
            self.drafts.push_back((hash, text.into()));
        }
        hash
    }

    /// The text with a hash, if it is one that the model knows and no version has.
    pub fn text(&self, hash: &Digest) -> Option<Arc<str>> {
        self.drafts.iter().find(|(one, _)| one == hash).map(|(_, text)| Arc::clone(text))
    }

    /// Returns the entries that wait to be recorded.
    pub fn pending(&self) -> &[Value] {
        &self.pending
    }

    /// Removes this many of the oldest entries: they are recorded.
    pub fn kept(&mut self, count: usize) {
        self.pending.drain(..count.min(self.pending.len()));
    }
}

impl GivenAnswer {
    fn is_in(&self, output: &str) -> bool {
        if let Some(text) = &self.text {
            return output.contains(text.as_str());
        }
        // An earlier process left only the hash. The text below the answer is not ours.
        let Some((answer, below)) = output.split_at_checked(self.bytes) else { return false };
        (below.is_empty() || below.starts_with('\n')) && Digest::of(answer.as_bytes()) == self.hash
    }
}

#[cfg(test)]
mod tests {
    use context_model::chat::{ChatPatch, begun};
    use context_model::id::SessionId;
    use context_model::patch;
    use rstest::rstest;

    use super::*;
    use crate::evidence::Bytes;

    fn made(name: &str) -> Evidence {
        let bytes = Bytes { file: ObjectId::new("f"), hash: Digest::of(name.as_bytes()) };
        Evidence::Made { bytes, left: None }
    }

    /// The chat of a new session with these additions.
    fn chat(add: impl FnOnce(&mut ChatPatch)) -> Document {
        let empty = begun(&SessionId::new("s").unwrap()).unwrap();
        let mut patch = ChatPatch::new(0);
        patch.toolcall(&ObjectId::new("first"));
        add(&mut patch);
        patch::apply(empty, [patch.patch()]).unwrap()
    }

    #[test]
    fn inferred_evidence_is_in_the_chat_of_the_next_process() {
        let (one, two) = (ObjectId::new("one"), ObjectId::new("two"));
        let mut first = Archive::default();
        first.found(&one, Some(made("a")));
        first.found(&two, None);
        first.gives(Some("three"), "an answer", made("b"));
        let entries = first.pending().to_vec();
        first.kept(entries.len());
        assert!(first.pending().is_empty());
        let mut next = Archive::default();
        next.read(Some(&chat(|patch| assert!(patch.evidence(&entries)))));
        for archive in [&first, &next] {
            assert_eq!(archive.for_call(&one), Some(&Some(made("a"))));
            assert_eq!(archive.for_call(&two), Some(&None));
            assert_eq!(archive.for_call(&ObjectId::new("three")), None);
            assert_eq!(archive.for_answer("three", "an answer\nand more"), Some(&made("b")));
        }
        assert!(next.pending().is_empty());
    }

    #[rstest]
    #[case::itself("call", "an answer", true)]
    #[case::with_more_below("call", "an answer\ntoolcall_ref", true)]
    #[case::of_another_call("other", "an answer", false)]
    #[case::with_more_beside("call", "an answer, and", false)]
    #[case::another("call", "an onswer", false)]
    #[case::shorter("call", "an", false)]
    #[case::within_a_character("call", "an answe\u{e9}", false)]
    fn answer_of_an_earlier_process_is_known_by_its_hash(
        #[case] call: &str,
        #[case] output: &str,
        #[case] is_known: bool,
    ) {
        let mut archive = Archive::default();
        archive.gives(Some("call"), "an answer", made("a"));
        archive.settle();
        assert_eq!(archive.for_answer(call, output).is_some(), is_known);
    }

    #[test]
    fn answer_of_this_process_may_stand_within_an_output_and_the_newest_one_counts() {
        let mut archive = Archive::default();
        for name in ["a", "b"] {
            archive.gives(None, "an answer", made(name));
        }
        assert_eq!(archive.for_answer("any", "Error: an answer."), Some(&made("b")));
    }

    #[test]
    fn notices_are_found_by_their_line() {
        let notice = |file: &str, line: &str| Notice {
            file: ObjectId::new(file),
            hash: None,
            line: Digest::of(line.as_bytes()),
            path: "/f".into(),
        };
        let told = [notice("f", "a line"), notice("g", "many"), notice("h", "many")];
        let mut archive = Archive::default();
        assert_eq!(archive.notices("a line"), []);
        archive.read(Some(&chat(|patch| assert!(patch.notices(&told, None, None)))));
        assert_eq!(archive.notices("a line"), &told[..1]);
        assert_eq!(archive.notices("many"), &told[1..]);
        assert_eq!(archive.notices("a line "), []);
        archive.tell(&[notice("f", "another")]);
        assert_eq!(archive.notices("another").len(), 1);
    }

    #[test]
    fn each_answer_of_the_chat_is_taken_in_once() {
        let mut first = Archive::default();
        for (call, text) in [("one", "an answer"), ("two", "an answer"), ("one", "another")] {
            first.gives(Some(call), text, made(text));
        }
        let entries = first.pending().to_vec();
        let document = chat(|patch| assert!(patch.evidence(&entries)));
        let mut next = Archive::default();
        next.read(Some(&document));
        next.read(Some(&document));
        assert_eq!(next.answers.len(), 3);
        assert_eq!(next.for_answer("one", "another"), Some(&made("another")));
        assert_eq!(next.for_answer("two", "another"), None);
    }

    #[test]
    fn drafts_are_kept_by_their_hash_and_the_oldest_go_first() {
        let mut archive = Archive::default();
        let hashes: Vec<Digest> = (0..=DRAFTS).map(|n| archive.draft(&n.to_string())).collect();
        assert_eq!(archive.draft("1"), hashes[1], "nothing goes for one that is there");
        assert_eq!(archive.drafts.len(), DRAFTS);
        assert_eq!(archive.text(&hashes[0]), None);
        for (n, hash) in hashes.iter().enumerate().skip(1) {
            assert_eq!(archive.text(hash).as_deref(), Some(&*n.to_string()));
        }
    }

    #[test]
    fn call_without_evidence_is_unknown_until_its_result_was_taken_in() {
        let mut archive = Archive::default();
        let [one, two] = ["one", "two"].map(ObjectId::new);
        archive.recorded(&one, None);
        archive.recorded(&two, Some(&made("a")));
        assert!(archive.is_unknown(&one) && !archive.is_unknown(&two));
        assert_eq!((archive.for_call(&one), archive.for_call(&two)), (None, Some(&Some(made("a")))));
        archive.settle();
        assert!(!archive.is_unknown(&one) && archive.for_call(&two).is_some());
        assert!(archive.pending().is_empty(), "that is in the record of the call");
    }
}
