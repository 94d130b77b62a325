//! Jobs that are recorded together: tool calls and files on their way into one transaction, and their outcome. Jobs that arrive
//! while one write becomes durable share the next write. So twenty results of one answer wait for two disk syncs, not twenty.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::files::index::{FileEntry, IndexResult};
use crate::files::observed::{Observed, ObservedFile};
use crate::session::client::Fsync;
use crate::session::commit::Work;
use crate::session::error::{EngineError, Result};
use context_evidence::Evidence;
use context_model::canonical;
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::index::Action;
use context_model::object::Toolcall;
use context_store::StoreError;
use context_tools::outcome;
use serde_json::json;
use tokio::sync::oneshot;

/// The object of a tool call.
pub(crate) struct CallObject {
    pub id: ObjectId,
    /// True unless the store has it already.
    pub is_new: bool,
}

/// A read of a file that is not stored yet.
pub(crate) struct UnstoredRead {
    pub call: ObjectId,
    pub input: Toolcall,
    pub output: String,
}

/// Something to record, with the outcome that its caller waits for.
pub(crate) enum Job {
    /// A tool call, the files that it shows, and the object that it becomes. That object is the outcome.
    Toolcall(Box<Toolcall>, Observed, CallObject, Reply<ObjectId>),
    /// Files that were looked at. The outcome is the result of indexing, in the order of the files.
    Files(Vec<ObservedFile>, FileEntry, Reply<Vec<IndexResult>>),
}

impl Job {
    /// Files that were looked at, recorded for a caller that needs no outcome.
    pub(crate) fn files(seen: Vec<ObservedFile>, entry: FileEntry) -> Self {
        Self::Files(seen, entry, Reply::default())
    }

    /// Sends the caller the outcome, or the reason for its absence.
    pub(crate) fn reply(self, done: Result<()>) {
        match self {
            Self::Toolcall(.., reply) => reply.send(done),
            Self::Files(.., reply) => reply.send(done),
        }
    }

    /// The tool call's object, once it is known.
    fn call(&self) -> Option<&ObjectId> {
        if let Self::Toolcall(.., reply) = self { reply.outcome.as_ref() } else { None }
    }

    /// The looks at files that it brings.
    pub(crate) fn seen_mut(&mut self) -> impl Iterator<Item = &mut ObservedFile> {
        let (observed, files): (&mut [_], &mut [_]) = match self {
            Self::Toolcall(_, observed, ..) => (&mut observed.files, &mut []),
            Self::Files(seen, ..) => (&mut [], seen),
        };
        observed.iter_mut().map(|(seen, _)| seen).chain(files)
    }

    /// The same, read-only.
    pub(crate) fn seen(&self) -> impl Iterator<Item = &ObservedFile> {
        let (observed, files): (&[_], &[_]) = match self {
            Self::Toolcall(_, observed, ..) => (&observed.files, &[]),
            Self::Files(seen, ..) => (&[], seen),
        };
        observed.iter().map(|(seen, _)| seen).chain(files)
    }

    /// The length of its texts.
    fn bytes(&self) -> usize {
        let content = if let Self::Toolcall(input, ..) = self { input.content.len() } else { 0 };
        content + self.seen().filter_map(|seen| seen.state.text()).map(str::len).sum::<usize>()
    }

    /// True if a watcher event triggered this job, rather than an explicit read.
    pub(crate) fn is_tracked(&self) -> bool {
        matches!(self, Self::Files(_, FileEntry::Tracked, _))
    }
}

/// The maximum number of jobs in one write.
const GROUP: usize = 256;

/// No job is added once a write has this many bytes of text, because a whole transaction is held in memory.
const BYTES: usize = 8 << 20;

/// The outcome of a job, of the type that its caller waits for.
pub(crate) struct Reply<T> {
    /// The outcome; `None` until it is decided.
    pub outcome: Option<T>,
    /// `None` if no caller waits.
    caller: Option<oneshot::Sender<Result<T>>>,
}

impl<T> Default for Reply<T> {
    fn default() -> Self {
        Self { outcome: None, caller: None }
    }
}

impl<T> Reply<T> {
    /// A reply, and where its caller gets it.
    pub(crate) fn new() -> (Self, oneshot::Receiver<Result<T>>) {
        let (caller, answer) = oneshot::channel();
        (Self { outcome: None, caller: Some(caller) }, answer)
    }

    /// Sends the caller the outcome, or the reason for its absence. A caller that has gone away needs no answer.
    pub(crate) fn send(self, done: Result<()>) {
        let Some(caller) = self.caller else { return };
        let _ = match (done, self.outcome) {
            (Err(error), _) => caller.send(Err(error)),
            (Ok(()), Some(outcome)) => caller.send(Ok(outcome)),
            (Ok(()), None) => caller.send(Err(abandoned())),
        };
    }
}

/// A job whose turn has not come.
pub(crate) struct Waiting {
    /// The job to record.
    pub job: Job,
    /// The event after which it survives a power loss.
    pub fsync: Fsync,
}

/// The waiting jobs, in order of arrival.
#[derive(Default)]
pub(crate) struct Queue(Mutex<Vec<Waiting>>);

impl Queue {
    /// Adds a job. Its answer comes once a caller has carried it out.
    pub(crate) fn push(&self, job: Job, fsync: Fsync) {
        self.waiting().push(Waiting { job, fsync });
    }

    /// Takes the oldest jobs, as many as one transaction may hold, and at least one.
    pub(crate) fn take(&self) -> Vec<Waiting> {
        let mut waiting = self.waiting();
        let mut bytes = 0;
        let fits = |one: &&Waiting| {
            bytes += one.job.bytes();
            bytes <= BYTES
        };
        let count = waiting.iter().take(GROUP).take_while(fits).count();
        let some = waiting.len().min(count.max(1));
        waiting.drain(..some).collect()
    }

    /// Abandons all jobs: their callers learn that the instance is closed.
    pub(crate) fn clear(&self) {
        self.waiting().clear();
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job's answer so far; `None` while there is none.
///
/// # Errors
/// The job's own; `STORE_UNAVAILABLE` if the call that carried it out was abandoned.
pub(crate) fn answered<D>(answer: &mut oneshot::Receiver<Result<D>>) -> Option<Result<D>> {
    match answer.try_recv() {
        Ok(result) => Some(result),
        Err(oneshot::error::TryRecvError::Empty) => None,
        Err(oneshot::error::TryRecvError::Closed) => Some(Err(abandoned())),
    }
}

/// Returns the error of a job that was not carried out to its end.
pub(crate) fn abandoned() -> EngineError {
    StoreError::Unavailable("the call that recorded this one too was abandoned; repeat it".into()).into()
}

/// True if one job of a group writes an object that another one touches.
pub(crate) fn depend(jobs: &[Job], work: &Work) -> bool {
    let mut touched: HashMap<&ObjectId, usize> = HashMap::new();
    for (number, job) in jobs.iter().enumerate() {
        for id in job.seen().map(|seen| &seen.id).chain(job.call()) {
            // No single job has this number, so it means "several".
            touched
                .entry(id)
                .and_modify(|by| {
                    if *by != number {
                        *by = jobs.len();
                    }
                })
                .or_insert(number);
        }
    }
    work.documents.ids().any(|id| touched.get(id) == Some(&jobs.len()))
}

/// Another client may have written the same at the same moment; then this client wrote nothing.
pub(crate) fn correct(jobs: &mut [Job], written: &[(ObjectId, bool)]) {
    let known: HashSet<&ObjectId> =
        written.iter().filter(|(_, written)| !written).map(|(id, _)| id).collect();
    for job in jobs {
        let Job::Files(.., Reply { outcome: Some(results), .. }) = job else { continue };
        for result in results.iter_mut().filter(|result| known.contains(&result.id)) {
            result.action = Action::Unchanged;
        }
    }
}

/// Distinguishes two calls with the same ID.
fn fingerprint(input: &Toolcall) -> Digest {
    let Toolcall { tool, args, content, status, .. } = input;
    let what = json!({ "tool": tool, "args": args, "content": content, "status": status.as_str() });
    Digest::of(canonical::to_string(&what).as_bytes())
}

/// Returns the objects that a call may have become, the likeliest first: under its call ID; under this ID with a mark, because
/// another call has it; and with a mark of its session, because an equal call of an unrelated session has that one.
pub(crate) fn names_of(input: &Toolcall, chat: &ObjectId) -> [ObjectId; 3] {
    let call = fingerprint(input);
    let own = Digest::of(format!("{call} {chat}").as_bytes());
    [
        ObjectId::toolcall(&input.id),
        ObjectId::repeated_toolcall(&input.id, &call),
        ObjectId::repeated_toolcall(&input.id, &own),
    ]
}

/// Returns the outcome of a call without secrets: they are removed whether or not the store keeps them, because the line would
/// otherwise read differently after a restart.
pub(crate) fn outcome_of(input: &Toolcall, evidence: Option<&Evidence>) -> Option<String> {
    let Toolcall { tool, args, content, status, .. } = input;
    let shows = match evidence {
        Some(Evidence::Shows(lines) | Evidence::Points { lines, .. } | Evidence::Unstored { lines, .. }) => {
            Some((lines.first, lines.last))
        }
        // A difference or a pointer, whose lines are not those of the file.
        Some(Evidence::LedTo(_) | Evidence::Refers { .. }) => return None,
        Some(Evidence::Made { .. } | Evidence::Several(_)) | None => None,
    };
    let told = outcome(tool, args, content, *status, shows)?;
    Some(context_secrets::redacted(&told, None).map_or(told, |(without, _)| without))
}

#[cfg(test)]
mod tests {
    use context_model::object::Status;

    use super::*;

    /// Returns a call with an output of this many bytes.
    fn text(bytes: usize, reply: Reply<ObjectId>) -> Job {
        let input = Toolcall::new("call", "bash", serde_json::Map::new(), "x".repeat(bytes));
        let object = CallObject { id: ObjectId::toolcall("call"), is_new: true };
        Job::Toolcall(Box::new(input), Observed::default(), object, reply)
    }

    fn taken(queue: &Queue) -> Vec<usize> {
        queue.take().into_iter().map(|waiting| waiting.job.bytes()).collect()
    }

    #[test]
    fn write_has_as_many_jobs_as_a_transaction_may_hold() {
        let queue: Queue = Queue::default();
        let push = |all: &[usize]| {
            all.iter().for_each(|bytes| queue.push(text(*bytes, Reply::default()), Fsync::Now))
        };
        push(&[BYTES - 1, 1, 1]);
        assert_eq!([taken(&queue), taken(&queue), taken(&queue)], [vec![BYTES - 1, 1], vec![1], vec![]]);
        push(&[BYTES + 1, 2]);
        assert_eq!([taken(&queue), taken(&queue)], [vec![BYTES + 1], vec![2]], "at least one");
        push(&[0; GROUP + 1]);
        assert_eq!([taken(&queue).len(), taken(&queue).len()], [GROUP, 1]);
    }

    #[test]
    fn callers_of_abandoned_jobs_get_an_error() {
        let queue: Queue = Queue::default();
        let (reply, mut answer) = Reply::new();
        queue.push(text(1, reply), Fsync::Now);
        assert!(answered(&mut answer).is_none());
        queue.clear();
        assert!(matches!(answered(&mut answer), Some(Err(_))));
        assert!(taken(&queue).is_empty());
    }

    #[test]
    fn secret_in_an_error_is_removed() {
        let secret = concat!("AKIA", "QYLPMN5HHHFPZAM2");
        let args = json!({ "command": "./deploy" }).as_object().cloned().unwrap();
        let input = Toolcall {
            status: Status::Fail,
            ..Toolcall::new(
                "call",
                "bash",
                args,
                format!("error: key {secret} is not valid\n\nCommand exited with code 1"),
            )
        };
        let told = outcome_of(&input, None).unwrap();
        assert!(told.starts_with("exit 1: \"error: key [redacted: ") && !told.contains(secret), "{told}");
    }
}
