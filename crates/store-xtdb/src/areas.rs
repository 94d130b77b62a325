//! Areas: objects that belong together, so that a client learns of changes that concern its sessions, and asks for nothing
//! else.
//!
//! An area is the files of one filesystem namespace, or what one session has written. Each transaction that writes objects
//! also puts a small document for each of their areas, which lists them: the area's changes. Its history is the area's log.
//! A client reads the logs of the areas that it works in, and not that of the database, which grows with everybody's
//! writes.
//!
//! Architecture invariant: every client of a database lists its changes.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::{Document, ObjectType};
use context_model::source::Source;
use context_model::time::{Timestamp, TxId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::http::Format;
use super::inner::{WRITERS, XtdbClient};
use super::wire::{FOREVER, number, xtdb_number};
use context_store::Result;

/// The field with the list: a JSON text, so that XTDB does not index each ID.
const CHANGES: &str = "context/changes";

/// XTDB looks for later transactions from this many milliseconds before the last known change: the clocks of a cluster's
/// nodes may differ by that much.
const OVERLAP: i64 = 60_000;

/// Number of digits of a list's hash that are noted.
const CHECK: usize = 16;

/// An area's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Area(String);

/// The position up to which a client has read an area's log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AreaPosition {
    /// The last transaction.
    pub tx: u64,
    /// Its time, to the second, in milliseconds; 0 if it is not known.
    #[serde(default)]
    pub millis: i64,
    /// The beginning of the hash of what that transaction listed, which no other one lists; `None` where the log was empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
}

/// The changes that others made in an area.
pub(crate) struct AreaChanges {
    /// The objects, in the order of the first of these transactions that wrote each.
    pub changed: Vec<ChangedObject>,
    /// The position up to which the log was read.
    pub position: AreaPosition,
    /// False if the log lacks the last entry that was read: then the database has lost it, or is another one.
    pub is_continued: bool,
}

/// An object that others changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChangedObject {
    /// The first of the transactions that wrote it, and the last one.
    pub first: TxId,
    pub last: TxId,
    pub id: ObjectId,
}

/// The contents of `CHANGES`.
#[derive(Serialize, Deserialize)]
struct Changes {
    by: ObjectId,
    /// The run of the sender, where a journal sends; without it, of an earlier version of this library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    /// The number of the writer's mark, so that no two lists are equal.
    #[serde(default)]
    n: u64,
    ids: Vec<ObjectId>,
}

/// Who writes a transaction.
pub(super) struct Lister<'a> {
    /// The ID of the writer's mark.
    pub by: &'a ObjectId,
    /// The run of the sender, where a journal sends.
    pub run: Option<&'a str>,
    /// The number of the mark.
    pub number: u64,
}

impl Area {
    pub(crate) fn of(document: &Document) -> Self {
        let chat = document.field("chat_ref").and_then(Value::as_str);
        Self::from_parts(document.id(), document.object_type(), document.source(), chat)
    }

    /// The same, from the parts of an object that tell.
    pub(crate) fn from_parts(
        id: &ObjectId,
        kind: ObjectType,
        source: Option<&Source>,
        chat: Option<&str>,
    ) -> Self {
        match (kind, source, chat) {
            (ObjectType::File, Some(Source::Filesystem(file)), _) => {
                Self(format!("files:{}", file.filesystem_id))
            }
            (ObjectType::Toolcall, _, Some(chat)) => {
                Self::from_id(&ObjectId::new(chat)).unwrap_or_else(|| Self(format!("session:{chat}")))
            }
            _ => Self::from_id(id).unwrap_or_else(|| Self("other".into())),
        }
    }

    /// Returns the area of a session's own object, which its ID tells.
    pub(crate) fn from_id(id: &ObjectId) -> Option<Self> {
        let own = ["chat:", "session:", "system_prompt:"];
        let session = own.iter().find_map(|prefix| id.as_str().strip_prefix(prefix))?;
        Some(Self(format!("session:{session}")))
    }

    /// Returns the area of a version as XTDB has it.
    pub(crate) fn from_value(value: &Value) -> Option<Self> {
        let id = ObjectId::new(value["xt/id"].as_str()?);
        let kind = value["type"].as_str()?.parse().ok()?;
        let source = Source::from_value(value["source"].clone()).ok();
        Some(Self::from_parts(&id, kind, source.as_ref(), value["chat_ref"].as_str()))
    }

    /// True for the area of a session.
    pub(crate) fn is_of_a_session(&self) -> bool {
        self.0.starts_with("session:")
    }

    /// The ID of its document.
    pub(crate) fn id(&self) -> ObjectId {
        ObjectId::new(format!("changes:{}", self.0))
    }
}

/// The documents that list these objects, one for each area.
pub(super) fn listed<'a>(
    lister: &Lister<'_>,
    objects: impl Iterator<Item = (Area, &'a ObjectId)>,
) -> Vec<Value> {
    let mut lists: BTreeMap<Area, Vec<ObjectId>> = BTreeMap::new();
    for (area, id) in objects {
        let ids = lists.entry(area).or_default();
        if !ids.contains(id) {
            ids.push(id.clone());
        }
    }
    let document = |(area, ids): (Area, Vec<ObjectId>)| {
        let (by, run, n) = (lister.by.clone(), lister.run.map(str::to_owned), lister.number);
        let changes = Changes { by, run, n, ids };
        json!({ "xt/id": area.id(), CHANGES: serde_json::to_string(&changes).unwrap_or_default() })
    };
    lists.into_iter().map(document).collect()
}

impl XtdbClient {
    /// Returns others' writes in an area since this client read it last. The query begins with the newest, so that XTDB
    /// need not walk through the area's past. (From the oldest on and with a start, XTDB 1 on RocksDB has no answer for the
    /// ID with the greatest hash: it looks for the key behind the start, and finds none.)
    ///
    /// `own`: the name of this client and the run of its sender; another copy of the journal may have written under that
    /// name in another run. The last entry that was read is requested once more: the answer to a question from another position
    /// lacks it, and so does a database that has lost it. In `is_first` of several looks it counts as the latter.
    pub(super) async fn changes_in(
        &self,
        area: &Area,
        since: &AreaPosition,
        own: (&str, Option<&str>),
        is_first: bool,
    ) -> Result<AreaChanges> {
        let request = self.read("entity", Format::Json).with("eid", area.id()).with("history", true);
        let request = request.with("sort-order", "desc").with("with-corrections", true);
        let mut request = request.with("with-docs", true).with("valid-time", FOREVER);
        let check = since.check.as_ref();
        let last = xtdb_number(TxId(since.tx));
        if let Some(after) = if check.is_some() { last.and_then(|last| last.checked_sub(1)) } else { last } {
            request = request.with("end-tx-id", after);
        }
        if since.millis > OVERLAP {
            request = request.with("end-valid-time", Timestamp::from_millis(since.millis - OVERLAP));
        }
        let by = ObjectId::new(format!("{WRITERS}{}", own.0));
        let id = area.id();
        let mut changed: BTreeMap<ObjectId, (TxId, TxId)> = BTreeMap::new();
        let mut position = since.clone();
        let (mut seen, mut is_continued) = (TxId(0), check.is_none());
        // A change reported twice, because a node ended in the middle, makes no difference.
        let row = |row: Value| {
            if row["doc"].get("xt/id").is_some_and(|name| *name != *id.as_str()) {
                return Err(self.nodes.foreign(id.as_str()));
            }
            let Some(tx) = row["txId"].as_u64().map(number) else {
                return Err(self.nodes.foreign(id.as_str()));
            };
            let time = row["txTime"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
            let text = row["doc"][CHANGES].as_str();
            let hash = text.map(|text| Digest::of(text.as_bytes()).to_string()[..CHECK].to_owned());
            seen = seen.max(tx);
            if check.is_some() && tx.0 <= since.tx {
                is_continued |= tx.0 == since.tx && hash.as_ref() == check;
                return Ok(true);
            }
            if tx.0 >= position.tx {
                (position.tx, position.check) = (tx.0, hash);
            }
            position.millis = position.millis.max(time.map_or(0, Timestamp::millis));
            // A foreign document under this ID is treated as an empty list.
            let list: Option<Changes> = text.and_then(|text| serde_json::from_str(text).ok());
            let is_own =
                |list: &Changes| list.by == by && (list.run.is_none() || list.run.as_deref() == own.1);
            if let Some(Changes { ids, .. }) = list.filter(|list| !is_own(list)) {
                for id in ids {
                    let (first, last) = changed.entry(id).or_insert((tx, tx));
                    (*first, *last) = (tx.min(*first), tx.max(*last));
                }
            }
            Ok(true)
        };
        self.nodes.each(|| request.clone(), row).await?;
        if !is_continued && !is_first {
            return Err(self.nodes.foreign(id.as_str()));
        }
        // Whatever was seen must also be seen by later reads, whichever node answers them.
        self.known.fetch_max(seen.0, Ordering::AcqRel);
        self.cache(|cache| changed.keys().for_each(|id| cache.forget(id)));
        let changed = changed.into_iter().map(|(id, (first, last))| ChangedObject { first, last, id });
        let mut changed: Vec<ChangedObject> = changed.collect();
        changed.sort();
        Ok(AreaChanges { changed, position, is_continued })
    }
}

#[cfg(test)]
mod tests {
    use context_model::id::SessionId;
    use context_model::source::FilesystemSource;

    use super::*;

    #[test]
    fn a_sessions_objects_share_an_area_and_its_files_are_in_that_of_their_namespace() {
        let session = SessionId::new("s:1").unwrap();
        let own = [ObjectId::chat(&session), ObjectId::session(&session), ObjectId::system_prompt(&session)];
        let areas: Vec<_> = own.iter().map(|id| Area::from_id(id).unwrap()).collect();
        let call = Area::from_parts(
            &ObjectId::new("call"),
            ObjectType::Toolcall,
            None,
            Some(ObjectId::chat(&session).as_str()),
        );
        assert!(areas.iter().all(|area| *area == call && area.id().as_str() == "changes:session:s:1"));
        let source = FilesystemSource { filesystem_id: "disk".into(), path: "/a".into() };
        let file = Document::file(source, None, None);
        assert_eq!(Area::of(&file).id().as_str(), "changes:files:disk");
        assert_eq!(Area::from_id(file.id()), None);
    }

    #[test]
    fn each_area_lists_its_objects_once() {
        let (a, b, by) = (ObjectId::new("a"), ObjectId::new("b"), ObjectId::new("writer:w"));
        let area = |name: &str| Area(name.into());
        let objects = [(area("x"), &a), (area("y"), &b), (area("x"), &a), (area("x"), &b)];
        let lister = Lister { by: &by, run: None, number: 1 };
        let documents = listed(&lister, objects.into_iter());
        let lists: Vec<Changes> = documents
            .iter()
            .map(|document| serde_json::from_str(document[CHANGES].as_str().unwrap()).unwrap())
            .collect();
        assert_eq!(lists[0].ids, [a, b.clone()]);
        assert_eq!(lists[1].ids, [b]);
    }
}
