//! Versions with the secrets that were removed from the stored copy.
//!
//! Decisions about the model's knowledge, and the text that it is sent, use these texts: from this process's memory, or from
//! the file while it still has the recorded bytes. Otherwise the text comes with marks such as `[redacted: aws-access-token]`.

use crate::session::blocking::blocking;
use crate::session::client::Client;
use crate::session::error::Result;
use crate::session::paths::Disk;
use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::source::Source;
use context_model::time::TxId;
use context_secrets::is_redacted;
use context_store::{AsOf, Version};

use super::reading::{self, FileState};

/// Returns a version with its secrets, as far as they are known.
///
/// # Errors
/// Errors of the store.
pub(crate) async fn version(client: &Client, id: &ObjectId, at: AsOf) -> Result<Option<Version>> {
    match client.store().get(id, at).await? {
        Some(version) => Ok(Some(restored(client, version).await?)),
        None => Ok(None),
    }
}

/// The same for the version that a transaction wrote.
///
/// # Errors
/// Errors of the store.
pub(crate) async fn written_by(client: &Client, id: &ObjectId, tx: TxId) -> Result<Option<Version>> {
    match client.store().version(id, tx).await? {
        Some(version) => Ok(Some(restored(client, version).await?)),
        None => Ok(None),
    }
}

/// The same for many objects, in the order of the IDs.
///
/// # Errors
/// Errors of the store.
pub(crate) async fn versions(client: &Client, ids: &[ObjectId], at: AsOf) -> Result<Vec<Option<Version>>> {
    let mut versions = Vec::with_capacity(ids.len());
    for version in client.store().get_many(ids, at).await? {
        versions.push(match version {
            Some(version) => Some(restored(client, version).await?),
            None => None,
        });
    }
    Ok(versions)
}

async fn restored(client: &Client, version: Version) -> Result<Version> {
    let version = match client.redaction() {
        Some(redaction) => redaction.put_back(version),
        None => version,
    };
    if !is_redacted(&version.document) {
        return Ok(version);
    }
    Ok(match on_disk(client, &version.document).await? {
        Some(document) => Version { document, ..version },
        None => version,
    })
}

/// A version of a file as the disk has it, if the file still has its bytes.
async fn on_disk(client: &Client, stored: &Document) -> Result<Option<Document>> {
    let (Some(Source::Filesystem(source)), Some(hash)) = (stored.source(), stored.source_hash()) else {
        return Ok(None);
    };
    let (paths, limit, place) = (client.paths.clone(), client.options.max_text_bytes, source.clone());
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

#[cfg(test)]
mod tests {
    use context_store::{Transaction, Write};

    use super::*;
    use crate::session::options::Options;

    async fn client(directory: &str, store: &std::sync::Arc<dyn context_store::Store>) -> Client {
        let store = std::sync::Arc::clone(store);
        crate::files::tests::client_with(|options| Options {
            cwd: directory.into(),
            store,
            redact: true,
            ..options
        })
        .await
    }

    #[tokio::test]
    async fn text_with_secrets_is_known_while_a_process_or_the_disk_has_it() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap().to_str().unwrap().to_owned();
        let store: std::sync::Arc<dyn context_store::Store> = context_store::memory::MemoryStore::new();
        // In parts, so that this file has no key.
        let secret = format!("key = {}_kQ8vT3mZ5xR1wB7nC4yL9dF2gH6jP0sUaEo1\n", "ghp");
        let path = format!("{root}/a");
        std::fs::write(&path, &secret).unwrap();
        let first = client(&root, &store).await;
        let source = first.paths.resolve(&path).unwrap().source;
        let text = context_model::hash::HashedText::new(secret.clone());
        let document = Document::text_file(source, text);
        let id = document.id().clone();
        let plain = Document::text_file(
            first.paths.resolve(&format!("{root}/b")).unwrap().source,
            context_model::hash::HashedText::new("plain".into()),
        );
        let writes = vec![Write::put(document.clone()), Write::put(plain.clone())];
        first
            .write(Transaction { writes, expected: Vec::new() }, crate::session::client::Fsync::Now)
            .await
            .unwrap();
        let stored = store.get(&id, AsOf::default()).await.unwrap().unwrap().document;
        assert!(stored.content().unwrap().contains("[redacted: "), "{stored:?}");

        let read = async |client: &Client| {
            let one = version(client, &id, AsOf::default()).await.unwrap().unwrap().document;
            let ids = [plain.id().clone(), id.clone(), ObjectId::new("missing")];
            let many = versions(client, &ids, AsOf::default()).await.unwrap();
            let many: Vec<_> =
                many.into_iter().map(|version| version.map(|version| version.document)).collect();
            assert_eq!(many, [Some(plain.clone()), Some(one.clone()), None]);
            one
        };
        assert_eq!(read(&first).await, document);
        let another = client(&root, &store).await;
        assert_eq!(read(&another).await, document, "the disk still has it");
        std::fs::write(&path, "another text").unwrap();
        assert_eq!(read(&another).await, stored);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read(&another).await, stored);
        assert_eq!(read(&first).await, document, "its own memory has it");
    }
}
