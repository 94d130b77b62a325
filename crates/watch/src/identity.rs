//! The directory that a path leads to, so that one removed and made again does not count as the same.

use std::fs::Metadata;
use std::time::UNIX_EPOCH;

use camino::Utf8Path;

/// The values that tell one directory from another at the same path: device, inode number and time of birth. File
/// systems reuse inode numbers at once, so the number alone would not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    born: u128,
}

impl Identity {
    /// An identity of device number, inode number and time of birth in nanoseconds since 1970 (0: unknown).
    #[must_use]
    pub(crate) const fn from_parts(device: u64, inode: u64, born: u128) -> Self {
        Self { device, inode, born }
    }
}

/// A directory as found on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Directory {
    pub identity: Identity,
    /// Written to by everyone (sticky and writable by all, as /tmp) or the root: too busy to watch without
    /// need.
    pub shared: bool,
}

/// The directory at `path`, if there is one whose entries can be reached by name. A symbolic link is followed: it counts as
/// the directory that reading `path/name` would reach; a cycle does not count as a directory.
pub(crate) fn directory(path: &Utf8Path) -> Option<Directory> {
    // The dot makes the system check that `path` may be entered, in the same call.
    let metadata = std::fs::metadata(path.join(".")).ok()?;
    let shared = path.parent().is_none() || open_to_all(&metadata);
    metadata.is_dir().then(|| Directory { identity: identity(path, &metadata), shared })
}

/// The identity of what [`directory`] finds.
pub(crate) fn of(path: &Utf8Path) -> Option<Identity> {
    directory(path).map(|directory| directory.identity)
}

fn born(metadata: &Metadata) -> u128 {
    metadata.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok()).map_or(0, |age| age.as_nanos())
}

#[cfg(unix)]
fn identity(_: &Utf8Path, metadata: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    Identity::from_parts(metadata.dev(), metadata.ino(), born(metadata))
}

#[cfg(not(unix))]
fn identity(path: &Utf8Path, metadata: &Metadata) -> Identity {
    // Windows gives a directory that is made again under a name within seconds the time of birth of the former one.
    let (device, number) = context_platform::identity(path.as_std_path()).unwrap_or_default();
    Identity::from_parts(device, number, born(metadata))
}

#[cfg(unix)]
fn open_to_all(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.mode() & 0o1002 == 0o1002
}

#[cfg(not(unix))]
fn open_to_all(_: &Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_a_reachable_directory_has_an_identity() {
        let root = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(root.path()).unwrap();
        fs::write(root.join("file"), "").unwrap();
        assert!(of(root).is_some() && of(root) == of(root));
        assert_eq!(of(&root.join("file")), None);
        assert_eq!(of(&root.join("missing")), None);
    }

    #[test]
    fn the_time_of_birth_tells_where_the_inode_number_does_not() {
        let (old, young) = (Identity::from_parts(1, 2, 3), Identity::from_parts(1, 2, 4));
        assert_ne!(old, young);
        let root = tempfile::tempdir().unwrap();
        let metadata = fs::metadata(root.path()).unwrap();
        // Some file systems keep no time of birth; the events alone tell there.
        if let Ok(created) = metadata.created() {
            let born = created.duration_since(UNIX_EPOCH).unwrap().as_nanos();
            let root = Utf8Path::from_path(root.path()).unwrap();
            assert_eq!(identity(root, &metadata).born, born);
        }
    }

    #[test]
    #[cfg(unix)]
    fn the_root_and_a_directory_of_everyone_are_shared() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(root.path()).unwrap();
        for (mode, shared) in [(0o1777, true), (0o700, false), (0o777, false), (0o1700, false)] {
            fs::set_permissions(root, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(directory(root).unwrap().shared, shared, "{mode:o}");
        }
        assert!(directory(Utf8Path::new("/")).unwrap().shared);
    }
}
