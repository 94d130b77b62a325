//! File systems that are mounted over watched directories. The tests run in a namespace of their own, where mounting is allowed to
//! any user, if the machine allows such namespaces.

use std::process::Command;

use crate::common::Scene;
use camino::Utf8Path;
use rstest::rstest;

/// Set in the process that has the namespace.
const INSIDE: &str = "CONTEXT_WATCH_MAY_MOUNT";

/// Runs the test of this name in its own namespace. True in that process.
fn inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let unshare = |words: &[&std::ffi::OsStr]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount"]).args(words).env(INSIDE, "1");
        command.output()
    };
    let may = unshare(&["mount".as_ref(), "-t".as_ref(), "tmpfs".as_ref(), "none".as_ref(), "/mnt".as_ref()]);
    if !may.as_ref().is_ok_and(|may| may.status.success()) {
        eprintln!("skipped: this machine does not allow mounts in a namespace: {may:?}");
        return false;
    }
    let own = std::env::current_exe().unwrap();
    let ran = unshare(&[own.as_ref(), "--exact".as_ref(), test.as_ref(), "--nocapture".as_ref()]).unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr)
    );
    assert!(String::from_utf8_lossy(&ran.stdout).contains("1 passed"), "the test did not run");
    false
}

fn system(program: &str, words: &[&str]) {
    let ran = Command::new(program).args(words).output().unwrap();
    assert!(ran.status.success(), "{program} {words:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

fn mount(place: &Utf8Path) {
    system("mount", &["-t", "tmpfs", "none", place.as_str()]);
}

#[rstest]
#[case::over_the_directory("tree", "tree/f")]
#[case::far_above("tree", "tree/a/b/c/f")]
#[case::a_name_with_a_space("tree/a name\twith\\more", "tree/a name\twith\\more/f")]
fn mounted_and_unmounted(#[case] place: &str, #[case] file: &str) {
    let name = std::thread::current().name().unwrap().to_owned();
    if !inside(&name) {
        return;
    }
    let scene = Scene::new();
    let (place, file) = (format!("../{place}"), format!("../{file}"));
    scene.write(&file, "below");
    scene.write("../beside/g", "beside");
    scene.track(&file);
    scene.track("../beside/g");
    let mounted = scene.path(&place);
    // No flush: an event must tell of it.
    mount(&mounted);
    scene.until_equal();
    scene.write(&file, "above");
    scene.until_equal();
    scene.write(&file, "above, again");
    scene.until_equal();
    system("umount", &[mounted.as_str()]);
    scene.until_equal();
    scene.write(&file, "below, again");
    scene.until_equal();
    scene.assert_equal_after_flush();
    // The tracker did not look at an unrelated path.
    let beside = scene.path("../beside/g");
    scene.mirror.seen(|seen| assert!(seen.rescans == 0 && !seen.hinted.contains(&beside)));
}

#[test]
fn a_file_mounted_over_a_file() {
    if !inside("mounts::a_file_mounted_over_a_file") {
        return;
    }
    let scene = Scene::new();
    scene.write("f", "below");
    scene.write("g", "above");
    scene.track("f");
    system("mount", &["--bind", scene.path("g").as_str(), scene.path("f").as_str()]);
    scene.until_equal();
    system("umount", &[scene.path("f").as_str()]);
    scene.until_equal();
}
