//! POSIX systems.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;

use rustix::fs::{Access, Mode, OFlags};
use rustix::io::Errno;

use crate::facts::{Facts, PathKind};

pub(crate) const LINK: i32 = Errno::LOOP.raw_os_error();
pub(crate) const SPECIAL: Option<i32> = Some(Errno::NXIO.raw_os_error());

/// Errors that say what is used up.
pub(crate) const SHORTAGES: [(i32, &str); 5] = [
    (
        Errno::MFILE.raw_os_error(),
        "this process has no file descriptors left; close files, sockets or sessions that are no longer needed, or raise the \
         limit (`ulimit -n`)",
    ),
    (
        Errno::NFILE.raw_os_error(),
        "this machine has no file descriptors left; end programs that hold many files, or raise the limit (on Linux: sysctl \
         fs.file-max)",
    ),
    (Errno::NOSPC.raw_os_error(), "no space is left on the disk; free some"),
    (Errno::DQUOT.raw_os_error(), "the user's share of the disk is used up; free some space"),
    (Errno::NOMEM.raw_os_error(), "no memory is left; end programs that are not needed"),
];

/// Opens something that is always there.
pub(crate) fn open_any() -> io::Result<File> {
    File::open("/")
}

pub(crate) fn refusal(path: &Path, is_written: bool) -> Option<io::Error> {
    let wanted = if is_written { Access::READ_OK | Access::WRITE_OK } else { Access::READ_OK };
    rustix::fs::access(path, wanted).err().map(io::Error::from)
}

pub(crate) fn facts_at(path: &Path) -> io::Result<Facts> {
    Ok(facts(&std::fs::symlink_metadata(path)?))
}

pub(crate) fn facts_of(file: &File) -> io::Result<Facts> {
    Ok(facts(&file.metadata()?))
}

fn facts(found: &Metadata) -> Facts {
    let kind = found.file_type();
    Facts {
        kind: match kind {
            _ if kind.is_file() => PathKind::File,
            _ if kind.is_dir() => PathKind::Directory,
            _ if kind.is_symlink() => PathKind::Link,
            _ if kind.is_fifo() => PathKind::Pipe,
            _ if kind.is_socket() => PathKind::Socket,
            _ => PathKind::Device,
        },
        device: found.dev(),
        number: found.ino(),
        size: found.len(),
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
    }
}

pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

pub(crate) fn device(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().map(|found| found.dev())
}

pub(crate) fn open_without_links(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, ResolveFlags, openat2};
        match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            // An old kernel, or a container's filter that does not know the call.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return Ok(File::from(opened?)),
        }
    }
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

pub(crate) fn private_file(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.mode(0o600).open(path)?;
    // A strict umask may have taken bits away that the owner needs.
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

pub(crate) fn private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o700))
}

pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

pub(crate) fn free_space(folder: &Path) -> Option<u64> {
    rustix::fs::statvfs(folder).ok().map(|found| found.f_bavail.saturating_mul(found.f_frsize))
}

pub(crate) fn machine_guid() -> Option<String> {
    None
}
