//! The token estimate, equal to Pi's own: characters / 4, rounded up, with characters counted in UTF-16 units.

/// The length of a text in UTF-16 units, as JavaScript's `length`.
#[must_use]
pub fn utf16_len(text: &str) -> usize {
    // Source code is nearly always ASCII, where the two lengths agree; the check runs at memory speed.
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

/// Estimated tokens of a text.
#[must_use]
pub fn estimate(text: &str) -> usize {
    of_chars(utf16_len(text))
}

/// Estimated tokens of a number of UTF-16 units.
#[must_use]
pub fn of_chars(units: usize) -> usize {
    units.div_ceil(4)
}
