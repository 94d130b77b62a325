//! Recording in groups: what arrives while a write becomes durable is written together by the next one, so that
//! twenty results of one answer wait for two syncs of the disk and not for twenty.
//!
//! Architecture invariant: each job has the outcome that it would have had alone, in the order of arrival. Where
//! one job of a group writes what another one touches, or one of them fails, they are carried out one by one.

use std::collections::HashMap;

use context_model::id::ObjectId;
use context_model::index::Action;
use context_store::{Receipt, StoreError};
use tokio::sync::oneshot;

use crate::engine::Inner;
use crate::error::Result;
use crate::ingest::{Entry, IndexResult};
use crate::observed::Observed;
use crate::record::ToolcallInput;
use crate::seen::Seen;
use crate::state::{State, Work};

/// As many jobs become durable by one write at most.
const GROUP: usize = 256;

/// And no more once they have so many bytes of text: a transaction is in memory as a whole.
const BYTES: usize = 8 << 20;

/// Something to record.
pub(crate) enum Job {
    /// A tool call, and the files that it shows.
    Toolcall(ToolcallInput, Observed),
    /// Files that were looked at.
    Files(Vec<Seen>, Entry),
}

/// What became of a job.
pub(crate) enum Done {
    /// The tool call's object.
    Toolcall(ObjectId),
    /// What indexing did, in the order of the files.
    Files(Vec<IndexResult>),
}

/// A job whose caller waits.
pub(crate) struct Waiting {
    job: Job,
    /// Whether its caller leaves the sync to [`crate::Engine::settle`].
    soon: bool,
    reply: oneshot::Sender<Result<Done>>,
}

impl Job {
    /// The length of its texts.
    fn bytes(&self) -> usize {
        let content = if let Self::Toolcall(input, _) = self { input.content.len() } else { 0 };
        content + self.seen().map(|seen| seen.bytes()).sum::<usize>()
    }

    fn seen_mut(&mut self) -> impl Iterator<Item = &mut Seen> {
        let (observed, files): (&mut [_], &mut [_]) = match self {
            Self::Toolcall(_, observed) => (&mut observed.files, &mut []),
            Self::Files(seen, _) => (&mut [], seen),
        };
        observed.iter_mut().map(|(seen, _)| seen).chain(files)
    }

    fn seen(&self) -> impl Iterator<Item = &Seen> {
        let (observed, files): (&[_], &[_]) = match self {
            Self::Toolcall(_, observed) => (&observed.files, &[]),
            Self::Files(seen, _) => (&[], seen),
        };
        observed.iter().map(|(seen, _)| seen).chain(files)
    }
}

impl Inner {
    /// Carries out a job together with those that wait beside it.
    ///
    /// # Errors
    /// The job's own: `CLOSED`, `INVALID_ARGUMENT`, what the store reports.
    pub async fn perform(&self, job: Job, soon: bool) -> Result<Done> {
        let (reply, mut answer) = oneshot::channel();
        self.waiting().push(Waiting { job, soon, reply });
        // Callers get the state in the order in which they came, and the first one works for those behind it.
        let mut state = match self.lock().await {
            Ok(state) => state,
            Err(closed) => {
                self.waiting().clear();
                // Where the instance was closed in between, the job may have been carried out before that.
                return answer.try_recv().unwrap_or(Err(closed));
            }
        };
        loop {
            match answer.try_recv() {
                Ok(result) => return result,
                Err(oneshot::error::TryRecvError::Empty) => {}
                Err(oneshot::error::TryRecvError::Closed) => {
                    let what = "the call that recorded this one too was abandoned; repeat it";
                    return Err(StoreError::Unavailable(what.into()).into());
                }
            }
            let group: Vec<Waiting> = {
                let mut waiting = self.waiting();
                let mut bytes = 0;
                let fits = |one: &&Waiting| {
                    bytes += one.job.bytes();
                    bytes <= BYTES
                };
                let count = waiting.iter().take(GROUP).take_while(fits).count();
                let some = waiting.len().min(count.max(1));
                waiting.drain(..some).collect()
            };
            state.soon = group.iter().all(|one| one.soon);
            let (mut jobs, replies): (Vec<Job>, Vec<_>) = group.into_iter().map(|w| (w.job, w.reply)).unzip();
            for (result, reply) in self.perform_all(&mut state, &mut jobs).await.into_iter().zip(replies) {
                // A caller that has gone away needs no answer.
                let _ = reply.send(result);
            }
        }
    }

    async fn perform_all(&self, state: &mut State, jobs: &mut [Job]) -> Vec<Result<Done>> {
        if jobs.len() > 1
            && let Ok(Some(done)) = self.carry_out(state, jobs).await
        {
            return done.into_iter().map(Ok).collect();
        }
        let mut results = Vec::with_capacity(jobs.len());
        for job in jobs {
            results.push(self.perform_now(state, job).await);
        }
        results
    }

    /// Carries out one job by a transaction of its own.
    ///
    /// # Errors
    /// As [`Inner::perform`].
    pub async fn perform_now(&self, state: &mut State, job: &mut Job) -> Result<Done> {
        let done = self.carry_out(state, std::slice::from_mut(job)).await?;
        done.and_then(|mut done| done.pop())
            .ok_or_else(|| StoreError::Unavailable("a job has no outcome; repeat it".into()).into())
    }

    /// Carries out jobs in one transaction. `None` where they depend on each other; all is as before then, as it
    /// is after an error.
    async fn carry_out(&self, state: &mut State, jobs: &mut [Job]) -> Result<Option<Vec<Done>>> {
        for attempt in 0.. {
            let mut work = Work::default();
            let mut done = match self.prepare_jobs(state, jobs, &mut work).await {
                Ok(done) => done,
                Err(error) => {
                    state.take_back(work);
                    return Err(error);
                }
            };
            if jobs.len() > 1 && depend(jobs, &done, &work) {
                state.take_back(work);
                return Ok(None);
            }
            let documents: Vec<ObjectId> = work.documents.iter().map(|d| d.id().clone()).collect();
            match self.save(state, work).await {
                Ok(receipt) => {
                    correct(&mut done, &documents, receipt);
                    for job in &*jobs {
                        self.track(job.seen());
                        if let Job::Toolcall(_, observed) = job {
                            state.know_written(observed);
                        }
                    }
                    return Ok(Some(done));
                }
                Err(error) => self.retry(state, attempt, error).await?,
            }
        }
        unreachable!("the attempts are bounded by retry")
    }

    async fn prepare_jobs(&self, state: &mut State, jobs: &mut [Job], work: &mut Work) -> Result<Vec<Done>> {
        if jobs.iter().any(|job| job.seen().next().is_some()) {
            self.refresh(state).await?;
            self.learn(state, jobs.iter().flat_map(Job::seen).map(|seen| seen.id.clone())).await?;
            self.look_anew(state, jobs).await?;
        }
        let mut done = Vec::with_capacity(jobs.len());
        for job in jobs {
            done.push(match job {
                Job::Toolcall(input, observed) => {
                    let file_refs = self.add_observed(state, observed, work);
                    Done::Toolcall(self.add_toolcall(state, input, file_refs, work).await?)
                }
                Job::Files(seen, entry) => {
                    Done::Files(seen.iter().map(|one| self.prepare(state, one, *entry, work)).collect())
                }
            });
        }
        Ok(done)
    }

    /// Looks once more at files of which a version has been stored since they were looked at: that version may be the
    /// newer one, and what was seen here would take its place for good.
    async fn look_anew(&self, state: &State, jobs: &mut [Job]) -> Result<()> {
        for seen in jobs.iter_mut().flat_map(Job::seen_mut) {
            if state.catalog.get(&seen.id).is_some_and(|latest| seen.is_older_than(latest)) {
                let (state, since) = self.look(&seen.place, None).await?;
                *seen = seen.again(state, since);
            }
        }
        Ok(())
    }
}

/// Whether one job of a group writes an object that another one touches.
fn depend(jobs: &[Job], done: &[Done], work: &Work) -> bool {
    let mut touched: HashMap<ObjectId, usize> = HashMap::new();
    for (number, (job, done)) in jobs.iter().zip(done).enumerate() {
        let call = if let Done::Toolcall(id) = done { Some(id.clone()) } else { None };
        for id in job.seen().map(|seen| seen.id.clone()).chain(call) {
            // The number of jobs cannot be reached by one of them, so it says "several".
            touched
                .entry(id)
                .and_modify(|by| {
                    if *by != number {
                        *by = jobs.len()
                    }
                })
                .or_insert(number);
        }
    }
    work.documents.iter().any(|document| touched.get(document.id()) == Some(&jobs.len()))
}

/// Another client may have written the same in this very moment; then nothing was written here.
fn correct(done: &mut [Done], documents: &[ObjectId], receipt: Option<Receipt>) {
    let written = receipt.map(|receipt| receipt.written).unwrap_or_default();
    for (id, _) in documents.iter().zip(written).filter(|(_, written)| !written) {
        for one in done.iter_mut() {
            let Done::Files(results) = one else { continue };
            for result in results.iter_mut().filter(|result| result.id == *id) {
                result.action = Action::Unchanged;
            }
        }
    }
}
