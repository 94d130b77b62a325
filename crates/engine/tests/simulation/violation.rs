//! The ways in which notices and answers to sessions can be wrong.

/// The violation that a schedule has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub kind: Kind,
    pub what: String,
}

/// The kinds of violations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An answer says that lines are unchanged and in sight, and they are not.
    FalseUnchanged,
    /// They are not in the request that the answer is in.
    PointerGone,
    /// A difference does not lead from what is in sight to what is on the disk.
    FalseDifference,
    /// A file is not what the model was shown, and nothing has said so.
    Missed,
    /// The same where the lines that are in sight are as they were.
    MissedRest,
    /// The same of a part that was read, where the model read another part later.
    MissedPart,
    /// A notice of what the model knows already.
    Repeated,
    /// A notice that says something wrong.
    FalseNotice,
    /// The store has not what is on the disk.
    Behind,
    /// An edit of what the model has not seen.
    Unrefused,
    /// A refusal where it has.
    WronglyRefused,
    /// A refusal whose difference is none of what the model knows.
    FalseRefusal,
    /// An acknowledged object is not there.
    Lost,
    /// The chat is not the conversation.
    Chat,
    /// The sets contradict each other, the store or what was asked.
    Sets,
    /// The versions of a file are not what was on the disk.
    History,
    /// A request does not extend the one before.
    Rewritten,
    /// A pinned or activated object is not whole.
    NotWhole,
    /// A listener has not heard of a change, or more than once.
    Unheard,
    /// A call failed, and nothing was wrong.
    Failed,
}

pub type Outcome<T = ()> = Result<T, Violation>;

pub fn violation<T>(kind: Kind, what: impl Into<String>) -> Outcome<T> {
    Err(Violation { kind, what: what.into() })
}
