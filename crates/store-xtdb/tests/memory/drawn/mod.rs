//! Schedules that are drawn from a seed.

use crate::node::Way;

/// Number of files that the machines share.
pub const SHARED: u64 = 3;

/// The most machines.
pub const MOST_MACHINES: usize = 4;

/// Number of steps of a schedule.
const STEPS: usize = 24;

#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A file that all share, or one of the machine's own.
    Write {
        machine: usize,
        shared: bool,
        file: u64,
    },
    Pull {
        machine: usize,
    },
    Flush {
        machine: usize,
    },
    Network {
        machine: usize,
        way: Way,
    },
    Restart {
        machine: usize,
    },
    /// Another machine begins with a copy of this one's folder, while this one runs.
    Copy {
        machine: usize,
    },
    Backup {
        machine: usize,
    },
    /// The journal's folder is restored from its backup; its unsent writes are sent before.
    Restore {
        machine: usize,
    },
    /// The hint file is gone.
    Hint {
        machine: usize,
    },
    /// The database loses this many of its transactions.
    Rewind {
        lost: usize,
    },
    /// Another client writes a session, without a journal.
    Session,
    /// A machine reads all sessions.
    Read {
        machine: usize,
    },
    /// The owner of the database removes the newest session.
    Prune,
    /// A machine's clock goes wrong by so much, or is right again.
    Clock {
        machine: usize,
        millis: i64,
    },
}

/// Numbers that depend on a seed only.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }

    fn step(&mut self) -> Step {
        let machine = usize::try_from(self.below(MOST_MACHINES as u64)).unwrap();
        match self.below(26) {
            21 => Step::Session,
            22 | 23 => Step::Read { machine },
            24 => Step::Prune,
            25 => {
                let way = [Way::Page, Way::Mixed, Way::Cached][usize::try_from(self.below(3)).unwrap()];
                Step::Network { machine, way }
            }
            20 => {
                let hours = 3 * 3_600_000;
                let millis = [0, 1, -1, hours, -hours, 0][usize::try_from(self.below(6)).unwrap()];
                Step::Clock { machine, millis }
            }
            0..=6 => Step::Write { machine, shared: self.below(2) == 0, file: self.below(SHARED) },
            7..=9 => Step::Pull { machine },
            10 | 11 => Step::Flush { machine },
            12 | 13 => {
                let way =
                    [Way::Open, Way::Away, Way::Deaf, Way::Open][usize::try_from(self.below(4)).unwrap()];
                Step::Network { machine, way }
            }
            14 => Step::Restart { machine },
            15 => Step::Copy { machine },
            16 => Step::Backup { machine },
            17 => Step::Restore { machine },
            18 => Step::Hint { machine },
            _ => Step::Rewind { lost: usize::try_from(1 + self.below(6)).unwrap() },
        }
    }
}

/// The steps of a seed. A journal from a backup lacks the versions that a database loses later, so a schedule has only one
/// of both.
pub fn schedule(seed: u64) -> Vec<Step> {
    let mut drawn = Drawn(seed);
    let restores = seed.is_multiple_of(2);
    let is_apart = |step: &Step| match step {
        Step::Restore { .. } => restores,
        Step::Rewind { .. } => !restores,
        _ => true,
    };
    std::iter::repeat_with(|| drawn.step()).filter(is_apart).take(STEPS).collect()
}
