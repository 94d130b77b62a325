//! Random numbers of the system: for names that no other client has, and for questions that were never asked before.
//!
//! Where one is missing, the call fails. A fixed number in its place would give two clients one name, and a program in between
//! could answer a question with the answer to an earlier one.

use context_store::{Result, StoreError};

/// 64 random bits.
///
/// # Errors
/// `STORE_UNAVAILABLE` if the system has none.
pub(super) fn word() -> Result<u64> {
    told(getrandom::u64())
}

/// A name that no other client has: 128 random bits.
///
/// # Errors
/// `STORE_UNAVAILABLE` if the system has none.
pub(crate) fn random_name() -> Result<String> {
    Ok(format!("{:016x}{:016x}", word()?, word()?))
}

fn told(random: std::result::Result<u64, getrandom::Error>) -> Result<u64> {
    random.map_err(|error| {
        StoreError::Unavailable(format!("the system provides no random numbers ({error}); try again"))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use context_model::error::ErrorCode;

    use super::*;
    use crate::notice::later;
    use crate::question;

    #[test]
    fn a_missing_number_is_an_error_and_not_a_fixed_one() {
        let error = told(Err(getrandom::Error::UNSUPPORTED)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::StoreUnavailable);
        assert!(error.to_string().contains("no random numbers"), "{error}");
    }

    #[test]
    fn names_and_times_of_questions_do_not_repeat() {
        let names: HashSet<String> = (0..1_000).map(|_| question::name().unwrap()).collect();
        assert_eq!(names.len(), 1_000);
        let times: HashSet<String> = (0..1_000).map(|_| later().unwrap().to_string()).collect();
        assert_eq!(times.len(), 1_000);
    }
}
