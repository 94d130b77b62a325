//! The notices about files that no plan has carried yet, and their limit: a change of branch may change thousands of files at
//! once.

use std::collections::HashSet;

use context_model::chat::{Notice, said_id};
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::tokens::utf16_len;

use crate::notices::{MAX_TOLD, Sentences, notice_line};
use context_lines::{FileChange, StaleLine};

/// A change of a file of which the model must be notified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileNotice {
    /// The file.
    pub file: ObjectId,
    /// The bytes that it has now; `None` if it has none that could be read.
    pub hash: Option<Digest>,
    /// Its short name.
    pub handle: String,
    /// The path by which the model knows it.
    pub path: String,
    /// The difference from the model's knowledge of it.
    pub change: FileChange,
}

/// Notices that one line gives to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Untold {
    /// A notice with its own line.
    One(FileNotice),
    /// The notices that one line represents.
    Many(Vec<FileNotice>),
}

/// Notices to record, and the lines that give them to the model.
pub struct Telling {
    /// The notices, each with the hash of its line.
    pub notices: Vec<Notice>,
    /// The lines.
    pub lines: Vec<String>,
    /// The lines of the notices that the last one represents, as one text.
    pub list: Option<String>,
    untold: Vec<Untold>,
}

impl FileNotice {
    /// The line for the model.
    pub fn line(&self, sentences: &Sentences) -> String {
        notice_line(&sentences.stale, &self.handle, &self.path, self.hash, &self.change)
    }

    fn told_by(&self, line: &str) -> Notice {
        let Self { file, hash, path, .. } = self.clone();
        Notice { file, hash, line: Digest::of(line.as_bytes()), path }
    }
}

impl Untold {
    /// The notices.
    pub fn notices(&self) -> &[FileNotice] {
        match self {
            Self::One(notice) => std::slice::from_ref(notice),
            Self::Many(notices) => notices,
        }
    }

    /// The line for the model.
    pub fn line(&self, sentences: &Sentences) -> String {
        match self {
            Self::One(notice) => notice.line(sentences),
            Self::Many(notices) => {
                let id = said_id(&list_of(notices, sentences)).into();
                StaleLine::More { count: notices.len(), id }.written(&sentences.stale)
            }
        }
    }
}

impl Telling {
    /// Adds new notices, each with its own line, to those that still wait. One line represents all above the limit of
    /// [`MAX_TOLD`], including current notices that an earlier such line represents.
    pub fn of(
        due: Vec<FileNotice>,
        waiting: &[Untold],
        is_current: impl Fn(&FileNotice) -> bool,
        sentences: &Sentences,
    ) -> Self {
        let new: HashSet<ObjectId> = due.iter().map(|notice| notice.file.clone()).collect();
        let is_left = |notice: &&FileNotice| is_current(notice) && !new.contains(&notice.file);
        let (mut alone, mut over) = (0, Vec::new());
        let mut earlier = Vec::new();
        for one in waiting {
            match one {
                Untold::One(notice) if is_left(&notice) => alone += size(&notice.line(sentences)),
                Untold::One(_) => {}
                Untold::Many(notices) => earlier.extend(notices.iter().filter(is_left).cloned()),
            }
        }
        let mut left = MAX_TOLD.saturating_sub(alone);
        let mut telling = Self { notices: Vec::new(), lines: Vec::new(), list: None, untold: Vec::new() };
        for notice in due {
            let line = notice.line(sentences);
            if over.is_empty() && size(&line) <= left {
                left -= size(&line);
                telling.add(Untold::One(notice), line);
            } else {
                over.push(notice);
            }
        }
        if !over.is_empty() {
            over.extend(earlier);
            telling.list = Some(list_of(&over, sentences));
            let many = Untold::Many(over);
            let line = many.line(sentences);
            telling.add(many, line);
        }
        telling
    }

    fn add(&mut self, untold: Untold, line: String) {
        self.notices.extend(untold.notices().iter().map(|notice| notice.told_by(&line)));
        self.untold.push(untold);
        self.lines.push(line);
    }

    /// Takes the place of what waits about the same files.
    pub fn replace_in(self, waiting: &mut Vec<Untold>) {
        let new: HashSet<&ObjectId> = self.notices.iter().map(|notice| &notice.file).collect();
        waiting.retain(|one| {
            let is_replaced = self.list.is_some() && matches!(one, Untold::Many(_));
            !is_replaced && !one.notices().iter().all(|old| new.contains(&old.file))
        });
        waiting.extend(self.untold);
    }
}

/// The lines of notices, as one text.
fn list_of(notices: &[FileNotice], sentences: &Sentences) -> String {
    let lines: Vec<String> = notices.iter().map(|notice| notice.line(sentences)).collect();
    lines.join("\n")
}

/// The room that a line takes in a request.
fn size(line: &str) -> usize {
    utf16_len(line) + 1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// The most room that a line takes which represents others.
    const SUMMARY: usize = 150;

    proptest! {
        /// However many changes come before a plan carries their lines, these have a limit, and say each file's last change once.
        #[test]
        fn lines_that_wait_have_a_limit_and_tell_each_file(
            rounds in vec(vec((0..300_usize, 1..1_200_usize), 0..120), 1..6),
        ) {
            let sentences = Sentences::default();
            let mut waiting: Vec<Untold> = Vec::new();
            let mut newest: BTreeMap<ObjectId, FileNotice> = BTreeMap::new();
            for (number, round) in rounds.into_iter().enumerate() {
                let due: BTreeMap<usize, usize> = round.into_iter().collect();
                let due: Vec<FileNotice> = due.into_iter().map(|(file, length)| {
                    let change = FileChange::Counted("x".repeat(length));
                    let hash = Some(Digest::of(format!("{number} {file}").as_bytes()));
                    let name = file.to_string();
                    FileNotice { file: ObjectId::new(&*name), hash, handle: name.clone(), path: name, change }
                }).collect();
                newest.extend(due.iter().map(|notice| (notice.file.clone(), notice.clone())));
                let is_current = |one: &FileNotice| newest[&one.file].hash == one.hash;
                let telling = Telling::of(due, &waiting, is_current, &sentences);
                for (line, one) in telling.lines.iter().zip(&telling.untold) {
                    prop_assert_eq!(line, &one.line(&sentences));
                    for notice in one.notices() {
                        prop_assert!(telling.notices.contains(&notice.told_by(line)));
                    }
                }
                telling.replace_in(&mut waiting);
                let room: usize = waiting.iter().map(|one| size(&one.line(&sentences))).sum();
                prop_assert!(room <= MAX_TOLD + SUMMARY);
                let told = waiting.iter().flat_map(Untold::notices).filter(|one| is_current(one));
                let mut told: Vec<&FileNotice> = told.collect();
                told.sort_by(|one, other| one.file.cmp(&other.file));
                prop_assert_eq!(told, newest.values().collect::<Vec<_>>());
            }
        }
    }
}
