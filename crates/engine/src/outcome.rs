//! What a call's output came to, as it is recorded with the call.

use context_knowledge::evidence::Evidence;
use context_model::outcome::outcome;

use crate::job::ToolcallInput;

/// The outcome of a call, without secrets: they are taken out whether or not the store keeps them, because the line would
/// otherwise read differently after a restart.
pub(crate) fn outcome_of(input: &ToolcallInput, evidence: Option<&Evidence>) -> Option<String> {
    let ToolcallInput { tool, args, content, status, .. } = input;
    let shows = match evidence {
        Some(Evidence::Shows(lines) | Evidence::Points { lines, .. } | Evidence::Unstored { lines, .. }) => {
            Some((lines.first, lines.last))
        }
        // A difference or a pointer, whose lines are not those of the file.
        Some(Evidence::LedTo(_) | Evidence::Refers { .. }) => return None,
        Some(Evidence::Made { .. } | Evidence::Several(_)) | None => None,
    };
    let told = outcome(tool, args, content, *status, shows)?;
    Some(context_secrets::redacted(&told, None).map_or(told, |(without, _)| without))
}

#[cfg(test)]
mod tests {
    use context_model::object::Status;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_in_an_error_is_taken_out() {
        let secret = concat!("AKIA", "QYLPMN5HHHFPZAM2");
        let args = json!({ "command": "./deploy" }).as_object().cloned().unwrap();
        let input = ToolcallInput {
            status: Status::Fail,
            ..ToolcallInput::new(
                "call",
                "bash",
                args,
                format!("error: key {secret} is not valid\n\nCommand exited with code 1"),
            )
        };
        let told = outcome_of(&input, None).unwrap();
        assert!(told.starts_with("exit 1: \"error: key [redacted: ") && !told.contains(secret), "{told}");
    }
}
