//! The files that exports are written to and read from.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use super::{Result, TransferError};

/// Opens an export for reading.
///
/// # Errors
/// `IO` if there is no file, it can't be read, or it is not a regular file (opening a pipe would block).
pub fn open(path: &Path) -> Result<BufReader<File>> {
    let refuse = |what: std::fs::Metadata| if what.is_file() { Ok(()) } else { Err(no_file(path)) };
    // Checked before opening, because opening alone can block or have effects, and again afterwards, because another file
    // may be there by then.
    refuse(fs::metadata(path)?)?;
    let file = File::open(path)?;
    refuse(file.metadata()?)?;
    Ok(BufReader::with_capacity(64 << 10, file))
}

/// The file that an export is written to. It is created under a new name, private to its owner, and renamed when it is
/// complete. So an export never writes through a link, and an interrupted one replaces nothing. The new name is
/// `.NAME.PROCESS-RANDOM.part`, so that the file of a killed process can be found and removed.
pub struct Target {
    path: PathBuf,
    beside: PathBuf,
    /// `None` once it has been renamed.
    file: Option<File>,
}

impl Target {
    /// Creates the file under its new name, with mode 0600. `kept` are files that it must not replace: those of the store
    /// that is exported.
    ///
    /// # Errors
    /// `IO` if anything but a regular file is at the path (a folder, a link, a device), or one of `kept`, or the folder is not
    /// writable.
    pub fn create(path: &Path, kept: &[PathBuf]) -> Result<Self> {
        refuse(path)?;
        if kept.iter().any(|own| is_same(path, own)) {
            return Err(TransferError::Io(format!(
                "{} belongs to the store that is exported; name another file",
                path.display()
            )));
        }
        let name = path.file_name().ok_or_else(|| no_file(path))?.to_string_lossy();
        // Cut, because file names have a maximum length.
        let name = &name[..name.floor_char_boundary(100)];
        let random = RandomState::new().build_hasher().finish();
        let beside = path.with_file_name(format!(".{name}.{}-{random:016x}.part", std::process::id()));
        match context_platform::private_file(OpenOptions::new().write(true).create_new(true), &beside) {
            Ok(file) => Ok(Self { path: path.to_owned(), beside, file: Some(file) }),
            Err(error) => {
                // The file may exist already even though it can't be made private.
                if error.kind() != std::io::ErrorKind::AlreadyExists {
                    let _ = fs::remove_file(&beside);
                }
                Err(error.into())
            }
        }
    }

    /// Renames the file to its final name, durably.
    ///
    /// # Errors
    /// `IO`, also if something else has been put at the path in the meantime.
    pub fn finish(mut self) -> Result<()> {
        if let Some(file) = &self.file {
            file.sync_all()?;
        }
        refuse(&self.path)?;
        fs::rename(&self.beside, &self.path)?;
        self.file = None;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        // Not every file system can sync a folder.
        let _ = context_platform::sync_directory(folder.unwrap_or(Path::new(".")));
        Ok(())
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // The rest is useless, and the error that matters has been reported.
            let _ = fs::remove_file(&self.beside);
        }
    }
}

/// An export may only replace a regular file, or nothing.
fn refuse(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => Err(no_file(path)),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// True if both are one file, under whatever names, or would be one.
fn is_same(one: &Path, other: &Path) -> bool {
    let known = context_platform::identity(one);
    if known.is_some() && known == context_platform::identity(other) {
        return true;
    }
    let folder = |path: &Path| fs::canonicalize(std::path::absolute(path).ok()?.parent()?).ok();
    one.file_name() == other.file_name() && folder(one).is_some_and(|own| Some(own) == folder(other))
}

fn no_file(path: &Path) -> TransferError {
    TransferError::Io(format!("{} is not a regular file", path.display()))
}

#[cfg(all(test, unix))]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn written(path: &Path, text: &str) -> Result<()> {
        let mut target = Target::create(path, &[])?;
        target.write_all(text.as_bytes())?;
        target.finish()
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn leaves_a_planted_file_alone() {
        let place = tempfile::tempdir().unwrap();
        let (file, secret) = (place.path().join("out"), place.path().join("secret"));
        fs::write(&secret, "secret").unwrap();
        symlink(&secret, place.path().join("out.part")).unwrap();
        written(&file, "one").unwrap();
        assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
        assert_eq!(fs::read_to_string(&file).unwrap(), "one");
        assert_eq!(mode(&file), 0o600);
        // A file that others may read becomes private.
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        written(&file, "two").unwrap();
        assert_eq!((fs::read_to_string(&file).unwrap(), mode(&file)), ("two".into(), 0o600));
        assert_eq!(names(place.path()), ["out", "out.part", "secret"]);
    }

    #[test]
    fn files_that_are_kept_are_not_replaced_under_any_name() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let kept = [at("store.db"), at("store.db-journal")];
        fs::write(&kept[0], "store").unwrap();
        fs::hard_link(&kept[0], at("other")).unwrap();
        let beside = place.path().join("..").join(place.path().file_name().unwrap());
        for path in [kept[0].clone(), kept[1].clone(), at("other"), beside.join("store.db")] {
            let error = Target::create(&path, &kept).err().unwrap();
            assert!(error.to_string().contains("belongs to the store"), "{error}");
        }
        assert_eq!(fs::read_to_string(&kept[0]).unwrap(), "store");
        assert_eq!(names(place.path()), ["other", "store.db"]);
        assert!(Target::create(&at("new"), &kept).is_ok());
    }

    #[test]
    fn neither_replaces_nor_reads_a_special_file() {
        let place = tempfile::tempdir().unwrap();
        let (fifo, link, target) =
            (place.path().join("fifo"), place.path().join("link"), place.path().join("target"));
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        fs::write(&target, "target").unwrap();
        symlink(&target, &link).unwrap();
        for path in [place.path(), &fifo, &link, Path::new("/dev/null"), Path::new("/dev/stdout")] {
            let error = written(path, "x").unwrap_err();
            assert!(error.to_string().contains("is not a regular file"), "{error}");
        }
        assert_eq!(fs::read_to_string(&target).unwrap(), "target");
        for path in [place.path(), &fifo, Path::new("/dev/zero")] {
            assert!(open(path).unwrap_err().to_string().contains("is not a regular file"));
        }
        assert!(open(&link).is_ok());
        // A file put in its place meanwhile is also left alone.
        let late = place.path().join("late");
        let mut begun = Target::create(&late, &[]).unwrap();
        begun.write_all(b"x").unwrap();
        symlink(&target, &late).unwrap();
        assert!(begun.finish().is_err());
        assert_eq!(names(place.path()), ["fifo", "late", "link", "target"]);
    }

    #[test]
    fn many_at_once_leave_one_whole_file() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("x".repeat(255));
        let texts: Vec<String> = (0..8).map(|n| n.to_string().repeat(100_000)).collect();
        std::thread::scope(|scope| {
            for text in &texts {
                scope.spawn(|| written(&file, text).unwrap());
            }
        });
        assert!(texts.contains(&fs::read_to_string(&file).unwrap()));
        assert_eq!(names(place.path()).len(), 1);
        // An abandoned export leaves nothing behind.
        drop(Target::create(&file, &[]).unwrap());
        assert_eq!(names(place.path()).len(), 1);
    }
}
