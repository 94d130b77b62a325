//! Carries out a schedule.

use std::path::Path;
use std::pin::Pin;
use std::task::Poll;

use context_engine::{Engine, EngineError};
use context_model::id::{ObjectId, SessionId};
use context_model::time::{Timestamp, TxId};

use crate::belief::Held;
use crate::check;
use crate::client::{Client, Message, Output, Point, Style};
use crate::faults::Faulty;
use crate::node::Way;
use crate::steps::{Delivery, Fault, Schedule, Step, TurnEnd};
use crate::tools::{act, input};
use crate::world::World;

/// What a schedule has shown to be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub kind: Kind,
    pub what: String,
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An answer says that lines are unchanged and in sight, and they are not.
    FalseUnchanged,
    /// They are not in the request that the answer is in.
    PointerGone,
    /// A difference does not lead from what is in sight to what is on the disk.
    FalseDifference,
    /// A file is not what the model was shown, and nothing has said so.
    Missed,
    /// The same where the lines that are in sight are as they were.
    MissedRest,
    /// The same of a part that was read, where the model read another part later.
    MissedPart,
    /// A notice of what the model knows already.
    Repeated,
    /// A notice that says something wrong.
    FalseNotice,
    /// The store has not what is on the disk.
    Behind,
    /// An edit of what the model has not seen.
    Unrefused,
    /// A refusal where it has.
    WronglyRefused,
    /// A refusal whose difference is none of what the model knows.
    FalseRefusal,
    /// What was acknowledged is not there.
    Lost,
    /// The chat is not the conversation.
    Chat,
    /// The sets contradict each other, the store or what was asked.
    Sets,
    /// The versions of a file are not what was on the disk.
    History,
    /// A request does not extend the one before.
    Rewritten,
    /// What is pinned or activated is not whole.
    NotWhole,
    /// A call failed, and nothing was wrong.
    Failed,
}

pub type Outcome<T = ()> = Result<T, Violation>;

pub fn violation<T>(kind: Kind, what: impl Into<String>) -> Outcome<T> {
    Err(Violation { kind, what: what.into() })
}

/// A schedule under way.
pub struct Run {
    pub world: World,
    pub clients: Vec<Client>,
    forks: usize,
    /// What was seen, for comparing two runs.
    pub trace: Vec<String>,
}

/// Carries out a schedule in a directory of its own. Returns what was seen, and what was wrong, with the number of the
/// step that showed it.
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
                // What happens to a node is no fault of a store that has a queue.
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
                    if let Some((file, told)) = changed {
                        self.disturb(told.then_some(n), file);
                    }
                    if !late {
                        self.report(n, usize::MAX, false).await?;
                    }
                    check::sets(&mut self.clients[n]).await?;
                }
            }
            Step::Receive { client } => {
                let n = client % count;
                if self.ready(n).await? {
                    self.report(n, 1, false).await?;
                    check::sets(&mut self.clients[n]).await?;
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

    fn calm(&self, n: usize) {
        let client = &self.clients[n];
        client.store.calm();
        if let Some(port) = self.world.port(client.machine) {
            port.set(Way::Open);
        }
    }

    /// The disk has changed, and only one client (if any) knows how.
    fn disturb(&mut self, knows: Option<usize>, file: usize) {
        for (n, client) in self.clients.iter_mut().enumerate() {
            client.clean &= knows == Some(n);
            client.wire.changed(&self.world.files[file].path);
        }
    }

    /// Sees to it that a client has an engine that has the conversation. `false` where its store does not allow that.
    async fn ready(&mut self, n: usize) -> Outcome<bool> {
        let client = &mut self.clients[n];
        let faulty = client.store.is_faulty();
        if client.engine.is_none() {
            let store = std::sync::Arc::<Faulty>::clone(&client.store);
            let options = self.world.options(&client.session, store, &client.wire);
            match Engine::open(options).await {
                Ok(engine) => client.engine = Some(engine),
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
    async fn recover(&mut self, n: usize) -> Outcome<bool> {
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
        // What was never recorded and is no longer in the request is handed over first.
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
        client.read_again(self.world.files.len());
        client.doubt = false;
        client.unsure = false;
        let point = (engine.point().await, engine.point_times().await);
        let (Ok(tx), Ok(times)) = point else {
            client.doubt = true;
            return Ok(false);
        };
        let session = SessionId::new(client.session.as_str()).unwrap();
        client.point(session, tx, times);
        check::chat(client).await?;
        if client.style == Style::Raw {
            return self.advance(n, false, false).await;
        }
        Ok(true)
    }

    /// The harness reports open results: so many of them, one after the other or at once.
    async fn report(&mut self, n: usize, count: usize, together: bool) -> Outcome {
        let client = &mut self.clients[n];
        let engine = client.engine.clone().unwrap();
        let places: Vec<usize> =
            (0..client.open.len()).filter(|place| !client.open[*place].reported).take(count).collect();
        let groups: Vec<Vec<usize>> =
            if together { vec![places] } else { places.into_iter().map(|place| vec![place]).collect() };
        for group in groups {
            let faulty = client.store.is_faulty();
            let calls = group.iter().map(|place| engine.receive(input(&client.open[*place])));
            let births = all(calls.collect()).await;
            for (place, birth) in group.into_iter().zip(births) {
                let one = &mut client.open[place];
                one.reported = true;
                match birth {
                    Ok(birth) => {
                        let (object, text) = (birth.id.clone(), one.output.clone());
                        client.outputs.push(Output { object, text, notes: one.notes.clone() });
                        one.born = Some((birth.id, birth.header));
                    }
                    Err(error) => client.allow(faulty, "receive", &error)?,
                }
            }
        }
        Ok(())
    }

    async fn turn(&mut self, n: usize, end: TurnEnd) -> Outcome {
        if !self.ready(n).await? {
            return Ok(());
        }
        self.report(n, usize::MAX, end == TurnEnd::Together).await?;
        let client = &mut self.clients[n];
        client.close_answer();
        if end == TurnEnd::Prompt {
            let number = client.fresh();
            if client.messages.last().is_some_and(|last| last.role() != "user" && !last.is_notice) {
                client.say("assistant", &format!("so it is {number}"));
            }
            client.say("user", &format!("question {number}"));
        }
        self.advance(n, end == TurnEnd::Prompt, end == TurnEnd::Lost).await.map(drop)
    }

    /// Hands over what is new, and shows what the plan says.
    async fn advance(&mut self, n: usize, at_user_turn: bool, lost: bool) -> Outcome<bool> {
        let client = &mut self.clients[n];
        let engine = client.engine.clone().unwrap();
        let faulty = client.store.is_faulty();
        let plan = match engine.advance(client.incoming(client.sent), &client.call(at_user_turn)).await {
            Ok(plan) => plan,
            Err(error) => {
                client.allow(faulty, "advance", &error)?;
                client.doubt = true;
                return Ok(false);
            }
        };
        if lost {
            client.crash(true);
            return Ok(false);
        }
        let first = std::mem::replace(&mut client.sent, client.messages.len());
        check::plan(client, &plan, first)?;
        if let Some((tx, times)) = plan.point {
            let session = SessionId::new(client.session.as_str()).unwrap();
            client.point(session, tx, times);
            client.held.iter_mut().for_each(|held| held.unsaved = false);
        }
        check::notices(&self.world, client, &plan.notices).await?;
        check::request(client, first).await?;
        check::chat(client).await?;
        if !faulty {
            check::beliefs(&self.world, client).await?;
            client.rebuilt.clear();
        }
        Ok(true)
    }

    async fn notices(&mut self, n: usize) -> Outcome {
        if !self.ready(n).await? {
            return Ok(());
        }
        let client = &mut self.clients[n];
        // In the midst of an answer nothing can be said to the model.
        if !client.open.is_empty() {
            return Ok(());
        }
        let faulty = client.store.is_faulty();
        match client.engine.clone().unwrap().stale_notices().await {
            Ok(lines) => check::notices(&self.world, client, &lines).await,
            Err(error) => client.allow(faulty, "stale_notices", &error),
        }
    }

    async fn roll(&mut self, n: usize, forward: bool) -> Outcome {
        if !self.ready(n).await? {
            return Ok(());
        }
        let client = &mut self.clients[n];
        let faulty = client.store.is_faulty();
        let engine = client.engine.clone().unwrap();
        let plan = match forward {
            true => engine.roll_now(&client.call(false)).await,
            false => engine.undo_roll().await,
        };
        match plan {
            Ok(plan) => {
                let unknown = client.apply(&plan);
                if !unknown.is_empty() {
                    return violation(Kind::Rewritten, format!("an edit of {unknown:?}, which is not there"));
                }
                if !forward {
                    client.hold_restored(&plan);
                }
                check::held(client).await
            }
            Err(error) => client.allow(faulty, "roll", &error),
        }
    }

    /// The host compacts between two turns, whether the engine can be used or not.
    async fn compact(&mut self, n: usize, keep: usize) -> Outcome {
        if !self.clients[n].open.is_empty() {
            self.turn(n, TurnEnd::Open).await?;
        }
        if !self.ready(n).await? || !self.clients[n].open.is_empty() {
            let client = &mut self.clients[n];
            client.close_answer();
            client.doubt |= client.compact(keep);
            return Ok(());
        }
        let client = &mut self.clients[n];
        let faulty = client.store.is_faulty();
        let recorded = client.sent;
        if !client.compact(keep) {
            return Ok(());
        }
        if client.style == Style::Raw {
            client.messages.iter_mut().for_each(|message| message.shown = message.raw.clone());
        }
        let engine = client.engine.clone().unwrap();
        let recorded = client.recorded(recorded);
        if let Err(error) = engine.resync(client.incoming(0), recorded, &client.call(false)).await {
            client.allow(faulty, "resync", &error)?;
            client.doubt = true;
            return Ok(());
        }
        client.read_again(self.world.files.len());
        check::chat(client).await?;
        // The next request is another one anyway, so the plan before it may roll.
        self.advance(n, false, false).await.map(drop)
    }

    /// Back in the tree: what comes after a point is another branch.
    async fn back(&mut self, n: usize, to: usize) -> Outcome {
        let client = &mut self.clients[n];
        let place = to % client.points.len();
        client.points.truncate(place + 1);
        client.messages.truncate(client.points[place].length);
        client.compactions.truncate(client.points[place].compactions);
        client.open.clear();
        client.held.clear();
        client.outputs.clear();
        client.doubt = true;
        self.ready(n).await.map(drop)
    }

    async fn fork(&mut self, n: usize, from: usize) -> Outcome {
        if self.forks == 2 {
            return Ok(());
        }
        self.forks += 1;
        let parent = &self.clients[n];
        let place = from % parent.points.len();
        let store = Faulty::new(self.world.connection(parent.machine));
        let mut client = Client::new(&format!("fork{}", self.forks), parent.style, parent.machine, store);
        client.points = parent.points[..=place].to_vec();
        client.messages = parent.messages[..client.points[place].length].to_vec();
        client.compactions = parent.compactions[..client.points[place].compactions].to_vec();
        client.now = parent.now;
        // Keys and call IDs of the parent's own later messages are not met again.
        client.skip(1_000 * self.forks);
        client.doubt = true;
        self.clients.push(client);
        self.ready(self.clients.len() - 1).await.map(drop)
    }

    /// The client hears of what has changed on disk. Without a tracker it compares everything.
    async fn events(&mut self, n: usize, how: Delivery) -> Outcome {
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

    /// What was on disk before is in the store behind this.
    async fn flush(&mut self, n: usize) -> Outcome {
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
    async fn quiet(&mut self) -> Outcome {
        (0..self.clients.len()).for_each(|n| self.calm(n));
        for n in 0..self.clients.len() {
            self.world.sent(n).await?;
            self.ready(n).await?;
            self.events(n, Delivery::All).await?;
            self.flush(n).await?;
        }
        for n in 0..self.clients.len() {
            self.turn(n, TurnEnd::Open).await?;
        }
        Ok(())
    }

    async fn end(&mut self) -> Outcome {
        self.quiet().await?;
        for client in &mut self.clients {
            check::sets(client).await?;
            check::acknowledged(client).await?;
        }
        if self.world.is_shared() {
            return check::shared(&self.world);
        }
        check::histories(&self.world).await
    }

    async fn close(&mut self) {
        for client in &mut self.clients {
            client.engine = None;
            // The memory store is everybody's; closing it twice is fine.
            let _closed = client.store.inner().close().await;
        }
        let _closed = self.world.store.close().await;
    }
}

impl Client {
    /// All that is in the request was handed over again.
    fn read_again(&mut self, files: usize) {
        self.sent = self.messages.len();
        self.recovered = true;
        let held = std::mem::take(&mut self.held);
        // What was brought back stands in another result, which need not be the one that has the same text by chance.
        let has = |held: &Held| {
            let is_own = |one: &Message| one.object.as_ref() == Some(&held.object);
            let is_unique = self.outputs.iter().filter(|output| output.text.contains(&held.text)).count() < 2;
            self.visible().any(|one| (is_unique || is_own(one)) && one.shows(&held.text))
        };
        self.held = held.into_iter().filter(has).collect();
        self.rebuilt = (0..files).collect();
    }

    /// The harness notes where it is.
    fn point(&mut self, session: SessionId, tx: TxId, times: [Timestamp; 2]) {
        let (length, compactions) = (self.sent, self.compactions.len());
        self.points.push(Point { length, compactions, session, tx, times: Some(times) });
    }

    /// An error is right where something was wrong with the store.
    pub fn allow(&self, faulty: bool, call: &str, error: &EngineError) -> Outcome {
        if faulty { Ok(()) } else { violation(Kind::Failed, format!("{call} of {}: {error}", self.session)) }
    }

    /// The object of this session.
    pub fn document(&self, kind: &str) -> ObjectId {
        ObjectId::new(format!("{kind}:{}", self.session))
    }
}

/// Carries out calls side by side on this task, each as far as it comes without waiting.
pub async fn all<T>(calls: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut calls: Vec<Pin<Box<_>>> = calls.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<T>> = calls.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (call, done) in calls.iter_mut().zip(&mut done).filter(|(_, done)| done.is_none()) {
            if let Poll::Ready(value) = call.as_mut().poll(context) {
                *done = Some(value);
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}
