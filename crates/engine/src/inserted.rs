//! Texts that a harness has put into the past of its conversation: the record of the conversation does not have them, and no
//! request had them.

use std::collections::HashSet;

use crate::session::client::Fsync;
use crate::session::error::Result;
use context_model::chat::{Arrived, Chat, said_id};
use context_projection::request::plan::{Call, IncomingMessage};
use context_projection::request::prose::{named_texts, placed_texts};
use context_store::AsOf;
use serde_json::Value;

use crate::engine::{Inner, State};
use crate::unsent::Unsent;

impl Inner {
    /// Records the texts of messages that count as recorded and are not, as far as the request may name them, and those of answers
    /// without calls.
    pub(crate) async fn inserted<'m>(
        &self,
        state: &mut State,
        messages: &'m [IncomingMessage],
        call: &Call,
    ) -> Result<()> {
        if !call.shortens {
            return Ok(());
        }
        let placed = |one: &'m IncomingMessage| {
            let (texts, call) = placed_texts(&one.message);
            texts.into_iter().map(move |(id, text)| (id, (text, call)))
        };
        let named: Vec<(String, (&str, Option<&str>))> = messages.iter().flat_map(placed).collect();
        let (named, lost): (Vec<_>, Vec<_>) = named.into_iter().partition(|(_, placed)| self.keeps(placed.0));
        state.request.segments.unrecorded.extend(lost.into_iter().map(|(id, _)| id));
        let unknown = {
            let recalled = self.recalled();
            named.iter().any(|(id, _)| !recalled.has_text(id))
        };
        if !unknown {
            return Ok(());
        }
        let chat =
            self.recorded(&self.client.chat_id, AsOf::default()).await?.map(|version| version.document);
        let mut known: HashSet<String> =
            chat.iter().flat_map(|chat| Chat::of(chat).texts()).map(said_id).collect();
        let mut missing = Vec::new();
        for (id, placed) in named {
            if known.insert(id.clone()) {
                missing.push((id, placed));
            }
        }
        if missing.is_empty() {
            self.recalled().note_texts(known);
            return Ok(());
        }
        let texts: Vec<(&str, Option<&str>)> = missing.iter().map(|(_, placed)| *placed).collect();
        let is_recorded =
            self.commit(state, Fsync::WithSettle, |_, work| Ok(work.chat.inserted(&texts))).await?;
        let ids: HashSet<String> = missing.into_iter().map(|(id, _)| id).collect();
        if is_recorded {
            self.recalled().note_texts(known);
        } else {
            state.request.segments.unrecorded.extend(ids.iter().cloned());
        }
        state.unsent.texts.extend(ids);
        Ok(())
    }

    /// Records when messages came whose places in the conversation don't say it: `together`, the number of answers of one hand-over, with
    /// whether the cache was dead then, and, once they may leave, texts in the past.
    pub(crate) async fn note_arrivals(
        &self,
        state: &mut State,
        together: Option<(u64, bool)>,
        may_leave: bool,
    ) -> Result<()> {
        let made = state.request.made;
        let row = together.map(|(answers, dead)| Arrived { made, answers, dead, ..Arrived::default() });
        // The same hand-over may have failed behind its record.
        let row = row.filter(|row| !state.request.rolled.arrived().contains(row));
        let past = if may_leave { state.unsent.arrived(made) } else { None };
        for one in row.into_iter().chain(past) {
            if self.commit(state, Fsync::WithSettle, |_, work| Ok(work.chat.arrived(&one))).await? {
                state.request.rolled.note_arrival(one);
            }
        }
        if may_leave {
            state.unsent = Unsent::default();
        }
        Ok(())
    }

    /// Notes the texts of a new message that the record has without their secrets: they cannot be restored as they are.
    pub(crate) fn note_unrecorded(&self, state: &mut State, message: &Value) {
        if self.client.redaction().is_none() {
            return;
        }
        let lost = named_texts(message).into_iter().filter(|(_, text)| !self.keeps(text));
        state.request.segments.unrecorded.extend(lost.map(|(id, _)| id));
    }

    /// True if the record keeps a text as it is.
    fn keeps(&self, text: &str) -> bool {
        self.client.redaction().is_none() || context_secrets::redacted(text, None).is_none()
    }
}
