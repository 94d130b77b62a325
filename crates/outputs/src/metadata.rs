//! What a stored context says of itself, read without its result.

use std::fmt;
use std::io::Read;

use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// The fields that precede the result in a stored context.
const REQUIRED: [&str; 4] = ["toolName", "toolDescription", "args", "timestamp"];
const OPTIONAL: [&str; 2] = ["taskId", "queryId"];

/// Reads the metadata of a stored context as a JSON object, and stops at its `result` if all required fields
/// precede it (as they do in what this package writes), so that the size of the result does not matter.
///
/// # Errors
/// A message that says what is wrong with the file: it is not JSON, or lacks a field.
pub fn read(reader: impl Read) -> Result<String, String> {
    let mut metadata = Metadata::default();
    let mut document = serde_json::Deserializer::from_reader(reader);
    let outcome = document.deserialize_map(&mut metadata);
    // Having stopped at the result, the parser misses the rest of the document: that is no error.
    if !metadata.stopped {
        outcome.and_then(|()| document.end()).map_err(|e| format!("it is no whole JSON object: {e}"))?;
    }
    if let Some(field) = REQUIRED.iter().find(|field| !metadata.fields.contains_key(**field)) {
        return Err(format!("it has no field {field}"));
    }
    if !metadata.result {
        return Err(String::from("it has no field result"));
    }
    Ok(Value::Object(metadata.fields).to_string())
}

#[derive(Default)]
struct Metadata {
    fields: Map<String, Value>,
    result: bool,
    stopped: bool,
}

impl<'de> Visitor<'de> for &mut Metadata {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a stored context")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(Key)? {
            if key == "result" {
                self.result = true;
                if REQUIRED.iter().all(|field| self.fields.contains_key(*field)) {
                    self.stopped = true;
                    return Ok(());
                }
                map.next_value::<IgnoredAny>()?;
            } else if REQUIRED.contains(&key.as_str()) || OPTIONAL.contains(&key.as_str()) {
                let value = map.next_value()?;
                self.fields.insert(key, value);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = String;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        serde::Deserialize::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const HEAD: &str = r#"{"toolName":"read","toolDescription":"read a","args":{"p":1},"timestamp":"t""#;

    #[rstest]
    #[case::last(
        "",
        r#","result":1}"#,
        r#"{"args":{"p":1},"timestamp":"t","toolDescription":"read a","toolName":"read"}"#
    )]
    #[case::ids(
        r#","taskId":3,"queryId":"q""#,
        r#","result":{"a":[1]}}"#,
        r#"{"args":{"p":1},"queryId":"q","taskId":3,"timestamp":"t","toolDescription":"read a","toolName":"read"}"#
    )]
    #[case::extra(
        r#","more":[{}]"#,
        r#","result":"x"}"#,
        r#"{"args":{"p":1},"timestamp":"t","toolDescription":"read a","toolName":"read"}"#
    )]
    fn metadata_is_read(#[case] middle: &str, #[case] tail: &str, #[case] expected: &str) {
        let text = format!("{HEAD}{middle}{tail}");
        let got: Value = serde_json::from_str(&read(text.as_bytes()).expect("metadata")).expect("JSON");
        assert_eq!(got, serde_json::from_str::<Value>(expected).expect("JSON"));
    }

    #[test]
    fn a_result_that_comes_first_is_passed_over() {
        let text = format!("{{\"result\":[1,2,{{}}],{}}}", &HEAD[1..]);
        assert!(read(text.as_bytes()).expect("metadata").contains("\"toolName\":\"read\""));
        let cut = &text[..text.len() - 1];
        assert!(read(cut.as_bytes()).expect_err("half a file").contains("whole JSON"));
    }

    #[rstest]
    #[case::empty("")]
    #[case::array("[]")]
    #[case::half(&HEAD[..40])]
    #[case::no_result(r#"{"toolName":"read","toolDescription":"","args":{},"timestamp":""}"#)]
    #[case::no_args(r#"{"toolName":"read","toolDescription":"","timestamp":"","result":1}"#)]
    #[case::text_after(r#"{"toolName":"read","result":1} {"#)]
    fn what_is_no_stored_context_is_refused(#[case] text: &str) {
        read(text.as_bytes()).expect_err("no stored context");
    }
}
