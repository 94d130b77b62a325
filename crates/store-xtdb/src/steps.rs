//! The rest of an object, while the object is being evicted and put back.

use std::sync::Arc;

use context_model::id::ObjectId;
use context_model::time::Timestamp;
use serde_json::Value;

use super::areas::{Area, listed};
use super::http::Format;
use super::inner::XtdbClient;
use super::wire::{FOREVER, Ops};
use super::write::MARK_TIME;
use super::writer::NodeWriter;
use context_store::{Result, StoreError};

/// The field of a step with the object's ID.
pub(super) const STEP: &str = "context/erasing";

/// The field of a part with its step's ID.
pub(super) const PART: &str = "context/part";

/// The most bytes and versions that one part has.
const PART_BYTES: usize = 1 << 20;
const PART_VERSIONS: usize = 64;

/// The most objects that one transaction evicts.
pub(super) const EVICTED: usize = 64;

impl XtdbClient {
    /// Completes all that was begun.
    pub(super) async fn complete(self: &Arc<Self>, writer: &mut NodeWriter) -> Result<()> {
        for step in self.steps().await? {
            self.put_back(writer, step).await?;
        }
        // Parts without a step: their object is not evicted yet, and still has everything.
        let query = format!("{{:find [e] :where [[e :{PART}]]}}");
        for ids in self.found(&query).await?.chunks(EVICTED) {
            let mut ops = Ops::default();
            ids.iter().for_each(|id| ops.evict(id));
            self.step(writer, ops).await?;
        }
        Ok(())
    }

    /// Evicts an object and puts back its rest, from where its step says.
    pub(super) async fn put_back(self: &Arc<Self>, writer: &mut NodeWriter, mut step: Value) -> Result<()> {
        let lost = || StoreError::Corrupt("what stays of an erased object can't be read".into());
        let id = ObjectId::new(step["xt/id"].as_str().unwrap_or_default());
        let object = ObjectId::new(step[STEP].as_str().ok_or_else(lost)?);
        let parts = step["parts"].as_u64().ok_or_else(lost)?;
        let at = Some(Timestamp::from_millis(MARK_TIME));
        let mut ops = Ops::default();
        if step["next"].is_null() {
            ops.matches(&id, Some(&step), FOREVER);
            ops.evict(&object);
            step["next"] = 0.into();
            ops.put(&step, at);
            self.step(writer, ops).await?;
        }
        for k in step["next"].as_u64().ok_or_else(lost)?..parts {
            let part = part_id(id.as_str(), usize::try_from(k).unwrap_or_default());
            let value = self.newest(&part).await?.ok_or_else(lost)?;
            let versions: Vec<(Value, Timestamp)> =
                serde_json::from_str(value["versions"].as_str().unwrap_or_default()).map_err(|_| lost())?;
            let mut ops = Ops::default();
            ops.matches(&id, Some(&step), FOREVER);
            for (value, valid_time) in &versions {
                ops.put(value, Some(*valid_time));
            }
            let area = versions.first().and_then(|(value, _)| Area::from_value(value));
            for list in listed(&writer.lister(), area.map(|area| (area, &object)).into_iter()) {
                ops.put(&list, None);
            }
            ops.evict(&ObjectId::new(part));
            if k + 1 == parts {
                ops.evict(&id);
            } else {
                step["next"] = (k + 1).into();
                ops.put(&step, at);
            }
            self.step(writer, ops).await?;
        }
        Ok(())
    }

    /// The objects whose rest has not been put back yet.
    pub(super) async fn steps(&self) -> Result<Vec<Value>> {
        let mut steps = Vec::new();
        for id in self.found(&format!("{{:find [e] :where [[e :{STEP}]]}}")).await? {
            steps.extend(self.newest(id.as_str()).await?);
        }
        Ok(steps)
    }

    /// The IDs that a query finds.
    async fn found(&self, query: &str) -> Result<Vec<ObjectId>> {
        let request = self.read("query", Format::Json).with("query-edn", query).with("valid-time", FOREVER);
        let rows = self.nodes.send(&request).await?.json()?;
        let ids = rows.as_array().into_iter().flatten().filter_map(|row| row[0].as_str());
        Ok(ids.map(ObjectId::new).collect())
    }
}

pub(super) fn part_id(step: &str, place: usize) -> String {
    format!("{step}/{place}")
}

/// Divides versions into those that one transaction can put: XTDB keeps several of one object only if their valid times
/// differ, and a history has them in the order of their transactions.
pub(super) fn parts(versions: Vec<(Value, Timestamp)>) -> Vec<Vec<(Value, Timestamp)>> {
    let mut parts: Vec<Vec<(Value, Timestamp)>> = Vec::new();
    let mut bytes = 0;
    for (value, valid_time) in versions {
        let length = value.to_string().len();
        let fits = parts.last().is_some_and(|part| {
            let rises = part.last().is_some_and(|(_, last)| *last < valid_time);
            rises && part.len() < PART_VERSIONS && bytes + length <= PART_BYTES
        });
        if !fits {
            parts.push(Vec::new());
            bytes = 0;
        }
        bytes += length;
        parts.last_mut().into_iter().for_each(|part| part.push((value.clone(), valid_time)));
    }
    parts
}
