//! The objects that match a filter: by Datalog if XTDB has an index, otherwise by their fields.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use context_model::id::ObjectId;
use context_model::source::Source;
use context_model::time::{Timestamp, TxId};
use serde_json::Value;

use super::cache::First;
use super::edn::quote;
use super::http::Format;
use super::inner::XtdbClient;
use super::parallel::in_parallel;
use super::question;
use super::wire::FOREVER;
use context_store::backend::is_below;
use context_store::{AsOf, Filter, KnownAt, Result};

/// The types of this library's objects, for a query of all of them.
const TYPES: [&str; 5] = ["file", "toolcall", "chat", "system_prompt", "session"];

impl XtdbClient {
    pub(super) async fn query(self: &Arc<Self>, filter: &Filter) -> Result<Vec<ObjectId>> {
        let at = self.pinned(AsOf::default()).await?;
        let Some(KnownAt::Tx(tx)) = at.known.filter(|known| *known != KnownAt::Tx(TxId(0))) else {
            return Ok(Vec::new());
        };
        let types: Vec<&str> = match &filter.object_type {
            Some(t) => vec![t.as_str()],
            None => TYPES.to_vec(),
        };
        let query = ("e s", "t", "[e :type t] [e :source s]");
        let (_, rows) = self.datalog(query, types.into_iter(), at).await?;
        let ids: Vec<ObjectId> = rows
            .iter()
            .filter(|row| fits(&row[1], filter))
            .filter_map(|row| row[0].as_str().map(ObjectId::new))
            .collect();
        let mut dated = self.dated(ids, tx, filter.since.is_some()).await?;
        if let Some(since) = filter.since {
            dated.retain(|object| object.newest.is_some_and(|time| time >= since));
        }
        self.order_within_transactions(&mut dated).await?;
        dated.sort_by(|a, b| (a.first, &a.id).cmp(&(b.first, &b.id)));
        Ok(dated.into_iter().map(|object| object.id).collect())
    }

    /// Passes the ID of every object in the database to `row`, in no particular order, until that returns false.
    pub(super) async fn each_id(&self, mut row: impl FnMut(ObjectId) -> bool) -> Result<()> {
        let types = TYPES.map(|t| format!("[e :type {}]", quote(t))).join(" ");
        let name = question::name()?;
        let query = format!("{{:find [e name] :in [name] :where [(or {types})]}}");
        let request = self.read("query", Format::Json).with("query-edn", query).with("valid-time", FOREVER);
        let request = request.with("in-args-edn", format!("[{}]", quote(&name)));
        let mut is_empty = true;
        let each = |value: Value| match value.get(0).and_then(Value::as_str) {
            Some(id) if value[1] == *name => {
                is_empty = false;
                Ok(row(ObjectId::new(id)))
            }
            _ => Err(self.nodes.foreign("the IDs of all objects")),
        };
        self.nodes.each(|| request.clone(), each).await?;
        // No row says to which question there are none.
        if is_empty
            && !self
                .datalog(("t", "t", "[e :type t]"), TYPES.into_iter(), AsOf::default())
                .await?
                .1
                .is_empty()
        {
            return Err(self.nodes.foreign("the IDs of all objects"));
        }
        Ok(())
    }

    /// Each object's first transaction and, if asked for, the time of its latest version's transaction.
    async fn dated(self: &Arc<Self>, ids: Vec<ObjectId>, tx: TxId, with_newest: bool) -> Result<Vec<Dated>> {
        let inner = Arc::clone(self);
        in_parallel(ids, move |id| {
            let inner = Arc::clone(&inner);
            async move {
                if let Some(first) = inner.cache(|cache| cache.first(&id)).filter(|_| !with_newest) {
                    return Ok(Dated { id, first, newest: None });
                }
                let places = inner.sure_history(&id, tx).await?;
                let first = places.iter().map(|place| place.tx.id).min().unwrap_or(tx);
                let newest = places.iter().max_by_key(|place| (place.valid_time, place.tx.id));
                let newest = newest.map(|place| place.tx.time);
                Ok(Dated { id, first: (first, None), newest })
            }
        })
        .await
    }

    /// Finds the order of objects that were first written by the same transaction, from the log.
    async fn order_within_transactions(&self, dated: &mut [Dated]) -> Result<()> {
        let mut together: BTreeMap<TxId, usize> = BTreeMap::new();
        for object in dated.iter() {
            *together.entry(object.first.0).or_default() += 1;
        }
        let is_needed = |object: &Dated| object.first.1.is_none() && together[&object.first.0] > 1;
        let wanted: BTreeSet<TxId> = dated.iter().filter(|o| is_needed(o)).map(|o| o.first.0).collect();
        let mut places = HashMap::new();
        for tx in wanted {
            for (place, id) in self.written_in(tx).await?.into_iter().enumerate() {
                places.entry((tx, id)).or_insert(place);
            }
        }
        for object in dated {
            if let Some(place) = places.get(&(object.first.0, object.id.clone())) {
                object.first.1 = Some(*place);
            }
            self.cache(|cache| cache.learn_first(object.id.clone(), object.first));
        }
        Ok(())
    }
}

/// An object, with everything that its place in the result depends on.
struct Dated {
    id: ObjectId,
    first: First,
    newest: Option<Timestamp>,
}

fn fits(source: &Value, filter: &Filter) -> bool {
    if filter.filesystem_id.is_none() && filter.path_prefix.is_none() {
        return true;
    }
    let Ok(Source::Filesystem(file)) = Source::from_value(source.clone()) else { return false };
    filter.filesystem_id.as_ref().is_none_or(|id| *id == file.filesystem_id)
        && filter.path_prefix.as_ref().is_none_or(|prefix| is_below(&file.path, prefix))
}
