//! The border to the operating system's file events, by way of the `notify` crate.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use camino::Utf8Path;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};

use crate::listen::Listener;

/// Watches directories, each by itself and not what is below.
pub(crate) trait Native: Send {
    /// Starts to watch a directory. What happens after this returns is heard.
    fn watch(&mut self, path: &Utf8Path) -> Result<(), Refusal>;
    /// Ends it. A directory that is not watched, or no longer exists, is no error.
    fn unwatch(&mut self, path: &Utf8Path);
}

/// Why a directory can't be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A limit on watches is reached.
    Limit,
    /// It is not there any more, or not a directory.
    Gone,
    /// It may not be listed.
    Denied,
    /// Anything else, as the operating system says it.
    Other(String),
}

/// `notify`'s watcher for this operating system.
pub(crate) struct Notify {
    watcher: Option<RecommendedWatcher>,
    /// Ends when `notify`'s thread has let go of the listener.
    ended: Receiver<()>,
}

impl Notify {
    pub fn open(listener: Arc<Listener>) -> Result<Self, String> {
        let (held, ended) = channel();
        let handler = Handler { listener, _held: held };
        // A link to a large tree must never be walked.
        let config = notify::Config::default().with_follow_symlinks(false);
        match RecommendedWatcher::new(handler, config) {
            Ok(watcher) => Ok(Self { watcher: Some(watcher), ended }),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Native for Notify {
    fn watch(&mut self, path: &Utf8Path) -> Result<(), Refusal> {
        let Some(watcher) = &mut self.watcher else { return Err(Refusal::Gone) };
        watcher.watch(path.as_std_path(), RecursiveMode::NonRecursive).map_err(refusal)
    }

    fn unwatch(&mut self, path: &Utf8Path) {
        if let Some(watcher) = &mut self.watcher {
            // It fails for a directory that is gone, whose watch the system has ended by itself.
            let _ = watcher.unwatch(path.as_std_path());
        }
    }
}

impl Drop for Notify {
    fn drop(&mut self) {
        self.watcher = None;
        // The thread ends at once unless the machine is overloaded; the process need not wait for it then.
        let _ = self.ended.recv_timeout(Duration::from_secs(5));
    }
}

struct Handler {
    listener: Arc<Listener>,
    _held: Sender<()>,
}

impl notify::EventHandler for Handler {
    fn handle_event(&mut self, event: notify::Result<notify::Event>) {
        self.listener.hear(event);
    }
}

fn refusal(error: notify::Error) -> Refusal {
    match &error.kind {
        notify::ErrorKind::MaxFilesWatch => Refusal::Limit,
        notify::ErrorKind::PathNotFound | notify::ErrorKind::WatchNotFound => Refusal::Gone,
        notify::ErrorKind::Io(io) => match io.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Refusal::Limit,
            ErrorKind::NotFound | ErrorKind::NotADirectory => Refusal::Gone,
            ErrorKind::PermissionDenied => Refusal::Denied,
            _ => Refusal::Other(io.to_string()),
        },
        _ => Refusal::Other(error.to_string()),
    }
}
