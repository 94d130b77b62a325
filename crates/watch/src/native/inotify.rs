//! Linux's inotify by its system calls. The thread that asks for a watch sets it: the `notify` crate sets it through the
//! thread that reads the events, and those two wake-ups are the largest cost of a directory. This module also hears nothing
//! of files that are opened and read, while all the crate's watchers do.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::mounts::MountTable;
use super::{Native, WatchRefusal, refusal};
use crate::inbox::{Cause, Urgency};
use crate::listen::Listener;

/// The watcher of this operating system.
pub(crate) struct Watcher {
    shared: Arc<InotifyShared>,
    watches: HashMap<Utf8PathBuf, i32>,
    /// Ends when the thread has let go of the listener.
    ended: Receiver<()>,
}

struct InotifyShared {
    inotify: OwnedFd,
    /// Readable once the thread is to end.
    stop: OwnedFd,
    /// The paths behind the system's numbers.
    paths: Mutex<HashMap<i32, Utf8PathBuf>>,
}

/// The events requested for a directory and its entries.
const EVENTS: WatchFlags = WatchFlags::ATTRIB
    .union(WatchFlags::CREATE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);

/// Bytes of events that are read at once; one takes at most 272.
const BUFFER: usize = 16 * 1024;

/// Between two attempts while events can't be read.
const PAUSE: Duration = Duration::from_secs(1);

impl Watcher {
    /// # Errors
    /// Why there can't be one, as the operating system says it.
    pub fn open(listener: Arc<Listener>) -> Result<Self, String> {
        let reason = |error: Errno| io::Error::from(error).to_string();
        let shared = Arc::new(InotifyShared {
            inotify: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(reason)?,
            stop: eventfd(0, EventfdFlags::CLOEXEC).map_err(reason)?,
            paths: Mutex::default(),
        });
        let (held, ended) = channel();
        let reading = Arc::clone(&shared);
        // Read before the first watch: later mounts are reported.
        let mounts =
            MountTable::open().inspect_err(|error| tracing::debug!(%error, "mounts are not noticed")).ok();
        thread::Builder::new()
            .name("context-events".to_owned())
            .spawn(move || reading.read(&listener, mounts, held))
            .map_err(|error| error.to_string())?;
        Ok(Self { shared, watches: HashMap::new(), ended })
    }
}

impl Native for Watcher {
    fn watch(&mut self, path: &Utf8Path) -> Result<(), WatchRefusal> {
        // Held until the number is known, so that none of its events is read before that.
        let mut paths = self.shared.paths();
        let number =
            inotify::add_watch(&self.shared.inotify, path.as_std_path(), EVENTS | WatchFlags::ONLYDIR)
                .map_err(|error| refusal(&error.into()))?;
        paths.insert(number, path.to_owned());
        self.watches.insert(path.to_owned(), number);
        Ok(())
    }

    fn unwatch(&mut self, path: &Utf8Path) {
        let Some(number) = self.watches.remove(path) else { return };
        let mut paths = self.shared.paths();
        // The system has one number for a directory, whatever the path to it.
        if paths.get(&number).is_some_and(|by| by == path) {
            paths.remove(&number);
            // Fails if the directory is gone, because the system has already ended its watch.
            let _ = inotify::remove_watch(&self.shared.inotify, number);
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // An event's counter takes eight bytes; only a full one would refuse them.
        let _ = rustix::io::write(&self.shared.stop, &1_u64.to_ne_bytes());
        // The thread ends at once unless the machine is overloaded; the process need not wait for it then.
        let _ = self.ended.recv_timeout(Duration::from_secs(5));
    }
}

impl InotifyShared {
    fn paths(&self) -> MutexGuard<'_, HashMap<i32, Utf8PathBuf>> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread's life. `_held` is dropped at its end.
    fn read(&self, listener: &Listener, mut mounts: Option<MountTable>, _held: Sender<()>) {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(self.inotify.as_fd(), &mut buffer);
        let mut moved = None;
        loop {
            match reader.next() {
                Ok(event) => self.hear(listener, &event, &mut moved),
                Err(Errno::AGAIN) => {
                    let mut ends = vec![
                        PollFd::new(&self.inotify, PollFlags::IN),
                        PollFd::new(&self.stop, PollFlags::IN),
                    ];
                    ends.extend(mounts.iter().map(|mounts| PollFd::new(mounts, PollFlags::PRI)));
                    let polled = poll(&mut ends, None);
                    let heard: Vec<_> = ends.iter().map(PollFd::revents).collect();
                    match polled {
                        Ok(_) if !heard[1].is_empty() => return,
                        Ok(_) | Err(Errno::INTR) => {}
                        Err(error) => lost(listener, error),
                    }
                    if heard.get(2).is_some_and(|heard| !heard.is_empty())
                        && let Some(mounts) = &mut mounts
                    {
                        hear_mounts(listener, mounts);
                    }
                }
                Err(Errno::INTR) => {}
                Err(error) => lost(listener, error),
            }
        }
    }

    /// Tells the listener what an event means. `moved` is the last name that left, and the number of its move.
    fn hear(&self, listener: &Listener, event: &inotify::Event<'_>, moved: &mut Option<(u32, Utf8PathBuf)>) {
        let what = event.events();
        if what.contains(ReadFlags::QUEUE_OVERFLOW) {
            return listener.inbox.overflowed();
        }
        let Some(directory) = self.paths().get(&event.wd()).cloned() else { return };
        let path = match event.file_name() {
            None => directory,
            // A name that is not UTF-8 can't be a tracked path.
            Some(name) => match Utf8Path::from_path(Path::new(OsStr::from_bytes(name.to_bytes()))) {
                Some(name) => directory.join(name),
                None => return,
            },
        };
        if what.contains(ReadFlags::IGNORED) {
            self.paths().remove(&event.wd());
        }
        if let Some((urgency, cause)) = weigh(what) {
            listener.hear(&path, urgency, cause);
        }
        if what.contains(ReadFlags::MOVED_FROM) {
            *moved = Some((event.cookie(), path));
        } else if what.contains(ReadFlags::MOVED_TO)
            && let Some((_, from)) = moved.take().filter(|(cookie, _)| *cookie == event.cookie())
        {
            listener.hear_rename(&from, &path);
        }
    }
}

/// Urgency of a tracked path of such an event, and what it says about a directory of the plan.
fn weigh(what: ReadFlags) -> Option<(Urgency, Option<Cause>)> {
    const ENDS: ReadFlags = ReadFlags::DELETE
        .union(ReadFlags::DELETE_SELF)
        .union(ReadFlags::MOVED_FROM)
        .union(ReadFlags::MOVE_SELF)
        .union(ReadFlags::UNMOUNT);
    Some(if what.intersects(ENDS) {
        (Urgency::Settle, Some(Cause::Lost))
    } else if what.contains(ReadFlags::MOVED_TO) {
        (Urgency::Now, Some(Cause::Touched))
    } else if what.intersects(ReadFlags::CREATE | ReadFlags::ATTRIB) {
        (Urgency::Settle, Some(Cause::Touched))
    } else if what.contains(ReadFlags::CLOSE_WRITE) {
        (Urgency::Now, None)
    } else if what.contains(ReadFlags::MODIFY) {
        (Urgency::Settle, None)
    } else {
        return None;
    })
}

/// The directories watched at the place of a mount, and below it, are other directories now.
fn hear_mounts(listener: &Listener, mounts: &mut MountTable) {
    match mounts.changed() {
        Ok(places) => {
            places.iter().for_each(|place| listener.hear(place, Urgency::Now, Some(Cause::Lost)));
        }
        Err(error) => {
            tracing::warn!(%error, "the table of mounts can't be read");
            listener.inbox.overflowed();
        }
    }
}

/// The system could not tell its events: whatever they were, a rescan finds it.
fn lost(listener: &Listener, error: Errno) {
    tracing::warn!(%error, "file events may be lost");
    listener.inbox.overflowed();
    thread::sleep(PAUSE);
}
