//! The version of a file that the model knows, and the statements of its request about the file.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use context_model::hash::Digest;
use context_model::id::ObjectId;

use crate::statement::{Content, Knowledge, Passage, Statement, StatementKind};

/// The version of a file that the model last saw (at least in part) or wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownVersion {
    /// Its bytes.
    pub content: Content,
    /// The model knows it only from results: once they are out of sight, their statements about other versions count.
    pub from_results: bool,
}

/// The model's knowledge about the session's files.
#[derive(Clone, Default)]
pub struct Known {
    versions: HashMap<ObjectId, KnownVersion>,
    /// The statements of the request about each file, in order, including those that have left the model's sight.
    statements: HashMap<ObjectId, Vec<Statement>>,
    /// The files that each call's result says something about.
    told_by: HashMap<ObjectId, HashSet<ObjectId>>,
    /// The agent's paths by which the model knows files: its knowledge belongs to the path that it read or wrote.
    paths: HashMap<Arc<str>, Named>,
    /// Bytes that the model knows of a path which leads to another file now, and the file that had them.
    homes: HashMap<(ObjectId, Content), ObjectId>,
    /// The number of statements so far, and of uses of paths.
    count: usize,
    uses: usize,
    /// Files that the model may need a notice about.
    open: HashSet<ObjectId>,
    /// Files whose last read was answered by pointing to lines still visible; their next read is served in full.
    pointed: HashSet<ObjectId>,
}

/// The file that a path of the agent led to when the model last read or wrote it.
#[derive(Clone, Debug)]
struct Named {
    file: ObjectId,
    /// It leads there through a symbolic link, or has led anywhere through one: a link that leads nowhere looks like no file.
    is_alias: bool,
    /// Its place among all uses of paths.
    used: usize,
}

/// A path as the agent wrote it, absolute, and the file to which it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The path.
    pub path: Arc<str>,
    /// The file.
    pub file: ObjectId,
    /// It leads there through a symbolic link.
    pub is_alias: bool,
}

impl Known {
    /// Returns what the model knows about a file.
    pub fn get(&self, file: &ObjectId) -> Option<&KnownVersion> {
        self.versions.get(file)
    }

    /// Notes that the model wrote this version, or has seen all new lines of it.
    pub fn wrote(&mut self, file: &ObjectId, content: Content) {
        self.set(file, KnownVersion { content, from_results: false });
    }

    /// Notes that the model has read this version, whole or in the shown part.
    pub fn saw(&mut self, file: &ObjectId, content: Content) {
        self.set(file, KnownVersion { content, from_results: true });
    }

    /// Records that an answer to a read pointed to this version. The next read still returns the full text.
    pub fn saw_above(&mut self, file: &ObjectId, content: Content) {
        self.versions.insert(file.clone(), KnownVersion { content, from_results: true });
    }

    fn set(&mut self, file: &ObjectId, version: KnownVersion) {
        self.versions.insert(file.clone(), version);
        self.pointed.remove(file);
    }

    /// True if the model knows a version of a file: then that stays, also for the next read, whatever a call has left.
    pub fn keeps(&mut self, file: &ObjectId) -> bool {
        let is_known = self.versions.contains_key(file);
        if is_known {
            self.pointed.remove(file);
        }
        is_known
    }

    /// Notes that the result with a version's text is in the request: the version counts as known while that result is in
    /// sight.
    pub fn rests_on_sight(&mut self, file: &ObjectId, content: Content) {
        if let Some(known) = self.versions.get_mut(file) {
            known.from_results |= known.content.hash == content.hash;
        }
    }

    /// Adds the statement of a message about a file: of the result of this call, or of a notice. `via` is the path that it names.
    pub fn add_statement(
        &mut self,
        file: &ObjectId,
        by: Option<&ObjectId>,
        via: Option<&Arc<str>>,
        kind: StatementKind,
    ) {
        self.count += 1;
        let statement = Statement { by: by.cloned(), via: via.cloned(), number: self.count, kind };
        self.statements.entry(file.clone()).or_default().push(statement);
        if let Some(call) = by {
            self.told_by.entry(call.clone()).or_default().insert(file.clone());
        }
        self.open.insert(file.clone());
    }

    /// Notes that the model has used a path. If that led to another file before, the model's knowledge of the path moves with
    /// it.
    pub fn uses(&mut self, way: &Way) {
        self.uses += 1;
        let was_alias = self.paths.get(&way.path).is_some_and(|before| before.is_alias);
        let named = Named { file: way.file.clone(), is_alias: way.is_alias || was_alias, used: self.uses };
        if let Some(before) = self.paths.insert(Arc::clone(&way.path), named)
            && before.file != way.file
        {
            self.move_statements(&way.path, &before.file, &way.file);
        }
    }

    /// The knowledge once the model has used a path, for a decision before that. It is a copy only if the path led to another
    /// file before.
    #[must_use]
    pub fn after_use(&self, way: &Way) -> Cow<'_, Self> {
        if !self.leads_elsewhere(way) {
            return Cow::Borrowed(self);
        }
        let mut after = self.clone();
        after.uses(way);
        Cow::Owned(after)
    }

    /// True if a path led to another file when the model last used it.
    #[must_use]
    pub fn leads_elsewhere(&self, way: &Way) -> bool {
        self.led(&way.path).is_some_and(|before| *before != way.file)
    }

    /// Lines that a file had at a path are shown again. Returns the file at which they count: where the path leads as far as
    /// the model's uses of it tell, or else the one that had them.
    pub fn recalls(&mut self, way: &Way, home: &ObjectId, content: Content) -> ObjectId {
        let Some(named) = self.paths.get(&way.path) else {
            self.uses(&Way {
                file: home.clone(),
                is_alias: way.is_alias || way.file != *home,
                ..way.clone()
            });
            return home.clone();
        };
        let at = named.file.clone();
        if at != *home {
            let home = self.home_of(home, &content);
            self.homes.insert((at.clone(), content), home);
        }
        at
    }

    /// The path by which the model knows a file: of several, the one that it has used last.
    pub fn path_to(&self, file: &ObjectId) -> Option<&Arc<str>> {
        let to_it = self.paths.iter().filter(|(_, named)| named.file == *file);
        to_it.max_by_key(|(_, named)| named.used).map(|(path, _)| path)
    }

    /// The file to which a path led when the model last used it.
    pub fn led(&self, path: &str) -> Option<&ObjectId> {
        self.paths.get(path).map(|named| &named.file)
    }

    /// The paths that may lead elsewhere now, with the files to which they led: those through links, and those of files
    /// that `is_gone`, in whose place there may be a link.
    pub fn doubtful_paths(&self, is_gone: impl Fn(&ObjectId) -> bool) -> Vec<(Arc<str>, ObjectId)> {
        let is_doubtful = |named: &Named| {
            self.statements.contains_key(&named.file) && (named.is_alias || is_gone(&named.file))
        };
        let doubtful = self.paths.iter().filter(|(_, named)| is_doubtful(named));
        let mut paths: Vec<_> =
            doubtful.map(|(path, named)| (Arc::clone(path), named.file.clone())).collect();
        paths.sort();
        paths
    }

    /// Returns the file that had bytes which the model knows of this one.
    pub fn home_of(&self, file: &ObjectId, content: &Content) -> ObjectId {
        self.homes.get(&(file.clone(), *content)).unwrap_or(file).clone()
    }

    /// Moves the model's knowledge of a path from the file to which it led to the one to which it leads.
    fn move_statements(&mut self, path: &str, from: &ObjectId, to: &ObjectId) {
        let is_last = !self.paths.values().any(|named| named.file == *from);
        let belongs = |one: &Statement| one.via.as_deref().map_or(is_last, |via| via == path);
        let (moved, kept): (Vec<_>, Vec<_>) =
            self.statements.remove(from).unwrap_or_default().into_iter().partition(belongs);
        if !kept.is_empty() {
            self.statements.insert(from.clone(), kept);
        }
        for one in &moved {
            if let Some(call) = &one.by {
                self.told_by.entry(call.clone()).or_default().insert(to.clone());
            }
        }
        let version = self.versions.get(from).copied();
        let contents = moved.iter().filter_map(|one| one.kind.content());
        for content in contents.chain(version.map(|version| version.content)) {
            let home = self.home_of(from, &content);
            self.homes.insert((to.clone(), content), home);
        }
        let statements = self.statements.entry(to.clone()).or_default();
        statements.extend(moved);
        statements.sort_by_key(|one| one.number);
        if let Some(version) = version {
            self.versions.insert(to.clone(), version);
        }
        if is_last {
            self.versions.remove(from);
        }
        self.open.extend([from.clone(), to.clone()]);
    }

    /// The lines of a file that a call's result has shown.
    pub fn shown_by(&self, file: &ObjectId, call: &ObjectId) -> Option<Passage> {
        let mut statements =
            self.statements.get(file)?.iter().rev().filter(|one| one.by.as_ref() == Some(call));
        statements.find_map(|one| match one.kind {
            StatementKind::Lines(lines) | StatementKind::Again(lines) => Some(lines),
            StatementKind::All(_) | StatementKind::Pointed(_) | StatementKind::Other(_) => None,
        })
    }

    /// The version that the request mentioned last; also `None` if that was of a file that is gone.
    pub fn spoken_of(&self, file: &ObjectId) -> Option<Digest> {
        match self.statements.get(file)?.last()?.kind {
            StatementKind::Lines(lines) | StatementKind::Again(lines) | StatementKind::Pointed(lines) => {
                lines.content.hash
            }
            StatementKind::All(content) => content.hash,
            StatementKind::Other(hash) => hash,
        }
    }

    /// The contents that the request has mentioned, newest statement first.
    pub fn contents(&self, file: &ObjectId) -> impl Iterator<Item = Content> {
        let statements = self.statements.get(file).into_iter().flatten().rev();
        statements.filter_map(|one| one.kind.content())
    }

    /// The sum of the statements about a file whose calls are in sight.
    pub fn knowledge(&self, file: &ObjectId, in_sight: impl Fn(&ObjectId) -> bool) -> Knowledge {
        let statements = self.statements.get(file).into_iter().flatten();
        Knowledge::of(statements.filter(|one| one.by.as_ref().is_none_or(&in_sight)))
    }

    /// The catalog has a new version of a file.
    pub fn changed(&mut self, file: ObjectId) {
        if self.statements.contains_key(&file) {
            self.open.insert(file);
        }
    }

    /// The results of these calls have come into sight or left it.
    pub fn looks_different<'c>(&mut self, calls: impl IntoIterator<Item = &'c ObjectId>) {
        let files = calls.into_iter().filter_map(|call| self.told_by.get(call)).flatten();
        self.open.extend(files.cloned());
    }

    /// Returns the files that the model may need a notice about.
    pub fn open(&self) -> Vec<ObjectId> {
        let mut open: Vec<ObjectId> = self.open.iter().cloned().collect();
        open.sort();
        open
    }

    /// Notes that these files need no notice until something changes.
    pub fn settle(&mut self, files: &[ObjectId]) {
        for file in files {
            self.open.remove(file);
        }
    }

    /// Clears the model's knowledge: its messages are about to be read again.
    pub fn forget(&mut self) {
        self.versions.clear();
        self.statements.clear();
        self.told_by.clear();
        self.paths.clear();
        self.homes.clear();
        self.open.clear();
        self.pointed.clear();
    }

    /// Notes that a read was answered by pointing to the place of its lines.
    pub fn points(&mut self, file: &ObjectId) {
        self.pointed.insert(file.clone());
    }

    /// True if the last read was answered by pointing to the place of its lines. Asking resets this.
    pub fn has_pointed(&mut self, file: &ObjectId) -> bool {
        self.pointed.remove(file)
    }
}
