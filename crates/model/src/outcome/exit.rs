//! How a command ended, as the hosts' shells write it into their output.

use crate::object::Status;

/// What hosts write before the code, in a line of its own: Pi, Claude Code, Codex, OpenCode, mini-swe-agent.
const CODES: [&str; 5] =
    ["Command exited with code ", "Exit code ", "Process exited with code ", "Exit code: ", "<returncode>"];

/// What hosts write of a command that did not end by itself, and what an outcome says of it.
const ENDED: [(&str, &str); 2] = [("Command timed out", "timed out"), ("Command aborted", "aborted")];

/// `exit 1`, `timed out`, or `failed` if the host says only that; `None` for a command that has succeeded.
pub(super) fn of(content: &str, status: Status) -> Option<String> {
    let said = [content.lines().next(), last(content)].into_iter().flatten().find_map(|line| {
        let number = |text: &str| text.trim_end_matches("</returncode>").trim().parse::<i32>().ok();
        let code = CODES.iter().find_map(|start| number(line.strip_prefix(start)?));
        let ended = || ENDED.iter().find(|(start, _)| line.starts_with(start)).map(|(_, word)| *word);
        code.map(|code| format!("exit {code}")).or_else(|| ended().map(str::to_owned))
    });
    match said {
        Some(exit) => (exit != "exit 0").then_some(exit),
        None => (status == Status::Fail).then(|| "failed".to_owned()),
    }
}

/// The output without the line that says how the command ended.
pub(super) fn without(content: &str) -> &str {
    let is_said = |line: &str| {
        CODES.iter().chain(ENDED.iter().map(|(start, _)| start)).any(|start| line.starts_with(start))
    };
    match content.split_once('\n') {
        Some((first, rest)) if is_said(first) => rest,
        _ => match last(content) {
            Some(line) if is_said(line) => {
                let end = content.rfind(line).unwrap_or(content.len());
                content[..end].trim_end()
            }
            _ => content,
        },
    }
}

fn last(content: &str) -> Option<&str> {
    content.lines().rev().find(|line| !line.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::pi("x\n\nCommand exited with code 1", Status::Fail, Some("exit 1"), "x")]
    #[case::claude("Exit code 2\nx", Status::Fail, Some("exit 2"), "x")]
    #[case::mini_swe_agent("<returncode>3</returncode>\nx", Status::Ok, Some("exit 3"), "x")]
    #[case::zero("x\n\nCommand exited with code 0", Status::Ok, None, "x")]
    #[case::time("x\n\nCommand timed out after 5 seconds", Status::Fail, Some("timed out"), "x")]
    #[case::silent("x", Status::Fail, Some("failed"), "x")]
    #[case::well("x", Status::Ok, None, "x")]
    #[case::in_the_middle("a\nExit code 3\nb", Status::Ok, None, "a\nExit code 3\nb")]
    #[case::nothing("", Status::Ok, None, "")]
    fn how_commands_end(
        #[case] content: &str,
        #[case] status: Status,
        #[case] exit: Option<&str>,
        #[case] rest: &str,
    ) {
        assert_eq!((of(content, status).as_deref(), without(content)), (exit, rest));
    }
}
