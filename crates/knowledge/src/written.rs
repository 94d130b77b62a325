//! Which version of a file a `write` or `edit` call left.

use serde_json::{Map, Value};

/// What a call's arguments say about the text that it leaves.
pub enum Leaves<'a> {
    /// This text.
    Text(&'a str),
    /// The previous text with these replacements: each old text, if given, by the new one.
    Edits(Vec<(Option<&'a str>, &'a str)>),
    /// Nothing.
    Unsaid,
}

/// Whether a call has left a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It has.
    Yes,
    /// What the call put in comes up in this text, but what the call started from is unknown.
    Perhaps,
    /// It has not.
    No,
}

impl<'a> Leaves<'a> {
    /// From a call's arguments.
    #[must_use]
    pub fn of(args: &'a Map<String, Value>) -> Self {
        if let Some(text) = args.get("content").and_then(Value::as_str) {
            return Self::Text(text);
        }
        let edits: Vec<_> = args
            .get("edits")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_object)
            .collect();
        let all = edits.into_iter().chain([args]).filter_map(|edit| {
            let text = |name: &str| edit.get(name).and_then(Value::as_str);
            Some((text("oldText"), text("newText")?))
        });
        let all: Vec<_> = all.collect();
        if all.is_empty() { Self::Unsaid } else { Self::Edits(all) }
    }

    /// Returns whether the call left this text, given the file's text `before` it.
    pub fn fits(&self, before: Option<&str>, text: &str) -> Fit {
        match self {
            Self::Text(written) if *written == text => Fit::Yes,
            Self::Text(_) => Fit::No,
            Self::Edits(_) if self.makes_of(before).is_some_and(|left| left == text) => Fit::Yes,
            Self::Edits(edits) if edits.iter().all(|edit| comes_up(*edit, before, text)) => Fit::Perhaps,
            Self::Edits(_) => Fit::No,
            Self::Unsaid => Fit::Perhaps,
        }
    }

    /// The text that replacements make of another one, if that has what they replace.
    pub fn makes_of(&self, before: Option<&str>) -> Option<String> {
        if let Self::Edits(edits) = self { edited(before?, edits) } else { None }
    }
}

/// Returns whether a replacement may have been made between two texts: what it puts in comes up, or what it takes out
/// leaves. Of a version that has it like the one before, it is not the first.
fn comes_up((old, new): (Option<&str>, &str), before: Option<&str>, text: &str) -> bool {
    let Some(before) = before else { return text.contains(new) };
    let count = |all: &str, part: &str| all.matches(part).count();
    let old = old.filter(|old| !old.is_empty());
    let is_put_in = !new.is_empty() && count(text, new) > count(before, new);
    is_put_in || (text.contains(new) && old.is_some_and(|old| count(text, old) < count(before, old)))
}

/// A text with all of these replaced; `None` if one of them does not occur exactly once, because tools then search in
/// their own ways.
fn edited(before: &str, edits: &[(Option<&str>, &str)]) -> Option<String> {
    let mut places = Vec::with_capacity(edits.len());
    for (old, new) in edits {
        let old = old.filter(|old| !old.is_empty())?;
        let (at, next) = (before.find(old)?, before.rfind(old)?);
        if at != next {
            return None;
        }
        places.push((at, at + old.len(), *new));
    }
    places.sort_unstable();
    let (mut text, mut done) = (String::with_capacity(before.len()), 0);
    for (start, end, new) in places {
        text.push_str(before.get(done..start)?);
        text.push_str(new);
        done = end;
    }
    text.push_str(&before[done..]);
    Some(text)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::written(json!({ "content": "a\n" }), Some("b\n"), "a\n", Fit::Yes)]
    #[case::not_written(json!({ "content": "a\n" }), None, "a", Fit::No)]
    #[case::edited(json!({ "edits": [{ "oldText": "b", "newText": "x" }] }), Some("a\nb\n"), "a\nx\n", Fit::Yes)]
    #[case::one_edit(json!({ "oldText": "b", "newText": "x" }), Some("a\nb\n"), "a\nx\n", Fit::Yes)]
    #[case::and_more(json!({ "oldText": "b", "newText": "x" }), Some("a\nb\n"), "a\nx\ny\n", Fit::Perhaps)]
    #[case::before_it(json!({ "oldText": "b", "newText": "x" }), Some("a\nx\n"), "a\nx\ny\n", Fit::No)]
    #[case::one_more(json!({ "oldText": "b", "newText": "x" }), Some("x\n"), "x\nx\n", Fit::Perhaps)]
    #[case::shortened(json!({ "oldText": "ab", "newText": "a" }), Some("ab a\n"), "a a y\n", Fit::Perhaps)]
    #[case::taken_out_and_more(json!({ "oldText": "b\n", "newText": "" }), Some("a\nb\n"), "a\ny\n", Fit::Perhaps)]
    #[case::not_taken_out(json!({ "oldText": "b\n", "newText": "" }), Some("b\n"), "b\ny\n", Fit::No)]
    #[case::several(
        json!({ "edits": [{ "oldText": "c", "newText": "z" }, { "oldText": "a", "newText": "y" }] }),
        Some("a b c"), "y b z", Fit::Yes
    )]
    #[case::overlapping(
        json!({ "edits": [{ "oldText": "ab", "newText": "z" }, { "oldText": "bc", "newText": "y" }] }),
        Some("abc"), "zy", Fit::Perhaps
    )]
    #[case::not_found(json!({ "oldText": "b", "newText": "x" }), Some("a"), "a x", Fit::Perhaps)]
    #[case::not_found_and_not_there(json!({ "oldText": "b", "newText": "x" }), Some("a"), "a y", Fit::No)]
    #[case::found_twice(json!({ "oldText": "b", "newText": "x" }), Some("b b"), "x b", Fit::Perhaps)]
    #[case::nothing_before(json!({ "oldText": "b", "newText": "x" }), None, "x", Fit::Perhaps)]
    #[case::no_old_text(json!({ "newText": "x" }), Some("a"), "x", Fit::Perhaps)]
    #[case::empty_old_text(json!({ "oldText": "", "newText": "x" }), Some("a"), "xa", Fit::Perhaps)]
    #[case::taken_out(json!({ "oldText": "b\n", "newText": "" }), Some("a\nb\n"), "a\n", Fit::Yes)]
    #[case::unsaid(json!({ "path": "a" }), Some("a"), "b", Fit::Perhaps)]
    fn what_a_call_leaves(
        #[case] args: Value,
        #[case] before: Option<&str>,
        #[case] text: &str,
        #[case] fit: Fit,
    ) {
        assert_eq!(Leaves::of(args.as_object().unwrap()).fits(before, text), fit);
    }
}
