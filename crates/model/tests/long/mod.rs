//! How many cases a property is tried with.

/// So many, or a hundred times as many where `CONTEXT_LONG` is set.
pub fn cases(usual: u32) -> u32 {
    if std::env::var_os("CONTEXT_LONG").is_some() { usual * 100 } else { usual }
}
