//! The number of cases for a property.

/// A fifth of these, all of them where `CONTEXT_FULL` is set, or a hundred times as many where `CONTEXT_LONG` is.
#[allow(dead_code, reason = "each suite uses what it needs")]
pub fn cases(full: u32) -> u32 {
    let is_set = |name| std::env::var_os(name).is_some();
    match (is_set("CONTEXT_LONG"), is_set("CONTEXT_FULL")) {
        (true, _) => full * 100,
        (_, true) => full,
        _ => full / 5,
    }
}

/// A thousandth of a million runs, or all of them where `CONTEXT_LONG` is set: for input of any kind.
#[allow(dead_code, reason = "each suite uses what it needs")]
pub fn runs() -> u32 {
    if std::env::var_os("CONTEXT_LONG").is_some() { 1_000_000 } else { 1_000 }
}
