//! What a result that is taken in says of a file, by its evidence.

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::Toolcall;
use context_model::time::TxId;
use context_tools::OutputOf::Reader;
use context_tools::wrapped_lines;

use crate::difference::common_lines;
use crate::evidence::Evidence;
use crate::known::{Known, KnownVersion, Way};
use crate::passage::{lines_in_sight, wraps};
use crate::seen::{At, Unseen};
use crate::sight::Sight;
use crate::statement::{Content, Passage, StatementKind};
use crate::unclaimed::UnclaimedWrites;

/// The moment at which a result is taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It has just come, and is recorded now.
    New,
    /// It is recorded now, after the process that made it has ended. The model's knowledge is read from all messages again.
    Late,
    /// It was recorded before, and the messages are read again.
    Again,
}

/// A result that is taken in.
#[derive(Clone, Copy)]
pub struct TakenResult<'a> {
    /// The object of its call.
    pub call: &'a ObjectId,
    /// The transaction that recorded the call.
    pub tx: TxId,
    /// The call.
    pub input: &'a Toolcall,
    /// The output that the message shows.
    pub output: &'a str,
    /// The moment.
    pub arrival: Arrival,
}

/// The statement of a result about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileStatement {
    /// The call left this content. `left` is that of the file, if an earlier notice had named another version than the call
    /// changed.
    Made {
        /// The content that the model knows.
        content: Content,
        /// The bytes of the file.
        left: Option<Digest>,
    },
    /// A difference that leads to this content.
    LedTo(Content),
    /// The lines are in another result.
    Pointed {
        /// The lines.
        lines: Passage,
        /// The model knows the version with them.
        is_known: bool,
    },
    /// These lines, as a stored version has them.
    Lines(Passage),
    /// Lines of bytes that were never stored.
    Unstored {
        /// The lines.
        lines: Passage,
        /// The version that is the same in these lines.
        like: Option<Digest>,
    },
}

impl Arrival {
    /// True unless the result was recorded before.
    #[must_use]
    pub fn is_recorded_now(self) -> bool {
        self != Self::Again
    }

    /// True if the model's knowledge is read from all messages, and not noted as they come.
    #[must_use]
    pub fn is_read_again(self) -> bool {
        self != Self::New
    }
}

impl<F: Fn(&ObjectId) -> bool> Sight<'_, F> {
    /// Returns the statement of a result about a file: by its evidence, as far as the message still shows it. `content` are the
    /// bytes of the evidence in this store. `has_result` is true for a call whose result is in the request.
    ///
    /// # Errors
    /// `Unseen` if a version was not read yet, as all decisions here.
    pub fn said(
        &self,
        result: &TakenResult<'_>,
        (way, writes): (&Way, &UnclaimedWrites),
        (evidence, content): (&Evidence, Content),
        has_result: impl Fn(&ObjectId) -> bool,
    ) -> Result<Option<FileStatement>, Unseen> {
        let is_again = result.arrival.is_read_again();
        Ok(match evidence {
            Evidence::Refers { .. } | Evidence::Several(_) => None,
            Evidence::Made { left, .. } => Some(FileStatement::Made { content, left: *left }),
            Evidence::LedTo(_) => Some(FileStatement::LedTo(content)),
            // A host has removed the lines from the conversation.
            Evidence::Points { at, .. } if is_again && !has_result(at) => None,
            Evidence::Points { lines, .. } => {
                let lines = Passage::recorded(lines, content);
                let is_known = if lines.whole {
                    is_again
                } else {
                    self.is_news((&way.file, writes), &lines, result.arrival)?
                };
                Some(FileStatement::Pointed { lines, is_known })
            }
            Evidence::Shows(lines) => {
                let lines = Passage::recorded(lines, content);
                self.left_of(lines, result, &way.file)?.map(FileStatement::Lines)
            }
            Evidence::Unstored { lines, like } => {
                let lines = Passage::recorded(lines, Content::lost(lines.bytes.hash));
                let lines = self.left_of(lines, result, &way.file)?;
                lines.map(|lines| FileStatement::Unstored { lines, like: *like })
            }
        })
    }

    /// True if a model that sees these lines knows their version of the file, and has not seen a newer one.
    pub fn is_news(
        &self,
        (file, writes): (&ObjectId, &UnclaimedWrites),
        lines: &Passage,
        arrival: Arrival,
    ) -> Result<bool, Unseen> {
        // Messages that are read again precede everything noted.
        let is_newer =
            |known: &KnownVersion| known.content.hash.is_some() && known.content.tx > lines.content.tx;
        let is_past =
            !arrival.is_read_again() && writes.has(file) || self.known.get(file).is_some_and(is_newer);
        Ok(!is_past && self.is_all_new(file, lines)?)
    }

    /// Returns the part of a passage that is still in the shown output of a result.
    fn left_of(
        &self,
        lines: Passage,
        result: &TakenResult<'_>,
        file: &ObjectId,
    ) -> Result<Option<Passage>, Unseen> {
        let output = result.output;
        let (text, _) = self.given(result)?;
        if text != output
            && let Some(version) = self.records.archive.text_of(file, &lines.content, self.seen)?
            && common_lines(&version, lines.first, text).is_none()
        {
            // A host has put other lines around them.
            let left = wrapped_lines(&version, lines.first, output, Reader);
            return Ok(left.map(|(_, last)| Passage { last: last.min(lines.last), whole: false, ..lines }));
        }
        Ok(lines_in_sight(lines, text, output))
    }

    /// Returns the text that a tool gave for the shown part of a message, which may be less. Also returns whether the tool
    /// wrapped the lines: then the record has them with numbers, and the message the lines alone, which are taken.
    pub(crate) fn given<'s>(&'s self, result: &'s TakenResult<'s>) -> Result<(&'s str, bool), Unseen> {
        let shown = result.output;
        let recorded = match result.arrival {
            Arrival::Again => self.seen.text(result.call, At::Now)?,
            Arrival::New | Arrival::Late => None,
        };
        let is_bare = recorded.is_some_and(|recorded| wraps(recorded, shown));
        Ok((recorded.filter(|_| !is_bare).unwrap_or(shown), is_bare))
    }
}

impl Known {
    /// Adds the statement of a result about the file at a path. Returns the lines that the result shows, as a version of the
    /// store where there is one. `is_news` says whether the model knows the version of the lines; see [`Sight::is_news`].
    pub fn take(
        &mut self,
        result: &TakenResult<'_>,
        (way, writes): (&Way, &mut UnclaimedWrites),
        said: FileStatement,
        is_news: bool,
    ) -> Option<Passage> {
        let TakenResult { call, tx, input, arrival, .. } = *result;
        let (file, is_again) = (&way.file, arrival.is_read_again());
        let add = |known: &mut Self, kind| known.add_statement(file, Some(call), Some(&way.path), kind);
        match said {
            FileStatement::Made { content, left } => {
                let noted = match (arrival.is_recorded_now(), content.hash) {
                    (true, Some(hash)) => writes.claim(file, (call, &input.args), hash),
                    _ => None,
                };
                let content = noted.filter(|noted| noted.hash == content.hash).unwrap_or(content);
                if noted.is_none() || is_again {
                    self.wrote(file, content);
                }
                add(self, StatementKind::All(content));
                if left.is_some() {
                    add(self, StatementKind::Other(left));
                }
                None
            }
            FileStatement::LedTo(content) => {
                if is_again {
                    self.wrote(file, content);
                }
                self.rests_on_sight(file, content);
                add(self, StatementKind::All(content));
                None
            }
            FileStatement::Pointed { lines, is_known } => {
                if is_known {
                    self.saw_above(file, lines.content);
                }
                let whole = lines.whole;
                add(
                    self,
                    if whole { StatementKind::All(lines.content) } else { StatementKind::Pointed(lines) },
                );
                None
            }
            FileStatement::Lines(lines) => {
                if is_news {
                    self.saw(file, lines.content);
                } else {
                    self.has_pointed(file);
                }
                add(self, StatementKind::Lines(lines));
                Some(lines)
            }
            FileStatement::Unstored { lines, like } => {
                self.saw(file, lines.content);
                add(self, StatementKind::Lines(lines));
                let content = like.map_or(lines.content, |hash| Content::stored(Some(hash), tx));
                Some(Passage { content, ..lines })
            }
        }
    }
}
