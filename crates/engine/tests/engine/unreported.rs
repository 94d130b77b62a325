//! Between a write that a tool has passed in and the write's result, the model does not know of others' earlier changes.

use std::fs;

use context_engine::EditGuard;
use context_model::object::Status;
use rstest::rstest;
use serde_json::json;

use crate::bench::Backend;
use crate::chat::Chat;
use crate::truth::lines;

/// Line 30 was changed by others before the edit of line 7, and line 35 after it.
#[rstest]
#[case::unstored(false)]
#[case::stored(true)]
#[tokio::test(flavor = "multi_thread")]
async fn refusal_shows_all_that_the_model_has_not_seen(
    #[case] is_stored: bool,
    #[values(Some("edit_7"), None)] call: Option<&str>,
    #[values(None, Some("old line 35\n"))] old: Option<&str>,
) {
    let (bench, mut chat) = Chat::on(Backend::Memory).await;
    let path = bench.write("a.txt", lines("old", 40));
    chat.asks("go").await;
    chat.reads("read", &path).await;
    chat.advance().await;

    let others =
        |text: &str, n: usize| text.replace(&format!("old line {n}\n"), &format!("their line {n}\n"));
    let then = others(&lines("old", 40), 30);
    fs::write(&path, &then).unwrap();
    if is_stored {
        bench.open("other").await.index_file(&path, None, None).await.unwrap();
    }
    let edited = then.replace("old line 7\n", "my line 7\n");
    fs::write(&path, &edited).unwrap();
    chat.engine.index_written(&path, None, call).await.unwrap();
    fs::write(&path, others(&edited, 35)).unwrap();

    let texts = old.map(|old| vec![old.to_owned()]);
    let guard = chat.engine.guard_edit(&path, texts.as_deref(), Some("next")).await.unwrap();
    let EditGuard::Refused(text) = guard else { panic!("{guard:?}") };
    for line in ["-old line 30", "+their line 30", "-old line 35", "+their line 35", "+my line 7"] {
        assert!(text.contains(line), "{line} of:\n{text}");
    }
    assert_eq!(
        chat.engine.guard_edit(&path, None, Some("again")).await.unwrap(),
        EditGuard::Allowed { difference: None }
    );
}

/// With its result, the model knows the text that it has put in: a refusal does not show that as a change.
#[tokio::test(flavor = "multi_thread")]
async fn refusal_after_the_result_leaves_out_what_the_model_wrote() {
    let (bench, mut chat) = Chat::on(Backend::Memory).await;
    let path = bench.write("a.txt", lines("old", 40));
    chat.asks("go").await;
    chat.reads("read", &path).await;
    chat.advance().await;

    let edited = lines("old", 40).replace("old line 7\n", "my line 7\n");
    fs::write(&path, &edited).unwrap();
    chat.engine.index_written(&path, None, Some("edit_7")).await.unwrap();
    let args = json!({ "path": path, "edits": [{ "oldText": "old line 7", "newText": "my line 7" }] });
    chat.answered("edit_7", "edit", args, "done", Status::Ok).await;
    fs::write(&path, edited.replace("old line 35\n", "their line 35\n")).unwrap();

    let guard = chat.engine.guard_edit(&path, None, Some("next")).await.unwrap();
    let EditGuard::Refused(text) = guard else { panic!("{guard:?}") };
    assert!(text.contains("+their line 35") && !text.contains("+my line 7"), "{text}");
}
