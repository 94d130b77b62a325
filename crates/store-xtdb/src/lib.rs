//! The store on XTDB 1.x over HTTP: one database that many clients and machines share.
//!
//! Documents are stored as any XTDB client expects them: the specification's fields and `xt/id`. Most versions of a chat or session
//! are stored as changes of the version before, and some are stored whole (see `form`). XTDB's valid time and transaction
//! time are the store's two times. Distribution is left to XTDB.
//!
//! Architecture invariants:
//! - A transaction may be sent any number of times and takes effect once: it replaces the writer's mark, a small document,
//!   and XTDB refuses it if the mark is no longer the expected one.
//! - A write is based on the version that it replaces and has a `match` for it, so two clients that saw the same change
//!   create one version, and no change is lost between reading and writing.
//! - Every read waits for the newest transaction that this client wrote or saw, whichever node answers it, so a fail-over
//!   never goes back in time.
//! - A client's requests at a turn grow with its own areas (see `areas`), and not with others' writes elsewhere.
//!
//! A transaction that writes one object several times becomes several transactions in XTDB, which keeps only the last put
//! per ID in each. They are applied in order. If the client ends between two of them, only the first ones have been
//! applied; [`QueuedStore`] completes them.
#![warn(unreachable_pub)]

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use context_model::id::ObjectId;
use context_model::time::TxId;

use context_store::{
    AsOf, Damage, Erased, Filter, Hit, Outline, ReadOnly, Receipt, Result, Search, Store, StoreError,
    Transaction, Version, Write,
};

mod areas;
mod cache;
mod changed;
mod connection;
mod edn;
mod erase;
mod erasures;
mod fields;
mod form;
mod http;
mod inner;
mod log;
mod mark;
mod notice;
mod outlines;
mod owner;
mod parallel;
mod plan;
mod query;
mod question;
mod queue;
mod random;
mod read;
mod resolve;
mod steps;
mod whole;
mod wire;
mod write;
mod writer;

pub use queue::{QueueOptions, QueueState, QueuedStore};

use http::{Format, NodeRequest, Nodes};
use inner::XtdbClient;
use mark::Marks;
use write::Coming;
use writer::NodeWriter;

/// The way to reach a database. Its text for developers has no user name and no password.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct XtdbOptions {
    /// The nodes of one database, such as `http://127.0.0.1:3000`. The first that answers is used; the others take over if
    /// it stops answering.
    pub urls: Vec<String>,
    /// The time limit of one request, in milliseconds. A call gives up after about twice as long.
    pub timeout_ms: u64,
    /// Number of times that a request is sent before the call gives up.
    pub attempts: u32,
    /// The name of this client among the writers of the database. Two clients must never share a name. Random if `None`.
    pub writer: Option<String>,
}

impl fmt::Debug for XtdbOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let urls: Vec<String> = self.urls.iter().map(|url| connection::shown_url(url)).collect();
        let Self { timeout_ms, attempts, .. } = self;
        f.debug_struct("XtdbOptions")
            .field("urls", &urls)
            .field("timeout_ms", timeout_ms)
            .field("attempts", attempts)
            .finish_non_exhaustive()
    }
}

impl XtdbOptions {
    /// The defaults for these nodes: 10 seconds a request, six attempts.
    #[must_use]
    pub fn new(urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let urls = urls.into_iter().map(Into::into).collect();
        Self { urls, timeout_ms: 10_000, attempts: 6, writer: None }
    }
}

/// A store on XTDB 1.x. Every call waits for a node; [`QueuedStore`] does not.
///
/// [`Store::search`] reads every version of every object. [`Store::local_value`] lasts as long as this value.
pub struct XtdbStore {
    inner: Arc<XtdbClient>,
    writer: tokio::sync::Mutex<NodeWriter>,
}

impl XtdbStore {
    /// Finds a node and checks its version.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for malformed URLs; `STORE_UNAVAILABLE` if no node answers, or if the server is not XTDB 1.x.
    pub async fn connect(options: XtdbOptions) -> Result<Arc<Self>> {
        let timeout = Duration::from_millis(options.timeout_ms.max(1));
        let nodes = Nodes::new(&options.urls, timeout, options.attempts)?;
        check_version(&nodes).await?;
        let writer = NodeWriter::new(options.writer)?;
        let inner = XtdbClient {
            nodes,
            cache: Mutex::default(),
            known: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            erasures: Mutex::default(),
            local: Mutex::default(),
        };
        inner.latest().await?;
        Ok(Arc::new(Self { inner: Arc::new(inner), writer: tokio::sync::Mutex::new(writer) }))
    }

    /// The URL of the node that the next request goes to first.
    pub fn current_url(&self) -> &str {
        self.inner.nodes.current()
    }

    fn open(&self) -> Result<&Arc<XtdbClient>> {
        if self.inner.closed.load(Ordering::Relaxed) { Err(StoreError::Closed) } else { Ok(&self.inner) }
    }
}

async fn check_version(nodes: &Nodes) -> Result<()> {
    let wrong = |what: String| {
        StoreError::Unavailable(format!(
            "{what} at {}; this library speaks with XTDB 1.x and its HTTP module: start such a node \
             (docs/xtdb.md) and give its URL",
            nodes.current()
        ))
    };
    let answer = nodes.send(&NodeRequest::get("status", Format::Json)).await?;
    if answer.is_missing() {
        return Err(wrong("the server there is not XTDB 1.x (XTDB 2 has a different interface)".into()));
    }
    answer.success()?;
    let not_json = |_| wrong("the server there is not XTDB 1.x (its status is not JSON)".into());
    let status = answer.json().map_err(not_json)?;
    match status.get("version").and_then(|v| v.as_str()) {
        Some(version) if version.starts_with("1.") => Ok(()),
        Some(version) => Err(wrong(format!("the server there is XTDB {version}, not 1.x"))),
        None => Err(wrong("the server there does not report an XTDB version".into())),
    }
}

#[async_trait]
impl Store for XtdbStore {
    async fn transact_marked(&self, transaction: Transaction, marks: Vec<Option<Erased>>) -> Result<Receipt> {
        let inner = self.open()?;
        let mut writer = self.writer.lock().await;
        let marked = transaction.writes.iter().zip(marks).filter_map(|(write, mark)| match write {
            Write::Put { document, valid_time: Some(time) } => Some(((document.id().clone(), *time), mark?)),
            _ => None,
        });
        let marks: Marks = marked.collect();
        inner.transact(&mut writer, transaction, Coming::Now(&marks)).await
    }

    async fn get(&self, id: &ObjectId, at: AsOf) -> Result<Option<Version>> {
        self.open()?.get(id, at).await
    }

    async fn get_many(&self, ids: &[ObjectId], at: AsOf) -> Result<Vec<Option<Version>>> {
        XtdbClient::get_many(self.open()?, ids, at).await
    }

    async fn outlines(&self, ids: &[ObjectId]) -> Result<Vec<Option<Outline>>> {
        XtdbClient::outlines(self.open()?, ids).await
    }

    async fn version(&self, id: &ObjectId, tx: TxId) -> Result<Option<Version>> {
        self.open()?.version(id, tx).await
    }

    async fn history(&self, id: &ObjectId) -> Result<Vec<Version>> {
        self.open()?.history(id).await
    }

    async fn query(&self, filter: &Filter) -> Result<Vec<ObjectId>> {
        XtdbClient::query(self.open()?, filter).await
    }

    async fn latest_tx(&self) -> Result<TxId> {
        Ok(self.open()?.latest().await?.map_or(TxId(0), |tx| tx.id))
    }

    async fn changes_since(&self, tx: TxId) -> Result<BTreeMap<ObjectId, TxId>> {
        self.open()?.changes_since(tx).await
    }

    async fn search(&self, query: &Search) -> Result<Vec<Hit>> {
        self.open()?.search(query).await
    }

    async fn local_value(&self, name: &str, default: &str) -> Result<String> {
        let mut values = self.open()?.local.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(values.entry(name.to_owned()).or_insert_with(|| default.to_owned()).clone())
    }

    fn read_only(self: Arc<Self>) -> Result<Arc<dyn Store>> {
        self.open()?;
        Ok(Arc::new(ReadOnly::new(self)))
    }

    async fn verify(&self) -> Result<Vec<Damage>> {
        self.open()?.verify().await
    }

    async fn flush(&self) -> Result<()> {
        // A transaction is acknowledged once XTDB has committed it, so there is nothing to wait for.
        self.open().map(|_| ())
    }

    async fn close(&self) -> Result<()> {
        self.inner.closed.store(true, Ordering::Relaxed);
        Ok(())
    }
}
