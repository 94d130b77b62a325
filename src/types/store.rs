//! The arguments and results of a whole store: its options and state, sessions, searches, versions, and upkeep.

use napi_derive::napi;

/// The place where objects are stored.
#[derive(Clone)]
#[napi(discriminant = "kind", discriminant_case = "lowercase")]
pub enum StoreOptions {
    /// In memory: gone with the process. For tests and experiments.
    Memory {},
    /// One SQLite file, shared by any number of processes on one machine.
    Sqlite {
        /// The database file. The file and its folder are created if needed, readable only by their owner.
        path: String,
        /// `power` (default): a commit survives a power failure. `process`: it survives the end of the
        /// process, and is faster.
        #[napi(ts_type = "'process' | 'power'")]
        durability: Option<String>,
        /// Opens the file for reading only, also one that can't be written, such as a backup on a read-only disk: nothing is
        /// written to it or beside it, no session waits, and each call sees the newest versions. `import`, `forget`, `prune` and
        /// `setLimits` are refused. A session of it is kept in memory as it was when it was opened; what it writes is lost.
        read_only: Option<bool>,
    },
    /// XTDB 1.x over HTTP: many clients and machines on one history. See docs/xtdb.md.
    Xtdb {
        /// A node, for instance `http://127.0.0.1:3000`.
        url: String,
        /// Further nodes of the same database, for fail-over.
        urls: Option<Vec<String>>,
        /// The time limit of one request in milliseconds. Default 10,000.
        timeout_ms: Option<u32>,
        /// A file on this machine that takes every write immediately and sends it on in order, so that no call waits
        /// for a node and nothing is lost while the node is down. Default: chosen by the main entry point. Without a
        /// journal (native class), every call waits for the node.
        journal: Option<String>,
        /// As for a file. With a journal, the journal is read, and no node.
        read_only: Option<bool>,
    },
}

/// One version of an object.
#[expect(dead_code, reason = "the shape of what `history` reads from a text")]
#[napi(object)]
pub(crate) struct Version {
    /// The whole document.
    #[napi(ts_type = "ObjectDocument")]
    pub document: String,
    /// The transaction that wrote it; strictly increasing within a store.
    pub tx_id: i64,
    /// When the store learned of it, RFC 3339.
    pub tx_time: String,
    /// The time from which it holds, RFC 3339.
    pub valid_time: String,
    /// Set if the owner of the store has erased something of it: texts are missing or say `[erased]`.
    pub erased: Option<ErasedMark>,
}

/// An object of a store, and what its versions take up.
#[napi(object)]
pub struct StoredObject {
    /// Its ID.
    pub id: String,
    /// Its type.
    #[napi(ts_type = "ObjectType")]
    pub r#type: String,
    /// A file's canonical path.
    pub path: Option<String>,
    /// The tool of a tool call.
    pub tool: Option<String>,
    /// The arguments of a tool call.
    #[napi(ts_type = "Record<string, unknown>")]
    pub args: Option<String>,
    /// The transactions of its versions, in the order of its history.
    pub written: Vec<TransactionMark>,
    /// Bytes of the versions as an export writes them, without compression or sharing.
    pub bytes: f64,
}

/// A transaction of a store.
#[napi(object)]
pub struct TransactionMark {
    /// Its number.
    pub tx_id: i64,
    /// When the store learned of it, RFC 3339.
    pub tx_time: String,
}

/// When and why the owner of a store erased something of a version.
#[napi(object)]
pub(crate) struct ErasedMark {
    /// When, RFC 3339.
    pub at: String,
    /// The owner's words.
    pub why: String,
}

/// The part of a history to return.
#[napi(object)]
pub struct HistoryPart {
    /// Only versions of later transactions than this one: the `txId` of the last version of the previous part.
    pub after: Option<f64>,
    /// At most this many versions, the oldest ones. The versions of one transaction are not divided, so there may be a
    /// few more.
    pub limit: Option<f64>,
}

/// The state of a store. For XTDB behind a journal, what is waiting there for the node.
#[napi(object)]
pub struct StoreState {
    /// The kind of the store.
    #[napi(ts_type = "'memory' | 'sqlite' | 'xtdb'")]
    pub kind: String,
    /// The XTDB node that answers, or the first one tried; without user name and password.
    pub url: Option<String>,
    /// True if XTDB answered the last request; absent without a journal.
    pub connected: Option<bool>,
    /// Number of the journal's transactions that XTDB does not have yet.
    pub queued: f64,
    /// Since when the oldest of them has been waiting, RFC 3339; absent if none is.
    pub waiting_since: Option<String>,
    /// True if this process sends the journal's transactions; absent without a journal.
    pub sender: Option<bool>,
    /// Number of objects changed by others that still have to be fetched from XTDB, as far as known; 0 if the journal is up
    /// to date, absent without one.
    pub behind: Option<f64>,
    /// The last error, until the operation succeeds again.
    pub last_error: Option<String>,
    /// A notice about the database or the journal: that it was restored from a backup, replaced or copied. Absent if
    /// nothing of that kind happened since the store was opened.
    pub notice: Option<String>,
}

/// The objects or texts to forget: one of these.
#[napi(object)]
pub struct Forgetting {
    /// The ID of an object.
    pub id: Option<String>,
    /// The canonical path of files.
    pub path: Option<String>,
    /// A text, wherever it occurs.
    pub text: Option<String>,
    /// A session, with what no other session has encountered.
    pub session_id: Option<String>,
    /// `true`: every secret that `findSecrets` finds.
    pub secrets: Option<bool>,
}

/// Secrets that one rule has found in one object. The secrets themselves are not given.
#[napi(object)]
pub struct SecretPlace {
    /// The object's ID.
    pub id: String,
    /// A file's canonical path.
    pub path: Option<String>,
    /// The tool of a tool call.
    pub tool: Option<String>,
    /// The first transaction whose version has one.
    pub tx_id: i64,
    /// The line of the first one in the content, counted from 1; absent where it is in arguments or in a turn.
    pub line: Option<u32>,
    /// The rule of gitleaks that found it, for instance `aws-access-token`.
    pub rule: String,
    /// Number of different ones in all versions.
    pub count: u32,
}

/// The options of `forget`.
#[napi(object)]
pub struct ForgetOptions {
    /// Only count what would be erased; only in a database file.
    pub dry_run: Option<bool>,
}

/// The counts of what was forgotten.
#[napi(object)]
pub struct Forgotten {
    /// Distinct texts.
    pub texts: f64,
    /// Versions that say so now.
    pub versions: f64,
}

/// The sessions to remove from a store: give an age, a size, a project, or several of them.
#[napi(object)]
pub struct PruneOptions {
    /// Sessions that have been neither written nor opened for this many days.
    pub older_than_days: Option<f64>,
    /// As many of the oldest sessions as necessary to use no more bytes than this.
    pub max_bytes: Option<f64>,
    /// Only sessions that worked in this folder or below it.
    pub project: Option<String>,
    /// Only report what would be removed.
    pub dry_run: Option<bool>,
}

/// The sessions and objects that were removed from a store, or would be.
#[napi(object)]
pub struct Pruned {
    /// The sessions, the oldest first.
    pub sessions: Vec<SessionSummary>,
    /// Objects, including the sessions' own documents.
    pub objects: f64,
    /// About how many bytes of the file become free.
    pub freed_bytes: f64,
    /// Bytes of it that were in use before.
    pub used_bytes: f64,
    /// True if the file has shrunk. If not, new data will use the free space.
    pub is_shorter: bool,
}

/// Limits of a store. While the store is idle, sessions beyond them are removed automatically.
#[napi(object)]
pub struct StoreLimits {
    /// The most bytes of the file that may be in use.
    pub max_bytes: Option<f64>,
    /// Sessions that have not been opened for this many days are removed.
    pub max_days: Option<f64>,
}

/// A session of a store.
#[napi(object)]
pub struct SessionSummary {
    /// Its ID.
    pub id: String,
    /// Turns of its chat.
    pub turns: f64,
    /// Objects that it has encountered.
    pub objects: f64,
    /// When it was last written, RFC 3339.
    pub last_written: String,
    /// The folder that it worked in: the one in its prompt, else the working directory that it was last opened with. A session
    /// that only an earlier version has opened has the one that contains all of its files, if there is one.
    pub folder: Option<String>,
    /// The beginning of the first prompt, on one line.
    pub first_prompt: Option<String>,
}

/// One hit of a search over a whole store.
#[napi(object)]
pub struct StoreHit {
    /// The object's ID.
    pub id: String,
    /// The object's type.
    #[napi(ts_type = "ObjectType")]
    pub r#type: String,
    /// A file's canonical path.
    pub path: Option<String>,
    /// True if a file is not on this machine's disks; absent for other objects.
    pub is_orphaned: Option<bool>,
    /// The tool of a tool call.
    pub tool: Option<String>,
    /// The arguments of a tool call.
    #[napi(ts_type = "Record<string, unknown>")]
    pub args: Option<String>,
    /// The newest version with this content.
    pub tx_id: i64,
    /// True if that is the object's latest version.
    pub is_latest: bool,
    /// The first line that matches, counted from 1; 0 where the text is damaged, as `snippet` says then.
    pub line: u32,
    /// The text of that line, shortened around the match.
    pub snippet: String,
    /// The newest session that has encountered the object; absent if none has.
    pub session: Option<String>,
    /// The folder that this session worked in, if that is known.
    pub folder: Option<String>,
    /// From when on that version holds, RFC 3339.
    pub time: Option<String>,
}

/// The outcome of an export or import.
#[napi(object)]
pub struct TransferSummary {
    /// The objects in the file.
    pub objects: f64,
    /// The versions in the file.
    pub versions: f64,
    /// The versions that the store did not have; 0 for an export.
    pub written: f64,
}

/// A version that failed the integrity check.
#[cfg_attr(test, allow(dead_code, reason = "a test build does not register functions with Node"))]
#[napi(object)]
pub struct Damage {
    /// The object's ID; absent where the damage lies outside any version.
    pub id: Option<String>,
    /// The version's transaction.
    pub tx_id: Option<i64>,
    /// The damage, in words.
    pub what: String,
}
