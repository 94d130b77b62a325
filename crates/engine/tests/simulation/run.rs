//! Carries out a schedule.

use std::path::Path;

use context_engine::Engine;
use context_model::id::SessionId;

use crate::client::{Client, Style};
use crate::faults::Faulty;
use crate::listener::Listener;
use crate::node::Way;
use crate::steps::{Delivery, Fault, Schedule, Step, TurnEnd};
use crate::tools::act;
use crate::violation::{Outcome, Violation};
use crate::world::World;
use crate::{check, kept};

/// A schedule under way.
pub struct Run {
    pub world: World,
    pub clients: Vec<Client>,
    pub forks: usize,
    /// The observations, for comparing two runs.
    pub trace: Vec<String>,
}

/// Carries out a schedule in a separate directory. Returns the observations, and the violation with the number of the step that
/// showed it.
pub async fn run(schedule: &Schedule, root: &Path) -> (Vec<String>, Result<(), (usize, Violation)>) {
    let mut run = Run::new(schedule, root).await;
    let mut outcome = Ok(());
    for (number, step) in schedule.steps.iter().enumerate() {
        outcome = run.take(step).await.map_err(|wrong| (number, wrong));
        if outcome.is_err() {
            break;
        }
    }
    if outcome.is_ok() {
        outcome = run.end().await.map_err(|wrong| (schedule.steps.len(), wrong));
    }
    run.close().await;
    (run.trace, outcome)
}

impl Run {
    pub async fn new(schedule: &Schedule, root: &Path) -> Self {
        let world = World::new(root, schedule).await;
        let clients = (0..schedule.clients).map(|n| {
            let style =
                if (n + schedule.seed as usize).is_multiple_of(3) { Style::Raw } else { Style::Stores };
            Client::new(&format!("s{n}"), style, n, Faulty::new(world.connection(n)))
        });
        Self { clients: clients.collect(), world, forks: 0, trace: Vec::new() }
    }

    pub async fn take(&mut self, step: &Step) -> Outcome {
        let count = self.clients.len();
        match *step {
            Step::Disk { file, change } => {
                let file = self.world.number(file);
                if self.world.change(file, change) {
                    self.disturb(None, file);
                }
            }
            Step::Path { file, change } => {
                let file = self.world.number(file);
                if self.world.change_path(file, change) {
                    self.disturb(None, file);
                }
            }
            Step::Quiet => self.quiet().await?,
            Step::Fault { client, fault: Fault::Beside } => {
                let n = client % count;
                let others = self.clients.iter().enumerate().filter(|(other, _)| *other != n);
                let others = others.filter_map(|(_, other)| other.engine.clone()).collect();
                // Two that let each other go first would wait for ever.
                self.clients.iter().for_each(|client| client.store.let_first(Vec::new()));
                self.clients[n].store.let_first(others);
            }
            Step::Fault { client, fault } => {
                let client = &mut self.clients[client % count];
                let way = match fault {
                    Fault::Away => Some(Way::Away),
                    Fault::Slow => Some(Way::Slow),
                    Fault::After => Some(Way::Deaf),
                    _ => None,
                };
                // The incidents of a node are not faults of a store that has a queue.
                match (self.world.port(client.machine), way) {
                    (Some(port), Some(way)) => port.set(way),
                    _ => {
                        client.unsure |= fault == Fault::After;
                        client.store.arm(fault);
                    }
                }
            }
            Step::Calm { client } => self.calm(client % count),
            Step::Crash { client, keep } => self.clients[client % count].crash(keep),
            Step::Idle { client } => self.clients[client % count].now += 3_600_000,
            Step::Events { client, how } => self.events(client % count, how).await?,
            Step::Act { client, tool, call, late } => {
                let n = client % count;
                if self.ready(n).await? {
                    let changed = act(&mut self.world, &mut self.clients[n], tool, call).await?;
                    let notes = self.clients[n].open.last().map_or(&[][..], |one| &one.notes);
                    let used: Vec<usize> = notes.iter().map(|note| note.file).collect();
                    self.clients[n].uses(&self.world, used);
                    if let Some((file, told)) = changed {
                        self.disturb(told.then_some(n), file);
                    }
                    if !late {
                        self.report(n, usize::MAX, false).await?;
                    }
                    kept::sets(&mut self.clients[n]).await?;
                }
            }
            Step::Receive { client } => {
                let n = client % count;
                if self.ready(n).await? {
                    self.report(n, 1, false).await?;
                    kept::sets(&mut self.clients[n]).await?;
                }
            }
            Step::Turn { client, end } => self.turn(client % count, end).await?,
            Step::Notices { client } => self.notices(client % count).await?,
            Step::Roll { client } | Step::Undo { client } => {
                self.roll(client % count, matches!(step, Step::Roll { .. })).await?;
            }
            Step::Compact { client, keep } => self.compact(client % count, keep).await?,
            Step::Back { client, to } => self.back(client % count, to).await?,
            Step::Fork { client, from } => self.fork(client % count, from).await?,
        }
        if self.clients.iter().any(|client| client.engine.is_none()) {
            // A process that has ended looks at nothing any more.
            self.clients.iter().for_each(|client| client.store.let_first(Vec::new()));
        }
        for (n, client) in self.clients.iter().enumerate() {
            let shown: usize = client.messages.iter().map(|message| message.text().len()).sum();
            self.trace.push(format!("{n}: {} messages, {shown}, {}", client.messages.len(), client.clean));
        }
        Ok(())
    }

    pub fn calm(&self, n: usize) {
        let client = &self.clients[n];
        client.store.calm();
        if let Some(port) = self.world.port(client.machine) {
            port.set(Way::Open);
        }
    }

    /// The disk has changed, and only one client (if any) knows how.
    pub fn disturb(&mut self, knows: Option<usize>, file: usize) {
        for (n, client) in self.clients.iter_mut().enumerate() {
            client.clean &= knows == Some(n);
            self.world.paths(file).iter().for_each(|path| client.wire.changed(path));
        }
    }

    /// Sees to it that a client has an engine that has the conversation. `false` where its store does not allow that.
    pub async fn ready(&mut self, n: usize) -> Outcome<bool> {
        let client = &mut self.clients[n];
        let faulty = client.store.is_faulty();
        if client.engine.is_none() {
            let store = std::sync::Arc::<Faulty>::clone(&client.store);
            let options = self.world.options(&client.session, store, &client.wire);
            match Engine::open(options).await {
                Ok(engine) => {
                    client.listener = Listener::of(&engine);
                    client.engine = Some(engine);
                }
                Err(error) => {
                    client.allow(faulty, "open", &error)?;
                    return Ok(false);
                }
            }
            client.clean = true;
            client.owed = false;
            // A new session has nothing to take over.
            client.doubt |= !client.messages.is_empty() || client.points.len() > 1;
        }
        if client.doubt { self.recover(n).await } else { Ok(true) }
    }

    /// Hands a conversation over again, from the last point that the harness has.
    pub async fn recover(&mut self, n: usize) -> Outcome<bool> {
        let client = &mut self.clients[n];
        let faulty = client.store.is_faulty();
        let engine = client.engine.clone().unwrap();
        let point = client.points.last().unwrap().clone();
        if let Err(error) = engine.restore(&point.session, point.tx, point.times).await {
            client.allow(faulty, "restore", &error)?;
            return Ok(false);
        }
        if client.style == Style::Raw {
            for message in &mut client.messages {
                message.shown = message.raw.clone();
                message.gone |= message.is_notice;
            }
        }
        // A message that was never recorded and is no longer in the request is handed over first.
        let lost = client.handed(point.length, client.cut());
        if !lost.is_empty()
            && let Err(error) = engine.resync(lost, 0, &client.call(false)).await
        {
            client.allow(faulty, "resync", &error)?;
            return Ok(false);
        }
        let recorded = client.recorded(point.length);
        client.held.retain(|held| !held.unsaved);
        if let Err(error) = engine.resync(client.incoming(0), recorded, &client.call(false)).await {
            client.allow(faulty, "resync", &error)?;
            return Ok(false);
        }
        client.read_again(&self.world);
        client.doubt = false;
        client.unsure = false;
        let point = (engine.point().await, engine.point_times().await);
        let (Ok(tx), Ok(times)) = point else {
            client.doubt = true;
            return Ok(false);
        };
        let session = SessionId::new(client.session.as_str()).unwrap();
        client.point(session, tx, times);
        kept::chat(client).await?;
        if client.style == Style::Raw {
            return self.advance(n, false, false).await;
        }
        Ok(true)
    }

    /// The client hears of changes on the disk. Without a tracker it compares everything.
    pub async fn events(&mut self, n: usize, how: Delivery) -> Outcome {
        let client = &mut self.clients[n];
        let Some(engine) = client.engine.clone() else { return Ok(()) };
        let faulty = client.store.is_faulty();
        if client.wire.is_used() {
            let all = tokio::task::block_in_place(|| client.wire.deliver(how));
            client.owed |= faulty;
            client.clean = all && !client.owed;
            return Ok(());
        }
        match engine.reconcile().await {
            Ok(_) => client.clean = true,
            Err(error) => client.allow(faulty, "reconcile", &error)?,
        }
        Ok(())
    }

    /// Flushes: the store then has the content that the disk had before.
    pub async fn flush(&mut self, n: usize) -> Outcome {
        let client = &mut self.clients[n];
        let Some(engine) = client.engine.clone() else { return Ok(()) };
        let faulty = client.store.is_faulty();
        match engine.flush().await {
            Ok(()) if client.wire.is_used() && !faulty => (client.owed, client.clean) = (false, true),
            Ok(()) => {}
            Err(error) => client.allow(faulty, "flush", &error)?,
        }
        Ok(())
    }

    /// All faults end, all events are delivered, and everybody takes a turn.
    pub async fn quiet(&mut self) -> Outcome {
        (0..self.clients.len()).for_each(|n| self.calm(n));
        for n in 0..self.clients.len() {
            self.world.sent(n).await?;
            self.ready(n).await?;
            self.events(n, Delivery::All).await?;
            self.flush(n).await?;
        }
        // On two machines the first turn may be the one that fetches what the other has sent.
        for _ in 0..=usize::from(self.world.is_shared()) {
            for n in 0..self.clients.len() {
                self.turn(n, TurnEnd::Open).await?;
            }
        }
        for client in &mut self.clients {
            check::listener(&self.world, client).await?;
        }
        Ok(())
    }

    pub async fn end(&mut self) -> Outcome {
        self.quiet().await?;
        for client in &mut self.clients {
            kept::sets(client).await?;
            kept::acknowledged(client).await?;
        }
        if self.world.is_shared() {
            return kept::shared(&self.world);
        }
        kept::histories(&self.world).await
    }

    pub async fn close(&mut self) {
        for client in &mut self.clients {
            client.engine = None;
            // The memory store is everybody's; closing it twice is fine.
            let _closed = client.store.inner().close().await;
        }
        let _closed = self.world.store.close().await;
    }
}
