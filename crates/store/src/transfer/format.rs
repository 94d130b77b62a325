//! The lines of an export file.

use std::collections::HashSet;
use std::io::{BufRead, Read as _, Write};

use context_model::hash::{Digest, Hasher};
use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::patch::Patch;
use context_model::time::{Timestamp, TxId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::rules::History;
use super::{Result, Summary, TransferError};
use crate::{Change, Entry, Erased};

/// The name of the format in the first line.
const FORMAT: &str = "pi-context-manager/history";

/// The format version that this library writes and reads.
const VERSION: u64 = 1;

/// The longest line that is accepted, in bytes: several times the largest file that is stored.
const LONGEST_LINE: u64 = 256 << 20;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExportHead {
    format: String,
    version: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tail {
    sha256: Digest,
    objects: u64,
    versions: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename = "Line")]
struct ExportLine {
    object: ObjectId,
    position: u64,
    tx_id: TxId,
    tx_time: Timestamp,
    valid_time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<Patch>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    erased: Option<Erased>,
}

/// One version in a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Exported {
    pub object: ObjectId,
    /// The version's place in its object's history, from 0.
    pub position: u64,
    pub change: Change,
    /// The transaction in the store that it was exported from.
    pub tx_id: TxId,
    pub tx_time: Timestamp,
    pub valid_time: Timestamp,
    /// When and why the owner of that store erased text of this version.
    pub erased: Option<Erased>,
}

impl Exported {
    pub(super) fn new(object: ObjectId, position: u64, entry: Entry) -> Self {
        let Entry { change, tx_id, tx_time, valid_time, erased } = entry;
        Self { object, position, change, tx_id, tx_time, valid_time, erased }
    }

    /// Its line, with the line break.
    pub(super) fn line(&self) -> std::io::Result<Vec<u8>> {
        let (document, patch) = match &self.change {
            Change::Document(document) => (Some(Value::Object(document.to_json())), None),
            Change::Patch(patch) => (None, Some(patch.clone())),
        };
        line_of(&ExportLine {
            object: self.object.clone(),
            position: self.position,
            tx_id: self.tx_id,
            tx_time: self.tx_time,
            valid_time: self.valid_time,
            document,
            patch,
            erased: self.erased.clone(),
        })
    }
}

fn line_of(value: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// An export file while it is being written.
pub(super) struct Writing<'a> {
    out: std::io::BufWriter<&'a mut (dyn Write + Send)>,
    hasher: Hasher,
    summary: Summary,
}

impl<'a> Writing<'a> {
    pub(super) fn new(out: &'a mut (dyn Write + Send)) -> std::io::Result<Self> {
        let out = std::io::BufWriter::with_capacity(64 * 1024, out);
        let mut writing = Self { out, hasher: Hasher::default(), summary: Summary::default() };
        writing.line(&ExportHead { format: FORMAT.into(), version: VERSION })?;
        Ok(writing)
    }

    pub(super) fn version(&mut self, version: &Exported) -> std::io::Result<()> {
        self.summary.objects += u64::from(version.position == 0);
        self.summary.versions += 1;
        let line = version.line()?;
        self.bytes(&line)
    }

    pub(super) fn close(mut self) -> std::io::Result<Summary> {
        let Summary { objects, versions, .. } = self.summary;
        let sha256 = self.hasher.clone().finish();
        self.line(&Tail { sha256, objects, versions })?;
        self.out.flush()?;
        Ok(self.summary)
    }

    fn line(&mut self, value: &impl Serialize) -> std::io::Result<()> {
        self.bytes(&line_of(value)?)
    }

    fn bytes(&mut self, line: &[u8]) -> std::io::Result<()> {
        self.hasher.update(line);
        self.out.write_all(line)
    }
}

/// An export file while it is being read. Its form, its checksum and the rules of its documents are checked on the way.
pub(super) struct Reading<'a, R> {
    file: &'a mut R,
    hasher: Hasher,
    bytes: Vec<u8>,
    line: u64,
    /// The object of the last line, and the line's place in that object's history.
    last: Option<(ObjectId, u64)>,
    history: Option<History>,
    known: HashSet<ObjectId>,
    summary: Summary,
    is_done: bool,
}

impl<'a, R: BufRead> Reading<'a, R> {
    pub(super) fn new(file: &'a mut R) -> Result<Self> {
        let mut reading = Self {
            file,
            hasher: Hasher::default(),
            bytes: Vec::new(),
            line: 0,
            last: None,
            history: None,
            known: HashSet::new(),
            summary: Summary::default(),
            is_done: false,
        };
        reading.read()?;
        let head: ExportHead = serde_json::from_slice(&reading.bytes)
            .map_err(|_| reading.damaged("this is not an export of pi-context-manager"))?;
        if head.format != FORMAT {
            return Err(reading.damaged(&format!("this is a file of the format {}", head.format)));
        }
        if head.version != VERSION {
            return Err(reading.damaged(&format!(
                "the format has version {}, and this library reads {VERSION}",
                head.version
            )));
        }
        reading.hasher.update(&reading.bytes);
        Ok(reading)
    }

    pub(super) fn summary(&self) -> Summary {
        self.summary
    }

    /// The next version and its length in bytes. `None` after the last line, if that matches the file.
    pub(super) fn next(&mut self) -> Result<Option<(Exported, usize)>> {
        if self.is_done {
            return Ok(None);
        }
        self.read()?;
        if let Ok(tail) = serde_json::from_slice::<Tail>(&self.bytes) {
            return self.end(&tail).map(|()| None);
        }
        let line: ExportLine = serde_json::from_slice(&self.bytes)
            .map_err(|e| self.damaged(&format!("it is not a version: {e}")))?;
        self.hasher.update(&self.bytes);
        let change = match (line.document, line.patch) {
            (Some(value), None) => Change::Document(self.document(&line.object, value)?),
            (None, Some(patch)) => Change::Patch(patch),
            _ => return Err(self.damaged("a version must have either a document or a patch")),
        };
        let expected = match &self.last {
            Some((object, position)) if *object == line.object => position + 1,
            _ => 0,
        };
        if line.position != expected {
            return Err(self.damaged(&format!("version {expected} of {} is missing", line.object)));
        }
        if line.position == 0 {
            if !self.known.insert(line.object.clone()) {
                return Err(self.damaged(&format!("{} occurs a second time", line.object)));
            }
            let begun = History::begin(&line.object, &change, line.valid_time, line.erased.is_some());
            self.history = Some(begun.map_err(|why| self.damaged(&why))?);
        } else if let Some(history) = &mut self.history {
            let gone_on = history.go_on(&change, line.valid_time, line.erased.is_some());
            gone_on.map_err(|why| self.damaged(&why))?;
        }
        let change = match (change, &self.history) {
            // Only whole documents carry a mark.
            (Change::Patch(_), Some(history)) if line.erased.is_some() => {
                Change::Document(history.document().map_err(|why| self.damaged(&why))?)
            }
            (change, _) => change,
        };
        self.last = Some((line.object.clone(), line.position));
        self.summary.objects += u64::from(line.position == 0);
        self.summary.versions += 1;
        let ExportLine { object, position, tx_id, tx_time, valid_time, erased, .. } = line;
        let exported = Exported { object, position, change, tx_id, tx_time, valid_time, erased };
        Ok(Some((exported, self.bytes.len())))
    }

    fn document(&self, object: &ObjectId, value: Value) -> Result<Document> {
        let stored = value.get("content_hash").and_then(Value::as_str).map(str::to_owned);
        let document = Document::from_json(value).map_err(|e| self.damaged(&e.to_string()))?;
        if document.id() != object {
            return Err(self.damaged("the ID of the document differs from that of its line"));
        }
        if stored.is_none_or(|hash| hash != document.content_hash().to_string()) {
            return Err(self.damaged("the document does not match its hash"));
        }
        Ok(document)
    }

    fn end(&mut self, tail: &Tail) -> Result<()> {
        if self.hasher.clone().finish() != tail.sha256 {
            return Err(self.damaged("the checksum does not match: the file was changed"));
        }
        if (tail.objects, tail.versions) != (self.summary.objects, self.summary.versions) {
            return Err(self.damaged("the counts do not match: the file was changed"));
        }
        self.is_done = true;
        self.bytes.clear();
        if self.file.by_ref().take(1).read_to_end(&mut self.bytes)? > 0 {
            return Err(self.damaged("there is something after the checksum"));
        }
        Ok(())
    }

    fn read(&mut self) -> Result<()> {
        self.line += 1;
        self.bytes.clear();
        self.file.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut self.bytes)?;
        if self.bytes.len() as u64 == LONGEST_LINE {
            return Err(self.damaged("the line is too long"));
        }
        if self.bytes.last() != Some(&b'\n') {
            return Err(self.damaged("the file ends here, before its checksum"));
        }
        Ok(())
    }

    fn damaged(&self, what: &str) -> TransferError {
        TransferError::Damaged { line: self.line, what: what.to_owned() }
    }
}
