//! Real processes on one file: killed at any point, several at once, on disks that fail, under strict and loose
//! permissions. Each test runs a short version by default, a longer one with `CONTEXT_SOAK=1`, and its full figure with
//! `CONTEXT_LONG=1`. A test that the machine can't run is printed as not run.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "tests report their figures and what was not run")]

#[path = "../secrets/mod.rs"]
mod secrets;

#[cfg(unix)]
mod faults;
#[cfg(unix)]
mod forget;
mod kill;
mod many;
#[cfg(unix)]
mod power;
#[cfg(unix)]
mod privacy;
mod viewed;
mod worker;

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_store::conformance::given;
use context_store::{AsOf, Store, Transaction, Write};
use context_store_sqlite::{Durability, SqliteStore};

/// The size of a test: its short form, its soak, its full figure.
fn sized(short: usize, soak: usize, long: usize) -> usize {
    let set = |name| std::env::var_os(name).is_some_and(|value| value == "1");
    match (set("CONTEXT_LONG"), set("CONTEXT_SOAK")) {
        (true, _) => long,
        (_, true) => soak,
        _ => short,
    }
}

/// Tells past the capture of a test's output.
fn not_run(what: &str, why: &str) {
    std::io::stderr().write_all(format!("not run: {what}: {why}\n").as_bytes()).unwrap();
}

/// True if a program can be started and reports success.
fn works(program: &str, arguments: &[&str]) -> bool {
    let run = Command::new(program).args(arguments).output();
    run.is_ok_and(|output| output.status.success())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap()
}

fn file(name: &str, path: &str, text: &str) -> Document {
    given::file(&format!("/{name}/{path}"), text)
}

fn chat(name: &str) -> Document {
    Document::chat(&SessionId::new(name).unwrap())
}

/// The n-th transaction of a writer: two files and a turn that belong together.
fn step(name: &str, n: usize) -> Transaction {
    let text = format!("{n}\n{}", "some text of a tool's output\n".repeat(n % 7 * 20));
    let mut writes = vec![Write::put(file(name, "a", &text)), Write::put(file(name, "b", &text))];
    if n == 1 {
        writes.push(Write::put(chat(name)));
    }
    writes.push(Write::patch(chat(name).id().clone(), given::turn(n)));
    Transaction { writes, expected: Vec::new() }
}

/// Number of a writer's steps that a store holds, from each of its three objects.
async fn steps(store: &Arc<SqliteStore>, name: &str) -> [usize; 3] {
    let number = async |id: &ObjectId| {
        let version = store.get(id, AsOf::default()).await.unwrap()?;
        version.document.content()?.lines().next()?.parse().ok()
    };
    let turns = store.get(chat(name).id(), AsOf::default()).await.unwrap();
    let turns = turns.map_or(0, |v| v.document.field("turns").unwrap().as_array().unwrap().len());
    [
        number(file(name, "a", "").id()).await.unwrap_or(0),
        number(file(name, "b", "").id()).await.unwrap_or(0),
        turns,
    ]
}

/// Opens a store after a crash: nothing acknowledged is missing, nothing is there by half, nothing is damaged.
fn check(path: &Path, name: &str, acknowledged: usize) -> usize {
    runtime().block_on(async {
        let store = SqliteStore::open(path, Durability::Power).unwrap();
        let steps = steps(&store, name).await;
        assert!(steps[0] >= acknowledged, "{acknowledged} were acknowledged, {} are there", steps[0]);
        assert_eq!(steps, [steps[0]; 3], "a transaction is there by half");
        for path in ["a", "b"] {
            assert_eq!(store.history(file(name, path, "").id()).await.unwrap().len(), steps[0]);
        }
        assert_eq!(store.verify().await.unwrap(), []);
        store.close().await.unwrap();
        steps[0]
    })
}
