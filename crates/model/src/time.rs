//! The two times of the store: valid time and transaction time, in whole milliseconds.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::ModelError;

/// A moment: milliseconds since 1970-01-01T00:00:00Z. RFC 3339 at the edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From milliseconds since the epoch; values that RFC 3339 can't write are moved to its nearest end.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        const LAST: i64 = 253_402_207_199_999; // 9999-12-30T21:59:59.999Z, the last that every offset can show
        Self(millis.clamp(-62_135_596_800_000, LAST))
    }

    /// Milliseconds since the epoch.
    pub fn millis(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = jiff::Timestamp::from_millisecond(self.0).map_err(|_| fmt::Error)?;
        write!(f, "{moment:.3}")
    }
}

impl FromStr for Timestamp {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        if let Ok(time) = text.parse::<jiff::Timestamp>() {
            return Ok(Self::from_millis(time.as_millisecond()));
        }
        // A usual way to write "the end of time", which the library can't hold for every offset.
        if is_in_last_year(text) {
            return Ok(Self::from_millis(i64::MAX));
        }
        let shown: String = text.chars().take(40).collect();
        let what = format!(
            "a time must be written as 2026-01-31T12:00:00.000Z, with its offset, and {shown:?} is not"
        );
        Err(ModelError::Invalid(what))
    }
}

/// True if a text is a moment of the year 9999, with its offset.
fn is_in_last_year(text: &str) -> bool {
    let without_offset = || {
        let (local, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
        let is_offset = matches!(offset.as_bytes(), [b'+' | b'-', h, hh, b':', m, mm] if [h, hh, m, mm].iter().all(|digit| digit.is_ascii_digit()));
        is_offset.then_some(local)
    };
    let local = text.strip_suffix(['Z', 'z']).or_else(without_offset);
    local.is_some_and(|local| {
        // A date alone does not name a moment.
        local.contains([':']) && local.parse::<jiff::civil::DateTime>().is_ok_and(|time| time.year() == 9999)
    })
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The number of a transaction: strictly increasing within one store, whatever the clock does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TxId(pub u64);

impl fmt::Display for TxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0, "1970-01-01T00:00:00.000Z")]
    #[case(1_700_000_000_123, "2023-11-14T22:13:20.123Z")]
    #[case(-1, "1969-12-31T23:59:59.999Z")]
    fn times_are_written_as_rfc_3339_and_read_back(#[case] millis: i64, #[case] text: &str) {
        let time = Timestamp::from_millis(millis);
        assert_eq!(time.to_string(), text);
        assert_eq!(time.millis(), millis);
        assert_eq!(text.parse::<Timestamp>().unwrap(), time);
    }

    #[rstest]
    #[case(i64::MAX)]
    #[case(i64::MIN)]
    fn impossible_times_are_clamped_and_still_readable(#[case] millis: i64) {
        let time = Timestamp::from_millis(millis);
        assert_eq!(time.to_string().parse::<Timestamp>().unwrap(), time);
    }

    #[rstest]
    #[case("9999-12-31T23:59:59.999Z")]
    #[case("9999-12-31T23:59:59Z")]
    #[case("9999-12-31t23:59:59z")]
    #[case("9999-12-31T00:00:00-12:00")]
    #[case("9999-12-31T23:59:59.999999999+14:00")]
    fn the_end_of_time_is_the_last_moment(#[case] text: &str) {
        let last = text.parse::<Timestamp>().unwrap();
        assert_eq!(last, Timestamp::from_millis(i64::MAX));
        assert!(last >= "9999-12-30T00:00:00Z".parse().unwrap());
    }

    #[rstest]
    #[case("9999-12-31")]
    #[case("9999-12-31T23:59:59")]
    #[case("9999-13-31T23:59:59Z")]
    #[case("10000-01-01T00:00:00Z")]
    #[case("9999-12-31T23:59:59+1:00")]
    #[case("é9999")]
    #[case("")]
    #[case("yesterday")]
    fn other_texts_are_refused_and_named(#[case] text: &str) {
        let refused = text.parse::<Timestamp>().unwrap_err().to_string();
        assert!(refused.contains(&format!("{text:?} is not")), "{refused}");
    }

    #[test]
    fn a_transaction_is_written_as_its_number() {
        assert_eq!([TxId(0), TxId(42)].map(|tx| tx.to_string()), ["0", "42"]);
    }
}
