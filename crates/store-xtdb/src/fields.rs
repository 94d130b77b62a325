//! The fields of documents, as an outline asks for them.

use super::wire::PATCH;

/// The fields of this library's documents that an outline has.
pub(super) const FIELDS: [&str; 23] = [
    "xt/id",
    "type",
    "source",
    "identity_hash",
    "content_hash",
    "source_hash",
    "file_type",
    "char_count",
    "tool",
    "status",
    "args",
    "args_display",
    "file_refs",
    "evidence",
    "outcome",
    "redacted",
    "chat_ref",
    "parent_ref",
    "session_id",
    "session_ref",
    "system_prompt_ref",
    "turn_count",
    "records_evidence",
];

/// Fields that an outline leaves out: the content, and the lists of a chat or session.
pub(super) const GROWING: [&str; 4] = ["content", "turns", "toolcall_refs", PATCH];

#[cfg(test)]
mod tests {
    use context_model::id::{ObjectId, SessionId};
    use context_model::object::{Document, Toolcall};
    use context_model::session::Sets;
    use context_model::source::FilesystemSource;
    use serde_json::json;

    use super::*;

    #[test]
    fn outlines_have_every_field_of_the_models_documents() {
        let session = SessionId::new("s").unwrap();
        let source = FilesystemSource { filesystem_id: "disk".into(), path: "/a.rs".into() };
        let call = Toolcall {
            args_display: Some("a.rs".into()),
            file_refs: vec![ObjectId::new("file")],
            parent: Some("parent".into()),
            ..Toolcall::new("call", "read", serde_json::Map::new(), "text")
        };
        let documents = [
            Document::file(source, Some("text".into()), None),
            Document::toolcall_with(
                ObjectId::new("call"),
                &ObjectId::chat(&session),
                call,
                Some(json!({})),
                Some("1 line"),
            ),
            Document::chat(&session),
            Document::system_prompt(&session, "be brief"),
            Sets::default().document(&session),
        ];
        for document in documents {
            let fields = document.to_json();
            let lists = ["session_index", "metadata_pool", "active_set", "pinned_set"];
            for name in fields.keys().map(String::as_str).filter(|name| !lists.contains(name)) {
                assert!(FIELDS.contains(&name) || GROWING.contains(&name), "{name} of {}", document.id());
            }
        }
    }
}
