//! The agent's controls: activation, pins and pool membership.
//!
//! A refusal that the model should read (unknown, infrastructure, nothing to show, not active) is an answer
//! with `ok: false`; only a failing store is an error.

use crate::files::index::{FileEntry, ReadFor};
use crate::files::reading::FileState;
use crate::session::Session;
use crate::session::blocking::blocking;
use crate::session::catalog::Meta;
use crate::session::client::Fsync;
use crate::session::commit::Work;
use crate::session::error::Result;
use crate::session::paths::{Disk, Place};
use context_lines::escape;
use context_model::chat::{Chat, is_said_id};
use context_model::error::ErrorCode;
use context_model::id::ObjectId;
use context_model::object::ObjectType;
use context_model::source::FilesystemSource;
use context_model::time::TxId;
use context_store::{AsOf, Version};
use context_tools::Part;
use serde_json::{Map, Value};
use tracing::instrument;

use crate::engine::{Engine, Inner, State};

/// The most that one part of a content returns, in UTF-16 units; the rest is requested in further parts.
const MAX_PART_CHARS: usize = 64 * 1024;

/// The answer to a change of the sets.
#[derive(Clone, Debug, PartialEq)]
pub struct SetChange {
    /// True if it was done.
    pub ok: bool,
    /// The object, or the caller's name for it if that object does not exist.
    pub id: ObjectId,
    /// A sentence for the model.
    pub message: String,
    /// The reason for a refusal.
    pub code: Option<ErrorCode>,
    /// After an activation: the content, or the requested part of it.
    pub content: Option<String>,
    /// After activating a tool call whose arguments are collapsed in the last projection: the full arguments.
    pub arguments: Option<Map<String, Value>>,
    /// After an activation: whether the whole content is still visible in the last projection, so that it need not be
    /// shown again.
    pub visible: bool,
}

impl Engine {
    /// Puts an object into the active set and returns its content. An object that is only indexed is
    /// promoted first; a file that was only discovered is read first.
    ///
    /// `name` is a full ID, a handle, or either followed by `@` and a transaction number: then that version's content
    /// is returned (a static reference), and the sets stay unchanged. They also stay unchanged for prose and
    /// reasoning, which are named by the ID in their shortened form.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn activate(&self, name: &str, part: Option<Part>) -> Result<SetChange> {
        let mut state = self.inner.lock().await?;
        let is_id =
            state.session.catalog.find(name).is_some_and(|id| state.session.sets.index().contains(&id));
        if let Some((name, tx)) = static_reference(name).filter(|_| !is_id) {
            return self.inner.show_version(&mut state, name, tx, part.as_ref()).await;
        }
        if !is_id && is_said_id(name) {
            return self.inner.show_said(name, part.as_ref()).await;
        }
        let id = match self.inner.content_object(&state, name).await? {
            Ok(id) => id,
            Err(refusal) => return Ok(refusal),
        };
        if state.session.catalog.get(&id).is_some_and(|meta| meta.is_null || meta.file().is_some()) {
            drop(state);
            let reason = self.inner.read_first(&id).await?;
            state = self.inner.lock().await?;
            if state.session.catalog.get(&id).is_none_or(|meta| meta.is_null) {
                let recorded = self.inner.recorded(&id, AsOf::default()).await?;
                if let Some(erased) = recorded.filter(|version| version.erased.is_some())
                    && let Err((code, message)) = content_part(&erased, None)
                {
                    return Ok(refuse(id, code, message));
                }
                let message = format!("{} has no text: {reason}", escape::short_word(name));
                return Ok(refuse(id, ErrorCode::NullContent, message));
            }
        }
        let Some(version) = self.inner.recorded(&id, AsOf::default()).await? else {
            return Ok(unknown(name));
        };
        let shown = match content_part(&version, part.as_ref()) {
            Ok(shown) => shown,
            Err((code, message)) => return Ok(refuse(id, code, message)),
        };
        let activate = |session: &Session, work: &mut Work| {
            session.activate(&id, work);
            Ok(())
        };
        self.inner.commit(&mut state, Fsync::Now, activate).await?;
        let text = version.document.content().unwrap_or_default();
        let within = state.request.segments.whole_in(&id, version.document.source_hash(), text);
        let within = within.cloned();
        let arguments = version.document.field("args").and_then(Value::as_object);
        let arguments = arguments.filter(|_| state.request.hides_arguments(&id)).cloned();
        let mut change = done(id, name, "is active", Some(shown));
        if let (Some(at), None) = (&within, &part) {
            change.message = self.inner.refer(&mut state, change.message, at).await;
        }
        Ok(SetChange { visible: within.is_some(), arguments, ..change })
    }

    /// Takes an object out of the active set; it stays in the pool.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn deactivate(&self, name: &str) -> Result<SetChange> {
        self.change(name, |session, id, work| {
            if session.sets.deactivate(id, &mut work.change) {
                work.dropped.push(id.clone());
                Ok("is inactive; its metadata stays")
            } else {
                Err((ErrorCode::NotActive, "is not active"))
            }
        })
        .await
    }

    /// Exempts an object from auto-collapse.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn pin(&self, name: &str) -> Result<SetChange> {
        self.change(name, |session, id, work| {
            session.sets.pin(id, &mut work.change);
            Ok("is pinned")
        })
        .await
    }

    /// Unpins an object. Does nothing if it is not pinned.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn unpin(&self, name: &str) -> Result<SetChange> {
        self.change(name, |session, id, work| {
            session.sets.unpin(id, &mut work.change);
            Ok("is not pinned")
        })
        .await
    }

    /// Puts an object of the index into the metadata pool.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn promote(&self, name: &str) -> Result<SetChange> {
        self.change(name, |session, id, work| {
            session.sets.promote(id, &mut work.change);
            Ok("is in the metadata pool")
        })
        .await
    }

    /// Takes an object out of the metadata pool and the active set; the index keeps it.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn demote(&self, name: &str) -> Result<SetChange> {
        self.change(name, |session, id, work| {
            session.sets.demote(id, &mut work.change);
            work.dropped.push(id.clone());
            Ok("is indexed only")
        })
        .await
    }

    async fn change(
        &self,
        name: &str,
        apply: impl Fn(
            &Session,
            &ObjectId,
            &mut Work,
        ) -> std::result::Result<&'static str, (ErrorCode, &'static str)>
        + Send
        + Sync,
    ) -> Result<SetChange> {
        let mut state = self.inner.lock().await?;
        let id = match self.inner.content_object(&state, name).await? {
            Ok(id) => id,
            Err(refusal) => return Ok(refusal),
        };
        let decide = |session: &Session, work: &mut Work| Ok(apply(session, &id, work));
        Ok(match self.inner.commit(&mut state, Fsync::Now, decide).await? {
            Ok(outcome) => done(id, name, outcome, None),
            Err((code, why)) => {
                if code == ErrorCode::NotActive {
                    // The window collapsed it before; its visible text need not stay either.
                    state.session.dropped.insert(id.clone());
                    let State { request, session, .. } = &mut *state;
                    request.segments.touch(&id, session);
                }
                refuse(id, code, format!("{} {why}", escape::short_word(name)))
            }
        })
    }
}

impl Inner {
    /// The content object of this session with this ID or handle, or the refusal to answer with.
    async fn content_object(
        &self,
        state: &State,
        name: &str,
    ) -> Result<std::result::Result<ObjectId, SetChange>> {
        if let Some(id) = state.session.catalog.find(name)
            && state.session.sets.index().contains(&id)
        {
            return Ok(Ok(id));
        }
        let id = ObjectId::new(name);
        let infrastructure = [&self.client.chat_id, &self.client.prompt_id, &self.client.session_object]
            .contains(&&id)
            || self
                .store()
                .outlines(std::slice::from_ref(&id))
                .await?
                .into_iter()
                .flatten()
                .any(|o| !o.object_type.is_content());
        if infrastructure {
            let message = format!(
                "{} is part of the session itself and is always in context; only files and tool calls can be \
                 activated, deactivated or pinned",
                escape::short_word(name)
            );
            return Ok(Err(refuse(id, ErrorCode::NotContent, message)));
        }
        Ok(Err(unknown(name)))
    }

    /// Takes in a file's content from the disk. Returns the reason if it has no text.
    async fn read_first(&self, id: &ObjectId) -> Result<String> {
        let (source, is_null) = {
            let state = self.lock().await?;
            let latest = state.session.catalog.get(id);
            let Some(source) = latest.and_then(Meta::file) else {
                return Ok("its source can't be read here".into());
            };
            (source.clone(), latest.is_some_and(|latest| latest.is_null))
        };
        let place = self.place_of(source).await?;
        if place.disk == Disk::Inside {
            return Ok("it is inside a sandbox, or on another machine, so its text is not here; read it with a tool and use that output".into());
        }
        let seen = self.file_reader().read_at(place, None, ReadFor::Text).await?;
        let reason = seen.state.reason().map_or_else(String::new, |reason| format!("the file {reason}"));
        // The disk need not have a text that a harness has passed in.
        if seen.state.is_file() || (is_null && seen.state == FileState::Gone) {
            self.index(vec![seen], FileEntry::Tracked).await?;
        }
        Ok(reason)
    }

    /// Looks for the place of a file that the session knows.
    pub(crate) async fn place_of(&self, source: FilesystemSource) -> Result<Place> {
        let paths = self.client.paths.clone();
        let place = move || {
            let disk = paths.locate(&source);
            paths.place(source, disk)
        };
        blocking("a source", place).await
    }

    /// Shows prose or reasoning of this session.
    async fn show_said(&self, name: &str, part: Option<&Part>) -> Result<SetChange> {
        let chat = self.recorded(&self.client.chat_id, AsOf::default()).await?;
        let chat = chat.map(|version| version.document);
        let Some(text) = chat.as_ref().and_then(|chat| Chat::of(chat).said(name)) else {
            return Ok(unknown(name));
        };
        let id = ObjectId::new(name);
        Ok(match text_part(text, part) {
            Ok(content) => done(id, name, "was said earlier in this session", Some(content)),
            Err(message) => refuse(id, ErrorCode::InvalidArgument, message),
        })
    }

    async fn show_version(
        &self,
        state: &mut State,
        name: &str,
        tx: TxId,
        part: Option<&Part>,
    ) -> Result<SetChange> {
        let id = match self.content_object(state, name).await? {
            Ok(id) => id,
            Err(refusal) => return Ok(refusal),
        };
        let label = format!("{}@{tx}", escape::short_word(name));
        let Some(version) = self.recorded_by(&id, tx).await? else {
            let newest = self.store().latest_tx().await?;
            let message = if tx > newest {
                format!("{label} does not exist: the store's newest transaction is {newest}")
            } else {
                format!("{label} does not exist: that transaction wrote no version of this object")
            };
            return Ok(refuse(id, ErrorCode::UnknownObject, message));
        };
        match content_part(&version, part) {
            Ok(content) => {
                let latest = self.store().outlines(std::slice::from_ref(&id)).await?;
                let is_latest = latest.into_iter().flatten().any(|latest| latest.tx_id == version.tx_id);
                let which = if is_latest { "the latest one" } else { "not the latest one" };
                let message = format!("{label} is the version of transaction {}, {which}", version.tx_id);
                Ok(SetChange {
                    ok: true,
                    id,
                    message,
                    code: None,
                    content: Some(content),
                    arguments: None,
                    visible: false,
                })
            }
            Err((code, message)) => Ok(refuse(id, code, message)),
        }
    }
}

/// Splits `id@tx`. An ID may itself hold an `@`, so only digits after the last one make a static reference.
fn static_reference(name: &str) -> Option<(&str, TxId)> {
    let (name, tx) = name.rsplit_once('@')?;
    if name.is_empty() || tx.is_empty() || !tx.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    tx.parse().ok().map(|tx| (name, TxId(tx)))
}

fn content_part(version: &Version, part: Option<&Part>) -> std::result::Result<String, (ErrorCode, String)> {
    debug_assert!(version.document.object_type() != ObjectType::Session);
    let Some(content) = version.document.content() else {
        let message = match &version.erased {
            Some(erased) => format!(
                "the store's owner has erased this text, {}; it can't be brought back",
                escape::text(&erased.why)
            ),
            None => "this version has no text".into(),
        };
        return Err((ErrorCode::NullContent, message));
    };
    text_part(content, part).map_err(|message| (ErrorCode::InvalidArgument, message))
}

fn text_part(content: &str, part: Option<&Part>) -> std::result::Result<String, String> {
    let Some(part) = part else { return Ok(content.to_owned()) };
    let passage = context_tools::part(content, part, MAX_PART_CHARS).map_err(|e| e.to_string())?;
    Ok(passage.text)
}

/// The sentence names the object as the caller did: a model that knows the handle need not read the ID.
fn done(id: ObjectId, name: &str, outcome: &str, content: Option<String>) -> SetChange {
    let message = format!("{} {outcome}", escape::short_word(name));
    SetChange { ok: true, id, message, code: None, content, arguments: None, visible: false }
}

fn refuse(id: ObjectId, code: ErrorCode, message: String) -> SetChange {
    SetChange { ok: false, id, message, code: Some(code), content: None, arguments: None, visible: false }
}

fn unknown(name: &str) -> SetChange {
    let message = format!(
        "no object of this session has the id {}; use an id from a header, a toolcall_ref line or a search",
        escape::short_word(name)
    );
    refuse(ObjectId::new(name), ErrorCode::UnknownObject, message)
}
