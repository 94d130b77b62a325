//! Rules that a defect could break without any other test noticing: each test fails with the change that it names.

use context_engine::{Edit, Engine, IncomingMessage};
use context_lines::marker::collapse_args;
use context_model::object::Toolcall;
use context_tools::{Gate, excerpt};
use serde_json::json;
use tempfile::TempDir;

use crate::client::Client;
use crate::run::Run;
use crate::steps::{Backend, CallId, Change, Delivery, Fault, Schedule, Spelling, Step, Tool, TurnEnd};
use crate::turns::all;

/// Two sessions on one memory store, and two files of which the second has 40 lines.
async fn two() -> (TempDir, Run) {
    let directory = tempfile::tempdir().unwrap();
    let steps = Vec::new();
    let schedule = Schedule {
        seed: 0,
        backend: Backend::Memory,
        clients: 2,
        files: 2,
        links: false,
        unguarded: false,
        steps,
    };
    let run = Run::new(&schedule, &directory.path().canonicalize().unwrap()).await;
    (directory, run)
}

fn act(client: usize, tool: Tool) -> Step {
    Step::Act { client, tool, call: CallId::Fresh, late: false }
}

fn read(client: usize) -> Step {
    act(client, Tool::Read { file: 1, part: None, spelling: Spelling::Absolute })
}

fn turn(client: usize) -> Step {
    Step::Turn { client, end: TurnEnd::Open }
}

async fn take(run: &mut Run, steps: impl IntoIterator<Item = Step>) {
    for step in steps {
        if let Err(wrong) = run.take(&step).await {
            panic!("{step:?}: {wrong:?}");
        }
    }
}

fn engine(client: &Client) -> Engine {
    client.engine.clone().unwrap()
}

fn notices(client: &Client) -> Vec<String> {
    let said = client.messages.iter().filter(|message| message.is_notice);
    said.map(|message| message.raw["content"].as_str().unwrap().to_owned()).collect()
}

fn custom(call_id: &str, content: &str) -> Toolcall {
    Toolcall::new(call_id, "custom", serde_json::Map::new(), content)
}

#[tokio::test(flavor = "multi_thread")]
async fn output_beginning_like_a_foreign_header_is_a_separate_call() {
    let (_directory, mut run) = two().await;
    take(&mut run, [turn(0)]).await;
    let client = &run.clients[0];
    let birth = engine(client).receive(custom("call_0~1", &"a long output ".repeat(20))).await.unwrap();
    let text = format!("{}\nwhat a file says", birth.header.unwrap());
    let call = json!([{ "type": "toolCall", "id": "call_0", "name": "custom", "arguments": {} }]);
    let result = json!([{ "type": "text", "text": text }]);
    let messages = [
        json!({ "role": "assistant", "content": call, "stopReason": "toolUse" }),
        json!({ "role": "toolResult", "toolCallId": "call_0", "toolName": "custom", "content": result }),
    ];
    let incoming = messages.into_iter().enumerate();
    let incoming = incoming.map(|(n, message)| IncomingMessage { key: format!("k{n}"), message }).collect();
    engine(client).advance(incoming, &client.call(false)).await.unwrap();
    let stored = engine(client).get("call_0").await.unwrap().unwrap();
    assert_eq!(stored.content(), Some(text.as_str()));
}

/// The path of a file whose name begins with `@` is shortened, and a tool takes it for another one.
#[test]
fn path_with_an_at_sign_stays_whole() {
    let long = "x".repeat(200);
    for (path, shown) in
        [("/home/@types", "/home/@types"), ("/home/a/@types", "a/@types"), ("/home/~a", "/home/~a")]
    {
        let args = json!({ "path": path, "content": long });
        let collapsed = collapse_args("write", args.as_object().unwrap(), "t", "/home").unwrap();
        assert_eq!(collapsed.args["path"], shown);
    }
}

/// `hidden_error_lines` counts the last gap alone.
#[test]
fn errors_in_all_gaps_are_counted() {
    let long = format!("error: {}\n", "of a kind ".repeat(30));
    let text = format!("head\n{}error: short\n{}tail", long.repeat(3), long.repeat(2));
    let gate = Gate {
        threshold_tokens: 1,
        head_lines: 1,
        tail_lines: 1,
        max_error_lines: 9,
        error_chars: 120,
        context_lines: 0,
        line_chars: 200,
        ..Gate::default()
    };
    let excerpt = excerpt(&text, &gate).unwrap();
    assert_eq!((excerpt.gaps.len(), excerpt.hidden_error_lines), (2, 5), "{}", excerpt.text);
}

/// `saw_own` advances to the session's own transaction although another client's precedes it.
#[tokio::test(flavor = "multi_thread")]
async fn own_write_hides_no_write_of_another_session() {
    let (_directory, mut run) = two().await;
    take(&mut run, [read(0), turn(0)]).await;
    // The other session writes, and this one writes something else before it takes its turn.
    take(&mut run, [act(1, Tool::Write { file: 1, lines: 5 }), act(0, Tool::Custom { lines: 5 })]).await;
    take(&mut run, [turn(0)]).await;
    assert_eq!(notices(&run.clients[0]).len(), 1);
}

/// A version that this client has written itself is not noted as changed.
#[tokio::test(flavor = "multi_thread")]
async fn change_indexed_by_the_session_is_announced() {
    let (_directory, mut run) = two().await;
    take(&mut run, [read(0), turn(0), Step::Disk { file: 1, change: Change::Line(3) }]).await;
    take(&mut run, [Step::Events { client: 0, how: Delivery::All }, turn(0)]).await;
    let said = notices(&run.clients[0]);
    assert!(said.len() == 1 && said[0].ends_with("+1 -1"), "{said:?}");
}

/// `pointed` is never set.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_read_in_a_row_is_served_in_full() {
    let (_directory, mut run) = two().await;
    take(&mut run, [read(0), turn(0), read(0), turn(0), read(0), turn(0), read(0), turn(0)]).await;
    let results = run.clients[0].messages.iter().filter(|message| message.role() == "toolResult");
    let pointers: Vec<usize> = results.map(|message| message.pointers.len()).collect();
    assert_eq!(pointers, [0, 1, 0, 1]);
}

/// One call that leaves the sync to `settle` leaves that of its whole group to it.
#[tokio::test(flavor = "multi_thread")]
async fn call_that_waits_for_the_disk_is_synced_in_any_group() {
    let (_directory, mut run) = two().await;
    take(&mut run, [turn(0)]).await;
    let client = &run.clients[0];
    client.store.arm(Fault::Slow);
    let before = client.store.writes();
    let engine = engine(client);
    // The first has the state while the other two come, and those are written together.
    let calls: Vec<std::pin::Pin<Box<dyn Future<Output = ()>>>> = vec![
        Box::pin(async { drop(engine.receive(custom("one", "1")).await.unwrap()) }),
        Box::pin(async { drop(engine.receive(custom("two", "2")).await.unwrap()) }),
        Box::pin(async { drop(engine.record_toolcall(custom("three", "3")).await.unwrap()) }),
    ];
    all(calls).await;
    let after = client.store.writes();
    assert_eq!((after.0 - before.0, after.1 - before.1), (1, 1));
}

/// A read that a later one covers stays as fresh as that.
#[tokio::test(flavor = "multi_thread")]
async fn covered_read_is_rolled_first() {
    let (_directory, mut run) = two().await;
    let other = Step::Disk { file: 1, change: Change::Whole(60) };
    take(&mut run, [read(0), turn(0), other, read(0), turn(0)]).await;
    let client = &run.clients[0];
    let plan = engine(client).roll_now(&client.call(false)).await.unwrap();
    let results: Vec<&String> = client
        .messages
        .iter()
        .filter(|message| message.role() == "toolResult")
        .map(|message| &message.key)
        .collect();
    let edits: Vec<(&String, Option<&str>)> = plan
        .edits
        .iter()
        .filter_map(|edit| match edit {
            Edit::Result { key, text, .. } => Some((key, text.as_deref())),
            Edit::Message { .. } | Edit::Gone { .. } => None,
        })
        .collect();
    assert_eq!(edits.len(), 1, "{edits:?}");
    assert!(edits[0].0 == results[0] && edits[0].1.unwrap().starts_with("toolcall_ref id="), "{edits:?}");
}
