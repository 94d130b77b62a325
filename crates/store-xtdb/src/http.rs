//! Requests to the nodes: time limits, retries with growing pauses, and fail-over.
//!
//! Architecture invariant: every request of this module may be repeated. Reads change nothing, and a transaction carries
//! the writer's mark (see `write`), which no longer matches when it is executed again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, StatusCode};
use serde_json::Value;

use super::edn::Edn;
use super::wire::Rows;
use context_store::{Result, StoreError};

/// The format of a request's body or answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Edn,
}

impl Format {
    fn mime(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Edn => "application/edn",
        }
    }
}

/// One request, without the node's address.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    path: String,
    separator: char,
    accept: Format,
    body: Option<(Format, String)>,
}

impl Request {
    /// A read of `/_xtdb/{endpoint}`.
    pub fn get(endpoint: &str, accept: Format) -> Self {
        Self { path: format!("/_xtdb/{endpoint}"), separator: '?', accept, body: None }
    }

    /// The same with a body.
    pub fn post(endpoint: &str, accept: Format, format: Format, body: String) -> Self {
        Self { body: Some((format, body)), ..Self::get(endpoint, accept) }
    }

    /// Adds a parameter.
    pub fn with(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.path.push(self.separator);
        self.separator = '&';
        self.path.push_str(name);
        self.path.push('=');
        for byte in value.to_string().bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    self.path.push(char::from(byte));
                }
                byte => self.path.push_str(&format!("%{byte:02X}")),
            }
        }
        self
    }
}

/// What a node answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    status: StatusCode,
    body: String,
    request: String,
}

impl Answer {
    /// Whether the node answered 404.
    pub fn is_missing(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    /// Whether the request was about a transaction that the node does not have yet.
    pub fn is_out_of_sync(&self) -> bool {
        self.status == StatusCode::BAD_REQUEST && self.body.contains("node-out-of-sync")
    }

    /// The answer as JSON.
    pub fn json(&self) -> Result<Value> {
        self.success()?;
        serde_json::from_str(&self.body).map_err(|e| self.strange(&e.to_string()))
    }

    /// The answer as EDN.
    pub fn edn(&self) -> Result<Edn> {
        self.success()?;
        Edn::read(&self.body).ok_or_else(|| self.strange("it is not EDN"))
    }

    /// An answer that XTDB 1.x does not give.
    pub fn strange(&self, what: &str) -> StoreError {
        StoreError::Unavailable(format!(
            "XTDB 1.x would not answer {} like this ({what}): {}; check the URL and the node's version",
            self.request,
            excerpt(&self.body)
        ))
    }

    fn success(&self) -> Result<()> {
        if self.status.is_success() {
            return Ok(());
        }
        Err(StoreError::Unavailable(format!(
            "XTDB answered {} to {}: {}; look at the node's log and disk",
            self.status.as_u16(),
            self.request,
            excerpt(&self.body)
        )))
    }
}

/// The nodes of one database.
pub(crate) struct Nodes {
    client: Client,
    urls: Vec<String>,
    /// The same without user names and passwords, for messages.
    shown: Vec<String>,
    current: AtomicUsize,
    timeout: Duration,
    attempts: u32,
}

impl Nodes {
    pub fn new(urls: &[String], timeout: Duration, attempts: u32) -> Result<Self> {
        let invalid = |what: String| StoreError::Invalid(what);
        if urls.is_empty() {
            return Err(invalid(
                "an XTDB store needs the URL of a node, such as http://127.0.0.1:3000".into(),
            ));
        }
        let mut bases = Vec::new();
        let mut shown = Vec::new();
        for url in urls {
            let base = url.trim_end_matches('/').trim_end_matches("/_xtdb").to_owned();
            let parsed = reqwest::Url::parse(&base).map_err(|e| {
                invalid(format!("{url} is not the URL of an XTDB node (http://host:port): {e}"))
            })?;
            if !matches!(parsed.scheme(), "http" | "https") || parsed.host().is_none() {
                return Err(invalid(format!(
                    "{} is not the URL of an XTDB node: it must begin with http:// or https://",
                    shown_url(url)
                )));
            }
            bases.push(base);
            shown.push(shown_url(url));
        }
        let client = Client::builder()
            .connect_timeout(timeout.min(Duration::from_secs(5)))
            .pool_idle_timeout(Duration::from_secs(20))
            .tcp_nodelay(true)
            .build()
            .map_err(|e| StoreError::Unavailable(format!("the HTTP client can't be built: {e}")))?;
        Ok(Self {
            client,
            urls: bases,
            shown,
            current: AtomicUsize::new(0),
            timeout,
            attempts: attempts.max(1),
        })
    }

    /// The time limit of one request.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The URL that the next request goes to first.
    pub fn current(&self) -> &str {
        &self.shown[self.current.load(Ordering::Relaxed) % self.shown.len()]
    }

    /// All URLs, for messages.
    pub fn all(&self) -> String {
        self.shown.join(", ")
    }

    /// Sends a request until a node answers it. After a failure it goes to the next node.
    pub async fn send(&self, request: &Request) -> Result<Answer> {
        let deadline = Instant::now() + self.timeout * 2;
        let mut cause = String::new();
        for attempt in 0..self.attempts.max(u32::try_from(self.urls.len()).unwrap_or(1)) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let place = self.current.load(Ordering::Relaxed);
            match self.attempt(place % self.urls.len(), request, left.min(self.timeout)).await {
                Ok(answer) => match transient(&answer) {
                    None => return Ok(answer),
                    Some(what) => cause = what,
                },
                Err(error) => cause = root_cause(&error),
            }
            tracing::debug!(attempt, path = %request.path, %cause, "a request to XTDB failed");
            let next = place.wrapping_add(1);
            let _ = self.current.compare_exchange(place, next, Ordering::Relaxed, Ordering::Relaxed);
            // While there are nodes that have not been asked yet, there is no reason to wait.
            if next.is_multiple_of(self.urls.len()) {
                let pause = Duration::from_millis(40 << attempt.min(5));
                tokio::time::sleep(pause.min(deadline.saturating_duration_since(Instant::now()))).await;
            }
        }
        Err(StoreError::Unavailable(format!(
            "no XTDB node answers at {}: {cause}; check that it runs and that the URL is right",
            self.all()
        )))
    }

    /// Reads a JSON array element by element from one node, in bounded memory. `false` ends it early.
    ///
    /// If it fails in the middle, the elements before that have been passed on, and the caller continues from there.
    pub async fn each(&self, request: &Request, mut row: impl FnMut(Value) -> Result<bool>) -> Result<()> {
        let place = self.current.load(Ordering::Relaxed);
        let target = &self.urls[place % self.urls.len()];
        let url = &self.shown[place % self.urls.len()];
        let failed = |e: &reqwest::Error| {
            let next = place.wrapping_add(1);
            let _ = self.current.compare_exchange(place, next, Ordering::Relaxed, Ordering::Relaxed);
            StoreError::Unavailable(format!(
                "the connection to XTDB at {url} was interrupted: {}",
                root_cause(e)
            ))
        };
        let late = || StoreError::Unavailable(format!("XTDB at {url} stopped answering"));
        let builder =
            self.client.get(format!("{target}{}", request.path)).header(ACCEPT, request.accept.mime());
        let sent = tokio::time::timeout(self.timeout, builder.send()).await.map_err(|_| late())?;
        let mut response = sent.map_err(|e| failed(&e))?;
        if !response.status().is_success() {
            let status = response.status();
            let body = response.text().await.unwrap_or_default();
            let answer = Answer { status, body, request: format!("{url}{}", request.path) };
            return answer.success();
        }
        let mut rows = Rows::default();
        loop {
            let chunk = tokio::time::timeout(self.timeout, response.chunk()).await.map_err(|_| late())?;
            let Some(piece) = chunk.map_err(|e| failed(&e))? else { break };
            for value in rows.feed(&piece)? {
                if !row(value)? {
                    return Ok(());
                }
            }
        }
        if rows.is_complete() {
            Ok(())
        } else {
            Err(StoreError::Unavailable(format!(
                "the connection to XTDB at {url} was interrupted in the middle of an answer"
            )))
        }
    }

    async fn attempt(&self, place: usize, request: &Request, limit: Duration) -> reqwest::Result<Answer> {
        let target = format!("{}{}", self.urls[place], request.path);
        let mut builder = match &request.body {
            None => self.client.get(&target),
            Some((format, body)) => {
                self.client.post(&target).header(CONTENT_TYPE, format.mime()).body(body.clone())
            }
        };
        builder = builder.header(ACCEPT, request.accept.mime()).timeout(limit);
        let response = builder.send().await?;
        let status = response.status();
        let body = response.text().await?;
        let path = request.path.split('?').next().unwrap_or(&request.path);
        Ok(Answer { status, body, request: format!("{}{path}", self.shown[place]) })
    }
}

/// A URL without user name and password, for messages.
pub(crate) fn shown_url(url: &str) -> String {
    match reqwest::Url::parse(url) {
        Ok(mut parsed) => {
            let _ = parsed.set_username("").and_then(|()| parsed.set_password(None));
            parsed.as_str().trim_end_matches('/').trim_end_matches("/_xtdb").to_owned()
        }
        Err(_) => url.to_owned(),
    }
}

/// Why an answer is worth another attempt. `None` if it is final.
fn transient(answer: &Answer) -> Option<String> {
    if answer.status == StatusCode::INTERNAL_SERVER_ERROR && answer.body.contains("TimeoutException") {
        return Some(
            "it does not have this client's newest transaction in time (behind, or reset)".to_owned(),
        );
    }
    let is_busy = matches!(answer.status.as_u16(), 429 | 502 | 503 | 504);
    is_busy.then(|| format!("it answered {}: {}", answer.status.as_u16(), excerpt(&answer.body)))
}

fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    if error.is_timeout() { "no answer in time".to_owned() } else { cause.to_string() }
}

fn excerpt(body: &str) -> String {
    let line: String = body.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
    if line.is_empty() { "(an empty answer)".to_owned() } else { line }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn parameters_are_escaped() {
        let request = Request::get("entity", Format::Json).with("eid", "päth/ü+ &").with("tx-id", 5);
        assert_eq!(request.path, "/_xtdb/entity?eid=p%C3%A4th%2F%C3%BC%2B%20%26&tx-id=5");
    }

    #[rstest]
    #[case("http://me:secret@host:3000/_xtdb/", "http://host:3000")]
    #[case("https://host", "https://host")]
    #[case("nonsense", "nonsense")]
    fn passwords_are_not_shown(#[case] url: &str, #[case] shown: &str) {
        assert_eq!(shown_url(url), shown);
    }

    #[rstest]
    #[case(&[])]
    #[case(&["nonsense"])]
    #[case(&["ftp://host"])]
    #[case(&["http://"])]
    fn a_url_that_can_not_be_one_is_refused(#[case] urls: &[&str]) {
        let urls: Vec<String> = urls.iter().map(|u| (*u).to_owned()).collect();
        let error = Nodes::new(&urls, Duration::from_secs(1), 1).err().unwrap();
        assert_eq!(error.code(), context_model::error::ErrorCode::InvalidArgument);
    }
}
