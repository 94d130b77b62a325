//! The lines about files that no plan has carried yet, and their limit: a change of branch may change thousands of files at once.

use std::collections::HashSet;

use context_evidence::{Archive, MAX_TOLD, Sentences, filled};
use context_model::chat::{Notice, said_id};
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::tokens::utf16_len;

/// A line for the model. The archive has what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Untold {
    /// The line.
    pub line: String,
    /// The lines that it represents, in the order of its notices; none if it is about one file.
    listed: Vec<String>,
}

/// Notices to record, and the lines to tell.
pub(crate) struct Telling {
    /// The notices, each with the hash of the line that tells it.
    pub notices: Vec<Notice>,
    /// The lines.
    pub lines: Vec<Untold>,
    /// The lines that the last one represents, as one text.
    pub list: Option<String>,
}

impl Telling {
    /// Adds new notices, each with its own line, to those that still wait. One line represents all above the limit of
    /// [`MAX_TOLD`], including current notices that an earlier such line represents.
    pub fn of(
        due: Vec<(Notice, String)>,
        waiting: &[Untold],
        archive: &Archive,
        is_current: impl Fn(&Notice) -> bool,
        sentences: &Sentences,
    ) -> Self {
        let new: HashSet<ObjectId> = due.iter().map(|(notice, _)| notice.file.clone()).collect();
        let is_left = |notice: &Notice| is_current(notice) && !new.contains(&notice.file);
        let alone = waiting.iter().filter(|one| one.listed.is_empty());
        let alone = alone.filter(|one| archive.notices(&one.line).iter().any(is_left));
        let mut left = MAX_TOLD.saturating_sub(alone.map(|one| size(&one.line)).sum());
        let (mut notices, mut lines, mut over) = (Vec::new(), Vec::new(), Vec::new());
        for (notice, line) in due {
            if over.is_empty() && size(&line) <= left {
                left -= size(&line);
                notices.push(notice);
                lines.push(Untold { line, listed: Vec::new() });
            } else {
                over.push((notice, line));
            }
        }
        if over.is_empty() {
            return Self { notices, lines, list: None };
        }
        for one in waiting {
            let told = archive.notices(&one.line).iter().zip(&one.listed);
            over.extend(
                told.filter(|(notice, _)| is_left(notice)).map(|(n, line)| (n.clone(), line.clone())),
            );
        }
        let (others, listed): (Vec<Notice>, Vec<String>) = over.into_iter().unzip();
        let list = listed.join("\n");
        let (count, id) = (listed.len().to_string(), said_id(&list));
        let line = filled(sentences.more, &[("count", &count), ("id", &id)]);
        let hash = Digest::of(line.as_bytes());
        notices.extend(others.into_iter().map(|notice| Notice { line: hash, ..notice }));
        lines.push(Untold { line, listed });
        Self { notices, lines, list: Some(list) }
    }

    /// Takes the place of what waits about the same files.
    pub fn replace_in(self, waiting: &mut Vec<Untold>, archive: &Archive) {
        let new: HashSet<&ObjectId> = self.notices.iter().map(|notice| &notice.file).collect();
        let is_told_again =
            |one: &Untold| archive.notices(&one.line).iter().all(|old| new.contains(&old.file));
        waiting.retain(|one| {
            let is_replaced = self.list.is_some() && !one.listed.is_empty();
            !is_replaced && !is_told_again(one)
        });
        waiting.extend(self.lines);
    }
}

/// The room that a line takes in a request.
fn size(line: &str) -> usize {
    utf16_len(line) + 1
}

#[cfg(test)]
mod tests {
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
            let (mut archive, mut waiting) = (Archive::default(), Vec::new());
            let mut newest = std::collections::BTreeMap::new();
            for (number, round) in rounds.into_iter().enumerate() {
                let due: std::collections::BTreeMap<usize, usize> = round.into_iter().collect();
                let due: Vec<(Notice, String)> = due.into_iter().map(|(file, length)| {
                    let line = format!("{number} {file} {}", "x".repeat(length));
                    let hash = Some(Digest::of(line.as_bytes()));
                    newest.insert(file, (hash, line.clone()));
                    let name = file.to_string();
                    (Notice { file: ObjectId::new(&*name), hash, line: Digest::of(line.as_bytes()), path: name }, line)
                }).collect();
                let is_current = |one: &Notice| newest[&one.path.parse().unwrap()].0 == one.hash;
                let telling = Telling::of(due, &waiting, &archive, is_current, &Sentences::default());
                archive.tell(&telling.notices);
                telling.replace_in(&mut waiting, &archive);
                prop_assert!(waiting.iter().map(|one| size(&one.line)).sum::<usize>() <= MAX_TOLD + SUMMARY);
                let mut told: Vec<&String> = Vec::new();
                for one in &waiting {
                    let notices = archive.notices(&one.line);
                    let lines = if one.listed.is_empty() { std::slice::from_ref(&one.line) } else { &one.listed };
                    prop_assert_eq!(notices.len(), lines.len());
                    told.extend(notices.iter().zip(lines).filter(|(one, _)| is_current(one)).map(|(_, line)| line));
                }
                told.sort();
                let mut all: Vec<&String> = newest.values().map(|(_, line)| line).collect();
                all.sort();
                prop_assert_eq!(told, all);
            }
        }
    }
}
