//! Every description of a change for the model has a limit: a difference, a refusal, an answer to a read.

use std::fs;

use context_engine::EditGuard;
use context_model::object::Status;
use context_model::tokens::utf16_len;
use rstest::rstest;
use serde_json::json;

use crate::bench::{Backend, Bench};
use crate::chat::Chat;
use crate::truth::lines;

/// The maximum length of a description of one change, in UTF-16 units: a difference and the sentence around it.
const MOST: usize = 10_500;

/// A change of a text of some lines.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    /// Each line has another indent.
    Indented,
    /// Each line also ends with a carriage return.
    CarriageReturns,
    /// The lines are in another order.
    Shuffled,
    /// The first eighth has other words.
    Eighth,
    /// One line became as long as half of the text.
    LongLine,
    /// All of it is one line that has changed.
    OneLine,
    /// Nothing is left.
    Emptied,
    /// Five lines in the middle are other ones.
    Few,
    /// Each line has another word.
    Words,
}

const LINE: &str = "a line of the file ";

/// The line to edit, which is not the one that has changed.
const KEPT: &str = "a line of the file that stays as it is";

impl Change {
    fn of(self, count: usize) -> (String, String) {
        let lines: Vec<String> = (0..count).map(|n| format!("{LINE}{n}")).collect();
        let put = |lines: &[String], end: &str| lines.join(end) + end + KEPT + "\n";
        let old = put(&lines, "\n");
        let other = |from: usize, to: usize| {
            let mut lines = lines.clone();
            lines[from..to].iter_mut().for_each(|line| *line = line.replace("line", "verse"));
            put(&lines, "\n")
        };
        let new = match self {
            Self::Indented => put(&lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>(), "\n"),
            Self::CarriageReturns => put(&lines, "\r\n"),
            Self::Shuffled => {
                // 7,919 is a prime that divides none of the counts.
                put(&(0..count).map(|n| lines[n * 7_919 % count].clone()).collect::<Vec<_>>(), "\n")
            }
            Self::Eighth => other(0, count / 8),
            Self::LongLine => put(&[&lines[..count / 2], &[LINE.repeat(count / 2)]].concat(), "\n"),
            Self::OneLine => {
                return (lines.concat() + "\n", lines.concat().replace("file 3", "file x") + "\n");
            }
            Self::Emptied => String::new(),
            Self::Few => other(count / 2, count / 2 + 5),
            Self::Words => other(0, count),
        };
        (old, new)
    }
}

fn guarded(guard: EditGuard) -> (bool, String) {
    match guard {
        EditGuard::Refused(text) => (false, text),
        EditGuard::Allowed { difference } => (true, difference.unwrap_or_default()),
    }
}

/// A chat that has read a file, which then has changed.
async fn changed(change: Change, count: usize) -> (Bench, Chat, String) {
    let (bench, mut chat) = Chat::on(Backend::Memory).await;
    let (old, new) = change.of(count);
    let path = bench.write("a.txt", old);
    chat.asks("go").await;
    chat.reads("one", &path).await;
    chat.advance().await;
    bench.write("a.txt", new);
    (bench, chat, path)
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn each_answer_about_a_change_has_a_limit(
    #[values(
        Change::Indented,
        Change::CarriageReturns,
        Change::Shuffled,
        Change::Eighth,
        Change::LongLine,
        Change::OneLine,
        Change::Emptied,
        Change::Few
    )]
    change: Change,
    #[values(12, 400, 4_000, 40_000)] count: usize,
) {
    let texts = [None, Some(vec![KEPT.to_owned()]), Some(vec![format!("{LINE}3\n")])];
    for texts in texts {
        let (_bench, mut chat, path) = changed(change, count).await;
        let guard = chat.engine.guard_edit(&path, texts.as_deref(), Some("two")).await.unwrap();
        let (is_allowed, text) = guarded(guard);
        assert!(!text.is_empty() && text.len() <= MOST + path.len(), "{}", text.len());
        if text.contains("read it again") {
            assert!(text.contains("in all\n") || !text.contains("@@"), "{text}");
            // The model has not seen the change yet, so it gets the same answer until it reads.
            let again = chat.engine.guard_edit(&path, texts.as_deref(), Some("three")).await.unwrap();
            assert_eq!(guarded(again), (is_allowed, text));
            let shown = chat.reads("four", &path).await;
            assert_eq!(shown, change.of(count).1, "the text itself, and no difference");
            chat.advance().await;
        } else if is_allowed {
            continue;
        }
        let after = chat.engine.guard_edit(&path, texts.as_deref(), Some("five")).await.unwrap();
        assert_eq!(after, EditGuard::Allowed { difference: None });
    }
}

/// A part of the file that is shown again says as much as it does of a file of which the model has been told nothing.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn part_that_is_read_again_allows_the_next_edit(
    #[values(Change::Indented, Change::CarriageReturns, Change::Words, Change::Shuffled)] change: Change,
    #[values(400, 4_000)] count: usize,
) {
    let (_bench, mut chat, path) = changed(change, count).await;
    let texts = [change.of(count).1.split_inclusive('\n').nth(3).unwrap().to_owned()];
    let (is_allowed, text) = guarded(chat.engine.guard_edit(&path, Some(&texts), Some("two")).await.unwrap());
    assert!(!is_allowed && text.contains("read it again"), "{text}");
    chat.answered("two", "edit", json!({ "path": path }), &text, Status::Fail).await;
    chat.advance().await;
    chat.read("three", &path, Some((1, 20))).await;
    chat.advance().await;
    let seen = chat.engine.guard_edit(&path, Some(&texts), Some("four")).await.unwrap();
    assert!(guarded(seen).0);
    // The rest is as unknown as it was, while the former text is in sight.
    if count > 400 {
        return;
    }
    let unseen = [change.of(count).1.split_inclusive('\n').nth(300).unwrap().to_owned()];
    for call in ["five", "six"] {
        let (is_allowed, text) =
            guarded(chat.engine.guard_edit(&path, Some(&unseen), Some(call)).await.unwrap());
        assert!(!is_allowed && text.contains("read it again"), "{text}");
    }
}

/// A read of a file whose former text is in sight is answered with a difference only if that is short.
#[rstest]
#[case(Change::Few, 400, true)]
#[case(Change::Few, 40_000, true)]
#[case(Change::Eighth, 400, true)]
#[case(Change::Eighth, 4_000, false)]
#[case(Change::Eighth, 40_000, false)]
#[case(Change::Shuffled, 40_000, false)]
#[tokio::test(flavor = "multi_thread")]
async fn read_is_answered_with_a_difference_that_is_short(
    #[case] change: Change,
    #[case] count: usize,
    #[case] is_difference: bool,
) {
    let (_bench, mut chat, path) = changed(change, count).await;
    let shown = chat.reads("two", &path).await;
    assert_eq!(shown.contains("@@"), is_difference, "{}", shown.len());
    assert!(if is_difference { shown.len() < MOST } else { shown == change.of(count).1 });
}

/// An edit beside a change that is too long to show is made. The model is then notified that it does not know the file, and
/// gets no further notice once it has read it.
#[rstest]
#[case(Change::Eighth, "more lines changed, +500 -500 in all\n")]
#[case(Change::Indented, "the change is too large to show: read it again.")]
#[tokio::test(flavor = "multi_thread")]
async fn edit_beside_a_long_change_leaves_the_change_to_be_told(
    #[case] change: Change,
    #[case] says: &str,
    #[values(true, false)] reports: bool,
) {
    let (bench, mut chat, path) = changed(change, 4_000).await;
    let texts = [KEPT.to_owned()];
    let (is_allowed, text) =
        guarded(chat.engine.guard_edit(&path, Some(&texts), Some("edit")).await.unwrap());
    assert!(is_allowed && text.contains(says), "{text}");
    let edited = change.of(4_000).1.replace(KEPT, "my line");
    bench.write("a.txt", &edited);
    if reports {
        chat.engine.index_written(&path, Some(edited.clone().into()), Some("edit")).await.unwrap();
    }
    let args = json!({ "path": path, "edits": [{ "oldText": KEPT, "newText": "my line" }] });
    chat.answered("edit", "edit", args, &format!("edited\n\n{text}"), Status::Ok).await;
    let notices = chat.advance().await.notices;
    let count = if change == Change::Eighth { "+500 -500" } else { "+4000 -4000" };
    assert!(notices.len() == 1 && notices[0].ends_with(count), "{notices:?}");
    assert_eq!(chat.reads("again", &path).await, edited);
    assert_eq!(chat.advance().await.notices, Vec::<String>::new());
    let free = EditGuard::Allowed { difference: None };
    assert_eq!(chat.engine.guard_edit(&path, None, Some("next")).await.unwrap(), free);
}

/// The same difference as before comes for a change that is short.
#[tokio::test(flavor = "multi_thread")]
async fn short_change_is_told_whole() {
    let (bench, mut chat) = Chat::on(Backend::Memory).await;
    let path = bench.write("a.txt", lines("old", 40));
    chat.asks("go").await;
    chat.reads("one", &path).await;
    chat.advance().await;
    bench.write("a.txt", lines("new", 40));
    let (is_allowed, text) = guarded(chat.engine.guard_edit(&path, None, Some("two")).await.unwrap());
    assert!(!is_allowed && text.contains("-old line 40\n+new line 1\n"), "{text}");
}

/// The paths of files, each of about this length.
fn paths(bench: &Bench, count: usize, length: usize) -> Vec<String> {
    let folder = format!("{}/", "a=\u{e4} ".repeat(25));
    let folder = folder.repeat(length.saturating_sub(bench.path("").len()) / folder.chars().count());
    (0..count).map(|n| bench.write(&format!("{folder}{n}.txt"), format!("text {n}\n"))).collect()
}

/// The model gets notices of all changes, any number at once: a line each for some of them, and for the others one line that
/// names a list. Both are recorded as notices, also after a restart.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn many_changes_at_once_are_told_within_a_limit(
    #[values((3, 0), (3, 900), (40, 900), (250, 0))] (count, length): (usize, usize),
    #[values("custom", "user")] role: &str,
) {
    let bench = Bench::new(Backend::Sqlite);
    let mut chat = Chat::new(bench.open("s").await);
    // Text that has left the request needs no notice.
    chat.rolls = false;
    chat.asks("go").await;
    let paths = paths(&bench, count, length);
    for (n, path) in paths.iter().enumerate() {
        chat.reads(&format!("c{n}"), path).await;
    }
    chat.advance().await;
    for (n, path) in paths.iter().enumerate() {
        if n % 3 == 0 {
            fs::remove_file(path).unwrap()
        } else {
            fs::write(path, format!("new {n}\n")).unwrap()
        }
    }
    chat.restart(&bench).await;
    let mut notices = chat.asks("now").await.notices;
    let text = notices.join("\n");
    assert!(utf16_len(&text) <= MOST, "{}", utf16_len(&text));
    assert_eq!(notices.len() < count, count > 3, "{text}");
    if notices.len() < count {
        let summary = notices.pop().unwrap();
        let (_, id) = summary.split_once("id=").unwrap();
        let (id, _) = id.split_once(' ').unwrap();
        let list = chat.engine.activate(id, None).await.unwrap().content.unwrap();
        assert!(summary.contains(&format!("more={}:", list.lines().count())), "{summary}");
        notices.extend(list.lines().map(str::to_owned));
        assert_eq!(chat.engine.activate(id, None).await.unwrap().content, Some(list));
    }
    for path in &paths {
        let is_of =
            |line: &&String| line.contains(&format!("path={} ", context_lines::escape::short_text(path)));
        assert_eq!(notices.iter().filter(is_of).count(), 1, "{path}");
    }
    assert_eq!(chat.advance().await.notices, Vec::<String>::new());
    chat.say(json!({ "role": role, "content": text }));
    chat.restart(&bench).await;
    assert_eq!(chat.turn("on").await.notices, Vec::<String>::new());
    chat.engine.close().await.unwrap();
    // If the host did not keep the notices, the model has not seen them.
    chat.messages.retain(|one| one.message["content"] != text);
    chat.restart(&bench).await;
    let again = chat.turn("on").await.notices;
    assert_eq!(again.join("\n"), text);
}

/// The differences of all edits of one answer have a limit together. Each message begins anew.
#[tokio::test(flavor = "multi_thread")]
async fn calls_of_one_answer_are_told_of_changes_within_a_limit() {
    let (bench, mut chat) = Chat::on(Backend::Memory).await;
    chat.asks("go").await;
    let names: Vec<String> = (0..20).map(|n| format!("{n}.txt")).collect();
    let (old, new) = Change::Eighth.of(4_000);
    for name in &names {
        let path = bench.write(name, &old);
        chat.reads(name, &path).await;
    }
    chat.advance().await;
    let mut shown = Vec::new();
    for name in &names {
        let path = bench.write(name, &new);
        let (is_allowed, text) = guarded(chat.engine.guard_edit(&path, None, Some("e")).await.unwrap());
        assert!(!is_allowed && text.contains("read it again"), "{text}");
        shown.push(text.len());
    }
    let total: usize = shown.iter().sum();
    assert!(shown[0] > 9_000 && shown[19] < 1_000 && total < 40_000, "{shown:?}");
    chat.asks("on").await;
    let (_, text) = guarded(chat.engine.guard_edit(&bench.path("19.txt"), None, Some("f")).await.unwrap());
    assert!(text.len() > 9_000, "{text}");
}

/// Names in our sentences have a limit.
#[rstest]
#[case::of_an_object("x")]
#[case::of_a_version("x@1")]
#[case::invisible("\u{200b}")]
#[tokio::test(flavor = "multi_thread")]
async fn long_name_in_a_sentence_is_shown_without_its_middle(#[case] name: &str) {
    let (_bench, chat) = Chat::on(Backend::Memory).await;
    let name = name.repeat(100_000);
    for change in [chat.engine.activate(&name, None).await, chat.engine.pin(&name).await] {
        let message = change.unwrap().message;
        assert!(utf16_len(&message) < 1_200, "{}", message.len());
    }
    let args = json!({ name: "[collapsed #ab: 200 chars]" });
    let refused = chat.engine.check_arguments(args.as_object().unwrap()).await.unwrap();
    assert!(refused.is_none_or(|text| utf16_len(&text) < 1_300));
}
