//! The cost of tracking 50,000 files, beside chokidar with the same files: `cargo bench -p context-watch`.

#![expect(clippy::unwrap_used, reason = "a program that prints its figures")]

use std::fs;
use std::path::Path;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use context_watch::{Event, NotifyTracker, Tracker as _, TrackerOptions};

use crate::figure::{Figure, asked, rounds, timed};

#[path = "../../../benches/figure.rs"]
mod figure;

const FILES: usize = 50_000;
const IN_A_DIRECTORY: usize = 20;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--alone") {
        return alone(Utf8Path::new(&arguments[at + 1]));
    }
    if asked("G8") {
        track();
    }
}

/// G8: each measurement runs in its own process, so that its memory can be told apart.
fn track() {
    let place = tempfile::tempdir().unwrap();
    for path in paths(Utf8Path::from_path(place.path()).unwrap()) {
        if !path.parent().unwrap().exists() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        fs::write(path, "x").unwrap();
    }
    let mut ours: Vec<(f64, f64)> = Vec::new();
    let mut peer = Vec::new();
    for _ in 0..rounds(3) {
        ours.extend(run(Command::new(std::env::current_exe().unwrap()).arg("--alone").arg(place.path())));
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/chokidar.mjs");
        peer.extend(run(Command::new("node").arg(script).arg(place.path())));
    }
    if peer.is_empty() {
        return not_run("G8: node or chokidar is missing; run npm ci first");
    }
    let median = |values: &[(f64, f64)], which: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = values.iter().map(which).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    for (what, which, unit, stretch) in [
        ("setup", (|run| run.0) as fn(&(f64, f64)) -> f64, "ms", 1.0 / 50.0),
        ("memory", |run| run.1, "MB", 1.0 / 35.0),
    ] {
        Figure::new("G8", &format!("tracking 50,000 files: {what}"), median(&ours, which), unit)
            .beside("chokidar 4", median(&peer, which))
            .bounds(1.0 / 20.0, stretch)
            .print();
    }
}

fn paths(root: &Utf8Path) -> Vec<Utf8PathBuf> {
    (0..FILES).map(|n| root.join(format!("d{}/file_{n}.txt", n / IN_A_DIRECTORY))).collect()
}

/// Tracks all files and prints the milliseconds and the megabytes that it took.
#[expect(clippy::print_stdout, reason = "the parent reads it")]
fn alone(root: &Utf8Path) {
    let paths = paths(root);
    let sink = |event: Event| {
        if let Event::Flush(done) = event {
            done.done();
        }
    };
    let before = resident();
    let (tracker, time) = timed(|| {
        let tracker = NotifyTracker::start(TrackerOptions::default(), sink).unwrap();
        for path in &paths {
            tracker.track(path).unwrap();
        }
        tracker.flush().wait().unwrap();
        tracker
    });
    println!("{} {}", time.as_secs_f64() * 1e3, (resident() - before) / 1e6);
    tracker.close();
}

/// Bytes of this process in memory.
fn resident() -> f64 {
    let status = fs::read_to_string(Path::new("/proc/self/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse::<f64>().ok()).unwrap_or(f64::NAN) * 1024.0
}

/// The two numbers that a process prints.
fn run(command: &mut Command) -> Option<(f64, f64)> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (time, memory) = text.trim().split_once(' ')?;
    Some((time.parse().ok()?, memory.parse().ok()?))
}

#[expect(clippy::print_stderr, reason = "it is not a figure")]
fn not_run(why: &str) {
    eprintln!("not run: {why}");
}
