//! The steps of a schedule: plain data, drawn from a seed, so that a failing one can be shortened.

use serde::{Deserialize, Serialize};

/// The store that a schedule runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    Memory,
    Sqlite,
    /// Two machines, each with a journal and a queue, and one node.
    Xtdb,
}

/// A schedule: who takes part, and what happens one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Schedule {
    pub seed: u64,
    pub backend: Backend,
    pub clients: usize,
    pub files: usize,
    /// Some files are behind links.
    pub links: bool,
    /// Harnesses make edits without asking first.
    pub unguarded: bool,
    pub steps: Vec<Step>,
}

/// One step. Numbers are taken modulo what there is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A file changes by itself.
    Disk {
        file: usize,
        change: Change,
    },
    /// Something happens to a file's path: to its folder, or to the link that leads to it.
    Path {
        file: usize,
        change: PathChange,
    },
    /// The client hears of what has changed on disk.
    Events {
        client: usize,
        how: Delivery,
    },
    /// A tool that the model called runs to its end. The harness reports its result at once, or later.
    Act {
        client: usize,
        tool: Tool,
        call: CallId,
        late: bool,
    },
    /// The harness reports the oldest open result before it stores it.
    Receive {
        client: usize,
    },
    /// The answer and its results go to the engine, which returns the plan, and the next request goes out.
    Turn {
        client: usize,
        end: TurnEnd,
    },
    /// The harness asks for notices outside of a turn.
    Notices {
        client: usize,
    },
    /// A person rolls everything stale, or takes the last roll back.
    Roll {
        client: usize,
    },
    Undo {
        client: usize,
    },
    /// Back to an earlier point of the conversation.
    Back {
        client: usize,
        to: usize,
    },
    /// A new session continues from a point of this one.
    Fork {
        client: usize,
        from: usize,
    },
    /// The process ends. What was not handed over yet is in the harness's file, or not.
    Crash {
        client: usize,
        keep: bool,
    },
    /// The host puts a summary in place of what came before a message.
    Compact {
        client: usize,
        keep: usize,
    },
    /// A long pause: the provider has forgotten the prefix.
    Idle {
        client: usize,
    },
    /// Something goes wrong with the client's store from now on, or at once.
    Fault {
        client: usize,
        fault: Fault,
    },
    /// The client's store works again.
    Calm {
        client: usize,
    },
    /// All faults end, all events are delivered, and everybody takes a turn.
    Quiet,
}

/// The way in which a file changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// All of it is new.
    Whole(usize),
    /// One line is another one.
    Line(usize),
    Append,
    Cut(usize),
    Empty,
    Delete,
    /// It has the content again that it had this many changes ago.
    Old(usize),
}

/// The change at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathChange {
    /// The folder disappears with the file.
    FolderGone,
    FolderAway,
    FolderBack,
    /// Something else takes the file's place.
    Occupied(Occupant),
    /// The link leads to the one or the other of its files.
    Point(usize),
    /// The file changes to which the link does not lead.
    Beside,
}

/// An entry that may be at a path in a file's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Occupant {
    Folder,
    Pipe,
    DanglingLink,
}

/// The way in which events arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// All that wait, in their order.
    All,
    /// Only the oldest.
    One,
    /// All, each twice.
    Twice,
    /// All, the last one first.
    Reversed,
    /// They are lost, and the tracker says so.
    Lost,
}

/// The action that the model has a tool do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    Read {
        file: usize,
        part: Option<(usize, usize)>,
        spelling: Spelling,
    },
    Write {
        file: usize,
        lines: usize,
    },
    Edit {
        file: usize,
        line: usize,
    },
    /// `echo … >> file`
    Append {
        file: usize,
    },
    /// `cat file`
    Cat {
        file: usize,
    },
    /// `rm file`
    Remove {
        file: usize,
    },
    List,
    Grep {
        file: usize,
    },
    /// A tool that the engine does not look into, with this many lines of output.
    Custom {
        lines: usize,
    },
    Activate {
        output: usize,
    },
    Deactivate {
        output: usize,
    },
    Pin {
        output: usize,
    },
    Unpin {
        output: usize,
    },
}

/// The way in which the model writes a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spelling {
    Absolute,
    Relative,
    /// With an `@` in front, as Pi allows.
    At,
}

/// The ID that the provider gives a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallId {
    Fresh,
    /// One of a few that come again.
    Repeated(usize),
}

/// The step after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// The model continues.
    Open,
    /// The model has answered, and the user asks something new.
    Prompt,
    /// Open results are reported all at once, then as `Open`.
    Together,
    /// The process ends before the harness has stored what the plan says.
    Lost,
}

/// The fault of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Nothing can be read or written.
    Away,
    /// Nothing can be written.
    Locked,
    Full,
    /// The call after this many others fails before it does anything.
    Once(usize),
    /// The next write is made, and reported as failed.
    After,
    /// Each call gives way to others first.
    Slow,
    /// All other clients look at the disk, and write the content there, right before this client's next write.
    Beside,
}
