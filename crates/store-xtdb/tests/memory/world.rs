//! The machines of a schedule, the database that they share, and what has to hold in the end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::drawn::{MOST_MACHINES, SHARED, Step, schedule};
use crate::fleet::{Machine, copy_files, direct, file, text, there_by};
use crate::node::{Port, Way};
use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::session::Sets;
use context_model::time::Timestamp;
use context_store::clock::Clock;
use context_store::conformance::given::put;
use context_store::{AsOf, Store as _, Version};
use context_store_sqlite::{Durability, SqliteStore};

/// The time of all machines. It passes only now and then, so that many writes share a millisecond.
#[derive(Default)]
struct Time {
    now: AtomicI64,
    /// The lead of each machine's clock.
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

/// Number of times that the machines' texts are compared.
const ATTEMPTS: usize = 3;

/// A database that several machines share.
pub trait Database {
    /// Another port to it.
    fn port(&self) -> impl Future<Output = Port> + Send;
    /// Removes objects, as the owner of the database does.
    fn evict(&self, ids: &[&str]) -> impl Future<Output = ()> + Send;
    /// True if it has a version of an object.
    fn has(&self, id: &str) -> impl Future<Output = bool> + Send;
    /// Loses its `lost` newest transactions, or those since its backup.
    fn rewind(&mut self, lost: usize) -> impl Future<Output = ()> + Send;
    /// Makes a backup if it needs one to rewind, and has none.
    fn back_up(&mut self) -> impl Future<Output = ()> + Send;
    /// The time that it may need to read its log, in milliseconds.
    fn lag_ms(&self) -> u64;
}

/// The number of steps of which a database that goes back to a backup loses the transactions, at most.
const LOST: usize = 6;

struct World<D> {
    database: D,
    time: Arc<Time>,
    machines: Vec<Machine>,
    backups: Vec<Option<tempfile::TempDir>>,
    acknowledged: BTreeSet<(String, String)>,
    sessions: Vec<SessionId>,
    pruned: Vec<SessionId>,
    count: u64,
}

impl<D: Database> World<D> {
    async fn new(database: D) -> Self {
        let mut world = Self {
            database,
            time: Arc::default(),
            machines: Vec::new(),
            backups: Vec::new(),
            acknowledged: BTreeSet::new(),
            sessions: Vec::new(),
            pruned: Vec::new(),
            count: 0,
        };
        for _ in 0..2 {
            world.add(tempfile::tempdir().unwrap()).await;
        }
        world
    }

    async fn add(&mut self, place: tempfile::TempDir) {
        let clock = self.time.clock(self.machines.len());
        let port = self.database.port().await;
        self.machines.push(Machine::behind(port, place, clock, self.database.lag_ms()).await);
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
                self.database.rewind(lost).await;
                for one in &mut self.machines {
                    one.start_again().await;
                }
            }
            Step::Session => {
                self.count += 1;
                let session = SessionId::new(format!("s{}", self.count)).unwrap();
                let port = self.database.port().await;
                let store = direct(&port).await;
                for document in [
                    Document::chat(&session),
                    Document::system_prompt(&session, "be brief"),
                    Sets::default().document(&session),
                ] {
                    put(&*store, document).await;
                }
                self.sessions.push(session);
            }
            Step::Read { machine } => {
                let ids: Vec<ObjectId> = self.sessions.iter().flat_map(documents).collect();
                self.machines[machine % number].store.get_many(&ids, AsOf::default()).await.unwrap();
            }
            Step::Prune => {
                let Some(session) = self.sessions.pop() else { return };
                self.database.evict(&documents(&session).each_ref().map(ObjectId::as_str)).await;
                self.pruned.push(session);
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
        let port = self.database.port().await;
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
            // Without a node, a machine continues with its journal, and so its checks and sendings end at once.
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
        for id in self.pruned.iter().flat_map(documents) {
            if self.database.has(id.as_str()).await {
                return Err(format!("{id} came back"));
            }
        }
        let mut there = there_by(&self.database.port().await).await;
        there.retain(|(path, _), _| path.starts_with('/'));
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
            // A machine that loses contact for a moment answers from its journal, as documented. A difference that stays is a fault.
            for _ in 0..ATTEMPTS {
                texts.clear();
                for one in &self.machines {
                    one.reconnects().await;
                    one.store.pull().await.map_err(|e| e.to_string())?;
                    texts.insert(text(&*one.store, &path).await);
                }
                if texts.len() < 2 {
                    break;
                }
            }
            if texts.len() > 1 {
                return Err(format!("{path} is {texts:?}\n{}", self.versions(&path).await));
            }
        }
        Ok(())
    }
}

/// The objects of a machine's own session.
fn documents(session: &SessionId) -> [ObjectId; 3] {
    [ObjectId::chat(session), ObjectId::system_prompt(session), ObjectId::session(session)]
}

/// Runs the schedule of a seed on an empty database, and returns what is wrong in the end.
pub async fn failure(seed: u64, database: impl Database) -> Option<String> {
    let mut world = World::new(database).await;
    let steps = schedule(seed);
    for (at, step) in steps.iter().enumerate() {
        if steps[at..].iter().take(LOST).any(|step| matches!(step, Step::Rewind { .. })) {
            world.database.back_up().await;
        }
        world.take(*step).await;
    }
    let wrong = world.settle().await.err()?;
    Some(format!(
        "seed {seed}: {wrong}\n{}",
        steps.iter().map(|step| format!("{step:?}\n")).collect::<String>()
    ))
}
