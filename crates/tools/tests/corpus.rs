//! The calls and outputs of each agent, with what is recognized in them (`fixtures/tools`).
#![expect(clippy::unwrap_used, reason = "a corpus of another form fails the test")]

use std::collections::HashSet;
use std::path::Path;

use context_tools::{AgentCall, ArgumentNames, DIALECTS, changes_of, output_alone, shown_lines};
use serde_json::{Map, Value, json};

struct Corpus {
    file: String,
    agent: String,
    calls: Vec<Value>,
    outputs: Vec<Value>,
}

fn corpora() -> Vec<Corpus> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tools");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    files
        .map(|path| {
            let all: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let list = |name: &str| all[name].as_array().unwrap().clone();
            Corpus {
                file: path.file_name().unwrap().to_string_lossy().into_owned(),
                agent: all["agent"].as_str().unwrap().to_owned(),
                calls: list("calls"),
                outputs: list("outputs"),
            }
        })
        .collect()
}

fn renamed(args: &Map<String, Value>, name_of: impl Fn(&str) -> Option<&'static str>) -> Map<String, Value> {
    let fields = args.iter().map(|(name, value)| {
        let engine = name_of(name).filter(|engine| !args.contains_key(*engine));
        (engine.unwrap_or(name).to_owned(), value.clone())
    });
    fields.collect()
}

fn engine_name(names: ArgumentNames, name: &str) -> Option<&'static str> {
    names.iter().find(|group| group[1..].contains(&name)).map(|group| group[0])
}

/// The arguments under the engine's names.
fn arguments(call: &AgentCall, args: &Map<String, Value>) -> Map<String, Value> {
    if call.is_script {
        return Map::from_iter([("command".to_owned(), call.command.clone().into())]);
    }
    let mut own =
        renamed(args, |name| call.names.iter().find(|(own, _)| own == name).map(|(_, engine)| *engine));
    if let Some(items) = call.items {
        for item in own[items.field].as_array_mut().unwrap() {
            *item = renamed(item.as_object().unwrap(), |name| engine_name(items.names, name)).into();
        }
    }
    if let Some(command) = &call.command {
        own.insert("command".to_owned(), command.as_str().into());
    }
    own
}

#[test]
fn calls_of_each_agent_are_recognized() {
    for Corpus { file, calls, .. } in corpora() {
        for one in &calls {
            let (name, args) = (one["tool"].as_str().unwrap(), one["args"].as_object().unwrap());
            let call = AgentCall::of(name, args);
            let Some(expected) = one.get("is") else {
                assert_eq!(call, None, "{file}: {one}");
                continue;
            };
            let call = call.unwrap_or_else(|| panic!("{file}: {one} is not recognized"));
            assert_eq!(call.tool, expected["tool"].as_str().unwrap(), "{file}: {one}");
            let own = expected.get("args").unwrap_or(&one["args"]);
            assert_eq!(&Value::from(arguments(&call, args)), own, "{file}: {one}");
            assert_eq!(call.reads.as_deref(), expected["reads"].as_str(), "{file}: {one}");
            let writes = expected.get("writes").cloned().unwrap_or(json!([]));
            assert_eq!(json!(call.writes), writes, "{file}: {one}");
            let shows = call.shows.map(|shown| {
                let last = (shown.last != usize::MAX).then_some(shown.last);
                json!({ "path": shown.path, "first": shown.first, "last": last, "numbered": shown.numbered })
            });
            assert_eq!(shows.as_ref(), expected.get("shows"), "{file}: {one}");
        }
    }
}

#[test]
fn changes_of_each_agent_are_known_before_they_are_made() {
    for Corpus { file, calls, .. } in corpora() {
        for one in &calls {
            let changes = changes_of(one["tool"].as_str().unwrap(), one["args"].as_object().unwrap());
            let shown = changes.iter().map(|change| match &change.old_texts {
                Some(old) => json!({ "path": change.path, "oldTexts": old }),
                None => json!({ "path": change.path }),
            });
            let expected = one.get("changes").cloned().unwrap_or(json!([]));
            assert_eq!(Value::from_iter(shown), expected, "{file}: {one}");
        }
    }
}

#[test]
fn outputs_of_each_agent_are_understood() {
    for Corpus { file, outputs, .. } in corpora() {
        for one in &outputs {
            let output = one["output"].as_str().unwrap();
            assert_eq!(shown_lines(output).as_deref(), one["lines"].as_str(), "{file}: {one}");
            assert_eq!(output_alone(output).as_deref(), one["alone"].as_str(), "{file}: {one}");
        }
    }
}

/// A tool that a dialect names and that its agent never calls in the corpus may have another form than ours.
#[test]
fn each_tool_of_a_dialect_is_called_in_its_corpus() {
    let corpora = corpora();
    for dialect in DIALECTS {
        let corpus = corpora.iter().find(|corpus| corpus.agent == dialect.agent);
        let corpus = corpus.unwrap_or_else(|| panic!("fixtures/tools has no calls of {}", dialect.agent));
        let called: HashSet<&str> = corpus.calls.iter().filter_map(|call| call["tool"].as_str()).collect();
        let names = dialect.tools.iter().flat_map(|tool| tool.names);
        let missing: Vec<_> = names.filter(|name| !called.contains(*name)).collect();
        assert!(missing.is_empty(), "{} lacks calls of {missing:?}", corpus.file);
    }
    for corpus in &corpora {
        assert!(
            DIALECTS.iter().any(|dialect| dialect.agent == corpus.agent),
            "{} has no dialect",
            corpus.agent
        );
    }
}
