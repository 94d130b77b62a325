//! Requests to a node beside the store: a GET, or with a text a POST. Gives status and body of the answer.

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
