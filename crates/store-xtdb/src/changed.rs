//! The versions that others wrote, as lists of changes name them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use context_model::id::ObjectId;
use context_model::object::ObjectType;
use context_model::time::{Timestamp, TxId};
use serde_json::Value;

use super::inner::XtdbClient;
use super::mark::Mark;
use super::parallel::in_parallel;
use super::read::{IDS_A_QUERY, version};
use super::wire::{Coordinates, document};
use context_store::{AsOf, KnownAt, Result, Version};

/// An object that was changed, and the last transaction that a list of changes has for it, where there is one.
pub(super) type ChangedPlace = (ObjectId, ObjectType, Option<TxId>);

impl XtdbClient {
    /// The versions of many objects that were written after a transaction, and those with the same valid time as one of
    /// them. Only the latest of a chat or session, because the journal would have to store each earlier one whole.
    pub(super) async fn versions_after(
        self: &Arc<Self>,
        ids: Vec<ChangedPlace>,
        since: TxId,
    ) -> Result<Vec<Vec<Version>>> {
        let at = self.pinned(AsOf::default()).await?;
        let Some(KnownAt::Tx(newest)) = at.known else { return Ok(Vec::new()) };
        let (content, growing): (Vec<_>, Vec<_>) =
            ids.into_iter().partition(|(_, kind, _)| kind.is_content());
        let mut found = self.grown_after(growing, since, (newest, at)).await?;
        let inner = Arc::clone(self);
        let places = in_parallel(content, move |(id, _, listed)| {
            let inner = Arc::clone(&inner);
            async move {
                let places = inner.history_places(&id, newest).await?;
                inner.check_places(&id, &places, listed, at).await?;
                let times: HashSet<Timestamp> =
                    places.iter().filter(|place| place.tx.id > since).map(|place| place.valid_time).collect();
                let latest = places.iter().map(|place| (place.valid_time, place.tx.id)).max();
                let wanted: Vec<Coordinates> = places
                    .into_iter()
                    .filter(|place| times.contains(&place.valid_time) && !place.is_deletion)
                    .collect();
                let is_latest =
                    matches!(&wanted[..], [place] if Some((place.valid_time, place.tx.id)) == latest);
                Ok((id, wanted, is_latest))
            }
        })
        .await?;
        // If only the latest version is missing, one query fetches its document together with others.
        let (single, several): (Vec<_>, Vec<_>) = places.into_iter().partition(|(.., is_latest)| *is_latest);
        for part in single.chunks(IDS_A_QUERY) {
            let latest: Vec<(ObjectId, Coordinates)> =
                part.iter().map(|(id, places, _)| (id.clone(), places[0])).collect();
            let mut documents: HashMap<ObjectId, Value> =
                self.pull(&latest, "[*]", at).await?.into_iter().collect();
            for (id, places, _) in part {
                let Some(value) = documents.remove(id) else { continue };
                found.push(vec![self.placed(value, places[0])?]);
            }
        }
        let inner = Arc::clone(self);
        let rest = in_parallel(several, move |(id, places, _)| {
            let inner = Arc::clone(&inner);
            async move {
                let mut versions = Vec::new();
                for place in places {
                    let at =
                        AsOf { valid_time: Some(place.valid_time), known: Some(KnownAt::Tx(place.tx.id)) };
                    for (_, value) in inner.pull(&[(id.clone(), place)], "[*]", at).await? {
                        versions.push(inner.placed(value, place)?);
                    }
                }
                versions.sort_by_key(|version| (version.tx_id, version.valid_time));
                Ok(versions)
            }
        });
        found.extend(rest.await?);
        Ok(found)
    }

    /// The latest versions of chats and sessions, one list for each that was written after a transaction.
    async fn grown_after(
        self: &Arc<Self>,
        growing: Vec<ChangedPlace>,
        since: TxId,
        (newest, at): (TxId, AsOf),
    ) -> Result<Vec<Vec<Version>>> {
        let ids: Vec<ObjectId> = growing.iter().map(|(id, ..)| id.clone()).collect();
        let latest = self.get_many(&ids, at).await?;
        let mut found = Vec::new();
        for ((id, _, listed), version) in growing.into_iter().zip(latest) {
            let Some(version) = version else { continue };
            // It may be later by its valid time, or the answer is one from before.
            if listed.is_some_and(|tx| version.tx_id < tx) {
                let places = self.history_places(&id, newest).await?;
                self.check_places(&id, &places, listed, at).await?;
            }
            if version.tx_id > since {
                found.push(vec![version]);
            }
        }
        Ok(found)
    }

    /// Checks a history that may lack the transaction which has written the object according to a list of changes: its owner
    /// may have erased or removed it since, or the answer was about something else, or is one from before.
    async fn check_places(
        self: &Arc<Self>,
        id: &ObjectId,
        places: &[Coordinates],
        listed: Option<TxId>,
        at: AsOf,
    ) -> Result<()> {
        let Some(listed) = listed.filter(|tx| places.iter().all(|place| place.tx.id != *tx)) else {
            return Ok(());
        };
        // The rest of an erased object has been written anew.
        if places.iter().any(|place| place.tx.id < listed) {
            return Err(self.nodes.foreign(id.as_str()));
        }
        match self.places(std::slice::from_ref(id), at).await?.remove(id) {
            Some(latest) if !places.contains(&latest) => Err(self.nodes.foreign(id.as_str())),
            _ => Ok(()),
        }
    }

    /// A version with the whole document that XTDB has at these coordinates.
    fn placed(&self, mut value: Value, place: Coordinates) -> Result<Version> {
        let mark = Mark::take(&mut value);
        let document = document(value).map_err(|error| self.nodes.told(error))?;
        Ok(version(document, place, mark.as_ref()))
    }
}
