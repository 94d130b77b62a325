//! The options for opening a session.

use std::sync::Arc;

use context_evidence::Sentences;
use context_model::collapse::Window;
use context_model::id::SessionId;
use context_model::mounts::MountMapping;
use context_projection::Stays;
use context_store::Store;
use context_watch::{Sink, Tracker, WatchError};

/// Text of larger files is not kept: 16 MiB.
pub const DEFAULT_MAX_TEXT_BYTES: u64 = 16 * 1024 * 1024;

/// The limit for the text that is kept of a file that was only named: 256 KiB. At most 0.7 % of the text files of three package
/// trees (npm, crates, C headers; 74,000 files) are larger, and they have up to a third of the bytes; logs, which people watch
/// with shell commands and never read, grow beyond it.
pub const DEFAULT_NAMED_TEXT_BYTES: u64 = 256 * 1024;

/// The pace at which versions of a file may fill the store while no client reads the file: 256 KiB a second.
pub const DEFAULT_PACE: u64 = 256 * 1024;

/// Starts a tracker that reports changes to this sink.
pub type TrackerStart = Arc<dyn Fn(Box<dyn Sink>) -> Result<Arc<dyn Tracker>, WatchError> + Send + Sync>;

/// Options with which a session is opened. The caller supplies paths and identities: the library reads no environment.
#[derive(Clone)]
pub struct Options {
    /// The session, as the harness names it.
    pub session_id: SessionId,
    /// True if the host knows that nothing was recorded of this session anywhere. Then it also starts if the store can't look it
    /// up.
    pub is_new: bool,
    /// The agent's working directory, absolute, as the agent sees it.
    pub cwd: String,
    /// True if `cwd` is a guess: then it isn't recorded as the folder that the session works in.
    pub guesses_cwd: bool,
    /// The agent's home directory, for paths that begin with `~`.
    pub home: Option<String>,
    /// The store that holds the objects.
    pub store: Arc<dyn Store>,
    /// The system prompt to record; `None` leaves the recorded one.
    pub system_prompt: Option<String>,
    /// The filesystem namespace of paths that no mount covers. Without mounts the default is the machine's.
    pub filesystem_id: Option<String>,
    /// Rules that translate the agent's paths to paths that the client can read.
    pub mounts: Vec<MountMapping>,
    /// The auto-collapse window.
    pub window: Window,
    /// The time for which reasoning, calls and prose stay in sight.
    pub stays: Stays,
    /// True if trackers run.
    pub watch: bool,
    /// The tracker to use instead of [`context_watch::NotifyTracker`], for clients that learn about changes in another
    /// way.
    pub tracker: Option<TrackerStart>,
    /// The pace, in bytes a second, at which versions of a file are taken while no client reads the file. After a version, the
    /// next one waits for as long as the file's bytes take at this pace, and twice as long each time, up to a minute. 0 takes
    /// every version (design change: the design has a version for each event).
    pub pace: u64,
    /// True if unmapped paths are the client's own filesystem. Default: only without mounts.
    pub watch_unmapped: Option<bool>,
    /// Tell filesystems apart by device number where no mount covers them (an optional fallback).
    pub detect_devices: bool,
    /// Take secrets of known shapes out of what is recorded, before it is stored.
    pub redact: bool,
    /// Text of files above this many bytes is not kept.
    pub max_text_bytes: u64,
    /// The limit for the text of a file that only shell commands named: a longer text, in bytes, waits until a client reads the
    /// file (design change).
    pub named_text_bytes: u64,
    /// A file that holds the machine's identity, normally `/etc/machine-id`.
    pub machine_id_file: String,
    /// The sentences that tell the model about files.
    pub sentences: Sentences,
}

impl Options {
    /// The defaults for a session in a working directory on a store.
    #[must_use]
    pub fn new(session_id: SessionId, cwd: impl Into<String>, store: Arc<dyn Store>) -> Self {
        Self {
            session_id,
            is_new: false,
            cwd: cwd.into(),
            guesses_cwd: false,
            home: None,
            store,
            system_prompt: None,
            filesystem_id: None,
            mounts: Vec::new(),
            window: Window::default(),
            stays: Stays::default(),
            watch: true,
            tracker: None,
            pace: DEFAULT_PACE,
            watch_unmapped: None,
            detect_devices: false,
            redact: false,
            max_text_bytes: DEFAULT_MAX_TEXT_BYTES,
            named_text_bytes: DEFAULT_NAMED_TEXT_BYTES,
            machine_id_file: context_platform::MACHINE_ID_FILE.into(),
            sentences: Sentences::default(),
        }
    }
}
