//! Several machines on one database, by random schedules: they write, copy and restore their journals, lose the network and
//! each other's news, and the database goes back to an earlier state. In the end each acknowledged write is in the
//! database, once, and all machines have the same versions. Needs no XTDB: the node is the one of the engine's simulation.
//!
//! `CONTEXT_FULL=1` runs 1,000 schedules, `CONTEXT_LONG=1` 10,000, `CONTEXT_SEED=n` the one of this seed.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code)] // the simulation uses more of it
#[path = "../../engine/tests/simulation/node.rs"]
mod node;

mod fleet;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use context_model::time::Timestamp;
use context_store::clock::Clock;
use context_store::{Store as _, Version};
use context_store_sqlite::{Durability, SqliteStore};
use fleet::{Machine, copy_files, direct, file, text, there};
use node::{Node, Port, Way};

/// Number of files that the machines share.
const SHARED: u64 = 3;

/// The most machines.
const MOST_MACHINES: usize = 4;

/// Number of steps of a schedule.
const STEPS: usize = 24;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A file that all share, or one of the machine's own.
    Write {
        machine: usize,
        shared: bool,
        file: u64,
    },
    Pull {
        machine: usize,
    },
    Flush {
        machine: usize,
    },
    Network {
        machine: usize,
        way: Way,
    },
    Restart {
        machine: usize,
    },
    /// Another machine begins with a copy of this one's folder, while this one runs.
    Copy {
        machine: usize,
    },
    Backup {
        machine: usize,
    },
    /// The journal's folder is restored from its backup; its unsent writes are sent before.
    Restore {
        machine: usize,
    },
    /// The hint file is gone.
    Hint {
        machine: usize,
    },
    /// The database loses this many of its transactions.
    Rewind {
        lost: usize,
    },
    /// A machine's clock goes wrong by so much, or is right again.
    Clock {
        machine: usize,
        millis: i64,
    },
}

/// Numbers that depend on a seed only.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }

    fn step(&mut self) -> Step {
        let machine = usize::try_from(self.below(MOST_MACHINES as u64)).unwrap();
        match self.below(21) {
            20 => {
                let hours = 3 * 3_600_000;
                let millis = [0, 1, -1, hours, -hours, 0][usize::try_from(self.below(6)).unwrap()];
                Step::Clock { machine, millis }
            }
            0..=6 => Step::Write { machine, shared: self.below(2) == 0, file: self.below(SHARED) },
            7..=9 => Step::Pull { machine },
            10 | 11 => Step::Flush { machine },
            12 | 13 => {
                let way =
                    [Way::Open, Way::Away, Way::Deaf, Way::Open][usize::try_from(self.below(4)).unwrap()];
                Step::Network { machine, way }
            }
            14 => Step::Restart { machine },
            15 => Step::Copy { machine },
            16 => Step::Backup { machine },
            17 => Step::Restore { machine },
            18 => Step::Hint { machine },
            _ => Step::Rewind { lost: usize::try_from(1 + self.below(6)).unwrap() },
        }
    }
}

/// The steps of a seed. A journal from a backup lacks the versions that a database loses later, so a schedule has only one
/// of both.
fn schedule(seed: u64) -> Vec<Step> {
    let mut drawn = Drawn(seed);
    let restores = seed.is_multiple_of(2);
    let is_apart = |step: &Step| match step {
        Step::Restore { .. } => restores,
        Step::Rewind { .. } => !restores,
        _ => true,
    };
    std::iter::repeat_with(|| drawn.step()).filter(is_apart).take(STEPS).collect()
}

/// The time of all machines. It passes only now and then, so that many writes share a millisecond.
#[derive(Default)]
struct Time {
    now: AtomicI64,
    /// How far each machine's clock is ahead.
    ahead: [AtomicI64; MOST_MACHINES],
}

impl Time {
    /// 2026 and later.
    const START: i64 = 1_767_225_600_000;

    fn clock(self: &Arc<Self>, machine: usize) -> Clock {
        let time = Arc::clone(self);
        Arc::new(move || {
            let millis = time.now.load(Ordering::Relaxed) + time.ahead[machine].load(Ordering::Relaxed);
            Timestamp::from_millis(Self::START + millis)
        })
    }
}

struct World {
    node: Arc<Node>,
    time: Arc<Time>,
    machines: Vec<Machine>,
    backups: Vec<Option<tempfile::TempDir>>,
    acknowledged: BTreeSet<(String, String)>,
    count: u64,
}

impl World {
    async fn new() -> Self {
        let mut world = Self {
            node: Arc::new(Node::default()),
            time: Arc::default(),
            machines: Vec::new(),
            backups: Vec::new(),
            acknowledged: BTreeSet::new(),
            count: 0,
        };
        for _ in 0..2 {
            world.add(tempfile::tempdir().unwrap()).await;
        }
        world
    }

    async fn add(&mut self, place: tempfile::TempDir) {
        let clock = self.time.clock(self.machines.len());
        self.machines.push(Machine::with_clock(&self.node, place, clock).await);
        self.backups.push(None);
    }

    /// Ends a machine's process, with the network.
    async fn end(&self, machine: usize) {
        self.machines[machine].port.set(Way::Open);
        self.machines[machine].store.close().await.unwrap();
    }

    async fn take(&mut self, step: Step) {
        let number = self.machines.len();
        match step {
            Step::Write { machine, shared, file } => {
                let machine = machine % number;
                self.count += 1;
                // A third of the writes begin another millisecond.
                self.time.now.fetch_add(i64::from(self.count.is_multiple_of(3)), Ordering::Relaxed);
                let path = if shared { format!("/{file}") } else { format!("/own/{}", self.count) };
                let text = self.count.to_string();
                self.machines[machine].put(&path, &text).await;
                self.acknowledged.insert((path, text));
            }
            Step::Pull { machine } => self.machines[machine % number].store.pull().await.unwrap(),
            Step::Flush { machine } => {
                let one = &self.machines[machine % number];
                one.port.set(Way::Open);
                one.store.flush().await.unwrap();
            }
            Step::Network { machine, way } => self.machines[machine % number].port.set(way),
            Step::Restart { machine } => {
                self.end(machine % number).await;
                self.machines[machine % number].start_again().await;
            }
            Step::Copy { machine } if number < MOST_MACHINES => {
                // At rest, as a copied folder is: a copy of a file that is being written is none.
                self.end(machine % number).await;
                self.add(self.machines[machine % number].copied()).await;
                self.machines[machine % number].start_again().await;
            }
            Step::Backup { machine } => {
                let machine = machine % number;
                self.end(machine).await;
                self.backups[machine] = Some(self.machines[machine].copied());
                self.machines[machine].start_again().await;
            }
            Step::Restore { machine } => {
                let machine = machine % number;
                let Some(backup) = &self.backups[machine] else { return };
                let one = &mut self.machines[machine];
                one.port.set(Way::Open);
                one.store.flush().await.unwrap();
                one.store.close().await.unwrap();
                for entry in std::fs::read_dir(one.place.path()).unwrap() {
                    std::fs::remove_file(entry.unwrap().path()).unwrap();
                }
                copy_files(backup.path(), one.place.path());
                one.start_again().await;
            }
            Step::Hint { machine } => {
                let machine = machine % number;
                self.end(machine).await;
                let _ = std::fs::remove_file(self.machines[machine].place.path().join("journal.db.progress"));
                self.machines[machine].start_again().await;
            }
            Step::Rewind { lost } => {
                // A node is stopped for that, for longer than anything here lasts: the machines notice it.
                for machine in 0..number {
                    self.end(machine).await;
                }
                self.node.rewind(self.node.count().saturating_sub(lost));
                for one in &mut self.machines {
                    one.start_again().await;
                }
            }
            Step::Clock { machine, millis } => {
                self.time.ahead[machine].store(millis, Ordering::Relaxed);
            }
            Step::Copy { .. } => {}
        }
    }

    /// The versions of a file, oldest first, in the database and on each machine.
    async fn versions(&self, path: &str) -> String {
        let id = file(path, "").id().clone();
        let line = |versions: Vec<Version>| {
            let one = |version: &Version| {
                let (time, text) = (version.valid_time.millis() % 100_000, version.document.content());
                format!("{}@{} at {time}", text.unwrap_or_default(), version.tx_id.0)
            };
            versions.iter().map(one).collect::<Vec<_>>().join(", ") + "\n"
        };
        let port = Port::open(Arc::clone(&self.node)).await;
        let mut lines = line(direct(&port).await.history(&id).await.unwrap());
        for one in &self.machines {
            let path = one.place.path().join("journal.db");
            let journal = SqliteStore::open_shared(path, Durability::default()).unwrap();
            lines += &line(journal.history(&id).await.unwrap());
        }
        lines
    }

    /// Lets everything arrive, and returns what is wrong then.
    async fn settle(&mut self) -> Result<(), String> {
        for one in &self.machines {
            one.port.set(Way::Open);
            // Without a node, a machine goes on with its journal, and so its checks and sendings end at once.
            one.reconnects().await;
        }
        // A machine that finds that the database has lost something sends it again, and the others learn of it then.
        for _ in 0..3 {
            for one in &self.machines {
                one.store.pull().await.map_err(|e| e.to_string())?;
                one.store.flush().await.map_err(|e| e.to_string())?;
            }
        }
        for one in &self.machines {
            if one.store.state().queued > 0 {
                return Err("something is queued".into());
            }
        }
        let there = there(&self.node).await;
        for write in &self.acknowledged {
            match there.get(write) {
                Some(1) => {}
                found => return Err(format!("{write:?} is there {} times", found.unwrap_or(&0))),
            }
        }
        if there.len() != self.acknowledged.len() {
            return Err("there is more than what was written".into());
        }
        for file in 0..SHARED {
            let path = format!("/{file}");
            let mut texts = BTreeSet::new();
            for one in &self.machines {
                one.store.pull().await.map_err(|e| e.to_string())?;
                texts.insert(text(&*one.store, &path).await);
            }
            if texts.len() > 1 {
                return Err(format!("{path} is {texts:?}\n{}", self.versions(&path).await));
            }
        }
        Ok(())
    }
}

async fn failure(seed: u64) -> Option<String> {
    let mut world = World::new().await;
    let steps = schedule(seed);
    for step in &steps {
        world.take(*step).await;
    }
    let wrong = world.settle().await.err()?;
    Some(format!(
        "seed {seed}: {wrong}\n{}",
        steps.iter().map(|step| format!("{step:?}\n")).collect::<String>()
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_to_machines_and_database_each_write_is_there_once_and_all_are_equal() {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    if let Some(seed) = std::env::var("CONTEXT_SEED").ok().and_then(|seed| seed.parse().ok()) {
        assert_eq!(failure(seed).await, None);
        return;
    }
    let count = match (is_set("CONTEXT_LONG"), is_set("CONTEXT_FULL")) {
        (true, _) => 10_000,
        (_, true) => 1_000,
        _ => 40,
    };
    let next = Arc::new(AtomicU64::new(0));
    let has_failed = Arc::new(AtomicBool::new(false));
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (next, has_failed) = (Arc::clone(&next), Arc::clone(&has_failed));
        workers.spawn(async move {
            let mut failures = Vec::new();
            while failures.is_empty() && !has_failed.load(Ordering::Relaxed) {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= count {
                    break;
                }
                failures.extend(failure(seed).await);
            }
            has_failed.fetch_or(!failures.is_empty(), Ordering::Relaxed);
            failures
        });
    }
    let failures: Vec<String> = workers.join_all().await.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
