//! Reads of files of which no version was known when their results came.

use context_projection::Moment;
use context_session::error::Result;
use context_session::refresh;

use crate::engine::{Inner, State};
use crate::evidence::{first_line, path_of, unstored};
use crate::job::Unread;
use crate::results::Taking;

/// So many of them are kept.
const UNREAD: usize = 16;

impl Inner {
    /// Looks once more at what reads show of which no version was known by then: another machine may have stored one later,
    /// and of a file that is gone nobody stores any.
    pub async fn note_unread(&self, state: &mut State) -> Result<()> {
        for one in std::mem::take(&mut state.unread) {
            let Some(way) = path_of(&one.input.tool, &one.args).and_then(|path| self.way_of(&path)) else {
                continue;
            };
            refresh::learn(&self.client, &mut state.session, [way.file.clone()]).await?;
            self.apply(state);
            let Unread { call, input, args, output } = &one;
            let at = (call, self.client.newest());
            let taking = Taking { record: true, again: true, excerpts: false, now: Moment::default() };
            let is_met = state.session.catalog.get(&way.file).is_some();
            let mut found = match is_met {
                true => self.infer(state, &way, at, input, (args, output), taking).await?,
                false => None,
            };
            if found.is_none() && self.is_lost(&way, output).await? && self.works_here(state).await? {
                found = unstored(&way.file, first_line(args), output);
            }
            let Some(found) = found else {
                state.unread.extend((!is_met).then_some(one));
                continue;
            };
            self.archive().found(call, Some(found.clone()));
            let Some(bytes) = found.bytes() else { continue };
            let way = Self::way_to(way, &bytes.file);
            let content = self.content_of(bytes, at.1).await?;
            self.note_evidence(state, &way, at, (&found, content), (args, output), taking).await?;
        }
        // Of files that nobody ever stores nothing comes.
        let many = state.unread.len().saturating_sub(UNREAD);
        state.unread.drain(..many);
        Ok(())
    }
}
