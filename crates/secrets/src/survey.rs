//! Looking for secrets in a whole store.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::ObjectType;
use context_model::source::Source;
use context_model::time::TxId;
use serde_json::Value;

use super::redact;
use super::rules::Secret;
use super::text::in_text;
use context_store::{Change, Entry, Filter, Result, Store};

/// Secrets that one rule has found in one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretPlace {
    /// The object.
    pub id: ObjectId,
    /// The first transaction whose version has one.
    pub tx_id: TxId,
    /// The line of the first one in the content, counted from 1; `None` where it is elsewhere in the version.
    pub line: Option<usize>,
    /// The rule.
    pub rule: &'static str,
    /// Number of different secrets found in all versions.
    pub count: usize,
}

/// The places and secrets that [`in_store`] has found.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// By object and rule.
    pub places: Vec<SecretPlace>,
    /// The secrets themselves: for erasing them, never to be shown.
    pub values: HashSet<String>,
}

/// A secret in a text: its rule, its line and itself.
type SecretHit = (&'static str, usize, String);

/// Looks for secrets in all versions of a store: texts, arguments and turns. A file's text is searched once,
/// however many of its versions have it, and an output once, however many calls have it.
pub async fn in_store(store: &dyn Store) -> Result<Survey> {
    let mut found = Survey::default();
    // By hash and path, since some rules are for certain files. Texts without secrets have an empty list.
    let mut searched: HashMap<(Digest, Option<String>), Arc<[SecretHit]>> = HashMap::new();
    for id in store.query(&Filter::default()).await? {
        let mut by_rule: BTreeMap<&'static str, (SecretPlace, HashSet<String>)> = BTreeMap::new();
        for entry in store.journal(&id).await? {
            let mut take = |(rule, line, secret): (&'static str, Option<usize>, String)| {
                let place = SecretPlace { id: id.clone(), tx_id: entry.tx_id, line, rule, count: 0 };
                let (_, values) = by_rule.entry(rule).or_insert_with(|| (place, HashSet::new()));
                values.insert(secret);
            };
            if let Change::Document(document) = &entry.change
                && let Some((text, hash)) = document.content().zip(document.text_hash())
            {
                let path = match document.source() {
                    Some(Source::Filesystem(file)) => Some(file.path.as_str()),
                    _ => None,
                };
                let key = (hash, path.map(str::to_owned));
                let hits = Arc::clone(searched.entry(key).or_insert_with(|| hits(text, path)));
                hits.iter().for_each(|(rule, line, secret)| take((rule, Some(*line), secret.clone())));
            }
            for mut value in values(&entry) {
                redact::strings(&mut value, None, &mut |text, name| {
                    for Secret { rule, range } in redact::in_value(text, name) {
                        take((rule, None, text[range].to_owned()));
                    }
                    None
                });
            }
        }
        for (place, values) in by_rule.into_values() {
            found.places.push(SecretPlace { count: values.len(), ..place });
            found.values.extend(values);
        }
    }
    Ok(found)
}

fn hits(text: &str, path: Option<&str>) -> Arc<[SecretHit]> {
    let (mut line, mut at) = (1, 0);
    in_text(text, path)
        .into_iter()
        .map(|Secret { rule, range }| {
            line += text[at..range.start].matches('\n').count();
            at = range.start;
            (rule, line, text[range].to_owned())
        })
        .collect()
}

/// Returns the values of a version outside its content: arguments and turns.
fn values(entry: &Entry) -> Vec<Value> {
    match &entry.change {
        Change::Document(document) if document.object_type() == ObjectType::Session => Vec::new(),
        Change::Document(document) => {
            let fields = ["args", "args_display", "turns"].map(|name| document.field(name).cloned());
            fields.into_iter().flatten().collect()
        }
        Change::Patch(patch) => {
            let operations = serde_json::to_value(patch).unwrap_or_default();
            let operations = operations.as_array().cloned().unwrap_or_default();
            operations.into_iter().filter_map(redact::said).collect()
        }
    }
}
