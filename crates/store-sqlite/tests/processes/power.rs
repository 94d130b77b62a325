//! Loss of power: a separate file system is shut down without writing anything that was not synced.

use std::path::{Path, PathBuf};

use super::worker::{self, SETTLED, Said, Worker, acknowledged};
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

/// The work in progress when the power is cut.
#[derive(Clone, Copy)]
enum During {
    /// Nothing: the worker was stopped before, wherever it was. All its acknowledged writes were synced.
    Standstill,
    /// Its work. The sync that the cut falls into may succeed by mistake: on a file system that is being shut down
    /// Linux lets some `fsync` return 0 without having written the journal (a bare program that writes and syncs sees
    /// it in one of four cuts). So the newest acknowledgement alone proves nothing here.
    Work,
}

/// Cuts the power after some acknowledgements, and gives the newest one that counts.
fn cut_the_power(disk: &Disk, path: &Path, name: &str, acks: usize, during: During) -> Option<usize> {
    let mut worker = Worker::start(worker::command(path, name, 1_000_000));
    let mut said = Vec::new();
    while said.len() < acks {
        let next = worker.next();
        assert!(matches!(next, Some(Said::Ack(_))), "{next:?} after {said:?}");
        said.extend(next);
    }
    let sure = acknowledged(&said);
    if let During::Standstill = during {
        worker.stop();
    }
    if !disk.cut() {
        worker.kill();
        return None;
    }
    said.extend(worker.kill());
    let newest = acknowledged(&said);
    Some(match during {
        During::Standstill => newest,
        During::Work => sure.max(newest.saturating_sub(1)),
    })
}

#[test]
fn power_is_lost() {
    let Some(mut disk) = Disk::make() else { return not_run("power loss", "mkfs.ext4 is missing") };
    let runs = sized(4, 16, 100);
    let mut done = [0, 0];
    for run in 0..runs {
        if !disk.mount() {
            return not_run("power loss", "a loop device can't be mounted here");
        }
        let path = disk.path().join("store.db");
        // Every third time it goes again while the store recovers.
        let acks = if run % 3 == 2 { 0 } else { 1 + run * 7 % 17 };
        let name = ["w", SETTLED][run % 2];
        let during = [During::Standstill, During::Work][run / 2 % 2];
        let Some(newest) = cut_the_power(&disk, &path, name, acks, during) else {
            return not_run("power loss", "the file system can't be shut down here");
        };
        disk.unmount();
        assert!(disk.mount());
        done[run % 2] = check(&path, name, newest.max(done[run % 2]));
        disk.unmount();
    }
    eprintln!("power lost {runs} times: {done:?} transactions, none lost");
}
