//! A node of XTDB on loopback with the memory that the documentation recommends, and the processor time that it takes.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// Ticks of processor time a second; Linux has shown 100 to programs for decades.
const TICKS: f64 = 100.0;

/// A running node; it ends when dropped.
pub struct Node {
    child: Child,
    pub port: u16,
    data: TempDir,
}

pub fn script() -> Option<PathBuf> {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/xtdb/start");
    let script = std::env::var_os("CONTEXT_XTDB_START").map_or(usual, PathBuf::from);
    script.is_file().then_some(script)
}

impl Node {
    /// Starts a node on RocksDB with separate data, and waits until it answers.
    pub fn start(script: &Path) -> Self {
        let data = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(script);
        command.arg(port.to_string()).arg(data.path()).arg("rocksdb");
        let piped = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("answers on port")), "the node ended at its start");
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, port, data }
    }

    /// The processor time so far, in seconds, by what the threads are for.
    pub fn cpu(&self) -> BTreeMap<&'static str, f64> {
        let mut times: BTreeMap<&'static str, f64> = BTreeMap::new();
        let process = format!("/proc/{}", self.child.id());
        let (mut threads, all) = (0.0, seconds(&format!("{process}/stat")).1);
        for thread in fs::read_dir(format!("{process}/task")).unwrap().flatten() {
            let (name, time) = seconds(&thread.path().join("stat").display().to_string());
            *times.entry(purpose(&name)).or_default() += time;
            threads += time;
        }
        *times.entry("threads that have ended").or_default() += all - threads;
        times
    }

    /// The bytes of its files on disk.
    pub fn disk(&self) -> u64 {
        size(self.data.path())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The name and the processor time in a `stat` file; nothing of a thread that has just ended.
fn seconds(file: &str) -> (String, f64) {
    let text = fs::read_to_string(file).unwrap_or_default();
    let Some((name, rest)) = text.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')')) else {
        return (String::new(), 0.0);
    };
    let fields: Vec<f64> = rest.split_whitespace().map(|field| field.parse().unwrap_or(0.0)).collect();
    (name.to_owned(), (fields[11] + fields[12]) / TICKS)
}

fn purpose(thread: &str) -> &'static str {
    match thread {
        name if name.starts_with("C1 Comp") || name.starts_with("C2 Comp") => "compiling (Java)",
        name if name.starts_with("G1 ") || name.starts_with("GC ") || name.starts_with("VM ") => {
            "garbage (Java)"
        }
        name if name.starts_with("pool-") || name.starts_with("HTTP-") => "requests",
        name if name.starts_with("rocksdb") => "RocksDB",
        name if name.starts_with("xtdb") || name.contains("ingest") => "indexing",
        _ => "other threads",
    }
}

/// The bytes of the files in a directory.
pub fn size(path: &Path) -> u64 {
    let inside = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => size(&entry.path()),
        _ => entry.metadata().map_or(0, |metadata| metadata.len()),
    };
    fs::read_dir(path).map_or(0, |entries| entries.flatten().map(inside).sum())
}
