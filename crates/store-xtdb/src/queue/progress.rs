//! A hint file next to the journal: the progress of sending and reading. It may lag behind, but is never ahead.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use context_model::time::TxId;
use serde::{Deserialize, Serialize};

use crate::areas::{Area, AreaPosition};
use context_store::{Result, StoreError};

/// The most areas that are noted.
const MOST_AREAS: usize = 256;

/// Opens an empty file next to the journal, private to its owner whatever the umask.
pub(super) fn private(path: &Path) -> std::io::Result<File> {
    context_platform::private_file(File::options().create(true).truncate(true).write(true), path)
}

/// A transaction of the journal and its time. A journal that has none of that time at that number is another one: an
/// older one from a backup, or a copy that was worked on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JournalPlace {
    pub tx: u64,
    /// In milliseconds since 1970; `None` in notes of earlier versions of this library.
    #[serde(default)]
    pub millis: Option<i64>,
}

/// The transactions known to be sent, and the mark that the writer had in XTDB then. A database with an older mark is
/// another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sent {
    /// The journal's newest transaction that XTDB is known to have.
    #[serde(flatten)]
    pub place: JournalPlace,
    /// The writer's name and the number of its mark; `None` if it had none.
    #[serde(default)]
    pub mark: Option<(String, u64)>,
    /// XTDB's transaction that wrote this mark; `None` where that is not known.
    #[serde(default)]
    pub mark_tx: Option<u64>,
}

/// The file's content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ProgressMarks {
    /// [`Sent`].
    sent: u64,
    #[serde(default)]
    sent_millis: Option<i64>,
    #[serde(default)]
    mark: Option<(String, u64)>,
    #[serde(default)]
    mark_tx: Option<u64>,
    /// XTDB's newest transaction at the first contact; `None` before that.
    seen: Option<u64>,
    /// The same for the areas that the journal has read further than that.
    #[serde(default)]
    areas: BTreeMap<Area, AreaPosition>,
    /// The journal's position when the last of these was noted.
    #[serde(default)]
    journal: Option<JournalPlace>,
}

/// The file, and its content.
pub(super) struct Progress {
    path: PathBuf,
    marks: Mutex<ProgressMarks>,
}

impl Progress {
    pub(super) fn open(path: PathBuf) -> Result<Self> {
        let marks = match std::fs::read(&path) {
            // A damaged hint is ignored: XTDB is asked for everything again.
            Ok(bytes) => serde_json::from_slice(&bytes)
                .unwrap_or(ProgressMarks { seen: Some(0), ..ProgressMarks::default() }),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => ProgressMarks::default(),
            Err(e) => {
                return Err(StoreError::Unavailable(format!(
                    "{} can't be read: {}; let this user read and write it and its folder, or choose another journal",
                    path.display(),
                    context_platform::reason(&e)
                )));
            }
        };
        Ok(Self { path, marks: Mutex::new(marks) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the notes of another process. Returns the progress of sending.
    pub(super) fn reload(&self) -> TxId {
        let noted = std::fs::read(&self.path)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<ProgressMarks>(&bytes).ok());
        if let Some(noted) = noted {
            *self.marks.lock().unwrap_or_else(PoisonError::into_inner) = noted;
        }
        TxId(self.sent().place.tx)
    }

    pub(super) fn was_connected(&self) -> bool {
        self.marks().seen.is_some()
    }

    pub(super) fn sent(&self) -> Sent {
        let marks = self.marks();
        let place = JournalPlace { tx: marks.sent, millis: marks.sent_millis };
        Sent { place, mark: marks.mark, mark_tx: marks.mark_tx }
    }

    /// Notes the first contact. Earlier versions in the database are read when they are needed.
    pub(super) fn connected(&self, latest: TxId) -> Result<()> {
        self.change(|marks| marks.seen = Some(latest.0))
    }

    /// The newest transaction of XTDB that one of the notes is about.
    pub(super) fn newest(&self) -> TxId {
        let marks = self.marks();
        let areas = marks.areas.values().map(|position| position.tx);
        TxId(areas.chain(marks.seen).max().unwrap_or(0))
    }

    /// The position up to which the journal has read the log of an area.
    pub(super) fn position(&self, area: &Area) -> AreaPosition {
        let marks = self.marks();
        let seen = AreaPosition { tx: marks.seen.unwrap_or(0), ..AreaPosition::default() };
        marks.areas.get(area).cloned().filter(|position| position.tx >= seen.tx).unwrap_or(seen)
    }

    /// Notes how far the journal has read the log of an area. `journal`: the journal's position now.
    pub(super) fn note_position(
        &self,
        area: &Area,
        position: AreaPosition,
        journal: JournalPlace,
    ) -> Result<()> {
        self.change(|marks| {
            let areas = &mut marks.areas;
            if areas.insert(area.clone(), position.clone()) != Some(position) {
                marks.journal = Some(journal);
            }
            // Of an area that is left out, everything is read again.
            while areas.len() > MOST_AREAS {
                let oldest =
                    areas.iter().min_by_key(|(_, position)| position.tx).map(|(area, _)| area.clone());
                oldest.map(|area| areas.remove(&area));
            }
        })
    }

    /// The journal's position when the last position of an area was noted.
    pub(super) fn journal(&self) -> Option<JournalPlace> {
        self.marks().journal
    }

    /// Forgets how far the journal has read: it, or the database, is not the one that this was noted about.
    pub(super) fn forget_positions(&self) -> Result<()> {
        self.change(|marks| {
            marks.areas.clear();
            marks.seen = Some(0);
            marks.journal = None;
        })
    }

    pub(super) fn note_sent(&self, sent: Sent) -> Result<()> {
        self.change(|marks| {
            (marks.sent, marks.sent_millis) = (sent.place.tx, sent.place.millis);
            (marks.mark, marks.mark_tx) = (sent.mark, sent.mark_tx);
        })
    }

    fn change(&self, change: impl FnOnce(&mut ProgressMarks)) -> Result<()> {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let before = marks.clone();
        change(&mut marks);
        if *marks == before {
            return Ok(());
        }
        let failed = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::StorageFull => StoreError::Full(format!("{}: {e}", self.path.display())),
            _ => StoreError::Unavailable(format!("{} can't be written: {e}", self.path.display())),
        };
        let bytes = serde_json::to_vec(&*marks).map_err(|e| failed(e.into()))?;
        let mut temporary = self.path.as_os_str().to_owned();
        temporary.push(format!(".{}", std::process::id()));
        private(std::path::Path::new(&temporary))
            .and_then(|mut file| file.write_all(&bytes))
            .map_err(failed)?;
        std::fs::rename(&temporary, &self.path).map_err(failed)
    }

    fn marks(&self) -> ProgressMarks {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
