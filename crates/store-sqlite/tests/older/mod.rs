//! A store as versions before schema 4 wrote it: every text and every payload as it is.

use std::path::Path;

use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::patch::{self, Patch};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Value, json};

const SCHEMA: [&str; 3] = [
    include_str!("../../src/migrations/0001-history.sql"),
    include_str!("../../src/migrations/0002-search.sql"),
    include_str!("../../src/migrations/0003-text-hash.sql"),
];

/// A store of schema 3 that is being written.
pub struct Older {
    connection: Connection,
    seq: i64,
    tx: i64,
    /// The chats by their ID: the first version's place and the latest document.
    chats: Vec<(ObjectId, i64, i64, Document)>,
}

impl Older {
    /// A new file. All is written in one transaction, which ends with [`Older::finish`].
    pub fn new(path: &Path) -> Self {
        let connection = Connection::open(path).unwrap();
        connection.execute_batch("PRAGMA page_size = 8192; PRAGMA journal_mode = wal").unwrap();
        for migration in SCHEMA {
            connection.execute_batch(migration).unwrap();
        }
        connection
            .execute_batch("PRAGMA application_id = 0x63747873; PRAGMA user_version = 3; BEGIN")
            .unwrap();
        Self { connection, seq: 0, tx: 0, chats: Vec::new() }
    }

    pub fn finish(self) {
        self.connection.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    }

    /// A whole version.
    pub fn put(&mut self, document: &Document) {
        let mut payload = document.payload().clone();
        for name in ["content_hash", "content", "source_hash"] {
            if name == "content" && !payload.get(name).is_some_and(Value::is_string)
                || name == "source_hash" && document.source_hash().is_none()
            {
                continue;
            }
            payload.remove(name);
        }
        let body = Value::Object(payload).to_string();
        let seq = self.row(document, &body, Some(document.content_hash()), None);
        if document.id().as_str().starts_with("chat:") {
            self.chats.push((document.id().clone(), seq, 0, document.clone()));
        }
    }

    /// A turn of a chat, as a patch.
    pub fn turn(&mut self, session: &str, user: &str) {
        let id = ObjectId::chat(&SessionId::new(session).unwrap());
        let place = self.chats.iter().position(|(chat, ..)| *chat == id).unwrap();
        let (_, base, depth, before) = self.chats[place].clone();
        let turns = before.field("turns").unwrap().as_array().unwrap().len() + 1;
        let mut change = Patch::new();
        change.append(&["turns"], json!({ "user": user, "toolcall_ids": [] }));
        change.set(&["turn_count"], json!(turns));
        let after = patch::apply(before, [&change]).unwrap();
        let body = json!({ "session_ref": after.field("session_ref"), "turn_count": turns }).to_string();
        let nested = json!({ "toolcall_refs": 0, "turns": turns }).to_string();
        let chain = (base, depth + 1, serde_json::to_value(&change).unwrap().to_string(), nested);
        self.row(&after, &body, None, Some(&chain));
        (self.chats[place].2, self.chats[place].3) = (depth + 1, after);
    }

    fn row(
        &mut self,
        document: &Document,
        body: &str,
        content_hash: Option<Digest>,
        chain: Option<&(i64, i64, String, String)>,
    ) -> i64 {
        (self.seq, self.tx) = (self.seq + 1, self.tx + 1);
        let time = 1_700_000_000_000 + self.tx;
        let source = document.source().map(|source| serde_json::to_string(source).unwrap());
        let (id, kind) = (document.id().as_str(), document.object_type().as_str());
        let find = "SELECT object FROM objects WHERE object_id = ?";
        let known: Option<i64> = self.connection.query_row(find, [id], |row| row.get(0)).optional().unwrap();
        let object = known.unwrap_or_else(|| {
            let insert = "INSERT INTO objects (object_id, type, source) VALUES (?, ?, ?)";
            self.connection.execute(insert, params![id, kind, source]).unwrap();
            self.connection.last_insert_rowid()
        });
        self.connection.execute("INSERT INTO txs VALUES (?, ?)", [self.tx, time]).unwrap();
        let content = document.content().map(|text| {
            let key = Digest::of(text.as_bytes());
            let insert = "INSERT OR IGNORE INTO contents (sha256, text) VALUES (?, ?)";
            self.connection.execute(insert, params![key.as_bytes(), text]).unwrap();
            let find = "SELECT content FROM contents WHERE sha256 = ?";
            let content: i64 = self.connection.query_row(find, [key.as_bytes()], |row| row.get(0)).unwrap();
            (content, key)
        });
        let source_hash = document.source_hash();
        let mut bytes = Vec::new();
        for number in [Some(self.seq), Some(self.tx), Some(time), Some(time)]
            .into_iter()
            .chain([chain.map(|chain| chain.0), chain.map(|chain| chain.1)])
        {
            bytes.extend(number.map_or([0xff; 8], i64::to_le_bytes));
        }
        let digests = [Some(Digest::of(body.as_bytes())), chain.map(|chain| Digest::of(chain.2.as_bytes()))];
        let bytes_of = |digest: &Option<Digest>| digest.map(|digest| digest.as_bytes().to_vec());
        for field in [
            Some(id.as_bytes().to_vec()),
            Some(kind.as_bytes().to_vec()),
            source.as_deref().map(|source| source.as_bytes().to_vec()),
            bytes_of(&digests[0]),
            content.map(|(_, key)| key.as_bytes().to_vec()),
            bytes_of(&content_hash),
            bytes_of(&source_hash),
            bytes_of(&digests[1]),
            chain.map(|chain| chain.3.as_bytes().to_vec()),
        ] {
            bytes.extend(field.as_ref().map_or(u64::MAX, |field| field.len() as u64).to_le_bytes());
            bytes.extend(field.unwrap_or_default());
        }
        let insert =
            "INSERT INTO versions (seq, tx_id, object, valid_from, ahead, body, content, content_hash,
                      source_hash, base, depth, patch, nested, row_hash, text_hash)
                      VALUES (?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        self.connection
            .execute(
                insert,
                params![
                    self.seq,
                    self.tx,
                    object,
                    time,
                    body,
                    content.map(|(content, _)| content),
                    bytes_of(&content_hash),
                    bytes_of(&source_hash),
                    chain.map(|chain| chain.0),
                    chain.map(|chain| chain.1),
                    chain.map(|chain| chain.2.as_str()),
                    chain.map(|chain| chain.3.as_str()),
                    Digest::of(&bytes).as_bytes(),
                    content.map(|(_, key)| key.as_bytes().to_vec()),
                ],
            )
            .unwrap();
        self.seq
    }
}
