//! What every bench in Rust shares: one line for each figure, medians, and texts and trees to work on.
//!
//! With `--json` among the arguments a figure is one line of JSON, as benches/run.mjs reads it.

#![allow(dead_code, reason = "each bench uses what it needs")]
#![expect(clippy::print_stdout, reason = "a program that prints its figures")]

use std::time::{Duration, Instant};

use serde_json::json;

/// A measure and what it stands beside, in the same unit.
pub struct Figure<'a> {
    /// The number of the ratio in the table, or a name.
    name: &'a str,
    /// The measure.
    what: &'a str,
    /// Its value.
    ours: f64,
    /// The limit or the peer.
    peer: &'a str,
    /// Its value.
    beside: f64,
    /// The unit of both values.
    unit: &'a str,
    /// The ratio that counts as good; infinite if there is none. Above `stretch`, less is better.
    good: f64,
    /// The ratio near the limit; infinite if there is none.
    stretch: f64,
    /// Further observations.
    note: String,
}

impl<'a> Figure<'a> {
    /// A measure, with its value and unit.
    pub fn new(name: &'a str, what: &'a str, ours: f64, unit: &'a str) -> Self {
        let (good, stretch) = (f64::INFINITY, f64::INFINITY);
        Self { name, what, ours, peer: "", beside: f64::NAN, unit, good, stretch, note: String::new() }
    }

    /// The limit or the peer, and its value in the same unit.
    pub fn beside(self, peer: &'a str, beside: f64) -> Self {
        Self { peer, beside, ..self }
    }

    /// The ratios that count as good and as near the limit.
    pub fn bounds(self, good: f64, stretch: f64) -> Self {
        Self { good, stretch, ..self }
    }

    /// Adds further observations.
    pub fn note(self, note: String) -> Self {
        Self { note, ..self }
    }

    /// Prints the figure as one line.
    pub fn print(&self) {
        let ratio = self.ours / self.beside;
        let known = |bound: f64| bound.is_finite().then_some(bound);
        if std::env::args().any(|argument| argument == "--json") {
            let line = json!({
                "figure": self.name, "what": self.what, "ours": self.ours, "peer": self.peer,
                "beside": self.beside, "unit": self.unit, "ratio": ratio, "good": known(self.good),
                "stretch": known(self.stretch), "note": self.note,
            });
            println!("{line}");
            return;
        }
        let more = self.stretch.is_finite() && self.good < self.stretch;
        let reached = |bound: f64| if more { ratio >= bound } else { ratio <= bound };
        let mark = match (known(self.good), known(self.stretch)) {
            (_, Some(stretch)) if reached(stretch) => "stretch",
            (Some(good), _) if !reached(good) => "MISSED",
            (None, None) => "",
            _ => "good",
        };
        let Self { name, what, ours, peer, beside, unit, note, .. } = self;
        println!(
            "{name:5} {what} {ours:.4} {unit} | {peer} {beside:.4} {unit} | ratio {ratio:.3} {mark} {note}"
        );
    }
}

/// The parts of a bench that the arguments ask for: all, where they name none.
pub fn asked(name: &str) -> bool {
    let mut names = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).peekable();
    names.peek().is_none() || names.any(|argument| argument == name)
}

/// Number of times that a part is repeated: as given, or once with `--once`, which shows only that the bench runs.
pub fn rounds(count: usize) -> usize {
    if std::env::args().any(|argument| argument == "--once") { 1 } else { count }
}

/// The median in milliseconds.
pub fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// The time that the work takes.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = work();
    (value, start.elapsed())
}

/// Text as in source code: words of a vocabulary of 5,000, so that an index of words has its usual size.
pub struct Words(pub u64);

impl Words {
    /// A number below a bound.
    pub fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    /// So many bytes of text.
    pub fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            let common = self.next(3) > 0;
            let word = if common { self.next(200) } else { self.next(5_000) };
            let end = [" ", " ", "(", ".", ", ", ";\n    "][self.next(6)];
            text.push_str(&format!("{}{word:x}{end}", ["get_", "value", "x", "Parse"][word % 4]));
        }
        text.truncate(bytes);
        text
    }
}
