//! The HTTP client: addresses of nodes, connections that stay open between requests, and TLS.

use std::error::Error;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use context_store::{Result, StoreError};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, StatusCode, Uri};
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use percent_encoding::percent_decode_str;
use rustls::{ClientConfig, RootCertStore};

/// After this long without a request, a connection is closed.
const IDLE: Duration = Duration::from_secs(20);

/// The address of a node.
#[derive(Debug)]
pub(crate) struct NodeAddress {
    /// Scheme, host and port, and a path if a proxy needs one; without user name and password.
    shown: String,
    authorization: Option<HeaderValue>,
}

impl NodeAddress {
    /// Reads the URL of a node, with or without `/_xtdb` at its end.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for anything but `http://host` and `https://host` with a port, a path, a user name and a password.
    pub fn new(url: &str) -> Result<Self> {
        let shown = shown_url(url);
        let wrong = |why: &str| {
            StoreError::Invalid(format!("{shown} is not the URL of an XTDB node (http://host:port): {why}"))
        };
        let parsed: Uri = shown.parse().map_err(|e: hyper::http::uri::InvalidUri| wrong(&e.to_string()))?;
        if !matches!(parsed.scheme_str(), Some("http" | "https")) {
            return Err(wrong("it must begin with http:// or https://"));
        }
        if parsed.host().is_none_or(str::is_empty) || parsed.query().is_some() {
            return Err(wrong("it must have a host, and nothing after the path"));
        }
        let authorization = credentials(url).and_then(|(_, credentials, _)| {
            let decoded: Vec<u8> = percent_decode_str(credentials).collect();
            let mut value = HeaderValue::try_from(format!("Basic {}", BASE64.encode(decoded))).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        Ok(Self { shown, authorization })
    }

    /// The URL for messages: without user name and password.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Returns whether the node is reached through TLS.
    pub fn is_secure(&self) -> bool {
        self.shown.starts_with("https:")
    }
}

/// A URL without user name and password, for messages.
pub(crate) fn shown_url(url: &str) -> String {
    let url = match credentials(url) {
        Some((scheme, _, rest)) => format!("{scheme}{rest}"),
        None => url.to_owned(),
    };
    url.trim_end_matches('/').trim_end_matches("/_xtdb").to_owned()
}

/// The parts of a URL before, within and after its user name and password.
fn credentials(url: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = url.split_at(url.find("://")? + 3);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let at = authority.rfind('@')?;
    Some((scheme, &authority[..at], &rest[at + 1..]))
}

/// A request without the node's address.
pub(crate) struct RequestHead<'a> {
    pub path: &'a str,
    /// The MIME type of the answer.
    pub accept: &'static str,
    /// The MIME type and the text that are posted.
    pub body: Option<(&'static str, &'a str)>,
}

/// Connections to nodes.
pub(crate) struct HttpClient(hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

impl HttpClient {
    /// A client that waits so long for a connection. The machine's certificates are only read if one of the nodes needs TLS.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` if the machine has no certificates that can be read.
    pub fn new(connect_timeout: Duration, is_secure: bool) -> Result<Self> {
        let mut tcp = HttpConnector::new();
        tcp.set_connect_timeout(Some(connect_timeout));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let tls = tls(is_secure)
            .map_err(|e| StoreError::Unavailable(format!("the HTTP client can't be built: {e}")))?;
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Self(client))
    }

    /// Sends a request, and returns once the answer begins.
    pub async fn send(
        &self,
        base: &NodeAddress,
        head: &RequestHead<'_>,
    ) -> std::result::Result<Response, Failure> {
        let mut request = hyper::Request::builder()
            .method(if head.body.is_some() { Method::POST } else { Method::GET })
            .uri(format!("{}{}", base.shown, head.path))
            .header(ACCEPT, head.accept);
        if let Some(authorization) = &base.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if let Some((mime, _)) = head.body {
            request = request.header(CONTENT_TYPE, mime);
        }
        let body = Bytes::from(head.body.map(|(_, text)| text.to_owned()).unwrap_or_default());
        let request = request.body(Full::new(body)).map_err(|e| Failure::of(&e))?;
        self.0.request(request).await.map(Response).map_err(|e| Failure::of(&e))
    }
}

fn tls(is_secure: bool) -> std::result::Result<ClientConfig, Box<dyn Error>> {
    let provider = rustls::crypto::ring::default_provider();
    let config =
        ClientConfig::builder_with_provider(provider.into()).with_safe_default_protocol_versions()?;
    if is_secure {
        return Ok(config.with_native_roots()?.with_no_client_auth());
    }
    Ok(config.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

/// The beginning of an answer.
pub(crate) struct Response(hyper::Response<Incoming>);

impl Response {
    pub fn status(&self) -> StatusCode {
        self.0.status()
    }

    /// The next piece of the body; `None` at its end.
    pub async fn chunk(&mut self) -> std::result::Result<Option<Bytes>, Failure> {
        while let Some(frame) = self.0.body_mut().frame().await {
            if let Ok(bytes) = frame.map_err(|e| Failure::of(&e))?.into_data() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    /// The whole body.
    pub async fn text(self) -> std::result::Result<String, Failure> {
        let bytes = self.0.into_body().collect().await.map_err(|e| Failure::of(&e))?.to_bytes();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("no answer in time")]
    Late,
    #[error("{0}")]
    Broken(String),
}

impl Failure {
    /// The cause at the bottom of an error.
    fn of(error: &(dyn Error + 'static)) -> Self {
        let mut cause = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        Self::Broken(cause.to_string())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::nothing("http://host:3000", "http://host:3000", None)]
    #[case::password("http://me:se%40cret@host:3000/_xtdb/", "http://host:3000", Some("me:se@cret"))]
    #[case::sign_in_the_password("https://me:a@b@host/x/", "https://host/x", Some("me:a@b"))]
    #[case::sign_in_the_path("https://host/a@b", "https://host/a@b", None)]
    #[case::address("http://[::1]:3000/", "http://[::1]:3000", None)]
    fn password_is_sent_and_not_shown(#[case] url: &str, #[case] shown: &str, #[case] sent: Option<&str>) {
        let base = NodeAddress::new(url).unwrap();
        let header = sent.map(|sent| format!("Basic {}", BASE64.encode(sent)));
        assert_eq!(base.shown(), shown);
        assert_eq!(base.authorization.as_ref().map(|value| value.to_str().unwrap()), header.as_deref());
    }
}
