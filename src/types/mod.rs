//! The shapes that cross the border. Their documentation is what TypeScript users read.
//!
//! A field whose type in TypeScript is an object or a list, and here a text, crosses as JSON: lib/core/json.ts converts it.

mod projection;
mod store;

use napi::bindgen_prelude::{Either, Uint8Array};
use napi_derive::napi;

pub(crate) use self::projection::*;
pub(crate) use self::store::*;

/// A rule that maps a prefix of the agent's paths to the filesystem that the client sees.
#[napi(object)]
pub struct MountMapping {
    /// The prefix as the agent sees it, absolute, for instance `/workspace`.
    pub agent_prefix: String,
    /// The prefix on the filesystem that `filesystemId` names, for instance `/home/me/project`.
    pub canonical_prefix: String,
    /// The filesystem namespace of everything below the prefix, in the same form as that of the session. Default: that of this
    /// machine's own files (`defaultFilesystemId()`), as it is right for a folder of the host that a container mounts.
    pub filesystem_id: Option<String>,
}

/// Time that text stays in the messages for the model: `keep` for good, or a number of model calls. By default each text
/// stays as long as keeping it costs less than the expected cost of needing it again.
#[napi(object)]
pub struct StayOptions {
    /// The model's reasoning, if its provider allows removing it.
    #[napi(ts_type = "'keep' | number")]
    pub thinking: Option<Either<String, f64>>,
    /// Calls: once their outputs and arguments are old they become one line.
    #[napi(ts_type = "'keep' | number")]
    pub calls: Option<Either<String, f64>>,
    /// The model's prose, and long texts of users.
    #[napi(ts_type = "'keep' | number")]
    pub prose: Option<Either<String, f64>>,
    /// The weight of a missed use. Larger numbers keep everything longer, and cost more. By default 4, or 1.68 if only
    /// outputs and arguments can leave.
    pub weight: Option<f64>,
    /// The share of what the agent's own requests would have cost that rolls may have cost beyond what they have saved since,
    /// besides 5,000 fresh tokens. It bounds how far any session can fall behind one in which nothing leaves. 0: nothing at all,
    /// those tokens included; `none`: no bound, and text leaves once it has paid its price once instead of twice. A dead cache, a
    /// full window and rolls that a user asks for are exempt. Default 0.03.
    #[napi(ts_type = "'none' | number")]
    pub debt_cap: Option<Either<String, f64>>,
}

/// Time that tool outputs stay active without being pinned.
#[napi(object)]
pub struct WindowOptions {
    /// Number of the most recent tool outputs of one turn that stay active. Default 5.
    pub per_turn: Option<f64>,
    /// For how many turns tool outputs stay active, including the current one. Default 3.
    pub turns_back: Option<f64>,
}

/// The options for opening a session.
#[napi(object)]
pub struct OpenOptions {
    /// The harness's ID of the session. A session that the store already has is resumed.
    pub session_id: String,
    /// True if the caller has just made this ID, so that nothing can have been recorded of the session anywhere. Then it
    /// also opens while no XTDB node answers; without it, such a session is refused, because another machine may have it.
    /// A session that is found is resumed anyway. Default false.
    pub is_new: Option<bool>,
    /// The agent's working directory, absolute, as the agent sees it.
    pub cwd: String,
    /// True if `cwd` is a guess of the caller: relative paths are resolved against it, but it isn't recorded as the folder that the
    /// session works in, by which `sessions` and `prune` choose. Default false.
    pub guesses_cwd: Option<bool>,
    /// The store of the objects. Default: SQLite at `defaultStorePath()` (main entry), memory (native class).
    pub store: Option<StoreOptions>,
    /// The agent's home directory, for paths that begin with `~`.
    pub home: Option<String>,
    /// The system prompt to record.
    pub system_prompt: Option<String>,
    /// The filesystem namespace of paths that no mount covers: 1 to 512 bytes, no control characters, no blanks at its ends.
    pub filesystem_id: Option<String>,
    /// The mapping of the agent's paths to paths that the client can read.
    pub mounts: Option<Vec<MountMapping>>,
    /// The auto-collapse window.
    pub window: Option<WindowOptions>,
    /// Time that text stays in the messages for the model.
    pub stay: Option<StayOptions>,
    /// True if files are watched. Default true.
    pub watch: Option<bool>,
    /// True if paths that no mount covers are the client's own. Default: true without mounts, else false.
    pub watch_unmapped: Option<bool>,
    /// Tell filesystems apart by device number where no mount applies. Default false.
    pub detect_devices: Option<bool>,
    /// Take secrets of known shapes out of what is recorded, before it is stored. Files stay as they are, and so does what
    /// the model is sent while this process runs. Default false.
    pub redact: Option<bool>,
}

/// The instruction to an edit tool: at most one of the two is there, and with neither the tool makes the edit.
#[napi(object, object_from_js = false)]
pub struct EditGuard {
    /// The answer to give instead of making the edit.
    pub refusal: Option<String>,
    /// The text to add to the edit's result: the file has changed elsewhere, and how.
    pub difference: Option<String>,
}

/// The outcome of indexing.
#[napi(object)]
pub struct IndexResult {
    /// The object's ID.
    pub id: String,
    /// The outcome for the object.
    #[napi(ts_type = "'created' | 'updated' | 'unchanged' | 'deleted'")]
    pub action: String,
    /// Why the object has no text, as the end of a sentence that begins "the file …".
    pub reason: Option<String>,
}

/// The outcome of indexing many files.
#[napi(object)]
pub struct IndexedFiles {
    /// The outcome for each indexed file, in the order of the given paths.
    pub indexed: Vec<IndexResult>,
    /// The paths without a readable regular file, in the given order.
    pub refused: Vec<RefusedFile>,
}

/// A path that could not be indexed.
#[napi(object)]
pub struct RefusedFile {
    /// The given path.
    pub path: String,
    /// `IO` or `INVALID_ARGUMENT`.
    #[napi(ts_type = "ErrorCode")]
    pub code: String,
    /// Why, as a sentence.
    pub message: String,
}

/// A tool execution.
#[napi(object)]
pub struct Toolcall {
    /// The harness's call ID, verbatim.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments as the model gave them.
    #[napi(ts_type = "object")]
    pub args: String,
    /// A short form of the arguments for people.
    pub args_display: Option<String>,
    /// The complete output text.
    pub content: String,
    /// The success or failure of the tool.
    #[napi(ts_type = "'ok' | 'fail'")]
    pub status: String,
    /// IDs of file objects that the call concerns. Files that the engine finds itself are added.
    pub file_refs: Option<Vec<String>>,
    /// The ID of the call whose program made this one. The output of such a call goes to the program and not to the
    /// model. It is recorded and can be searched, but does not appear in pool, window or chat.
    pub parent: Option<String>,
}

/// The answer to a change of the session's sets. A refusal is an answer and not an error, because it is meant for the
/// model.
#[napi(object)]
pub struct SetChange {
    /// True if it was done.
    pub ok: bool,
    /// The object's ID.
    pub id: String,
    /// A sentence for the model.
    pub message: String,
    /// Why not: `UNKNOWN_OBJECT`, `NOT_CONTENT`, `NULL_CONTENT`, `NOT_ACTIVE` or `INVALID_ARGUMENT`.
    #[napi(ts_type = "ErrorCode")]
    pub code: Option<String>,
    /// After an activation: the content, or the requested part of it.
    pub content: Option<String>,
    /// After the activation of a tool call whose arguments have collapsed in the last projection: the full arguments.
    #[napi(ts_type = "object")]
    pub arguments: Option<String>,
    /// After an activation: whether the whole content is still visible in the last projection. `message` then names the
    /// result in which it is.
    pub visible: bool,
}

/// The part of a content to return.
#[napi(object)]
pub struct Part {
    /// First and last line, counted from 1: `[120, 180]`, or `"120-180"` as the tool `activate` and the commands take it.
    #[napi(ts_type = "[number, number] | string")]
    pub lines: Option<Either<String, Vec<f64>>>,
    /// Only lines that match this regular expression. It ignores the case of ASCII letters unless it contains a
    /// capital one. Matching takes time in proportion to the text; look-around and back-references are refused.
    pub grep: Option<String>,
}

/// The four sets of a session, as object IDs in the order in which they entered.
#[napi(object, use_nullable = false)]
pub struct SessionSets {
    /// Every content object that the session has encountered; never shrinks.
    pub session_index: Vec<String>,
    /// The objects that are visible as metadata.
    pub metadata_pool: Vec<String>,
    /// The objects whose content is loaded.
    pub active_set: Vec<String>,
    /// The objects that are exempt from auto-collapse.
    pub pinned_set: Vec<String>,
}

/// One block of the fourth section.
#[napi(object)]
pub struct Block {
    /// The object's ID.
    pub id: String,
    /// Its content, verbatim.
    pub content: String,
}

/// The canonical view of a session: four sections in order. The same state gives the same bytes.
#[napi(object)]
pub struct Assembled {
    /// The system prompt.
    pub system_prompt: String,
    /// One line for each object of the metadata pool.
    pub metadata_pool: String,
    /// The conversation, with `toolcall_ref` lines in place of outputs.
    #[napi(ts_type = "unknown[]")]
    pub chat: String,
    /// One block for each object of the active set.
    pub active_content: String,
    /// All four as one text.
    pub text: String,
    /// The blocks of `activeContent`, so that callers need not parse it.
    pub blocks: Vec<Block>,
}

/// A point in the two times.
#[napi(object)]
pub struct AsOf {
    /// The state that held at this time, RFC 3339.
    pub valid_time: Option<String>,
    /// The state that the store knew at this time, RFC 3339.
    pub tx_time: Option<String>,
    /// The state that the store knew after this transaction.
    pub tx_id: Option<f64>,
}

/// The objects that a query returns. Absent fields do not restrict it.
#[napi(object)]
pub struct QueryFilter {
    /// Only objects of this type.
    #[napi(ts_type = "ObjectType")]
    pub r#type: Option<String>,
    /// Only objects of this session: its infrastructure and the objects in its index.
    pub session_id: Option<String>,
    /// Only files at or below this path, as the agent writes it.
    pub path_prefix: Option<String>,
    /// Only objects that changed at this time or later, RFC 3339.
    pub since: Option<String>,
}

/// Restricts a search.
#[napi(object)]
pub struct SearchOptions {
    /// At most this many hits, and at most 1,000. Default 20.
    pub limit: Option<f64>,
    /// Only objects of this type.
    #[napi(ts_type = "ObjectType")]
    pub r#type: Option<String>,
    /// Only files and tool calls in the index of this session. Default: the whole store.
    pub session_id: Option<String>,
}

/// One hit of a search.
#[napi(object)]
pub struct SearchHit {
    /// The object's ID.
    pub id: String,
    /// The object's short name in this session; absent if the session has not encountered it.
    pub handle: Option<String>,
    /// The object's type.
    #[napi(ts_type = "ObjectType")]
    pub r#type: String,
    /// A file's path as the agent sees it.
    pub path: Option<String>,
    /// The tool of a tool call.
    pub tool: Option<String>,
    /// The newest version with this content.
    pub tx_id: i64,
    /// True if that is the object's latest version.
    pub is_latest: bool,
    /// The first line that matches, counted from 1; 0 where the text is damaged, as `snippet` says then.
    pub line: u32,
    /// The text of that line, shortened around the match.
    pub snippet: String,
    /// Higher is better; comparable within one answer only.
    pub score: f64,
    /// The whole hit as a line for the model; it starts with the name to activate.
    pub shown: String,
}

/// Figures of a session.
#[napi(object)]
pub struct Stats {
    /// Estimated tokens of the next request (characters / 4).
    pub context_tokens: i64,
    /// Estimated tokens of the active set's contents.
    pub active_tokens: i64,
    /// Content objects in the session index.
    pub objects: u32,
    /// Rolls that this process has executed.
    pub rolls: u32,
}

/// Something that happened to a tracked file outside the agent's own calls.
#[napi(object)]
pub struct WatchEvent {
    /// The object's ID; empty for a warning.
    pub id: String,
    /// The path as the agent sees it; the text of a warning.
    pub path: String,
    /// The kind of event.
    #[napi(ts_type = "'created' | 'updated' | 'unchanged' | 'deleted' | 'orphaned' | 'warning' | 'touched'")]
    pub action: String,
}

/// The number of turns of a chat.
#[napi(object)]
pub struct TurnCount {
    /// Turns, including the current one.
    pub turn_count: u32,
}

/// Bytes or text, as JavaScript hands them over.
pub(crate) type Content = Either<String, Uint8Array>;
