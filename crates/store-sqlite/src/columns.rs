//! The columns of a row, with the error of a damaged store for a value of another type.

use context_store::StoreError;
use rusqlite::types::ValueRef;

use super::error::{Result, Trouble};

/// A text.
pub(super) fn text<'a>(row: &'a rusqlite::Row<'_>, index: usize) -> Result<&'a str> {
    optional(row, index)?.ok_or_else(wrong_type)
}

/// A text, or null.
pub(super) fn optional<'a>(row: &'a rusqlite::Row<'_>, index: usize) -> Result<Option<&'a str>> {
    match row.get_ref(index)? {
        ValueRef::Null => Ok(None),
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).map(Some).map_err(|_| wrong_type()),
        _ => Err(wrong_type()),
    }
}

/// Bytes, or null.
pub(super) fn blob<'a>(row: &'a rusqlite::Row<'_>, index: usize) -> Result<Option<&'a [u8]>> {
    match row.get_ref(index)? {
        ValueRef::Null => Ok(None),
        ValueRef::Blob(bytes) => Ok(Some(bytes)),
        _ => Err(wrong_type()),
    }
}

fn wrong_type() -> Trouble {
    StoreError::Corrupt("a stored value does not have its column's type".into()).into()
}
