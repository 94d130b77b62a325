//! The line of a hit of a search: `id=673a446c path=src/a.ts line=3: let x = 1`.

use std::borrow::Cow;
use std::fmt;

use crate::escape::{self, line, short_text, short_word};
use crate::object::ORPHANED;

/// A hit of a search, beginning with the name to activate it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HitLine<'a> {
    /// The handle or the full ID of the object.
    pub id: Cow<'a, str>,
    /// The transaction of the version with the text, if that is not the latest one.
    pub tx: Option<u64>,
    /// The object.
    pub object: HitObject<'a>,
    /// The first line that matches, counted from 1.
    pub line: usize,
    /// The text of that line, shortened around the match.
    pub snippet: Cow<'a, str>,
}

/// The object that a search has hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HitObject<'a> {
    /// A file.
    File {
        /// The path as the agent sees it. A very long one is shown without its middle, and read back so.
        path: Cow<'a, str>,
        /// True if the client can't reach the file.
        is_orphaned: bool,
    },
    /// The output of this tool.
    Toolcall(Cow<'a, str>),
    /// An object of another type, by the name of the type.
    Other(Cow<'a, str>),
}

impl<'a> HitLine<'a> {
    /// Reads a line; `None` if it is not a hit. The snippet is read as it is shown.
    #[must_use]
    pub fn of(text: &'a str) -> Option<Self> {
        let (name, rest) = text.strip_prefix("id=")?.split_once(' ')?;
        let (name, tx) = match name.rsplit_once('@').map(|(name, tx)| (name, number(tx))) {
            Some((name, Some(tx))) => (name, Some(tx)),
            _ => (name, None),
        };
        let (object, rest) = rest.split_once(" line=")?;
        let (at, snippet) = rest.split_once(": ")?;
        let word = |shown| escape::shown_by(short_word, shown).filter(|raw| !raw.is_empty());
        let object = if let Some(path) = object.strip_prefix("path=") {
            let shown = path.strip_suffix(ORPHANED).unwrap_or(path);
            let is_orphaned = shown.len() < path.len();
            HitObject::File { path: escape::shown_by(short_text, shown)?, is_orphaned }
        } else if let Some(tool) = object.strip_prefix("tool=") {
            HitObject::Toolcall(word(tool)?)
        } else {
            HitObject::Other(word(object.strip_prefix("type=")?)?)
        };
        let line = usize::try_from(number(at)?).ok()?;
        (!snippet.contains('\n')).then_some(Self {
            id: word(name)?,
            tx,
            object,
            line,
            snippet: snippet.into(),
        })
    }
}

impl fmt::Display for HitLine<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "id={}", short_word(&self.id))?;
        if let Some(tx) = self.tx {
            write!(out, "@{tx}")?;
        }
        match &self.object {
            HitObject::File { path, is_orphaned } => {
                let end = if *is_orphaned { ORPHANED } else { "" };
                write!(out, " path={}{end}", short_text(path))?;
            }
            HitObject::Toolcall(tool) => write!(out, " tool={}", short_word(tool))?,
            HitObject::Other(kind) => write!(out, " type={}", short_word(kind))?,
        }
        write!(out, " line={}: {}", self.line, line(&self.snippet))
    }
}

/// A number as we write it: digits without a zero before them.
fn number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}
