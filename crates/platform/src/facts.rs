//! The facts about a file without reading it.

/// The facts that the operating system knows of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its kind.
    pub kind: PathKind,
    /// The device, on Windows the volume's serial number.
    pub device: u64,
    /// The number of the file on its device: the inode, on Windows the file index.
    pub number: u64,
    /// In bytes.
    pub size: u64,
    /// When its bytes were last changed: seconds and nanoseconds since 1970.
    pub modified: (i64, i64),
    /// When its bytes or what is known of it were last changed. Ordinary programs can't set this time.
    pub changed: (i64, i64),
}

/// The kind of entry at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, on Windows a junction as well.
    Link,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// Anything else, such as a device.
    Device,
}

impl PathKind {
    /// Its name with an article.
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "a regular file",
            Self::Directory => "a directory",
            Self::Link => "a symbolic link",
            Self::Pipe => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
        }
    }
}

impl Facts {
    /// Returns numbers that tell the file from all others that exist at this moment.
    pub const fn identity(&self) -> (u64, u64) {
        (self.device, self.number)
    }
}
