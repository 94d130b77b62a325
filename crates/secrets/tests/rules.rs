//! Secrets of known shapes are found wherever they stand, and ordinary lines are left alone.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "the test reports its figures")]

use std::collections::{BTreeMap, HashSet};
use std::io::Cursor;
use std::path::{Path, PathBuf};

use context_model::hash::Digest;
use context_model::object::Document;
use context_model::source::FilesystemSource;
use context_secrets as secrets;
use context_store::memory::MemoryStore;
use context_store::{AsOf, Store, Transaction, Write, transfer};

const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &str = "0123456789abcdef";
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// So many characters that look as chosen by chance.
fn random(seed: &str, alphabet: &str, length: usize) -> String {
    let alphabet: Vec<char> = alphabet.chars().collect();
    let digits = (0..).flat_map(|n: usize| Digest::of(format!("{seed} {n}").as_bytes()).as_bytes().to_vec());
    digits.map(|byte| alphabet[usize::from(byte) % alphabet.len()]).take(length).collect()
}

/// A secret of each of twenty kinds. They are put together here, so that no scanner takes this file for a leak.
fn kinds(n: usize) -> Vec<(&'static str, String)> {
    let of = |alphabet: &str, length| random(&format!("secret {n}"), alphabet, length);
    vec![
        ("aws-access-token", format!("AK{}{}", "IA", of("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16))),
        ("github-pat", format!("gh{}{}", "p_", of(LETTERS, 36))),
        ("github-fine-grained-pat", format!("github{}{}", "_pat_", of(LETTERS, 82))),
        ("gitlab-pat", format!("glp{}{}", "at-", of(LETTERS, 20))),
        (
            "slack-bot-token",
            format!("xo{}{}-{}-{}", "xb-", of("0123456789", 12), of("0123456789", 12), of(LETTERS, 24)),
        ),
        ("stripe-access-token", format!("sk{}{}", "_live_", of(LETTERS, 24))),
        ("gcp-api-key", format!("AI{}{}", "za", of(LETTERS, 35))),
        ("npm-access-token", format!("np{}{}", "m_", of(LOWER, 36))),
        ("pypi-upload-token", format!("pypi{}{}", "-AgEIcHlwaS5vcmc", of(LETTERS, 80))),
        ("openai-api-key", format!("sk-{}{}{}", of(LETTERS, 20), "T3BlbkFJ", of(LETTERS, 20))),
        ("anthropic-api-key", format!("sk-{}{}AA", "ant-api03-", of(LETTERS, 93))),
        ("sendgrid-api-token", format!("S{}{}", "G.", of(LOWER, 66))),
        ("twilio-api-key", format!("S{}{}", "K", of(HEX, 32))),
        ("shopify-access-token", format!("shp{}{}", "at_", of(HEX, 32))),
        ("digitalocean-pat", format!("dop{}{}", "_v1_", of(HEX, 64))),
        ("huggingface-access-token", format!("h{}{}", "f_", of("abcdefghijklmnopqrstuvwxyz", 34))),
        ("databricks-api-token", format!("da{}{}", "pi", of(HEX, 32))),
        ("linear-api-key", format!("lin{}{}", "_api_", of(LOWER, 40))),
        ("pulumi-api-token", format!("pu{}{}", "l-", of(HEX, 40))),
        (
            "private-key",
            format!(
                "-----BEGIN RSA PRIVATE {}\n{}\n-----END RSA PRIVATE KEY-----",
                "KEY-----",
                of(LETTERS, 256)
            ),
        ),
    ]
}

#[test]
fn a_thousand_secrets_of_twenty_kinds_are_found() {
    let mut missed: BTreeMap<&str, usize> = BTreeMap::new();
    let mut planted = 0;
    for n in 0..50 {
        for (kind, secret) in kinds(n) {
            planted += 1;
            let text = match n % 4 {
                0 => format!("KEY={secret}\n"),
                1 => format!("{{\"value\": \"{secret}\"}}"),
                2 => format!("curl -H 'Authorization: Bearer {secret}' https://example.com"),
                _ => format!("first line\n  const key = `{secret}`;\nlast line\n"),
            };
            let found = secrets::in_text(&text, None);
            // Without the found text, no part of the secret may be left.
            let end = &secret[secret.len() / 2..];
            let mut rest = text.clone();
            for secret in found.iter().rev() {
                rest.replace_range(secret.range.clone(), "");
            }
            if rest.contains(end) {
                *missed.entry(kind).or_default() += 1;
            }
        }
    }
    assert_eq!((planted, missed), (1_000, BTreeMap::new()));
}

/// The repository's own sources, documents and lock files, and its recorded sessions.
fn ordinary() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files: Vec<PathBuf> =
        ["Cargo.lock", "package-lock.json", "CHANGELOG.md", "README.md"].map(|name| root.join(name)).into();
    let mut folders: Vec<PathBuf> =
        ["crates", "lib", "src", "docs", "extensions", "__test__", "fixtures", "scripts"]
            .map(|name| root.join(name))
            .into();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            // The rules themselves contain the words that they look for.
            if path.is_dir() && name != "node_modules" && name != "target" {
                folders.push(path);
            } else if path.is_file() && name != "gitleaks.toml" {
                files.push(path);
            }
        }
    }
    files
}

#[test]
fn fewer_than_ten_of_ten_thousand_ordinary_lines_count_as_secrets() {
    let (mut lines, mut touched) = (0, 0);
    let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
    let mut shown = Vec::new();
    for path in ordinary() {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        lines += text.lines().count();
        let found = secrets::in_text(&text, None);
        let mut places = HashSet::new();
        for secret in found {
            let line = text[..secret.range.start].matches('\n').count() + 1;
            if places.insert(line) {
                *rules.entry(secret.rule).or_default() += 1;
                shown.push(format!("{}:{line} {}", path.display(), secret.rule));
            }
        }
        touched += places.len();
    }
    let made = (0..3_000).flat_map(|n| {
        let hash = Digest::of(format!("{n}").as_bytes()).to_string();
        let uuid = format!(
            "{}-{}-4{}-a{}-{}",
            &hash[..8],
            &hash[8..12],
            &hash[12..15],
            &hash[15..18],
            &hash[18..30]
        );
        [format!("commit {}", &hash[..40]), format!("\"id\": \"{uuid}\","), format!("checksum = \"{hash}\"")]
    });
    for line in made {
        lines += 1;
        touched += usize::from(!secrets::in_text(&line, None).is_empty());
    }
    eprintln!("{touched} of {lines} ordinary lines are taken for secrets: {rules:?}");
    assert!(lines > 10_000 && touched * 10_000 < 10 * lines, "{touched} of {lines}: {shown:#?}");
}

/// A document recorded without its secrets can be exported and imported; a text that only claims to be redacted can't.
#[tokio::test]
async fn a_redacted_file_goes_through_an_export() {
    let (from, to) = (MemoryStore::new(), MemoryStore::new());
    let text = format!("first\nkey = {}\n", kinds(0)[0].1);
    let source = FilesystemSource { filesystem_id: "f".into(), path: "/a/.env".into() };
    let document = Document::file(source, Some(text.clone()), Some(Digest::of(text.as_bytes())));
    let mut transaction = Transaction { writes: vec![Write::put(document.clone())], expected: Vec::new() };
    let redaction = secrets::Redaction::default();
    redaction.take_out(&mut transaction);
    from.transact(transaction).await.unwrap();
    let stored = from.get(document.id(), AsOf::default()).await.unwrap().unwrap();
    assert_eq!(stored.document.content(), Some("first\nkey = [redacted: aws-access-token]\n"));
    // The process that took it out can put it back; another one can't.
    assert_eq!(redaction.put_back(stored.clone()).document, document);
    assert_eq!(secrets::Redaction::default().put_back(stored.clone()), stored);

    let mut export = Vec::new();
    transfer::export(&*from, &[document.id().clone()], &mut export).await.unwrap();
    assert_eq!(transfer::import(&mut Cursor::new(export), &*to).await.unwrap().written, 1);
    let imported = to.get(document.id(), AsOf::default()).await.unwrap().unwrap();
    assert_eq!(imported.document, stored.document);

    // A text with another hash that only says so.
    let (id, object_type, source, mut payload) = stored.document.into_parts();
    payload.insert("content".into(), "first\n".into());
    let claimed = Document::new(id.clone(), object_type, source, payload).unwrap();
    from.transact(Transaction { writes: vec![Write::put(claimed)], expected: Vec::new() }).await.unwrap();
    let mut export = Vec::new();
    transfer::export(&*from, &[id], &mut export).await.unwrap();
    let error = transfer::import(&mut Cursor::new(export), &*MemoryStore::new()).await.unwrap_err();
    assert!(error.to_string().contains("does not have the fields of its type"), "{error}");
}
