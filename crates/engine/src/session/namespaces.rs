//! The filesystem namespaces of a client's own files.

use camino::Utf8Path;
use context_model::hash::Digest;
use context_model::source::FilesystemSource;

/// The namespaces of the files on a client's own disks: one for the client, and one for each device other than that of `/`
/// where devices are told apart. Those are derived from client and device, so that two clients on one machine agree.
#[derive(Clone, Debug)]
pub(crate) struct Namespaces {
    client: String,
    /// The device of `/`, if filesystems are told apart by device number.
    root_device: Option<u64>,
}

impl Namespaces {
    /// Takes the namespace of the client's files on the device of `/`.
    pub(crate) fn new(client: String, detect_devices: bool) -> Self {
        Self { client, root_device: if detect_devices { device(Utf8Path::new("/")) } else { None } }
    }

    /// The namespace of a path on the client's own disks.
    pub(crate) fn at(&self, real: &Utf8Path) -> String {
        let Self { client, root_device } = self;
        match (root_device, real.ancestors().find_map(device)) {
            (Some(root), Some(device)) if device != *root => {
                Digest::of(format!("{client}:{device}").as_bytes()).to_string()
            }
            _ => client.clone(),
        }
    }

    /// True if a binding is of a file on the client's own disks.
    pub(crate) fn has(&self, source: &FilesystemSource) -> bool {
        source.filesystem_id == self.client
            || (self.root_device.is_some() && source.filesystem_id == self.at(Utf8Path::new(&source.path)))
    }
}

fn device(path: &Utf8Path) -> Option<u64> {
    context_platform::device(path.as_std_path())
}
