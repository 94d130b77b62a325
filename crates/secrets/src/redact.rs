//! Taking secrets out of texts and payloads. The line breaks inside a secret stay, so that lines keep their numbers.

use std::collections::BTreeMap;

use context_model::object::{Document, ObjectType};
use context_model::patch::Patch;
use context_model::source::Source;
use serde_json::{Map, Value, json};

use super::rules::Secret;
use super::text::in_text;
use context_store::redacted::FIELD;
use context_store::{Transaction, Write};

/// The fields of a payload that hold texts.
pub(super) const TEXTS: [&str; 4] = ["content", "args", "args_display", "turns"];

/// Fields that refer to objects or count them; they are not searched.
const REFERENCES: [&str; 5] = ["toolcall_ids", "activated_ids", "rolls", "status", "toolCallId"];

/// The longest value that is searched together with the name of its field, as in `"password": "…"`.
const NAMED: usize = 256;

/// Number of secrets that were taken out, by rule.
pub(crate) type Counts = BTreeMap<&'static str, usize>;

/// The text with a mark such as `[redacted: aws-access-token]` in place of each secret, and the counts of the secrets;
/// `None` if it has none. `path` is as in [`in_text`].
#[must_use]
pub fn redacted(text: &str, path: Option<&str>) -> Option<(String, Counts)> {
    let secrets = in_text(text, path);
    (!secrets.is_empty()).then(|| without(text, secrets))
}

fn without(text: &str, secrets: Vec<Secret>) -> (String, Counts) {
    let (mut rest, mut out, mut counts) = (0, String::with_capacity(text.len()), Counts::new());
    for Secret { rule, range } in secrets {
        out.push_str(&text[rest..range.start]);
        out.push_str(&format!("[redacted: {rule}]"));
        out.extend(text[range.clone()].chars().filter(|char| *char == '\n'));
        rest = range.end;
        *counts.entry(rule).or_default() += 1;
    }
    out.push_str(&text[rest..]);
    (out, counts)
}

/// True if recording took something out of a document.
#[must_use]
pub fn is_redacted(document: &Document) -> bool {
    document.field(FIELD).is_some()
}

/// True if a redacted document has this as its content: the text itself, or the text without its secrets.
#[must_use]
pub fn is_content(document: &Document, text: &str) -> bool {
    document.content().is_some_and(|content| {
        content == text
            || (is_redacted(document) && redacted(text, None).is_some_and(|(text, _)| text == content))
    })
}

/// True if a redacted document has these arguments, themselves or without their secrets.
#[must_use]
pub fn is_args(document: &Document, args: &Map<String, Value>) -> bool {
    let stored = document.field("args").and_then(Value::as_object);
    stored.is_some_and(|stored| {
        stored == args || {
            let mut args = Value::Object(args.clone());
            is_redacted(document)
                && value(&mut args, None, &mut |_, _| {}) != Counts::new()
                && args.as_object() == Some(stored)
        }
    })
}

/// Takes the secrets out of the records of a transaction: texts of files and prompts, arguments and outputs of calls, and
/// the turns of a chat. `note` gets each changed string, before and after, with its document or patch.
///
/// Hashes of files' bytes stay, and so does their length, so that a redacted file is not taken for a changed one.
pub(super) fn transaction(transaction: &mut Transaction, note: &mut dyn FnMut(Of<'_>, &str, &str)) {
    for write in &mut transaction.writes {
        match write {
            Write::Put { document: whole, .. } => {
                if let Some(without) = document(whole, note) {
                    *whole = without;
                }
            }
            Write::Patch { id, patch, .. } => {
                let mut found = Counts::new();
                let mut operations = serde_json::to_value(&*patch).unwrap_or_default();
                for operation in operations.as_array_mut().into_iter().flatten() {
                    if is_said(operation)
                        && let Some(said) = operation.get_mut("value")
                    {
                        add(&mut found, value(said, None, &mut |old, new| note((id, None), old, new)));
                    }
                }
                if !found.is_empty()
                    && let Ok(without) = serde_json::from_value::<Patch>(operations)
                {
                    *patch = without;
                }
            }
        }
    }
}

/// True if an operation of a patch carries text; false if it only refers to objects or counts them.
fn is_said(operation: &Value) -> bool {
    let path = operation.get("path").and_then(Value::as_str).unwrap_or_default();
    let is_text = path.starts_with("/turns") || path == "/content";
    is_text && !path.split('/').any(|token| REFERENCES.contains(&token))
}

/// Returns the text of an operation of a patch.
pub(super) fn said(mut operation: Value) -> Option<Value> {
    if is_said(&operation) { operation.get_mut("value").map(Value::take) } else { None }
}

/// The object that a string is of, and the hash of the bytes of the file's version.
pub(super) type Of<'a> = (&'a context_model::id::ObjectId, Option<context_model::hash::Digest>);

fn document(whole: &Document, note: &mut dyn FnMut(Of<'_>, &str, &str)) -> Option<Document> {
    if whole.object_type() == ObjectType::Session {
        return None;
    }
    let path = match whole.source() {
        Some(Source::Filesystem(file)) => Some(file.path.as_str()),
        _ => None,
    };
    let of = (whole.id(), whole.source_hash());
    let mut found = Counts::new();
    let mut changed = Vec::new();
    for name in TEXTS {
        let Some(field) = whole.field(name) else { continue };
        if let Value::String(text) = field {
            // A text may be long: it is copied only if something is taken out.
            if let Some((without, counts)) = redacted(text, path) {
                note(of, text, &without);
                add(&mut found, counts);
                changed.push((name, Value::String(without)));
            }
            continue;
        }
        let mut without = field.clone();
        let counts = value(&mut without, None, &mut |old, new| note(of, old, new));
        if !counts.is_empty() {
            add(&mut found, counts);
            changed.push((name, without));
        }
    }
    if found.is_empty() {
        return None;
    }
    let (id, object_type, source, mut payload) = whole.clone().into_parts();
    payload.extend(changed.into_iter().map(|(name, value)| (name.to_owned(), value)));
    payload.insert(FIELD.into(), json!(found));
    Document::new(id, object_type, source, payload).ok()
}

/// Takes the secrets out of the strings of a value; a short one is searched together with the name of its field.
pub(super) fn value(value: &mut Value, name: Option<&str>, note: &mut dyn FnMut(&str, &str)) -> Counts {
    let mut found = Counts::new();
    strings(value, name, &mut |text, name| {
        let (without, counts) = string(text, name)?;
        note(text, &without);
        add(&mut found, counts);
        Some(without)
    });
    found
}

/// Gives each string of a value with the name of its field to `change`, and replaces the string with the result.
pub(super) fn strings(
    value: &mut Value,
    name: Option<&str>,
    change: &mut dyn FnMut(&str, Option<&str>) -> Option<String>,
) {
    match value {
        Value::String(text) => {
            if let Some(changed) = change(text, name) {
                *text = changed;
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| strings(value, name, change)),
        Value::Object(fields) => fields
            .iter_mut()
            .filter(|(name, _)| !REFERENCES.contains(&name.as_str()))
            .for_each(|(name, value)| strings(value, Some(name), change)),
        _ => {}
    }
}

/// Returns one string of a payload without its secrets, and their counts.
fn string(text: &str, name: Option<&str>) -> Option<(String, Counts)> {
    let secrets = in_value(text, name);
    (!secrets.is_empty()).then(|| without(text, secrets))
}

/// The secrets in one string of a payload.
pub(super) fn in_value(text: &str, name: Option<&str>) -> Vec<Secret> {
    let Some(name) = name.filter(|_| text.len() <= NAMED) else { return in_text(text, None) };
    let before = format!("{name}: ");
    let moved = |Secret { rule, range }: Secret| {
        let range = range.start.saturating_sub(before.len())..range.end.saturating_sub(before.len());
        (!range.is_empty()).then_some(Secret { rule, range })
    };
    in_text(&format!("{before}{text}"), None).into_iter().filter_map(moved).collect()
}

fn add(counts: &mut Counts, more: Counts) {
    for (rule, count) in more {
        *counts.entry(rule).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    use context_model::hash::Digest;
    use context_model::source::FilesystemSource;

    use super::*;

    fn key() -> String {
        // Put together here, so that no scanner takes this file for a leak.
        format!("AKIA{}", "Y3FDSAOQ5TGX2WLB")
    }

    #[test]
    fn lines_keep_their_numbers_and_marks_name_the_secrets() {
        let body = "MIIEowIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7MhgwQ4xXv1lq\n".repeat(4);
        let text = format!(
            "a={}\n-----BEGIN RSA PRIVATE {}\n{body}-----END RSA PRIVATE KEY-----\nlast\n",
            key(),
            "KEY-----"
        );
        let (without, counts) = redacted(&text, None).unwrap();
        assert_eq!(counts, Counts::from([("aws-access-token", 1), ("private-key", 1)]));
        assert!(
            without.starts_with("a=[redacted: aws-access-token]\n[redacted: private-key]\n\n"),
            "{without}"
        );
        assert_eq!(text.lines().count(), without.lines().count());
        assert!(without.ends_with("\nlast\n"));
        assert_eq!(redacted(&without, None), None);
    }

    #[test]
    fn the_hash_of_the_bytes_and_the_length_stay() {
        let text = format!("key = {}\n", key());
        let source = FilesystemSource { filesystem_id: "f".into(), path: "/a/.env".into() };
        let whole = Document::file(source, Some(text.clone()), Some(Digest::of(text.as_bytes())));
        let mut noted = Vec::new();
        let without =
            document(&whole, &mut |_, old, new| noted.push((old.to_owned(), new.to_owned()))).unwrap();
        assert_eq!(without.content(), Some("key = [redacted: aws-access-token]\n"));
        assert_eq!((without.id(), without.source_hash()), (whole.id(), whole.source_hash()));
        assert_eq!(without.field("char_count"), whole.field("char_count"));
        assert_eq!(without.field(FIELD), Some(&json!({ "aws-access-token": 1 })));
        assert_eq!(noted, [(text.clone(), without.content().unwrap().to_owned())]);
        assert!(is_content(&without, &text) && is_content(&whole, &text) && !is_content(&without, "key"));
    }

    #[test]
    fn a_value_is_looked_at_with_its_name_and_references_stay() {
        let word = "q9Zr-4mXw82Lp0Tb";
        let mut args =
            json!({ "password": word, "toolcall_ids": [key()], "list": [{ "text": key() }], "n": 1 });
        let counts = value(&mut args, None, &mut |_, _| {});
        assert_eq!(counts, Counts::from([("aws-access-token", 1), ("generic-api-key", 1)]));
        assert_eq!(
            args,
            json!({ "password": "[redacted: generic-api-key]", "toolcall_ids": [key()],
                "list": [{ "text": "[redacted: aws-access-token]" }], "n": 1 })
        );
    }
}
