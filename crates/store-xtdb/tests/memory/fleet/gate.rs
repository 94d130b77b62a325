//! A port before another one of a node that may hold answers, or give others.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::ask::{client, passed_on};
use crate::node::{Port, Question, Said};

/// The outcomes of an answer.
pub enum Act {
    Pass,
    /// It is passed on once this was notified.
    Hold(Arc<Notify>),
    /// This status, content type and body stand in its place.
    Say(u16, &'static str, String),
}

/// Decides about the answer to a request, given the request's target and body, and the answer's body.
type Rule = Box<dyn FnMut(&str, &str, &str) -> Act + Send>;

/// The port; it ends when dropped.
pub struct Gate {
    pub url: String,
    rule: Arc<Mutex<Rule>>,
    _port: Port,
}

impl Gate {
    /// Stands before the node with this URL, and passes everything on.
    pub async fn start(node: &str) -> Self {
        let rule: Arc<Mutex<Rule>> = Arc::new(Mutex::new(Box::new(|_, _, _| Act::Pass)));
        let (client, node, rules) = (client(), node.to_owned(), Arc::clone(&rule));
        let port = Port::before(Arc::new(move |question| {
            Box::pin(decided(client.clone(), node.clone(), question, Arc::clone(&rules)))
        }))
        .await;
        Self { url: port.url.clone(), rule, _port: port }
    }

    pub fn set(&self, rule: impl FnMut(&str, &str, &str) -> Act + Send + 'static) {
        *self.rule.lock().unwrap() = Box::new(rule);
    }

    pub fn open(&self) {
        self.set(|_, _, _| Act::Pass);
    }
}

async fn decided(
    client: reqwest::Client,
    node: String,
    question: Question,
    rule: Arc<Mutex<Rule>>,
) -> Option<Said> {
    let target = question.head.split(' ').nth(1)?.to_owned();
    let body = question.body.clone();
    let (status, kind, text) = passed_on(client, node, question).await?;
    let act = (rule.lock().unwrap())(&target, &body, &text);
    match act {
        Act::Pass => {}
        Act::Hold(until) => until.notified().await,
        Act::Say(status, kind, text) => return Some((status, kind.to_owned(), text)),
    }
    Some((status, kind, text))
}
