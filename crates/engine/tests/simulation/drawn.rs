//! Schedules drawn by a seed.

use crate::rng::Rng;
use crate::steps::{
    Backend, CallId, Change, Delivery, Fault, Occupant, PathChange, Schedule, Spelling, Step, Tool, TurnEnd,
};

impl Schedule {
    /// The schedule of a seed on another backend than the one that it draws.
    pub fn on(seed: u64, backend: Backend) -> Self {
        Self { backend, ..Self::from_seed(seed) }
    }

    pub fn from_seed(seed: u64) -> Self {
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
