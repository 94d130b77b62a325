//! Content and infrastructure objects and tool call identities (2.4).

use context_model::error::ErrorCode;
use context_model::id::ObjectId;
use context_model::object::Status;
use context_tools::{Gate, excerpt};
use rstest::rstest;
use serde_json::json;

use crate::bench::Backend::{Memory, Sqlite};
use crate::bench::{Backend, Bench, answer, call, check, ids, refused, session, tool, user};
use crate::chat::Chat;

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn infrastructure_is_rendered_in_its_place_and_is_in_no_set(
    #[values(Memory, Sqlite)] backend: Backend,
) {
    let (bench, engine) = session(backend).await;
    engine.set_system_prompt("You help.").await.unwrap();
    engine.append_turn(user("Hello")).await.unwrap();
    engine.append_turn(answer("Hi.")).await.unwrap();
    let file = engine.index_file(&bench.write("a", "text of a"), None, None).await.unwrap().id;
    let toolcall = engine.record_toolcall(call("call_1", "output")).await.unwrap();

    let sets = engine.session_sets().await.unwrap();
    check(&sets);
    assert_eq!(sets.session_index, [file.clone(), toolcall.clone()]);
    assert_eq!(sets.metadata_pool, [file.clone(), toolcall.clone()]);
    assert_eq!(sets.active_set, [file.clone(), toolcall.clone()]);

    let view = engine.assemble().await.unwrap();
    assert_eq!(view.system_prompt(), "You help.");
    let expected = format!(
        "You help.\n\nid={file} type=file path={} file_type=text char_count=9\n\
         id=call_1 type=toolcall tool=custom status=ok\n\n\
         user: Hello\n\nassistant: Hi.\n\ntoolcall_ref id=call_1 tool=custom status=ok\n\n\
         ACTIVE_CONTENT id={file}\ntext of a\n\nACTIVE_CONTENT id=call_1\noutput",
        bench.path("a")
    );
    assert_eq!(view.text(), expected);
    let blocks: Vec<_> = view.blocks().map(|b| (b.id.as_str(), b.content)).collect();
    assert_eq!(blocks, [(file.as_str(), "text of a"), ("call_1", "output")]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn agent_controls_no_infrastructure(
    #[values("session:s", "chat:s", "system_prompt:s", "chat:other")] id: &str,
) {
    let (bench, engine) = session(Memory).await;
    bench.open("other").await;
    let before = (bench.latest_tx().await, engine.session_sets().await.unwrap());
    for answer in [
        engine.activate(id, None).await,
        engine.deactivate(id).await,
        engine.pin(id).await,
        engine.unpin(id).await,
        engine.promote(id).await,
        engine.demote(id).await,
    ] {
        let answer = answer.unwrap();
        assert_eq!((answer.ok, answer.code), (false, Some(ErrorCode::NotContent)), "{}", answer.message);
    }
    assert_eq!((bench.latest_tx().await, engine.session_sets().await.unwrap()), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_objects_of_a_new_session_have_the_fields_of_the_specification() {
    let (bench, engine) = session(Sqlite).await;
    engine.append_turn(user("u")).await.unwrap();
    engine.record_toolcall(call("call_1", "")).await.unwrap();
    let fields = async |id: &str| {
        let mut names: Vec<String> =
            bench.latest(&ObjectId::new(id)).await.unwrap().payload().keys().cloned().collect();
        names.sort();
        names.join(" ")
    };
    // One more field says that the evidence of results and notices is recorded.
    let expected = "content content_hash records_evidence session_ref toolcall_refs turn_count turns";
    assert_eq!(fields("chat:s").await, expected);
    assert_eq!(fields("system_prompt:s").await, "content content_hash");
    // One more field says where the session works.
    assert_eq!(
        fields("session:s").await,
        "active_set chat_ref content_hash folder metadata_pool pinned_set session_id session_index system_prompt_ref"
    );
    assert_eq!(fields("call_1").await, "args chat_ref content content_hash status tool");
    let file = engine.index_file(&bench.write("a", ""), None, None).await.unwrap().id;
    assert_eq!(fields(file.as_str()).await, "char_count content content_hash file_type source_hash");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_call_is_one_object_with_one_version(#[values(Memory, Sqlite)] backend: Backend) {
    let (bench, engine) = session(backend).await;
    let mut input = tool("call_1", "bash", json!({ "command": "true" }), "done");
    input.args_display = Some("true".into());
    input.status = Status::Fail;
    input.file_refs = vec![ObjectId::new("a-file")];
    let id = engine.record_toolcall(input.clone()).await.unwrap();
    assert_eq!(id.as_str(), "call_1");
    let document = bench.latest(&id).await.unwrap();
    assert_eq!(document.source(), None);
    assert_eq!(document.field("args"), Some(&json!({ "command": "true" })));
    assert_eq!(document.text("args_display"), Some("true"));
    assert_eq!(document.text("status"), Some("fail"));
    assert_eq!(document.text("chat_ref"), Some("chat:s"));
    assert_eq!(document.field("file_refs"), Some(&json!(["a-file"])));
    let sets = engine.session_sets().await.unwrap();
    for set in [&sets.session_index, &sets.metadata_pool, &sets.active_set] {
        assert_eq!(set[..], ids(["call_1"]));
    }

    let tx = bench.latest_tx().await;
    assert_eq!(engine.record_toolcall(input).await.unwrap(), id, "recorded twice is the same object");
    assert_eq!(bench.latest_tx().await, tx);
    assert_eq!(bench.versions(&id).await.len(), 1);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn call_ids_that_come_again_with_another_call_are_kept_apart(
    #[values(Memory, Sqlite)] backend: Backend,
) {
    let (mut bench, engine) = session(backend).await;
    engine.append_turn(user("u")).await.unwrap();
    let record = async |engine: &context_engine::Engine, content: &str| {
        engine.record_toolcall(call("call_0", content)).await.unwrap().to_string()
    };
    let mut ids = Vec::new();
    for content in ["a", "b", "c", "a", "b", "c"] {
        ids.push(record(&engine, content).await);
    }
    let [a, b, c] = [ids[0].clone(), ids[1].clone(), ids[2].clone()];
    assert_eq!(a, "call_0");
    assert!(b.starts_with("call_0~") && c.starts_with("call_0~") && b != c, "{ids:?}");
    assert_eq!(ids[3..], [a.clone(), b.clone(), c.clone()]);
    engine.close().await.unwrap();
    bench.restart().await;

    // The same in a new process, and in a fork: the store knows the calls.
    for session in ["s", "fork"] {
        let engine = bench.open(session).await;
        if session == "fork" {
            let from = bench.open("s").await;
            let (point, times) = (from.point().await.unwrap(), from.point_times().await.unwrap());
            engine.restore(from.session_id(), point, Some(times)).await.unwrap();
        }
        let mut ids = Vec::new();
        for content in ["c", "a", "b", "d", "d"] {
            ids.push(record(&engine, content).await);
        }
        assert_eq!(ids[..3], [c.clone(), a.clone(), b.clone()], "{session}");
        assert!(ids[3] == ids[4] && ![&a, &b, &c].contains(&&ids[3]), "{session}: {ids:?}");
    }
}

#[rstest]
#[case::empty("", "toolcall:")]
#[case::long(&"x".repeat(450), &"x".repeat(450))]
#[case::like_a_session("session:s", "toolcall:session:s")]
#[case::like_the_chat("chat:s", "toolcall:chat:s")]
#[case::like_a_prompt("system_prompt:s", "toolcall:system_prompt:s")]
#[case::like_a_file(&"ab".repeat(32), &format!("toolcall:{}", "ab".repeat(32)))]
#[case::with_a_version("call@3", "call@3")]
#[case::with_an_address("fc_1|a@b.c", "fc_1|a@b.c")]
#[case::with_spaces_and_breaks("a b\nc\u{202e}", "a b\nc\u{202e}")]
#[tokio::test(flavor = "multi_thread")]
async fn strange_call_ids_are_ids_like_others(#[case] call_id: &str, #[case] expected: &str) {
    let (_bench, engine) = session(Sqlite).await;
    let id = engine.record_toolcall(call(call_id, "text")).await.unwrap();
    assert_eq!(id.as_str(), expected);
    check(&engine.session_sets().await.unwrap());
    assert!(engine.deactivate(id.as_str()).await.unwrap().ok);
    let shown = engine.activate(id.as_str(), None).await.unwrap();
    assert_eq!((shown.ok, shown.content.as_deref()), (true, Some("text")), "{}", shown.message);

    let view = engine.assemble().await.unwrap();
    assert_eq!(view.metadata_pool().lines().count(), 1, "one object, one line");
    assert_eq!(view.chat().count(), 1);
    // The line's name for the object can also be used as the ID.
    let shown_id = view.metadata_pool().strip_prefix("id=").unwrap().split(' ').next().unwrap();
    assert!(engine.pin(shown_id).await.unwrap().ok, "{shown_id}");
}

#[rstest]
#[case::no_tool(tool("c", "", json!({}), ""))]
#[case::too_deep(tool("c", "t", serde_json::from_str(&format!("{{\"a\":{}{}}}", "[".repeat(101), "]".repeat(101))).unwrap(), ""))]
#[tokio::test(flavor = "multi_thread")]
async fn calls_that_can_not_be_stored_are_refused(#[case] input: context_model::object::Toolcall) {
    let (bench, engine) = session(Sqlite).await;
    refused(&bench, &engine, ErrorCode::InvalidArgument, engine.record_toolcall(input)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn value_nested_to_the_limit_is_stored_and_read_again() {
    let (mut bench, engine) = session(Sqlite).await;
    let deep: serde_json::Value =
        serde_json::from_str(&format!("{}{}", "[".repeat(100), "]".repeat(100))).unwrap();
    let id = engine.record_toolcall(tool("c", "t", json!({ "a": deep }), "")).await.unwrap();
    let deep: serde_json::Value =
        serde_json::from_str(&format!("{}{}", "[".repeat(99), "]".repeat(99))).unwrap();
    engine.append_turn(json!({ "role": "user", "content": deep })).await.unwrap();
    let too_deep = json!({ "role": "user", "content": [[deep]] });
    refused(&bench, &engine, ErrorCode::InvalidArgument, engine.append_turn(too_deep)).await;
    engine.close().await.unwrap();
    bench.restart().await;
    let engine = bench.open("s").await;
    assert!(engine.get(id.as_str()).await.unwrap().is_some());
    assert_eq!(engine.assemble().await.unwrap().chat().count(), 2);
    assert_eq!(bench.store.verify().await.unwrap(), []);
}

/// Providers repeat call IDs, and short calls come out the same everywhere.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_equal_call_of_another_session_is_another_object(#[values(Memory, Sqlite)] backend: Backend) {
    let bench = Bench::new(backend);
    let mut seen = Vec::new();
    for session in ["one", "two", "three"] {
        let engine = bench.open(session).await;
        for (id, output) in [("call_0", "the same"), ("call_0", "again"), ("call_1", "the same")] {
            let first = engine.record_toolcall(call(id, output)).await.unwrap();
            let document = bench.latest(&first).await.unwrap();
            assert_eq!(document.text("chat_ref"), Some(&*format!("chat:{session}")));
            assert_eq!(document.content(), Some(output));
            assert_eq!(engine.record_toolcall(call(id, output)).await.unwrap(), first, "within a session");
            assert_eq!(bench.versions(&first).await.len(), 1);
            assert!(!seen.contains(&first), "{first}");
            seen.push(first);
        }
        engine.close().await.unwrap();
    }
    // A fork has the calls of the session that it comes from.
    let fork = bench.open("fork").await;
    let from = bench.open("one").await;
    let (point, times) = (from.point().await.unwrap(), from.point_times().await.unwrap());
    fork.restore(from.session_id(), point, Some(times)).await.unwrap();
    for (n, (id, output)) in
        [("call_0", "the same"), ("call_0", "again"), ("call_1", "the same")].iter().enumerate()
    {
        assert_eq!(fork.record_toolcall(call(id, output)).await.unwrap(), seen[n]);
    }
}

/// A host keeps our excerpt of a long output, or the line that names it. A session that has to read the host's messages,
/// because its own record is missing, must not take that for the output.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn excerpt_is_not_recorded_as_the_output(
    #[values(Memory, Sqlite)] backend: Backend,
    #[values("headed", "bare", "reference", "reference with an outcome")] form: &str,
) {
    let bench = Bench::new(backend);
    let whole: String = (0..20_000).map(|n| format!("line {n} of a long output\n")).collect();
    let mut chat = Chat::new(bench.open("first").await);
    chat.user("go");
    chat.advance().await;
    let args = json!({ "command": "seq 20000" });
    chat.calls("call_0", "bash", args.clone());
    let received = chat.engine.receive(tool("call_0", "bash", args, &whole)).await.unwrap();
    let (id, header) = (ids(["call_0"])[0].clone(), received.header.unwrap());
    assert_eq!(bench.latest(&id).await.unwrap().content(), Some(&*whole));
    let excerpt = excerpt(&whole, &Gate::for_tool("bash").unwrap()).unwrap().text;
    let handle = header.strip_prefix("id=").unwrap();
    let left = match form {
        "headed" => format!("{header}\n{excerpt}"),
        "bare" => excerpt,
        "reference" => format!("toolcall_ref id={handle} tool=bash status=ok"),
        _ => format!("toolcall_ref id={handle} tool=bash status=ok -> 20000 lines"),
    };
    chat.results("call_0", "bash", &left, Status::Ok);
    chat.done();
    chat.engine.close().await.unwrap();

    // Another session gets all of it as new.
    let mut other = Chat::new(bench.open("second").await);
    other.messages = chat.messages;
    let plan = other.engine.resync(other.messages.clone(), 0, &other.call()).await.unwrap();
    assert_eq!(plan.notices, [""; 0]);
    let sets = other.engine.session_sets().await.unwrap();
    assert_eq!(sets.session_index, std::slice::from_ref(&id), "{form}");
    assert_eq!(bench.versions(&id).await.len(), 1);
    let activated = other.engine.activate(id.as_str(), None).await.unwrap();
    assert!(activated.ok, "{}", activated.message);
}
