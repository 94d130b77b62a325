//! The knowledge simulation: after any incidents with files, processes and the store, each session's notices are true and
//! complete.
//!
//! One seed drives several sessions on one store, files that change by themselves, appear and disappear with their folders
//! or stand behind links, and a store and a tracker that fail by plan. A plain model reads nothing but the requests that a harness would send, and keeps what each says of each
//! file. A schedule that fails is printed with its shortest steps.
//!
//! `CONTEXT_LONG=1` runs 100,000 schedules. `CONTEXT_SEED=n` runs the one of this seed, `CONTEXT_SURVEY=n` continues after the
//! first failure, for n schedules, and prints the shortest steps of each kind of failure. With `CONTEXT_FROM=n` the first
//! schedule is that of this seed, and `CONTEXT_THREADS=n` says how many run at once: so a long run may be divided.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]
#![cfg(unix)]

mod check;
mod client;
mod control;
mod conversation;
mod drawn;
mod editing;
mod faults;
mod found;
mod kept;
mod knowledge;
mod listener;
mod mutants;
mod node;
mod patch;
mod place;
mod rng;
mod run;
mod shrink;
mod steps;
mod tools;
mod turns;
mod violation;
mod wire;
mod world;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use run::run;
use steps::{Backend, Schedule};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use violation::{Kind, Violation};

/// A directory that costs no disk, where there is one, and threads to run schedules with.
struct Bench {
    directory: TempDir,
    runtime: Runtime,
}

impl Bench {
    fn new() -> Self {
        let memory = std::path::Path::new("/dev/shm");
        let directory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Self { directory: directory.unwrap(), runtime: runtime.unwrap() }
    }

    fn run(&self, schedule: &Schedule) -> (Vec<String>, Result<(), (usize, Violation)>) {
        let root = self.directory.path().canonicalize().unwrap();
        self.runtime.block_on(run(schedule, &root))
    }

    /// Returns what is wrong with a schedule, if anything, with the shortest steps that show it.
    fn failure(&self, schedule: &Schedule) -> Option<(Kind, String)> {
        let (_, Err((_, wrong))) = self.run(schedule) else { return None };
        let fails = |less: &Schedule| matches!(self.run(less).1, Err((_, found)) if found.kind == wrong.kind);
        let shortest = shrink::shortest(schedule, fails);
        let (_, outcome) = self.run(&shortest);
        let (at, found) = outcome.err().unwrap_or((0, wrong.clone()));
        let mut text = format!("seed {}: {:?}: {}\n", schedule.seed, found.kind, found.what);
        let Schedule { backend, clients, files, steps, .. } = &shortest;
        writeln!(text, "{clients} clients, {files} files, {backend:?}; shown after step {at}").unwrap();
        for (number, step) in steps.iter().enumerate() {
            writeln!(text, "{number:4} {step:?}").unwrap();
        }
        writeln!(text, "for found.jsonl: {}", serde_json::to_string(&shortest).unwrap()).unwrap();
        Some((found.kind, text))
    }
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn say(what: &str) {
    std::io::stderr().write_all(format!("{what}\n").as_bytes()).unwrap();
}

/// Runs the schedules of this many seeds, by default on two threads, and reports the fault in the shortest steps.
fn check(count: u64, schedule: impl Fn(u64) -> Schedule + Sync) {
    if let Some(seed) = number("CONTEXT_SEED") {
        let failure = Bench::new().failure(&schedule(seed));
        assert!(failure.is_none(), "{}", failure.map_or_else(String::new, |(_, text)| text));
        return;
    }
    let survey = number("CONTEXT_SURVEY");
    let first = number("CONTEXT_FROM").unwrap_or(0);
    let (count, survey) = (survey.unwrap_or(count), survey.is_some());
    let next = AtomicU64::new(first);
    let found: Mutex<BTreeMap<Kind, Vec<(u64, String)>>> = Mutex::default();
    let work = || {
        let bench = Bench::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count || (!survey && !found.lock().unwrap().is_empty()) {
                break;
            }
            let Err((_, wrong)) = bench.run(&schedule(seed)).1 else { continue };
            // Shortening takes time: of each kind a few are enough.
            let known = found.lock().unwrap().get(&wrong.kind).map_or(0, Vec::len);
            let text = (known < 3).then(|| bench.failure(&schedule(seed))).flatten();
            let text = text.map_or_else(|| format!("seed {seed}: {wrong:?}"), |(_, text)| text);
            if survey {
                say(&text);
            }
            found.lock().unwrap().entry(wrong.kind).or_default().push((seed, text));
        }
    };
    let threads = number("CONTEXT_THREADS").unwrap_or(2);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let found = found.into_inner().unwrap();
    let mut report = String::new();
    for (kind, failures) in &found {
        let shortest = failures.iter().map(|(_, text)| text).filter(|text| text.contains("shown after"));
        let mut shortest: Vec<&String> = shortest.collect();
        shortest.sort_by_key(|text| text.lines().count());
        let seeds: Vec<u64> = failures.iter().map(|(seed, _)| *seed).take(12).collect();
        writeln!(report, "{kind:?}: {} of {count} schedules, of the seeds {seeds:?}", failures.len())
            .unwrap();
        shortest.iter().take(3).for_each(|text| writeln!(report, "{text}").unwrap());
    }
    assert!(found.is_empty(), "{report}");
    let last = first + count - 1;
    say(&format!("simulation: {count} schedules ({first} to {last}), 0 false answers, 0 missed notices"));
}

/// The number of schedules: in `npm test`, in `npm run test:full`, in `npm run test:long`.
fn so_many(usual: u64, full: u64, long: u64) -> u64 {
    match (is_set("CONTEXT_LONG"), is_set("CONTEXT_FULL")) {
        (true, _) => long,
        (_, true) => full,
        _ => usual,
    }
}

#[test]
fn sessions_get_every_true_notice() {
    check(so_many(200, 1_000, 100_000), Schedule::from_seed);
}

#[test]
fn sessions_on_two_machines_get_every_true_notice() {
    check(so_many(5, 20, 1_000), |seed| Schedule::on(seed, Backend::Xtdb));
}

#[test]
fn seed_determines_the_run() {
    let bench = Bench::new();
    for seed in 0..20 {
        let schedule = Schedule::from_seed(seed);
        assert_eq!(schedule, Schedule::from_seed(seed));
        assert_eq!(bench.run(&schedule), bench.run(&schedule));
    }
}
