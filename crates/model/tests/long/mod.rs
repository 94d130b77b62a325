//! How many cases a property is tried with.

/// So many, or a hundred times as many where `CONTEXT_LONG` is set.
#[allow(dead_code, reason = "each suite uses what it needs")]
pub fn cases(usual: u32) -> u32 {
    if std::env::var_os("CONTEXT_LONG").is_some() { usual * 100 } else { usual }
}

/// A thousandth of a million runs, or all of them where `CONTEXT_LONG` is set: for input of any kind.
#[allow(dead_code, reason = "each suite uses what it needs")]
pub fn runs() -> u32 {
    if std::env::var_os("CONTEXT_LONG").is_some() { 1_000_000 } else { 1_000 }
}
