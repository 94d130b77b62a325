//! A bounded load: clients that record turns, on SQLite, on XTDB, and on XTDB behind the queue, one after the
//! other on the same machine.
//!
//! `cargo run --release -p context-store-xtdb --example load -- URL [CLIENTS] [TURNS] [SECONDS]`
//!
//! It ends by itself: after the given number of turns (50 clients and 10,000 turns by default), or when a backend needs
//! more than the given number of seconds (300), with the turns done by then. `URL` is that of an XTDB 1.x node that may be
//! filled, or several with commas between them: each client begins with another one. A turn is one transaction: a tool call
//! of 2 kB, a file of 4 kB, and the appended chat and session.

#![expect(clippy::print_stdout, reason = "the figures are its purpose")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::{Document, Toolcall};
use context_model::patch::Patch;
use context_model::session::Sets;
use context_model::source::FilesystemSource;
use context_store::{Result, Store, Transaction, Write};
use context_store_sqlite::{Durability, SqliteStore};
use context_store_xtdb::{QueueOptions, QueuedStore, XtdbOptions, XtdbStore};
use serde_json::{Map, json};

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(urls) = arguments.next() else {
        println!("usage: xtdb_load URL[,URL...] [CLIENTS] [TURNS] [SECONDS]");
        return Ok(());
    };
    let urls: Vec<String> = urls.split(',').map(str::to_owned).collect();
    let mut number = |default| arguments.next().and_then(|n| n.parse().ok()).unwrap_or(default);
    let (clients, turns) = (number(50).max(1), number(10_000));
    let limit = Duration::from_secs(number(300) as u64);
    let place = std::env::temp_dir().join(format!("xtdb-load-{}", std::process::id()));
    println!("{clients} clients, {turns} turns");

    let sqlite = SqliteStore::open(place.join("store.db"), Durability::Power)?;
    let stores = (0..clients).map(|_| Arc::clone(&sqlite) as Arc<dyn Store>).collect();
    run("SQLite, one file", stores, turns, limit).await?;
    sqlite.close().await?;

    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for client in 0..clients {
        stores.push(XtdbStore::connect(options(&urls, client)).await?);
    }
    run("XTDB, each write waited for", stores, turns, limit).await?;

    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for client in 0..clients {
        let mut queue = QueueOptions::new(place.join(format!("{client}.db")), options(&urls, client));
        queue.close_timeout_ms = 600_000;
        stores.push(QueuedStore::open(queue).await?);
    }
    run("XTDB behind the queue", stores, turns, limit).await?;
    let _ = std::fs::remove_dir_all(place);
    Ok(())
}

fn options(urls: &[String], client: usize) -> XtdbOptions {
    let mut urls = urls.to_vec();
    let first = client % urls.len();
    urls.rotate_left(first);
    XtdbOptions { timeout_ms: 30_000, ..XtdbOptions::new(urls) }
}

async fn run(name: &str, stores: Vec<Arc<dyn Store>>, turns: usize, limit: Duration) -> Result<()> {
    let clients = stores.len();
    let start = Instant::now();
    let mut tasks = Vec::new();
    for (client, store) in stores.iter().enumerate() {
        let (store, label) = (Arc::clone(store), name.replace([' ', ','], "-"));
        let share = turns / clients + usize::from(client < turns % clients);
        tasks.push(tokio::spawn(async move {
            session(&*store, &format!("{label}-{client}-{}", std::process::id()), share, start + limit).await
        }));
    }
    let mut times = Vec::with_capacity(turns);
    for task in tasks {
        if let Ok(done) = task.await {
            times.extend(done?);
        }
    }
    let acknowledged = start.elapsed();
    times.sort_unstable();
    if times.is_empty() {
        println!("{name}: not a single turn in time");
        return Ok(());
    }
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    let rate = times.len() as f64 / acknowledged.as_secs_f64();
    println!(
        "{name}: {} turns, {rate:.0} turns/s, p50 {:.1} ms, p99 {:.1} ms, slowest {:.0} ms",
        times.len(),
        at(0.5),
        at(0.99),
        at(1.0),
    );
    let flushed = async {
        for store in &stores {
            store.flush().await?;
        }
        Result::Ok(())
    };
    match tokio::time::timeout(limit, flushed).await {
        Ok(done) => done?,
        Err(_) => {
            // Closing would wait for the rest, one store after the other.
            println!("{name}: not everything in place {} s after that", limit.as_secs());
            return Ok(());
        }
    }
    println!("{name}: {:.1} s in all", start.elapsed().as_secs_f64());
    for store in stores {
        store.close().await?;
    }
    Ok(())
}

/// Records one client's turns, and gives how long each one took.
async fn session(store: &dyn Store, name: &str, turns: usize, until: Instant) -> Result<Vec<Duration>> {
    let session = SessionId::new(name)?;
    let (chat, wrapper) = (ObjectId::chat(&session), ObjectId::session(&session));
    let writes = vec![Write::put(Document::chat(&session)), Write::put(Sets::default().document(&session))];
    store.transact(Transaction { writes, expected: Vec::new() }).await?;
    let mut times = Vec::with_capacity(turns);
    for n in 0..turns {
        if Instant::now() >= until {
            break;
        }
        let text = format!("turn {n} of {name}\n").repeat(100);
        let call = ObjectId::new(format!("{name}-call-{n}"));
        let toolcall = Toolcall::new(
            call.as_str(),
            "bash",
            Map::from_iter([("command".to_owned(), json!("make test"))]),
            text.chars().take(2_000).collect::<String>(),
        );
        let source = FilesystemSource { filesystem_id: name.to_owned(), path: format!("/src/{}.rs", n % 20) };
        let content: String = text.repeat(3).chars().take(4_000).collect();
        let hash = Digest::of(content.as_bytes());
        let mut of_chat = Patch::new();
        of_chat
            .append(&["turns"], json!({ "user": "continue", "assistant": "done", "toolcall_ids": [call] }));
        of_chat.append(&["toolcall_refs"], json!(call));
        of_chat.set(&["turn_count"], json!(n + 1));
        let mut of_session = Patch::new();
        of_session.append(&["session_index"], json!(call));
        let writes = vec![
            Write::put(Document::toolcall(call, &chat, toolcall)),
            Write::put(Document::file(source, Some(content), Some(hash))),
            Write::patch(chat.clone(), of_chat),
            Write::patch(wrapper.clone(), of_session),
        ];
        let start = Instant::now();
        store.transact(Transaction { writes, expected: Vec::new() }).await?;
        times.push(start.elapsed());
    }
    Ok(times)
}
