//! Finds the recorded call of a result. Call IDs are not unique: providers repeat them, so the tool, the arguments and the
//! output must also match.

use crate::session::Session;
use crate::session::catalog::{MetaKind, is_handle_of};
use crate::session::client::Client;
use crate::session::error::Result;
use crate::session::refresh;
use context_evidence::{Arrival, wraps};
use context_lines::Reference;
use context_model::id::ObjectId;
use context_model::object::{Document, Toolcall};
use context_projection::request::Request;
use context_secrets::{is_args, is_content};
use context_store::{AsOf, Version};
use context_tools::is_excerpt_of;

use crate::engine::{Inner, State};
use crate::job::{CallObject, names_of};
use crate::namesakes::Namesakes;
use crate::recalled::{Asked, Likeness};

/// The recorded call of a result.
pub(crate) struct FoundCall {
    /// Its object.
    pub object: ObjectId,
    /// It is part of a turn of the session.
    pub is_joined: bool,
    by: FoundBy,
}

/// The way in which the recorded call of a result was found, as far as the next search depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FoundBy {
    /// The first line of its text.
    Header,
    /// Its place among the calls that were recorded for results to come.
    Waiting,
    /// Its place among the calls that share its call ID.
    Namesakes,
    /// A name or a text that no other call has.
    Itself,
}

/// The part of the state in which a result's call is looked for. Nothing of it changes but the list of namesakes, which keeps
/// what was looked up.
struct Lookup<'a> {
    session: &'a Session,
    request: &'a Request,
    namesakes: &'a mut Namesakes,
}

impl FoundCall {
    /// The call of a result that was recorded just now.
    pub(crate) fn recorded(object: ObjectId) -> Self {
        Self { object, is_joined: true, by: FoundBy::Itself }
    }
}

impl Inner {
    /// The call as which a result was recorded before it arrived as a message.
    pub(crate) async fn recorded_as(
        &self,
        state: &mut State,
        input: &Toolcall,
        text: &str,
        arrival: Arrival,
    ) -> Result<Option<FoundCall>> {
        let mut lookup = Lookup::of(state);
        let found = self.find_recorded(&mut lookup, input, text, arrival).await?;
        Ok(found.map(|(object, by)| lookup.found(object, by)))
    }

    async fn find_recorded(
        &self,
        lookup: &mut Lookup<'_>,
        input: &Toolcall,
        text: &str,
        arrival: Arrival,
    ) -> Result<Option<(ObjectId, FoundBy)>> {
        let call_id = &input.id;
        if let Some(object) = lookup.session.object_in(call_id, text) {
            return Ok(Some((object, FoundBy::Header)));
        }
        let [plain, marked, own] = names_of(input, &self.client.chat_id);
        if let Some(object) = lookup.expected(input, [&marked, &own]) {
            return Ok(Some((object, FoundBy::Waiting)));
        }
        for marked in [&marked, &own] {
            if lookup.is_free(marked) {
                return Ok(Some((marked.clone(), FoundBy::Itself)));
            }
        }
        if let Some(again) = self.shown_again(lookup, input).await? {
            return Ok(Some((again, FoundBy::Itself)));
        }
        if arrival == Arrival::New {
            // A repeated call ID means another call, unless it is the very same call.
            if !lookup.is_free(&plain) {
                return Ok(None);
            }
            let stored = self.store().get(&plain, AsOf::default()).await?;
            let like = stored.and_then(|stored| likeness(&stored.document, input, false));
            return Ok((like == Some(Likeness::Call)).then_some((plain, FoundBy::Itself)));
        }
        if let Some(again) = self.made_again(lookup, input, [&plain, &marked, &own]).await? {
            return Ok(Some((again, FoundBy::Itself)));
        }
        let named = lookup.namesakes.of(call_id, lookup.session);
        let is_only = named.len() == 1;
        let mut best: Option<(Likeness, ObjectId)> = None;
        for id in named {
            if !lookup.is_free(&id) {
                continue;
            }
            let asked = Asked::of(lookup.session, &id, &marked, is_only);
            let Some(like) = self.likeness_to(&id, input, asked, is_only).await? else { continue };
            // A result that is recorded now was never cut.
            if like == Likeness::Cut && arrival.is_recorded_now() {
                continue;
            }
            if best.as_ref().is_none_or(|(before, _)| *before < like) {
                best = Some((like, id));
            }
            if like == Likeness::Call {
                break;
            }
        }
        Ok(best.map(|(_, id)| (id, FoundBy::Namesakes)))
    }

    /// The likeness of a result to a recorded call.
    async fn likeness_to(
        &self,
        id: &ObjectId,
        input: &Toolcall,
        asked: Asked,
        is_only: bool,
    ) -> Result<Option<Likeness>> {
        let known = self.recalled().likeness(id, &asked);
        if let Some(known) = known {
            return Ok(known);
        }
        let Some(stored) = self.store().get(id, AsOf::default()).await? else { return Ok(None) };
        let found = likeness(&stored.document, input, is_only);
        self.recalled().note_likeness(id, asked, found);
        Ok(found)
    }

    /// The object of a result that a host shows more than once: no call waits for this one, and a result before it has its call ID
    /// and its text. Gemini CLI doubles the results of a conversation that it resumes.
    async fn shown_again(&self, lookup: &mut Lookup<'_>, input: &Toolcall) -> Result<Option<ObjectId>> {
        if lookup.request.segments.args_of(&input.id).is_some() {
            return Ok(None);
        }
        for id in lookup.namesakes.of(&input.id, lookup.session) {
            if !lookup.request.segments.knows(&id) {
                continue;
            }
            let stored = self.store().get(&id, AsOf::default()).await?;
            let is_it = |document: &Document| {
                let is_its_tool = document.text("tool") == Some(&input.tool) || input.tool == UNKNOWN_TOOL;
                is_its_tool && is_content(document, &input.content)
            };
            if stored.is_some_and(|stored| is_it(&stored.document)) {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// The object of the very same call, if a result before this one is of it: then both are that object.
    async fn made_again(
        &self,
        lookup: &Lookup<'_>,
        input: &Toolcall,
        [plain, marked, own]: [&ObjectId; 3],
    ) -> Result<Option<ObjectId>> {
        let Lookup { session, request, .. } = lookup;
        let is_known = |id: &ObjectId| session.sets.index().contains(id) && request.segments.knows(id);
        // The mark is a digest of the call.
        if let Some(id) = [marked, own].into_iter().find(|id| is_known(id)) {
            return Ok(Some(id.clone()));
        }
        if !is_known(plain) {
            return Ok(None);
        }
        let stored = self.store().get(plain, AsOf::default()).await?;
        Ok(stored.is_some_and(|stored| is_same(&stored.document, input)).then(|| plain.clone()))
    }

    /// The recorded call whose output a host has cleared: of its tool, with its arguments. If the results of all these calls are
    /// there and they are one object, the very same call was made again.
    pub(crate) async fn cleared_of(&self, state: &mut State, input: &Toolcall) -> Result<Option<FoundCall>> {
        let lookup = Lookup::of(state);
        let named = lookup.namesakes.of(&input.id, lookup.session);
        let (known, free): (Vec<_>, Vec<_>) =
            named.into_iter().partition(|id| lookup.request.segments.knows(id));
        for id in free {
            if self.is_call_of(&id, input).await? {
                return Ok(Some(lookup.found(id, FoundBy::Namesakes)));
            }
        }
        let mut only = None;
        for id in known {
            if self.is_call_of(&id, input).await? && only.replace(id).is_some() {
                return Ok(None);
            }
        }
        Ok(only.map(|id| lookup.found(id, FoundBy::Itself)))
    }

    /// True if an object is a call of a result's tool with its arguments.
    async fn is_call_of(&self, id: &ObjectId, input: &Toolcall) -> Result<bool> {
        let stored = self.store().get(id, AsOf::default()).await?;
        Ok(stored.is_some_and(|Version { document, .. }| {
            document.text("tool") == Some(&input.tool) && is_args(&document, &input.args)
        }))
    }
}

impl State {
    /// Notes that a result has taken its recorded call: the next one under its call ID is probably of another call.
    pub(crate) fn claim(&mut self, call_id: &str, FoundCall { object, by, .. }: &FoundCall) {
        let Self { request, namesakes, .. } = self;
        match by {
            FoundBy::Header => {
                if let Some(waiting) = request.received.get_mut(call_id) {
                    waiting.retain(|one| one != object);
                }
            }
            FoundBy::Waiting => request.received_as(call_id, object),
            FoundBy::Namesakes => namesakes.found(object),
            FoundBy::Itself => {}
        }
    }
}

impl<'a> Lookup<'a> {
    fn of(state: &'a mut State) -> Self {
        let State { session, request, namesakes, .. } = state;
        Self { session, request, namesakes }
    }

    /// True for an object of the session that no result of the request has taken.
    fn is_free(&self, id: &ObjectId) -> bool {
        self.session.sets.index().contains(id) && !self.request.segments.knows(id)
    }

    /// Returns the object that a result is of, among those recorded for results that have not come yet. A harness may have cut
    /// the output since, and a hook may have changed the arguments, but the tool must be the same.
    fn expected(&self, input: &Toolcall, marked: [&ObjectId; 2]) -> Option<ObjectId> {
        let waiting = self.request.received.get(&input.id)?;
        let is_same_tool = |id: &&ObjectId| match self.session.catalog.get(id).map(|meta| &meta.kind) {
            Some(MetaKind::Toolcall { tool, .. }) => *tool == input.tool || input.tool == UNKNOWN_TOOL,
            _ => false,
        };
        waiting.iter().find(|id| marked.contains(id)).or_else(|| waiting.iter().find(is_same_tool)).cloned()
    }

    fn found(&self, object: ObjectId, by: FoundBy) -> FoundCall {
        let is_joined = self.session.stays.contains_key(&object);
        FoundCall { object, is_joined, by }
    }
}

/// The tool's name where only the result exists.
pub(crate) const UNKNOWN_TOOL: &str = "unknown";

/// Returns the likeness of a result to a recorded call; `None` if it belongs to another one. `is_only`: its call ID has no
/// other one.
fn likeness(document: &Document, input: &Toolcall, is_only: bool) -> Option<Likeness> {
    if document.text("tool") != Some(&input.tool) && input.tool != UNKNOWN_TOOL {
        return None;
    }
    let has_args = is_args(document, &input.args);
    let Some(content) = document.content() else {
        // A forgotten text leaves only this. A call without an output has not ended.
        let is_forgotten = document.field("status").is_some();
        return is_forgotten.then_some(if has_args { Likeness::Call } else { Likeness::Output });
    };
    // Some hosts add something to the lines of a file.
    if is_content(document, &input.content) || wraps(content, &input.content) {
        return Some(if has_args { Likeness::Call } else { Likeness::Output });
    }
    let is_cut = has_line_of(content, &input.content);
    (if is_only { has_args || is_cut } else { has_args && is_cut }).then_some(Likeness::Cut)
}

/// True if the rest of an output has its longest line, because a host may have added some words.
fn has_line_of(output: &str, left: &str) -> bool {
    left.lines().max_by_key(|line| line.len()).is_none_or(|line| output.contains(line))
}

/// Returns the object that a call becomes. Its ID is the harness's own, verbatim, unless the store has another call under it,
/// or an equal one of an unrelated session.
pub(crate) async fn object_of(
    client: &Client,
    session: &mut Session,
    input: &Toolcall,
) -> Result<CallObject> {
    let names = names_of(input, &client.chat_id);
    for id in &names {
        // The cheap query first: most calls are new.
        if client.store().outlines(std::slice::from_ref(id)).await? == [None] {
            return Ok(CallObject { id: id.clone(), is_new: true });
        }
        let Some(stored) = client.store().get(id, AsOf::default()).await? else { continue };
        let document = &stored.document;
        let is_own =
            session.sets.index().contains(id) || document.text("chat_ref") == Some(client.chat_id.as_str());
        if (is_own && is_same(document, input)) || is_left_of(document, input) {
            return known(client, session, id.clone()).await;
        }
    }
    let [.., own] = names;
    known(client, session, own).await
}

async fn known(client: &Client, session: &mut Session, id: ObjectId) -> Result<CallObject> {
    refresh::learn(client, session, [id.clone()]).await?;
    let is_new = session.catalog.get(&id).is_none();
    Ok(CallObject { id, is_new })
}

fn is_same(document: &Document, input: &Toolcall) -> bool {
    is_content(document, &input.content)
        && document.text("tool") == Some(&input.tool)
        && document.text("status") == Some(input.status.as_str())
        && is_args(document, &input.args)
}

/// True if a harness has only our short form of a recorded output left: an excerpt of it, or the line that names it.
/// Recording that would lose the output.
fn is_left_of(document: &Document, input: &Toolcall) -> bool {
    let reference =
        |text: &str| Reference::of(text).is_some_and(|reference| is_handle_of(&reference.id, document.id()));
    document.text("tool") == Some(&input.tool)
        && (reference(&input.content)
            || document.content().is_some_and(|whole| is_excerpt_of(&input.content, whole)))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Map, Value, json};

    use super::*;

    fn args(command: &str) -> Map<String, Value> {
        json!({ "command": command }).as_object().cloned().unwrap_or_default()
    }

    fn input(tool: &str, command: &str, content: &str) -> Toolcall {
        Toolcall::new("call_0", tool, args(command), content.to_owned())
    }

    #[rstest]
    #[case::itself("bash", "ls", "one\ntwo", Some(Likeness::Call), Some(Likeness::Call))]
    #[case::other_arguments("bash", "***", "one\ntwo", Some(Likeness::Output), Some(Likeness::Output))]
    #[case::other_tool("grep", "ls", "one\ntwo", None, None)]
    #[case::lost_tool(UNKNOWN_TOOL, "", "one\ntwo", Some(Likeness::Output), Some(Likeness::Output))]
    #[case::cut("bash", "ls", "one\n[cut]", Some(Likeness::Cut), None)]
    #[case::cut_with_a_line("bash", "ls", "two\n.", Some(Likeness::Cut), Some(Likeness::Cut))]
    #[case::cut_and_other_arguments("bash", "***", "two\n.", Some(Likeness::Cut), None)]
    #[case::other_output("bash", "***", "fresh", None, None)]
    #[case::other_output_of_the_same("bash", "ls", "fresh", Some(Likeness::Cut), None)]
    fn result_belongs_to_a_call_with_its_tool_and_output(
        #[case] tool: &str,
        #[case] command: &str,
        #[case] content: &str,
        #[case] alone: Option<Likeness>,
        #[case] among_others: Option<Likeness>,
    ) {
        let (id, chat) = (ObjectId::toolcall("call_0"), ObjectId::new("chat:s"));
        let recorded = Document::toolcall(id, &chat, input("bash", "ls", "one\ntwo"));
        let given = input(tool, command, content);
        assert_eq!([true, false].map(|only| likeness(&recorded, &given, only)), [alone, among_others]);
    }
}
