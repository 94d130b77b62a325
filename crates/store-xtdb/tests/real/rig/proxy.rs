//! A proxy on loopback that makes a network bad: slow, and cutting connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A proxy; it ends when dropped.
pub struct Proxy {
    port: u16,
    cut: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Forwards to this port, each answer after `delay`; about one of `cut_each` answers is thrown away and its
    /// connection reset, after the node has seen the request.
    pub async fn start(target: u16, delay: Duration, cut_each: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let cut = Arc::new(AtomicU64::new(0));
        let count = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&cut);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (cut, count) = (Arc::clone(&counted), Arc::clone(&count));
                tokio::spawn(async move {
                    let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await else { return };
                    let (mut from_client, mut to_client) = client.into_split();
                    let (mut from_server, mut to_server) = server.into_split();
                    let up =
                        tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
                    let mut piece = vec![0; 64 * 1024];
                    while let Ok(read @ 1..) = from_server.read(&mut piece).await {
                        tokio::time::sleep(delay).await;
                        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
                        // Spread, so that it is not the same request of a sequence every time.
                        let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
                        if cut_each > 0 && spread % cut_each == 0 {
                            cut.fetch_add(1, Ordering::Relaxed);
                            break;
                        }
                        if to_client.write_all(&piece[..read]).await.is_err() {
                            break;
                        }
                    }
                    up.abort();
                });
            }
        });
        Self { port, cut, task }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Number of answers that were thrown away.
    pub fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}
