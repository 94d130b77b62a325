//! File systems that are mounted over watched directories, and unmounted: the covered directories' watches tell nothing of it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use camino::Utf8PathBuf;

/// The system's table. Polling it tells of changes, without a timer.
const TABLE: &str = "/proc/self/mountinfo";

/// The mounts that this process sees.
pub(super) struct MountTable {
    file: File,
    known: BTreeSet<Mount>,
}

/// One mount: the system's number of it, its device and root, and its place.
type Mount = (String, Utf8PathBuf);

impl MountTable {
    /// Fails where the system shows no table.
    pub fn open() -> io::Result<Self> {
        let file = File::open(TABLE)?;
        Ok(Self { file, known: table()? })
    }

    /// Places where file systems were mounted or unmounted since the last call.
    pub fn changed(&mut self) -> io::Result<BTreeSet<Utf8PathBuf>> {
        let now = table()?;
        let changed = self.known.symmetric_difference(&now).map(|(_, place)| place.clone()).collect();
        self.known = now;
        Ok(changed)
    }
}

impl AsFd for MountTable {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
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
