//! The steps of harnesses in their conversations: turns, rolls, compactions, branches and forks.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use context_model::id::SessionId;

use crate::client::{Client, Style};
use crate::conversation::Output;
use crate::faults::Faulty;
use crate::knowledge::What;
use crate::run::Run;
use crate::steps::TurnEnd;
use crate::tools::input;
use crate::violation::{Kind, Outcome, violation};
use crate::{check, kept};

impl Run {
    /// The harness reports this many open results, one after the other or at once.
    pub async fn report(&mut self, n: usize, count: usize, together: bool) -> Outcome {
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
                        // The lines that a shell has shown count if the file is still so.
                        for note in &mut one.notes {
                            if let What::Catted { text } = &note.what
                                && self.world.now(note.file).as_ref() == Some(text)
                            {
                                let (text, last) = (Arc::clone(text), text.split('\n').count());
                                note.what = What::Shown { text, first: 1, last };
                            }
                        }
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

    pub async fn turn(&mut self, n: usize, end: TurnEnd) -> Outcome {
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

    /// Hands over new messages, and applies the plan.
    pub async fn advance(&mut self, n: usize, at_user_turn: bool, lost: bool) -> Outcome<bool> {
        let client = &mut self.clients[n];
        let engine = client.engine.clone().unwrap();
        let faulty = client.store.is_faulty();
        let before = check::all_stored(&self.world, client).await;
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
        kept::chat(client).await?;
        if !faulty {
            check::knowledge(&self.world, client, &before).await?;
            client.rebuilt.clear();
        }
        Ok(true)
    }

    pub async fn notices(&mut self, n: usize) -> Outcome {
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

    pub async fn roll(&mut self, n: usize, forward: bool) -> Outcome {
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
    pub async fn compact(&mut self, n: usize, keep: usize) -> Outcome {
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
            // Its own conversation has no notices.
            for message in &mut client.messages {
                message.shown = message.raw.clone();
                message.gone |= message.is_notice;
            }
        }
        let engine = client.engine.clone().unwrap();
        let recorded = client.recorded(recorded);
        if let Err(error) = engine.resync(client.incoming(0), recorded, &client.call(false)).await {
            client.allow(faulty, "resync", &error)?;
            client.doubt = true;
            return Ok(());
        }
        client.read_again(&self.world);
        kept::chat(client).await?;
        // The next request is another one anyway, so the plan before it may roll.
        self.advance(n, false, false).await.map(drop)
    }

    /// Back in the tree: what comes after a point is another branch.
    pub async fn back(&mut self, n: usize, to: usize) -> Outcome {
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

    pub async fn fork(&mut self, n: usize, from: usize) -> Outcome {
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
