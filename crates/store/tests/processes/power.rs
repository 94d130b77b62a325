//! Loss of power: a file system of its own is shut down without writing anything that was not synced.

use std::path::{Path, PathBuf};

use super::worker::{self, Said, Worker, acknowledged};
use super::{check, not_run, sized, works};

/// An ext4 file system in a file, on a loop device.
struct Disk {
    place: tempfile::TempDir,
    mounted: bool,
}

impl Disk {
    fn make() -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let disk = Self { place, mounted: false };
        std::fs::File::create(disk.image()).unwrap().set_len(128 << 20).unwrap();
        std::fs::create_dir(disk.path()).unwrap();
        works("mkfs.ext4", &["-q", "-F", disk.image().to_str()?]).then_some(disk)
    }

    fn image(&self) -> PathBuf {
        self.place.path().join("image")
    }

    fn path(&self) -> PathBuf {
        self.place.path().join("mounted")
    }

    fn mount(&mut self) -> bool {
        let (image, path) = (self.image(), self.path());
        self.mounted = works("mount", &["-o", "loop", image.to_str().unwrap(), path.to_str().unwrap()]);
        self.mounted
    }

    /// Cuts the power: FS_IOC_SHUTDOWN with NOLOGFLUSH.
    fn cut(&self) -> bool {
        let script = "import fcntl, os, struct, sys; \
                      fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587d, struct.pack('I', 2))";
        works("python3", &["-c", script, self.path().to_str().unwrap()])
    }

    fn unmount(&mut self) {
        // A child of another test has files open that are not its own between its fork and its exec.
        let unmounted = (0..1_000).any(|_| works("umount", &[self.path().to_str().unwrap()]));
        assert!(unmounted, "{} is still in use", self.path().display());
        self.mounted = false;
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.mounted {
            works("umount", &["-l", self.path().to_str().unwrap()]);
        }
    }
}

/// Cuts the power after some acknowledgements, and gives the newest one.
fn cut_while_writing(disk: &Disk, path: &Path, acks: usize) -> Option<usize> {
    let mut worker = Worker::start(worker::command(path, "w", 1_000_000));
    let mut said = Vec::new();
    while said.len() < acks {
        said.push(worker.next()?);
        assert!(matches!(said.last(), Some(Said::Ack(_))), "{said:?}");
    }
    if !disk.cut() {
        worker.kill();
        return None;
    }
    // What it acknowledges while the power goes was synced before.
    said.extend(worker.kill());
    Some(acknowledged(&said))
}

#[test]
fn power_is_lost() {
    let Some(mut disk) = Disk::make() else { return not_run("power loss", "there is no mkfs.ext4") };
    let runs = sized(3, 15, 100);
    let mut done = 0;
    for run in 0..runs {
        if !disk.mount() {
            return not_run("power loss", "a loop device can't be mounted here");
        }
        let path = disk.path().join("store.db");
        // Every third time it goes again while the store recovers.
        let acks = if run % 3 == 2 { 0 } else { 1 + run * 7 % 17 };
        let Some(newest) = cut_while_writing(&disk, &path, acks) else {
            return not_run("power loss", "the file system can't be shut down here");
        };
        disk.unmount();
        assert!(disk.mount());
        done = check(&path, "w", newest.max(done));
        disk.unmount();
    }
    eprintln!("power lost {runs} times: {done} transactions, none lost");
}
