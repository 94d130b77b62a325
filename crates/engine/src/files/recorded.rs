//! Versions as they were before secrets were taken out of the stored copy.
//!
//! Decisions about what the model knows, and what it is sent, use the texts as they were:
//! from this process's memory, or from the file while it still has the bytes that were recorded. Where neither has them,
//! the text comes with marks such as `[redacted: aws-access-token]`.

use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::source::Source;
use context_store::secrets::is_redacted;
use context_store::{AsOf, Version};

use super::reading::{self, FileState};
use crate::ground::Ground;
use crate::ground::blocking::blocking;
use crate::ground::error::Result;
use crate::ground::paths::Disk;

impl Ground {
    /// A version as it was before secrets were taken out, as far as that is known.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn recorded(&self, id: &ObjectId, at: AsOf) -> Result<Option<Version>> {
        match self.store().get(id, at).await? {
            Some(version) => Ok(Some(self.restored(version).await?)),
            None => Ok(None),
        }
    }

    /// The same for many objects, in the order of the IDs.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn recorded_many(&self, ids: &[ObjectId], at: AsOf) -> Result<Vec<Option<Version>>> {
        let mut versions = Vec::with_capacity(ids.len());
        for version in self.store().get_many(ids, at).await? {
            versions.push(match version {
                Some(version) => Some(self.restored(version).await?),
                None => None,
            });
        }
        Ok(versions)
    }

    async fn restored(&self, version: Version) -> Result<Version> {
        let version = match self.redaction() {
            Some(redaction) => redaction.put_back(version),
            None => version,
        };
        if !is_redacted(&version.document) {
            return Ok(version);
        }
        Ok(match self.on_disk(&version.document).await? {
            Some(document) => Version { document, ..version },
            None => version,
        })
    }

    /// A version of a file as the disk has it, if the file still has its bytes.
    async fn on_disk(&self, stored: &Document) -> Result<Option<Document>> {
        let (Some(Source::Filesystem(source)), Some(hash)) = (stored.source(), stored.source_hash()) else {
            return Ok(None);
        };
        let (paths, limit, place) = (self.paths.clone(), self.options.max_text_bytes, source.clone());
        let state = blocking(&source.path, move || match paths.locate(&place) {
            Disk::At(path) => reading::read(&path, limit),
            _ => FileState::Unreachable,
        })
        .await?;
        Ok(match state {
            FileState::Text(text) if text.hash() == hash => Some(Document::text_file(source.clone(), text)),
            _ => None,
        })
    }
}
