//! A harness on an engine: its messages, each handed over once, and the request that the model gets.

use context_engine::{Call, CollapsedCall, Edit, Engine, IncomingMessage, Plan};
use context_model::id::ObjectId;
use context_model::object::{Status, Toolcall};
use context_projection::Prices;
use serde_json::{Value, json};

use crate::bench::{Backend, Bench, tool};

/// A harness with its messages, each handed over once.
pub struct Chat {
    pub engine: Engine,
    pub messages: Vec<IncomingMessage>,
    pub told: usize,
    pub now_ms: i64,
    /// The notices of all plans so far.
    pub notices: Vec<String>,
    /// True if it can shorten texts and leave out messages.
    pub shortens: bool,
    /// True if anything may collapse: the person's switch.
    pub rolls: bool,
}

const TTL_MS: i64 = 300_000;

impl Chat {
    pub fn new(engine: Engine) -> Self {
        Self {
            engine,
            messages: Vec::new(),
            told: 0,
            now_ms: 1_000,
            notices: Vec::new(),
            shortens: false,
            rolls: true,
        }
    }

    /// A bench, and a harness on a session of it.
    pub async fn on(backend: Backend) -> (Bench, Self) {
        let bench = Bench::new(backend);
        let engine = bench.open("s").await;
        (bench, Self::new(engine))
    }

    pub fn say(&mut self, message: Value) {
        let key = format!("m{}", self.messages.len());
        self.messages.push(IncomingMessage { key, message });
    }

    pub fn user(&mut self, text: &str) {
        self.say(json!({ "role": "user", "content": text }));
    }

    /// An answer of one call.
    pub fn calls(&mut self, id: &str, name: &str, args: Value) {
        let call = json!({ "type": "toolCall", "id": id, "name": name, "arguments": args });
        self.say(json!({ "role": "assistant", "content": [call], "timestamp": self.now_ms }));
    }

    /// The result of a call, as a harness keeps it that reports none.
    pub fn results(&mut self, id: &str, name: &str, text: &str, status: Status) {
        let content = json!([{ "type": "text", "text": text }]);
        self.say(json!({
            "role": "toolResult", "toolCallId": id, "toolName": name, "content": content,
            "isError": status == Status::Fail,
        }));
    }

    /// The result of a call, reported and then kept with its header.
    pub async fn reports(&mut self, id: &str, name: &str, args: Value, output: &str, status: Status) {
        let birth = self.engine.receive(Toolcall { status, ..tool(id, name, args, output) }).await.unwrap();
        let text = birth.header.map_or(output.to_owned(), |header| format!("{header}\n{output}"));
        self.results(id, name, &text, status);
    }

    /// A call whose tool has passed in what it did, and its result.
    pub async fn answered(&mut self, id: &str, name: &str, args: Value, output: &str, status: Status) {
        self.calls(id, name, args.clone());
        self.reports(id, name, args, output, status).await;
    }

    /// A request, the call that answers it, and its result.
    pub async fn run(&mut self, id: &str, name: &str, args: Value, output: &str) {
        assert_eq!(self.advance().await.edits, [], "a continued turn changes nothing");
        self.answered(id, name, args, output, Status::Ok).await;
    }

    pub fn done(&mut self) {
        let content = json!([{ "type": "text", "text": "done" }]);
        self.say(json!({ "role": "assistant", "content": content, "timestamp": self.now_ms }));
    }

    pub fn call(&self) -> Call {
        Call {
            model: "m".into(),
            prices: Prices::new(0.1, 1.25),
            context_window: 200_000,
            cache_ttl_ms: TTL_MS,
            now_ms: self.now_ms,
            system_tokens: 3_000,
            rolls: self.rolls,
            shortens: self.shortens,
            ..Call::default()
        }
    }

    pub async fn advance(&mut self) -> Plan {
        let new = self.messages[self.told..].to_vec();
        self.told = self.messages.len();
        let plan = self.engine.advance(new, &self.call()).await.unwrap();
        self.notices.extend(plan.notices.iter().cloned());
        plan
    }

    /// The next request finds nothing in the provider's cache, so that all text that may leave does.
    pub async fn advance_after_a_pause(&mut self) -> Plan {
        self.now_ms += TTL_MS + 1;
        self.advance().await
    }

    pub async fn is_active(&self, id: &str) -> bool {
        self.engine.session_sets().await.unwrap().active_set.contains(&ObjectId::new(id))
    }
}

impl Chat {
    /// A user's message, and the request that it makes.
    pub async fn asks(&mut self, text: &str) -> Plan {
        self.user(text);
        self.advance().await
    }

    /// An answer that ends the turn, and the request after it.
    pub async fn ends(&mut self) -> Plan {
        self.done();
        self.advance().await
    }

    /// Expects one notice that ends with this text. Returns it.
    pub async fn is_told(&mut self, end: &str) -> String {
        let notices = self.turn("next.").await.notices;
        assert!(notices.len() == 1 && notices[0].ends_with(end), "{notices:?}");
        notices.into_iter().next().unwrap()
    }

    /// The same after a look at the disk.
    pub async fn hears(&mut self, end: &str) -> String {
        self.engine.reconcile().await.unwrap();
        self.is_told(end).await
    }

    /// The same of a file that gets this text.
    pub async fn hears_of(&mut self, path: &str, text: impl AsRef<[u8]>, end: &str) -> String {
        std::fs::write(path, text).unwrap();
        self.hears(end).await
    }

    /// The disk is as the model knows it.
    pub async fn hears_nothing(&mut self) {
        self.engine.reconcile().await.unwrap();
        assert_eq!(self.turn("next.").await.notices, [""; 0]);
    }

    /// Another process takes the messages over.
    pub async fn restart(&mut self, bench: &Bench) {
        self.engine.close().await.unwrap();
        self.resync(bench.open("s").await, self.messages.len()).await;
    }

    /// A user's message, an answer, and nothing else.
    pub async fn turn(&mut self, text: &str) -> Plan {
        self.user(text);
        let plan = self.advance().await;
        self.done();
        plan
    }

    /// The model reads a file as Pi lets it: the file is indexed, and the answer may be the place of its lines. Returns the
    /// text that the model gets.
    pub async fn read(&mut self, id: &str, path: &str, lines: Option<(usize, usize)>) -> String {
        let args = match lines {
            Some((offset, limit)) => json!({ "path": path, "offset": offset, "limit": limit }),
            None => json!({ "path": path }),
        };
        self.advance().await;
        let bytes = std::fs::read(path).unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        self.engine.index_file(path, Some(bytes), None).await.unwrap();
        let (offset, limit) = lines.unzip();
        let answer = self.engine.answer_read(path, offset, limit, None).await.unwrap();
        let shown = text.split('\n').skip(offset.unwrap_or(1) - 1).take(limit.unwrap_or(usize::MAX));
        let output = answer.map_or_else(|| shown.collect::<Vec<_>>().join("\n"), |answer| answer.text);
        self.run(id, "read", args, &output).await;
        output
    }

    /// The engine reads all messages again.
    pub async fn reads_again(&mut self) -> Plan {
        self.resync(self.engine.clone(), self.messages.len()).await
    }

    /// The same harness in a new process, or on a branch with fewer messages.
    pub async fn resync(&mut self, engine: Engine, messages: usize) -> Plan {
        self.engine = engine;
        self.messages.truncate(messages);
        self.told = messages;
        self.engine.resync(self.messages.clone(), messages, &self.call()).await.unwrap()
    }
}

/// A session that has read a file with this text.
pub async fn has_read(text: impl AsRef<[u8]>) -> (Bench, Chat, String) {
    let (bench, mut chat) = Chat::on(Backend::Memory).await;
    let path = bench.write("a.txt", text);
    chat.user("read");
    chat.read("one", &path, None).await;
    (bench, chat, path)
}

/// The collapsed arguments of each call that a plan replaces.
pub fn arguments_of(plan: &Plan) -> Vec<CollapsedCall> {
    let calls = plan.edits.iter().filter_map(|edit| match edit {
        Edit::Message { calls, .. } => Some(calls.clone()),
        Edit::Result { .. } | Edit::Gone { .. } => None,
    });
    calls.flatten().collect()
}
