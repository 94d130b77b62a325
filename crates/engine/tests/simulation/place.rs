//! The places of files: some in separate folders, some behind a link, and the changes of folders and links.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use context_model::hash::identity_hash;
use context_model::id::ObjectId;
use context_model::object::ObjectType;
use context_model::source::{FilesystemSource, Source};

use crate::steps::{Occupant, PathChange};
use crate::world::{Content, FILESYSTEM, World};

/// The way in which a path leads to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Plain,
    /// In a folder that nothing else is in.
    InFolder,
    /// The path is a link to one of two files.
    Link,
}

impl Shape {
    /// That of a file of a schedule, which may put some behind links.
    pub fn of(number: usize, seed: u64, links: bool) -> Self {
        match (number + (seed >> 4) as usize) % 4 {
            2 => Self::InFolder,
            3 if links => Self::Link,
            _ => Self::Plain,
        }
    }

    pub fn name(self, number: usize) -> String {
        match self {
            Self::InFolder => format!("d{number}/f{number}.txt"),
            Self::Plain | Self::Link => format!("f{number}.txt"),
        }
    }
}

impl World {
    /// The object to which a file's path leads now.
    pub fn id(&self, file: usize) -> ObjectId {
        let path = Path::new(&self.files[file].path);
        object_at(&path.canonicalize().unwrap_or_else(|_| path.to_owned()))
    }

    /// All objects to which a file's path has ever led.
    pub fn ids(&self, file: usize) -> Vec<ObjectId> {
        let own = PathBuf::from(&self.files[file].path);
        let targets = self.targets(file);
        [own].into_iter().chain(targets).map(|path| object_at(&path)).collect()
    }

    /// True if there is a link at a file's path now.
    pub fn is_behind_link(&self, file: usize) -> bool {
        fs::symlink_metadata(&self.files[file].path).is_ok_and(|found| found.is_symlink())
    }

    pub fn is_link(&self, file: usize) -> bool {
        self.files[file].shape == Shape::Link
    }

    /// The files to which a file's link may point.
    fn targets(&self, file: usize) -> Vec<PathBuf> {
        let one = |target: usize| self.directory().join(format!("t{file}_{target}")).join("target.txt");
        if self.is_link(file) { vec![one(0), one(1)] } else { Vec::new() }
    }

    /// All paths on which something happens when a file changes.
    pub fn paths(&self, file: usize) -> Vec<String> {
        let targets = self.targets(file).into_iter().map(|path| path.to_str().unwrap().to_owned());
        [self.files[file].path.clone()].into_iter().chain(targets).collect()
    }

    /// Puts a file in its place for the first time.
    pub fn place(&mut self, file: usize, text: String) {
        for target in self.targets(file) {
            let text = self.text(file, 20);
            fs::create_dir(target.parent().unwrap()).unwrap();
            fs::write(target, text).unwrap();
        }
        if self.is_link(file) {
            self.point(file, 0);
        }
        self.put(file, Some(text));
    }

    /// Makes a path that of a regular file, through its link if that leads to one.
    pub fn clear(&self, path: &Path) {
        if path.is_file() {
            return;
        }
        remove(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
    }

    fn point(&self, file: usize, target: usize) {
        let path = PathBuf::from(&self.files[file].path);
        remove(&path);
        symlink(&self.targets(file)[target], path).unwrap();
    }

    /// Returns what happens to a path. `false` where nothing does.
    pub fn change_path(&mut self, file: usize, change: PathChange) -> bool {
        let path = PathBuf::from(&self.files[file].path);
        let folder = match self.files[file].shape {
            Shape::Plain => None,
            Shape::InFolder => path.parent().map(Path::to_owned),
            // That of the file behind the link, while the link stays.
            Shape::Link => path.canonicalize().ok().filter(|real| *real != path),
        };
        let folder = match self.files[file].shape {
            Shape::Link => folder.and_then(|real| real.parent().map(Path::to_owned)),
            _ => folder,
        };
        let away = self.directory().join(format!("away{file}"));
        match change {
            PathChange::FolderGone => {
                let Some(folder) = folder.filter(|folder| folder.is_dir()) else { return false };
                fs::remove_dir_all(folder).unwrap();
            }
            PathChange::FolderAway => {
                let Some(folder) = folder.filter(|folder| folder.is_dir() && !away.exists()) else {
                    return false;
                };
                fs::rename(folder, away).unwrap();
            }
            PathChange::FolderBack => {
                let Some(folder) = folder.filter(|folder| !folder.exists() && away.exists()) else {
                    return false;
                };
                fs::rename(away, folder).unwrap();
            }
            PathChange::Occupied(occupant) => {
                remove(&path);
                if let Some(folder) = path.parent() {
                    fs::create_dir_all(folder).unwrap();
                }
                match occupant {
                    Occupant::Folder => fs::create_dir(&path).unwrap(),
                    Occupant::Pipe => {
                        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
                    }
                    Occupant::DanglingLink => symlink("no/where", &path).unwrap(),
                }
            }
            PathChange::Point(target) => {
                if !self.is_link(file) {
                    return false;
                }
                self.point(file, target % 2);
            }
            PathChange::Beside => {
                let real = path.canonicalize().ok();
                let other = self.targets(file).into_iter().find(|target| Some(target) != real.as_ref());
                let Some(other) = other.filter(|other| other.is_file()) else { return false };
                let text = self.text(file, 20);
                fs::write(other, text).unwrap();
                return true;
            }
        }
        let now: Content = match path.is_file() {
            true => fs::read_to_string(&path).ok().map(Into::into),
            false => None,
        };
        let past = &mut self.files[file].past;
        if past.last() != Some(&now) {
            past.push(now);
        }
        true
    }
}

fn object_at(path: &Path) -> ObjectId {
    let path = path.to_str().unwrap().to_owned();
    let source = FilesystemSource { filesystem_id: FILESYSTEM.into(), path };
    ObjectId::sourced(identity_hash(ObjectType::File, Some(&Source::Filesystem(source))))
}

/// Removes whatever is at a path, and no link's target.
pub fn remove(path: &Path) {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}
