//! The lines that name an object: the header before its output, and the reference in its place.

use context_lines::{CHANGED, Header, Reference, header, name_in_path};
use context_model::id::ObjectId;
use serde_json::{Map, Value};

use super::Session;
use super::catalog::MetaKind;

impl Session {
    /// Returns the line before an output: the name that restores it. The call above it says the rest.
    pub(crate) fn header(&self, id: &ObjectId) -> String {
        header(&self.handle(id))
    }

    /// An excerpt under its object's header.
    pub(crate) fn headed(&self, id: &ObjectId, excerpt: &str) -> String {
        format!("{}\n{excerpt}", self.header(id))
    }

    /// An output as the tool returned it, without the header that we put before it.
    pub(crate) fn without_header<'a>(&self, id: &ObjectId, text: &'a str) -> &'a str {
        text.strip_prefix(self.header(id).as_str()).and_then(|rest| rest.strip_prefix('\n')).unwrap_or(text)
    }

    /// Returns the line in place of an object's output, under its handle: its kind and its outcome.
    pub(crate) fn reference(&self, id: &ObjectId) -> String {
        self.referring(id, self.outcome(id))
    }

    /// Returns the specification's line for a call whose outcome must not be shown.
    pub(crate) fn plain_reference(&self, id: &ObjectId) -> String {
        self.referring(id, None)
    }

    fn referring(&self, id: &ObjectId, outcome: Option<&str>) -> String {
        match self.catalog.get(id).map(|meta| &meta.kind) {
            Some(MetaKind::Toolcall { tool, status, .. }) => {
                let handle = self.handle(id);
                Reference { outcome, ..Reference::to(&handle, tool, Some(*status)) }.to_string()
            }
            _ => String::new(),
        }
    }

    /// True if a text is the reference to an object's output, with or without lines of later calls.
    pub(crate) fn is_reference(&self, id: &ObjectId, text: &str) -> bool {
        let first = text.split('\n').next().unwrap_or_default();
        let first = first.strip_suffix(CHANGED).unwrap_or(first);
        !first.is_empty() && (first == self.reference(id) || first == self.plain_reference(id))
    }

    /// The object named by a result's first line, which is its header or the reference that replaced it. An output
    /// can say anything, so only an object of this call is accepted.
    pub(crate) fn object_in(&self, call_id: &str, text: &str) -> Option<ObjectId> {
        let first = text.lines().next()?;
        let reference = Reference::of(first);
        let handle = reference.as_ref().map(|reference| &*reference.id);
        let id = self.catalog.find(handle.or_else(|| Header::of(first).map(|header| header.id))?)?;
        (id.is_toolcall(call_id) && (self.header(&id) == first || self.is_reference(&id, first)))
            .then_some(id)
    }
}

/// The object that the arguments of a call name, as `activate` and Pi's `read` take it: by its ID or handle. `None` for
/// an old version, which is a static reference.
pub(crate) fn named_object(session: &Session, tool: &str, args: &Map<String, Value>) -> Option<ObjectId> {
    let text = |name: &str| args.get(name).and_then(Value::as_str);
    let name = match tool {
        "activate" => text("id")?,
        "read" => name_in_path(text("path")?)?,
        _ => return None,
    };
    session.catalog.find(name).filter(|id| session.sets.index().contains(id))
}

#[cfg(test)]
mod tests {
    use context_model::object::{Document, Status};
    use context_model::session::SetsChange;
    use context_model::source::FilesystemSource;
    use context_model::time::TxId;
    use context_projection::Objects;
    use serde_json::json;

    use super::*;
    use crate::session::catalog::Meta;

    /// A session with one file, and the file's ID.
    fn session() -> (Session, ObjectId) {
        let mut session = Session::default();
        let source = FilesystemSource { filesystem_id: "disk".into(), path: "/a.txt".into() };
        let document = Document::file(source, Some("text".into()), None);
        let id = document.id().clone();
        session.meet(&id, Meta::from_document(&document, TxId(1)).unwrap());
        let mut change = SetsChange::default();
        session.sets.promote(&id, &mut change);
        session.sets.apply(change);
        (session, id)
    }

    #[test]
    fn a_call_names_an_object_by_its_id_or_handle() {
        let (session, id) = session();
        let named = |tool: &str, args: Value| named_object(&session, tool, args.as_object().unwrap());
        for name in [id.as_str(), &session.handle(&id)] {
            assert_eq!(named("activate", json!({ "id": name })).as_ref(), Some(&id));
            assert_eq!(named("read", json!({ "path": format!("id={name}") })).as_ref(), Some(&id));
            assert_eq!(named("read", json!({ "path": format!("@id={name}") })).as_ref(), Some(&id));
            assert_eq!(named("read", json!({ "path": name })), None, "a file of this name");
            assert_eq!(named("read", json!({ "id": name })), None);
            assert_eq!(named("bash", json!({ "id": name, "path": format!("id={name}") })), None);
            assert_eq!(named("activate", json!({ "id": format!("{name}@1") })), None, "an old version");
        }
        let of_another_session =
            named_object(&Session::default(), "activate", json!({ "id": id.as_str() }).as_object().unwrap());
        assert_eq!(of_another_session, None);
    }

    #[test]
    fn a_result_names_an_object_of_its_call_alone() {
        let (mut session, file) = session();
        let (call, failed) = (ObjectId::new("call_1"), ObjectId::new("call_2"));
        for (id, status) in [(&call, Status::Ok), (&failed, Status::Fail)] {
            let outcome = Some("3 failed".into());
            let kind = MetaKind::Toolcall { tool: "bash".into(), status, outcome };
            session.meet(id, Meta { kind, is_null: false, tx: TxId(1) });
        }
        assert_eq!([&call, &failed, &file].map(|id| session.has_failed(id)), [false, true, false]);
        let handle = session.handle(&call);
        let (header, plain) = (session.header(&call), session.plain_reference(&call));
        let reference = session.reference(&call);
        assert_eq!(reference, format!("{plain} -> 3 failed"));
        assert_eq!(header, format!("id={handle}"));
        for first in [&header, &plain, &reference] {
            for text in [first.clone(), format!("{first}\nand more")] {
                assert_eq!(session.object_in("call_1", &text).as_ref(), Some(&call), "{text}");
                assert_eq!(session.object_in("call_2", &text), None, "of another call: {text}");
            }
            assert_eq!(session.object_in("call_1", &format!("{first} ")), None);
            assert_eq!(session.object_in("call_1", &format!("\n{first}")), None, "not in the first line");
        }
        assert_eq!(
            session.object_in("call_1", &format!("toolcall_ref id={handle} tool=other status=ok")),
            None
        );
        assert_eq!(session.object_in("call_1", "id=00000000"), None);
    }
}
