//! Requests to a node beside the store.

use crate::node::{Question, Said};

/// A GET, or with a text a POST. Gives status and body of the answer.
pub async fn ask(url: &str, headers: &[(&str, &str)], body: Option<String>) -> (u16, String) {
    let client = client();
    let mut request = if body.is_some() { client.post(url) } else { client.get(url) };
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.body(body.unwrap_or_default()).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// A client that neither asks a proxy nor needs certificates.
pub fn client() -> reqwest::Client {
    let tls = rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().build().unwrap()
}

/// Asks the node with this URL a machine's question.
pub async fn passed_on(client: reqwest::Client, url: String, question: Question) -> Option<Said> {
    let mut lines = question.head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?, first.next()?);
    let mut request = client.request(method.parse().ok()?, format!("{url}{target}")).body(question.body);
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        if ["accept", "content-type", "cache-control"].contains(&&*name.to_lowercase()) {
            request = request.header(name, value);
        }
    }
    let answer = request.send().await.ok()?;
    let kind = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    Some((answer.status().as_u16(), kind.to_owned(), answer.text().await.ok()?))
}
