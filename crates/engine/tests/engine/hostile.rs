//! Things that are not plain files, or are strange ones: each is refused with a reason, nothing hangs, and
//! nothing is changed by the attempt.

use std::fs::File;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use context_model::error::ErrorCode;
use context_model::hash::Digest;
use context_model::index::Action;
use rstest::rstest;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::bench::{Backend, Bench, GENEROUS, not_run, refused, session};

fn nothing(_: &Path) {}

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

fn socket(path: &Path) {
    // The file stays when the listener is dropped.
    drop(std::os::unix::net::UnixListener::bind(path).unwrap());
}

fn directory(path: &Path) {
    std::fs::create_dir(path).unwrap();
}

fn link_to(target: &'static str) -> impl Fn(&Path) {
    move |path| symlink(target, path).unwrap()
}

fn cycle(path: &Path) {
    symlink("other", path).unwrap();
    symlink("x", path.with_file_name("other")).unwrap();
}

fn below_a_file(path: &Path) {
    std::fs::write(path, "a file").unwrap();
}

#[rstest]
#[case::missing("x", nothing, "does not exist")]
#[case::missing_directory("no/such/x", nothing, "does not exist")]
#[case::fifo("x", fifo, "named pipe")]
#[case::socket("x", socket, "socket")]
#[case::directory("x", directory, "directory")]
#[case::endless_device("x", link_to("/dev/zero"), "device")]
#[case::empty_device("x", link_to("/dev/null"), "device")]
#[case::terminal("x", link_to("/dev/tty"), "")]
#[case::link_to_itself("x", link_to("x"), "symbolic link")]
#[case::cycle("x", cycle, "symbolic link")]
#[case::dangling("x", link_to("nowhere"), "symbolic link")]
#[case::link_to_fifo_directory("x", link_to("/proc/self/fd"), "")]
#[case::below_a_file("x/y", |path: &Path| below_a_file(path.parent().unwrap()), "")]
#[case::name_too_long(&"n".repeat(300), nothing, "")]
#[tokio::test(flavor = "multi_thread")]
async fn path_that_is_not_a_file_is_refused(
    #[case] name: &str,
    #[case] make: impl Fn(&Path),
    #[case] reason: &str,
) {
    let (bench, engine) = session(Backend::Sqlite).await;
    make(&bench.root().join(name));
    let attempts = async {
        let read = refused(&bench, &engine, ErrorCode::Io, engine.index_file(name, None, None)).await;
        assert!(read.contains(reason), "{read}");
        refused(&bench, &engine, ErrorCode::Io, engine.index_written(name, None, None)).await;

        // Its path can be known anyway; activating it says why its text is missing, and changes nothing.
        let id = engine.discover(&[name.to_owned()]).await.unwrap()[0].id.clone();
        let before = (bench.latest_tx().await, engine.session_sets().await.unwrap());
        let answer = engine.activate(id.as_str(), None).await.unwrap();
        assert_eq!((answer.ok, answer.code), (false, Some(ErrorCode::NullContent)), "{}", answer.message);
        assert!(answer.message.contains(reason), "{}", answer.message);
        assert_eq!((bench.latest_tx().await, engine.session_sets().await.unwrap()), before);
    };
    tokio::time::timeout(GENEROUS, attempts).await.expect("nothing waits for a pipe or a device");
}

#[rstest]
#[case::empty("")]
#[case::nul("a\0b")]
#[case::too_long(&format!("/{}", "d/".repeat(2_100)))]
#[tokio::test(flavor = "multi_thread")]
async fn impossible_path_is_refused(#[case] path: &str) {
    let (bench, engine) = session(Backend::Memory).await;
    refused(&bench, &engine, ErrorCode::InvalidArgument, engine.index_file(path, None, None)).await;
    refused(&bench, &engine, ErrorCode::InvalidArgument, engine.index_written(path, None, None)).await;
    refused(&bench, &engine, ErrorCode::InvalidArgument, engine.index_deletion(path)).await;
    refused(&bench, &engine, ErrorCode::InvalidArgument, engine.discover(&[path.to_owned()])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sparse_file_of_100_gigabytes_is_known_without_being_read() {
    let (bench, engine) = session(Backend::Sqlite).await;
    let path = bench.write("huge.log", "small");
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    if let Err(error) = File::options().write(true).open(&path).unwrap().set_len(100 << 30) {
        not_run(&format!("this file system has no sparse files of 100 GB ({error})"));
        return;
    }
    let looking = engine.index_file(&path, None, None);
    let result = tokio::time::timeout(GENEROUS, looking).await.expect("it is not read").unwrap();
    assert_eq!(result.action, Action::Updated, "the text that was stored is not its content any more");
    assert!(result.reason.unwrap().contains("larger than 256 MiB"));
    let document = bench.latest(&id).await.unwrap();
    assert_eq!((document.content(), document.source_hash()), (None, None));
    assert_eq!(engine.index_file(&path, None, None).await.unwrap().action, Action::Unchanged);
}

#[tokio::test(flavor = "multi_thread")]
async fn text_above_the_limit_is_not_kept_and_its_hash_is() {
    let bench = Bench::new(Backend::Memory);
    let options = context_engine::Options { max_text_bytes: 10, ..bench.options("s") };
    let engine = context_engine::Engine::open(options).await.unwrap();
    for (text, kept) in [("0123456789", true), ("0123456789a", false), ("0123456789b", false)] {
        let path = bench.write("a", text);
        for content in [None, Some(text.as_bytes().to_vec())] {
            let result = engine.index_file(&path, content, None).await.unwrap();
            assert_eq!(result.reason.is_none(), kept);
            let document = bench.latest(&result.id).await.unwrap();
            assert_eq!(document.content().is_some(), kept);
            assert_eq!(document.source_hash(), Some(Digest::of(text.as_bytes())));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kernel_file_without_a_size_is_read_whole() {
    let (bench, engine) = session(Backend::Memory).await;
    let path = "/proc/version";
    let Ok(text) = std::fs::read_to_string(path) else {
        not_run(&format!("{path} is missing"));
        return;
    };
    let id = engine.index_file(path, None, None).await.unwrap().id;
    assert_eq!(bench.latest(&id).await.unwrap().content(), Some(text.as_str()));
}

/// Root reads everything, so the checks run in a child process of another user.
#[test]
fn unreadable_file_is_refused() {
    let child = "PI_CONTEXT_MANAGER_TEST_UNPRIVILEGED";
    if std::env::var_os(child).is_some() || !rustix::process::geteuid().is_root() {
        return unreadable();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hostile::unreadable_file_is_refused", "--nocapture"])
        .env(child, "1")
        .env("TMPDIR", "/tmp")
        .current_dir("/tmp")
        .uid(65_534)
        .gid(65_534)
        .output();
    match output {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
            assert!(said.contains("1 passed"), "{said}");
        }
        Err(error) => not_run(&format!("the test program can't be started as another user ({error})")),
    }
}

#[tokio::main]
async fn unreadable() {
    let (bench, engine) = session(Backend::Sqlite).await;
    let locked = |name: &str, mode| {
        std::fs::set_permissions(bench.root().join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let path = bench.write("secret", "x");
    locked("secret", 0o000);
    let message = refused(&bench, &engine, ErrorCode::Io, engine.index_file(&path, None, None)).await;
    assert!(message.contains("permission"), "{message}");

    // Locked away after it was read: the last version stays. Unlocked again with a change: a new one.
    let path = bench.write("known", "1");
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    bench.write("known", "2");
    locked("known", 0o000);
    refused(&bench, &engine, ErrorCode::Io, engine.index_file(&path, None, None)).await;
    let resumed = bench.open("s").await;
    assert_eq!(bench.latest(&id).await.unwrap().content(), Some("1"));
    locked("known", 0o600);
    let again = bench.open("s").await;
    assert_eq!(bench.latest(&id).await.unwrap().content(), Some("2"));

    // With its directory locked away, its state is unknown, so it stays.
    let path = bench.write("closed/inner", "1");
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    locked("closed", 0o000);
    let message = refused(&bench, &engine, ErrorCode::Io, engine.index_file(&path, None, None)).await;
    assert!(message.contains("can't be"), "{message}");
    let last = bench.open("s").await;
    assert_eq!(bench.contents(&id).await, [Some("1".to_owned())], "not deleted");
    locked("closed", 0o700);

    // Under a tracker: locking the file away is not a change, unlocking it with other bytes is one.
    let watching = bench.watching("watching").await;
    let path = bench.write("tracked", "1");
    let id = watching.index_file(&path, None, None).await.unwrap().id;
    locked("tracked", 0o000);
    watching.flush().await.unwrap();
    assert_eq!(bench.contents(&id).await, [Some("1".to_owned())]);
    locked("tracked", 0o600);
    bench.write("tracked", "2");
    watching.flush().await.unwrap();
    assert_eq!(bench.latest(&id).await.unwrap().content(), Some("2"));
    watching.close().await.unwrap();
    for engine in [engine, resumed, again, last] {
        engine.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn file_written_during_a_read_is_stored_as_at_one_moment() {
    let (bench, engine) = session(Backend::Memory).await;
    let path = bench.path("busy");
    let states: Vec<String> = (0..10).map(|n| n.to_string().repeat(200_000)).collect();
    std::fs::write(&path, &states[0]).unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writer = {
        let (path, states, stop) = (path.clone(), states.clone(), std::sync::Arc::clone(&stop));
        std::thread::spawn(move || {
            for state in states.iter().cycle() {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                let beside = format!("{path}.new");
                std::fs::write(&beside, state).unwrap();
                std::fs::rename(&beside, &path).unwrap();
            }
        })
    };
    let mut ids = Vec::new();
    for _ in 0..50 {
        // An error because it changes faster than it can be read is also an answer.
        ids.extend(engine.index_file(&path, None, None).await.map(|result| result.id));
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.join().unwrap();
    ids.push(engine.index_file(&path, None, None).await.unwrap().id);
    for version in bench.versions(&ids[0]).await {
        let text = version.content().unwrap();
        assert!(states.iter().any(|state| state == text), "a mixture of two states");
        assert_eq!(version.source_hash(), Some(Digest::of(text.as_bytes())));
    }
}
