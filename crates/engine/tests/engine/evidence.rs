//! Evidence about a file is recorded with its call, and found by the call: no text is read back.

use std::fs;

use context_engine::EditGuard;
use context_model::chat::Chat as Record;
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::Status;
use rstest::rstest;
use serde_json::{Value, json};

use crate::bench::{Backend, Bench, tool};
use crate::chat::Chat;
use crate::truth::{chat, lines};

fn hash(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string()
}

async fn evidence(bench: &Bench, call: &str) -> Value {
    let call = bench.latest(&ObjectId::new(call)).await.unwrap();
    call.field("evidence").cloned().unwrap_or_default()
}

impl Chat {
    /// A read of a whole file by a call with this ID. Returns what the model was shown.
    pub async fn reads(&mut self, id: &str, path: &str) -> String {
        let bytes = fs::read(path).unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        self.engine.index_file(path, Some(bytes), Some(id)).await.unwrap();
        let answer = self.engine.answer_read(path, None, None, Some(id)).await.unwrap();
        let output = answer.map_or(text, |answer| answer.text);
        self.answered(id, "read", json!({ "path": path }), &output, Status::Ok).await;
        output
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_of_each_kind_is_recorded_with_its_call() {
    let bench = Bench::new(Backend::Sqlite);
    let (first, second) = (lines("old", 40), lines("old", 40).replace("old line 7\n", "new line 7\n"));
    let path = bench.write("a.txt", &first);
    let mut chat = chat(&bench, "s").await;
    chat.asks("go").await;
    chat.reads("shows", &path).await;
    chat.advance().await;
    let file = chat.engine.session_sets().await.unwrap().session_index[0].to_string();
    let shown = json!({ "file": file, "hash": hash(&first), "first": 1, "last": 41, "whole": true });
    assert_eq!(evidence(&bench, "shows").await, json!({ "shows": shown }));

    chat.reads("points", &path).await;
    chat.advance().await;
    let mut pointed = shown.clone();
    pointed["at"] = json!("shows");
    assert_eq!(evidence(&bench, "points").await, json!({ "points": pointed }));

    fs::write(&path, &second).unwrap();
    chat.reads("full", &path).await;
    chat.advance().await;
    fs::write(&path, &first).unwrap();
    assert!(chat.reads("led", &path).await.contains("\n@@ "));
    assert_eq!(evidence(&bench, "led").await, json!({ "led_to": { "file": file, "hash": hash(&first) } }));

    let made = json!({ "made": { "file": file, "hash": hash(&second) } });
    fs::write(&path, &second).unwrap();
    chat.engine.index_written(&path, Some(second.clone().into()), Some("made")).await.unwrap();
    let edits = json!([{ "oldText": "old line 7", "newText": "new line 7" }]);
    chat.answered("made", "edit", json!({ "path": path, "edits": edits }), "edited", Status::Ok).await;
    assert_eq!(evidence(&bench, "made").await, made);
    assert_eq!(evidence(&bench, "points").await["points"]["at"], "shows", "each is written once");
}

/// Results come in another order than the tools' reads, and versions may be alike in all lines that a result shows.
#[tokio::test(flavor = "multi_thread")]
async fn call_id_tells_reads_of_versions_apart_that_look_alike() {
    let bench = Bench::new(Backend::Memory);
    let texts = [lines("a", 40), lines("a", 40).replace("a line 40\n", "b line 40\n")];
    let path = bench.write("a.txt", &texts[0]);
    let chat = chat(&bench, "s").await;
    for (id, text) in ["one", "two"].iter().zip(&texts) {
        fs::write(&path, text).unwrap();
        chat.engine.index_file(&path, Some(text.clone().into()), Some(id)).await.unwrap();
    }
    let args = json!({ "path": path, "offset": 1, "limit": 5 });
    let output = texts[0].lines().take(5).collect::<Vec<_>>().join("\n");
    for id in ["two", "one"] {
        chat.engine.receive(tool(id, "read", args.clone(), &output)).await.unwrap();
    }
    for (id, text) in ["one", "two"].iter().zip(&texts) {
        assert_eq!(evidence(&bench, id).await["shows"]["hash"], hash(text), "{id}");
    }
}

#[derive(Debug)]
enum Guard {
    WithDifference,
    Refused,
}

/// A model has seen 40 lines; then line 30 became another one, and an edit of the given texts comes.
#[rstest]
#[case::another_line(Some(&["old line 7"][..]), Guard::WithDifference)]
#[case::several(Some(&["old line 7", "old line 28\nold line 29"][..]), Guard::WithDifference)]
#[case::the_changed_line(Some(&["old line 30"][..]), Guard::Refused)]
#[case::the_new_line(Some(&["new line 30"][..]), Guard::Refused)]
#[case::across_it(Some(&["old line 29\nnew line 30"][..]), Guard::Refused)]
#[case::one_of_several(Some(&["old line 7", "new line 30"][..]), Guard::Refused)]
#[case::not_once(Some(&["old line"][..]), Guard::Refused)]
#[case::nothing_is_known_of_it(None, Guard::Refused)]
#[tokio::test(flavor = "multi_thread")]
async fn edit_is_refused_only_where_it_meets_an_unseen_change(
    #[case] texts: Option<&[&str]>,
    #[case] expected: Guard,
) {
    let bench = Bench::new(Backend::Memory);
    let path = bench.write("a.txt", lines("old", 40));
    let mut chat = chat(&bench, "s").await;
    chat.asks("go").await;
    let texts: Option<Vec<String>> = texts.map(|all| all.iter().map(|text| (*text).to_owned()).collect());
    let free = EditGuard::Allowed { difference: None };
    chat.reads("one", &path).await;
    chat.advance().await;
    assert_eq!(chat.engine.guard_edit(&path, texts.as_deref(), None).await.unwrap(), free);
    let now = lines("old", 40).replace("old line 30\n", "new line 30\n");
    fs::write(&path, &now).unwrap();
    let guard = chat.engine.guard_edit(&path, texts.as_deref(), Some("two")).await.unwrap();
    let (text, is_as_expected) = match &guard {
        EditGuard::Refused(text) => (text.clone(), matches!(expected, Guard::Refused)),
        EditGuard::Allowed { difference: Some(text) } => {
            (text.clone(), matches!(expected, Guard::WithDifference))
        }
        EditGuard::Allowed { difference: None } => (String::new(), false),
    };
    assert!(is_as_expected, "{expected:?}: {guard:?}");
    assert!(text.contains("\n-old line 30\n+new line 30\n"), "{text}");
    if matches!(expected, Guard::Refused) {
        let again = chat.engine.guard_edit(&path, texts.as_deref(), None).await.unwrap();
        assert_eq!(again, free, "a change is refused once");
        return;
    }
    // The edit is made, and its result has the difference: then all is known.
    let edited = now.replace("old line 7\n", "my line 7\n");
    fs::write(&path, &edited).unwrap();
    chat.engine.index_written(&path, Some(edited.into()), Some("two")).await.unwrap();
    let args = json!({ "path": path, "edits": [{ "oldText": "old line 7", "newText": "my line 7" }] });
    chat.answered("two", "edit", args, &format!("edited\n\n{text}"), Status::Ok).await;
    let plan = chat.advance().await;
    assert_eq!(plan.notices, Vec::<String>::new());
    assert_eq!(chat.engine.guard_edit(&path, None, None).await.unwrap(), free);
}

/// The change of a file of 40 lines since the model saw it.
#[derive(Debug, Clone, Copy)]
enum Since {
    NeverSeen,
    Nothing,
    Changed,
    ChangedAndAnnounced,
    ChangedAndReadAgain,
    ChangedAndRefusedOnce,
    ChangedAndBack,
    ChangedBehindThePartThatWasRead,
    WrittenByTheModel,
    WrittenByTheModelThenChanged,
    Deleted,
    DeletedAndMadeAnew,
}

impl Since {
    async fn happen(self, bench: &Bench, chat: &mut Chat) -> String {
        let path = bench.write("a.txt", lines("old", 40));
        let changed = lines("old", 40).replace("old line 30\n", "new line 30\n");
        chat.asks("go").await;
        match self {
            Self::NeverSeen => return path,
            Self::ChangedBehindThePartThatWasRead => _ = chat.read("one", &path, Some((1, 20))).await,
            Self::WrittenByTheModel | Self::WrittenByTheModelThenChanged => {
                chat.engine.index_written(&path, None, Some("one")).await.unwrap();
                let args = json!({ "path": path, "content": lines("old", 40) });
                chat.answered("one", "write", args, "written", Status::Ok).await;
            }
            _ => _ = chat.reads("one", &path).await,
        }
        chat.advance().await;
        match self {
            Self::NeverSeen | Self::Nothing | Self::WrittenByTheModel => return path,
            Self::Deleted | Self::DeletedAndMadeAnew => {
                fs::remove_file(&path).unwrap();
                chat.engine.reconcile().await.unwrap();
            }
            _ => {}
        }
        if !matches!(self, Self::Deleted) {
            fs::write(&path, &changed).unwrap();
        }
        match self {
            Self::ChangedAndAnnounced => {
                chat.engine.reconcile().await.unwrap();
                assert_eq!(chat.turn("on").await.notices.len(), 1);
            }
            Self::ChangedAndReadAgain => _ = chat.reads("two", &path).await,
            Self::ChangedAndRefusedOnce => {
                _ = chat.engine.guard_edit(&path, None, Some("two")).await.unwrap()
            }
            Self::ChangedAndBack => fs::write(&path, lines("old", 40)).unwrap(),
            _ => {}
        }
        path
    }
}

/// Each way of editing, in this order: one text that the change leaves alone, several of them, the changed line as it was, the
/// changed line as it is, and the whole file or an edit with unknown texts. `.`: made; `d`: made, and the result has the
/// difference; `r`: refused.
#[rstest]
#[case(Since::NeverSeen, ".....")]
#[case(Since::Nothing, ".....")]
#[case(Since::Changed, "ddrrr")]
#[case(Since::ChangedAndAnnounced, "ddrrr")]
#[case(Since::ChangedAndReadAgain, ".....")]
#[case(Since::ChangedAndRefusedOnce, ".....")]
#[case(Since::ChangedAndBack, ".....")]
#[case(Since::ChangedBehindThePartThatWasRead, "ddrrr")]
#[case(Since::WrittenByTheModel, ".....")]
#[case(Since::WrittenByTheModelThenChanged, "ddrrr")]
#[case(Since::Deleted, ".....")]
#[case(Since::DeletedAndMadeAnew, "ddrrr")]
#[tokio::test(flavor = "multi_thread")]
async fn guard_of_each_way_of_editing(#[case] since: Since, #[case] expected: &str) {
    let ways: [Option<&[&str]>; 5] = [
        Some(&["old line 7"]),
        Some(&["old line 7", "old line 28\nold line 29"]),
        Some(&["old line 30"]),
        Some(&["new line 30"]),
        None,
    ];
    let mut found = String::new();
    for texts in ways {
        let (bench, mut chat) = Chat::on(Backend::Memory).await;
        let path = since.happen(&bench, &mut chat).await;
        let texts: Option<Vec<String>> = texts.map(|all| all.iter().map(|text| (*text).to_owned()).collect());
        found.push(match chat.engine.guard_edit(&path, texts.as_deref(), Some("edit")).await.unwrap() {
            EditGuard::Allowed { difference: None } => '.',
            EditGuard::Allowed { difference: Some(_) } => 'd',
            EditGuard::Refused(_) => 'r',
        });
    }
    assert_eq!(found, expected);
}

/// A host that passes in nothing: the evidence in its results is inferred once, recorded, and then looked up.
#[tokio::test(flavor = "multi_thread")]
async fn inferred_evidence_is_looked_up_later() {
    let bench = Bench::new(Backend::Sqlite);
    let (read, written) = (bench.write("read", lines("read", 40)), bench.path("written"));
    let mut chat = chat(&bench, "s").await;
    chat.asks("go").await;
    chat.run("r", "read", json!({ "path": read }), &lines("read", 40)).await;
    fs::write(&written, lines("written", 40)).unwrap();
    chat.run("w", "write", json!({ "path": written, "content": lines("written", 40) }), "done").await;
    chat.run("n", "read", json!({ "path": bench.path("none") }), "no such file").await;
    chat.advance().await;
    let recorded = bench.latest(&ObjectId::new("chat:s")).await.unwrap();
    let entries: Vec<Value> = Record::of(&recorded).evidence().cloned().collect();
    let of = |id: &str| {
        let mut its = entries.iter().filter(|entry| entry["call"] == id);
        (its.next().map(|entry| entry["evidence"].clone()), its.count())
    };
    assert_eq!(of("r").0.unwrap()["shows"]["hash"], hash(&lines("read", 40)));
    assert_eq!(of("w").0.unwrap()["made"]["hash"], hash(&lines("written", 40)));
    assert_eq!(of("n").0.unwrap(), Value::Null, "it shows no file");
    // Other texts say the same from now on.
    for one in chat.messages.iter_mut().filter(|one| one.message["role"] == "toolResult") {
        one.message["content"] = json!([{ "type": "text", "text": lines("read", 40) }]);
    }
    chat.restart(&bench).await;
    for path in [&read, &written] {
        assert_eq!(chat.engine.check_edit(path).await.unwrap(), None);
        fs::write(path, "another text\n").unwrap();
    }
    chat.engine.reconcile().await.unwrap();
    assert_eq!(chat.turn("on").await.notices.len(), 2);
    let recorded = bench.latest(&ObjectId::new("chat:s")).await.unwrap();
    assert_eq!(Record::of(&recorded).evidence().count(), entries.len(), "nothing is found out twice");
    for id in ["r", "w", "n"] {
        assert_eq!(of(id).1, 0, "{id} is recorded once");
    }
}
