use proptest::prelude::*;
use rstest::rstest;

use super::*;

#[rstest]
#[case::plain("readFile", "readFile")]
#[case::snake("search_code", "search_code")]
#[case::parent("../../etc/passwd", "_etc_passwd")]
#[case::absolute("/etc/passwd", "_etc_passwd")]
#[case::windows("C:\\x", "C_x")]
#[case::nul("a\0b", "a_b")]
#[case::hidden(".git", "_git")]
#[case::option("-rf", "_rf")]
#[case::dots("..", "tool")]
#[case::empty("", "tool")]
#[case::other_script("поиск", "tool")]
#[case::line_break("a\nb", "a_b")]
fn a_tool_segment_is_one_safe_segment(#[case] tool: &str, #[case] expected: &str) {
    assert_eq!(tool_segment(tool), expected);
}

#[rstest]
#[case("con")]
#[case("NUL")]
#[case("COM1")]
#[case("aux.txt")]
fn a_reserved_name_never_stands_alone_before_the_dot(#[case] tool: &str) {
    let name = file_name(tool, "a1b2c3", 1, 0, "x9k2");
    let (stem, rest) = name.split_once('.').expect("a suffix");
    assert_eq!(rest, "json");
    assert!(stem.ends_with("_a1b2c3_1_0_x9k2"));
}

#[rstest]
#[case("readFile_a1b2c3_1735012345678_0_x9k2.json", Some((1_735_012_345_678, 0)))]
#[case("search_code_d4e5f6_1735012346789_1_m3n4.json", Some((1_735_012_346_789, 1)))]
#[case("grep_g7h8i9_1735012347890_2_p5q6.json", Some((1_735_012_347_890, 2)))]
#[case("notes.json", None)]
#[case("_a1b2c3_1_0_x9k2.json", None)]
#[case("-a_a1b2c3_1_0_x9k2.json", None)]
#[case("a/b_a1b2c3_1_0_x9k2.json", None)]
#[case("../b_a1b2c3_1_0_x9k2.json", None)]
#[case("b_a1b2c3_1_0_x9k2.JSON", None)]
#[case("b_a1b2c3_1_0_x9k2.json.bak", None)]
#[case("b_a1b2c3_1_0_x9k22.json", None)]
#[case("b_a1b2c3_+1_0_x9k2.json", None)]
#[case("b_a1b2c3_99999999999999999999_0_x9k2.json", None)]
#[case("ü_a1b2c3_1_0_x9k2.json", None)]
fn only_names_of_ours_have_an_order(#[case] name: &str, #[case] expected: Option<(u64, u64)>) {
    assert_eq!(order(name).map(|(time, counter, _)| (time, counter)), expected);
}

#[test]
fn hashes_match_the_golden_vectors() {
    #[derive(serde::Deserialize)]
    struct Golden {
        queries: Vec<(String, String)>,
        args: Vec<(String, String)>,
    }
    let text = include_str!("../../../fixtures/golden/outputs.json");
    let golden: Golden = serde_json::from_str(text).expect("golden vectors");
    assert!(golden.queries.len() > 3 && golden.args.len() > 10);
    for (query, expected) in golden.queries {
        assert_eq!(query_hash(&query), expected, "{query}");
    }
    for (args, expected) in golden.args {
        assert_eq!(args_hash(&args).expect("arguments"), expected, "{args}");
    }
}

#[rstest]
#[case("{")]
#[case("")]
#[case("{\"a\":\"\\")]
fn arguments_that_are_no_json_are_refused(#[case] args: &str) {
    assert_eq!(args_hash(args).expect_err("no JSON").code(), "INVALID_ARGUMENT");
}

proptest! {
    #[test]
    fn any_tool_gives_a_name_that_stays_in_its_directory(
        tool in prop_oneof![any::<String>(), "[./\\\\\0~-]{0,9}", "[a-z_]{290,310}", "\\PC{0,300}"],
        timestamp: u64,
        counter: u64,
    ) {
        let name = file_name(&tool, "a1b2c3", timestamp, counter, &random_suffix());
        prop_assert!(name.len() <= 124);
        prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b)));
        prop_assert_eq!(name.matches('.').count(), 1);
        prop_assert!(!name.starts_with(['.', '-']));
        prop_assert_eq!(order(&name), Some((timestamp, counter, name.as_str())));
        prop_assert!(!is_temporary(&name));
        prop_assert!(is_temporary(&temporary(&name)));
        prop_assert!(order(&temporary(&name)).is_none());
    }

    #[test]
    fn key_order_never_changes_the_hash(map in prop::collection::btree_map(any::<String>(), any::<i32>(), 0..8)) {
        let pair = |(key, value): (&String, &i32)| format!("{}:{value}", serde_json::json!(key));
        let forward: Vec<String> = map.iter().map(pair).collect();
        let backward: Vec<String> = map.iter().rev().map(pair).collect();
        prop_assert_eq!(
            args_hash(&format!("{{{}}}", forward.join(","))).expect("JSON"),
            args_hash(&format!("{{{}}}", backward.join(", "))).expect("JSON")
        );
    }
}
