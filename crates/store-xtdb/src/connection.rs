//! The HTTP client: addresses of nodes, connections that stay open between requests, and TLS.

use std::error::Error;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use context_store::{Result, StoreError};
use percent_encoding::percent_decode_str;
use reqwest::header::{ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use reqwest::{StatusCode, Url, redirect};
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// After this long without a request, a connection is closed.
const IDLE: Duration = Duration::from_secs(20);

/// The most connections that a client has at once, however many sessions use it. One call makes up to 16 requests at once, so
/// no call takes all of them.
const MOST_CONNECTIONS: usize = 32;

/// The most bytes that an answer has, or one element of an answer that is read element by element. A node with any sensible
/// history sends less; a longer answer would take all memory.
pub(crate) const MOST_BYTES: usize = 512 << 20;

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
    /// The message has nothing of the URL, because it can't be told what in it is secret.
    pub(crate) fn new(url: &str) -> Result<Self> {
        let wrong = |why: &str| {
            StoreError::Invalid(format!(
                "a URL is not that of an XTDB node, which is written http://host:port or \
                 https://NAME:PASSWORD@host:port: {why}"
            ))
        };
        let UrlParts { scheme, credentials, place } = UrlParts::of(url).map_err(wrong)?;
        let shown = shown(scheme, place);
        let parsed = Url::parse(&shown).map_err(|_| wrong("it must have a host, and a port of digits"))?;
        if parsed.host_str().is_none_or(str::is_empty) {
            return Err(wrong("it must have a host"));
        }
        let authorization = credentials.and_then(|credentials| {
            let decoded: Vec<u8> = percent_decode_str(credentials).collect();
            let mut value = HeaderValue::try_from(format!("Basic {}", BASE64.encode(decoded))).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        Ok(Self { shown, authorization })
    }

    /// The URL for messages: without user name and password.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// True if the node is reached through TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.shown.starts_with("https:")
    }
}

/// A URL for messages: without user name and password; and without anything else if it is not the URL of a node.
pub(crate) fn shown_url(url: &str) -> String {
    match UrlParts::of(url) {
        Ok(UrlParts { scheme, place, .. }) => shown(scheme, place),
        Err(_) => "(not the URL of a node)".to_owned(),
    }
}

fn shown(scheme: &str, place: &str) -> String {
    let place = place.trim_end_matches('/').trim_end_matches("/_xtdb").trim_end_matches('/');
    format!("{scheme}://{place}")
}

/// A URL, taken apart.
struct UrlParts<'a> {
    /// `http` or `https`.
    scheme: &'static str,
    /// User name and password, as they are written.
    credentials: Option<&'a str>,
    /// Host, port and path.
    place: &'a str,
}

impl<'a> UrlParts<'a> {
    /// Takes a URL apart, unless there is any doubt where the password ends.
    fn of(url: &'a str) -> std::result::Result<Self, &'static str> {
        let (scheme, rest) = url.split_once("://").ok_or("it must begin with http:// or https://")?;
        let mut schemes = ["http", "https"].into_iter();
        let scheme = schemes
            .find(|known| scheme.eq_ignore_ascii_case(known))
            .ok_or("it must begin with http:// or https://")?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if path.contains('@') {
            return Err("in a name, a password and a path, write / as %2F, ? as %3F, # as %23 and @ as %40");
        }
        if path.contains(['?', '#']) {
            return Err("it must have nothing after the path");
        }
        let at = authority.rfind('@');
        let (credentials, host) =
            at.map_or((None, authority), |at| (Some(&authority[..at]), &authority[at + 1..]));
        let place = &rest[at.map_or(0, |at| at + 1)..];
        let (name, port) = match host.strip_prefix('[') {
            Some(address) => address.split_once(']').ok_or("its address has no end")?,
            None => host.split_at(host.find(':').unwrap_or(host.len())),
        };
        let is_host = |c: char| {
            c.is_alphanumeric() || matches!(c, '.' | '-' | '_') || (host.starts_with('[') && c == ':')
        };
        let is_port =
            port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
        if name.is_empty() || !name.chars().all(is_host) || !is_port {
            return Err("it must have a host, and a port of digits");
        }
        Ok(Self { scheme, credentials, place })
    }
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
pub(crate) struct HttpClient {
    client: reqwest::Client,
    free: Arc<Semaphore>,
}

impl HttpClient {
    /// A client that waits this long for a connection. The machine's certificates are only read if one of the nodes needs
    /// TLS. It neither follows redirects nor asks a proxy of the environment: text goes to the node that the user named.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` if the machine has no certificates that can be read.
    pub(crate) fn new(connect_timeout: Duration, is_secure: bool) -> Result<Self> {
        let failed = |e: &dyn Error| StoreError::Unavailable(format!("the HTTP client can't be built: {e}"));
        let tls = tls(is_secure).map_err(|e| failed(&*e))?;
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .connect_timeout(connect_timeout)
            .pool_idle_timeout(IDLE)
            .redirect(redirect::Policy::none())
            .no_proxy()
            .http1_only()
            .build()
            .map_err(|e| failed(&e))?;
        Ok(Self { client, free: Arc::new(Semaphore::new(MOST_CONNECTIONS)) })
    }

    /// Sends a request once there is a connection for it, and returns when the answer begins.
    pub(crate) async fn send(
        &self,
        base: &NodeAddress,
        head: &RequestHead<'_>,
    ) -> std::result::Result<Response, Failure> {
        let taken = Arc::clone(&self.free).acquire_owned().await;
        let taken = taken.map_err(|closed| Failure::Broken(closed.to_string()))?;
        let url = format!("{}{}", base.shown, head.path);
        let mut request = match head.body {
            Some((mime, text)) => self.client.post(url).header(CONTENT_TYPE, mime).body(text.to_owned()),
            None => self.client.get(url),
        };
        // No proxy may answer from its memory.
        request = request.header(ACCEPT, head.accept).header(CACHE_CONTROL, "no-cache");
        if let Some(authorization) = &base.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let response = request.send().await.map_err(|e| Failure::of(&e))?;
        Ok(Response { response, _taken: taken })
    }
}

fn tls(is_secure: bool) -> std::result::Result<ClientConfig, Box<dyn Error>> {
    let provider = rustls::crypto::ring::default_provider();
    let config =
        ClientConfig::builder_with_provider(provider.into()).with_safe_default_protocol_versions()?;
    let mut roots = RootCertStore::empty();
    if is_secure {
        let found = rustls_native_certs::load_native_certs();
        if let (true, Some(error)) = (found.certs.is_empty(), found.errors.into_iter().next()) {
            return Err(error.into());
        }
        roots.add_parsable_certificates(found.certs);
    }
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// The beginning of an answer.
pub(crate) struct Response {
    response: reqwest::Response,
    /// The connection is another request's once the answer has been read.
    _taken: OwnedSemaphorePermit,
}

impl Response {
    pub(crate) fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// The next piece of the body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> std::result::Result<Option<impl Deref<Target = [u8]>>, Failure> {
        self.response.chunk().await.map_err(|e| Failure::of(&e))
    }

    /// The whole body, unless it is longer than that of any database.
    pub(crate) async fn text(mut self) -> std::result::Result<String, Failure> {
        if self.response.content_length().is_some_and(|told| told > MOST_BYTES as u64) {
            return Err(Failure::Long);
        }
        let mut bytes = Vec::new();
        while let Some(piece) = self.chunk().await? {
            if bytes.len() + piece.len() > MOST_BYTES {
                return Err(Failure::Long);
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
    }
}

/// Reasons for a missing answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("no answer in time")]
    Late,
    #[error("an answer without an end")]
    Long,
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
    #[case::sign_in_the_path("https://host/a%40b", "https://host/a%40b", None)]
    #[case::name_only("http://me@host:3000", "http://host:3000", Some("me"))]
    #[case::capitals("HTTP://me:pw@host", "http://host", Some("me:pw"))]
    #[case::colons("http://me:a:b@[::1]:1", "http://[::1]:1", Some("me:a:b"))]
    #[case::address("http://[::1]:3000/", "http://[::1]:3000", None)]
    #[case::letters("http://me:pw@b\u{fc}cher:3000", "http://b\u{fc}cher:3000", Some("me:pw"))]
    fn password_is_sent_and_not_shown(#[case] url: &str, #[case] shown: &str, #[case] sent: Option<&str>) {
        let base = NodeAddress::new(url).unwrap();
        let header = sent.map(|sent| format!("Basic {}", BASE64.encode(sent)));
        assert_eq!(base.shown(), shown);
        assert_eq!(base.authorization.as_ref().map(|value| value.to_str().unwrap()), header.as_deref());
    }

    /// However a password is written, no message has a part of it.
    #[rstest]
    #[case::slash("http://me:hush/hush@host:3000")]
    #[case::question("http://me:hush?hush@host")]
    #[case::fragment("http://me:hush#hush@host")]
    #[case::port_of_digits("http://hush:12/34@host")]
    #[case::several("http://me:hush@hush/hush@host")]
    #[case::escaped_sign("http://me:hush%40host:3000")]
    #[case::no_host("http://me:hush@")]
    #[case::no_sign("http://me:hush")]
    #[case::no_scheme("me:hush@host:3000")]
    #[case::one_slash("http:/me:hush@host")]
    #[case::no_slash("http:me:hush@host")]
    #[case::escaped_scheme("http%3A//me:hush@host")]
    #[case::another_scheme("postgres://me:hush@host")]
    #[case::parameter("http://host:3000?password=hush")]
    #[case::parameter_of_a_path("http://host/?token=hush")]
    #[case::after_the_path("http://host/#hush")]
    #[case::blanks("http://me:hu sh@ho st")]
    #[case::twice("http://http://me:hush@host")]
    #[case::backslash("http://host\\@me:hush")]
    fn a_url_in_doubt_is_refused_and_nothing_of_it_is_shown(#[case] url: &str) {
        let error = NodeAddress::new(url).err().unwrap().to_string();
        for text in [error, shown_url(url), format!("{:?}", crate::XtdbOptions::new([url]))] {
            assert!(!text.contains("hush") && !text.contains("34"), "{text}");
        }
    }

    #[test]
    fn debug_output_has_no_password() {
        let options = crate::XtdbOptions::new(["http://me:hush@host:3000"]);
        let text = format!("{options:?} {:?}", NodeAddress::new(&options.urls[0]).unwrap());
        assert!(
            text.contains("http://host:3000") && !text.contains("hush") && !text.contains("bWU6"),
            "{text}"
        );
    }
}
