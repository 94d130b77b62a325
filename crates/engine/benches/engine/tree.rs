//! G12 and G13: trees of files, indexed and indexed again, beside git and beside the bare work.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use context_engine::Engine;
use context_model::hash::Digest;
use context_store_sqlite::Durability;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::figure::{Figure, Words, median, rounds, timed};
use crate::{Place, THREADS, not_run};

const BARE: &str = "walk + read + SHA-256, 2 threads";

/// G12: the first index of a tree as it is found on disks, with texts that are there twice and what is not text.
pub fn first_index(runtime: &Runtime) {
    if rounds(2) == 1 {
        return not_run("G12 of node_modules: the tree takes minutes without optimization");
    }
    let Ok(root) = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../node_modules").canonicalize() else {
        return not_run("G12: node_modules is missing beside the crates; npm ci makes it");
    };
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    let mut note = String::new();
    for _ in 0..rounds(5) {
        bare.push(timed(|| hash_all(&walk(&root))).1);
        let place = Place::new(Durability::Process);
        let engine = runtime.block_on(place.open("s", false));
        let (indexed, time) = timed(|| runtime.block_on(engine.index_files(names(&walk(&root)))).unwrap());
        ours.push(time);
        assert!(indexed.refused.is_empty(), "{:?}", indexed.refused.first());
        let size = runtime.block_on(place.store.size()).unwrap();
        note =
            format!("{} files, {} MB of text stored", indexed.results.len(), size.content_bytes / 1_000_000);
        runtime.block_on(engine.close()).unwrap();
    }
    let figure = |peer, beside, good, stretch| {
        let (what, ours) = ("first index of a tree (node_modules)", median(ours.clone()));
        Figure::new("G12", what, ours, "ms")
            .beside(peer, beside)
            .bounds(good, stretch)
            .note(note.clone())
            .print();
    };
    figure(BARE, median(bare), 5.0, 3.0);
    let directory = tempfile::tempdir().unwrap();
    let git = Git { directory: &directory.path().join("git"), tree: &root };
    match git.run(&["init", "-q"]).and_then(|_| git.run(&["add", "-f", "."])) {
        Some(added) => figure("git add", median(vec![added]), 1.0 / 3.0, f64::INFINITY),
        None => not_run("G12 beside git: this machine has no git"),
    }
}

/// The same of texts that are all stored, for there is none twice; and G13: the same tree once more.
pub fn texts(runtime: &Runtime) {
    const FILES: usize = 5_000;
    let place = Place::new(Durability::Process);
    let mut words = Words(4);
    let mut bytes = 0;
    let paths: Vec<String> = (0..FILES)
        .map(|n| {
            let size = [500, 2_000, 4_000, 9_000, 40_000][words.next(5)];
            bytes += size;
            place.file(&format!("d{}/file_{n}.rs", n / 10), &words.text(size))
        })
        .collect();
    let note = format!("{FILES} files, {} MB", bytes / 1_000_000);
    let figure = |name, what, ours, peer, beside, good, stretch| {
        Figure::new(name, what, ours, "ms")
            .beside(peer, beside)
            .bounds(good, stretch)
            .note(note.clone())
            .print();
    };
    let (mut bare, mut together, mut singly) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds(3) {
        bare.push(timed(|| hash_all(&walk(&place.work()))).1);
        // Each engine has a separate store, because in a shared one the second would find everything known.
        let other = Place::new(Durability::Process);
        let engine = runtime.block_on(other.open("s", false));
        together.push(timed(|| runtime.block_on(engine.index_files(paths.clone())).unwrap()).1);
        runtime.block_on(engine.close()).unwrap();
        let other = Place::new(Durability::Process);
        let engine = runtime.block_on(other.open("s", false));
        singly.push(timed(|| runtime.block_on(index_singly(&engine, &paths))).1);
        runtime.block_on(engine.close()).unwrap();
    }
    let (bare, together, singly) = (median(bare), median(together), median(singly));
    figure("G12", "the same of distinct texts", together, BARE, bare, f64::NAN, f64::NAN);
    figure("G12", "the same by one call for each file", singly, BARE, bare, f64::NAN, f64::NAN);

    let engine = runtime.block_on(place.open("s", false));
    runtime.block_on(index_singly(&engine, &paths));
    runtime.block_on(engine.close()).unwrap();
    let git = Git { directory: &place.work().join(".git"), tree: &place.work() };
    let status = || git.run(&["status", "--porcelain"]);
    // The first status and the first comparison read what was written a moment before they last looked.
    if git.run(&["init", "-q"]).and_then(|_| git.run(&["add", "."])).and_then(|_| status()).is_none() {
        return not_run("G13 beside git: this machine has no git");
    }
    runtime.block_on(async { place.open("s", false).await.close().await }).unwrap();
    let (mut again, mut resumed, mut peer) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds(9) {
        peer.push(status().unwrap());
        let (engine, time) = timed(|| runtime.block_on(place.open("s", false)));
        resumed.push(time);
        let (changed, time) = timed(|| runtime.block_on(engine.reconcile()).unwrap());
        assert!(changed.is_empty());
        again.push(time);
        runtime.block_on(engine.close()).unwrap();
    }
    let (again, resumed, peer) = (median(again), median(resumed), median(peer));
    figure("G13", "the same tree again, unchanged", again, "git status", peer, 2.0, 1.0);
    figure("G13", "the same by a resume of the session", resumed, "git status", peer, f64::NAN, f64::NAN);
}

/// Indexes each file by a separate call, at most 256 at once.
pub async fn index_singly(engine: &Engine, paths: &[String]) {
    let mut running = JoinSet::new();
    for path in paths {
        if running.len() >= 256 {
            running.join_next().await.unwrap().unwrap();
        }
        let (engine, path) = (engine.clone(), path.clone());
        running.spawn(async move { drop(engine.index_file(&path, None, None).await.unwrap()) });
    }
    running.join_all().await;
}

/// The regular files below a directory.
fn walk(root: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() && entry.file_name() != ".git" {
                directories.push(entry.path());
            } else if kind.is_file() {
                paths.push(entry.path());
            }
        }
    }
    paths
}

fn hash_all(paths: &[PathBuf]) {
    std::thread::scope(|scope| {
        for share in paths.chunks(paths.len().div_ceil(THREADS)) {
            scope.spawn(move || {
                for path in share {
                    black_box(Digest::of(&fs::read(path).unwrap()));
                }
            });
        }
    });
}

fn names(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.to_str().unwrap().to_owned()).collect()
}

/// Git with a separate directory for a tree.
struct Git<'a> {
    directory: &'a Path,
    tree: &'a Path,
}

impl Git<'_> {
    /// Returns the time that it took; `None` where it failed.
    fn run(&self, arguments: &[&str]) -> Option<Duration> {
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(self.directory).arg("--work-tree").arg(self.tree);
        command.args(["-c", "core.safecrlf=false"]).args(arguments).current_dir(self.tree);
        // The machine's own settings would decide about the figure.
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        let (done, time) = timed(|| command.stdout(Stdio::null()).stderr(Stdio::null()).status());
        done.is_ok_and(|status| status.success()).then_some(time)
    }
}
