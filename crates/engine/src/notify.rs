//! Finds the files that the model needs notices about, and writes the notices.

use crate::files::index::display_of;
use crate::files::reading::MAX_HASHED_BYTES;
use crate::session::Session;
use crate::session::blocking::blocking;
use crate::session::catalog::Meta;
use crate::session::client::Fsync;
use crate::session::commit::Work;
use crate::session::error::Result;
use crate::session::paths::Disk;
use context_evidence::{FileNotice, Known, Sentences, StatementKind, Telling};
use context_lines::FileChange;
use context_model::chat::Notice;
use context_model::id::ObjectId;
use context_projection::request::plan::Call;
use tracing::instrument;

use crate::engine::{Inner, State};

impl State {
    /// Returns the due lines for the model. A failure may have delayed a notice, and
    /// its file may have a newer version by now.
    pub(crate) fn say(&mut self, sentences: &Sentences) -> Vec<String> {
        let notices = std::mem::take(&mut self.pending.notices);
        let is_newest = |notice: &FileNotice| self.session.hash_of(&notice.file) == notice.hash;
        let due = notices.iter().filter(|one| one.notices().iter().any(is_newest));
        let mut lines: Vec<String> = due.map(|one| one.line(sentences)).collect();
        lines.sort();
        lines
    }
}

impl Inner {
    /// Adds the due notices about files to the pending ones, and records them with the turn and the place of the `call` that they
    /// come with. Where that is closed, nothing is due yet: until it is open, the model may read a file again, the host may take
    /// out what the model has seen of it, and it may change once more.
    ///
    /// # Errors
    /// Errors of the store; then none of the notices counts as recorded.
    #[instrument(level = "debug", skip_all)]
    pub(crate) async fn notices(&self, state: &mut State, fsync: Fsync, call: Option<&Call>) -> Result<()> {
        let place = call.and_then(|call| call.place.as_deref());
        self.unclaimed(state).await?;
        self.note_unread(state, fsync).await?;
        self.keep_evidence(state).await;
        self.follow_paths(state, fsync).await?;
        loop {
            self.index_mentioned_files(state, fsync).await?;
            self.read_deferred(state, fsync).await?;
            if call.is_some_and(|call| call.closed) {
                return Ok(());
            }
            let open = state.known.open();
            let mut due = Vec::new();
            for file in &open {
                due.extend(self.notice(state, file).await?);
            }
            if due.is_empty() {
                // Another client may still store a version of a file that has none yet.
                let is_known = |file: &&ObjectId| state.session.catalog.get(file).is_some();
                let known: Vec<ObjectId> = open.iter().filter(is_known).cloned().collect();
                state.known.settle(&known);
                return Ok(());
            }
            let is_current = |notice: &FileNotice| state.session.hash_of(&notice.file) == notice.hash;
            let telling =
                Telling::of(due, &state.pending.notices, is_current, &self.client.options.sentences);
            let told = &telling.notices;
            let note = |session: &Session, work: &mut Work| {
                if told.iter().any(|notice| session.hash_of(&notice.file) != notice.hash) {
                    return Ok(false);
                }
                work.chat.notices(told, place.map(|place| (place, &*telling.lines)), telling.list.as_deref());
                // Another client may store a newer version at this moment.
                let latest = |file| session.catalog.get(file).map(|meta| meta.tx);
                work.expected.extend(told.iter().map(|Notice { file, .. }| (file.clone(), latest(file))));
                Ok(true)
            };
            if !self.commit(state, fsync, note).await? {
                continue;
            }
            self.records().archive.tell(told);
            for notice in told {
                let via = notice.path.as_str().into();
                state.known.add_statement(&notice.file, None, Some(&via), StatementKind::Other(notice.hash));
            }
            telling.replace_in(&mut state.pending.notices);
            // Another client may have stored another version meanwhile.
            self.refresh(state).await?;
        }
    }

    /// Returns the notice that the model needs of a file; `None` if nothing has changed that it does not know.
    async fn notice(&self, state: &State, file: &ObjectId) -> Result<Option<FileNotice>> {
        let session = &state.session;
        let Some(meta) = session.catalog.get(file) else { return Ok(None) };
        let now = session.hash_of(file);
        let base = self.decide(|records, seen| state.sight(records, seen).outstanding(file, now)).await?;
        let Some(base) = base else { return Ok(None) };
        let change = match now.is_none() && meta.is_null && !self.is_too_large(session, file).await? {
            true => FileChange::Deleted,
            false => self.decide(|records, seen| state.sight(records, seen).change(file, &base, now)).await?,
        };
        let (handle, path) = (session.handle(file), self.path_known(state, file));
        Ok(Some(FileNotice { file: file.clone(), hash: now, handle, path, change }))
    }

    /// Returns the path by which the model knows a file.
    pub(crate) fn path_known(&self, state: &State, id: &ObjectId) -> String {
        self.path_among(&state.session, &state.known, id)
    }

    /// Returns the path by which a model with this knowledge knows a file.
    pub(crate) fn path_among(&self, session: &Session, known: &Known, id: &ObjectId) -> String {
        let own = || display_of(&self.client, session, id);
        known.path_to(id).map_or_else(own, ToString::to_string)
    }

    /// True if a file exists but is too large to be hashed: its version is like that of a deleted one.
    async fn is_too_large(&self, session: &Session, id: &ObjectId) -> Result<bool> {
        let Some(source) = session.catalog.get(id).and_then(Meta::file).cloned() else { return Ok(false) };
        let Disk::At(path) = self.place_of(source).await?.disk else { return Ok(false) };
        let is_large = |found: std::fs::Metadata| found.is_file() && found.len() > MAX_HASHED_BYTES;
        blocking("a file", move || std::fs::metadata(path).is_ok_and(is_large)).await
    }
}
