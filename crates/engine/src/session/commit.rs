//! The only way to change the stored state of a session that has begun: a transaction under construction, the way to save it,
//! and the only loop that retries after a conflict. `engine/open.rs` writes a session's first documents.

use std::convert::Infallible;

use context_model::chat::ChatPatch;
use context_model::id::ObjectId;
use context_model::time::TxId;
use context_store::{Receipt, StoreError, Transaction, Write};
use serde_json::json;

use super::catalog::Meta;
use super::state::{SessionChange, SessionWrite};
pub(crate) use super::work::Work;
use super::{Session, refresh};
use crate::session::client::{Client, Fsync};
use crate::session::error::{EngineError, Result};

/// The maximum number of attempts at a transaction after conflicts. Each conflict means that another client has made progress,
/// so the retries end by themselves; the bound guards against a broken store.
const MAX_ATTEMPTS: usize = 100;

/// A write that a caller wants to make. After a conflict, other clients' writes are taken in and the intent starts
/// over.
pub(crate) trait Intent: Send {
    /// The answer to the caller.
    type Outcome: Send;
    /// The reason for which the intent is abandoned without an error.
    type Refusal: Send;

    /// Asks the store and the disk for the facts that the decision depends on. Changes only known state.
    fn ask(&mut self, client: &Client, session: &mut Session) -> impl Future<Output = Result<()>> + Send;

    /// Decides what the transaction writes. The session changes once that is saved.
    ///
    /// # Errors
    /// Whatever prevents the change.
    fn decide(
        &mut self,
        client: &Client,
        session: &Session,
        work: &mut Work,
    ) -> Result<std::result::Result<Self::Outcome, Self::Refusal>>;
}

/// The result of an intent: its outcome and the objects that were written, each with whether it made a version, or the reason
/// for which it was abandoned.
pub(crate) type Transacted<I> =
    std::result::Result<(<I as Intent>::Outcome, Vec<(ObjectId, bool)>), <I as Intent>::Refusal>;

/// An intent that needs no facts first.
struct Plain<F>(F);

impl<F, T> Intent for Plain<F>
where
    F: FnMut(&Session, &mut Work) -> Result<T> + Send,
    T: Send,
{
    type Outcome = T;
    type Refusal = Infallible;

    async fn ask(&mut self, _: &Client, _: &mut Session) -> Result<()> {
        Ok(())
    }

    fn decide(
        &mut self,
        _: &Client,
        session: &Session,
        work: &mut Work,
    ) -> Result<std::result::Result<T, Infallible>> {
        (self.0)(session, work).map(Ok)
    }
}

/// Changes a session and its store by one transaction, which is rebuilt after a conflict. If it fails, everything is
/// as before.
///
/// # Errors
/// Errors of `decide` and the store.
pub(crate) async fn commit<T: Send>(
    client: &Client,
    session: &mut Session,
    fsync: Fsync,
    decide: impl FnMut(&Session, &mut Work) -> Result<T> + Send,
) -> Result<T> {
    match transact(client, session, fsync, &mut Plain(decide)).await? {
        Ok((outcome, _)) => Ok(outcome),
        Err(never) => match never {},
    }
}

/// As [`commit`], for an intent that asks first. Returns the outcome, with the documents' IDs and whether each made a
/// version.
///
/// # Errors
/// As [`commit`].
pub(crate) async fn transact<I: Intent>(
    client: &Client,
    session: &mut Session,
    fsync: Fsync,
    intent: &mut I,
) -> Result<Transacted<I>> {
    let mut attempt = 0;
    loop {
        intent.ask(client, session).await?;
        let mut work = Work { chat: ChatPatch::new(session.turns), ..Work::default() };
        let outcome = match intent.decide(client, session, &mut work)? {
            Ok(outcome) => outcome,
            Err(refusal) => return Ok(Err(refusal)),
        };
        match save(client, session, fsync, work).await {
            Ok(written) => return Ok(Ok((outcome, written))),
            Err(EngineError::Store(StoreError::Conflict(id))) if attempt < MAX_ATTEMPTS => {
                attempt += 1;
                refresh::after_conflict(client, session, &id).await?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Writes a transaction, and then makes its changes in memory. Returns each document's ID and whether it made a version.
async fn save(
    client: &Client,
    session: &mut Session,
    fsync: Fsync,
    mut work: Work,
) -> Result<Vec<(ObjectId, bool)>> {
    let transaction = transaction(client, session, &mut work);
    if transaction.writes.is_empty() {
        session.take_in(&mut work);
        return Ok(Vec::new());
    }
    // Documents come first. Behind them are only patches of the session's own objects.
    let documents = transaction.writes.iter().map_while(|write| match write {
        Write::Put { document, .. } => Some(Meta::from_document(document, TxId(0))),
        Write::Patch { .. } => None,
    });
    let metas: Vec<Option<Meta>> = documents.collect();
    let ids: Vec<ObjectId> = transaction.writes.iter().map(|write| write_id(write).clone()).collect();
    let receipt = client.write(transaction, fsync).await?;
    let touched = work.change.touched().to_vec();
    session.take_in(&mut work);
    note_written(client, session, &receipt, &ids);
    let outcome: Vec<(ObjectId, bool)> = ids.into_iter().zip(receipt.written).take(metas.len()).collect();
    for (meta, (id, written)) in metas.into_iter().zip(&outcome) {
        debug_assert!(meta.is_some() || session.catalog.get(id).is_none());
        if let Some(meta) = meta.filter(|_| *written) {
            session.meet(id, Meta { tx: receipt.tx_id, ..meta });
        }
    }
    for (id, path) in &work.displays {
        session.has_displays = true;
        session.catalog.set_display(id, path);
    }
    let turns = work.turns.unwrap_or(work.chat.turns());
    let starts_turn = turns != session.turns;
    session.turns = turns;
    for id in &work.renewed {
        session.dropped.remove(id);
    }
    session.dropped.extend(work.dropped);
    let documents = outcome.iter().filter(|(_, written)| *written).map(|(id, _)| id.clone()).collect();
    session.changes.push(SessionChange::Wrote(SessionWrite {
        documents,
        chat: work.chat.into_patch(),
        touched,
        renewed: work.renewed,
        starts_turn,
    }));
    if outcome.iter().any(|(_, written)| !written) {
        // Another client wrote the same thing at the same moment. If its transaction can't be read now, it still
        // counts as not received, and the next refresh reads it.
        if let Err(error) = refresh::refresh(client, session).await {
            tracing::debug!(%error, "what another client wrote is asked for again later");
        }
    }
    Ok(outcome)
}

/// Notes this client's own transaction. If no write made a version, the receipt names another client's transaction, which this
/// client has not read.
fn note_written(client: &Client, session: &mut Session, receipt: &Receipt, ids: &[ObjectId]) {
    let made_version =
        |wanted: &ObjectId| ids.iter().zip(&receipt.written).any(|(id, written)| *written && id == wanted);
    if !receipt.written.contains(&true) {
        return;
    }
    client.note_newest(receipt.tx_id);
    // Only if no other client wrote in between.
    if receipt.tx_id.0 == session.seen.0 + 1 {
        session.seen = receipt.tx_id;
    }
    session.point = receipt.tx_id;
    if made_version(&client.session_object) {
        session.session_tx = Some(receipt.tx_id);
    }
    if made_version(&client.chat_id) {
        session.chat_tx = Some(receipt.tx_id);
    }
}

/// Turns the work into a store transaction. Documents are moved, not copied, because their texts may be long.
fn transaction(client: &Client, session: &Session, work: &mut Work) -> Transaction {
    let changes_chat = !work.chat.is_empty() || work.documents.has(&client.chat_id);
    let mut expected: Vec<_> = std::mem::take(&mut work.expected).into_iter().collect();
    let mut writes: Vec<Write> = work.documents.take().into_iter().map(Write::put).collect();
    if !work.chat.is_empty() {
        writes.push(Write::patch(client.chat_id.clone(), work.chat.patch().clone()));
    }
    if changes_chat {
        // A patch names its turn by number, and another process with the same session may have changed the numbering.
        expected.push((client.chat_id.clone(), session.chat_tx));
    }
    let mut patch = work.change.patch().clone();
    patch.extend(work.session.clone());
    if !patch.is_empty() {
        writes.push(Write::patch(client.session_object.clone(), patch));
        expected.push((client.session_object.clone(), session.session_tx));
    }
    Transaction { writes, expected }
}

fn write_id(write: &Write) -> &ObjectId {
    match write {
        Write::Put { document, .. } => document.id(),
        Write::Patch { id, .. } => id,
    }
}

impl Session {
    /// Makes the changes of sets, stays and catalog that a transaction was built with.
    fn take_in(&mut self, work: &mut Work) {
        self.sets.apply(std::mem::take(&mut work.change));
        self.stays.extend(work.stays.drain());
        self.activated.extend(work.activated.drain());
        for (id, meta) in work.ahead.drain(..) {
            self.catalog.put(&id, meta);
        }
    }
}

impl Work {
    /// Stores the agent's path of a file in the session.
    pub(crate) fn show_as(&mut self, session: &Session, id: &ObjectId, path: &str) {
        if !session.has_displays && self.displays.is_empty() {
            self.session.put(&["display_paths"], json!({}));
        }
        self.session.put(&["display_paths", id.as_str()], json!(path));
        self.displays.insert(id.clone(), path.to_owned());
    }
}

#[cfg(test)]
#[path = "commit_tests.rs"]
mod tests;
