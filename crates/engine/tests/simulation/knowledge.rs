//! The model's knowledge, derived from the messages of its request alone: no line of the engine's is knowledge here.

use std::collections::BTreeSet;
use std::sync::Arc;

use context_model::id::ObjectId;

use crate::world::Content;

/// A message's statement about a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    pub file: usize,
    pub what: What,
}

impl Note {
    /// Returns the statement that restoring its lines repeats.
    pub fn again(&self) -> Option<Self> {
        let (What::Shown { text, first, last } | What::Again { text, first, last }) = &self.what else {
            return None;
        };
        let what = What::Again { text: Arc::clone(text), first: *first, last: *last };
        Some(Self { file: self.file, what })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// These lines of a file that had this text; counted from 1, both included.
    Shown { text: Arc<str>, first: usize, last: usize },
    /// The same once more, restored by an activation: with the text of that time.
    Again { text: Arc<str>, first: usize, last: usize },
    /// The model has written this text itself.
    Wrote { text: Arc<str> },
    /// A difference that leads to this text, or that all lines of it are shown above.
    Told { text: Arc<str> },
    /// These lines of a file that has this text are shown above.
    Pointed { text: Arc<str>, first: usize, last: usize },
    /// A line says that there is another version: this one.
    Announced { version: Content },
    /// A shell has shown this text. It counts as read if the file still had it when the engine heard of the call, which is not
    /// known here.
    Catted { text: Arc<str> },
    /// The result of an edit reports an earlier change, and the model would know this text without that.
    Untold { text: Arc<str> },
}

/// A message of the conversation, as far as it matters here.
#[derive(Clone, Debug)]
pub struct Heard {
    pub notes: Vec<Note>,
    /// True if it is in the request as it was first.
    pub whole: bool,
    /// It goes out with the next request: the model has not seen it when it calls a tool.
    pub open: bool,
}

/// The statements of a conversation about one file.
#[derive(Clone, Debug, Default)]
pub struct Knowledge {
    /// The text that the model knows, if it has ever seen or written it.
    pub known: Option<Arc<str>>,
    /// The same for the messages still in the request.
    pub known_visibly: Option<Arc<str>>,
    /// The version that the request speaks of last. What has left it does not count: a model has no other memory.
    pub told: Option<Content>,
    /// A version of which the model has seen a part since, and was told another one before.
    pub partly: Option<Arc<str>>,
    /// The same where it knew another one before, and the part does not show all that is new. That it was told that there
    /// is another version shows it none of that, so an edit may be refused, or not.
    pub known_partly: Option<Arc<str>>,
    /// Texts to which a difference led, or that it wrote, also where something newer followed in the same answer.
    pub led_to: Vec<Arc<str>>,
    /// All that it heard of that version is a part: of the rest it believes nothing.
    pub told_of_a_part: bool,
    /// The request shows a text that it wrote itself.
    pub wrote: bool,
    /// The last thing that it heard was an announcement.
    pub announced: bool,
    /// Lines in the request: their text, and the lines after them.
    pub fragments: Vec<Fragment>,
    /// Texts that a shell has shown, and that may not count.
    pub catted: Vec<Arc<str>>,
    /// The texts that it would know if results of edits had not reported earlier changes. If a process ends before such a
    /// result is recorded, no process knows that it has.
    pub untold: Vec<Arc<str>>,
}

/// Lines of a file that are in the request.
#[derive(Clone, Debug)]
pub struct Fragment {
    pub text: Arc<str>,
    pub first: usize,
    pub last: usize,
    /// Something after it spoke of another version than its own: an announcement, a difference, the model's own
    /// writing, or the same lines read again.
    pub superseded: bool,
    /// The versions announced after them.
    pub announced: Vec<Content>,
}

impl Fragment {
    /// True if its lines are the same in a text.
    pub fn is_as_in(&self, text: Option<&str>) -> bool {
        let of = |text: &str| lines(text, self.first, self.last);
        of(&self.text) == text.and_then(of)
    }
}

impl Knowledge {
    pub fn of<'a>(file: usize, heard: impl Iterator<Item = &'a Heard>) -> Self {
        let mut knowledge = Self::default();
        for message in heard {
            for note in message.notes.iter().filter(|note| note.file == file) {
                knowledge.take(&note.what, message.whole);
            }
        }
        knowledge
    }

    fn take(&mut self, what: &What, whole: bool) {
        let (text, told) = match what {
            What::Shown { text, .. }
            | What::Wrote { text }
            | What::Told { text }
            | What::Pointed { text, .. } => (Some(text), Some(Arc::clone(text))),
            What::Again { text, .. } => (None, Some(Arc::clone(text))),
            What::Announced { version } => (None, version.clone()),
            What::Catted { text } => {
                self.catted.push(Arc::clone(text));
                return;
            }
            What::Untold { text } => {
                self.untold.push(Arc::clone(text));
                return;
            }
        };
        if let What::Wrote { text } | What::Told { text } = what {
            self.led_to.push(Arc::clone(text));
        }
        if matches!(what, What::Told { .. })
            || matches!(what, What::Shown { text, first, last } if is_whole(text, *first, *last))
        {
            self.untold.clear();
        }
        self.wrote |= whole && matches!(what, What::Wrote { .. });
        // A part of another version than the announced one says nothing of the rest.
        let is_part = matches!(what, What::Shown { text, first, last } | What::Pointed { text, first, last }
            if !is_whole(text, *first, *last));
        if let Some(text) = text {
            let shows_all_new = |known: &Option<Arc<str>>| match (what, known) {
                (What::Shown { first, last, .. } | What::Pointed { first, last, .. }, Some(known))
                    if is_part =>
                {
                    known == text || is_all_new_within(known, text, *first, *last)
                }
                _ => true,
            };
            if shows_all_new(&self.known) {
                (self.known, self.known_partly) = (Some(Arc::clone(text)), None);
            } else {
                self.known_partly = Some(Arc::clone(text));
            }
            if whole && shows_all_new(&self.known_visibly) {
                self.known_visibly = Some(Arc::clone(text));
            }
        }
        if whole {
            self.announced = matches!(what, What::Announced { .. });
        }
        if is_part && self.told.as_ref().is_some_and(|before| *before != told) {
            self.partly = text.cloned();
        } else {
            if whole {
                self.partly = None;
                self.told_of_a_part = is_part && (self.told.is_none() || self.told_of_a_part);
                self.told = Some(told.clone());
            }
        }
        for fragment in self.fragments.iter_mut().filter(|_| whole) {
            fragment.superseded |= match what {
                What::Shown { text, first, last } if is_whole(text, *first, *last) => true,
                // All that is new is in the later lines.
                What::Shown { text, first, last } | What::Pointed { text, first, last } => {
                    (*first <= fragment.first && fragment.last <= *last)
                        || (fragment.text != *text && is_all_new_within(&fragment.text, text, *first, *last))
                }
                What::Again { first, last, .. } => *first <= fragment.first && fragment.last <= *last,
                _ => told.as_ref() != Some(&fragment.text),
            };
        }
        if let What::Announced { version } = what {
            self.fragments.iter_mut().for_each(|fragment| fragment.announced.push(version.clone()));
        }
        let shown = match what {
            What::Shown { text, first, last } | What::Again { text, first, last } => {
                Some((text, *first, *last))
            }
            // Who has written a text, or was led to it, knows all of its lines.
            What::Wrote { text } | What::Told { text } => Some((text, 1, text.split('\n').count())),
            What::Pointed { .. } | What::Announced { .. } | What::Catted { .. } | What::Untold { .. } => None,
        };
        if let Some((text, first, last)) = shown.filter(|_| whole) {
            let text = Arc::clone(text);
            self.fragments.push(Fragment { text, first, last, superseded: false, announced: Vec::new() });
        }
    }

    /// Returns the model's knowledge when it calls a tool: its present answer adds only its own writes.
    pub fn seen<'a>(file: usize, heard: impl Iterator<Item = &'a Heard>) -> Self {
        let wrote = |note: &&Note| matches!(note.what, What::Wrote { .. });
        let heard: Vec<Heard> = heard
            .map(|message| {
                let notes = message.notes.iter().filter(|note| !message.open || wrote(note));
                Heard { notes: notes.cloned().collect(), ..*message }
            })
            .collect();
        Self::of(file, heard.iter())
    }

    /// The texts that the model may take a difference from.
    pub fn bases(&self) -> impl Iterator<Item = &Arc<str>> {
        self.known
            .iter()
            .chain(&self.known_visibly)
            .chain(&self.partly)
            .chain(&self.known_partly)
            .chain(&self.led_to)
            .chain(&self.catted)
            .chain(self.fragments.iter().map(|part| &part.text))
    }

    /// True if the model has written this version, or was led to it by a difference.
    pub fn has_led_to(&self, version: &Content) -> bool {
        version.as_ref().is_some_and(|text| self.led_to.contains(text))
    }

    /// True if an announcement of a version would be news for the model.
    pub fn is_news(&self, version: &Content, rebuilt: bool) -> bool {
        let told = self.told.as_ref() != Some(version);
        // A part that was read in the new version says nothing of the rest that is in sight.
        let rest = !self.announced && self.outdated(version).next().is_some();
        // A rebuild may have lost notices of the harness: one more is still true.
        told || rest || (rebuilt && self.announced)
    }

    /// Returns the lines in sight that differ in a version, and after which no statement says so.
    pub fn outdated(&self, version: &Content) -> impl Iterator<Item = &Fragment> {
        self.fragments.iter().filter(|part| !part.superseded && !part.is_as_in(version.as_deref()))
    }
}

/// True if these are all lines of a text.
fn is_whole(text: &str, first: usize, last: usize) -> bool {
    first == 1 && last == text.split('\n').count()
}

/// True if a reader who knows the old text and sees these lines of the new one knows all of the new one: put over the old text
/// by their numbers they give it, or they reach its end, or the old text continues after the last of them.
pub fn is_all_new_within(old: &str, new: &str, first: usize, last: usize) -> bool {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let shown = &new[first - 1..last];
    if old.get(..first - 1) != Some(&new[..first - 1]) {
        return false;
    }
    let put_over = old.len() >= last && [&old[..first - 1], shown, &old[last..]].concat() == new;
    let goes_on = old.get(first - 1..last) != Some(shown)
        && (first - 1..old.len()).any(|at| old[at] == new[last - 1] && old[at..] == new[last - 1..]);
    put_over || last == new.len() || goes_on
}

/// Returns some lines of a text, counted from 1, both included; `None` where it has fewer.
pub fn lines(text: &str, first: usize, last: usize) -> Option<String> {
    let all: Vec<&str> = text.split('\n').collect();
    Some(all.get(first.checked_sub(1)?..last)?.join("\n"))
}

/// Files for which one more announcement is still true after the visible request was rebuilt.
pub type Rebuilt = BTreeSet<usize>;

/// An object whose whole text has to be in sight.
#[derive(Clone, Debug)]
pub struct Held {
    pub object: ObjectId,
    pub text: String,
    /// By a pin; else by an activation.
    pub pinned: bool,
    /// A person has restored it since the last point. No message says so: if the process ends now, it is forgotten.
    pub unsaved: bool,
}
