//! Requests to the nodes: time limits, retries with growing pauses, and fail-over.
//!
//! Architecture invariant: every request of this module may be repeated. Reads change nothing, and a transaction carries
//! the writer's mark (see `write`), which no longer matches when it is executed again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use context_store::{Result, StoreError};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::StatusCode;
use serde_json::Value;

use super::connection::{Failure, HttpClient, NodeAddress, RequestHead};
use super::edn::Edn;
use super::wire::Rows;

/// Everything but what RFC 3986 leaves as it is.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

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
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NodeRequest {
    path: String,
    separator: char,
    accept: Format,
    body: Option<(Format, String)>,
}

impl NodeRequest {
    /// A read of `/_xtdb/{endpoint}`.
    pub(crate) fn get(endpoint: &str, accept: Format) -> Self {
        Self { path: format!("/_xtdb/{endpoint}"), separator: '?', accept, body: None }
    }

    /// The same with a body.
    pub(crate) fn post(endpoint: &str, accept: Format, format: Format, body: String) -> Self {
        Self { body: Some((format, body)), ..Self::get(endpoint, accept) }
    }

    fn head(&self) -> RequestHead<'_> {
        let body = self.body.as_ref().map(|(format, body)| (format.mime(), body.as_str()));
        RequestHead { path: &self.path, accept: self.accept.mime(), body }
    }

    /// Adds a parameter.
    pub(crate) fn with(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.path.push(self.separator);
        self.separator = '&';
        self.path.push_str(name);
        self.path.push('=');
        self.path.extend(utf8_percent_encode(&value.to_string(), ESCAPED));
        self
    }
}

/// The answer of a node.
#[derive(Clone, Debug)]
pub(crate) struct NodeAnswer {
    status: StatusCode,
    body: String,
    request: String,
}

impl NodeAnswer {
    /// True if the node answered 404.
    pub(crate) fn is_missing(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    /// True if the node has nothing to answer, which it says with this sentence. A 404 with another one is an answer to a
    /// different question, or the page of a program in between: neither says that the database lacks something.
    pub(crate) fn says(&self, sentence: &str) -> Result<bool> {
        if !self.is_missing() {
            return Ok(false);
        }
        let is_said = match serde_json::from_str::<Value>(&self.body) {
            Ok(value) => value["error"].as_str() == Some(sentence),
            Err(_) => Edn::read(&self.body)
                .is_some_and(|edn| matches!(edn.get("error"), Some(Edn::Text(said)) if said == sentence)),
        };
        if is_said { Ok(true) } else { Err(self.strange("something else is missing")) }
    }

    /// True if the request was about a transaction that the node does not have yet.
    pub(crate) fn is_out_of_sync(&self) -> bool {
        self.status == StatusCode::BAD_REQUEST && self.body.contains("node-out-of-sync")
    }

    /// The answer as JSON.
    pub(crate) fn json(&self) -> Result<Value> {
        self.success()?;
        serde_json::from_str(&self.body).map_err(|e| self.strange(&e.to_string()))
    }

    /// The answer as EDN.
    pub(crate) fn edn(&self) -> Result<Edn> {
        self.success()?;
        Edn::read(&self.body).ok_or_else(|| self.strange("it is not EDN"))
    }

    /// An answer that XTDB 1.x does not give.
    pub(crate) fn strange(&self, what: &str) -> StoreError {
        StoreError::Unavailable(format!(
            "XTDB 1.x would not answer {} like this ({what}): {}; check the URL and the node's version",
            self.request,
            excerpt(&self.body)
        ))
    }

    /// Checks that it is one of success.
    pub(crate) fn success(&self) -> Result<()> {
        if self.status.is_success() {
            return Ok(());
        }
        if matches!(self.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(StoreError::Unavailable(format!(
                "{} refuses the name and password ({}); check those in the URL, as http://NAME:PASSWORD@HOST:PORT",
                self.request,
                self.status.as_u16()
            )));
        }
        if self.status.is_redirection() {
            return Err(StoreError::Unavailable(format!(
                "{} leads elsewhere ({}); redirects are not followed, because texts go only to the node that you name; check the URL",
                self.request,
                self.status.as_u16()
            )));
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
    client: HttpClient,
    bases: Vec<NodeAddress>,
    current: AtomicUsize,
    timeout: Duration,
    attempts: u32,
}

impl Nodes {
    pub(crate) fn new(urls: &[String], timeout: Duration, attempts: u32) -> Result<Self> {
        if urls.is_empty() {
            let what = "an XTDB store needs the URL of a node, such as http://127.0.0.1:3000";
            return Err(StoreError::Invalid(what.into()));
        }
        let bases = urls.iter().map(|url| NodeAddress::new(url)).collect::<Result<Vec<_>>>()?;
        let client =
            HttpClient::new(timeout.min(Duration::from_secs(5)), bases.iter().any(NodeAddress::is_secure))?;
        Ok(Self { client, bases, current: AtomicUsize::new(0), timeout, attempts: attempts.max(1) })
    }

    /// The time limit of one request.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The URL that the next request goes to first.
    pub(crate) fn current(&self) -> &str {
        self.base(self.current.load(Ordering::Relaxed)).shown()
    }

    /// All URLs, for messages.
    pub(crate) fn all(&self) -> String {
        self.bases.iter().map(NodeAddress::shown).collect::<Vec<_>>().join(", ")
    }

    fn base(&self, place: usize) -> &NodeAddress {
        &self.bases[place % self.bases.len()]
    }

    /// Number of times that a request is sent.
    fn attempts(&self) -> u32 {
        self.attempts.max(u32::try_from(self.bases.len()).unwrap_or(1))
    }

    /// Has the next request go to the next node, unless another request has seen to that. Pauses once all nodes have failed.
    async fn go_on(&self, place: usize, attempt: u32, most: Duration) {
        let next = place.wrapping_add(1);
        let _ = self.current.compare_exchange(place, next, Ordering::Relaxed, Ordering::Relaxed);
        if next.is_multiple_of(self.bases.len()) {
            tokio::time::sleep(Duration::from_millis(40 << attempt.min(5)).min(most)).await;
        }
    }

    /// Sends a request until a node answers it. After a failure it goes to the next node.
    #[tracing::instrument(name = "xtdb_request", level = "debug", skip_all, fields(path = %request.path))]
    pub(crate) async fn send(&self, request: &NodeRequest) -> Result<NodeAnswer> {
        let deadline = Instant::now() + self.timeout * 2;
        let mut cause = String::new();
        for attempt in 0..self.attempts() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let place = self.current.load(Ordering::Relaxed);
            match self.attempt(place, request, left.min(self.timeout)).await {
                Ok(answer) => match transient(&answer) {
                    None => return Ok(answer),
                    Some(what) => cause = what,
                },
                Err(error) => cause = error.to_string(),
            }
            tracing::debug!(attempt, path = %request.path, %cause, "a request to XTDB failed");
            self.go_on(place, attempt, deadline.saturating_duration_since(Instant::now())).await;
        }
        Err(StoreError::Unavailable(format!(
            "no XTDB node answers at {}: {cause}; check that it runs and that the URL is right",
            self.all()
        )))
    }

    /// The error for an answer that does not fit the request.
    pub(crate) fn foreign(&self, asked: &str) -> StoreError {
        StoreError::Unavailable(format!(
            "XTDB at {} was asked about {asked} and answered about something else; check what stands between",
            self.current()
        ))
    }

    /// The same error, which names the node if it is about damage: not everything that is stored here comes from there.
    pub(crate) fn told(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Corrupt(what) => {
                StoreError::Corrupt(format!("{what} (in the database of XTDB at {})", self.current()))
            }
            other => other,
        }
    }

    /// Reads a JSON array element by element, in bounded memory. `false` ends it early. After a failure the next node is asked
    /// for what `request` says then: for the rest, or for everything once more.
    pub(crate) async fn each(
        &self,
        request: impl Fn() -> NodeRequest,
        mut row: impl FnMut(Value) -> Result<bool>,
    ) -> Result<()> {
        let (mut asked, mut attempt, mut begin) = (request(), 0, Instant::now());
        loop {
            let place = self.current.load(Ordering::Relaxed);
            let error = match self.rows(place, &asked, &mut row).await {
                Err(error @ StoreError::Unavailable(_)) => error,
                done => return done,
            };
            let next = request();
            if next != asked {
                (asked, attempt, begin) = (next, 0, Instant::now());
            }
            attempt += 1;
            let left = (self.timeout * 2).saturating_sub(begin.elapsed());
            if attempt >= self.attempts() || left.is_zero() {
                return Err(error);
            }
            tracing::debug!(attempt, path = %asked.path, %error, "reading from XTDB failed");
            self.go_on(place, attempt - 1, left).await;
        }
    }

    /// Reads one answer of one node.
    async fn rows(
        &self,
        place: usize,
        request: &NodeRequest,
        row: &mut impl FnMut(Value) -> Result<bool>,
    ) -> Result<()> {
        let url = self.base(place).shown();
        let broken = |failure: Failure| {
            StoreError::Unavailable(format!("the connection to XTDB at {url} was interrupted: {failure}"))
        };
        let late = |_| StoreError::Unavailable(format!("XTDB at {url} stopped answering"));
        let head = request.head();
        let sent = tokio::time::timeout(self.timeout, self.client.send(self.base(place), &head));
        let mut response = sent.await.map_err(late)?.map_err(broken)?;
        if !response.status().is_success() {
            let status = response.status();
            let body = response.text().await.unwrap_or_default();
            return NodeAnswer { status, body, request: format!("{url}{}", request.path) }.success();
        }
        let mut rows = Rows::default();
        while let Some(piece) =
            tokio::time::timeout(self.timeout, response.chunk()).await.map_err(late)?.map_err(broken)?
        {
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

    async fn attempt(
        &self,
        place: usize,
        request: &NodeRequest,
        limit: Duration,
    ) -> std::result::Result<NodeAnswer, Failure> {
        let base = self.base(place);
        let exchange = async {
            let response = self.client.send(base, &request.head()).await?;
            Ok((response.status(), response.text().await?))
        };
        let (status, body) = tokio::time::timeout(limit, exchange).await.map_err(|_| Failure::Late)??;
        let path = request.path.split('?').next().unwrap_or(&request.path);
        Ok(NodeAnswer { status, body, request: format!("{}{path}", base.shown()) })
    }
}

/// Why an answer is worth another attempt. `None` if it is final.
fn transient(answer: &NodeAnswer) -> Option<String> {
    if answer.status == StatusCode::INTERNAL_SERVER_ERROR && answer.body.contains("TimeoutException") {
        return Some(
            "it does not have this client's newest transaction in time (behind, or reset)".to_owned(),
        );
    }
    let is_busy = matches!(answer.status.as_u16(), 429 | 502 | 503 | 504);
    is_busy.then(|| format!("it answered {}: {}", answer.status.as_u16(), excerpt(&answer.body)))
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
        let request = NodeRequest::get("entity", Format::Json).with("eid", "päth/ü+ &").with("tx-id", 5);
        assert_eq!(request.path, "/_xtdb/entity?eid=p%C3%A4th%2F%C3%BC%2B%20%26&tx-id=5");
    }

    #[rstest]
    #[case(&[])]
    #[case(&["nonsense"])]
    #[case(&["ftp://host"])]
    #[case(&["http://"])]
    fn refuses_an_impossible_url(#[case] urls: &[&str]) {
        let urls: Vec<String> = urls.iter().map(|u| (*u).to_owned()).collect();
        let error = Nodes::new(&urls, Duration::from_secs(1), 1).err().unwrap();
        assert_eq!(error.code(), context_model::error::ErrorCode::InvalidArgument);
    }
}
