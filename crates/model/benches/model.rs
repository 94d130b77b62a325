//! The rules' figures, each beside its limit or peer in the same run: `cargo bench -p context-model`.

#![expect(clippy::unwrap_used, reason = "a program that prints its figures")]

use std::hint::black_box;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use context_model::hash::{Digest, source_hash};
use context_model::object::Document;
use context_model::source::FilesystemSource;

use crate::figure::{Figure, Words, asked, median, rounds, timed};

#[path = "../../../benches/figure.rs"]
mod figure;

fn main() {
    if asked("G1") {
        hashes();
    }
}

/// G1: both hashes of a file of 1 MB, beside two SHA-256 and one escape, and beside what TypeScript takes.
fn hashes() {
    let text = Words(1).text(1_000_000);
    let mut reference = Reference::start(&text);
    let mut escaped = Vec::with_capacity(2 * text.len());
    let (mut ours, mut limit, mut script) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds(60) {
        let owned = text.clone();
        let source = FilesystemSource { filesystem_id: "0".repeat(64), path: "/src/a.rs".into() };
        let make = || {
            let hash = source_hash(owned.as_bytes());
            Document::file(source, Some(owned), Some(hash))
        };
        ours.push(timed(|| black_box(make())).1);
        escaped.clear();
        limit.push(
            timed(|| {
                black_box(Digest::of(text.as_bytes()));
                escape(text.as_bytes(), &mut escaped);
                black_box(Digest::of(&escaped));
            })
            .1,
        );
        script.extend(reference.as_mut().map(Reference::once));
    }
    let ours = median(ours);
    let note = String::new();
    Figure::new("G1", "both hashes of a file of 1 MB", ours, "ms")
        .beside("2 SHA-256 + 1 escape", median(limit))
        .bounds(1.4, 1.1)
        .note(note.clone())
        .print();
    if script.is_empty() {
        return not_run("G1 beside TypeScript: this machine has no node");
    }
    script.sort_by(f64::total_cmp);
    Figure::new("G1", "both hashes of a file of 1 MB", ours, "ms")
        .beside("sorted-key stringify + createHash in TypeScript", script[script.len() / 2])
        .bounds(1.0, 1.0 / 3.0)
        .note(note)
        .print();
}

/// Escapes what JSON must have escaped, eight bytes at a time where nothing has to be.
fn escape(text: &[u8], out: &mut Vec<u8>) {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let plain = |word: u64| {
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        control | zero(word ^ (ONES * u64::from(b'"'))) | zero(word ^ (ONES * u64::from(b'\\'))) == 0
    };
    let (mut start, mut at) = (0, 0);
    while at < text.len() {
        if let Some(eight) = text.get(at..at + 8)
            && plain(u64::from_le_bytes(eight.try_into().unwrap()))
        {
            at += 8;
            continue;
        }
        let end = text.len().min(at + 8);
        while at < end {
            let byte = text[at];
            if byte < 0x20 || byte == b'"' || byte == b'\\' {
                out.extend_from_slice(&text[start..at]);
                match byte {
                    b'\n' => out.extend_from_slice(b"\\n"),
                    b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
                    _ => write!(out, "\\u{byte:04x}").unwrap(),
                }
                start = at + 1;
            }
            at += 1;
        }
    }
    out.extend_from_slice(&text[start..]);
}

/// The same hashes in TypeScript's usual way, in a process that answers each line with its milliseconds.
struct Reference {
    child: std::process::Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Reference {
    fn start(text: &str) -> Option<Self> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/reference.mjs");
        let mut child =
            Command::new("node").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "{}", serde_json::to_string(text).unwrap()).unwrap();
        child.stdin = Some(input);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Some(Self { child, lines })
    }

    fn once(&mut self) -> f64 {
        self.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        self.lines.next().unwrap().unwrap().parse().unwrap()
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ended = self.child.wait();
    }
}

#[expect(clippy::print_stderr, reason = "it is not a figure")]
fn not_run(why: &str) {
    eprintln!("not run: {why}");
}
