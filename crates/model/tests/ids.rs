//! IDs, digests and codes: their owners, and their text forms.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::io::Write as _;

use context_model::error::{ErrorCode, ModelError};
use context_model::hash::{Digest, HashedText, Hasher, source_hash};
use context_model::id::{MAX_SESSION_ID, ObjectId, SessionId};
use context_model::index::Action;
use context_model::object::{ObjectType, Status};
use rstest::rstest;

#[rstest]
#[case::itself("call_1", "call_1", true)]
#[case::one_that_repeats_it("call_1", "call_1~0123456789abcdef", true)]
#[case::a_mark_that_is_no_digest("call_1", "call_1~2", false)]
#[case::a_mark_in_capitals("call_1", "call_1~0123456789abcdeF", false)]
#[case::a_mark_that_is_too_short("call_1", "call_1~0123456789abcde", false)]
#[case::an_empty_mark("call_1", "call_1~", false)]
#[case::a_number_without_a_mark("call_1", "call_12", false)]
#[case::a_longer_id("call_1", "call_1x", false)]
#[case::another_id("call_1", "call_2", false)]
#[case::an_id_with_a_mark_of_its_own("call_1~2", "call_1~2", true)]
#[case::and_not_the_other_way_round("call_1~2", "call_1", false)]
#[case::an_empty_id("", "toolcall:", true)]
#[case::an_empty_id_again("", "toolcall:~0123456789abcdef", true)]
#[case::a_reserved_id("chat:s", "toolcall:chat:s", true)]
#[case::never_the_object_that_it_names("chat:s", "chat:s", false)]
fn whether_an_object_is_of_a_call_id(#[case] call: &str, #[case] id: &str, #[case] expected: bool) {
    assert_eq!(ObjectId::new(id).is_toolcall(call), expected);
}

#[rstest]
#[case::a_digest("0a".repeat(32), true)]
#[case::capital_digits("0A".repeat(32), true)]
#[case::one_digit_less("0a".repeat(32)[1..].to_owned(), false)]
#[case::one_digit_more(format!("0{}", "0a".repeat(32)), false)]
#[case::no_digits("x".repeat(64), false)]
#[case::a_session("session:s".into(), true)]
#[case::a_chat("chat:s".into(), true)]
#[case::a_prompt("system_prompt:s".into(), true)]
#[case::a_call("toolcall:s".into(), true)]
#[case::only_the_word("session".into(), false)]
fn call_ids_that_could_name_another_object_are_marked(#[case] call: String, #[case] marked: bool) {
    let id = ObjectId::toolcall(&call);
    assert_eq!(id.as_str(), if marked { format!("toolcall:{call}") } else { call });
}

#[test]
fn ids_say_themselves() {
    let id = ObjectId::new("call_1");
    assert_eq!((id.to_string().as_str(), id.as_ref(), id.as_str()), ("call_1", "call_1", "call_1"));
    let session = SessionId::new("s").unwrap();
    assert_eq!((session.to_string().as_str(), session.as_str()), ("s", "s"));
    assert!(SessionId::new("s".repeat(MAX_SESSION_ID)).is_ok());
}

#[test]
fn the_objects_of_a_session_have_its_name() {
    let session = SessionId::new("s").unwrap();
    let ids = [ObjectId::chat(&session), ObjectId::system_prompt(&session), ObjectId::session(&session)];
    assert_eq!(ids.each_ref().map(ObjectId::as_str), ["chat:s", "system_prompt:s", "session:s"]);
    let digest = Digest::of(b"x");
    assert_eq!(ObjectId::sourced(digest).as_str(), digest.to_string());
}

/// SHA-256 of `abc`, from FIPS 180-2.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[test]
fn digest_is_the_same_from_bytes_and_text() {
    let digest = Digest::of(b"abc");
    assert_eq!((digest.to_string().as_str(), format!("{digest:?}").as_str()), (ABC, ABC));
    assert_eq!(source_hash(b"abc"), digest);
    assert_eq!(ABC.parse(), Ok(digest));
    assert_eq!(ABC.to_uppercase().parse(), Ok(digest));
    assert_eq!(digest.as_bytes()[..4], [0xba, 0x78, 0x16, 0xbf]);
    assert_eq!(Digest::from_bytes(digest.as_bytes()), Some(digest));
    assert_eq!(Digest::from_bytes(&digest.as_bytes()[1..]), None);
    assert_eq!(serde_json::from_value::<Digest>(serde_json::json!(digest)).unwrap(), digest);

    let mut pieces = Hasher::default();
    pieces.update(b"a");
    assert_eq!(pieces.write(b"bc").unwrap(), 2);
    pieces.flush().unwrap();
    assert_eq!(pieces.finish(), digest);

    let text = HashedText::new("abc".into());
    assert_eq!((text.text(), text.hash()), ("abc", digest));
    assert_eq!(text.into_parts(), ("abc".to_owned(), digest));
}

#[rstest]
#[case::too_short(&ABC[2..])]
#[case::too_long("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015adba")]
#[case::an_odd_number(&ABC[1..])]
#[case::no_digit("xa7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")]
#[case::no_second_digit("bx7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")]
fn malformed_digest_is_refused(#[case] text: &str) {
    assert_eq!(text.parse::<Digest>().unwrap_err().code(), ErrorCode::InvalidArgument);
}

#[test]
fn codes_types_and_actions_say_themselves() {
    for code in ErrorCode::ALL {
        assert_eq!((code.as_ref(), code.to_string().as_str()), (code.as_str(), code.as_str()));
    }
    let types = [
        (ObjectType::File, "file", true),
        (ObjectType::Toolcall, "toolcall", true),
        (ObjectType::Chat, "chat", false),
        (ObjectType::SystemPrompt, "system_prompt", false),
        (ObjectType::Session, "session", false),
    ];
    for (kind, name, is_content) in types {
        assert_eq!((kind.as_str(), kind.to_string().as_str(), kind.is_content()), (name, name, is_content));
        assert_eq!((name.parse(), serde_json::json!(kind)), (Ok(kind), serde_json::json!(name)));
    }
    assert_eq!("s3".parse::<ObjectType>().unwrap_err().code(), ErrorCode::InvalidArgument);
    assert_eq!([Status::Ok.as_str(), Status::Fail.as_str()], ["ok", "fail"]);
    let actions = [Action::Created, Action::Updated, Action::Unchanged, Action::Deleted];
    assert_eq!(actions.map(Action::as_str), ["created", "updated", "unchanged", "deleted"]);
    assert_eq!(ModelError::Patch(String::new()).code(), ErrorCode::StoreCorrupt);
}
