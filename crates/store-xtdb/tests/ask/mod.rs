//! Requests to a node beside the store: a GET, or with a text a POST. Gives status and body of the answer.

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

pub async fn ask(url: &str, headers: &[(&str, &str)], body: Option<String>) -> (u16, String) {
    let mut request = hyper::Request::builder().uri(url).method(if body.is_some() { "POST" } else { "GET" });
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::from(body.unwrap_or_default()))).unwrap();
    let answer = Client::builder(TokioExecutor::new()).build_http().request(request).await.unwrap();
    let (status, body) = (answer.status().as_u16(), answer.into_body().collect().await.unwrap().to_bytes());
    (status, String::from_utf8(body.to_vec()).unwrap())
}
