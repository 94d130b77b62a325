//! Drives that are unmounted, mounted again, or hide a folder: their files are out of reach and not deleted. The tests run in a
//! namespace of their own, where mounting is allowed to any user, if the machine allows such namespaces.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;

use context_engine::{Engine, FileEventKind, Options};
use context_model::id::ObjectId;
use rstest::rstest;

use crate::bench::{Backend, Bench, not_run};
use crate::chat::Chat;
use crate::truth::lines as of;
use crate::watching::events;

/// Set in the process that has the namespace.
const INSIDE: &str = "CONTEXT_ENGINE_MAY_MOUNT";

/// Runs the present test in a separate namespace. True in that process.
fn inside() -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let test = std::thread::current().name().unwrap().to_owned();
    let unshare = |words: &[&OsStr]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount"]).args(words).env(INSIDE, "1").output()
    };
    let words = ["mount", "-t", "tmpfs", "none", "/mnt"].map(OsStr::new);
    if !unshare(&words).is_ok_and(|may| may.status.success()) {
        not_run("this machine does not allow mounts in a namespace");
        return false;
    }
    let own = std::env::current_exe().unwrap();
    let ran = unshare(&[own.as_ref(), "--exact".as_ref(), test.as_ref(), "--nocapture".as_ref()]).unwrap();
    let said = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
    false
}

/// A tracker may look at a drive just when it is to be unmounted, so that is tried until it has looked away.
const TRIES: usize = 500;

fn system(program: &str, words: &[&str]) {
    for last in 1..=TRIES {
        let ran = Command::new(program).args(words).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        if program == "umount" && said.contains("target is busy") && last < TRIES {
            continue;
        }
        assert!(ran.status.success(), "{program} {words:?}: {said}");
        return;
    }
}

/// Folders that are mounted, one after the other.
#[derive(Clone, Copy, Debug)]
enum Drive {
    /// A drive.
    Plain,
    /// A drive in a folder of another drive, of which the outer one is unmounted with it. Its name has a blank, which the table
    /// of mounts escapes.
    Nested,
    /// A folder and the changes to it, which lie elsewhere, as in a container.
    Overlay,
    /// A folder of this disk.
    Bound,
}

impl Drive {
    fn mount(self, bench: &Bench) {
        let drive = bench.path("drive");
        match self {
            Self::Plain => system("mount", &["-t", "tmpfs", "none", &drive]),
            Self::Nested => {
                system("mount", &["-t", "tmpfs", "none", &drive]);
                fs::create_dir(bench.path("drive/in ner")).unwrap();
                system("mount", &["-t", "tmpfs", "none", &bench.path("drive/in ner")]);
            }
            Self::Overlay => {
                let [below, above] = [bench.path("below"), bench.path("above")];
                fs::create_dir(&below).unwrap();
                fs::create_dir(&above).unwrap();
                system("mount", &["-t", "tmpfs", "none", &above]);
                let [upper, work] = [bench.path("above/upper"), bench.path("above/work")];
                fs::create_dir(&upper).unwrap();
                fs::create_dir(&work).unwrap();
                let layers = format!("userxattr,lowerdir={below},upperdir={upper},workdir={work}");
                system("mount", &["-t", "overlay", "none", "-o", &layers, &drive]);
            }
            Self::Bound => {
                // A bound folder of the same disk has the same device, so it lies on another one.
                fs::create_dir_all(bench.path("elsewhere")).unwrap();
                system("mount", &["-t", "tmpfs", "none", &bench.path("elsewhere")]);
                system("mount", &["--bind", &bench.path("elsewhere"), &drive]);
            }
        }
    }

    fn unmount(bench: &Bench) {
        system("umount", &["--recursive", &bench.path("drive")]);
    }

    /// The folders of files on it.
    fn folders(self) -> &'static [&'static str] {
        match self {
            Self::Nested => &["drive", "drive/sub/deep", "drive/in ner", "drive/in ner/sub"],
            _ => &["drive", "drive/sub/deep"],
        }
    }
}

/// A bench with a mounted drive, and a session that has read a file in each of its folders.
async fn mounted(drive: Drive, watch: bool) -> (Bench, Chat, Vec<(String, ObjectId)>) {
    let bench = Bench::new(Backend::Sqlite);
    fs::create_dir(bench.path("drive")).unwrap();
    drive.mount(&bench);
    let mut chat = Chat::new(open(&bench, watch).await);
    let mut files = Vec::new();
    for folder in drive.folders() {
        let path = bench.write(&format!("{folder}/a.txt"), of("old", 40));
        files.push(path.clone());
        chat.user("read");
        chat.read(&format!("call {folder}"), &path, None).await;
    }
    chat.ends().await;
    let mut known = Vec::new();
    for path in files {
        let id = chat.engine.index_file(&path, None, None).await.unwrap().id;
        known.push((path, id));
    }
    (bench, chat, known)
}

async fn open(bench: &Bench, watch: bool) -> Engine {
    Engine::open(Options { watch, ..bench.options("s") }).await.unwrap()
}

async fn look(engine: &Engine, watch: bool) {
    if watch { engine.flush().await.unwrap() } else { drop(engine.reconcile().await.unwrap()) }
}

async fn texts(bench: &Bench, files: &[(String, ObjectId)]) -> Vec<Vec<Option<String>>> {
    let mut texts = Vec::new();
    for (_, id) in files {
        texts.push(bench.contents(id).await);
    }
    texts
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_unmounted_drive_deletes_nothing(
    #[values(Drive::Plain, Drive::Nested, Drive::Overlay, Drive::Bound)] drive: Drive,
    #[values(true, false)] watch: bool,
) {
    if !inside() {
        return;
    }
    let (bench, mut chat, files) = mounted(drive, watch).await;
    let before = texts(&bench, &files).await;
    Drive::unmount(&bench);
    assert!(fs::read_dir(bench.path("drive")).unwrap().next().is_none());
    look(&chat.engine, watch).await;
    assert_eq!(texts(&bench, &files).await, before);
    assert_eq!(chat.turn("next.").await.notices, [""; 0]);

    // A process that has never seen the drive mounted.
    chat.restart(&bench).await;
    chat.engine.reconcile().await.unwrap();
    assert_eq!(texts(&bench, &files).await, before);
    assert_eq!(chat.turn("next.").await.notices, [""; 0]);
    // Another file in the empty folder changes nothing about that.
    let own = bench.write("drive/own.txt", of("own", 3));
    chat.read("own", &own, None).await;
    chat.ends().await;
    chat.engine.reconcile().await.unwrap();
    assert_eq!(texts(&bench, &files).await, before);
    fs::remove_file(&own).unwrap();
    chat.hears("own.txt deleted").await;
    assert_eq!(texts(&bench, &files).await, before);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn deletion_on_a_drive_is_announced(
    #[values(Drive::Plain, Drive::Nested, Drive::Overlay, Drive::Bound)] drive: Drive,
    #[values(true, false)] watch: bool,
    #[values(true, false)] restarts: bool,
) {
    if !inside() {
        return;
    }
    let (bench, mut chat, files) = mounted(drive, watch).await;
    if restarts {
        chat.restart(&bench).await;
    }
    for (path, id) in &files {
        fs::remove_file(path).unwrap();
        chat.engine.reconcile().await.unwrap();
        chat.is_told("a.txt deleted").await;
        assert_eq!(bench.contents(id).await.last(), Some(&None), "{path}");
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn remounted_drive_is_compared(#[values(true, false)] restarts: bool) {
    if !inside() {
        return;
    }
    let (bench, mut chat, files) = mounted(Drive::Bound, false).await;
    Drive::unmount(&bench);
    chat.hears_nothing().await;
    if restarts {
        chat.restart(&bench).await;
        chat.hears_nothing().await;
    }
    fs::remove_file(bench.path("elsewhere/a.txt")).unwrap();
    system("mount", &["--bind", &bench.path("elsewhere"), &bench.path("drive")]);
    chat.hears("drive/a.txt deleted").await;
    assert_eq!(bench.contents(&files[0].1).await, [Some(of("old", 40)), None]);
    assert_eq!(bench.contents(&files[1].1).await, [Some(of("old", 40))]);
    // Another drive in the same place has other files, and says nothing about those of this one.
    Drive::unmount(&bench);
    system("mount", &["-t", "tmpfs", "none", &bench.path("drive")]);
    chat.hears_nothing().await;
    assert_eq!(bench.contents(&files[1].1).await, [Some(of("old", 40))]);
}

/// A drive that is mounted over a folder hides its files.
#[tokio::test(flavor = "multi_thread")]
async fn folder_hidden_by_a_drive_has_lost_nothing() {
    if !inside() {
        return;
    }
    let bench = Bench::new(Backend::Sqlite);
    let path = bench.write("folder/a.txt", of("old", 40));
    let engine = open(&bench, true).await;
    let heard = events(&engine);
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    system("mount", &["-t", "tmpfs", "none", &bench.path("folder")]);
    engine.flush().await.unwrap();
    engine.reconcile().await.unwrap();
    assert_eq!(bench.contents(&id).await, [Some(of("old", 40))]);
    let kinds: Vec<_> = heard.lock().unwrap().iter().map(|event| event.kind).collect();
    assert!(kinds.contains(&FileEventKind::Orphaned), "{kinds:?}");
    system("umount", &[&bench.path("folder")]);
    fs::remove_file(&path).unwrap();
    engine.flush().await.unwrap();
    engine.reconcile().await.unwrap();
    assert_eq!(bench.contents(&id).await, [Some(of("old", 40)), None]);
}

/// A file that is mounted over another one is what its path leads to, and below it nothing is lost.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn file_under_another_one_is_back_after_it(#[values(true, false)] watch: bool) {
    if !inside() {
        return;
    }
    let bench = Bench::new(Backend::Sqlite);
    let (path, over) = (bench.write("a.txt", of("old", 40)), bench.write("b.txt", of("over", 40)));
    let engine = open(&bench, watch).await;
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    system("mount", &["--bind", &over, &path]);
    engine.reconcile().await.unwrap();
    let there = bench.contents(&id).await;
    assert_eq!(there.last(), Some(&Some(of("over", 40))));
    system("umount", &[&path]);
    engine.reconcile().await.unwrap();
    let there = bench.contents(&id).await;
    assert_eq!(there, [Some(of("old", 40)), Some(of("over", 40)), Some(of("old", 40))]);
}

/// A drive that goes while its files are being read, and one that can't be written.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn drive_that_goes_during_reads_deletes_nothing(#[values(true, false)] is_read_only: bool) {
    if !inside() {
        return;
    }
    let bench = Bench::new(Backend::Sqlite);
    fs::create_dir(bench.path("drive")).unwrap();
    Drive::Plain.mount(&bench);
    let files: Vec<String> =
        (0..60).map(|n| bench.write(&format!("drive/{n}.txt"), of("old", 2_000))).collect();
    if is_read_only {
        system("mount", &["-o", "remount,ro", &bench.path("drive")]);
    }
    let engine = open(&bench, true).await;
    let mut ids = Vec::new();
    for path in &files[..30] {
        ids.push(engine.index_file(path, None, None).await.unwrap().id);
    }
    let (drive, paths) = (bench.path("drive"), files.clone());
    let unmounting = tokio::task::spawn_blocking(move || system("umount", &["--lazy", &drive]));
    for path in &paths {
        // It is read, or it is not there any more.
        let _ = engine.index_file(path, None, None).await;
    }
    unmounting.await.unwrap();
    engine.flush().await.unwrap();
    engine.reconcile().await.unwrap();
    for id in &ids {
        assert_eq!(bench.contents(id).await, [Some(of("old", 2_000))]);
    }
}
