//! File systems that are mounted over watched directories, and unmounted: the covered directories' watches tell nothing of it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use camino::Utf8PathBuf;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;

use crate::inbox::{Cause, Urgency};
use crate::listen::Listener;

/// The system's table. Polling it tells of changes, without a timer.
const TABLE: &str = "/proc/self/mountinfo";

/// A thread that tells a listener of the places of mounts, until it is dropped.
pub(super) struct MountWatch {
    /// Readable once the thread is to end.
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl MountWatch {
    /// Reports what is mounted or unmounted after this returns. `None` where the system shows no table.
    pub(super) fn start(listener: Arc<Listener>) -> Option<Self> {
        let opened = || -> io::Result<Self> {
            let table = MountTable::open()?;
            let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
            let stopped = Arc::clone(&stop);
            let thread = thread::Builder::new()
                .name("context-mounts".to_owned())
                .spawn(move || report(table, &stopped, &listener))?;
            Ok(Self { stop, thread: Some(thread) })
        };
        opened().inspect_err(|error| tracing::debug!(%error, "mounts are not noticed")).ok()
    }
}

impl Drop for MountWatch {
    fn drop(&mut self) {
        // An event's counter takes eight bytes; only a full one would refuse them.
        let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        // It waits for nothing but the table and this.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The directories watched at the place of a mount, and below it, are other directories afterwards.
fn report(mut table: MountTable, stop: &OwnedFd, listener: &Listener) {
    loop {
        let mut ends = [PollFd::new(stop, PollFlags::IN), PollFd::new(&table.file, PollFlags::PRI)];
        let polled = poll(&mut ends, None);
        let [stopped, changed] = ends.map(|end| !end.revents().is_empty());
        match polled {
            Err(Errno::INTR) => continue,
            Err(error) => {
                tracing::warn!(%error, "mounts are no longer noticed");
                return listener.inbox.overflowed();
            }
            Ok(_) if stopped => return,
            Ok(_) if !changed => continue,
            Ok(_) => {}
        }
        match table.changed() {
            Ok(places) => {
                places.iter().for_each(|place| listener.hear(place, Urgency::Now, Some(Cause::Lost)));
            }
            Err(error) => {
                tracing::warn!(%error, "the table of mounts can't be read");
                listener.inbox.overflowed();
            }
        }
    }
}

/// The mounts that this process sees.
struct MountTable {
    file: File,
    known: BTreeSet<Mount>,
}

/// One mount: the system's number of it, its device and root, and its place.
type Mount = (String, Utf8PathBuf);

impl MountTable {
    /// Fails where the system shows no table.
    fn open() -> io::Result<Self> {
        let file = File::open(TABLE)?;
        Ok(Self { file, known: table()? })
    }

    /// Places where file systems were mounted or unmounted since the last call.
    fn changed(&mut self) -> io::Result<BTreeSet<Utf8PathBuf>> {
        let now = table()?;
        let changed = self.known.symmetric_difference(&now).map(|(_, place)| place.clone()).collect();
        self.known = now;
        Ok(changed)
    }
}

fn table() -> io::Result<BTreeSet<Mount>> {
    let bytes = std::fs::read(TABLE)?;
    Ok(bytes.split(|byte| *byte == b'\n').filter_map(mount).collect())
}

/// Reads a line: number, parent's number, device, root, place. A place that is not UTF-8 holds no tracked path.
fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let (number, _parent, device, root) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let place = String::from_utf8(plain(fields.next()?)).ok()?;
    let name = [number, device, root].map(String::from_utf8_lossy).join(" ");
    Some((name, place.into()))
}

/// Takes back what the table escapes: spaces, tabs, line breaks and backslashes as three octal digits.
fn plain(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, after @ ..] = rest {
        let digits = after.get(..3).filter(|digits| *first == b'\\' && digits.iter().all(u8::is_ascii_digit));
        let number = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        plain.push(number.unwrap_or(*first));
        rest = if number.is_some() { &after[3..] } else { after };
    }
    plain
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::usual(b"36 35 98:0 /mnt1 /mnt2 rw,noatime - ext3 /dev/root rw", Some("/mnt2"))]
    #[case::escaped(br"36 35 0:9 / /a\040b\011c\134d\012e rw", Some("/a b\tc\\d\ne"))]
    #[case::no_escape(br"36 35 0:9 / /a\9b\04 rw", Some(r"/a\9b\04"))]
    #[case::not_utf8(b"36 35 0:9 / /a\xff rw", None)]
    #[case::cut(b"36 35 0:9 /", None)]
    #[case::empty(b"", None)]
    fn the_place_of_a_mount(#[case] line: &[u8], #[case] place: Option<&str>) {
        assert_eq!(mount(line).map(|(_, place)| place), place.map(Utf8PathBuf::from));
    }
}
