//! A call of an agent, recognized.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use crate::dialect::{ArgumentNames, EDITS, Tool, ToolKind, engine_name};
use crate::observe::{Shown, shown_by_command};
use crate::patch::FilePatch;

/// A call under the engine's names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentCall {
    /// `read`, `write`, `edit`, `bash`, `grep`, `find` or `ls`; the agent's own name for a patch or a script.
    pub tool: &'static str,
    /// Arguments that the engine calls otherwise: the agent's name and the engine's.
    pub names: Vec<(String, &'static str)>,
    /// The list among the arguments whose elements have fields that the engine calls otherwise.
    pub items: Option<Items>,
    /// The command on one line, where the arguments have it in another form.
    pub command: Option<String>,
    /// True if the command is all that the engine gets, because the arguments are a script that runs it.
    pub is_script: bool,
    /// The file that the tool shows, as the agent wrote its path.
    pub reads: Option<String>,
    /// The files that the tool changes, as the agent wrote their paths.
    pub writes: Vec<String>,
    /// The lines that a shell shows, for an agent that reads files through it.
    pub shows: Option<Shown>,
}

/// A list among a call's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Items {
    /// The argument.
    pub field: &'static str,
    /// The names in each of its elements.
    pub names: ArgumentNames,
}

impl AgentCall {
    /// The call of the tool with this name and these arguments. `None` if the engine does not know the tool: then the call keeps its
    /// name and arguments.
    #[must_use]
    pub fn of(name: &str, args: &Map<String, Value>) -> Option<Self> {
        let tool = Tool::named(name)?;
        match tool.kind {
            ToolKind::Patch | ToolKind::Script => Self::with_patch(tool.kind, args),
            ToolKind::Shell => Self::by_shell(tool, args),
            _ => Some(Self::on_file(tool, args)),
        }
    }

    fn on_file(tool: &Tool, args: &Map<String, Value>) -> Self {
        let path = argument(tool, args, "path").and_then(Value::as_str).filter(|path| !path.is_empty());
        let path = path.map(str::to_owned);
        let (reads, writes) = match tool.kind {
            ToolKind::Read => (path, Vec::new()),
            ToolKind::Write | ToolKind::Edit => (None, path.into_iter().collect()),
            _ => (None, Vec::new()),
        };
        let (field, names) = EDITS;
        let has_items = tool.kind == ToolKind::Edit && args.get(field).is_some_and(Value::is_array);
        let items = has_items.then_some(Items { field, names });
        Self { tool: tool.kind.name(), names: names_in(tool, args), items, reads, writes, ..Self::default() }
    }

    fn by_shell(tool: &Tool, args: &Map<String, Value>) -> Option<Self> {
        let given = argument(tool, args, "command");
        let is_list_of_commands = tool.arguments.iter().any(|group| group.contains(&"commands"));
        let command = match given {
            // Several commands have several outputs.
            Some(Value::Array(list)) if is_list_of_commands => Some(only_text(list)?),
            _ if is_list_of_commands => return None,
            Some(Value::Array(words)) => Some(on_one_line(words)),
            _ => None,
        };
        let line = command.as_deref().or(given.and_then(Value::as_str));
        let shows = line.filter(|_| tool.reads_files).and_then(shown_by_command);
        Some(Self { tool: tool.kind.name(), names: names_in(tool, args), command, shows, ..Self::default() })
    }

    fn with_patch(kind: ToolKind, args: &Map<String, Value>) -> Option<Self> {
        let patch = FilePatch::among(args);
        let writes: Vec<String> = patch.iter().flat_map(FilePatch::paths).map(str::to_owned).collect();
        let script = args.get("input").and_then(Value::as_str).filter(|_| kind == ToolKind::Script);
        let commands = script.map(script_commands).unwrap_or_default();
        if commands.is_empty() {
            return (!writes.is_empty()).then(|| Self { tool: kind.name(), writes, ..Self::default() });
        }
        let tool = ToolKind::Shell.name();
        Some(Self { tool, command: Some(commands.join("\n")), is_script: true, writes, ..Self::default() })
    }
}

/// The argument with this name in the engine.
fn argument<'a>(tool: &Tool, args: &'a Map<String, Value>, engine: &str) -> Option<&'a Value> {
    let group = tool.arguments.iter().find(|group| group[0] == engine)?;
    group.iter().find_map(|name| args.get(*name))
}

/// The arguments that the engine calls otherwise.
fn names_in(tool: &Tool, args: &Map<String, Value>) -> Vec<(String, &'static str)> {
    args.keys().filter_map(|field| Some((field.clone(), engine_name(tool.arguments, field)?))).collect()
}

fn only_text(list: &[Value]) -> Option<String> {
    match list {
        [Value::String(text)] => Some(text.clone()),
        _ => None,
    }
}

/// A command that is a list of words; of `["bash", "-lc", script]`, the script.
fn on_one_line(words: &[Value]) -> String {
    let word = |word: &Value| match word {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    let words: Vec<String> = words.iter().map(word).collect();
    match &words[..] {
        [shell, _, script] if is_shell(shell) => script.clone(),
        _ => words.join(" "),
    }
}

fn is_shell(program: &str) -> bool {
    matches!(program.rsplit('/').next(), Some("sh" | "bash" | "zsh" | "dash"))
}

/// The shell commands that a script of Codex's `exec` runs, as far as they are written out in it.
fn script_commands(script: &str) -> Vec<String> {
    static COMMAND: LazyLock<Regex> = LazyLock::new(|| {
        let quoted = r#""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\$]|\\.)*`"#;
        let call = r#"\bexec_command\(\s*\{[^{}]*?\bcmd["']?\s*:\s*"#;
        Regex::new(&format!("{call}({quoted})")).unwrap_or_else(|error| unreachable!("{error}"))
    });
    COMMAND.captures_iter(script).map(|found| literal(&found[1])).collect()
}

/// The value of a JavaScript string without substitutions. Escapes other than those of JSON stay as written.
fn literal(source: &str) -> String {
    let inner = &source[1..source.len() - 1];
    let escaped = if source.starts_with('"') { inner.to_owned() } else { in_double_quotes(inner) };
    let json = format!("\"{}\"", escaped.replace('\n', "\\n").replace('\t', "\\t"));
    serde_json::from_str(&json).unwrap_or_else(|_| inner.to_owned())
}

/// The inside of a string in other quotes, as it would stand in double quotes.
fn in_double_quotes(inner: &str) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => match chars.next() {
                Some(c @ ('\'' | '`')) => out.push(c),
                Some(c) => out.extend(['\\', c]),
                None => out.push('\\'),
            },
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn call(name: &str, args: Value) -> Option<AgentCall> {
        AgentCall::of(name, args.as_object().unwrap())
    }

    #[rstest]
    #[case::words(json!(["git", "log"]), "git log")]
    #[case::a_shell(json!(["bash", "-lc", "ls | wc"]), "ls | wc")]
    #[case::a_shell_by_its_path(json!(["/bin/sh", "-c", "ls"]), "ls")]
    #[case::a_shell_with_more(json!(["bash", "-l", "-c", "ls"]), "bash -l -c ls")]
    #[case::other_values(json!(["head", "-n", 5, null]), "head -n 5 ")]
    fn command_is_one_line(#[case] words: Value, #[case] line: &str) {
        assert_eq!(call("shell", json!({ "command": words })).unwrap().command.as_deref(), Some(line));
    }

    #[rstest]
    #[case(r#"tools.exec_command({ cmd: "cat \"a b\"", workdir: "/" })"#, &["cat \"a b\""])]
    #[case("tools.exec_command({cmd: 'echo \"x\"'})", &["echo \"x\""])]
    #[case("exec_command({ \"cmd\": `a\nb \\`c\\``, tty: true }); exec_command({ cmd: 'it\\'s' })", &["a\nb `c`", "it's"])]
    #[case("exec_command({ cmd: `cat ${file}` })", &[])]
    #[case("exec_command({ cmd: command })", &[])]
    #[case("exec_command({ cmd: \"a\\x20b\" })", &["a\\x20b"])]
    fn script_runs_commands(#[case] script: &str, #[case] commands: &[&str]) {
        assert_eq!(script_commands(script), commands);
    }

    #[rstest]
    #[case::one(json!({ "commands": ["cat a"] }), true)]
    #[case::several(json!({ "commands": ["cat a", "ls"] }), false)]
    #[case::none(json!({ "commands": [] }), false)]
    #[case::not_a_text(json!({ "commands": [{ "command": "ls" }] }), false)]
    #[case::not_a_list(json!({ "commands": "ls" }), false)]
    fn list_of_one_command_is_a_command(#[case] args: Value, #[case] is_one: bool) {
        assert_eq!(call("run_commands", args).is_some(), is_one);
    }

    #[test]
    fn path_under_the_name_of_the_engine_comes_first() {
        let found = call("Read", json!({ "file_path": "/a", "path": "/b" })).unwrap();
        assert_eq!(found.reads.as_deref(), Some("/b"));
        assert_eq!(call("Read", json!({ "file_path": 7 })).unwrap().reads, None);
        assert_eq!(call("Read", json!({ "path": "" })).unwrap().reads, None);
    }

    #[test]
    fn only_agents_without_a_reader_read_through_their_shell() {
        assert!(call("exec_command", json!({ "cmd": "cat a" })).unwrap().shows.is_some());
        assert!(call("shell", json!({ "command": ["bash", "-lc", "cat a"] })).unwrap().shows.is_some());
        assert!(call("Bash", json!({ "command": "cat a" })).unwrap().shows.is_none());
    }
}
