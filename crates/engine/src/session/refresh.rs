//! The way in which a session receives its transactions and those of other clients. Only transactions that were written or read
//! here count as received.

use context_model::chat::Chat;
use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::session::{Sets, folder_of};
use context_model::time::TxId;
use context_store::{AsOf, Outline, StoreError};
use serde_json::Value;

use super::Session;
use super::catalog::Meta;
use super::state::SessionChange;
use crate::session::client::Client;
use crate::session::error::{EngineError, Result};

/// Restores the sets, the catalog and the shape of the chat. `false` if the store does not know the session.
///
/// # Errors
/// `STORE_CORRUPT` if its document is not a session; errors of the store.
pub(crate) async fn load(client: &Client, session: &mut Session) -> Result<bool> {
    let store = client.store();
    let Some(found) = store.get(&client.session_object, AsOf::default()).await? else { return Ok(false) };
    let sets = Sets::from_document(&found.document)
        .map_err(|e| StoreError::Corrupt(format!("{}: {e}", client.session_object)))?;
    let ids: Vec<ObjectId> = sets.index().iter().cloned().collect();
    let (first, second) = ids.split_at(ids.len() / 2);
    // Two at once, because a store reads on several threads.
    let (first, second) = tokio::try_join!(store.outlines(first), store.outlines(second))?;
    let chat = store.get(&client.chat_id, AsOf::default()).await?;

    session.sets = sets;
    session.folder = folder_of(&found.document).map(str::to_owned);
    session.session_tx = Some(found.tx_id);
    session.point = found.tx_id.max(session.point);
    for outline in first.into_iter().chain(second).flatten() {
        session.learn_outline(outline);
    }
    session.catalog.forget_displays();
    let displays = found.document.field("display_paths").and_then(Value::as_object);
    session.has_displays = displays.is_some();
    for (id, path) in displays.into_iter().flatten() {
        session.catalog.set_display(&ObjectId::new(id.as_str()), path.as_str().unwrap_or_default());
    }
    if let Some(chat) = &chat {
        session.chat_tx = Some(chat.tx_id);
        session.point = chat.tx_id.max(session.point);
        session.read_chat(&chat.document);
    }
    session.changes.push(SessionChange::Loaded(chat.map(|chat| Box::new(chat.document))));
    Ok(true)
}

/// As [`refresh`], at a turn: this also fetches what other machines wrote.
pub(crate) async fn refresh_at_turn(client: &Client, session: &mut Session) -> Result<()> {
    client.store().pull().await?;
    refresh(client, session).await
}

/// Takes in what other clients wrote since the last time. Costs one cheap query if they wrote nothing.
///
/// # Errors
/// Errors of the store; nothing counts as received then.
pub(crate) async fn refresh(client: &Client, session: &mut Session) -> Result<()> {
    let store = client.store();
    if store.latest_tx().await? == session.seen {
        return Ok(());
    }
    let changes = store.changes_since(session.seen).await?;
    let Some(newest) = changes.values().max().copied() else { return Ok(()) };
    let known: Vec<ObjectId> = changes
        .iter()
        .filter(|(id, tx)| session.catalog.get(id).is_some_and(|meta| meta.tx < **tx))
        .map(|(id, _)| id.clone())
        .collect();
    learn_newer(client, session, &known).await?;
    let foreign = known.into_iter().filter_map(|id| Some((id.clone(), *changes.get(&id)?)));
    let own = |id: &ObjectId| *id == client.chat_id || *id == client.prompt_id;
    let infrastructure = changes.iter().filter(|(id, _)| own(id)).map(|(id, tx)| (id.clone(), *tx));
    session.changes.push(SessionChange::Foreign(foreign.chain(infrastructure).collect()));
    session.seen = newest;
    client.note_newest(newest);
    Ok(())
}

/// Makes sure that the catalog has what the store knows about these objects.
pub(crate) async fn learn(
    client: &Client,
    session: &mut Session,
    ids: impl IntoIterator<Item = ObjectId>,
) -> Result<()> {
    let unknown: Vec<ObjectId> = ids.into_iter().filter(|id| session.catalog.get(id).is_none()).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    for outline in client.store().outlines(&unknown).await?.into_iter().flatten() {
        session.learn_outline(outline);
    }
    Ok(())
}

/// Takes in what others wrote before this session's transaction.
///
/// # Errors
/// `STORE_CORRUPT` if the session is gone; errors of the store.
pub(crate) async fn after_conflict(client: &Client, session: &mut Session, on: &ObjectId) -> Result<()> {
    let is_own = *on == client.session_object || *on == client.chat_id;
    // Another client has the same session open and wrote first: take over its sets.
    if is_own && !load(client, session).await? {
        let gone = StoreError::Corrupt(format!("{} is gone", client.session_object));
        return Err(EngineError::Store(gone));
    }
    if !is_own {
        learn_newer(client, session, std::slice::from_ref(on)).await?;
    }
    refresh(client, session).await
}

/// Takes in the newest versions of objects, which others have written. The first bytes of a path that was only seen are not a
/// change; but the file may have changed before this client knew of them.
async fn learn_newer(client: &Client, session: &mut Session, ids: &[ObjectId]) -> Result<()> {
    for outline in client.store().outlines(ids).await?.into_iter().flatten() {
        let id = outline.id.clone();
        let seen = session.is_first_read(&id) && session.sets.index().contains(&id);
        let before = session.catalog.get(&id).map(|meta| meta.tx).filter(|_| seen);
        let hash = session.hash_of(&id);
        session.learn_outline(outline);
        if session.hash_of(&id) != hash && session.sets.index().contains(&id) {
            session.foreign.insert(id.clone());
        }
        if let Some(before) = before
            && session.hash_of(&id).is_some()
            && has_changed(client, &id, before).await?
        {
            session.changes.push(SessionChange::Version { file: id, is_change: true });
        }
    }
    Ok(())
}

/// True if the bytes of a file that had none as of a transaction are a change: it had some before, or different
/// ones since.
async fn has_changed(client: &Client, id: &ObjectId, since: TxId) -> Result<bool> {
    /// A discovery, a hash and its text, and another hash.
    const VERSIONS: usize = 4;
    let first = client.store().history_page(id, TxId(0), VERSIONS).await?;
    if first.iter().any(|version| version.tx_id <= since && version.document.source_hash().is_some()) {
        return Ok(true);
    }
    let later = client.store().history_page(id, since, VERSIONS).await?;
    let mut hashes = later.iter().filter_map(|version| version.document.source_hash());
    let first = hashes.next();
    Ok(hashes.any(|hash| Some(hash) != first))
}

/// Loads which of the files about to be read once had content and are deleted, so that a client does not treat such a path as
/// new.
pub(crate) async fn recall_lost(
    client: &Client,
    session: &mut Session,
    read: impl Iterator<Item = &ObjectId>,
) -> Result<()> {
    /// Null after null makes no version.
    const VERSIONS: usize = 2;
    for id in read {
        if session.is_first_read(id) && session.sets.index().contains(id) {
            let first = client.store().history_page(id, TxId(0), VERSIONS).await?;
            if first.iter().any(|version| version.document.source_hash().is_some()) {
                session.lost.insert(id.clone());
            }
        }
    }
    Ok(())
}

impl Session {
    /// Takes metadata of an object's latest version into the catalog.
    pub(crate) fn learn_outline(&mut self, outline: Outline) {
        let id = outline.id.clone();
        if let Some(meta) = Meta::from_outline(outline) {
            self.meet(&id, meta);
        }
    }

    /// Reads from the chat how many turns there are, and in which each tool call was made or last activated.
    pub(crate) fn read_chat(&mut self, document: &Document) {
        let chat = Chat::of(document);
        self.turns = chat.len();
        self.stays = chat.stays().map(|(turn, id)| (id, turn)).collect();
        self.activated = chat.activated().collect();
        self.dropped.clear();
    }
}

#[cfg(test)]
mod tests {
    use context_model::object::Document;
    use context_model::source::FilesystemSource;
    use context_model::time::TxId;
    use context_store::{Transaction, Write};

    use super::*;

    fn file(path: &str, content: &str) -> Document {
        let source = FilesystemSource { filesystem_id: "disk".into(), path: path.into() };
        Document::file(
            source,
            Some(content.into()),
            Some(context_model::hash::Digest::of(content.as_bytes())),
        )
    }

    fn promote(session: &mut Session, id: &ObjectId) {
        let mut change = context_model::session::SetsChange::default();
        session.sets.promote(id, &mut change);
        session.sets.apply(change);
    }

    async fn written(client: &Client, document: Document) -> TxId {
        let transaction = Transaction { writes: vec![Write::put(document)], expected: Vec::new() };
        client.write(transaction, crate::session::client::Fsync::Now).await.unwrap().tx_id
    }

    /// The session has not received its own write if another client's came before it.
    #[tokio::test]
    async fn refresh_ignores_the_sessions_own_transactions() {
        let (client, mut session) = (Client::of_test(|options| options).await, Session::default());
        let (own, foreign, unknown) = (file("/own", "a"), file("/foreign", "a"), file("/unknown", "a"));
        for document in [&own, &foreign] {
            let tx = written(&client, document.clone()).await;
            session.meet(document.id(), Meta::from_document(document, tx).unwrap());
        }
        session.changes.clear();
        let newer = file("/foreign", "b");
        let tx = written(&client, newer).await;
        let newest = written(&client, unknown.clone()).await;
        refresh(&client, &mut session).await.unwrap();
        assert_eq!(session.seen, newest);
        let is_foreign = |change: &SessionChange, id: &ObjectId| matches!(change, SessionChange::Version { file, is_change: true } if file == id);
        assert!(is_foreign(&session.changes[0], foreign.id()), "its new version is in the catalog");
        let SessionChange::Foreign(changes) = &session.changes[1] else { panic!("what others have written") };
        assert_eq!(changes.iter().collect::<Vec<_>>(), [(foreign.id(), &tx)]);
        assert_eq!(session.changes.len(), 2);
        assert!(session.catalog.get(unknown.id()).is_none());
    }

    /// Another client was the first to read a path that was only seen here, and it has changed since.
    #[tokio::test]
    async fn change_before_the_first_bytes_were_known_is_a_change() {
        for (contents, expected) in [(&["a"][..], 0), (&["a", "b"], 1), (&["a", "b", "c"], 1)] {
            let (client, mut session) = (Client::of_test(|options| options).await, Session::default());
            let source = FilesystemSource { filesystem_id: "disk".into(), path: "/seen".into() };
            let seen = Document::file(source, None, None);
            let tx = written(&client, seen.clone()).await;
            session.meet(seen.id(), Meta::from_document(&seen, tx).unwrap());
            promote(&mut session, seen.id());
            session.seen = tx;
            session.changes.clear();
            for content in contents {
                written(&client, file("/seen", content)).await;
            }
            refresh(&client, &mut session).await.unwrap();
            let is_change =
                |one: &&SessionChange| matches!(one, SessionChange::Version { is_change: true, .. });
            assert_eq!(session.changes.iter().filter(is_change).count(), expected, "{contents:?}");
        }
    }

    /// A client that first sees a file while it is gone knows nothing of its bytes, but the file's history does.
    #[tokio::test]
    async fn file_that_is_back_after_it_was_met_as_gone_has_changed() {
        let (client, mut session) = (Client::of_test(|options| options).await, Session::default());
        let source = FilesystemSource { filesystem_id: "disk".into(), path: "/back".into() };
        let gone = Document::file(source, None, None);
        written(&client, file("/back", "a")).await;
        let tx = written(&client, gone.clone()).await;
        session.meet(gone.id(), Meta::from_document(&gone, tx).unwrap());
        promote(&mut session, gone.id());
        (session.seen, session.changes) = (tx, Vec::new());
        written(&client, file("/back", "a")).await;
        refresh(&client, &mut session).await.unwrap();
        let is_change = |one: &SessionChange| matches!(one, SessionChange::Version { is_change: true, .. });
        assert!(session.changes.iter().any(is_change));
    }

    #[tokio::test]
    async fn conflict_makes_the_object_of_another_client_known() {
        let (client, mut session) = (Client::of_test(|options| options).await, Session::default());
        let document = file("/new", "a");
        let tx = written(&client, document.clone()).await;
        after_conflict(&client, &mut session, document.id()).await.unwrap();
        assert_eq!(session.catalog.get(document.id()).map(|meta| meta.tx), Some(tx));
        let gone = after_conflict(&client, &mut session, &client.session_object).await.unwrap_err();
        assert!(gone.to_string().contains("is gone"), "{gone}");
    }
}
