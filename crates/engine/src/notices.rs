//! Finds the files that the model needs notices about, and writes the notices.

use context_evidence::{
    Archive, Content, FileChange, Knowledge, Outstanding, Passage, StatementKind, counted, notice_line,
};
use context_files::index::display_of;
use context_files::reading::MAX_HASHED_BYTES;
use context_model::chat::Notice;
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_session::Session;
use context_session::blocking::blocking;
use context_session::catalog::Meta;
use context_session::client::Fsync;
use context_session::commit::Work;
use context_session::error::Result;
use context_session::paths::Disk;
use tracing::instrument;

use crate::engine::{Inner, State};
use crate::untold::Telling;

impl State {
    /// Returns the model's knowledge of a file. Statements that have left its sight no longer count if others are in sight.
    pub fn known_now(&self, file: &ObjectId) -> Option<Content> {
        let known = self.known.get(file)?;
        if !known.from_results {
            return Some(known.content);
        }
        let knowledge = self.knowledge(file);
        let is_there = knowledge.contents.contains(&known.content.hash);
        Some(if is_there { known.content } else { knowledge.base.unwrap_or(known.content) })
    }

    /// Returns the due lines for the model. A line that a failure has delayed may be about a version that is no longer the
    /// newest.
    pub fn say(&mut self, archive: &Archive) -> Vec<String> {
        let is_newest = |said: &Notice| self.session.hash_of(&said.file) == said.hash;
        let lines = std::mem::take(&mut self.pending).into_iter().map(|one| one.line);
        let mut lines: Vec<String> =
            lines.filter(|line| archive.notices(line).iter().any(is_newest)).collect();
        lines.sort();
        lines
    }

    /// Returns the statements of the request about a file, as far as they are in sight.
    pub fn knowledge(&self, file: &ObjectId) -> Knowledge {
        self.known.knowledge(file, |call| self.request.segments.shows(call))
    }
}

impl Inner {
    /// Adds the due notices about files to the pending ones, and records them with the turn. `place` is the host's name for
    /// where they come.
    ///
    /// # Errors
    /// Errors of the store; then none of the notices counts as recorded.
    #[instrument(level = "debug", skip_all)]
    pub async fn notices(&self, state: &mut State, fsync: Fsync, place: Option<&str>) -> Result<()> {
        self.unclaimed(state).await?;
        self.note_unread(state, fsync).await?;
        self.keep_evidence(state).await;
        self.follow_paths(state, fsync).await?;
        loop {
            self.index_mentioned_files(state, fsync).await?;
            self.read_deferred(state, fsync).await?;
            let open = state.known.open();
            let mut due = Vec::new();
            for file in &open {
                if let Some(base) = self.outstanding(state, file).await? {
                    let path = self.path_known(state, file);
                    let text = self.notice(state, (file, &path), base).await?;
                    let line = Digest::of(text.as_bytes());
                    let (file, hash) = (file.clone(), state.session.hash_of(file));
                    due.push((Notice { file, hash, line, path }, text));
                }
            }
            if due.is_empty() {
                // Another client may still store a version of a file that has none yet.
                let is_known = |file: &&ObjectId| state.session.catalog.get(file).is_some();
                let known: Vec<ObjectId> = open.iter().filter(is_known).cloned().collect();
                state.known.settle(&known);
                return Ok(());
            }
            let telling = {
                let is_current = |said: &Notice| state.session.hash_of(&said.file) == said.hash;
                let sentences = &self.client.options.sentences;
                Telling::of(due, &state.pending, &self.archive(), is_current, sentences)
            };
            let told = &telling.notices;
            let lines: Vec<String> = telling.lines.iter().map(|one| one.line.clone()).collect();
            let note = |session: &mut Session, work: &mut Work| {
                if told.iter().any(|notice| session.hash_of(&notice.file) != notice.hash) {
                    return Ok(false);
                }
                work.chat.notices(told, place.map(|place| (place, &*lines)), telling.list.as_deref());
                // Another client may store a newer version at this moment.
                let latest = |file| session.catalog.get(file).map(|meta| meta.tx);
                work.expected.extend(told.iter().map(|Notice { file, .. }| (file.clone(), latest(file))));
                Ok(true)
            };
            if !self.commit(state, fsync, note).await? {
                continue;
            }
            self.archive().tell(told);
            for notice in told {
                let via = notice.path.as_str().into();
                state.known.add_statement(&notice.file, None, Some(&via), StatementKind::Other(notice.hash));
            }
            telling.replace_in(&mut state.pending, &self.archive());
            // Another client may have stored another version meanwhile.
            self.refresh(state).await?;
        }
    }

    /// Returns the bytes that the model believes a file has, if the file has changed and no statement in sight says so.
    async fn outstanding(&self, state: &State, file: &ObjectId) -> Result<Option<Content>> {
        if state.session.catalog.get(file).is_none() {
            return Ok(None);
        }
        let (knowledge, now) = (state.knowledge(file), state.session.hash_of(file));
        let Some(base) = knowledge.base else { return Ok(None) };
        if !knowledge.speaks_of(now) && base.hash != now {
            return Ok(Some(base));
        }
        let outdated = self.outdated(state, file, now, &knowledge.outstanding).await?;
        Ok(if knowledge.speaks_of(now) { outdated } else { outdated.or(Some(base)) })
    }

    /// Returns the bytes that the first outdated ones of these lines belong to.
    async fn outdated(
        &self,
        state: &State,
        file: &ObjectId,
        now: Option<Digest>,
        outstanding: &[Outstanding],
    ) -> Result<Option<Content>> {
        let mut newest = None;
        for Outstanding { lines, later } in outstanding.iter().filter(|one| one.lines.content.hash != now) {
            let content = lines.content;
            if newest.is_none() {
                newest = Some(self.text_at(file, None).await?);
            }
            let text = self.text_known(state, file, &content).await?;
            if let (Some(text), Some(Some(new))) = (&text, &newest)
                && some_lines(text, lines).eq(some_lines(new, lines))
            {
                continue;
            }
            let mut is_told = false;
            for part in later {
                is_told = is_told || self.shows_all_new(state, file, &content, part).await?;
            }
            if !is_told {
                return Ok(Some(content));
            }
        }
        Ok(None)
    }

    /// Returns the path by which the model knows a file.
    pub fn path_known(&self, state: &State, id: &ObjectId) -> String {
        let own = || display_of(&self.client, &state.session, id);
        state.known.path_to(id).map_or_else(own, ToString::to_string)
    }

    async fn notice(&self, state: &State, (id, path): (&ObjectId, &str), base: Content) -> Result<String> {
        let session = &state.session;
        let now = session.hash_of(id);
        let is_null = now.is_none() && session.catalog.get(id).is_none_or(|meta| meta.is_null);
        let is_gone = is_null && !self.is_too_large(session, id).await?;
        let change = if is_gone {
            FileChange::Deleted
        } else if base.hash == now {
            FileChange::SameAgain
        } else {
            let old = self.text_known(state, id, &base).await?;
            match (old, self.text_at(id, None).await?) {
                (Some(old), Some(new)) => {
                    counted(&old, &new).map_or(FileChange::Unknown, FileChange::Counted)
                }
                _ => FileChange::Unknown,
            }
        };
        Ok(notice_line(&self.client.options.sentences, &session.handle(id), path, now, &change))
    }

    /// True if a file exists but is too large to be hashed: its version is like that of a deleted one.
    async fn is_too_large(&self, session: &Session, id: &ObjectId) -> Result<bool> {
        let Some(source) = session.catalog.get(id).and_then(Meta::file).cloned() else { return Ok(false) };
        let Disk::At(path) = self.place_of(source).await?.disk else { return Ok(false) };
        let is_large = |found: std::fs::Metadata| found.is_file() && found.len() > MAX_HASHED_BYTES;
        blocking("a file", move || std::fs::metadata(path).is_ok_and(is_large)).await
    }
}

/// The lines of a text at another passage's position.
fn some_lines<'a>(text: &'a str, lines: &Passage) -> impl Iterator<Item = &'a str> {
    text.split('\n').skip(lines.first - 1).take((lines.last - lines.first).saturating_add(1))
}
