//! What a result is that comes as a message: an output, a line of ours or a host's text in place of one, or a picture.

use context_tools::Placeholder;

use crate::taken::Arrival;

/// The kind of a result. It decides how the result is taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// The output of a call that has no record. The call is recorded first, and then the kind is decided again.
    Unrecorded,
    /// The result of a recorded call that is part of no turn of the session. It joins the current one first, and then the kind
    /// is decided again.
    Unjoined,
    /// A text of no recorded call, which stays as it is.
    Unknown,
    /// Our reference to the output, with or without lines of later calls. It stays as it is.
    Reference,
    /// A host's text in place of the output, at most as long as our reference. It stays as it is.
    Placeholder,
    /// A longer text of a host in place of the output, which may leave the request.
    LongPlaceholder,
    /// An output with a picture, which stays as it is.
    Picture,
    /// An output.
    Output,
}

/// The facts that decide the kind of a result.
#[derive(Clone, Copy, Debug)]
pub struct ResultFacts {
    /// The moment at which it is taken in.
    pub arrival: Arrival,
    /// Its text is a host's in place of an output. A result with a picture has none.
    pub placeholder: Option<Placeholder>,
    /// It has a picture.
    pub has_image: bool,
    /// Its call, if that is recorded.
    pub call: Option<RecordedCall>,
}

/// The recorded call of a result.
#[derive(Clone, Copy, Debug)]
pub struct RecordedCall {
    /// It is part of a turn of the session.
    pub is_joined: bool,
    /// The result's text is our reference to its output.
    pub is_reference: bool,
    /// The result's text has more tokens than our reference.
    pub is_longer: bool,
}

impl ResultFacts {
    /// Returns the kind of the result.
    #[must_use]
    pub fn kind(&self) -> ResultKind {
        let Some(call) = self.call else {
            // A host's text in place of an output is neither an output nor a version of a file.
            let is_output = self.placeholder.is_none() && self.arrival.is_recorded_now();
            return if is_output { ResultKind::Unrecorded } else { ResultKind::Unknown };
        };
        if self.arrival.is_recorded_now() && !call.is_joined {
            return ResultKind::Unjoined;
        }
        match self.placeholder {
            _ if call.is_reference => ResultKind::Reference,
            Some(_) if call.is_longer => ResultKind::LongPlaceholder,
            Some(_) => ResultKind::Placeholder,
            None if self.has_image => ResultKind::Picture,
            None => ResultKind::Output,
        }
    }
}

impl ResultKind {
    /// True for a text in place of the output, ours or a host's.
    #[must_use]
    pub fn is_in_its_place(self) -> bool {
        matches!(self, Self::Reference | Self::Placeholder | Self::LongPlaceholder)
    }
}

#[cfg(test)]
#[path = "kind_tests.rs"]
mod tests;
