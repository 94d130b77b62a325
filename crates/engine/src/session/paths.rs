//! From the agent's path to a source binding, and to a place on disk where there is one.

use camino::{Utf8Path, Utf8PathBuf};
use context_model::mounts::{MountMapping, Mounts};
use context_model::path;
use context_model::path::{normalise, share};
use context_model::source::FilesystemSource;

use super::error::{EngineError, Result};
use super::namespaces::Namespaces;

/// The longest path that is accepted, in bytes (Linux's PATH_MAX).
const MAX_PATH: usize = 4096;

/// The maximum number of symbolic links that one path may lead through.
const MAX_LINKS: usize = 40;

/// Resolves the agent's paths.
#[derive(Clone, Debug)]
pub struct Paths {
    cwd: String,
    home: Option<String>,
    mounts: Mounts,
    /// True if unmapped paths are on the client's own filesystem.
    shares_unmapped: bool,
    /// The namespaces of files outside the mounts.
    namespaces: Namespaces,
    /// The network shares that the working directory and the home are on, in lower case.
    shares: Vec<String>,
    /// The files of the store itself.
    own: Vec<Utf8PathBuf>,
}

/// The place that an agent's path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The agent's path, absolute.
    pub agent_path: String,
    /// The binding that gives the object its identity.
    pub source: FilesystemSource,
    /// The location where the client finds the file.
    pub disk: Disk,
}

/// The location where the client finds a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disk {
    /// At this path, which has no symbolic link left.
    At(Utf8PathBuf),
    /// Nowhere: the file is inside a sandbox. It is never read or watched.
    Inside,
    /// Nowhere: a link leads out of the mount, so following it could read a file of the host.
    Escapes,
    /// Nowhere: the links on the way lead to each other and never end.
    Endless,
    /// It is one of the store's own files. Reading it through this library would change it, in an endless loop.
    Own,
}

impl Paths {
    /// Takes the agent's working directory and home, and the rules for its paths. Canonical prefixes that lead through symbolic
    /// links are replaced by the real ones, so that a host agent finds the same objects.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the working directory or the home is not absolute, or a mapping has no meaning.
    pub fn new(
        cwd: &str,
        home: Option<String>,
        default_filesystem: String,
        mappings: &[MountMapping],
        shares_unmapped: bool,
        detect_devices: bool,
    ) -> Result<Self> {
        let must = |name: &str, path: &str| {
            absolute(path).ok_or_else(|| {
                EngineError::Invalid(format!(
                    "the {name} directory must be an absolute path, and {path:?} is none"
                ))
            })
        };
        let cwd = must("working", cwd)?;
        let home = home.map(|home| must("home", &home)).transpose()?;
        let real = |mapping: &MountMapping| -> Result<MountMapping> {
            let (Some(agent_prefix), Some(canonical_prefix)) =
                (absolute(&mapping.agent_prefix), absolute(&mapping.canonical_prefix))
            else {
                let (agent, canonical) = (&mapping.agent_prefix, &mapping.canonical_prefix);
                return Err(EngineError::Invalid(format!(
                    "the prefixes of a mount mapping must be absolute paths, and {agent:?} or {canonical:?} is none"
                )));
            };
            let canonical_prefix = real_path(&to_disk(&canonical_prefix)).into_string();
            Ok(MountMapping { agent_prefix, canonical_prefix, filesystem_id: mapping.filesystem_id.clone() })
        };
        let namespaces = Namespaces::new(default_filesystem.clone(), detect_devices);
        let mounts = Mounts::new(default_filesystem, mappings.iter().map(real).collect::<Result<Vec<_>>>()?)?;
        let shares = [Some(&cwd), home.as_ref()].into_iter().flatten().filter_map(|path| share(path));
        let shares = shares.map(str::to_lowercase).collect();
        Ok(Self { cwd, home, mounts, shares_unmapped, namespaces, shares, own: Vec::new() })
    }

    /// Names the files of the store, which are known by their paths and never read or watched.
    #[must_use]
    pub fn without(mut self, own: Vec<std::path::PathBuf>) -> Self {
        let own = own.into_iter().filter_map(|path| Utf8PathBuf::from_path_buf(path).ok());
        self.own = own.map(|path| real_path(&path)).collect();
        self
    }

    /// Resolves a path as the agent wrote it.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an empty or too long path, or one with a NUL.
    pub fn resolve(&self, raw: &str) -> Result<Place> {
        self.resolve_from(&self.cwd, raw)
    }

    /// The working directory, as the paths of files in it begin: on this machine, without links.
    pub fn working_folder(&self) -> String {
        self.resolve(&self.cwd).map_or_else(|_| self.cwd.clone(), |place| place.source.path)
    }

    /// As [`Paths::resolve`], relative to another directory of the agent.
    pub fn resolve_from(&self, base: &str, raw: &str) -> Result<Place> {
        if raw.is_empty() || raw.len() > MAX_PATH || raw.contains('\0') {
            return Err(EngineError::Invalid(format!("a path must have 1 to {MAX_PATH} bytes and no NUL")));
        }
        let base = normalise(&self.cwd, base);
        let agent_path = match (raw.strip_prefix('~'), &self.home) {
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
                normalise(home, rest.trim_start_matches('/'))
            }
            (Some(rest), Some(home)) if cfg!(windows) && rest.starts_with('\\') => {
                normalise(home, rest.trim_start_matches('\\'))
            }
            _ => normalise(&base, raw),
        };
        let resolved = self.mounts.resolve(&agent_path);
        let (source, disk) = match resolved.mount {
            Some(_) => self.follow_inside_mounts(&agent_path),
            // Even looking at a share sends the user's credentials to its server.
            None if self.shares_unmapped && self.is_elsewhere(&agent_path) => (resolved.source, Disk::Inside),
            None if self.shares_unmapped => {
                let real = real_path(&to_disk(&agent_path));
                let filesystem_id = self.namespaces.at(&real);
                (FilesystemSource { filesystem_id, path: from_disk(&real) }, Disk::At(real))
            }
            None => (resolved.source, Disk::Inside),
        };
        Ok(Place { agent_path, source, disk: self.not_own(disk) })
    }

    /// The place of a file that the client found itself, at its path on disk without links. `None` if the agent has
    /// no path for it.
    pub fn reached(&self, path: &Utf8Path) -> Option<Place> {
        let canonical = from_disk(path);
        if let Some(source) = self.mounts.reached(&canonical) {
            let agent_path = self.mounts.reverse(&source)?;
            return Some(Place { agent_path, source, disk: self.not_own(Disk::At(path.to_owned())) });
        }
        let place = self.resolve(&canonical).ok()?;
        (place.disk == Disk::At(path.to_owned())).then_some(place)
    }

    /// True if a directory on disk is, or is in, the working directory or a mapped one.
    pub fn is_in_session(&self, directory: &Utf8Path) -> bool {
        let mapped = self.mounts.canonical_prefixes().map(to_disk);
        let own = self.shares_unmapped.then(|| real_path(&to_disk(&self.cwd)));
        mapped.chain(own).any(|root| directory.starts_with(root))
    }

    fn not_own(&self, disk: Disk) -> Disk {
        match disk {
            Disk::At(path) if self.own.contains(&path) => Disk::Own,
            disk => disk,
        }
    }

    /// Returns the location of a known binding's file, for trackers and reconciliation.
    pub fn locate(&self, source: &FilesystemSource) -> Disk {
        self.not_own(match self.mounts.reverse(source) {
            Some(agent_path) => self.follow_inside_mounts(&agent_path).1,
            None if self.shares_unmapped
                && self.namespaces.has(source)
                && !self.is_elsewhere(&source.path) =>
            {
                Disk::At(to_disk(&source.path))
            }
            None => Disk::Inside,
        })
    }

    /// The place of a binding that the client has found.
    pub fn place(&self, source: FilesystemSource, disk: Disk) -> Place {
        Place { agent_path: self.display(&source), source, disk }
    }

    /// The path to show for a binding when the session has not used another one.
    pub fn display(&self, source: &FilesystemSource) -> String {
        self.mounts.reverse(source).unwrap_or_else(|| source.path.clone())
    }

    /// True if a binding is of a filesystem that is neither the agent's own nor one of the client's, such as that of
    /// another machine.
    pub fn is_foreign(&self, source: &FilesystemSource) -> bool {
        self.mounts.reverse(source).is_none() && !self.namespaces.has(source)
    }

    /// True if the client has no place for the files of a binding's filesystem: inside a sandbox, or elsewhere.
    pub fn is_out_of_reach(&self, source: &FilesystemSource) -> bool {
        self.mounts.reverse(source).is_none() && !(self.shares_unmapped && self.namespaces.has(source))
    }

    /// True if a path is on a network share that neither the working directory nor the home is on.
    fn is_elsewhere(&self, path: &str) -> bool {
        share(path).is_some_and(|share| !self.shares.contains(&share.to_lowercase()))
    }

    /// Follows links as the sandbox would: an absolute target is an agent's path, and a target outside the mounts is out of
    /// reach. The result has no links left, and files are opened without following any, so a link planted in between leads
    /// nowhere.
    fn follow_inside_mounts(&self, agent_path: &str) -> (FilesystemSource, Disk) {
        let lexical = self.mounts.resolve(agent_path).source;
        let mut pending = agent_path.to_owned();
        for _ in 0..=MAX_LINKS {
            let resolved = self.mounts.resolve(&pending);
            let Some(prefix) = resolved.mount else { return (lexical, Disk::Escapes) };
            let root = real_path(&to_disk(&prefix));
            let inside = resolved.source.path[prefix.len()..].trim_start_matches('/').to_owned();
            // Windows does not allow such a name: joined to the root it would lead anywhere.
            if cfg!(windows) && inside.contains(['\\', ':']) {
                return (lexical, Disk::Inside);
            }
            match first_link(&root, &inside) {
                Err(_unreadable) => return (lexical, Disk::Escapes),
                Ok(None) => {
                    let path = if inside.is_empty() { root } else { root.join(inside) };
                    let source = FilesystemSource { path: from_disk(&path), ..resolved.source };
                    return (source, Disk::At(path));
                }
                Ok(Some(Link { walked, target, rest })) => {
                    let agent_root = &pending[..pending.len() - inside.len()];
                    let directory = normalise(agent_root, &walked);
                    pending = normalise(&normalise(&directory, &target), &rest);
                }
            }
        }
        (lexical, Disk::Endless)
    }
}

struct Link {
    /// The segments before the link.
    walked: String,
    target: String,
    /// The segments after it.
    rest: String,
}

/// The first symbolic link on the way from a root along a relative path. A link whose target is not UTF-8 is an
/// error: its destination is unknown.
fn first_link(root: &Utf8Path, inside: &str) -> std::result::Result<Option<Link>, camino::FromPathBufError> {
    let mut here = root.to_owned();
    let segments: Vec<&str> = inside.split('/').filter(|s| !s.is_empty()).collect();
    for (i, segment) in segments.iter().enumerate() {
        here.push(segment);
        if let Ok(target) = here.as_std_path().read_link() {
            return Ok(Some(Link {
                walked: segments[..i].join("/"),
                target: with_slashes(Utf8PathBuf::try_from(target)?),
                rest: segments[i + 1..].join("/"),
            }));
        }
    }
    Ok(None)
}

/// The path with all links followed. If it does not exist, the real path of the nearest ancestor that does, followed
/// by the rest unchanged.
fn real_path(path: &Utf8Path) -> Utf8PathBuf {
    let mut rest: Vec<&str> = Vec::new();
    for ancestor in path.ancestors() {
        match ancestor.canonicalize_utf8() {
            Ok(real) => return rest.iter().rev().fold(real, |path, segment| path.join(segment)),
            Err(error) if context_platform::is_link(&error) => return path.to_owned(),
            Err(_) => rest.extend(ancestor.file_name()),
        }
    }
    path.to_owned()
}

fn with_slashes(path: Utf8PathBuf) -> String {
    if cfg!(windows) { path.as_str().replace('\\', "/") } else { path.into_string() }
}

/// The path, absolute and normalised; `None` where it is not absolute. On Windows a POSIX path is one of a sandbox.
#[must_use]
pub(crate) fn absolute(path: &str) -> Option<String> {
    if cfg!(windows) || path.starts_with('/') { path::absolute(path) } else { None }
}

/// Returns the location of a canonical path on the client's disk. On Windows this is a verbatim path (`\\?\`), as
/// [`std::fs::canonicalize`] and the watcher give it: it may have any length, and names such as `CON` or `file.` mean nothing
/// special in it.
#[must_use]
pub(crate) fn to_disk(path: &str) -> Utf8PathBuf {
    if cfg!(windows) {
        let path = path.replace('/', r"\");
        return match path.strip_prefix(r"\\") {
            Some(share) => format!(r"\\?\UNC\{share}").into(),
            None => format!(r"\\?\{path}").into(),
        };
    }
    path.into()
}

/// The canonical path of one on disk.
#[must_use]
pub(crate) fn from_disk(path: &Utf8Path) -> String {
    match cfg!(windows) {
        true => path::absolute(path.as_str()).unwrap_or_else(|| path.as_str().to_owned()),
        false => path.as_str().to_owned(),
    }
}
