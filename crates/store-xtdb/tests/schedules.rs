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
use std::sync::atomic::{AtomicU64, Ordering};

use context_store::Store as _;
use fleet::{Machine, copy_files, open, text, there};
use node::{Node, Way};

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
        match self.below(20) {
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

struct World {
    node: Arc<Node>,
    machines: Vec<Machine>,
    backups: Vec<Option<tempfile::TempDir>>,
    acknowledged: BTreeSet<(String, String)>,
    count: u64,
}

impl World {
    async fn new() -> Self {
        let node = Arc::new(Node::default());
        let machines = vec![Machine::start(&node).await, Machine::start(&node).await];
        Self { node, machines, backups: vec![None, None], acknowledged: BTreeSet::new(), count: 0 }
    }

    async fn reopen(&mut self, machine: usize) {
        let one = &mut self.machines[machine];
        one.store = open(one.place.path(), &one.port.url).await;
    }

    async fn take(&mut self, step: Step) {
        let number = self.machines.len();
        match step {
            Step::Write { machine, shared, file } => {
                let machine = machine % number;
                self.count += 1;
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
                let machine = machine % number;
                self.machines[machine].port.set(Way::Open);
                self.machines[machine].store.close().await.unwrap();
                self.reopen(machine).await;
            }
            Step::Copy { machine } if number < MOST_MACHINES => {
                let one = &self.machines[machine % number];
                // At rest, as a copied folder is: a copy of a file that is being written is none.
                one.port.set(Way::Open);
                one.store.close().await.unwrap();
                let copy = one.copied();
                self.machines.push(Machine::in_place(&self.node, copy).await);
                self.backups.push(None);
                self.reopen(machine % number).await;
            }
            Step::Backup { machine } => {
                let machine = machine % number;
                self.machines[machine].port.set(Way::Open);
                self.machines[machine].store.close().await.unwrap();
                self.backups[machine] = Some(self.machines[machine].copied());
                self.reopen(machine).await;
            }
            Step::Restore { machine } => {
                let machine = machine % number;
                let Some(backup) = &self.backups[machine] else { return };
                let one = &self.machines[machine];
                one.port.set(Way::Open);
                one.store.flush().await.unwrap();
                one.store.close().await.unwrap();
                for entry in std::fs::read_dir(one.place.path()).unwrap() {
                    std::fs::remove_file(entry.unwrap().path()).unwrap();
                }
                copy_files(backup.path(), one.place.path());
                self.reopen(machine).await;
            }
            Step::Hint { machine } => {
                let machine = machine % number;
                self.machines[machine].port.set(Way::Open);
                self.machines[machine].store.close().await.unwrap();
                let _ = std::fs::remove_file(self.machines[machine].place.path().join("journal.db.progress"));
                self.reopen(machine).await;
            }
            Step::Rewind { lost } => {
                // A node is stopped for that, for longer than anything here lasts: the machines notice it.
                for one in &self.machines {
                    one.port.set(Way::Open);
                    one.store.close().await.unwrap();
                }
                self.node.rewind(self.node.count().saturating_sub(lost));
                for machine in 0..number {
                    self.reopen(machine).await;
                }
            }
            Step::Copy { .. } => {}
        }
    }

    /// Lets everything arrive, and returns the faults found then.
    async fn settle(&mut self) -> Result<(), String> {
        for one in &self.machines {
            one.port.set(Way::Open);
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
                return Err(format!("{path} is {texts:?}"));
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
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let next = Arc::clone(&next);
        workers.spawn(async move {
            let mut failures = Vec::new();
            while failures.is_empty() {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= count {
                    break;
                }
                failures.extend(failure(seed).await);
            }
            failures
        });
    }
    let failures: Vec<String> = workers.join_all().await.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
