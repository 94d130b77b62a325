//! Paths of Windows: drives, shares, both kinds of slashes, and the ways in which shells write them.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use context_model::mounts::{MountMapping, Mounts};
use context_model::path::{absolute, normalise, share};
use proptest::prelude::*;
use rstest::rstest;

#[rstest]
#[case::drive(r"C:\Users\x", Some("C:/Users/x"))]
#[case::small_letter("c:/Users/./x/", Some("C:/Users/x"))]
#[case::root(r"c:\", Some("C:/"))]
#[case::verbatim(r"\\?\C:\Users\x", Some("C:/Users/x"))]
#[case::share(r"\\server\share\x\..\y", Some("//server/share/y"))]
#[case::whole_share(r"\\server\share\", Some("//server/share"))]
#[case::verbatim_share(r"\\?\UNC\server\share\x", Some("//server/share/x"))]
#[case::posix("/a/../b", Some("/b"))]
#[case::posix_with_doubled_slashes("//server/share", Some("/server/share"))]
#[case::drive_without_slash("C:x", None)]
#[case::no_share(r"\\server", None)]
#[case::relative(r"a\b", None)]
#[case::empty("", None)]
fn absolute_paths(#[case] path: &str, #[case] expected: Option<&str>) {
    assert_eq!(absolute(path).as_deref(), expected);
}

#[rstest]
#[case::relative("C:/w", r"src\a.ts", "C:/w/src/a.ts")]
#[case::up_to_the_root("C:/w", r"..\..\..\x", "C:/x")]
#[case::other_drive("C:/w", r"d:\x", "D:/x")]
#[case::rooted("C:/w", r"\x\y", "C:/x/y")]
#[case::git_bash("C:/w", "/d/x/y", "D:/x/y")]
#[case::wsl("C:/w", "/mnt/c/x", "C:/x")]
#[case::cygwin("C:/w", "/cygdrive/c", "C:/")]
#[case::no_drive("C:/w", "/dev/null", "C:/dev/null")]
#[case::from_its_drive("C:/w", "c:x", "C:/w/x")]
#[case::from_another_drive("C:/w", "d:x", "D:/x")]
#[case::to_a_share("C:/w", r"\\server\share\x", "//server/share/x")]
#[case::on_a_share("//server/share/w", r"..\..\..\x", "//server/share/x")]
#[case::root_of_a_share("//server/share/w", r"\", "//server/share")]
#[case::drive_from_a_share("//server/share", "c:/x", "C:/x")]
#[case::alternate_stream("C:/w", "a.txt:stream", "C:/w/a.txt:stream")]
#[case::no_windows_path("/w", "C:/x", "/w/C:/x")]
#[case::no_windows_slash("/w", r"a\b", r"/w/a\b")]
#[case::no_shell_drive("/w", "/c/x", "/c/x")]
#[case::no_share("/w", "//server/share/x", "/server/share/x")]
fn relative_to_a_base(#[case] base: &str, #[case] path: &str, #[case] expected: &str) {
    assert_eq!(normalise(base, path), expected);
}

#[rstest]
#[case("//server/share/x/y", Some("//server/share"))]
#[case("//server/share", Some("//server/share"))]
#[case("/server/share", None)]
#[case("C:/x", None)]
fn shares(#[case] path: &str, #[case] expected: Option<&str>) {
    assert_eq!(share(path), expected);
}

/// A sandbox with POSIX paths on a Windows machine.
#[test]
fn mounts_lead_from_posix_to_windows_and_back() {
    let mapping = |agent: &str, canonical: &str| MountMapping {
        agent_prefix: agent.into(),
        canonical_prefix: canonical.into(),
        filesystem_id: "host".into(),
    };
    let mounts =
        vec![mapping("/workspace", r"c:\Users\x"), mapping("/c", r"C:\"), mapping("/team", r"\\srv\team")];
    let mounts = Mounts::new("sandbox".into(), mounts).unwrap();
    for (agent, canonical) in [
        ("/workspace/src/a.ts", "C:/Users/x/src/a.ts"),
        ("/workspace", "C:/Users/x"),
        ("/c/x", "C:/x"),
        ("/c", "C:/"),
        ("/team/y", "//srv/team/y"),
    ] {
        let found = mounts.resolve(agent).source;
        assert_eq!(found.path, canonical);
        assert_eq!(mounts.reverse(&found).as_deref(), Some(agent));
    }
}

proptest! {
    #[test]
    fn normal_path_is_unchanged(
        base in prop::sample::select(vec!["C:/", "D:/w", "//server/share", "//server/share/w"]),
        raw in r"(//|/|\\\\|[a-z]:)?([a-c.:/\\]|\.\.){0,12}",
    ) {
        let path = normalise(base, &raw);
        prop_assert_eq!(&normalise(base, &path), &path);
        prop_assert_eq!(&normalise(&path, "."), &path);
        prop_assert!(!path.contains('\\') && !path.split('/').any(|name| name == "." || name == ".."));
        // A kept path can be handed to Windows, and is read back unchanged.
        prop_assert_eq!(absolute(&path.replace('/', r"\")), Some(path));
    }
}
