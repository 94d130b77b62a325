//! Secrets of known shapes: where they are in a text and in a store, and how they are kept out of it.
//!
//! The shapes are the rules of gitleaks 8.30.1, unchanged (`gitleaks.toml`, MIT, `gitleaks.LICENSE`). A secret without a
//! known shape, such as an ordinary word used as a password, is not found.
#![warn(unreachable_pub)]

mod redact;
mod redaction;
mod rules;
mod survey;
mod text;

pub use redact::{is_args, is_content, is_redacted, redacted};
pub use redaction::Redaction;
pub use rules::Secret;
pub use survey::{SecretPlace, Survey, in_store};
pub use text::in_text;
