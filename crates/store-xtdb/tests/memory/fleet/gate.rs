//! A proxy between a machine and the node that may hold answers, or give others.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

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

/// The proxy; it ends when dropped.
pub struct Gate {
    pub url: String,
    rule: Arc<Mutex<Rule>>,
    task: JoinHandle<()>,
}

impl Gate {
    /// Stands before the node with this URL, and passes everything on.
    pub async fn start(node: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let rule: Arc<Mutex<Rule>> = Arc::new(Mutex::new(Box::new(|_, _, _| Act::Pass)));
        let node = node.trim_start_matches("http://").to_owned();
        let rules = Arc::clone(&rule);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, node.clone(), Arc::clone(&rules)));
            }
        });
        Self { url, rule, task }
    }

    pub fn set(&self, rule: impl FnMut(&str, &str, &str) -> Act + Send + 'static) {
        *self.rule.lock().unwrap() = Box::new(rule);
    }

    pub fn open(&self) {
        self.set(|_, _, _| Act::Pass);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut client: TcpStream, node: String, rule: Arc<Mutex<Rule>>) -> Option<()> {
    let mut bytes = Vec::new();
    loop {
        let (head, body) = message(&mut client, &mut bytes).await?;
        let mut server = TcpStream::connect(&node).await.ok()?;
        server.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await.ok()?;
        let (answer, text) = message(&mut server, &mut Vec::new()).await?;
        let target = head.split(' ').nth(1)?.to_owned();
        let act = (rule.lock().unwrap())(&target, &body, &text);
        let answer = match act {
            Act::Pass => format!("{answer}\r\n\r\n{text}"),
            Act::Hold(until) => {
                until.notified().await;
                format!("{answer}\r\n\r\n{text}")
            }
            Act::Say(status, kind, text) => {
                let length = text.len();
                format!(
                    "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{text}"
                )
            }
        };
        client.write_all(answer.as_bytes()).await.ok()?;
    }
}

/// The head and the body of the next message.
async fn message(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<(String, String)> {
    let mut piece = [0; 8192];
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = head.to_lowercase().lines().find_map(|line| {
                line.strip_prefix("content-length: ").and_then(|length| length.trim().parse::<usize>().ok())
            });
            let whole = end + 4 + length.unwrap_or(0);
            if bytes.len() >= whole {
                let body = String::from_utf8_lossy(&bytes[end + 4..whole]).into_owned();
                bytes.drain(..whole);
                return Some((head, body));
            }
        }
        match stream.read(&mut piece).await {
            Ok(count @ 1..) => bytes.extend_from_slice(&piece[..count]),
            _ => return None,
        }
    }
}
