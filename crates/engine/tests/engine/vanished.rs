//! Ways in which a path changes other than by new bytes in its file: the file or one of its folders disappears, something
//! else takes its place, or a link leads elsewhere.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use context_engine::{Engine, FileEventKind, Options};
use context_model::error::ErrorCode;
use context_model::id::ObjectId;
use context_model::object::Status;
use rstest::rstest;
use serde_json::{Value, json};

use crate::bench::{Backend, Bench};
use crate::chat::Chat;
use crate::truth::{chat, lines as of};
use crate::watching::events;

/// The fate of `dir/sub/a.txt`.
#[derive(Clone, Copy, Debug)]
enum Loss {
    FileRemoved,
    FolderRemoved,
    ParentRemoved,
    FolderMoved,
    FileIsFolder,
    FileIsPipe,
    FileIsDanglingLink,
    FolderIsFile,
    FolderIsPipe,
    FolderIsDanglingLink,
}

impl Loss {
    fn happen(self, bench: &Bench) {
        let (file, folder) = (bench.path("dir/sub/a.txt"), bench.path("dir/sub"));
        let remove = |path: &str| fs::remove_dir_all(path).unwrap();
        let pipe = |path: &str| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        match self {
            Self::FileRemoved | Self::FileIsFolder | Self::FileIsPipe | Self::FileIsDanglingLink => {
                fs::remove_file(&file).unwrap();
            }
            Self::ParentRemoved => remove(&bench.path("dir")),
            Self::FolderMoved => fs::rename(&folder, bench.path("away")).unwrap(),
            _ => remove(&folder),
        }
        match self {
            Self::FileIsFolder => fs::create_dir(&file).unwrap(),
            Self::FileIsPipe => pipe(&file),
            Self::FileIsDanglingLink => symlink("no/where", &file).unwrap(),
            Self::FolderIsFile => fs::write(&folder, "a file").unwrap(),
            Self::FolderIsPipe => pipe(&folder),
            Self::FolderIsDanglingLink => symlink("no/where", &folder).unwrap(),
            _ => {}
        }
    }
}

/// Reads a file and takes a turn. Returns the file's object.
async fn shown(chat: &mut Chat, path: &str) -> ObjectId {
    chat.user("read");
    let id = chat.engine.index_file(path, None, None).await.unwrap().id;
    chat.read("one", path, None).await;
    chat.ends().await;
    assert_eq!(chat.notices, Vec::<String>::new());
    id
}

/// A session that has read `r1/a.txt` through a link, and what is in `r2/a.txt`.
async fn linked(link: Link, second: &str) -> (Bench, Chat, String) {
    let (bench, mut chat) = Chat::on(Backend::Memory).await;
    let path = link.prepare(&bench, [&of("old", 40), second]);
    shown(&mut chat, &path).await;
    (bench, chat, path)
}

fn changed() -> String {
    of("old", 40).replace("old line 7\n", "new line 7\n")
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn vanished_file_is_told_and_not_shown_any_more(
    #[values(
        Loss::FileRemoved,
        Loss::FolderRemoved,
        Loss::ParentRemoved,
        Loss::FolderMoved,
        Loss::FileIsFolder,
        Loss::FileIsPipe,
        Loss::FileIsDanglingLink,
        Loss::FolderIsFile,
        Loss::FolderIsPipe,
        Loss::FolderIsDanglingLink
    )]
    loss: Loss,
    #[values(true, false)] watch: bool,
) {
    let bench = Bench::new(Backend::Sqlite);
    let path = bench.write("dir/sub/a.txt", of("old", 40));
    let mut chat = Chat::new(Engine::open(Options { watch, ..bench.options("s") }).await.unwrap());
    let id = shown(&mut chat, &path).await;

    loss.happen(&bench);
    let find = async |chat: &Chat| match watch {
        true => chat.engine.flush().await.unwrap(),
        false => drop(chat.engine.reconcile().await.unwrap()),
    };
    find(&chat).await;
    chat.is_told("a.txt deleted").await;
    assert_eq!(chat.turn("next.").await.notices, [""; 0], "once");
    let activated = chat.engine.activate(id.as_str(), None).await.unwrap();
    assert_eq!(activated.code, Some(ErrorCode::NullContent), "{}", activated.message);
    let view = chat.engine.assemble().await.unwrap();
    assert!(view.blocks().all(|block| *block.id != id || block.content.is_empty()));

    // And when it is back, with another text.
    for left in [&path, &bench.path("dir/sub")] {
        if fs::symlink_metadata(left).is_ok_and(|found| !found.is_dir()) {
            fs::remove_file(left).unwrap();
        }
    }
    if fs::metadata(&path).is_ok_and(|found| found.is_dir()) {
        fs::remove_dir(&path).unwrap();
    }
    bench.write("dir/sub/a.txt", of("new", 40));
    find(&chat).await;
    chat.is_told("+40 -40").await;
}

/// The model's call of a path, and what it answers.
fn call_of(tool: &str, path: &str) -> (Value, String) {
    match tool {
        "read" => (json!({ "path": path }), of("old", 40)),
        "write" => (json!({ "path": path, "content": of("old", 40) }), "written".into()),
        _ => (json!({ "path": path, "edits": [{ "oldText": "a", "newText": "b" }] }), "edited".into()),
    }
}

/// A call of a file that is gone before anybody has stored it. Its session has met another file on this disk, or none.
async fn called_and_gone(
    bench: &Bench,
    tool: &str,
    path: &str,
    loss: Option<Loss>,
    is_late: bool,
    has_met: bool,
) -> Chat {
    let mut chat = chat(bench, "s").await;
    chat.user("go");
    if has_met {
        chat.read("met", &bench.write("other.txt", of("other", 3)), None).await;
    }
    chat.advance().await;
    if let Some(loss) = loss {
        bench.write("dir/sub/a.txt", of("old", 40));
        loss.happen(bench);
    }
    let (args, output) = call_of(tool, path);
    if is_late {
        chat.calls("one", tool, args);
        chat.results("one", tool, &output, Status::Ok);
        chat.engine.close().await.unwrap();
        chat.engine = bench.open("s").await;
        chat.engine.resync(chat.messages.clone(), chat.told, &chat.call()).await.unwrap();
        chat.told = chat.messages.len();
    } else {
        chat.run("one", tool, args, &output).await;
        chat.advance().await;
    }
    chat
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn file_gone_before_it_was_stored_is_announced(
    #[values("read", "write", "edit")] tool: &str,
    #[values(
        Loss::FileRemoved,
        Loss::FolderRemoved,
        Loss::ParentRemoved,
        Loss::FolderMoved,
        Loss::FileIsFolder,
        Loss::FileIsPipe,
        Loss::FileIsDanglingLink,
        Loss::FolderIsFile,
        Loss::FolderIsPipe,
        Loss::FolderIsDanglingLink
    )]
    loss: Loss,
    #[values(true, false)] is_late: bool,
) {
    // A tool may have read a folder or a pipe.
    if tool == "read" && matches!(loss, Loss::FileIsFolder | Loss::FileIsPipe) {
        return;
    }
    let bench = Bench::new(Backend::Sqlite);
    let path = bench.path("dir/sub/a.txt");
    let mut chat = called_and_gone(&bench, tool, &path, Some(loss), is_late, true).await;
    chat.turn("next.").await;
    let said = std::mem::take(&mut chat.notices);
    assert!(said.len() == 1 && said[0].ends_with("a.txt deleted"), "{said:?}");
    assert_eq!(chat.turn("next.").await.notices, [""; 0], "once");
}

/// Tools may work on another machine, and some read paths that are not files.
#[rstest]
#[case::of_another_machine("write", "dir/a.txt", false)]
#[case::of_another_machine("read", "dir/a.txt", false)]
#[case::address("read", "https://example.com/a.txt", true)]
#[case::member_of_an_archive("read", "a.zip:dir/a.txt", true)]
#[case::lines("read", "a.txt:10-20", true)]
#[case::folder("read", ".", true)]
#[tokio::test(flavor = "multi_thread")]
async fn path_that_may_never_have_been_a_file_is_not_announced_as_deleted(
    #[case] tool: &str,
    #[case] path: &str,
    #[case] has_met: bool,
    #[values(true, false)] is_late: bool,
) {
    let bench = Bench::new(Backend::Memory);
    let mut chat = called_and_gone(&bench, tool, path, None, is_late, has_met).await;
    chat.turn("next.").await;
    assert_eq!(chat.notices, [""; 0]);
}

/// Without the folder that had it, a file outside of the session's folders may be out of reach: a drive that is not there.
#[tokio::test(flavor = "multi_thread")]
async fn missing_folder_outside_the_session_is_orphaned_at_resume() {
    let bench = Bench::new(Backend::Memory);
    let beside = bench.outside().join("drive/dir");
    fs::create_dir_all(&beside).unwrap();
    fs::write(beside.join("a.txt"), "text").unwrap();
    let engine = bench.open("s").await;
    let id = engine.index_file(beside.join("a.txt").to_str().unwrap(), None, None).await.unwrap().id;
    engine.close().await.unwrap();
    fs::remove_dir_all(&beside).unwrap();
    let engine = bench.watching("s").await;
    let heard = events(&engine);
    engine.flush().await.unwrap();
    let kinds: Vec<FileEventKind> = heard.lock().unwrap().iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [FileEventKind::Orphaned]);
    assert_eq!(bench.contents(&id).await, [Some("text".to_owned())]);
}

/// The place of a link, and the way in which a path leads through it.
#[derive(Clone, Copy, Debug)]
enum Link {
    ToFile,
    ToFolder,
    /// The link has taken the place of a file.
    ForFile,
    /// The link has taken the place of a folder.
    ForFolder,
}

impl Link {
    /// Makes `r1/a.txt` and `r2/a.txt`, and the path that leads to the first.
    fn prepare(self, bench: &Bench, texts: [&str; 2]) -> String {
        bench.write("r1/a.txt", texts[0]);
        bench.write("r2/a.txt", texts[1]);
        match self {
            Self::ToFile => symlink("r1/a.txt", bench.root().join("current")).unwrap(),
            Self::ToFolder => symlink("r1", bench.root().join("current")).unwrap(),
            Self::ForFile => drop(bench.write("current", texts[0])),
            Self::ForFolder => drop(bench.write("current/a.txt", texts[0])),
        }
        bench.path(match self {
            Self::ToFile | Self::ForFile => "current",
            Self::ToFolder | Self::ForFolder => "current/a.txt",
        })
    }

    /// Points it to a folder.
    fn point(self, bench: &Bench, to: &str) {
        let link = bench.root().join("current");
        if link.is_dir() && !link.is_symlink() {
            fs::remove_dir_all(&link).unwrap();
        } else {
            fs::remove_file(&link).unwrap();
        }
        match self {
            Self::ToFile | Self::ForFile => symlink(format!("{to}/a.txt"), link).unwrap(),
            Self::ToFolder | Self::ForFolder => symlink(to, link).unwrap(),
        }
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn link_pointed_elsewhere_is_told_as_a_change_of_its_path(
    #[values(Link::ToFile, Link::ToFolder, Link::ForFile, Link::ForFolder)] link: Link,
) {
    let (bench, mut chat, path) = linked(link, &changed()).await;
    let name = format!(" path={path} ");
    link.point(&bench, "r2");
    assert!(chat.hears(" +1 -1").await.contains(&name));
    assert_eq!(chat.turn("next.").await.notices, [""; 0], "once");

    // The model does not know the earlier content of the path by this path.
    bench.write("r1/a.txt", of("other", 3));
    chat.hears_nothing().await;
    assert!(chat.hears_of(&bench.path("r2/a.txt"), of("last", 3), "").await.contains(&name));
    bench.write("r1/a.txt", of("old", 40));
    link.point(&bench, "r1");
    chat.is_told("as you know it again").await;
    link.point(&bench, "no-where");
    chat.hears(" deleted").await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn edit_through_a_link_pointed_elsewhere_is_refused_with_the_difference_if_there_is_one(
    #[values(Link::ToFile, Link::ToFolder, Link::ForFile, Link::ForFolder)] link: Link,
    #[values(false, true)] is_equal: bool,
) {
    let second = if is_equal { of("old", 40) } else { changed() };
    let (bench, mut chat, path) = linked(link, &second).await;
    assert_eq!(chat.engine.check_edit(&path).await.unwrap(), None);
    link.point(&bench, "r2");
    if is_equal {
        chat.hears_nothing().await;
    } else {
        let refusal = chat.engine.check_edit(&path).await.unwrap().unwrap();
        assert!(refusal.contains("\n-old line 7\n+new line 7\n"), "{refusal}");
    }
    assert_eq!(chat.engine.check_edit(&path).await.unwrap(), None, "refused once at most");
}

#[tokio::test(flavor = "multi_thread")]
async fn file_known_by_two_paths_is_told_by_each_as_it_changes() {
    let (bench, mut chat, _) = linked(Link::ToFolder, &of("new", 40)).await;
    let own = bench.path("r1/a.txt");
    chat.read("two", &own, Some((1, 5))).await;
    chat.ends().await;
    Link::ToFolder.point(&bench, "r2");
    assert!(chat.is_told("").await.contains("current/a.txt version="));
    assert!(chat.hears_of(&own, of("own", 40), "").await.contains("r1/a.txt version="));
}

/// A file that a link led to was read and never stored. The model's knowledge of the link's path is compared with the file
/// there, in every process.
#[tokio::test(flavor = "multi_thread")]
async fn link_to_an_unstored_file_is_announced_in_each_process() {
    let bench = Bench::new(Backend::Sqlite);
    let link = bench.root().join("link.txt");
    bench.write("r0/t.txt", of("old", 40));
    symlink("r0/t.txt", &link).unwrap();
    let mut chat = chat(&bench, "s").await;
    chat.user("go");
    chat.read("met", &bench.write("other.txt", of("other", 3)), None).await;
    chat.advance().await;
    let point = |to: &str| {
        fs::remove_file(&link).unwrap();
        symlink(to, &link).unwrap();
    };
    point("r1/t.txt");
    fs::remove_dir_all(bench.path("r0")).unwrap();
    chat.run("one", "read", json!({ "path": bench.path("link.txt") }), &of("old", 40)).await;
    for round in 0..4 {
        if round == 2 {
            fs::remove_file(&link).unwrap();
            fs::write(&link, of("another", 3)).unwrap();
            bench.open("another").await.index_file(link.to_str().unwrap(), None, None).await.unwrap();
            point("r0/t.txt");
        }
        chat.is_told("link.txt deleted").await;
        chat.restart(&bench).await;
    }
}
