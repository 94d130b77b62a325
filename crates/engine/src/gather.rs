//! Reads the versions that a decision about the model's knowledge of files asks for. The decisions are in `context-evidence`.

use crate::session::error::Result;
use context_evidence::{At, Content, Records, Seen, SeenVersion, Sight, Unseen};
use context_model::id::ObjectId;
use context_store::{AsOf, KnownAt};

use crate::engine::{Inner, State};

impl Inner {
    /// Makes a decision: reads each version that it asks for, and asks it again. It may note something in the records, once:
    /// what it notes before it asks is there when it is asked again.
    pub(crate) async fn decide<T>(
        &self,
        mut decide: impl FnMut(&mut Records, &Seen) -> std::result::Result<T, Unseen> + Send,
    ) -> Result<T> {
        let mut seen = Seen::new(self.client.newest());
        loop {
            let outcome = decide(&mut self.records(), &seen);
            match outcome {
                Ok(decision) => return Ok(decision),
                Err(asked) => {
                    let version = self.read_version(&asked).await?;
                    seen.put(asked, version);
                }
            }
        }
    }

    async fn read_version(&self, Unseen { object, at }: &Unseen) -> Result<Option<SeenVersion>> {
        let after = |tx| AsOf { known: Some(KnownAt::Tx(tx)), valid_time: None };
        let version = match *at {
            At::Now => self.recorded(object, AsOf::default()).await?,
            At::After(tx) => self.recorded(object, after(tx)).await?,
            At::By(tx) => match self.recorded_by(object, tx).await? {
                Some(version) => Some(version),
                None => self.recorded(object, after(tx)).await?,
            },
        };
        Ok(version.map(|version| SeenVersion { tx: version.tx_id, document: version.document }))
    }

    /// The text of an object's latest version.
    pub(crate) async fn newest_text(&self, id: &ObjectId) -> Result<Option<String>> {
        let version = self.recorded(id, AsOf::default()).await?;
        Ok(version.and_then(|version| version.document.content().map(str::to_owned)))
    }
}

impl State {
    /// The statements of the request and the versions, for a decision.
    pub(crate) fn sight<'a>(
        &'a self,
        records: &'a Records,
        seen: &'a Seen,
    ) -> Sight<'a, impl Fn(&ObjectId) -> bool> {
        Sight { known: &self.known, in_sight: self.in_sight(), records, seen }
    }

    /// True for a call whose result the request shows.
    pub(crate) fn in_sight(&self) -> impl Fn(&ObjectId) -> bool {
        move |call| self.request.segments.shows(call)
    }

    /// As [`Known::now`](context_evidence::Known::now).
    pub(crate) fn known_now(&self, file: &ObjectId) -> Option<Content> {
        self.known.now(file, self.in_sight())
    }
}
