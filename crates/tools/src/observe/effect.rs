//! Calls that change something besides what they show: their lines stay when those of other old calls leave.

use serde_json::{Map, Value};

use super::bash::{MAX_DEPTH, SimpleCommand, simple_commands};
use super::looks::{is_in_place, program};
use super::shell::Word;

/// Programs that are there to change something.
const CHANGING: [&str; 34] = [
    "rm",
    "rmdir",
    "mv",
    "cp",
    "ln",
    "mkdir",
    "touch",
    "chmod",
    "chown",
    "chgrp",
    "truncate",
    "shred",
    "dd",
    "tee",
    "install",
    "patch",
    "rsync",
    "scp",
    "sftp",
    "ssh",
    "wget",
    "kill",
    "pkill",
    "killall",
    "systemctl",
    "service",
    "crontab",
    "mount",
    "umount",
    "reboot",
    "shutdown",
    "useradd",
    "userdel",
    "createdb",
];

/// Programs that change something with one of these words among their arguments.
const CHANGING_WITH: &[(&[&str], &[&str])] = &[
    (
        &["git"],
        &[
            "push",
            "commit",
            "merge",
            "rebase",
            "reset",
            "revert",
            "checkout",
            "switch",
            "restore",
            "stash",
            "cherry-pick",
            "pull",
            "clone",
            "init",
            "add",
            "rm",
            "mv",
            "clean",
            "apply",
            "am",
            "worktree",
            "submodule",
            "tag",
        ],
    ),
    (
        &[
            "npm", "pnpm", "yarn", "bun", "pip", "pip3", "pipx", "uv", "poetry", "gem", "bundle", "cargo",
            "go", "brew",
        ],
        &[
            "publish",
            "install",
            "i",
            "ci",
            "add",
            "remove",
            "uninstall",
            "update",
            "upgrade",
            "link",
            "unlink",
            "version",
            "deploy",
            "sync",
            "fix",
            "get",
            "mod",
            "new",
            "init",
        ],
    ),
    (
        &["apt", "apt-get", "dnf", "yum", "apk", "pacman", "snap", "helm"],
        &["install", "remove", "purge", "upgrade", "update", "uninstall", "rollback", "add", "del"],
    ),
    (
        &["docker", "podman", "docker-compose"],
        &[
            "run", "rm", "rmi", "stop", "start", "restart", "kill", "build", "push", "pull", "up", "down",
            "exec", "cp", "create", "prune",
        ],
    ),
    (
        &["kubectl", "oc"],
        &[
            "apply", "delete", "create", "edit", "patch", "scale", "rollout", "set", "annotate", "label",
            "drain", "cordon", "uncordon", "exec", "cp", "replace", "run",
        ],
    ),
    (&["terraform", "tofu", "pulumi"], &["apply", "destroy", "import", "up"]),
    (
        &["gh", "glab"],
        &["create", "merge", "close", "reopen", "comment", "edit", "delete", "review", "run", "upload"],
    ),
    (&["make", "just", "task"], &["install", "uninstall", "deploy", "publish", "release", "push", "clean"]),
    (&["find"], &["-delete", "-exec", "-execdir", "-ok"]),
    (
        &["curl"],
        &["-d", "--data", "--data-raw", "--data-binary", "--json", "-F", "--form", "-T", "--upload-file"],
    ),
];

/// True if a call is known to change something: an edit, a write, or a shell command that writes a file or has a program for that.
/// A program that is not known, such as a script, counts as one that only looks.
pub fn has_effect(tool: &str, args: &Map<String, Value>) -> bool {
    let command = || args.get("command").or_else(|| args.get("cmd"));
    match tool.to_ascii_lowercase().as_str() {
        "edit" | "write" => true,
        _ => match command() {
            Some(Value::String(text)) => shell_has_effect(text, 0),
            // `["bash", "-lc", COMMAND]`
            Some(Value::Array(words)) => {
                words.last().and_then(Value::as_str).is_some_and(|text| shell_has_effect(text, 0))
            }
            _ => false,
        },
    }
}

fn shell_has_effect(command: &str, depth: usize) -> bool {
    let writes = |one: &SimpleCommand| one.outputs.iter().any(|target| !target.text.starts_with("/dev/"));
    simple_commands(command).iter().any(|one| writes(one) || changes(&one.words, depth))
}

/// The same of a program with its arguments.
fn changes(words: &[Word], depth: usize) -> bool {
    let Some((name, args)) = program(words) else { return false };
    let name = name.text.rsplit('/').next().unwrap_or_default();
    let has = |wanted: &[&str]| args.iter().any(|word| wanted.contains(&word.text.as_str()));
    match name {
        "sh" | "bash" | "zsh" | "dash" if depth < MAX_DEPTH && has(&["-c", "-lc"]) => {
            args.last().is_some_and(|word| shell_has_effect(&word.text, depth + 1))
        }
        "sed" | "perl" if args.iter().any(|word| is_in_place(&word.text)) => true,
        "curl" if asks_for_change(args) => true,
        _ => {
            CHANGING.contains(&name)
                || CHANGING_WITH.iter().any(|(programs, wanted)| programs.contains(&name) && has(wanted))
        }
    }
}

/// True if a request has another method than those that only read.
fn asks_for_change(args: &[Word]) -> bool {
    let mut options = args.iter().map(|word| word.text.as_str());
    while let Some(option) = options.next() {
        let method = match option {
            "-X" | "--request" => options.next(),
            _ => option.strip_prefix("-X").or_else(|| option.strip_prefix("--request=")),
        };
        if method.is_some_and(|method| !matches!(method, "GET" | "HEAD" | "OPTIONS")) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    fn command_that_changes_something(
        #[values(
            "git push origin main",
            "cd a && git -C b commit -m wip",
            "rm -rf build",
            "sudo mv a b",
            "npm publish",
            "echo x > cfg.txt",
            "cat a >> b",
            "curl -X POST http://x/deploy",
            "curl -XDELETE http://x",
            "curl --json '{}' http://x",
            "sed -i s/a/b/ src/a.ts",
            "kubectl delete pod x",
            "make install",
            "find . -name '*.o' -delete",
            "bash -lc 'rm a'",
            "ls | tee out.txt",
            "time /bin/rm a"
        )]
        command: &str,
    ) {
        assert!(has_effect("bash", json!({ "command": command }).as_object().unwrap()));
        assert!(has_effect("exec_command", json!({ "cmd": command }).as_object().unwrap()));
        assert!(has_effect("shell", json!({ "command": ["bash", "-lc", command] }).as_object().unwrap()));
    }

    #[rstest]
    fn command_that_only_looks_or_is_not_known(
        #[values(
            "ls -la",
            "git log --oneline | head -3",
            "git status",
            "cat a 2>/dev/null",
            "grep -rn push src",
            "sed -n 1,5p a",
            "curl http://x",
            "curl -X GET http://x",
            "npm test",
            "cargo test 2>&1 | tail -5",
            "make test",
            "find . -name '*.o'",
            "python check.py",
            "echo 'rm -rf build'",
            ""
        )]
        command: &str,
    ) {
        assert!(!has_effect("bash", json!({ "command": command }).as_object().unwrap()));
    }

    #[test]
    fn edits_and_writes_change_and_other_tools_are_not_known_to() {
        let none = Map::new();
        assert!(has_effect("Edit", &none) && has_effect("write", &none));
        assert!(!has_effect("read", &none) && !has_effect("bash", &none));
        assert!(!has_effect("bash", json!({ "command": [] }).as_object().unwrap()));
    }
}
