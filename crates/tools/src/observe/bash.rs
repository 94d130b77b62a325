//! File names in a shell command: the files that it reads, writes and names.

use super::looks::{
    is_in_place, is_operand, is_script_option, looks_like_file, looks_like_spaced_file, operands, program,
};
use super::output;
use super::shell::{Token, Word, tokens};
use super::{Candidates, TouchKind};

/// Words after this many are ignored, which limits the work.
const MAX_TOKENS: usize = 10_000;

/// `sh -c` inside `sh -c`.
pub(super) const MAX_DEPTH: usize = 2;

/// Names from a command and then from its output.
pub(super) fn bash(found: &mut Candidates, command: &str, text: &str) {
    let mut walk = Walk { found, dir: Some(String::new()), commands: 0, listed: None };
    walk.commands_of(command, 0);
    let Walk { dir, commands, listed, .. } = walk;
    match listed {
        // The only command is a listing: its output is bare names.
        Some(dir) if commands == 1 => output::listed(found, dir.as_deref(), text),
        _ => output::lines(found, dir.as_deref(), text),
    }
}

/// The names of a command's programs, in order.
pub(crate) fn programs(command: &str) -> Vec<String> {
    let commands = simple_commands(command);
    commands
        .iter()
        .filter_map(|one| Some(program(&one.words)?.0.text.rsplit('/').next()?.to_owned()))
        .collect()
}

/// One program with its arguments.
#[derive(Default)]
pub(super) struct SimpleCommand {
    pub(super) words: Vec<Word>,
    /// The targets of `>` and its kind.
    pub(super) outputs: Vec<Word>,
}

/// The simple commands of a command, in order.
pub(super) fn simple_commands(command: &str) -> Vec<SimpleCommand> {
    let mut commands = Vec::new();
    let mut one = SimpleCommand::default();
    let mut redirect = None;
    for token in tokens(command, MAX_TOKENS).into_iter().chain([Token::End]) {
        match token {
            Token::Word(word) => match redirect.take() {
                Some(Token::Output) => one.outputs.push(word),
                Some(_) => {}
                None => one.words.push(word),
            },
            Token::Input | Token::Output | Token::Skip => redirect = Some(token),
            Token::End | Token::Pipe | Token::Open | Token::Close => commands.push(std::mem::take(&mut one)),
        }
    }
    commands
}

struct Walk<'a> {
    found: &'a mut Candidates,
    /// The current directory after `cd`, relative to where the command starts; `None` if unknown.
    dir: Option<String>,
    /// Simple commands seen.
    commands: usize,
    /// The directory of the last `ls`.
    listed: Option<Option<String>>,
}

impl Walk<'_> {
    fn commands_of(&mut self, command: &str, depth: usize) {
        let mut dirs = Vec::new();
        let mut words = Vec::new();
        let mut tokens = tokens(command, MAX_TOKENS).into_iter();
        while let Some(token) = tokens.next() {
            match token {
                Token::Word(word) => words.push(word),
                Token::End | Token::Pipe => self.command(&std::mem::take(&mut words), depth),
                Token::Open => {
                    self.command(&std::mem::take(&mut words), depth);
                    dirs.push(self.dir.clone());
                }
                Token::Close => {
                    self.command(&std::mem::take(&mut words), depth);
                    if let Some(dir) = dirs.pop() {
                        self.dir = dir;
                    }
                }
                Token::Input | Token::Output | Token::Skip => {
                    let Some(Token::Word(target)) = tokens.next() else { continue };
                    match token {
                        Token::Input => self.add(TouchKind::Read, &target),
                        Token::Output => self.add(TouchKind::Write, &target),
                        _ => {}
                    }
                }
            }
        }
        self.command(&words, depth);
    }

    /// One simple command.
    fn command(&mut self, words: &[Word], depth: usize) {
        let Some((name, args)) = program(words) else { return };
        self.commands += 1;
        if name.text.contains('/') {
            self.guess(TouchKind::Discovered, name);
        }
        let dir = self.dir.clone();
        let program = name.text.rsplit('/').next().unwrap_or("");
        match program {
            "cd" | "pushd" => self.change(args),
            "popd" => self.dir = None,
            "echo" | "printf" | "export" | "alias" | "kill" | "sleep" | "mkdir" | "rmdir" | "true"
            | "false" => {}
            "sh" | "bash" | "zsh" | "dash" => self.shell(args, depth),
            "ls" => {
                let first = operands(args, "").next();
                self.listed = Some(first.map_or(dir, |word| self.join(word)));
                self.each(TouchKind::Discovered, operands(args, ""));
            }
            "cat" => self.each(TouchKind::Read, operands(args, "")),
            "head" | "tail" | "less" | "more" | "bat" | "batcat" | "nl" | "tac" | "xxd" | "hexdump"
            | "od" | "strings" | "diff" | "cmp" => self.each(TouchKind::Read, operands(args, "nc")),
            // The first operand is the program, unless an option gives it.
            "sed" | "perl" => {
                let in_place = args.iter().any(|word| is_in_place(&word.text));
                let touch = if in_place { TouchKind::Write } else { TouchKind::Read };
                let scripted = args.iter().any(|word| is_script_option(&word.text));
                self.each(touch, operands(args, "ef").skip(usize::from(!scripted)));
            }
            "awk" | "gawk" | "jq" | "yq" => {
                let scripted = args.iter().any(|word| word.text == "-f" || word.text == "--from-file");
                self.each(TouchKind::Read, operands(args, "fvF").skip(usize::from(!scripted)));
            }
            "grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack" => {
                let scripted = args.iter().any(|word| matches!(word.text.as_str(), "-e" | "-f" | "--files"));
                self.each(TouchKind::Discovered, operands(args, "efABCmtg").skip(usize::from(!scripted)));
            }
            "touch" | "rm" | "unlink" | "truncate" | "tee" | "shred" | "patch" => {
                self.each(TouchKind::Write, operands(args, "sdri"));
            }
            "mv" => self.copy(TouchKind::Write, args),
            "cp" | "install" | "ln" | "rsync" | "scp" => self.copy(TouchKind::Discovered, args),
            "git" => self.git(args),
            "make" | "tar" | "npm" | "pnpm" | "yarn" | "cargo" => {
                self.inside(args, &["-C", "--prefix", "--directory", "--cwd"], |walk, args| {
                    walk.guesses(args)
                });
            }
            _ => self.guesses(args),
        }
    }

    /// `cp a b`, or `cp a b dir`: either the last operand is written, or a file with each source's name in it. Only the disk
    /// can tell.
    fn copy(&mut self, source: TouchKind, args: &[Word]) {
        let mut sources: Vec<&Word> = operands(args, "mogt").collect();
        let Some(target) = sources.pop() else { return };
        self.each(source, sources.iter().copied());
        if sources.len() < 2 {
            self.add(TouchKind::Write, target);
        }
        for source in sources.into_iter().filter(|word| is_operand(word)) {
            let name = source.text.rsplit('/').next().unwrap_or("");
            let text = format!("{}/{name}", target.text.trim_end_matches('/'));
            let quoted = source.quoted || target.quoted;
            self.add(TouchKind::Write, &Word { text, quoted, ..target.clone() });
        }
    }

    /// `git` and its subcommands. Some take text that is not a path.
    fn git(&mut self, args: &[Word]) {
        self.inside(args, &["-C"], |walk, args| {
            let Some(at) = args.iter().position(|word| !word.text.starts_with('-')) else { return };
            let rest = &args[at + 1..];
            match args[at].text.as_str() {
                "commit" | "tag" | "log" | "clone" | "remote" | "push" | "pull" | "fetch" | "branch"
                | "config" => {}
                "mv" | "rm" | "restore" | "checkout" | "apply" => {
                    rest.iter().for_each(|word| walk.guess(TouchKind::Write, word));
                }
                _ => walk.guesses(rest),
            }
        });
    }

    /// The arguments of a command that runs in the directory named by one of these options.
    fn inside(&mut self, args: &[Word], options: &[&str], then: impl Fn(&mut Self, &[Word])) {
        let at = args.iter().position(|word| options.contains(&word.text.as_str()));
        let Some((at, dir)) = at.and_then(|at| Some((at, args.get(at + 1)?))) else {
            return then(self, args);
        };
        let outer = self.dir.clone();
        self.dir = self.join(dir);
        then(self, &args[..at]);
        then(self, &args[at + 2..]);
        self.dir = outer;
    }

    fn shell(&mut self, args: &[Word], depth: usize) {
        // -c, -lc, -ec: the command is the next word.
        let option = |word: &Word| {
            word.text.starts_with('-') && !word.text.starts_with("--") && word.text.ends_with('c')
        };
        match args.iter().position(option) {
            Some(at) if depth < MAX_DEPTH => {
                let outer = self.dir.clone();
                if let Some(command) = args.get(at + 1) {
                    self.commands_of(&command.text, depth + 1);
                }
                self.dir = outer;
            }
            Some(_) => {}
            None => self.guesses(args),
        }
    }

    fn change(&mut self, args: &[Word]) {
        self.dir = match operands(args, "").next() {
            // An empty name, which is not an operand.
            None if args.iter().any(|word| word.text.is_empty()) => None,
            None => Some("~".to_owned()),
            Some(word) => self.join(word),
        };
    }

    /// A directory, resolved against the current one.
    fn join(&self, word: &Word) -> Option<String> {
        let text = word.text.trim_end_matches('/');
        if word.expands
            || text == "-"
            || (text.is_empty() && word.text.is_empty())
            || text.contains(['\n', '\0'])
        {
            return None;
        }
        if word.text.starts_with(['/', '~']) {
            return Some(if text.is_empty() { "/".to_owned() } else { text.to_owned() });
        }
        let dir = self.dir.as_deref()?;
        Some(match (dir, text) {
            (dir, ".") => dir.to_owned(),
            ("", text) => text.to_owned(),
            (dir, text) => format!("{}/{text}", dir.trim_end_matches('/')),
        })
    }

    fn each<'w>(&mut self, touch: TouchKind, words: impl Iterator<Item = &'w Word>) {
        words.for_each(|word| self.add(touch, word));
    }

    fn guesses(&mut self, words: &[Word]) {
        words.iter().for_each(|word| self.guess(TouchKind::Discovered, word));
    }

    /// A word at a position where the command expects a file.
    fn add(&mut self, touch: TouchKind, word: &Word) {
        if is_operand(word) {
            self.push(touch, &word.text);
        }
    }

    /// A word anywhere, which must look like a file.
    fn guess(&mut self, touch: TouchKind, word: &Word) {
        let spaced = || word.quoted && word.text.contains(' ') && looks_like_spaced_file(&word.text);
        if !word.expands && (looks_like_file(&word.text) || spaced()) {
            self.push(touch, &word.text);
        }
    }

    fn push(&mut self, touch: TouchKind, path: &str) {
        self.found.add(touch, output::guessed(path, self.dir.as_deref()));
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("npm test", &["npm"])]
    #[case("cd /shop && CI=1 timeout 60 npx vitest run 2>&1 | tail -5", &["cd", "npx", "tail"])]
    #[case("(cat a; /usr/bin/sed -n 1p b) > c", &["cat", "sed"])]
    #[case("git commit -m 'a; cargo test'", &["git"])]
    #[case("", &[])]
    fn names_of_programs(#[case] command: &str, #[case] expected: &[&str]) {
        assert_eq!(programs(command), expected);
    }
}
