//! Reading and changing the notice of erasures (see `erasures`).

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::erasures::{ERASURES, Erasures, RECORD, Record, overtaken, record_id};
use super::http::{Format, NodeRequest};
use super::inner::XtdbClient;
use super::random;
use super::read::at_place;
use super::wire::{FOREVER, is_of, no_entity};
use super::writer::NodeWriter;
use context_model::time::{Timestamp, TxId};
use context_store::{Result, StoreError};
use serde_json::Value;

/// The pause between two looks at a notice while a client erases.
const PAUSE: Duration = Duration::from_millis(50);

impl XtdbClient {
    /// Returns the known erasures. Asks for them the first time.
    pub(super) async fn erasures(&self) -> Result<Arc<Erasures>> {
        let known = self.known_erasures();
        match known {
            Some(known) => Ok(known),
            None => {
                self.look_for_erasures().await?;
                Ok(self.known_erasures().unwrap_or_else(|| Arc::new(Erasures::none())))
            }
        }
    }

    /// Reads the notice and the new records. True if the notice has changed.
    pub(super) async fn look_for_erasures(&self) -> Result<bool> {
        let known = self.known_erasures();
        let notice = self.notice().await?;
        if known.as_ref().is_some_and(|known| known.notice == notice) {
            return Ok(false);
        }
        let is_first = known.is_none();
        let mut new = known.map_or_else(Erasures::none, |known| (*known).clone());
        let read = new.number();
        (new.notice, new.seen) = (notice, Instant::now());
        for number in read + 1..=new.number() {
            let record = self.record(number).await?;
            new.all.gone.extend(record.gone);
            new.all.objects.extend(record.objects);
        }
        self.set_erasures(new);
        if !is_first {
            self.cache(super::cache::Cache::forget_erased);
        }
        Ok(true)
    }

    /// Returns the notice that a transaction of this writer must match. `None` if something was erased meanwhile, so that
    /// the transaction has to be planned anew. Waits while another client erases, and completes the work of one that has
    /// ended.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` if that takes too long.
    pub(super) async fn free(self: &Arc<Self>, writer: &mut NodeWriter) -> Result<Option<Arc<Erasures>>> {
        let begin = Instant::now();
        let patience = self.nodes.timeout();
        let mut is_news = false;
        loop {
            let erasures = self.erasures().await?;
            match erasures.erasing() {
                None => return Ok((!is_news).then_some(erasures)),
                Some(name) if writer.erasing.as_deref() == Some(name) => return Ok(Some(erasures)),
                // An eraser must stop once another client has taken over.
                Some(_) if writer.erasing.is_some() => return Err(overtaken()),
                Some(_) if erasures.seen.elapsed() >= patience => {
                    Box::pin(self.take_over(writer)).await?;
                }
                Some(_) if begin.elapsed() >= patience * 4 => {
                    let what = "the store's owner is erasing something; try again in a moment";
                    return Err(StoreError::Unavailable(what.into()));
                }
                Some(_) => tokio::time::sleep(PAUSE).await,
            }
            self.look_for_erasures().await?;
            is_news = true;
        }
    }

    /// Notes the notice that this client has just written.
    pub(super) fn noticed(&self, notice: Value) {
        let known = self.known_erasures();
        let mut new = known.map_or_else(Erasures::none, |known| (*known).clone());
        (new.notice, new.seen) = (Some(notice), Instant::now());
        self.set_erasures(new);
    }

    /// Notes a record that this client is about to write.
    pub(super) fn recorded(&self, record: Record) {
        let known = self.known_erasures();
        let mut new = known.map_or_else(Erasures::none, |known| (*known).clone());
        new.all.gone.extend(record.gone);
        new.all.objects.extend(record.objects);
        self.set_erasures(new);
    }

    fn known_erasures(&self) -> Option<Arc<Erasures>> {
        self.erasures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_erasures(&self, new: Erasures) {
        *self.erasures.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(new));
    }

    async fn notice(&self) -> Result<Option<Value>> {
        self.newest(ERASURES).await
    }

    async fn record(&self, number: u64) -> Result<Record> {
        let id = record_id(number);
        let lost = || StoreError::Corrupt(format!("the record {id} of what was erased can't be read"));
        let value = self.newest(&id).await?.ok_or_else(lost)?;
        serde_json::from_str(value[RECORD].as_str().unwrap_or_default()).map_err(|_| lost())
    }

    /// The newest document with this ID, as of the newest transaction that this client knows.
    pub(super) async fn newest(&self, id: &str) -> Result<Option<Value>> {
        // As of the known transaction: a program that answers from memory, whatever it should wait for, must not show an
        // older one.
        let request = self.read("entity", Format::Json).with("eid", id);
        let request = match self.known.load(Ordering::Acquire) {
            0 => request.with("valid-time", FOREVER),
            known => at_place(request, None, TxId(known)),
        };
        self.document_of(id, &request).await
    }

    /// The same as it is now: the transaction of a submission without an answer is unknown. A program that answers from memory
    /// was never asked with this valid time.
    pub(super) async fn newest_now(&self, id: &str) -> Result<Option<Value>> {
        self.document_of(id, &self.read("entity", Format::Json).with("eid", id).with("valid-time", later()?))
            .await
    }

    async fn document_of(&self, id: &str, request: &NodeRequest) -> Result<Option<Value>> {
        let answer = self.nodes.send(request).await?;
        if answer.says(&no_entity(id))? {
            return Ok(None);
        }
        let value = answer.json()?;
        if is_of(&value, id) { Ok(Some(value)) } else { Err(answer.strange("a document of something else")) }
    }
}

/// A valid time that is later than any document's, and different each time.
///
/// # Errors
/// `STORE_UNAVAILABLE` if the system has no random numbers.
pub(super) fn later() -> Result<Timestamp> {
    /// The year 9000.
    const EARLIEST: i64 = 221_845_392_000_000;
    /// Up to the year 9998.
    const RANGE: u64 = 31_500_000_000_000;
    let random = random::word()? % RANGE;
    Ok(Timestamp::from_millis(EARLIEST + i64::try_from(random).unwrap_or_default()))
}
