//! Path translation: longest prefix at segment borders, round trips, no way out of a mount.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod long;

use context_model::error::ErrorCode;
use context_model::mounts::{MountMapping, Mounts};
use context_model::path::normalise;
use context_model::source::FilesystemSource;
use proptest::prelude::*;
use rstest::rstest;

fn mapping(agent: &str, canonical: &str, filesystem: &str) -> MountMapping {
    MountMapping {
        agent_prefix: agent.into(),
        canonical_prefix: canonical.into(),
        filesystem_id: filesystem.into(),
    }
}

fn mounts(mappings: &[(&str, &str, &str)]) -> Mounts {
    Mounts::new("sandbox".into(), mappings.iter().map(|(a, c, f)| mapping(a, c, f)).collect()).unwrap()
}

fn at(filesystem: &str, path: &str) -> FilesystemSource {
    FilesystemSource { filesystem_id: filesystem.into(), path: path.into() }
}

#[rstest]
#[case::the_example_of_5_3("/workspace/src/main.ts", "host", "/home/abaris/project/src/main.ts")]
#[case::the_prefix_itself("/workspace", "host", "/home/abaris/project")]
#[case::only_at_a_segment_border("/workspace2/a", "sandbox", "/workspace2/a")]
#[case::longest_prefix_wins("/workspace/vendor/x", "volume", "/srv/vendor/x")]
#[case::not_the_longest_at_a_border("/workspace/vendored", "host", "/home/abaris/project/vendored")]
#[case::unmapped("/etc/hosts", "sandbox", "/etc/hosts")]
#[case::above("/", "sandbox", "/")]
fn forward(#[case] path: &str, #[case] filesystem: &str, #[case] canonical: &str) {
    let mounts = mounts(&[
        ("/workspace", "/home/abaris/project", "host"),
        ("/workspace/vendor/", "/srv/vendor", "volume"),
    ]);
    assert_eq!(mounts.resolve(path).source, at(filesystem, canonical));
    assert_eq!(mounts.resolve(path).mount.is_some(), filesystem != "sandbox");
}

#[rstest]
#[case::back("host", "/home/abaris/project/a", Some("/workspace/a"))]
#[case::another_filesystem("other", "/home/abaris/project/a", None)]
#[case::not_at_a_border("host", "/home/abaris/project2/a", None)]
#[case::hidden_by_another_mount("host", "/home/abaris/project/vendor/a", None)]
#[case::the_longer_canonical_prefix("host", "/home/abaris/project/docs/a", Some("/docs/a"))]
fn reverse(#[case] filesystem: &str, #[case] canonical: &str, #[case] agent: Option<&str>) {
    let mounts = mounts(&[
        ("/workspace", "/home/abaris/project", "host"),
        ("/workspace/vendor", "/srv/vendor", "volume"),
        ("/docs", "/home/abaris/project/docs", "host"),
    ]);
    assert_eq!(mounts.reverse(&at(filesystem, canonical)).as_deref(), agent);
}

#[test]
fn the_root_can_be_mounted() {
    let inside = mounts(&[("/", "/var/lib/box/root", "overlay")]);
    assert_eq!(inside.resolve("/etc/hosts").source, at("overlay", "/var/lib/box/root/etc/hosts"));
    assert_eq!(inside.reverse(&at("overlay", "/var/lib/box/root/etc/hosts")).as_deref(), Some("/etc/hosts"));
    assert_eq!(inside.reverse(&at("overlay", "/var/lib/box/root")).as_deref(), Some("/"));
    let whole = mounts(&[("/host", "/", "host")]);
    assert_eq!(whole.resolve("/host/etc").source, at("host", "/etc"));
    assert_eq!(whole.resolve("/host").source, at("host", "/"));
    assert_eq!(whole.reverse(&at("host", "/etc")).as_deref(), Some("/host/etc"));
}

#[rstest]
#[case::relative_agent("workspace", "/a", "f")]
#[case::relative_canonical("/workspace", "a", "f")]
#[case::empty("", "/a", "f")]
#[case::no_filesystem("/workspace", "/a", "")]
fn mappings_without_meaning_are_refused(
    #[case] agent: &str,
    #[case] canonical: &str,
    #[case] filesystem: &str,
) {
    let error = Mounts::new("f".into(), vec![mapping(agent, canonical, filesystem)]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
}

#[rstest]
#[case::one("f", true)]
#[case::of_a_container("4f2a", true)]
#[case::with_blanks_inside("the team's drive", true)]
#[case::of_other_letters("Büro/資料", true)]
#[case::the_longest(&"x".repeat(512), true)]
#[case::empty("", false)]
#[case::too_long(&"x".repeat(513), false)]
#[case::too_many_bytes(&"ü".repeat(257), false)]
#[case::a_blank(" ", false)]
#[case::wide_blanks("\u{3000}\u{a0}", false)]
#[case::a_blank_before(" f", false)]
#[case::a_blank_after("f ", false)]
#[case::a_line_break_after("f\n", false)]
#[case::a_tab_inside("a\tb", false)]
#[case::nul("a\0b", false)]
#[case::delete("a\u{7f}", false)]
#[case::a_late_control_character("a\u{85}b", false)]
fn a_filesystem_has_a_short_name_of_visible_text(#[case] id: &str, #[case] is_taken: bool) {
    for made in
        [Mounts::new(id.into(), Vec::new()), Mounts::new("f".into(), vec![mapping("/workspace", "/a", id)])]
    {
        assert_eq!(made.is_ok(), is_taken, "{id:?}");
        if let Err(error) = made {
            assert_eq!(error.code(), ErrorCode::InvalidArgument);
            assert!(error.to_string().contains("filesystemId must have 1 to 512 bytes"), "{error}");
        }
    }
}

#[test]
fn two_mappings_of_one_prefix_are_refused() {
    let twice = vec![mapping("/w", "/a", "f"), mapping("/w/.", "/b", "f")];
    assert_eq!(Mounts::new("f".into(), twice).unwrap_err().code(), ErrorCode::InvalidArgument);
}

#[rstest]
#[case("/w", "a/./b//c/", "/w/a/b/c")]
#[case("/w", "..", "/")]
#[case("/w", "../../../../x", "/x")]
#[case("/w/x", "../y", "/w/y")]
#[case("/w", "/abs/../a", "/a")]
#[case("/w", ".", "/w")]
#[case("/w", "a/...", "/w/a/...")]
#[case("/", "", "/")]
fn normalised(#[case] base: &str, #[case] path: &str, #[case] expected: &str) {
    assert_eq!(normalise(base, path), expected);
}

/// A few names, so that prefixes of each other and equal ones come up.
fn segment() -> impl Strategy<Value = String> {
    prop_oneof!["[ab]{1,2}", Just("a b".to_owned()), Just("ü".to_owned()), Just("a\nb".to_owned())]
}

fn absolute() -> impl Strategy<Value = String> {
    prop::collection::vec(segment(), 0..5).prop_map(|segments| format!("/{}", segments.join("/")))
}

fn raw_path() -> impl Strategy<Value = String> {
    let piece = prop_oneof![3 => segment(), 1 => Just(".".to_owned()), 2 => Just("..".to_owned()), 1 => Just(String::new())];
    (any::<bool>(), prop::collection::vec(piece, 0..9))
        .prop_map(|(slash, pieces)| format!("{}{}", if slash { "/" } else { "" }, pieces.join("/")))
}

fn any_mounts() -> impl Strategy<Value = (Mounts, Vec<MountMapping>)> {
    let leads_to = (absolute(), prop::sample::select(vec!["host", "volume", "sandbox"]));
    prop::collection::btree_map(absolute(), leads_to, 0..5).prop_map(|all| {
        let all: Vec<MountMapping> = all.iter().map(|(a, (c, f))| mapping(a, c, f)).collect();
        (Mounts::new("sandbox".into(), all.clone()).unwrap(), all)
    })
}

fn covers(prefix: &str, path: &str) -> bool {
    prefix == "/" || path == prefix || path.starts_with(&format!("{prefix}/"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(long::cases(10_000)))]

    #[test]
    fn nothing_escapes_the_mount_that_covers_it((mounts, all) in any_mounts(), base in absolute(), raw in raw_path()) {
        let path = normalise(&base, &raw);
        let longest = all.iter().filter(|m| covers(&m.agent_prefix, &path)).max_by_key(|m| m.agent_prefix.len());
        let resolved = mounts.resolve(&path);
        match longest {
            Some(mapping) => {
                prop_assert!(covers(&mapping.canonical_prefix, &resolved.source.path));
                prop_assert_eq!(&resolved.source.filesystem_id, &mapping.filesystem_id);
                prop_assert_eq!(resolved.mount, Some(mapping.canonical_prefix.clone()));
            }
            None => {
                prop_assert_eq!(resolved.source, at("sandbox", &path));
                prop_assert_eq!(resolved.mount, None);
            }
        }
    }

    #[test]
    fn displayed_path_resolves_to_its_source((mounts, _) in any_mounts(), path in absolute()) {
        let resolved = mounts.resolve(&path);
        // The displayed path may be another one of several that lead there, and never one that leads elsewhere.
        if let Some(shown) = mounts.reverse(&resolved.source) {
            prop_assert_eq!(mounts.resolve(&shown).source, resolved.source);
        } else {
            prop_assert_eq!(resolved.mount, None);
        }
    }

    #[test]
    fn a_foreign_binding_is_displayed_only_where_it_can_be_reached((mounts, _) in any_mounts(), path in absolute()) {
        for filesystem in ["host", "volume", "sandbox", "elsewhere"] {
            let source = at(filesystem, &path);
            if let Some(shown) = mounts.reverse(&source) {
                prop_assert_eq!(mounts.resolve(&shown).source, source);
            }
        }
    }

    #[test]
    fn the_order_of_the_mappings_does_not_matter((mounts, mut all) in any_mounts(), path in absolute()) {
        all.reverse();
        let turned = Mounts::new("sandbox".into(), all).unwrap();
        prop_assert_eq!(mounts.resolve(&path), turned.resolve(&path));
    }

    #[test]
    fn normal_path_is_absolute_and_unchanged(base in absolute(), raw in raw_path()) {
        let path = normalise(&base, &raw);
        prop_assert!(path.starts_with('/'));
        prop_assert!(path == "/" || path[1..].split('/').all(|s| !matches!(s, "" | "." | "..")));
        prop_assert_eq!(&normalise("/", &path), &path);
        prop_assert_eq!(normalise(&path, "."), path);
    }

    #[test]
    fn any_text_can_be_a_path(base in absolute(), raw in ".{0,60}") {
        prop_assert!(normalise(&base, &raw).starts_with('/'));
    }
}

/// A renamed file that the client has found by itself, where a mapping leads.
#[rstest]
#[case::below_a_mapping("/home/abaris/project/a", Some("host"))]
#[case::below_the_longest_one("/srv/vendor/x", Some("volume"))]
#[case::hidden_by_another_mount("/home/abaris/project/vendor/a", None)]
#[case::not_at_a_border("/home/abaris/project2", None)]
#[case::nowhere("/etc/hosts", None)]
fn where_a_canonical_path_is_reached(#[case] path: &str, #[case] filesystem: Option<&str>) {
    let mounts = mounts(&[
        ("/workspace", "/home/abaris/project", "host"),
        ("/workspace/vendor/", "/srv/vendor", "volume"),
    ]);
    assert_eq!(mounts.reached(path), filesystem.map(|filesystem| at(filesystem, path)));
    assert_eq!(mounts.default_filesystem(), "sandbox");
}
