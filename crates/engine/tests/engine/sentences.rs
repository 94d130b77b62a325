//! Our sentences are for the model alone. A session whose messages have other sentences than ours is resumed, undone and taken
//! back to the same knowledge, because the evidence in each of them is recorded as data.

use std::fs;

use context_engine::{EditGuard, Engine, IncomingMessage, Options, Sentences};
use context_lines::StaleWords;
use context_model::hash::Digest;
use context_model::object::Status;
use rstest::rstest;
use serde_json::json;

use crate::bench::{Backend, Bench};
use crate::chat::Chat;
use crate::truth::lines;

/// Every sentence as another release may have it.
const OTHER: Sentences = Sentences {
    stale: StaleWords {
        changed: "Fichier {path} ({id}) : {what} ; version {version}",
        no_version: "aucune",
        differs: "autrement",
        same_again: "comme avant",
        deleted: "Fichier {path} ({id}) : parti",
        more: "{count} autres : {id}",
    },
    lines_elsewhere: "Voir {id}, de {first} a {last}, dans {path}",
    text_elsewhere: "{done}. Voir {id}",
    difference: "{path} depuis {id} :\n{diff}",
    edit_refused: "Non, {path} :\n{diff}\nEncore.",
    edit_unknown: "Non, {path}.",
    edit_begun: "Non, {path} :\n{diff}{rest}",
    edit_large: "Non, {path}, beaucoup.",
    edit_beside: "Aussi, {path} :\n{diff}",
    beside_begun: "Aussi, {path} :\n{diff}{rest}",
    beside_large: "Aussi, {path}, beaucoup.",
    difference_rest: "... {more} ; +{added} -{removed}",
};

/// A session with a notice or answer of each kind, and the paths of its files.
struct Told {
    bench: Bench,
    chat: Chat,
    noticed: String,
    differing: String,
    refused: String,
    pointed: String,
    written: String,
}

async fn open(bench: &Bench, sentences: Sentences) -> Engine {
    Engine::open(Options { sentences, ..bench.options("s") }).await.unwrap()
}

/// Our own sentences and others have no line in common.
#[test]
fn no_sentence_of_the_other_table_is_ours() {
    let words = |sentences: Sentences| format!("{sentences:?}");
    let (ours, others) = (words(Sentences::default()), words(OTHER));
    for line in
        ["stale id=", "unchanged:", "as you know", " if gone", "so it was not edited", "since the result"]
    {
        assert!(ours.contains(line) && !others.contains(line), "{line}");
    }
}

impl Told {
    /// With or without the IDs of calls: not all hosts have them.
    async fn new(sentences: Sentences, has_ids: bool) -> Self {
        let bench = Bench::new(Backend::Sqlite);
        let [noticed, differing, refused, pointed] =
            ["noticed", "differing", "refused", "pointed"].map(|name| bench.write(name, lines(name, 40)));
        let written = bench.path("written");
        let mut chat = Chat::new(open(&bench, sentences).await);
        // A file whose lines have left the request needs no notice.
        chat.rolls = false;
        chat.user("go");
        let mut told = Self { bench, chat, noticed, differing, refused, pointed, written };
        for (id, path) in
            [("n", &told.noticed), ("d", &told.differing), ("r", &told.refused), ("p", &told.pointed)]
        {
            told.chat.reads_as(id, path, has_ids).await;
        }
        // A notice.
        told.change("noticed").await;
        let notice = told.chat.is_told("").await;
        told.chat.say(json!({ "role": "custom", "content": format!("{notice}\nand a tip") }));
        told.chat.user("on");
        // A difference.
        told.change("differing").await;
        assert!(told.chat.reads_as("d2", &told.differing.clone(), has_ids).await.contains("+new line"));
        // A refusal.
        told.change("refused").await;
        let id = has_ids.then_some("r2");
        let guard = told.chat.engine.guard_edit(&told.refused, None, id).await.unwrap();
        let EditGuard::Refused(text) = guard else { panic!("{guard:?}") };
        let args = json!({ "path": told.refused, "edits": [{ "oldText": "x", "newText": "y" }] });
        told.chat.advance().await;
        told.chat.answered("r2", "edit", args, &text, Status::Fail).await;
        // A pointer.
        let pointer = told.chat.reads_as("p2", &told.pointed.clone(), has_ids).await;
        assert!(pointer.lines().count() == 1 && pointer != lines("pointed", 40), "{pointer}");
        // A text that the model wrote.
        let text = lines("written", 40);
        fs::write(&told.written, &text).unwrap();
        if has_ids {
            let bytes = Some(text.clone().into());
            told.chat.engine.index_written(&told.written, bytes, Some("w")).await.unwrap();
        }
        let args = json!({ "path": told.written, "content": text });
        told.chat.advance().await;
        told.chat.answered("w", "write", args, "written", Status::Ok).await;
        told.chat.done();
        told.chat.advance().await;
        told
    }

    /// The session in another process, with these sentences.
    async fn reopened(&mut self, sentences: usize) -> Engine {
        self.chat.engine.close().await.unwrap();
        self.bench.restart().await;
        open(&self.bench, tables()[sentences]).await
    }

    /// A file of the session gets another text.
    async fn change(&self, name: &str) {
        let text = fs::read_to_string(self.bench.path(name)).unwrap();
        let other = if text.contains("new line") { "newer line" } else { "new line" };
        let line = text.lines().nth(6).unwrap();
        self.bench.write(name, text.replacen(line, other, 1));
        self.chat.engine.reconcile().await.unwrap();
    }

    /// The session knows all of its files as they are; then each changes, and each change makes one notice.
    async fn knows_all(&mut self) {
        assert_eq!(self.chat.turn("on").await.notices, Vec::<String>::new(), "there is nothing to tell");
        for path in [&self.differing, &self.refused, &self.pointed, &self.written] {
            assert_eq!(self.chat.engine.check_edit(path).await.unwrap(), None, "{path}");
        }
        let names = ["noticed", "differing", "refused", "pointed", "written"];
        for name in names {
            self.change(name).await;
        }
        let told = self.chat.turn("on").await.notices;
        assert_eq!(told.len(), names.len(), "{told:?}");
        for name in names {
            let text = fs::read(self.bench.path(name)).unwrap();
            let version = Digest::of(&text).to_string();
            let line = told.iter().find(|line| line.contains(&version[..8]));
            // The first change had a notice, so two lines differ from the lines in sight.
            assert!(line.is_some_and(|line| line.contains("+1 -1")), "{name}: {told:?}");
        }
    }
}

impl Chat {
    async fn reads_as(&mut self, id: &str, path: &str, has_ids: bool) -> String {
        self.advance().await;
        if has_ids { self.reads(id, path).await } else { self.read(id, path, None).await }
    }
}

fn tables() -> [Sentences; 2] {
    [Sentences::default(), OTHER]
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn resumed_session_knows_the_same(
    #[values(0, 1)] before: usize,
    #[values(0, 1)] after: usize,
    #[values(true, false)] has_ids: bool,
) {
    let mut told = Told::new(tables()[before], has_ids).await;
    let engine = told.reopened(after).await;
    assert_eq!(told.chat.resync(engine, told.chat.messages.len()).await.edits, []);
    told.knows_all().await;
}

/// The host lost its edits and notices, but not the sentences: at least those of tools may differ.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn results_with_other_texts_say_the_same(#[values(true, false)] has_ids: bool) {
    let mut told = Told::new(Sentences::default(), has_ids).await;
    let engine = told.reopened(0).await;
    for IncomingMessage { message, .. } in &mut told.chat.messages {
        let id = message["toolCallId"].as_str().unwrap_or_default();
        if matches!(id, "d2" | "r2" | "p2") {
            message["content"] = json!([{ "type": "text", "text": "Cette phrase n'est pas de nous." }]);
        }
    }
    told.chat.resync(engine, told.chat.messages.len()).await;
    told.knows_all().await;
}

/// A roll is undone, and the session goes back to an earlier point with messages that came after it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn session_that_steps_back_knows_the_same(
    #[values(0, 1)] before: usize,
    #[values(0, 1)] after: usize,
    #[values(true, false)] has_ids: bool,
) {
    let mut told = Told::new(tables()[before], has_ids).await;
    let point = told.chat.engine.point().await.unwrap();
    let count = told.chat.messages.len();
    told.chat.engine.roll_now(&told.chat.call()).await.unwrap();
    told.chat.engine.undo_roll().await.unwrap();
    told.chat.turn("another branch").await;
    let engine = told.reopened(after).await;
    engine.restore(engine.session_id(), point, None).await.unwrap();
    told.chat.resync(engine, count).await;
    told.knows_all().await;
}

/// The point is older than the notice, whose message is still there.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn notice_after_the_point_is_known(#[values(0, 1)] before: usize, #[values(0, 1)] after: usize) {
    let mut told = Told::new(tables()[before], true).await;
    let notice = told.chat.messages.iter().position(|one| one.message["role"] == "custom").unwrap();
    // The first turn's end is a point before the notice.
    let points = told.bench.store.history(&context_model::id::ObjectId::new("chat:s")).await.unwrap();
    let earlier = points.iter().rev().find(|version| {
        let turns = version.document.field("turns").unwrap();
        !turns.to_string().contains("\"notices\"") && turns.as_array().unwrap().len() == 2
    });
    let point = earlier.map(|version| version.tx_id).unwrap();
    let engine = told.reopened(after).await;
    engine.restore(engine.session_id(), point, None).await.unwrap();
    told.chat.resync(engine, notice + 1).await;
    assert_eq!(told.chat.turn("on").await.notices.len(), 2, "of the two that changed later");
}

/// The process ends between an answer of ours and the record of its call: only the host has the result.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn answer_whose_call_was_not_recorded_is_known(
    #[values(0, 1)] before: usize,
    #[values(0, 1)] after: usize,
    #[values(true, false)] has_ids: bool,
) {
    let bench = Bench::new(Backend::Sqlite);
    let mut told = Chat::new(open(&bench, tables()[before]).await);
    let path = bench.write("a", lines("a", 40));
    told.user("go");
    told.reads_as("one", &path, has_ids).await;
    told.advance().await;
    let recorded = told.messages.len();
    bench.write("a", lines("a", 40).replace("a line 7\n", "new line\n"));
    let id = has_ids.then_some("two");
    let EditGuard::Refused(text) = told.engine.guard_edit(&path, None, id).await.unwrap() else {
        panic!("the model has not seen the change")
    };
    let args = json!({ "path": path, "edits": [] });
    told.calls("two", "edit", args);
    told.results("two", "edit", &text, Status::Fail);
    told.told = told.messages.len();
    told.engine = open(&bench, tables()[after]).await;
    told.engine.resync(told.messages.clone(), recorded, &told.call()).await.unwrap();
    assert_eq!(told.turn("on").await.notices, Vec::<String>::new());
    assert_eq!(told.engine.check_edit(&path).await.unwrap(), None);
    bench.write("a", lines("a", 40));
    told.engine.reconcile().await.unwrap();
    assert_eq!(told.turn("on").await.notices.len(), 1);
}

/// The host removes the text that an answer pointed to. The answer stays as it was sent, from any release.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn pointer_that_leads_nowhere_stays_as_it_was_sent(
    #[values(0, 1)] before: usize,
    #[values(0, 1)] after: usize,
) {
    let mut told = Told::new(tables()[before], true).await;
    let engine = told.reopened(after).await;
    let pointer = told.chat.messages.iter().position(|one| one.message["toolCallId"] == "p2").unwrap();
    told.chat.messages.drain(..pointer - 1);
    told.chat.resync(engine, told.chat.messages.len()).await;
    assert_eq!(told.chat.turn("on").await.edits, []);
}
