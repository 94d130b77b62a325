//! The dialects of agents: what each calls its tools and their arguments.
//!
//! A new agent is one dialect here, with its calls in `fixtures/tools`; docs/agents.md explains how.

use crate::arguments::{CONTENT, EVERYWHERE, NEW_TEXT, OLD_TEXT, PATH_ARGUMENTS};

/// The tools of an agent.
#[derive(Debug)]
pub struct Dialect {
    /// The agent's name, as people write it.
    pub agent: &'static str,
    /// Its tools. A tool that is not listed keeps its name and arguments.
    pub tools: &'static [Tool],
}

/// A tool of an agent.
#[derive(Debug, PartialEq, Eq)]
pub struct Tool {
    /// The agent's names for it.
    pub names: &'static [&'static str],
    /// The kind of tool.
    pub kind: ToolKind,
    /// The names of its arguments.
    pub arguments: ArgumentNames,
    /// True for a shell through which the agent reads files, because it has no other tool for that, or one that reads several.
    pub reads_files: bool,
}

/// The kinds of tools that the engine knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolKind {
    /// Shows a file.
    Read,
    /// Writes a whole file.
    Write,
    /// Replaces texts in a file.
    Edit,
    /// Runs a command.
    Shell,
    /// Searches the text of files.
    Search,
    /// Finds files by their names.
    Find,
    /// Lists a folder.
    List,
    /// Applies a patch (`*** Begin Patch`).
    Patch,
    /// Runs a script, which may run commands and apply patches.
    Script,
}

/// The names of arguments: for each, the engine's name first, then those that agents use.
pub type ArgumentNames = &'static [&'static [&'static str]];

impl ToolKind {
    /// The engine's name for such a tool.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Edit => "edit",
            Self::Shell => "bash",
            Self::Search => "grep",
            Self::Find => "find",
            Self::List => "ls",
            Self::Patch => "apply_patch",
            Self::Script => "exec",
        }
    }

    const fn arguments(self) -> ArgumentNames {
        match self {
            Self::Read => READ,
            Self::Write => WRITE,
            Self::Edit => EDIT,
            Self::Shell => SHELL,
            Self::Search | Self::Find | Self::List => FOLDER,
            Self::Patch | Self::Script => &[],
        }
    }
}

/// The names of the folder in which a tool searches, or which it lists.
const FOLDERS: [&str; 9] = [
    "path",
    "dir_path",
    "dirpath",
    "directory",
    "file_path",
    "filePath",
    "filepath",
    "absolute_path",
    "target_file",
];

const READ: ArgumentNames = &[&PATH_ARGUMENTS];
const WRITE: ArgumentNames = &[&PATH_ARGUMENTS, &CONTENT];
const EDIT: ArgumentNames = &[&PATH_ARGUMENTS, &OLD_TEXT, &NEW_TEXT, &EVERYWHERE];
const SHELL: ArgumentNames = &[&["command", "cmd"]];
const FOLDER: ArgumentNames = &[&FOLDERS];

/// The arguments of an edit that are lists of edits, and the names in each of them.
pub(crate) const EDITS: (&str, ArgumentNames) = ("edits", &[&OLD_TEXT, &NEW_TEXT, &EVERYWHERE]);

const fn tool(kind: ToolKind, names: &'static [&'static str]) -> Tool {
    Tool { names, kind, arguments: kind.arguments(), reads_files: false }
}

const fn reading_shell(names: &'static [&'static str], arguments: ArgumentNames) -> Tool {
    Tool { names, kind: ToolKind::Shell, arguments, reads_files: true }
}

/// The dialects that are known. The same name means the same in each, because unlisted agents often use one of them, and
/// because a conversation does not say which agent holds it.
pub const DIALECTS: &[Dialect] = &[
    Dialect {
        agent: "Claude Code",
        tools: &[
            tool(ToolKind::Read, &["Read"]),
            tool(ToolKind::Write, &["Write"]),
            tool(ToolKind::Edit, &["Edit", "MultiEdit"]),
            tool(ToolKind::Shell, &["Bash"]),
            tool(ToolKind::Search, &["Grep"]),
            tool(ToolKind::Find, &["Glob"]),
            tool(ToolKind::List, &["LS"]),
        ],
    },
    Dialect {
        agent: "Codex",
        tools: &[
            reading_shell(
                &["shell", "shell_command", "exec_command", "container.exec", "local_shell"],
                SHELL,
            ),
            tool(ToolKind::Patch, &["apply_patch"]),
            tool(ToolKind::Script, &["exec"]),
            tool(ToolKind::Read, &["read_file"]),
            tool(ToolKind::Search, &["grep_files"]),
            tool(ToolKind::List, &["list_dir"]),
        ],
    },
    Dialect { agent: "OpenCode", tools: OPENCODE },
    // It was made from OpenCode.
    Dialect { agent: "Kilo", tools: OPENCODE },
    Dialect {
        agent: "Pi",
        tools: &[
            tool(ToolKind::Read, &["read"]),
            tool(ToolKind::Write, &["write"]),
            tool(ToolKind::Edit, &["edit"]),
            tool(ToolKind::Shell, &["bash"]),
            tool(ToolKind::Search, &["grep"]),
            tool(ToolKind::Find, &["find"]),
            tool(ToolKind::List, &["ls"]),
        ],
    },
    Dialect {
        agent: "Gemini CLI",
        tools: &[
            tool(ToolKind::Read, &["read_file"]),
            tool(ToolKind::Write, &["write_file"]),
            tool(ToolKind::Edit, &["replace"]),
            tool(ToolKind::Shell, &["run_shell_command"]),
            tool(ToolKind::Search, &["grep_search", "search_file_content"]),
            tool(ToolKind::Find, &["glob"]),
            tool(ToolKind::List, &["list_directory"]),
        ],
    },
    Dialect {
        agent: "Qwen Code",
        tools: &[
            tool(ToolKind::Read, &["read_file"]),
            tool(ToolKind::Write, &["write_file"]),
            tool(ToolKind::Edit, &["edit"]),
            tool(ToolKind::Shell, &["run_shell_command"]),
            tool(ToolKind::Search, &["grep_search"]),
            tool(ToolKind::Find, &["glob"]),
            tool(ToolKind::List, &["list_directory"]),
        ],
    },
    Dialect {
        agent: "Copilot CLI",
        tools: &[
            tool(ToolKind::Read, &["view"]),
            tool(ToolKind::Write, &["create"]),
            tool(ToolKind::Edit, &["edit"]),
            tool(ToolKind::Shell, &["bash"]),
        ],
    },
    Dialect {
        agent: "Cline",
        tools: &[
            tool(ToolKind::Read, &["read_file"]),
            tool(ToolKind::Write, &["write_to_file"]),
            tool(ToolKind::Edit, &["editor"]),
            tool(ToolKind::Shell, &["execute_command"]),
            // One command in its list is what others call a command.
            reading_shell(&["run_commands"], &[&["command", "commands"]]),
            tool(ToolKind::Search, &["search_files"]),
            tool(ToolKind::List, &["list_files"]),
        ],
    },
    Dialect {
        agent: "Kimi Code",
        tools: &[tool(ToolKind::Read, &["Read"]), tool(ToolKind::Shell, &["Bash"])],
    },
];

const OPENCODE: &[Tool] = &[
    tool(ToolKind::Read, &["read"]),
    tool(ToolKind::Write, &["write"]),
    tool(ToolKind::Edit, &["edit", "multiedit"]),
    tool(ToolKind::Patch, &["apply_patch"]),
    tool(ToolKind::Shell, &["bash"]),
    tool(ToolKind::Search, &["grep"]),
    tool(ToolKind::Find, &["glob"]),
    tool(ToolKind::List, &["list"]),
];

impl Tool {
    /// The tool with this name in any dialect.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        let mut tools = DIALECTS.iter().flat_map(|dialect| dialect.tools);
        tools.find(|tool| tool.names.contains(&name))
    }
}

/// The engine's name for an argument. `None` if the engine has none, or it is the same.
pub(crate) fn engine_name(names: ArgumentNames, field: &str) -> Option<&'static str> {
    let group = names.iter().find(|group| group[1..].contains(&field))?;
    Some(group[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_means_the_same_in_each_dialect() {
        for tool in DIALECTS.iter().flat_map(|dialect| dialect.tools) {
            for name in tool.names {
                let found = Tool::named(name).unwrap();
                assert_eq!(
                    (found.kind, found.arguments, found.reads_files),
                    (tool.kind, tool.arguments, tool.reads_files),
                    "{name}"
                );
            }
        }
        assert_eq!(Tool::named("webfetch"), None);
    }

    #[test]
    fn argument_has_one_name_in_the_engine() {
        for tool in DIALECTS.iter().flat_map(|dialect| dialect.tools) {
            for group in tool.arguments {
                for name in *group {
                    let engine = engine_name(tool.arguments, name).unwrap_or(name);
                    assert_eq!(engine, group[0], "{name} of {:?}", tool.names);
                }
            }
        }
    }
}
