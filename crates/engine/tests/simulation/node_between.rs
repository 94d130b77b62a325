//! A program between a machine and its node that gives other answers than the node.

use std::collections::HashMap;

use super::Way;
use super::node_port::Said;

/// The memory of such a program.
#[derive(Default)]
pub struct Between {
    /// The last answer to each kind of question, and the question.
    last: HashMap<String, (String, Said)>,
    /// The first answer to each question.
    first: HashMap<String, Said>,
    count: usize,
}

impl Between {
    /// The answer that it gives in the node's place; `None` where the node is asked.
    pub fn instead(&mut self, way: Way) -> Option<Said> {
        self.count += 1;
        let page =
            if self.count.is_multiple_of(2) { r#"{"error":"login_required"}"# } else { "<html></html>" };
        (way == Way::Page).then(|| (200, "application/json".to_owned(), page.to_owned()))
    }

    /// The answer that it passes on, given the node's.
    pub fn pass(&mut self, way: Way, question: &str, body: &str, answer: Said) -> Said {
        let kind = question.split('?').next().unwrap_or_default();
        match way {
            Way::Mixed if !kind.ends_with("status") => {
                let asked = format!("{question} {body}");
                let before = self.last.insert(kind.to_owned(), (asked.clone(), answer.clone()));
                let other = before.filter(|(before, _)| self.count.is_multiple_of(2) && *before != asked);
                other.map_or(answer, |(_, other)| other)
            }
            Way::Cached if !kind.ends_with("submit-tx") => {
                let asked = question.split('&').filter(|part| !part.contains("await-tx"));
                let asked = asked.collect::<Vec<_>>().join("&") + body;
                self.first.entry(asked).or_insert(answer).clone()
            }
            _ => {
                self.first.clear();
                answer
            }
        }
    }
}
