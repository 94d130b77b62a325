//! The documents of a transaction under construction.

use std::collections::HashMap;

use context_model::id::ObjectId;
use context_model::object::Document;

/// Documents in write order. Adding one takes constant time.
#[derive(Default)]
pub struct Documents {
    all: Vec<Document>,
    places: HashMap<ObjectId, Vec<usize>>,
    /// How many comparisons between documents were made.
    #[cfg(test)]
    compared: usize,
}

impl Documents {
    /// Adds a document.
    pub fn push(&mut self, document: Document) {
        self.places.entry(document.id().clone()).or_default().push(self.all.len());
        self.all.push(document);
    }

    /// Adds a document unless an equal one is already there.
    pub fn push_new(&mut self, document: Document) {
        let places = self.places.get(document.id()).map_or(&[][..], Vec::as_slice);
        #[cfg(test)]
        {
            self.compared += places.len();
        }
        if !places.iter().any(|place| self.all[*place] == document) {
            self.push(document);
        }
    }

    /// Returns whether there is a version of this object.
    pub fn has(&self, id: &ObjectId) -> bool {
        self.places.contains_key(id)
    }

    /// The objects, each once.
    pub fn ids(&self) -> impl Iterator<Item = &ObjectId> {
        self.places.keys()
    }

    /// Takes the documents out.
    pub fn take(&mut self) -> Vec<Document> {
        self.places.clear();
        std::mem::take(&mut self.all)
    }
}

#[cfg(test)]
mod tests {
    use context_model::source::FilesystemSource;

    use super::*;

    fn file(path: usize, content: Option<&str>) -> Document {
        let source = FilesystemSource { filesystem_id: "f".into(), path: format!("/{path}") };
        Document::file(source, content.map(str::to_owned), None)
    }

    /// The number of comparisons grows linearly with the documents, not with their square.
    #[test]
    fn a_document_is_compared_with_those_of_its_object_only() {
        let mut documents = Documents::default();
        for _ in 0..2 {
            (0..2_000).for_each(|path| documents.push_new(file(path, None)));
        }
        assert_eq!(documents.compared, 2_000);
        assert_eq!(documents.ids().count(), 2_000);
        assert_eq!(documents.take().len(), 2_000);
    }

    #[test]
    fn versions_of_one_object_stay_in_their_order_and_equal_ones_come_once() {
        let mut documents = Documents::default();
        for content in [Some("a"), None, Some("a"), Some("b"), None] {
            documents.push_new(file(1, content));
        }
        assert!(documents.has(file(1, None).id()) && !documents.has(file(2, None).id()));
        assert_eq!(documents.take(), [file(1, Some("a")), file(1, None), file(1, Some("b"))]);
        assert!(!documents.has(file(1, None).id()));
    }
}
