//! Edits by hosts that do not ask first: the model still hears of changes that others had made unseen.

use std::fs;

use context_engine::EditGuard;
use context_model::object::Status;
use rstest::rstest;
use serde_json::{Value, json};

use crate::bench::{Backend, Bench};
use crate::chat::Chat;
use crate::truth::lines;

/// The way in which a host reports the actions of its tools.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Host {
    /// It hands over messages, and nothing else.
    Messages,
    /// The same, and each result has an image beside its text.
    Images,
    /// It also reports results.
    Results,
    /// It also reports what a call has written, by the call's ID.
    Writes,
    /// The same without the ID.
    WritesOfNobody,
}

impl Host {
    /// The model's call, which has left these texts in files, and its result.
    async fn calls(self, chat: &mut Chat, id: &str, call: (&str, Value), left: &[(&str, &str)]) {
        for (path, text) in left {
            fs::write(path, text).unwrap();
            let call = (self == Self::Writes).then_some(id);
            if matches!(self, Self::Writes | Self::WritesOfNobody) {
                chat.engine.index_written(path, None, call).await.unwrap();
            }
        }
        self.answers(chat, id, call, "done").await;
    }

    /// The model's call and its result, whatever it has done.
    async fn answers(self, chat: &mut Chat, id: &str, (name, args): (&str, Value), text: &str) {
        if !matches!(self, Self::Messages | Self::Images) {
            chat.answered(id, name, args, text, Status::Ok).await;
            return;
        }
        chat.calls(id, name, args);
        chat.results(id, name, text, Status::Ok);
        if self == Self::Images {
            let content = chat.messages.last_mut().unwrap().message["content"].as_array_mut().unwrap();
            content.push(json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" }));
        }
    }
}

fn edit(path: &str, edits: &[(&str, &str)]) -> (&'static str, Value) {
    let edits: Vec<Value> =
        edits.iter().map(|(old, new)| json!({ "oldText": old, "newText": new })).collect();
    ("edit", json!({ "path": path, "edits": edits }))
}

fn write(path: &str, text: &str) -> (&'static str, Value) {
    ("write", json!({ "path": path, "content": text }))
}

/// The change of a file of 40 lines between the model's read and its call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Others {
    /// Nothing.
    Nothing,
    /// Line 30 has changed, and no client has looked.
    Unstored,
    /// The same, and another session has stored it.
    Stored,
    /// The same, and the model had a notice.
    Announced,
    /// The same in a file that was deleted and made anew.
    Anew,
    /// The same in a file that the model has not read.
    NeverRead,
    /// The same, and the result reports it.
    InTheResult,
}

const NEW: &str = "new line 30\n";

impl Others {
    /// Returns the file's path, and what is in it when the call comes.
    async fn happen(self, bench: &Bench, chat: &mut Chat, ends: &str) -> (String, String) {
        let first = lines("old", 40).replace('\n', ends);
        let path = bench.write("a.txt", &first);
        chat.asks("go").await;
        if self != Self::NeverRead {
            chat.reads("read", &path).await;
            chat.advance().await;
        }
        if self == Self::Nothing {
            return (path, first);
        }
        let now = first.replace(&format!("old line 30{ends}"), &NEW.replace('\n', ends));
        if self == Self::Anew {
            fs::remove_file(&path).unwrap();
            chat.engine.reconcile().await.unwrap();
        }
        fs::write(&path, &now).unwrap();
        match self {
            Self::Stored => {
                bench.open("other").await.index_file(&path, None, None).await.unwrap();
            }
            Self::Announced => {
                let notice = chat.hears(" +1 -1").await;
                chat.say(json!({ "role": "custom", "content": notice }));
            }
            _ => {}
        }
        (path, now)
    }
}

/// The notices after the model's call, then those after a restart, and after one more change of another line.
async fn notices(bench: &Bench, chat: &mut Chat, path: &str) -> [Vec<String>; 3] {
    let told = chat.advance().await.notices;
    for line in &told {
        chat.say(json!({ "role": "custom", "content": line }));
    }
    chat.ends().await;
    chat.restart(bench).await;
    let again = chat.turn("on").await.notices;
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, text.replace("old line 35", "last line 35")).unwrap();
    chat.engine.reconcile().await.unwrap();
    [told, again, chat.turn("on").await.notices]
}

/// Line 7 is edited. The last two: the notices after it, and after yet another change of one line.
#[rstest]
#[case(Others::Nothing, &[], " +1 -1")]
#[case(Others::Unstored, &[" +1 -1"], " +2 -2")]
#[case(Others::Stored, &[" +1 -1"], " +2 -2")]
#[case(Others::Announced, &[], " +2 -2")]
#[case(Others::Anew, &[" +1 -1"], " +2 -2")]
#[case(Others::NeverRead, &[], " +1 -1")]
#[case(Others::InTheResult, &[], " +1 -1")]
#[tokio::test(flavor = "multi_thread")]
async fn change_by_others_is_announced_once_after_an_edit(
    #[case] others: Others,
    #[case] expected: &[&str],
    #[case] then: &str,
    #[values(Host::Messages, Host::Images, Host::Results, Host::Writes, Host::WritesOfNobody)] host: Host,
    #[values("\n", "\r\n")] ends: &str,
) {
    let (bench, mut chat) = Chat::on(Backend::Sqlite).await;
    let (path, now) = others.happen(&bench, &mut chat, ends).await;
    let call = edit(&path, &[("old line 6\nold line 7\n", "old line 6\nmy line 7\n")]);
    let left = now.replace("old line 7", "my line 7");
    if others == Others::InTheResult {
        let texts = ["old line 7".to_owned()];
        let id = (host != Host::WritesOfNobody).then_some("edit");
        let EditGuard::Allowed { difference: Some(text) } =
            chat.engine.guard_edit(&path, Some(&texts), id).await.unwrap()
        else {
            panic!("the model has not seen the change")
        };
        fs::write(&path, &left).unwrap();
        if matches!(host, Host::Writes | Host::WritesOfNobody) {
            chat.engine.index_written(&path, None, id).await.unwrap();
        }
        host.answers(&mut chat, "edit", call, &format!("done\n\n{text}")).await;
    } else {
        host.calls(&mut chat, "edit", call, &[(&path, &left)]).await;
    }
    let [told, again, last] = notices(&bench, &mut chat, &path).await;
    assert_eq!(told.len(), expected.len(), "{told:?}");
    assert!(told.iter().zip(expected).all(|(line, end)| line.ends_with(end)), "{told:?}");
    assert_eq!(again, Vec::<String>::new(), "a restart tells nothing new");
    assert!(last.len() == 1 && last[0].ends_with(then), "{last:?}");
}

/// The file has only the text that the model has written, so a notice of the others' change would be empty.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn write_over_a_change_needs_no_notice(
    #[values(Host::Messages, Host::Results, Host::Writes, Host::WritesOfNobody)] host: Host,
    #[values(Others::Unstored, Others::Stored, Others::Announced)] others: Others,
) {
    let (bench, mut chat) = Chat::on(Backend::Sqlite).await;
    let (path, _) = others.happen(&bench, &mut chat, "\n").await;
    let text = lines("old", 40).replace("old line 7\n", "my line 7\n");
    host.calls(&mut chat, "write", write(&path, &text), &[(&path, &text)]).await;
    let [told, again, last] = notices(&bench, &mut chat, &path).await;
    assert_eq!([told, again], [Vec::<String>::new(), Vec::new()]);
    assert!(last.len() == 1 && last[0].ends_with(" +1 -1"), "{last:?}");
}

/// After the notice, a guarded edit gets the others' change and not the model's own.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn later_difference_has_only_lines_of_others(
    #[values(Others::Unstored, Others::Announced)] others: Others,
    #[values(false, true)] restarts: bool,
) {
    let (bench, mut chat) = Chat::on(Backend::Sqlite).await;
    let (path, now) = others.happen(&bench, &mut chat, "\n").await;
    let mut text = now;
    for n in [7, 9] {
        text = text.replace(&format!("old line {n}\n"), &format!("my line {n}\n"));
        let call = edit(&path, &[(&format!("old line {n}\n"), &format!("my line {n}\n"))]);
        Host::Results.calls(&mut chat, &format!("edit {n}"), call, &[(&path, &text)]).await;
    }
    for line in chat.advance().await.notices {
        chat.say(json!({ "role": "custom", "content": line }));
    }
    chat.ends().await;
    if restarts {
        chat.restart(&bench).await;
    }
    let guard = chat.engine.guard_edit(&path, None, None).await.unwrap();
    let EditGuard::Refused(told) = guard else { panic!("{guard:?}") };
    assert!(told.contains("\n-old line 30\n+new line 30\n") && !told.contains("my line 7\n+"), "{told}");
    assert!(told.contains("@@") && !told.contains("\n+my line"), "{told}");
}

/// Several edits in one call, several calls in one answer, and both.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn several_edits_of_one_answer_hide_nothing(
    #[values(Host::Messages, Host::Results, Host::Writes, Host::WritesOfNobody)] host: Host,
    #[values(1, 2)] calls: usize,
) {
    let (bench, mut chat) = Chat::on(Backend::Sqlite).await;
    let (path, now) = Others::Unstored.happen(&bench, &mut chat, "\n").await;
    let mut left = now;
    for call in 0..calls {
        let one = |n: usize| (format!("old line {}\n", n + call), format!("my line {}\n", n + call));
        let pairs = [one(5), one(15)];
        left = pairs.iter().fold(left, |text, (old, new)| text.replace(old, new));
        let edits: Vec<(&str, &str)> = pairs.iter().map(|(old, new)| (&**old, &**new)).collect();
        host.calls(&mut chat, &format!("edit {call}"), edit(&path, &edits), &[(&path, &left)]).await;
    }
    let [told, again, last] = notices(&bench, &mut chat, &path).await;
    assert!(told.len() == 1 && told[0].ends_with(" +1 -1"), "{told:?}");
    assert!(again.is_empty() && last.len() == 1 && last[0].ends_with(" +2 -2"), "{again:?} {last:?}");
}

/// A call's text counts only where another program has changed the file: the text that it replaces is new to the model.
#[tokio::test(flavor = "multi_thread")]
async fn edit_of_foreign_text_does_not_make_the_rest_known() {
    let (bench, mut chat) = Chat::on(Backend::Sqlite).await;
    let (path, now) = Others::Stored.happen(&bench, &mut chat, "\n").await;
    let call = edit(&path, &[("new line 30\n", "my line 30\n")]);
    Host::Results.calls(&mut chat, "edit", call, &[(&path, &now.replace("new line 30", "my line 30"))]).await;
    let [told, again, _] = notices(&bench, &mut chat, &path).await;
    assert!(told.len() == 1 && told[0].ends_with(" changed") && again.is_empty(), "{told:?} {again:?}");
}

/// A shell has made the edit: the model hears of each changed line, from any program.
#[tokio::test(flavor = "multi_thread")]
async fn shell_edit_is_announced_with_changes_by_others() {
    let (bench, mut chat) = Chat::on(Backend::Sqlite).await;
    let (path, now) = Others::Unstored.happen(&bench, &mut chat, "\n").await;
    let call = ("bash", json!({ "command": format!("sed -i s/old line 7$/my line 7/ {path}") }));
    Host::Results
        .calls(&mut chat, "sed", call, &[(&path, &now.replace("old line 7\n", "my line 7\n"))])
        .await;
    let [told, again, _] = notices(&bench, &mut chat, &path).await;
    assert!(told.len() == 1 && told[0].ends_with(" +2 -2") && again.is_empty(), "{told:?} {again:?}");
}

/// The model knows a file by a link, and edits it there.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_through_a_link_hides_nothing() {
    let (bench, mut chat) = Chat::on(Backend::Sqlite).await;
    let (first, link) = (bench.write("real.txt", lines("old", 40)), bench.path("link.txt"));
    std::os::unix::fs::symlink(&first, &link).unwrap();
    chat.asks("go").await;
    chat.reads("read", &link).await;
    chat.advance().await;
    let now = lines("old", 40).replace("old line 30\n", NEW);
    let call = edit(&link, &[("old line 7\n", "my line 7\n")]);
    Host::Results
        .calls(&mut chat, "edit", call, &[(&link, &now.replace("old line 7\n", "my line 7\n"))])
        .await;
    let [told, again, _] = notices(&bench, &mut chat, &link).await;
    assert!(told.len() == 1 && told[0].contains("path=") && told[0].ends_with(" +1 -1"), "{told:?}");
    assert!(told[0].contains("link.txt") && again.is_empty(), "{told:?} {again:?}");
}

/// Codex changes files by patches, several in one. The next process also knows the patched text.
#[rstest]
#[case(Others::Nothing, 0, " +1 -1")]
#[case(Others::Unstored, 1, " +2 -2")]
#[case(Others::Stored, 1, " +2 -2")]
#[tokio::test(flavor = "multi_thread")]
async fn a_patch_hides_nothing(
    #[case] others: Others,
    #[case] count: usize,
    #[case] then: &str,
    #[values(Host::Writes, Host::WritesOfNobody)] host: Host,
) {
    let (bench, mut chat) = Chat::on(Backend::Sqlite).await;
    let (path, now) = others.happen(&bench, &mut chat, "\n").await;
    let other = bench.path("b.txt");
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n old line 6\n-old line 7\n+my line 7\n old line 8\n*** Add File: b.txt\n+one\n*** End Patch";
    let left = now.replace("old line 7\n", "my line 7\n");
    let call = ("apply_patch", json!({ "input": patch }));
    host.calls(&mut chat, "patch", call, &[(&path, &left), (&other, "one\n")]).await;
    let [told, again, last] = notices(&bench, &mut chat, &path).await;
    assert!(told.len() == count && told.iter().all(|line| line.ends_with(" +1 -1")), "{told:?}");
    assert!(again.is_empty() && last.len() == 1 && last[0].ends_with(then), "{again:?} {last:?}");
    let last = chat.hears_of(&other, "one\ntwo\n", " +1 -0").await;
    assert!(last.contains("b.txt"), "{last}");
}

/// A part that is read later says nothing of the rest of a file that the model has written itself.
#[tokio::test(flavor = "multi_thread")]
async fn part_of_a_foreign_version_hides_no_change() {
    let (bench, mut chat) = Chat::on(Backend::Sqlite).await;
    let (path, text) = (bench.path("a.txt"), lines("old", 40));
    chat.asks("go").await;
    Host::Writes.calls(&mut chat, "write", write(&path, &text), &[(&path, &text)]).await;
    chat.advance().await;
    fs::write(&path, text.replace("old line 30\n", NEW)).unwrap();
    let (args, part) = (json!({ "path": path, "offset": 3, "limit": 2 }), "old line 3\nold line 4");
    chat.answered("part", "read", args, part, Status::Ok).await;
    let told = chat.advance().await.notices;
    assert!(told.len() == 1 && told[0].ends_with(" +1 -1"), "{told:?}");
    chat.hears_nothing().await;
}

/// Three names of one file, and one notice, by the name that the model has used last.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn file_with_three_names_is_announced_once_by_the_last_one() {
    let (bench, mut chat) = Chat::on(Backend::Sqlite).await;
    let real = bench.write("real.txt", lines("old", 40));
    let names = ["one.txt", "two.txt"].map(|name| bench.path(name));
    names.iter().for_each(|name| std::os::unix::fs::symlink(&real, name).unwrap());
    chat.asks("go").await;
    for (number, name) in [&names[1], &real, &names[0], &names[1]].into_iter().enumerate() {
        chat.read(&format!("read {number}"), name, Some((1 + number, 9 + number))).await;
        chat.advance().await;
    }
    for n in [10, 11] {
        let text = fs::read_to_string(&real).unwrap();
        let told = chat.hears_of(&real, text.replace(&format!("old line {n}\n"), "another\n"), "").await;
        assert!(told.contains("two.txt "), "{told}");
        chat.say(json!({ "role": "custom", "content": told }));
        chat.restart(&bench).await;
    }
}
