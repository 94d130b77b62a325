//! Histories on their way to JavaScript. Their documents share their common parts there, so a chat's history takes the
//! memory of its longest version and not of all of them; and each version costs as much as its change.

use std::collections::BTreeMap;

use context_model::hash;
use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::patch::Patch;
use context_model::time::{Timestamp, TxId};
use context_store::{Change, Entry, Erased, Store, Version};
use napi::bindgen_prelude::Env;
use napi_derive::napi;
use serde_json::{Map, Value, json};

use crate::error::Coded;
use crate::json::{object, text, whole};

/// The most versions of one text, which are in memory at a time on their way to JavaScript.
const PAGE: usize = 256;

/// JavaScript keeps whole numbers up to this one.
const SAFE: u64 = (1 << 53) - 1;

/// The content hash of a payload in JSON.
#[napi]
#[allow(dead_code, reason = "only JavaScript calls it")]
pub(crate) fn content_hash(env: &Env, payload: String) -> napi::Result<String> {
    let payload = object(payload, "a payload").map_err(|error| error.into_napi(env))?;
    Ok(hash::content_hash(&payload).to_string())
}

/// The beginning of a part of a history.
struct Start {
    /// The valid time and transaction of the version before it.
    after: Option<(Timestamp, TxId)>,
    /// Without that version: the last transaction that is left out.
    tx: TxId,
}

impl Start {
    fn covers(&self, valid_time: Timestamp, tx: TxId) -> bool {
        Some((valid_time, tx)) > self.after && tx > self.tx
    }
}

/// The history of an object as texts, which lib/core/json.ts reads: the versions after the one that a transaction wrote, at
/// most this many, but all that one transaction wrote. After a transaction that wrote no version of the object: the versions
/// of later ones.
pub(crate) async fn of(
    store: &dyn Store,
    id: &ObjectId,
    after: TxId,
    most: usize,
) -> Result<Vec<String>, Coded> {
    let before = store.version(id, after).await?;
    let mut start = match before {
        Some(before) => Start { after: Some((before.valid_time, before.tx_id)), tx: TxId(0) },
        None => Start { after: None, tx: after },
    };
    if let Some(entries) = store.history_as_changes(id).await?
        && let Some(pages) = pages(entries, &start, most)?
    {
        return Ok(pages);
    }
    if most == 0 {
        return Ok(Vec::new());
    }
    let (mut pages, mut last, mut count): (_, Option<Version>, _) = (Vec::new(), None, 0);
    loop {
        let left = most.saturating_sub(count);
        let mut page = store.history_part(id, start.after, left.clamp(1, PAGE)).await?;
        let Some(newest) = page.last() else { break };
        start.after = Some((newest.valid_time, newest.tx_id));
        page.retain(|version| version.tx_id > start.tx);
        // Enough, but for more versions of the same transaction, which XTDB got together.
        let is_same = |version: &Version| last.as_ref().is_some_and(|last| last.tx_id == version.tx_id);
        if left == 0 && !page.iter().all(is_same) {
            break;
        }
        if page.is_empty() {
            continue;
        }
        count += page.len();
        let mut steps = Vec::with_capacity(page.len());
        for version in page {
            steps.push(step(last.as_ref(), &version));
            last = Some(version);
        }
        pages.push(text(&steps)?);
    }
    Ok(pages)
}

/// The pages of a history that is given as changes: at most this many versions, but all of a transaction. `None` if one of
/// its versions does not follow the one before, so that it must be given version by version.
fn pages(entries: Vec<Entry>, start: &Start, most: usize) -> Result<Option<Vec<String>>, Coded> {
    let (mut pages, mut steps, mut count, mut last) = (Vec::new(), Vec::new(), 0, TxId(0));
    let mut growing: Option<Growing> = None;
    for entry in entries {
        if count >= most && entry.tx_id != last {
            break;
        }
        let Entry { change, tx_id, tx_time, valid_time, erased } = entry;
        let changed = match (change, &mut growing) {
            (Change::Patch(patch), Some(growing)) => growing.change(&patch, valid_time, erased)?,
            (Change::Document(document), before)
                if before.as_ref().is_none_or(|before| before.valid_time <= valid_time) =>
            {
                *before = Some(Growing::new(document, valid_time, erased));
                None
            }
            _ => return Ok(None),
        };
        let Some(growing) = growing.as_ref().filter(|_| start.covers(valid_time, tx_id)) else { continue };
        let times =
            json!({ "txId": tx_id.0, "txTime": tx_time.to_string(), "validTime": valid_time.to_string() });
        steps.push(growing.step(changed.filter(|_| count > 0), times));
        (count, last) = (count + 1, tx_id);
        if steps.len() == PAGE {
            pages.push(text(&std::mem::take(&mut steps))?);
        }
    }
    if !steps.is_empty() {
        pages.push(text(&steps)?);
    }
    Ok(Some(pages))
}

/// The fields that a patch changes: for each of them its place in its list, if it is one and remains one.
type Changed = BTreeMap<String, Option<usize>>;

/// A document that changes by patches.
struct Growing {
    /// The envelope in JSON.
    envelope: Map<String, Value>,
    /// The payload in JSON.
    payload: Value,
    valid_time: Timestamp,
    erased: Option<Erased>,
    /// True if JavaScript can compute the content hash when a caller asks for it, because it has the same numbers.
    is_exact: bool,
}

impl Growing {
    fn new(document: Document, valid_time: Timestamp, erased: Option<Erased>) -> Self {
        let envelope = envelope(&document);
        let payload = Value::Object(document.into_parts().3);
        Self { envelope, is_exact: is_exact(&payload), payload, valid_time, erased }
    }

    fn change(
        &mut self,
        patch: &Patch,
        valid_time: Timestamp,
        erased: Option<Erased>,
    ) -> Result<Option<Changed>, Coded> {
        let operations = serde_json::to_value(patch)
            .map_err(|error| Coded::failed(format!("a change can't be read: {error}")))?;
        let changed = self.changed(&operations);
        self.is_exact &= is_exact(&operations);
        patch.change(&mut self.payload)?;
        if let Value::Object(payload) = &mut self.payload {
            payload.remove("content_hash");
            if !self.is_exact {
                let hash = hash::content_hash(payload).to_string();
                payload.insert("content_hash".into(), hash.into());
            }
        }
        self.valid_time = valid_time;
        // Text erased in one version is erased in those that follow from it.
        self.erased = erased.or(self.erased.take());
        Ok(changed)
    }

    /// `None` if the operations change the payload as a whole.
    fn changed(&self, operations: &Value) -> Option<Changed> {
        let mut changed = Changed::new();
        for operation in operations.as_array()? {
            let path = operation.get("path").and_then(Value::as_str)?;
            let mut tokens = path.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~"));
            let field = tokens.next()?;
            let list = self.payload.get(&field).and_then(Value::as_array);
            let place = tokens.next().and_then(|token| match (token.as_str(), list) {
                ("-", Some(list)) => Some(list.len()),
                (token, Some(list)) => token.parse().ok().filter(|place| *place <= list.len()),
                (_, None) => None,
            });
            let known = changed.entry(field).or_insert(place);
            *known = known.zip(place).map(|(known, place)| known.min(place));
        }
        Some(changed)
    }

    /// A step to this version from the one before; the whole version without `changed`.
    fn step(&self, changed: Option<Changed>, mut version: Value) -> Value {
        let (mut fields, mut lists, mut kept) = (self.envelope.clone(), Vec::new(), Vec::new());
        for (name, value) in self.payload.as_object().into_iter().flatten() {
            match changed.as_ref().map(|changed| changed.get(name)) {
                None => drop(fields.insert(name.clone(), value.clone())),
                Some(None) if name == "content_hash" => drop(fields.insert(name.clone(), value.clone())),
                Some(None) => kept.push(name),
                Some(Some(place)) => match (place, value.as_array()) {
                    (Some(place), Some(list)) if *place <= list.len() && name != "__proto__" => {
                        fields.insert(name.clone(), json!(list[*place..]));
                        lists.push((name, *place));
                    }
                    _ => drop(fields.insert(name.clone(), value.clone())),
                },
            }
        }
        version["document"] = fields.into();
        if let Some(erased) = &self.erased {
            version["erased"] = json!({ "at": erased.at.to_string(), "why": erased.why });
        }
        json!([version, lists, kept])
    }
}

/// True if all numbers are the same in JavaScript.
fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) if number.is_f64() => true,
        Value::Number(number) => {
            number.as_u64().or(number.as_i64().map(i64::unsigned_abs)).is_some_and(|number| number <= SAFE)
        }
        Value::Array(items) => items.iter().all(is_exact),
        Value::Object(fields) => fields.values().all(is_exact),
        _ => true,
    }
}

fn envelope(document: &Document) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("xt/id".into(), json!(document.id()));
    fields.insert("type".into(), document.object_type().as_str().into());
    fields.insert("source".into(), json!(document.source()));
    fields.insert("identity_hash".into(), document.identity_hash().to_string().into());
    fields
}

/// A version without the beginnings of lists that it shares with the one before it, and the lengths of these.
fn step(before: Option<&Version>, version: &Version) -> Value {
    let document = &version.document;
    let mut fields = envelope(document);
    let mut lists = Vec::new();
    for (name, value) in document.payload() {
        let earlier = before.and_then(|before| before.document.field(name)).and_then(Value::as_array);
        let (Some(earlier), Some(now)) = (earlier.filter(|_| name != "__proto__"), value.as_array()) else {
            fields.insert(name.clone(), value.clone());
            continue;
        };
        let count = earlier.iter().zip(now).take_while(|(a, b)| a == b).count();
        fields.insert(name.clone(), json!(now[count..]));
        lists.push((name, count));
    }
    json!([whole(version, fields.into()), lists, []])
}
