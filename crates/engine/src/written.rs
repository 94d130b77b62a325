//! The model's knowledge of a file that it has written or edited. Others may have changed the file unseen: then the model knows
//! the text that it knew before, and the text that it has put in itself.

use std::sync::Arc;

use context_evidence::{
    After, Base, Bytes, Content, Evidence, InFlightKind, Leaves, StatementKind, Way, Wrote, is_all_new_within,
};
use context_files::index::FileEntry;
use context_files::observed::Observed;
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::Toolcall;
use context_model::time::TxId;
use context_session::error::Result;
use context_store::{AsOf, Version};
use serde_json::{Map, Value};

use crate::engine::{Inner, State};

/// A write of a file whose result the model has not seen.
pub(crate) enum Unreported {
    /// No such write, or the file has the text that the model knew before it.
    Nothing,
    /// The model knew this text before it.
    After(String),
    /// The model's knowledge before it is undetermined.
    AfterUnknown,
}

impl State {
    /// Returns the model's knowledge of a path that a call is about to change, or has just changed: of the file that the path
    /// led to.
    pub fn base(&self, way: &Way) -> Option<Base> {
        let file = self.known.led(&way.path).unwrap_or(&way.file);
        let content = self.known_now(file)?;
        Some(Base { file: self.known.home_of(file, &content), content, told: self.knowledge(file).told() })
    }

    /// Makes the bytes of a write known to the model, unless the model has seen or written something else since.
    fn knows_of(&mut self, wrote: &Wrote, file: &ObjectId, hash: Digest) {
        let is_newest = self.known.get(file).is_some_and(|known| known.content.hash == wrote.content.hash);
        if is_newest && wrote.content.hash != Some(hash) {
            self.known.wrote(file, Content::lost(hash));
        }
    }
}

impl Inner {
    /// Returns the file's content after a call, as far as the model knows it, and notes a text that no version has. `before` is
    /// the content that the model knew; `unsure` is an ID for bytes whose content is undetermined.
    pub async fn made(
        &self,
        leaves: &Leaves<'_>,
        before: Option<&Base>,
        file: &ObjectId,
        now: Content,
        unsure: &str,
    ) -> Result<Evidence> {
        let made = |hash, left| Evidence::Made { bytes: Bytes { file: file.clone(), hash }, left };
        let all = now.hash.unwrap_or_else(|| Bytes::hash_of(unsure));
        let Some(text) = self.text_of(file, &now).await? else { return Ok(made(all, None)) };
        let known = match before {
            Some(base) if base.content.hash == now.hash => None,
            Some(base) => Some(self.text_of(&base.file, &base.content).await?.unwrap_or_default()),
            None => None,
        };
        let older = if known.is_some() { self.version_before(file, now).await? } else { None };
        let older_text = older.as_ref().and_then(|older| older.document.content());
        let hash = match leaves.known_after(known.as_deref(), older_text, &text) {
            After::All => return Ok(made(all, None)),
            After::Only(text) => self.archive().draft(&text),
            After::Unsure => Bytes::hash_of(unsure),
        };
        // A model that had a notice of another version, and has changed that one, needs no further notice.
        let told = before.and_then(|base| base.told.filter(|told| base.content.hash != Some(*told)));
        let told = match told {
            Some(hash) => {
                let bytes = Bytes { file: file.clone(), hash };
                self.text_of(file, &self.content_of(&bytes, self.client.newest()).await?).await?
            }
            None => None,
        };
        let is_told = told.is_some() && leaves.known_after(told.as_deref(), older_text, &text) == After::All;
        Ok(made(hash, now.hash.filter(|_| is_told)))
    }

    /// The newest version of a file before these bytes, which may not be stored.
    async fn version_before(&self, file: &ObjectId, now: Content) -> Result<Option<Version>> {
        let at = now.tx.unwrap_or_else(|| self.client.newest());
        match self.version_at(file, at).await? {
            Some(version) if version.document.source_hash() == now.hash => {
                self.version_at(file, TxId(version.tx_id.0.saturating_sub(1))).await
            }
            older => Ok(older),
        }
    }

    /// Returns what the model knew of a path when a tool passed in the entry with this number. `before` is what it knew by its
    /// request; other results of the same answer may have added to that.
    pub async fn base_of(&self, number: u64, way: &Way, before: Option<Base>) -> Result<Option<Base>> {
        let waiting = self.in_flight().clone();
        let mut base = before;
        for one in waiting.into_iter().filter(|one| one.number < number) {
            if one.way.path != way.path && one.way.file != way.file {
                continue;
            }
            let file = one.way.file;
            match (one.what, one.evidence) {
                (InFlightKind::Wrote(Wrote { content, .. }), Some(Evidence::Made { bytes, left })) => {
                    let is_all = content.hash == Some(bytes.hash);
                    let content = if is_all { content } else { Content::lost(bytes.hash) };
                    base = Some(Base { file, content, told: left.or(Some(bytes.hash)) });
                }
                (InFlightKind::Led(content), _) => base = Some(Base { file, content, told: None }),
                (InFlightKind::Read { content, text }, Some(Evidence::Shows(lines))) => {
                    if let Some(text) = text {
                        self.archive().draft(&text);
                    }
                    let shows_all = match &base {
                        Some(known) if !lines.whole && known.content.hash != content.hash => {
                            let old = self.text_of(&known.file, &known.content).await?.unwrap_or_default();
                            let new = self.text_of(&file, &content).await?.unwrap_or_default();
                            is_all_new_within(&old, &new, lines.first, lines.last)
                        }
                        _ => true,
                    };
                    base = if shows_all { Some(Base { file, content, told: None }) } else { base };
                }
                _ => {}
            }
        }
        Ok(base)
    }

    /// Returns the model's knowledge of a file before a write whose result it has not seen: the written file may contain
    /// changes by others.
    pub async fn known_before_unreported(&self, file: &ObjectId, now: Digest) -> Result<Unreported> {
        let all = self.in_flight().clone();
        let mut open = all.into_iter().filter(|one| one.owner.is_none() && one.way.file == *file);
        let Some(wrote) = open.find_map(|one| match one.what {
            InFlightKind::Wrote(wrote) => Some(wrote),
            _ => None,
        }) else {
            return Ok(Unreported::Nothing);
        };
        Ok(match wrote.before {
            Some(before) if before.content.hash == Some(now) => Unreported::Nothing,
            Some(before) => match self.text_of(&before.file, &before.content).await? {
                Some(text) => Unreported::After(text),
                None => Unreported::AfterUnknown,
            },
            None if self.version_before(file, wrote.content).await?.is_some() => Unreported::AfterUnknown,
            None => Unreported::Nothing,
        })
    }

    /// Returns the model's knowledge before a call whose result reports an earlier change of the file.
    pub fn told_with(&self, input: &Toolcall, way: &Way) -> Option<Base> {
        let told = self.in_flight().clone().into_iter().filter(|one| one.may_be_of(&input.id, way));
        let told = told.filter_map(|one| match one.what {
            InFlightKind::Notified { text, content } if input.content.contains(&text) => {
                Some(Base { file: one.way.file, content, told: None })
            }
            _ => None,
        });
        told.last()
    }

    /// Notes the model's knowledge of the files that a recorded call has written: their present content is the one that the
    /// call left.
    pub async fn note_written(
        &self,
        state: &mut State,
        input: &Toolcall,
        observed: &Observed,
        id: &ObjectId,
    ) {
        let made = observed.evidence.as_ref().map(Evidence::made).unwrap_or_default();
        let seen =
            observed.files.iter().filter(|(_, entry)| *entry == FileEntry::Written).map(|(seen, _)| &seen.id);
        let unseen =
            made.iter().map(|bytes| &bytes.file).filter(|file| !seen.clone().any(|one| one == *file));
        for file in seen.clone().chain(unseen) {
            let recorded = made.iter().find(|bytes| bytes.file == *file).map(|bytes| bytes.hash);
            if let Some(all) = state.written.get(file) {
                // `index_written` noted the text that the agent wrote; the file may have a newer one.
                let only = all.front().filter(|_| all.len() == 1);
                let wrote = all.iter().find(|one| one.is_of(&input.id)).or(only).cloned();
                if let (Some(wrote), Some(hash)) = (wrote, recorded) {
                    state.knows_of(&wrote, file, hash);
                }
                continue;
            }
            let Some(meta) = state.session.catalog.get(file) else { continue };
            let now = Content::stored(state.session.hash_of(file), meta.tx);
            let known = match recorded {
                _ if observed.is_late => now.hash,
                Some(hash) => Some(hash),
                None => self.found_written(state, input, (file, now), id).await.unwrap_or(now.hash),
            };
            let content = if known == now.hash { now } else { Content { hash: known, tx: None } };
            state.known.wrote(file, content);
        }
    }

    /// Finds the model's knowledge of a file after a call, and has it recorded.
    async fn found_written(
        &self,
        state: &State,
        input: &Toolcall,
        (file, now): (&ObjectId, Content),
        id: &ObjectId,
    ) -> Result<Option<Digest>> {
        // A host may have other names for its arguments: the record has the host's.
        let way = match input.args.get("path").and_then(Value::as_str) {
            Some(path) => self.way_of(path),
            None => self.way_of(&self.path_known(state, file)).map(|way| Self::way_to(way, file)),
        };
        let told = way.as_ref().and_then(|way| self.told_with(input, way));
        let base = match (told, &way) {
            (None, Some(way)) => self.base_of(u64::MAX, way, state.base(way)).await?,
            (told, _) => told,
        };
        let leaves = Leaves::of(&input.args);
        let made = self.made(&leaves, base.as_ref(), file, now, id.as_str()).await?;
        let hash = made.bytes().map(|bytes| bytes.hash);
        if let Some(way) = way {
            let (call, path) = (Some(input.id.clone()), Arc::clone(&way.path));
            let wrote = Wrote { content: now, before: None, call, path };
            self.note_in_flight(Some(&input.id), way, InFlightKind::Wrote(wrote));
            if let Some(last) = self.in_flight().last_mut() {
                last.owner = Some(input.id.clone());
                last.evidence = Some(made.clone());
            }
        }
        if self.archive().for_call(id).is_none() {
            self.archive().found(id, Some(made));
        }
        Ok(hash)
    }

    /// A turn has passed and the writes of tools have not come as their results: the model still knows them.
    pub async fn unclaimed(&self, state: &mut State) -> Result<()> {
        for (file, all) in std::mem::take(&mut state.written) {
            for wrote in all {
                let args = self.args_of(wrote.call.as_deref()).await?;
                let leaves = Leaves::of_patch(&args, &wrote.path);
                let unsure = wrote.call.as_deref().unwrap_or(&wrote.path);
                let made = self.made(&leaves, wrote.before.as_ref(), &file, wrote.content, unsure).await?;
                let Evidence::Made { bytes, left } = made else { continue };
                state.knows_of(&wrote, &file, bytes.hash);
                let is_all = wrote.content.hash == Some(bytes.hash);
                let content = if is_all { wrote.content } else { Content::lost(bytes.hash) };
                state.known.add_statement(&file, None, None, StatementKind::All(content));
                if let Some(left) = left {
                    state.known.add_statement(&file, None, None, StatementKind::Other(Some(left)));
                }
            }
        }
        Ok(())
    }

    /// The recorded arguments of a call.
    async fn args_of(&self, call: Option<&str>) -> Result<Map<String, Value>> {
        let Some(call) = call else { return Ok(Map::new()) };
        let recorded = self.recorded(&ObjectId::toolcall(call), AsOf::default()).await?;
        let args = recorded.as_ref().and_then(|version| version.document.field("args")?.as_object());
        Ok(args.cloned().unwrap_or_default())
    }

    /// Finds a text again that no version has: one that a call of earlier messages made of the text that the model knew.
    pub async fn draft_again(
        &self,
        state: &State,
        way: &Way,
        (call, args): (&ObjectId, &Map<String, Value>),
        hash: Digest,
    ) -> Result<()> {
        if self.archive().text(&hash).is_some() {
            return Ok(());
        }
        // Arguments may have collapsed since; the record has them whole.
        let recorded = self.recorded(call, AsOf::default()).await?;
        let recorded = recorded.as_ref().and_then(|version| version.document.field("args")?.as_object());
        let known = match state.known_now(&way.file) {
            Some(known) => self.text_known(state, &way.file, &known).await?,
            None => None,
        };
        let made = Leaves::at(recorded.unwrap_or(args), &way.path).makes_of(known.as_deref());
        if let Some(text) = made.filter(|text| Bytes::hash_of(text) == hash) {
            self.archive().draft(&text);
        }
        Ok(())
    }

    /// Returns the text of bytes that a file had, or that only the model knows; `None` if they were never stored, or are not
    /// text.
    pub async fn text_of(&self, file: &ObjectId, content: &Content) -> Result<Option<String>> {
        match content.tx {
            Some(tx) => self.text_at(file, Some(tx)).await,
            None => Ok(content.hash.and_then(|hash| self.archive().text(&hash)).map(|text| text.to_string())),
        }
    }

    /// True if a text of these bytes can be compared with others.
    pub fn has_text(&self, content: &Content) -> bool {
        content.tx.is_some() || content.hash.is_some_and(|hash| self.archive().text(&hash).is_some())
    }
}
