//! The ports of a node: each machine has its own, which can be away, slow, lose answers, or lead through a program that
//! gives others.

use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::Node;
use super::node_between::Between;

/// The behaviour of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(dead_code, reason = "the tests of the store use all of them, which have this node, too")]
pub enum Way {
    #[default]
    Open,
    /// Connections end before anything was said.
    Away,
    /// Each answer takes its time.
    Slow,
    /// The request is carried out, and the answer is lost.
    Deaf,
    /// The next transaction is carried out, its answer is lost, and the node is away from then on.
    Cut,
    /// A program in between answers with its own page.
    Page,
    /// Every second answer is the one before to the same question about something else.
    Mixed,
    /// A question that was asked before gets the answer of then, whatever the node is to be waited for.
    Cached,
}

/// A request: its head as it came, its target as a node of this program takes it, and its body.
pub struct Question {
    #[allow(dead_code, reason = "passed on to real nodes, by the tests of the store")]
    pub head: String,
    pub target: String,
    pub body: String,
}

/// An answer's status, content type and body.
pub type Said = (u16, String, String);

/// The answers of a port; `None` is a connection that ends without one.
pub type Behind = Arc<dyn Fn(Question) -> Pin<Box<dyn Future<Output = Option<Said>> + Send>> + Send + Sync>;

/// A port of one machine; it ends when dropped.
pub struct Port {
    pub url: String,
    way: Arc<Mutex<Way>>,
    task: JoinHandle<()>,
}

impl Port {
    /// Opens a port of the loopback interface to a node.
    pub async fn open(node: Arc<Node>) -> Self {
        Self::before(Arc::new(move |question: Question| {
            let (status, text) = node.answer(&question.target, &question.body);
            node.answered.fetch_add(text.len(), Ordering::Relaxed);
            node.requests.fetch_add(1, Ordering::Relaxed);
            Box::pin(std::future::ready(Some((status, kind(&text).to_owned(), text))))
        }))
        .await
    }

    /// Opens a port to something else that answers.
    pub async fn before(behind: Behind) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let way: Arc<Mutex<Way>> = Arc::default();
        let (ways, between) = (Arc::clone(&way), Arc::<Mutex<Between>>::default());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A connection that breaks is the client's to notice.
                tokio::spawn(serve(stream, Arc::clone(&behind), Arc::clone(&ways), Arc::clone(&between)));
            }
        });
        Self { url, way, task }
    }

    pub fn set(&self, way: Way) {
        *self.way.lock().unwrap() = way;
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.set(Way::Away);
        self.task.abort();
    }
}

/// Answers the requests of one connection, one after the other.
async fn serve(
    mut stream: TcpStream,
    behind: Behind,
    ways: Arc<Mutex<Way>>,
    between: Arc<Mutex<Between>>,
) -> Option<()> {
    let mut bytes = Vec::new();
    loop {
        let question = request(&mut stream, &mut bytes).await?;
        let way = *ways.lock().unwrap();
        match way {
            Way::Away => return None,
            Way::Slow => tokio::time::sleep(Duration::from_millis(5)).await,
            _ => {}
        }
        let instead = between.lock().unwrap().instead(way);
        let asked = (question.target.clone(), question.body.clone());
        let (status, kind, text) = match instead {
            Some(answer) => answer,
            None => {
                let answer = behind(question).await?;
                between.lock().unwrap().pass(way, &asked.0, &asked.1, answer)
            }
        };
        if way == Way::Cut && asked.0.ends_with("submit-tx") {
            *ways.lock().unwrap() = Way::Away;
            return None;
        }
        if way == Way::Deaf {
            return None;
        }
        let head =
            format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", text.len());
        stream.write_all(format!("{head}{text}").as_bytes()).await.ok()?;
    }
}

/// The content type of a node's answer.
fn kind(text: &str) -> &'static str {
    if (text.starts_with('{') && text.contains(":xtdb.api")) || text.starts_with("([") {
        "application/edn"
    } else {
        "application/json"
    }
}

/// The next request; what is read beyond it stays in `bytes`.
async fn request(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<Question> {
    let mut piece = [0; 8192];
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let lower = head.to_lowercase();
            let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                let body = String::from_utf8_lossy(&bytes[end + 4..end + 4 + length]).into_owned();
                bytes.drain(..end + 4 + length);
                let wants_edn = lower.contains("accept: application/edn");
                let target = head.split(' ').nth(1)?.trim_start_matches("/_xtdb/");
                let target = format!("{}{target}", if wants_edn { "edn " } else { "" });
                return Some(Question { head, target, body });
            }
        }
        match stream.read(&mut piece).await {
            Ok(count @ 1..) => bytes.extend_from_slice(&piece[..count]),
            _ => return None,
        }
    }
}
