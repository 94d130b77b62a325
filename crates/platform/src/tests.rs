use std::fs;
use std::io::Read as _;

use super::*;

#[test]
fn files_are_told_apart_and_known_again() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two, moved) =
        (folder.path().join("one"), folder.path().join("two"), folder.path().join("moved"));
    fs::write(&one, "1").unwrap();
    fs::write(&two, "1").unwrap();
    let before = Facts::at(&one).unwrap();
    assert_ne!(before.identity(), Facts::at(&two).unwrap().identity());
    assert_eq!(identity(&one), Some(before.identity()));
    assert_eq!(Facts::of(&File::open(&one).unwrap()).unwrap(), before);
    assert_eq!((before.size, before.kind), (1, PathKind::File));
    fs::rename(&one, &moved).unwrap();
    assert_eq!(identity(&moved), Some(before.identity()));
    assert_eq!(identity(&one), None);
    assert_eq!(identity(folder.path()), Some(Facts::at(folder.path()).unwrap().identity()));
}

#[test]
fn times_are_of_this_year_and_move_with_a_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "1").unwrap();
    let seconds = |time: std::time::SystemTime| time.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let now = seconds(std::time::SystemTime::now()).cast_signed();
    let facts = Facts::at(&path).unwrap();
    for (name, time) in [("modified", facts.modified), ("changed", facts.changed)] {
        assert!((time.0 - now).abs() < 3600, "{name}: {time:?}, and now it is {now}");
        assert!((0..1_000_000_000).contains(&time.1));
    }
    // A program that sets the time of the bytes back can't hide that the file was changed.
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
    let later = Facts::at(&path).unwrap();
    assert_eq!(later.modified, (1_000_000, 0));
    assert!(later.changed >= facts.changed);
}

#[test]
fn a_file_is_opened_by_its_real_path_alone() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap();
    fs::create_dir(real.join("inside")).unwrap();
    fs::write(real.join("inside/file"), "text").unwrap();
    let mut text = String::new();
    open_without_links(&real.join("inside").join("file")).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "text");
    let folder = Facts::of(&open_without_links(&real.join("inside")).unwrap()).unwrap();
    assert_eq!(folder.kind.name(), "a directory");
    let missing = open_without_links(&real.join("missing")).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    // Not every system lets everybody make links.
    if link(&real.join("inside"), &real.join("folder"), true)
        && link(&real.join("inside").join("file"), &real.join("link"), false)
    {
        assert_eq!(Facts::at(&real.join("link")).unwrap().kind, PathKind::Link);
        for path in [real.join("folder").join("file"), real.join("link")] {
            assert!(is_link(&open_without_links(&path).unwrap_err()), "{}", path.display());
        }
    }
}

#[cfg(unix)]
fn link(to: &Path, at: &Path, _: bool) -> bool {
    std::os::unix::fs::symlink(to, at).is_ok()
}

#[cfg(windows)]
fn link(to: &Path, at: &Path, is_folder: bool) -> bool {
    use std::os::windows::fs::{symlink_dir, symlink_file};
    let made = if is_folder { symlink_dir(to, at) } else { symlink_file(to, at) };
    // Wine says that it has made one, and has not.
    made.is_ok() && at.symlink_metadata().is_ok_and(|found| found.is_symlink())
}

#[test]
fn private_files_and_folders_are_usable_by_their_owner() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("a").join("b");
    private_directory(&folder).unwrap();
    private_directory(&folder).unwrap();
    let path = folder.join("file");
    drop(private_file(OpenOptions::new().write(true).create_new(true), &path).unwrap());
    fs::write(&path, "text").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "text");
    sync_directory(&folder).unwrap();
    #[cfg(unix)]
    for (path, mode) in [(&path, 0o600), (&folder, 0o700), (&root.path().join("a"), 0o700)] {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, mode, "{}", path.display());
    }
}

#[test]
fn a_file_has_one_path_by_whatever_links_its_folder_is_reached() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap();
    fs::create_dir(real.join("inside")).unwrap();
    let path = real.join("inside").join("missing").join("file");
    assert_eq!(in_real_folder(&path), path);
    assert_eq!(in_real_folder(Path::new("file")), std::env::current_dir().unwrap().join("file"));
    if cfg!(unix) && link(&real.join("inside"), &real.join("linked"), true) {
        assert_eq!(in_real_folder(&real.join("linked").join("missing").join("file")), path);
        // A link in the file's own place stays.
        assert_eq!(in_real_folder(&real.join("linked")), real.join("linked"));
    }
}

#[test]
fn an_existing_folder_has_free_space() {
    let folder = tempfile::tempdir().unwrap();
    assert!(free_space(folder.path()).is_some_and(|bytes| bytes > 0));
    assert_eq!(free_space(&folder.path().join("missing")), None);
}

#[test]
fn a_machine_has_an_id_only_where_one_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine-id");
    let of = |text: &str| {
        fs::write(&path, text).unwrap();
        machine_id(path.to_str().unwrap())
    };
    assert_eq!(of("0123\n").as_deref(), Some("0123"));
    assert_eq!(of("uninitialized\n"), None);
    assert_eq!(of(" \n"), None);
    fs::remove_file(&path).unwrap();
    assert_eq!(machine_id(path.to_str().unwrap()), None);
    #[cfg(windows)]
    assert!(machine_id(MACHINE_ID_FILE).is_some_and(|id| id.len() == 36));
}
