//! What the model can see of a file, compared with the file's versions.

use std::borrow::Cow;

use context_model::hash::Digest;
use context_model::id::ObjectId;

use crate::difference::{counted, is_all_new_within};
use crate::in_flight::Base;
use crate::known::{Known, KnownVersion, Way};
use crate::records::Records;
use crate::seen::{At, Seen, Unseen};
use crate::statement::{Content, Knowledge, Passage};
use context_lines::FileChange;

/// The statements of the request, which of them are in sight, and the versions that a decision has seen.
pub struct Sight<'a, F> {
    /// The statements.
    pub known: &'a Known,
    /// True for a call whose result the request shows.
    pub in_sight: F,
    /// The records of statements, and the entries of tools whose results have not come yet.
    pub records: &'a Records,
    /// The versions.
    pub seen: &'a Seen,
}

impl Known {
    /// Returns the model's knowledge of a file. Statements that have left its sight no longer count if others are in sight.
    pub fn now(&self, file: &ObjectId, in_sight: impl Fn(&ObjectId) -> bool) -> Option<Content> {
        let KnownVersion { content, from_results } = *self.get(file)?;
        if !from_results {
            return Some(content);
        }
        let knowledge = self.knowledge(file, in_sight);
        let is_there = knowledge.contents.contains(&content.hash);
        Some(if is_there { content } else { knowledge.base.unwrap_or(content) })
    }

    /// Returns the model's knowledge of a path that a call is about to change, or has just changed: of the file that the path
    /// led to.
    pub fn base(&self, way: &Way, in_sight: impl Fn(&ObjectId) -> bool) -> Option<Base> {
        let file = self.led(&way.path).unwrap_or(&way.file);
        let content = self.now(file, &in_sight)?;
        let told = self.knowledge(file, &in_sight).told();
        Some(Base { file: self.home_of(file, &content), content, told })
    }
}

impl<'a, F: Fn(&ObjectId) -> bool> Sight<'a, F> {
    /// The sum of the statements about a file that are in sight.
    pub fn knowledge(&self, file: &ObjectId) -> Knowledge {
        self.known.knowledge(file, &self.in_sight)
    }

    /// As [`Known::now`].
    pub fn known_now(&self, file: &ObjectId) -> Option<Content> {
        self.known.now(file, &self.in_sight)
    }

    /// Returns the text of bytes that the model knows of a file; `None` if they were never stored, or not as text.
    ///
    /// # Errors
    /// `Unseen` if a version was not read yet, as all decisions here.
    pub fn text_known(&self, file: &ObjectId, content: &Content) -> Result<Option<Cow<'a, str>>, Unseen> {
        self.records.archive.text_of(&self.known.home_of(file, content), content, self.seen)
    }

    /// Returns the bytes that the model believes a file has, if the file has changed and no statement in sight says so. `now`
    /// are the file's bytes.
    pub fn outstanding(&self, file: &ObjectId, now: Option<Digest>) -> Result<Option<Content>, Unseen> {
        let knowledge = self.knowledge(file);
        let Some(base) = knowledge.base else { return Ok(None) };
        let is_told = knowledge.speaks_of(now);
        if !is_told && base.hash != now {
            return Ok(Some(base));
        }
        let outdated = self.outdated(file, now, &knowledge)?;
        Ok(if is_told { outdated } else { outdated.or(Some(base)) })
    }

    /// Returns the bytes that the first outdated ones of the lines in sight belong to.
    fn outdated(
        &self,
        file: &ObjectId,
        now: Option<Digest>,
        knowledge: &Knowledge,
    ) -> Result<Option<Content>, Unseen> {
        for one in knowledge.outstanding.iter().filter(|one| one.lines.content.hash != now) {
            let (lines, content) = (&one.lines, one.lines.content);
            let new = self.seen.text(file, At::Now)?;
            let old = self.text_known(file, &content)?;
            if let (Some(old), Some(new)) = (&old, new)
                && some_lines(old, lines).eq(some_lines(new, lines))
            {
                continue;
            }
            let mut is_told = false;
            for part in &one.later {
                is_told = is_told || self.shows_all_new(file, &content, part)?;
            }
            if !is_told {
                return Ok(Some(content));
            }
        }
        Ok(None)
    }

    /// Returns the difference between a file and the bytes that the model believes it has.
    pub fn change(&self, file: &ObjectId, base: &Content, now: Option<Digest>) -> Result<FileChange, Unseen> {
        if base.hash == now {
            return Ok(FileChange::SameAgain);
        }
        let old = self.text_known(file, base)?;
        let counted = match (old, self.seen.text(file, At::Now)?) {
            (Some(old), Some(new)) => counted(&old, new),
            _ => None,
        };
        Ok(counted.map_or(FileChange::Unknown, FileChange::Counted))
    }

    /// True if the model knows a version of a file once it has seen these lines of it: it knew no other one, or sees all that
    /// is new. Content that was never stored cannot be compared.
    pub(crate) fn is_all_new(&self, file: &ObjectId, lines: &Passage) -> Result<bool, Unseen> {
        let (Some(version), Some(known)) = (self.known.get(file), self.known_now(file)) else {
            return Ok(true);
        };
        let is_in_sight = !version.from_results
            || self.knowledge(file).contents.iter().any(|hash| *hash != lines.content.hash);
        if known.hash == lines.content.hash || !is_in_sight || !self.records.archive.has_text(&known) {
            return Ok(true);
        }
        self.shows_all_new(file, &known, lines)
    }

    /// True if these lines show all differences between a version and theirs.
    fn shows_all_new(&self, file: &ObjectId, old: &Content, lines: &Passage) -> Result<bool, Unseen> {
        let archive = &self.records.archive;
        if !archive.has_text(old) || !archive.has_text(&lines.content) {
            return Ok(false);
        }
        let old = self.text_known(file, old)?.unwrap_or_default();
        let new = self.text_known(file, &lines.content)?.unwrap_or_default();
        Ok(is_all_new_within(&old, &new, lines.first, lines.last))
    }
}

/// The lines of a text at another passage's position.
fn some_lines<'a>(text: &'a str, lines: &Passage) -> impl Iterator<Item = &'a str> {
    text.split('\n').skip(lines.first - 1).take((lines.last - lines.first).saturating_add(1))
}
