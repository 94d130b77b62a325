//! What happens in a schedule: plain data, drawn from a seed, so that a failing one can be shortened.

use serde::{Deserialize, Serialize};

use crate::rng::Rng;

/// What a schedule runs on.
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
    /// The answer and its results go to the engine, the plan comes back, and the next request goes out.
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
    /// A new session goes on from a point of this one.
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

/// How a file changes.
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
    /// It has the content again that it had so many changes ago.
    Old(usize),
}

/// What happens to a path.
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

/// What may be at a path in a file's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Occupant {
    Folder,
    Pipe,
    DanglingLink,
}

/// How events arrive.
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

/// What the model has a tool do.
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
    /// A tool that the engine does not look into, with so many lines of output.
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

/// How the model writes a path.
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

/// What comes at a turn's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// The model goes on.
    Open,
    /// The model has answered, and the user asks something new.
    Prompt,
    /// Open results are reported all at once, then as `Open`.
    Together,
    /// The process ends before the harness has stored what the plan says.
    Lost,
}

/// What goes wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Nothing can be read or written.
    Away,
    /// Nothing can be written.
    Locked,
    Full,
    /// The call after so many others fails before it does anything.
    Once(usize),
    /// The next write is made, and reported as failed.
    After,
    /// Each call gives way to others first.
    Slow,
    /// Everybody else looks at the disk, and writes what they see, right before this client's next write.
    Beside,
}

impl Schedule {
    /// The schedule of a seed on another backend than the one that it draws.
    pub fn on(seed: u64, backend: Backend) -> Self {
        Self { backend, ..Self::of_seed(seed) }
    }

    pub fn of_seed(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let backend = if rng.once_in(6) { Backend::Sqlite } else { Backend::Memory };
        let clients = 2 + rng.below(2);
        let files = 1 + rng.below(3);
        let length = 10 + rng.below(51);
        let calm = rng.once_in(2);
        let late = rng.once_in(3);
        let steps = (0..length).map(|_| Step::draw(&mut rng, clients, calm, late)).collect();
        Self { seed, backend, clients, files, links: true, unguarded: seed % 4 == 3, steps }
    }
}

impl Step {
    fn draw(rng: &mut Rng, clients: usize, calm: bool, late: bool) -> Self {
        // A fork may have come up.
        let forked = usize::from(rng.once_in(3));
        let client = rng.below(clients + forked);
        match rng.below(112) {
            0..14 => Self::Disk { file: rng.below(4), change: Change::draw(rng) },
            14..24 => Self::Events { client, how: Delivery::draw(rng) },
            24..60 => {
                let (tool, call, late) = (Tool::draw(rng), CallId::draw(rng), late && rng.once_in(2));
                Self::Act { client, tool, call, late }
            }
            60..64 => Self::Receive { client },
            64..83 => Self::Turn { client, end: TurnEnd::draw(rng) },
            83..85 => Self::Notices { client },
            85..87 => Self::Roll { client },
            87 => Self::Undo { client },
            88..90 => Self::Back { client, to: rng.below(8) },
            90 => Self::Fork { client, from: rng.below(4) },
            91..93 => Self::Crash { client, keep: rng.once_in(2) },
            93 => Self::Idle { client },
            94..97 if !calm => Self::Fault { client, fault: Fault::draw(rng) },
            97 if !calm => Self::Calm { client },
            104.. => Self::Path { file: rng.below(4), change: PathChange::draw(rng) },
            100..104 => Self::Compact { client, keep: rng.below(12) },
            _ => Self::Quiet,
        }
    }
}

impl Change {
    fn draw(rng: &mut Rng) -> Self {
        match rng.below(12) {
            0..2 => Self::Whole(*rng.of(&[1, 3, 30, 60])),
            2..6 => Self::Line(rng.below(40)),
            6..8 => Self::Append,
            8 => Self::Cut(rng.below(40)),
            9 => *rng.of(&[Self::Empty, Self::Delete]),
            10 => Self::Delete,
            _ => Self::Old(1 + rng.below(3)),
        }
    }
}

impl PathChange {
    fn draw(rng: &mut Rng) -> Self {
        match rng.below(12) {
            0..2 => Self::FolderGone,
            2 => Self::FolderAway,
            3..5 => Self::FolderBack,
            5 => Self::Occupied(*rng.of(&[Occupant::Folder, Occupant::Pipe, Occupant::DanglingLink])),
            6..10 => Self::Point(rng.below(2)),
            _ => Self::Beside,
        }
    }
}

impl Delivery {
    fn draw(rng: &mut Rng) -> Self {
        *rng.of(&[Self::All, Self::All, Self::One, Self::Twice, Self::Reversed, Self::Lost])
    }
}

impl Tool {
    fn draw(rng: &mut Rng) -> Self {
        let file = rng.below(4);
        let output = rng.below(6);
        match rng.below(100) {
            0..44 => {
                let part = rng.once_in(4).then(|| (1 + rng.below(20), 1 + rng.below(12)));
                let spelling = *rng.of(&[Spelling::Absolute, Spelling::Relative, Spelling::At]);
                Self::Read { file, part, spelling }
            }
            44..50 => Self::Write { file, lines: *rng.of(&[1, 5, 30, 60]) },
            50..64 => Self::Edit { file, line: rng.below(40) },
            64..68 => Self::Append { file },
            68..71 => Self::Cat { file },
            71 => Self::Remove { file },
            72 => Self::List,
            73 => Self::Grep { file },
            74..82 => Self::Custom { lines: *rng.of(&[0, 1, 20, 60, 300]) },
            82..88 => Self::Activate { output },
            88..93 => Self::Deactivate { output },
            93..97 => Self::Pin { output },
            _ => Self::Unpin { output },
        }
    }
}

impl CallId {
    fn draw(rng: &mut Rng) -> Self {
        if rng.once_in(5) { Self::Repeated(rng.below(2)) } else { Self::Fresh }
    }
}

impl TurnEnd {
    fn draw(rng: &mut Rng) -> Self {
        match rng.below(20) {
            0..9 => Self::Open,
            9..16 => Self::Prompt,
            16..19 => Self::Together,
            _ => Self::Lost,
        }
    }
}

impl Fault {
    fn draw(rng: &mut Rng) -> Self {
        match rng.below(12) {
            9.. => Self::Beside,
            0 => Self::Away,
            1..3 => Self::Locked,
            3 => Self::Full,
            4..7 => Self::Once(rng.below(12)),
            7 => Self::After,
            8 => Self::Slow,
        }
    }
}
