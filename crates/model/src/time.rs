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
        text.parse::<jiff::Timestamp>()
            .map(|t| Self::from_millis(t.as_millisecond()))
            .map_err(|e| ModelError::Invalid(format!("a time is written as 2026-01-31T12:00:00.000Z: {e}")))
    }
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

    #[test]
    fn a_transaction_is_written_as_its_number() {
        assert_eq!([TxId(0), TxId(42)].map(|tx| tx.to_string()), ["0", "42"]);
    }
}
