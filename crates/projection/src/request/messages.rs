//! Reading the harness's messages, which have the shapes of pi-ai, and how many tokens they have: an estimate, corrected by what
//! the provider reports.

use std::collections::HashMap;

use context_model::tokens;
use serde_json::{Value, json};

use crate::Need;

/// A text field; empty if it is missing.
pub fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The text blocks of a tool result as one text.
pub fn result_text(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts = blocks.iter().filter(|b| text_of(b, "type") == "text").map(|b| text_of(b, "text"));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Returns a content that is one text as an equal block.
pub(crate) fn whole_text(message: &Value) -> Option<Value> {
    let text = message.get("content").and_then(Value::as_str)?;
    Some(json!({ "type": "text", "text": text }))
}

/// The blocks of a message's content; `whole` is what [`whole_text`] returns for it.
pub(crate) fn blocks_of<'a>(message: &'a Value, whole: Option<&'a Value>) -> Vec<&'a Value> {
    let blocks = message.get("content").and_then(Value::as_array);
    blocks.into_iter().flatten().chain(whole).collect()
}

/// True if a message has an image.
pub fn has_image(message: &Value) -> bool {
    let blocks = message.get("content").and_then(Value::as_array);
    blocks.into_iter().flatten().any(|b| text_of(b, "type") == "image")
}

/// The UTF-16 units that a block counts for. Images, and content of other kinds, count for their `characters`; an image that
/// names none counts as in Pi.
pub(crate) fn block_units(block: &Value) -> usize {
    const IMAGE: usize = 4800;
    let characters =
        block.get("characters").and_then(Value::as_u64).and_then(|units| usize::try_from(units).ok());
    match text_of(block, "type") {
        "text" => tokens::utf16_len(text_of(block, "text")),
        "thinking" => tokens::utf16_len(text_of(block, "thinking")),
        "image" => characters.unwrap_or(IMAGE),
        "toolCall" => {
            let args = block.get("arguments").map_or(0, |a| tokens::utf16_len(&a.to_string()));
            tokens::utf16_len(text_of(block, "name")) + args
        }
        _ => characters.unwrap_or(0),
    }
}

/// The tokens of the request that an answer's usage reports, including cached ones.
pub fn input_tokens(answer: &Value) -> Option<u64> {
    let usage = answer.get("usage")?;
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    Some(count("input") + count("cacheRead") + count("cacheWrite"))
}

/// Estimated tokens of a message.
pub fn message_tokens(message: &Value) -> u64 {
    tokens::of_chars(message_units(message)) as u64
}

pub(crate) fn message_units(message: &Value) -> usize {
    match message.get("content") {
        Some(Value::String(text)) => tokens::utf16_len(text),
        Some(Value::Array(blocks)) => blocks.iter().map(block_units).sum(),
        _ => ["summary", "command", "output"].iter().map(|n| tokens::utf16_len(text_of(message, n))).sum(),
    }
}

/// The lines of a message that may be notices. Only the harness issues notices; text from a user, the model or a tool is
/// never one.
pub fn lines_of_ours(message: &Value) -> Vec<&str> {
    if matches!(text_of(message, "role"), "user" | "assistant" | "toolResult") {
        return Vec::new();
    }
    lines_of(message)
}

/// The lines of a message's texts.
pub fn lines_of(message: &Value) -> Vec<&str> {
    let blocks = message.get("content").and_then(Value::as_array).into_iter().flatten();
    let texts = blocks.map(|block| text_of(block, "text")).chain([text_of(message, "content")]);
    texts.flat_map(str::lines).collect()
}

/// The weight with which each new observation enters the factor.
const WEIGHT: f64 = 0.3;

/// A factor outside this range means that the report counts something else (only new tokens, say). Where reasoning is sent encrypted,
/// a request has up to 4 tokens for each that is estimated.
const PLAUSIBLE: std::ops::RangeInclusive<f64> = 0.4..=6.0;

/// The density follows the factor once they differ by more than this share, because a new one judges all of a request again.
const STEP: f64 = 0.1;

/// The factor from estimated to reported tokens, for each model.
#[derive(Clone, Debug, Default)]
pub struct Accounting {
    models: HashMap<String, Counted>,
}

#[derive(Clone, Copy, Debug)]
struct Counted {
    factor: f64,
    density: f64,
}

impl Accounting {
    /// Learns how many tokens a request had that was estimated: by an answer's usage, including cached ones.
    pub fn learn(&mut self, model: &str, estimated: u64, reported: u64) {
        // No plausible number if one of them is 0.
        let seen = reported as f64 / estimated as f64;
        if !PLAUSIBLE.contains(&seen) {
            return;
        }
        let Counted { factor, density } =
            self.models.entry(model.to_owned()).or_insert(Counted { factor: seen, density: seen });
        *factor += (seen - *factor) * WEIGHT;
        if (*factor / *density - 1.0).abs() > STEP {
            *density = *factor;
        }
    }

    /// The factor of a model; 1 while nothing was reported.
    pub fn factor(&self, model: &str) -> f64 {
        self.models.get(model).map_or(1.0, |counted| counted.factor)
    }

    /// About the same factor, for the cost of keeping text ([`Need::density`]): it changes only now and then, and is never below
    /// the usual one, because the curves of need were fitted with that.
    pub fn density(&self, model: &str) -> f64 {
        self.models.get(model).map_or(Need::USUAL_DENSITY, |counted| counted.density.max(Need::USUAL_DENSITY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_what_was_fresh_what_was_cached_and_what_was_written_to_the_cache() {
        let usage = json!({ "usage": { "input": 1, "output": 1_000, "cacheRead": 20, "cacheWrite": 300 } });
        assert_eq!(input_tokens(&usage), Some(321));
        assert_eq!((input_tokens(&json!({})), input_tokens(&json!({ "usage": {} }))), (None, Some(0)));
    }

    #[test]
    fn text_of_a_result() {
        let text = |content: Value| result_text(&json!({ "content": content }));
        assert_eq!(text(json!("all of it")), "all of it");
        let image = json!({ "type": "image", "text": "no text" });
        let block = |text: &str| json!({ "type": "text", "text": text });
        assert_eq!(text(json!([block("a"), image, block("b")])), "a\nb");
        assert_eq!(text(json!({ "type": "text", "text": "a" })), "");
        assert_eq!(result_text(&json!({})), "");
    }

    #[test]
    fn whether_there_is_an_image() {
        let has = |types: &[&str]| {
            let blocks: Vec<Value> = types.iter().map(|name| json!({ "type": name })).collect();
            has_image(&json!({ "content": blocks }))
        };
        assert!(has(&["image"]) && has(&["text", "image"]));
        assert!(!has(&[]) && !has(&["text", "toolCall"]) && !has_image(&json!({ "content": "image" })));
    }

    #[test]
    fn how_much_a_message_counts_for() {
        let blocks = [
            (json!({ "type": "text", "text": "a\u{1f600}" }), 3),
            (json!({ "type": "thinking", "thinking": "abcd" }), 4),
            (json!({ "type": "image" }), 4_800),
            (json!({ "type": "toolCall", "name": "bash", "arguments": { "a": 1 } }), 4 + 7),
            (json!({ "type": "toolCall", "name": "bash" }), 4),
            (json!({ "type": "other", "text": "abc" }), 0),
            (json!({ "type": "other", "characters": 900 }), 900),
            (json!({ "type": "image", "characters": 900 }), 900),
            (json!({ "type": "text", "text": "abc", "characters": 900 }), 3),
        ];
        for (block, units) in &blocks {
            assert_eq!(block_units(block), *units, "{block}");
        }
        let all: Vec<&Value> = blocks.iter().map(|(block, _)| block).collect();
        let message = json!({ "content": all });
        assert_eq!(message_units(&message), 6_625);
        assert_eq!(message_tokens(&message), 1_657);
        assert_eq!(message_units(&json!({ "content": "abc" })), 3);
        assert_eq!(
            message_units(&json!({ "summary": "ab", "command": "c", "output": "def", "other": "x" })),
            6
        );
    }

    #[test]
    fn only_the_harness_issues_notices() {
        let text = "first\nsecond";
        for role in ["user", "assistant", "toolResult"] {
            assert!(lines_of_ours(&json!({ "role": role, "content": text })).is_empty());
        }
        let blocks = json!([{ "type": "text", "text": text }]);
        for content in [json!(text), blocks] {
            let message = json!({ "role": "custom", "content": content });
            assert_eq!(lines_of_ours(&message), ["first", "second"]);
        }
    }

    /// The density stays while the factor moves little, and follows it at once where it moves more.
    #[test]
    fn density_follows_the_factor_in_steps() {
        let mut accounting = Accounting::default();
        assert_eq!(accounting.density("m"), Need::USUAL_DENSITY);
        for (reported, factor, density) in [
            (3_600, 3.6, 3.6),
            (4_000, 3.72, 3.6),
            (4_400, 3.924, 3.6),
            (5_000, 4.2468, 4.2468),
            (6_001, 4.2468, 4.2468),
        ] {
            accounting.learn("m", 1_000, reported);
            assert!((accounting.factor("m") - factor).abs() < 1e-9, "{reported}: {}", accounting.factor("m"));
            assert!(
                (accounting.density("m") - density).abs() < 1e-9,
                "{reported}: {}",
                accounting.density("m")
            );
        }
        accounting.learn("terse", 1_000, 500);
        assert_eq!((accounting.factor("terse"), accounting.density("terse")), (0.5, Need::USUAL_DENSITY));
    }

    #[test]
    fn factor_follows_the_reports_and_ignores_impossible_ones() {
        let mut accounting = Accounting::default();
        accounting.learn("m", 1000, 1400);
        assert_eq!(accounting.factor("m"), 1.4);
        accounting.learn("m", 1000, 1500);
        assert!((accounting.factor("m") - 1.43).abs() < 1e-9);
        for (estimated, reported) in [(1000, 100), (0, 5), (0, 0), (100, 0)] {
            accounting.learn("m", estimated, reported);
        }
        assert!((accounting.factor("m") - 1.43).abs() < 1e-9);
        assert_eq!(accounting.factor("other"), 1.0);
    }
}
