//! The cost of sessions for a node of XTDB: its processor time, requests and bytes a turn, and its disk.
//!
//! `npm run bench:xtdb`, or `cargo bench --profile release -p context-engine --bench xtdb -- [PART…] [--clients N,N…]
//! [--seconds N] [--others N,N…]`. The parts are `turns` (sessions that take one turn in two seconds, each on a separate
//! machine) and `elsewhere` (one session, while this many others each take a turn between two of its turns, 95 % of them on
//! other machines). Needs Linux, Java, and a script that starts a node (`CONTEXT_XTDB_START`, see docs/xtdb.md). Everything is
//! on loopback; each part ends by itself.
//!
//! The figures are the node's processor time and counts, which another process on the machine changes little. Times by the
//! clock would say more about the machine's load than about the node.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program that prints its figures")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use agent::{Agent, Others};
use gate::{Gate, Traffic};
use node::Node;

mod agent;
#[path = "../../../../benches/figure.rs"]
mod figure;
mod gate;
mod node;

/// The pace of a session.
const PACE: Duration = Duration::from_secs(2);

/// The number of turns before anything is measured: Java compiles code that runs often.
const WARM: usize = 1_500;

#[tokio::main]
async fn main() {
    let Some(script) = node::script() else {
        println!("not measured: CONTEXT_XTDB_START names no script that starts a node");
        return;
    };
    if asked("turns") {
        let seconds = Duration::from_secs(numbers("--seconds", &[40])[0].clamp(2, 600));
        for clients in numbers("--clients", &[10, 36, 100]) {
            turns(&script, clients.clamp(1, 200) as usize, seconds).await;
        }
    }
    if asked("elsewhere") {
        elsewhere(&script, &numbers("--others", &[10, 100, 1_000])).await;
    }
}

/// True if a part was asked for: all, where none is named.
fn asked(part: &str) -> bool {
    let arguments: Vec<String> = std::env::args().collect();
    let is_named = |name: &str| arguments.iter().any(|argument| argument == name);
    is_named(part) || !(is_named("turns") || is_named("elsewhere"))
}

/// The numbers behind an argument.
fn numbers(name: &str, usual: &[u64]) -> Vec<u64> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name).skip(1);
    let given: Option<Vec<u64>> = arguments.next().map(|text| text.split(',').flat_map(str::parse).collect());
    given.filter(|given| !given.is_empty()).unwrap_or_else(|| usual.to_vec())
}

/// So many sessions, each with a turn in two seconds, after a time to warm up without pauses.
async fn turns(script: &Path, clients: usize, seconds: Duration) {
    let (root, node) = (tempfile::tempdir().unwrap(), Node::start(script));
    let gate = Gate::open(node.port).await;
    let mut agents = Vec::new();
    for number in 0..clients {
        agents.push(Agent::open(root.path(), number, &gate.url).await);
    }
    let agents = warm(agents).await;
    let journals = node::size(root.path());
    let (before, disk, _) = (node.cpu(), node.disk(), gate.traffic());
    let (agents, count) = at_pace(agents, seconds).await;
    for agent in &agents {
        agent.flush().await;
    }
    let (after, traffic) = (node.cpu(), gate.traffic());
    println!("\n{clients} sessions, {count} turns at one in {} s", PACE.as_secs());
    print(&before, &after, &traffic, count);
    let grown = |now: u64, before: u64| now.saturating_sub(before) as f64 / count as f64 / 1e3;
    println!("  disk of the node: {:.1} kB a turn", grown(node.disk(), disk));
    println!("  disk of the journals and files: {:.1} kB a turn", grown(node::size(root.path()), journals));
    for agent in agents {
        agent.close().await;
    }
}

/// Lets the sessions take turns as fast as they can, for at most two minutes.
async fn warm(agents: Vec<Agent>) -> Vec<Agent> {
    let (end, each) = (Instant::now() + Duration::from_secs(120), WARM / agents.len() + 1);
    let tasks = agents.into_iter().map(|mut agent| {
        tokio::spawn(async move {
            for _ in 0..each {
                if Instant::now() < end {
                    agent.turn().await;
                    agent.flush().await;
                }
            }
            agent
        })
    });
    let mut agents = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        agents.push(task.await.unwrap());
    }
    agents
}

/// Lets the sessions take turns for a time, evenly spread. Each turn is sent before the next one, as on a machine that is not
/// busy; a busy one would send several together. Returns them and how many turns they took.
async fn at_pace(agents: Vec<Agent>, time: Duration) -> (Vec<Agent>, usize) {
    let (begin, clients) = (Instant::now(), agents.len());
    let tasks = agents.into_iter().enumerate().map(|(number, mut agent)| {
        tokio::spawn(async move {
            let mut next = begin + PACE.mul_f64(number as f64 / clients as f64);
            let mut count = 0;
            while next < begin + time {
                tokio::time::sleep_until(next.into()).await;
                agent.turn().await;
                agent.flush().await;
                count += 1;
                next += PACE;
            }
            (agent, count)
        })
    });
    let (mut agents, mut count) = (Vec::new(), 0);
    for task in tasks.collect::<Vec<_>>() {
        let (agent, turns) = task.await.unwrap();
        agents.push(agent);
        count += turns;
    }
    (agents, count)
}

/// One session's turns, while others write between them.
async fn elsewhere(script: &Path, others: &[u64]) {
    const ROUNDS: usize = 12;
    let (root, node) = (tempfile::tempdir().unwrap(), Node::start(script));
    let gate = Gate::open(node.port).await;
    let mut writers = Others::connect(&format!("http://127.0.0.1:{}", node.port)).await;
    let mut agent = Agent::open(root.path(), 0, &gate.url).await;
    // So that Java has compiled what it will.
    for _ in 0..WARM / 10 {
        writers.write(8).await;
        agent.turn().await;
        agent.flush().await;
    }
    for count in others {
        let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
        let mut total = Traffic::default();
        for _ in 0..ROUNDS {
            writers.write((*count).min(2_000) as usize).await;
            gate.traffic();
            add(&mut before, node.cpu());
            agent.turn().await;
            agent.flush().await;
            add(&mut after, node.cpu());
            let Traffic { requests, up, down } = gate.traffic();
            for (endpoint, (count, bytes)) in requests {
                let of = total.requests.entry(endpoint).or_default();
                (of.0, of.1) = (of.0 + count, of.1 + bytes);
            }
            (total.up, total.down) = (total.up + up, total.down + down);
        }
        println!(
            "\none session, {count} turns of others between two of this session, 95 % of them elsewhere"
        );
        print(&before, &after, &total, ROUNDS);
    }
    gate.traffic();
    let before = node.cpu();
    let mut late = Agent::open(root.path(), 1, &gate.url).await;
    late.turn().await;
    late.flush().await;
    println!("\nanother session is opened beside {} turns of others, with its first turn", writers.made);
    print(&before, &node.cpu(), &gate.traffic(), 1);
    late.close().await;
    agent.close().await;
}

fn add(sum: &mut BTreeMap<&'static str, f64>, more: BTreeMap<&'static str, f64>) {
    more.into_iter().for_each(|(name, time)| *sum.entry(name).or_default() += time);
}

fn print(
    before: &BTreeMap<&'static str, f64>,
    after: &BTreeMap<&'static str, f64>,
    traffic: &Traffic,
    turns: usize,
) {
    let turns = turns as f64;
    let spent =
        |name: &str| (after.get(name).unwrap_or(&0.0) - before.get(name).unwrap_or(&0.0)) * 1e3 / turns;
    let names: Vec<&str> = after.keys().copied().collect();
    let all: f64 = names.iter().map(|name| spent(name)).sum();
    println!("  processor time of the node: {all:.1} ms a turn");
    for name in names {
        println!("    {name}: {:.2} ms", spent(name));
    }
    println!(
        "  {:.2} requests a turn, {:.1} kB sent, {:.1} kB received",
        traffic.count() as f64 / turns,
        traffic.up as f64 / turns / 1e3,
        traffic.down as f64 / turns / 1e3
    );
    for (endpoint, (count, bytes)) in &traffic.requests {
        println!("    {endpoint}: {:.2}, {:.2} kB", *count as f64 / turns, *bytes as f64 / turns / 1e3);
    }
}
