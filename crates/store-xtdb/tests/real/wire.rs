//! The client's reading of servers' answers: recorded ones of XTDB 1.24.3, and ones of everything else. Needs no XTDB.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use context_model::error::ErrorCode;
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::source::FilesystemSource;
use context_model::time::TxId;
use context_store::{AsOf, Store, Transaction, Write};
use context_store_xtdb::{QueueOptions, QueuedStore, XtdbOptions, XtdbStore};
use rstest::rstest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A server that gives each request the first answer whose text occurs in the request line; it ends when
/// dropped. `{status} {content type}|{body}`.
struct Server {
    url: String,
    seen: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

const STATUS: (&str, &str) = (
    "/_xtdb/status",
    r#"200 application/json;charset=utf-8|{"version":"1.24.3","revision":"8d2ae275b897ba1287b33be9b716d504eb50cbf1","kvStore":"xtdb.rocksdb.RocksKv","estimateNumKeys":1,"size":78886,"indexVersion":22,"consumerState":null,"ingesterFailed?":false}"#,
);
const EMPTY: (&str, &str) = (
    "/_xtdb/latest-completed-tx",
    r#"404 application/edn; charset=utf-8|{:error "No latest-completed-tx found."}"#,
);
const LATEST: (&str, &str) = (
    "/_xtdb/latest-completed-tx",
    r#"200 application/edn; charset=utf-8|{:xtdb.api/tx-time #inst "2026-11-21T09:06:09.940-00:00", :xtdb.api/tx-id 502}"#,
);
/// XTDB's answer about a document that it does not have.
const MISSING: &str = r#"404 application/json;charset=utf-8|{"error":"ASKED not found"}"#;
const TIMEOUT: &str = r#"500 application/json;charset=utf-8|{"type":"exception","class":"java.util.concurrent.TimeoutException"}"#;
const OUT_OF_SYNC: &str = r#"400 application/json;charset=utf-8|{"xtdb.error/error-type":"node-out-of-sync","xtdb.error/message":"Node out of sync - requested '{:xtdb.api/tx-time nil, :xtdb.api/tx-id 99999}', available '{:xtdb.api/tx-time #inst \"2026-11-21T08:52:18.283-00:00\", :xtdb.api/tx-id 3}'","requested":{"xtdb.api/tx-time":null,"xtdb.api/tx-id":99999},"available":{"xtdb.api/tx-time":"2026-11-21T08:52:18Z","xtdb.api/tx-id":3}}"#;

impl Server {
    async fn start(answers: &[(&'static str, &str)]) -> Self {
        let answers: Vec<(&str, String)> =
            answers.iter().map(|(when, what)| (*when, (*what).to_owned())).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                let mut piece = [0; 4096];
                while !is_whole(&request) {
                    match stream.read(&mut piece).await {
                        Ok(read @ 1..) => request.extend_from_slice(&piece[..read]),
                        _ => break,
                    }
                }
                let request = String::from_utf8_lossy(&request).into_owned();
                let line = request.lines().next().unwrap_or_default();
                let answer =
                    answers.iter().find(|(when, _)| line.contains(when)).map(|(_, what)| what.as_str());
                let (head, body) = answer.unwrap_or("404 text/plain|").split_once('|').unwrap();
                let (status, kind) = head.split_once(' ').unwrap();
                noted.lock().unwrap().push(request.clone());
                let asked = line.split("eid=").nth(1).and_then(|rest| rest.split(['&', ' ']).next());
                let endpoint = if line.contains("entity-tx") { "entity-tx" } else { "entity" };
                let asked = asked.unwrap_or_default().replace("%3A", ":");
                let body = body.replace("ASKED", &format!("{asked} {endpoint}"));
                let name = request.split("question:").nth(1).and_then(|rest| rest.split('"').next());
                let body = body.replace("NAMED", &format!("question:{}", name.unwrap_or_default()));
                let answer = format!(
                    "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Self { url, seen, task }
    }

    async fn connect(&self) -> context_store::Result<Arc<XtdbStore>> {
        let mut options = XtdbOptions::new([self.url.clone()]);
        options.timeout_ms = 1_000;
        options.attempts = 2;
        XtdbStore::connect(options).await
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length =
        head.lines().find_map(|l| l.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    length.and_then(|l| l.parse::<usize>().ok()).is_none_or(|length| body.len() >= length)
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[rstest]
#[case::xtdb_2(&[("/status", "404 text/plain|")], "XTDB 2")]
#[case::another_version(&[("/status", r#"200 application/json|{"version":"2.0.0"}"#)], "XTDB 2.0.0")]
#[case::a_web_page(&[("/status", "200 text/html|<html><body>Welcome</body></html>")], "not XTDB 1.x")]
#[case::another_api(&[("/status", r#"200 application/json|{"status":"ok"}"#)], "does not report an XTDB version")]
#[case::a_gateway(&[("/status", "502 text/html|<h1>Bad gateway</h1>")], "502")]
#[case::wrong_password(&[("/status", "401 text/plain|no")], "refuses the name and password (401); check those in the URL")]
#[case::redirect(&[("/status", "302 text/plain|elsewhere")], "leads elsewhere (302); redirects are not followed")]
#[case::broken_json(&[("/status", "200 application/json|{\"version\":")], "not XTDB 1.x")]
#[case::a_page_later(&[STATUS, ("latest", "200 text/html|<html>")], "XTDB 1.x would not answer")]
#[tokio::test]
async fn refuses_a_server_other_than_xtdb_1_with_advice(
    #[case] answers: &[(&'static str, &str)],
    #[case] says: &str,
) {
    let server = Server::start(answers).await;
    let error = server.connect().await.err().unwrap();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    let text = error.to_string();
    assert!(text.contains(says) && text.contains(&server.url), "{text}");
    assert!(["start such a node", "check"].iter().any(|advice| text.contains(advice)), "{text}");
    let place = tempfile::tempdir().unwrap();
    let options = QueueOptions::new(place.path().join("journal.db"), XtdbOptions::new([server.url.clone()]));
    let error = QueuedStore::open(options).await.err().unwrap();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_said_with_its_url() {
    let url = format!("http://127.0.0.1:{}", crate::rig::free_port());
    let error = XtdbStore::connect(XtdbOptions::new([url.clone()])).await.err().unwrap();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    assert!(error.to_string().contains(&url) && error.to_string().contains("check that it runs"), "{error}");
}

#[tokio::test]
async fn gives_up_a_silent_server_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut options = XtdbOptions::new([url]);
    options.timeout_ms = 300;
    let start = Instant::now();
    let error = XtdbStore::connect(options).await.err().unwrap();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn the_recorded_answers_of_an_empty_node() {
    let missing =
        ("/_xtdb/entity-tx", r#"404 application/edn; charset=utf-8|{:error "a entity-tx not found"}"#);
    let none = ("/_xtdb/query", r#"200 application/edn|([nil "NAMED"])"#);
    let server = Server::start(&[STATUS, EMPTY, missing, none]).await;
    let store = server.connect().await.unwrap();
    assert_eq!(store.latest_tx().await.unwrap(), TxId(0));
    assert_eq!(store.get(&ObjectId::new("a"), AsOf::default()).await.unwrap(), None);
    assert_eq!(store.history(&ObjectId::new("a")).await.unwrap(), []);
    assert_eq!(store.get_many(&[ObjectId::new("a")], AsOf::default()).await.unwrap(), [None]);
}

fn file() -> Document {
    let source = FilesystemSource { filesystem_id: "fs".into(), path: "/a".into() };
    Document::file(source, Some("text".into()), Some(Digest::of(b"text")))
}

/// The answer to a query for this document.
fn found(document: &str) -> String {
    format!("200 application/json;charset=utf-8|[[{:?},{document},\"NAMED\"]]", file().id().as_str())
}

#[tokio::test]
async fn times_keep_their_milliseconds() {
    let place = r#"200 application/edn; charset=utf-8|{:xt/id #xtdb/id "5c958782a6e286cb6fa156a797fd4e19f043f88d", :xtdb.api/content-hash #xtdb/id "a237eb97f025a74b06ae11a1c4a242950ed2e49a", :xtdb.api/valid-time #inst "2020-01-01T00:00:00.789-00:00", :xtdb.api/tx-time #inst "2026-11-21T09:06:09.940-00:00", :xtdb.api/tx-id 502}"#;
    let document = found(&serde_json::to_string(&file()).unwrap());
    let server =
        Server::start(&[STATUS, LATEST, ("/_xtdb/entity-tx", place), ("/_xtdb/query", document.as_str())])
            .await;
    let store = server.connect().await.unwrap();
    assert_eq!(store.latest_tx().await.unwrap(), TxId(503));
    let version = store.get(file().id(), AsOf::default()).await.unwrap().unwrap();
    assert_eq!(version.document, file());
    assert_eq!(version.tx_time.to_string(), "2026-11-21T09:06:09.940Z");
    assert_eq!(version.valid_time.to_string(), "2020-01-01T00:00:00.789Z");
    assert_eq!(version.tx_id, TxId(503));
    // The document is asked for by the whole time.
    let asked = server.seen.lock().unwrap().last().unwrap().clone();
    assert!(asked.contains("#inst \"2020-01-01T00:00:00.789Z\"") && !asked.contains("tx-time="), "{asked}");
}

#[tokio::test]
async fn does_not_return_a_document_changed_behind_its_hash() {
    let place = r#"200 application/edn|{:xtdb.api/valid-time #inst "2020-01-01T00:00:00.789-00:00", :xtdb.api/tx-time #inst "2026-11-21T09:06:09.940-00:00", :xtdb.api/tx-id 502}"#;
    let text = serde_json::to_string(&file()).unwrap().replace("\"text\",\"", "\"TEXT\",\"");
    let changed = text.replacen("\"content\":\"text\"", "\"content\":\"TEXT\"", 1);
    let document = found(&changed);
    let server =
        Server::start(&[STATUS, LATEST, ("/_xtdb/entity-tx", place), ("/_xtdb/query", document.as_str())])
            .await;
    let error = server.connect().await.unwrap().get(file().id(), AsOf::default()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreCorrupt, "{error}");
}

/// A refused match is a 202 too; only the question after it tells.
#[tokio::test]
async fn a_transaction_refused_for_ever_is_a_conflict_and_not_a_success() {
    let missing = ("/_xtdb/entity", MISSING);
    let submitted = (
        "/_xtdb/submit-tx",
        r#"202 application/edn|{:xtdb.api/tx-id 8, :xtdb.api/tx-time #inst "2026-11-21T08:52:18.283-00:00"}"#,
    );
    let refused = ("/_xtdb/tx-committed", r#"200 application/json;charset=utf-8|{"txCommitted?":false}"#);
    let log = ("/_xtdb/tx-log", "200 application/json|[]");
    let server = Server::start(&[STATUS, LATEST, missing, submitted, refused, log]).await;
    let store = server.connect().await.unwrap();
    let writes = vec![Write::put(file())];
    let error = store.transact(Transaction { writes, expected: vec![] }).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Conflict, "{error}");
}

#[rstest]
#[case::late(TIMEOUT)]
#[case::unsynced(OUT_OF_SYNC)]
#[case::malformed(
    r#"400 application/json;charset=utf-8|{"error":"Malformed \"application/json\" request."}"#
)]
#[case::disk(r#"500 application/json|{"type":"exception","class":"org.rocksdb.RocksDBException"}"#)]
#[case::page("200 text/html|<html>")]
#[case::nothing("200 application/edn|")]
#[tokio::test]
async fn an_unacknowledged_submission_is_unavailable(#[case] answer: &str) {
    let missing = ("/_xtdb/entity", MISSING);
    let server = Server::start(&[STATUS, EMPTY, missing, ("/_xtdb/submit-tx", answer)]).await;
    let store = server.connect().await.unwrap();
    let writes = vec![Write::put(file())];
    let error = store.transact(Transaction { writes, expected: vec![] }).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{error}");
    // The sent request: JSON, the matches first, under the key that the server knows.
    let seen = server.seen.lock().unwrap();
    let sent = seen.iter().find(|request| request.contains("submit-tx")).unwrap();
    let body: serde_json::Value = serde_json::from_str(sent.split_once("\r\n\r\n").unwrap().1).unwrap();
    let ops: Vec<&str> =
        body["tx-ops"].as_array().unwrap().iter().map(|op| op[0].as_str().unwrap()).collect();
    // The file, the writer's mark, and the list of changes in the file's area.
    assert_eq!(ops, ["match", "match", "match", "put", "put", "put"]);
    assert_eq!(body["tx-ops"][3][1], serde_json::to_value(file()).unwrap());
    assert_eq!(body["tx-ops"][5][1]["xt/id"], "changes:files:fs");
}

#[tokio::test]
async fn a_password_goes_to_the_node_and_into_no_message() {
    let server = Server::start(&[STATUS, EMPTY, ("/_xtdb/tx-log", "500 text/plain|broken")]).await;
    let url = server.url.replace("http://", "http://me:secret@");
    let store = XtdbStore::connect(XtdbOptions { attempts: 1, ..XtdbOptions::new([url]) }).await.unwrap();
    assert!(server.seen.lock().unwrap()[0].to_lowercase().contains("authorization: basic bwu6c2vjcmv0"));
    let error = store.changes_since(TxId(1)).await.unwrap_err();
    assert!(!format!("{error} {}", store.current_url()).contains("secret"), "{error}");
    assert_eq!(store.current_url(), server.url);
}
