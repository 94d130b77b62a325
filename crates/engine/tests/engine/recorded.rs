//! A long conversation, and the model's whole request at each call. The other tests have the rules; this one shows the result,
//! so that each change of it is seen.

use std::fmt::Write as _;

use context_engine::{Call, Edit, Engine, IncomingMessage, Options, Plan, Stay, Stays};
use context_model::chat::RollReceipt;
use context_projection::Prices;
use rstest::rstest;
use serde_json::{Map, Value, json};

use crate::bench::{Backend, Bench, tool};

/// The time for which the provider keeps a prefix, in milliseconds.
const TTL_MS: i64 = 300_000;

/// The path of a file that does not exist, so that outputs are all there is.
const PATH: &str = "/nowhere/src/main.rs";

/// A harness that writes down what each plan does.
struct Recorder {
    bench: Bench,
    options: Options,
    engine: Engine,
    messages: Vec<IncomingMessage>,
    told: usize,
    call: Call,
    made: usize,
    record: String,
}

impl Recorder {
    async fn new(stays: Stays) -> Self {
        let bench = Bench::new(Backend::Memory);
        let options = Options { stays, cwd: "/nowhere".into(), ..bench.options("s") };
        let engine = Engine::open(options.clone()).await.unwrap();
        let call = Call {
            model: "m".into(),
            prices: Prices::new(0.1, 1.25),
            context_window: 200_000,
            cache_ttl_ms: TTL_MS,
            now_ms: 1_700_000_000_000,
            system_tokens: 3_000,
            rolls: true,
            shortens: true,
            ..Call::default()
        };
        Self { bench, options, engine, messages: Vec::new(), told: 0, call, made: 0, record: String::new() }
    }

    fn note(&mut self, line: &str) {
        writeln!(self.record, "{line}").unwrap();
    }

    fn say(&mut self, message: Value) {
        let key = format!("m{}", self.messages.len());
        self.messages.push(IncomingMessage { key, message });
    }

    fn user(&mut self, lines: usize) {
        self.made += 1;
        let text = format!("Question {}.\n{}", self.made, lines_of("asked", lines));
        self.say(json!({ "role": "user", "content": text, "timestamp": self.call.now_ms }));
        self.call.at_user_turn = true;
    }

    /// An answer without calls.
    async fn done(&mut self, lines: usize) {
        self.advance().await;
        let text = format!("Answer {}.\n{}", self.made, lines_of("told", lines));
        self.answer(vec![json!({ "type": "text", "text": text })]);
    }

    fn answer(&mut self, content: Vec<Value>) {
        self.call.now_ms += 5_000;
        let made = self.made;
        let (api, provider) =
            [("anthropic-messages", "anthropic"), ("openai-completions", "openai"), ("google", "g")]
                [made / 7 % 3];
        self.say(json!({
            "role": "assistant", "content": content, "api": api, "provider": provider, "model": "m",
            "timestamp": self.call.now_ms,
        }));
    }

    /// A request, an answer with these calls (each a tool, its arguments and the lines of its output), and the results.
    async fn work(&mut self, thought: usize, prose: usize, calls: &[(&str, Value, usize)]) {
        self.advance().await;
        self.made += 1;
        let made = self.made;
        let mut content = Vec::new();
        if thought > 0 {
            let text = format!("Thought {made}.\n{}", lines_of("thought", thought));
            content.push(json!({ "type": "thinking", "thinking": text }));
        }
        if prose > 0 {
            content.push(
                json!({ "type": "text", "text": format!("Step {made}.\n{}", lines_of("prose", prose)) }),
            );
        }
        let id = |place: usize| format!("call_{made}_{place}");
        content.extend(calls.iter().enumerate().map(|(place, (name, args, _))| {
            json!({ "type": "toolCall", "id": id(place), "name": name, "arguments": args })
        }));
        self.answer(content);
        for (place, (name, args, lines)) in calls.iter().enumerate() {
            let output = lines_of(&id(place), *lines);
            let birth = self.engine.receive(tool(&id(place), name, args.clone(), &output)).await.unwrap();
            let shown = birth.header.map_or(output.clone(), |header| format!("{header}\n{output}"));
            let content = json!([{ "type": "text", "text": shown }]);
            self.say(json!({ "role": "toolResult", "toolCallId": id(place), "toolName": name, "content": content }));
        }
    }

    /// Makes short calls, each with a separate answer.
    async fn busy(&mut self, count: usize) {
        for n in 0..count {
            self.work(n % 3, (n + 1) % 2, &[("bash", json!({ "command": format!("make step-{n}") }), 2)])
                .await;
        }
    }

    /// The model calls a tool that brings an object back.
    async fn bring_back(&mut self, name: &str) {
        self.advance().await;
        self.made += 1;
        let id = format!("call_{}_0", self.made);
        let args = json!({ "id": name });
        self.answer(vec![
            json!({ "type": "toolCall", "id": id, "name": "context_activate", "arguments": args }),
        ]);
        let change = self.engine.activate(name, None).await.unwrap();
        let text = change.content.filter(|_| !change.visible).unwrap_or_else(|| "It is above.".to_owned());
        self.engine.receive(tool(&id, "context_activate", args, &text)).await.unwrap();
        let content = json!([{ "type": "text", "text": text }]);
        self.say(json!({ "role": "toolResult", "toolCallId": id, "toolName": "context_activate", "content": content }));
    }

    async fn advance(&mut self) {
        let new = self.messages[self.told..].to_vec();
        self.told = self.messages.len();
        let plan = self.engine.advance(new, &self.call).await.unwrap();
        self.call.at_user_turn = false;
        self.write(&format!("call with {} messages", self.told), &plan);
    }

    /// The provider has forgotten the prefix.
    fn pause(&mut self) {
        self.note("a pause");
        self.call.now_ms += TTL_MS + 1;
    }

    async fn roll_now(&mut self) {
        let plan = self.engine.roll_now(&self.call).await.unwrap();
        self.write("a roll on request", &plan);
    }

    async fn undo(&mut self) {
        let plan = self.engine.undo_roll().await.unwrap();
        self.write("a roll undone", &plan);
    }

    /// Another process continues with the messages as they came.
    async fn reopen(&mut self) {
        self.advance().await;
        self.engine = Engine::open(self.options.clone()).await.unwrap();
        let plan = self.engine.resync(self.messages.clone(), self.messages.len(), &self.call).await.unwrap();
        self.write("another process", &plan);
        let plan = self.engine.advance(Vec::new(), &self.call).await.unwrap();
        self.write("its first call", &plan);
    }

    fn write(&mut self, what: &str, plan: &Plan) {
        let Plan { context_tokens, stale_tokens, rewrite_cost, spent, .. } = plan;
        self.note(&format!(
            "{what}: {context_tokens} tokens, {stale_tokens} stale, rewriting costs {rewrite_cost:.0}, spent {spent:.0}"
        ));
        if let Some(receipt) = &plan.receipt {
            let RollReceipt {
                items,
                reasoning_lost: _,
                reasoning_lost_running: _,
                removed_tokens,
                cost,
                gain,
                pays_back_after_calls,
                reason,
            } = receipt;
            self.note(&format!(
                "  {reason:?}: {items} pieces, {removed_tokens} tokens; costs {cost:.0}, saves {gain:.0} a call, pays \
                 back after {pays_back_after_calls:?}"
            ));
        }
        for edits in plan.edits.chunk_by(|a, b| matches!((a, b), (Edit::Gone { .. }, Edit::Gone { .. }))) {
            let keys: Vec<&str> = edits.iter().map(Edit::key).collect();
            match &edits[0] {
                Edit::Gone { .. } => self.note(&format!("  gone: {}", keys.join(" "))),
                edit => self.note(&format!("  {}", line_of(edit))),
            }
        }
        for notice in &plan.notices {
            self.note(&format!("  notice: {notice}"));
        }
    }
}

fn lines_of(name: &str, count: usize) -> String {
    (1..=count).map(|n| format!("{name}, line {n}: lorem ipsum dolor sit amet\n")).collect()
}

fn line_of(edit: &Edit) -> String {
    match edit {
        Edit::Gone { .. } => unreachable!("named with its neighbours"),
        Edit::Result { key, object, text } => {
            format!("{key} {object}: {}", text.as_deref().map_or("as it came".to_owned(), short))
        }
        Edit::Message { key, calls, texts } => {
            let args = |args: &Map<String, Value>| short(&Value::Object(args.clone()).to_string());
            let calls = calls.iter().map(|call| format!("[call {}: {}]", call.position, args(&call.args)));
            let text = |text: &Option<String>| text.as_deref().map_or("left out".to_owned(), short);
            let texts = texts.iter().map(|one| format!("[block {}: {}]", one.block, text(&one.text)));
            format!("{key} {}", calls.chain(texts).collect::<Vec<_>>().join(" "))
        }
    }
}

/// A text, or the beginning, end and length of a long one.
fn short(text: &str) -> String {
    let text = text.replace('\n', "|");
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= 240 {
        return text;
    }
    let part = |part: &[char]| part.iter().collect::<String>();
    format!("{} ... {} ({} chars)", part(&chars[..80]), part(&chars[chars.len() - 80..]), chars.len())
}

fn edit_of(lines: usize) -> Value {
    json!({ "path": PATH, "oldText": lines_of("old", lines), "newText": lines_of("new", lines / 2) })
}

fn write_of(lines: usize) -> Value {
    json!({ "path": PATH, "content": lines_of("written", lines) })
}

fn bash(command: &str) -> Value {
    json!({ "command": command })
}

/// A conversation with all kinds of content: thinking, prose, long questions, reads, edits, commands with short and large
/// outputs, several calls in one answer, pauses, and the reactions of a person or the model.
async fn converse(recorder: &mut Recorder) {
    let read = |n: usize| json!({ "path": format!("/nowhere/src/{n}.rs") });
    recorder.user(60);
    recorder.work(30, 3, &[("read", read(1), 300), ("read", read(2), 40)]).await;
    recorder.work(5, 0, &[("grep", json!({ "pattern": "lorem", "path": "/nowhere" }), 900)]).await;
    recorder.work(0, 8, &[("edit", edit_of(40), 1)]).await;
    recorder
        .work(12, 2, &[("write", write_of(120), 1), ("bash", bash("make test"), 60), ("edit", edit_of(4), 1)])
        .await;
    recorder.busy(6).await;
    recorder.done(30).await;
    recorder.user(2);
    recorder.work(40, 0, &[("bash", bash("cat log"), 1_500)]).await;
    recorder.busy(9).await;
    recorder.pause();
    recorder.work(0, 20, &[("read", read(3), 120)]).await;
    recorder.bring_back("call_2_0").await;
    recorder.busy(14).await;
    recorder.done(3).await;

    recorder.user(80);
    recorder.engine.deactivate("call_3_0").await.unwrap();
    recorder.engine.pin("call_5_1").await.unwrap();
    recorder.work(3, 3, &[("read", read(4), 200), ("bash", bash("ls"), 12)]).await;
    recorder.busy(12).await;
    recorder.roll_now().await;
    recorder.busy(3).await;
    recorder.undo().await;
    recorder.busy(20).await;
    recorder.reopen().await;
    recorder.done(40).await;

    recorder.user(0);
    recorder.call.lookback_blocks = Some(20);
    recorder.busy(16).await;
    recorder.call.model = "n".into();
    recorder.work(8, 1, &[("bash", bash("git log"), 400)]).await;
    recorder.busy(24).await;
    recorder.call.only_at_user_turn = true;
    recorder.busy(20).await;
    recorder.done(5).await;
    recorder.user(40);
    recorder.busy(3).await;
    recorder.pause();
    recorder.busy(2).await;
    recorder.reopen().await;

    recorder.call.only_at_user_turn = false;
    recorder.call.prices = Prices::new(0.5, 1.0);
    recorder.work(20, 4, &[("bash", bash("cat everything"), 3_000)]).await;
    recorder.busy(20).await;
    recorder.call.context_window = 30_000;
    recorder.busy(8).await;
    recorder.call.rolls = false;
    recorder.busy(4).await;
    recorder.call.rolls = true;
    recorder.busy(50).await;
    recorder.done(0).await;
    recorder.user(0);
    recorder.reopen().await;
    assert!(recorder.bench.latest_tx().await > 100);
}

#[rstest]
#[case::as_needed(Stays::default(), true)]
#[case::outputs_alone(Stays::default(), false)]
#[case::as_a_person_set_it(
    Stays { thinking: Stay::Calls(4), calls: Stay::Calls(9), prose: Stay::Calls(15), weight: None, debt_cap: None }, true
)]
#[case::reasoning_kept(
    Stays { thinking: Stay::Keep, calls: Stay::Needed, prose: Stay::Needed, weight: Some(2.0), debt_cap: None }, true
)]
#[case::within_the_debt(Stays { debt_cap: Some(0.05), ..Stays::default() }, true)]
#[tokio::test]
async fn a_long_conversation_is_shown_as_before(#[case] stays: Stays, #[case] shortens: bool) {
    let name = std::thread::current().name().unwrap().rsplit("case_").next().unwrap().to_owned();
    // Without a bound on the debt, a short conversation has rolls of all kinds.
    let stays = Stays { debt_cap: stays.debt_cap.or(Some(f64::INFINITY)), ..stays };
    let mut recorder = Recorder::new(stays).await;
    recorder.call.shortens = shortens;
    converse(&mut recorder).await;
    insta::assert_snapshot!(name, recorder.record);
}
