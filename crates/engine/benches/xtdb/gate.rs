//! A gate on loopback in front of a node, which counts what passes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The traffic since the last request for it.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// By endpoint: how many requests, and the bytes of their answers.
    pub requests: BTreeMap<String, (u64, u64)>,
    /// Bytes to the node, and back.
    pub up: u64,
    pub down: u64,
}

impl Traffic {
    pub fn count(&self) -> u64 {
        self.requests.values().map(|(count, _)| count).sum()
    }
}

/// The gate; it ends when dropped.
pub struct Gate {
    pub url: String,
    traffic: Arc<Mutex<Traffic>>,
    task: JoinHandle<()>,
}

impl Gate {
    pub async fn open(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let traffic: Arc<Mutex<Traffic>> = Arc::default();
        let counted = Arc::clone(&traffic);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await {
                    tokio::spawn(pass(client, server, Arc::clone(&counted)));
                }
            }
        });
        Self { url, traffic, task }
    }

    pub fn traffic(&self) -> Traffic {
        std::mem::take(&mut self.traffic.lock().unwrap())
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Passes on what both sides say. A request begins where the client begins to speak again.
async fn pass(client: TcpStream, server: TcpStream, traffic: Arc<Mutex<Traffic>>) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let (mut asked, mut answered) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    let mut endpoint = String::new();
    loop {
        tokio::select! {
            read = from_client.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return };
                let begins = [&b"GET /_xtdb/"[..], &b"POST /_xtdb/"[..]];
                let piece = &asked[..length];
                let start = begins.iter().find(|begin| piece.starts_with(begin)).map(|begin| begin.len());
                {
                    let mut traffic = traffic.lock().unwrap();
                    traffic.up += length as u64;
                    if let Some(start) = start {
                        let name = piece[start..].split(|byte| matches!(byte, b'?' | b' ')).next();
                        endpoint = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
                        let is_history = piece.windows(13).any(|window| window == b"&history=true");
                        endpoint.push_str(if is_history { " history" } else { "" });
                        traffic.requests.entry(endpoint.clone()).or_default().0 += 1;
                    }
                }
                if to_server.write_all(piece).await.is_err() { return }
            }
            read = from_server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return };
                {
                    let mut traffic = traffic.lock().unwrap();
                    traffic.down += length as u64;
                    traffic.requests.entry(endpoint.clone()).or_default().1 += length as u64;
                }
                if to_client.write_all(&answered[..length]).await.is_err() { return }
            }
        }
    }
}
