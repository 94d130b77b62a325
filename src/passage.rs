//! Parts of a text, for callers that have the text already.
#![cfg_attr(test, allow(dead_code, reason = "a test build does not register functions with Node"))]

use napi::bindgen_prelude::{Env, PromiseRaw};
use napi_derive::napi;

use crate::convert;
use crate::error::{Coded, promise};
use crate::types as js;

/// A part of a text.
#[napi(object)]
pub(crate) struct Passage {
    /// The requested lines, verbatim; matches as `number: line`. If not all fit, the last line says how many are left.
    pub text: String,
    /// Number of its lines (or matches).
    pub lines: u32,
    /// Number of lines or matches that were requested or match.
    pub of: u32,
    /// The number of lines of the whole text.
    pub total: u32,
}

/// The beginning of the user's own first words in the texts of a conversation, without what hosts put around them; without any,
/// of the first command. Null if a host wrote all of it.
#[napi]
pub(crate) fn first_words(texts: Vec<String>) -> Option<String> {
    context_store::opening::first_words(&texts)
}

/// The requested lines of a text, up to `maxUnits` UTF-16 units. They are searched away from the event loop, in time
/// proportional to the text, whatever the pattern.
///
/// Rejects with `INVALID_ARGUMENT` for a range that is not in the text, for a pattern that is not a regular expression
/// without look-around and back-references, and if neither is given.
#[napi]
pub(crate) fn text_part(
    env: &Env,
    text: String,
    part: js::Part,
    max_units: f64,
) -> napi::Result<PromiseRaw<'_, Passage>> {
    let work = async move {
        let most = convert::whole(max_units, "maxUnits")?;
        let Some(part) = convert::part(Some(part))? else {
            return Err(Coded::invalid("give lines or grep"));
        };
        let found = tokio::task::spawn_blocking(move || context_tools::part(&text, &part, most)).await;
        let found = found.map_err(|error| Coded::failed(error.to_string()))??;
        Ok(Passage {
            text: found.text,
            lines: convert::count(found.lines),
            of: convert::count(found.of),
            total: convert::count(found.total),
        })
    };
    promise(env, work)
}
