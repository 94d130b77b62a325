//! Absolute paths, POSIX and Windows, without touching the disk.
//!
//! The rules for a path depend on the path that it is relative to, not on the machine: a Windows client and a Linux client of
//! one store read each other's paths. A Windows path is kept as `C:/folder/file` or `//server/share/folder/file`; slashes,
//! because the agent's shell, all its tools and Windows itself take them.

/// The path, absolute and free of `.`, `..`, doubled and trailing slashes; `None` where it is not absolute.
///
/// A drive letter is made upper case, and a verbatim path (`\\?\C:\`) becomes the plain one. Backslashes mark a share
/// (`\\server\share`), because `//server/share` is also a POSIX path.
#[must_use]
pub fn absolute(path: &str) -> Option<String> {
    if path.starts_with('/') {
        return Some(normalise("/", path));
    }
    let path = slashed(path);
    let (root, rest) = root_of(&path)?;
    Some(from_segments(&root, &[], rest))
}

/// Makes a path absolute and free of `.`, `..`, doubled and trailing slashes.
///
/// `base` is what [`absolute`] gives; `..` stops at its root. Below a Windows path, backslashes separate too, `\name` is on
/// the drive of the base, and `/c/name`, `/mnt/c/name` and `/cygdrive/c/name` are paths of the drive `C:`, as shells there
/// write them.
#[must_use]
pub fn normalise(base: &str, path: &str) -> String {
    let Some((base_root, below_base)) = root_of(base) else {
        let base = if path.starts_with('/') { "" } else { base };
        return from_segments("/", &[base], path);
    };
    let path = match shell_drive(path) {
        Some(path) => path,
        None => slashed(path),
    };
    if let Some((root, rest)) = root_of(&path) {
        return from_segments(&root, &[], rest);
    }
    if path.starts_with('/') {
        return from_segments(&base_root, &[], &path);
    }
    match drive(&path) {
        // A name on a drive without a slash is relative to that drive's own working directory, of which nothing is known.
        Some((letter, rest)) if !base_root.starts_with(letter) => {
            from_segments(&format!("{letter}:/"), &[], rest)
        }
        Some((_, rest)) => from_segments(&base_root, &[below_base], rest),
        None => from_segments(&base_root, &[below_base], &path),
    }
}

/// Returns what is left of a path at or below a prefix, without a slash at its begin; `None` where it is not below it.
#[must_use]
pub fn below<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(prefix)?;
    if rest.is_empty() || prefix.ends_with('/') { Some(rest) } else { rest.strip_prefix('/') }
}

/// A prefix and what [`below`] gave for it.
#[must_use]
pub fn join(prefix: &str, rest: &str) -> String {
    let slash = if rest.is_empty() || prefix.ends_with('/') { "" } else { "/" };
    format!("{prefix}{slash}{rest}")
}

/// The server and share of a normalised path on one: `//server/share`.
#[must_use]
pub fn share(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("//")?;
    let mut names = rest.split('/');
    let (server, share) = (names.next()?, names.next()?);
    let is_name = |name: &str| !matches!(name, "" | "." | "..");
    (is_name(server) && is_name(share)).then(|| &path[..3 + server.len() + share.len()])
}

/// The root of a Windows path with slashes, ending with one, and what comes after it.
fn root_of(path: &str) -> Option<(String, &str)> {
    if let Some((letter, rest)) = drive(path) {
        return (rest.starts_with('/') || rest.is_empty()).then(|| (format!("{letter}:/"), rest));
    }
    let share = share(path)?;
    Some((format!("{share}/"), &path[share.len()..]))
}

/// The letter of a drive in upper case, and what comes after its colon.
fn drive(path: &str) -> Option<(char, &str)> {
    let letter = path.chars().next().filter(char::is_ascii_alphabetic)?;
    Some((letter.to_ascii_uppercase(), path[1..].strip_prefix(':')?))
}

/// With slashes, and without what begins a verbatim path or one of the device namespace.
fn slashed(path: &str) -> String {
    let path = path.replace('\\', "/");
    match path.strip_prefix("//?/").or_else(|| path.strip_prefix("//./")) {
        Some(rest) => match rest.strip_prefix("UNC/") {
            Some(rest) => format!("//{rest}"),
            None => rest.to_owned(),
        },
        None => path,
    }
}

/// A drive as Git Bash, WSL and Cygwin write it.
fn shell_drive(path: &str) -> Option<String> {
    if path.contains('\\') {
        return None;
    }
    let rest = path.strip_prefix('/')?;
    let rest = rest.strip_prefix("mnt/").or_else(|| rest.strip_prefix("cygdrive/")).unwrap_or(rest);
    let letter = rest.chars().next().filter(char::is_ascii_alphabetic)?;
    let rest = &rest[1..];
    (rest.is_empty() || rest.starts_with('/')).then(|| format!("{}:/{rest}", letter.to_ascii_uppercase()))
}

fn from_segments(root: &str, base: &[&str], path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in base.iter().chain([&path]).flat_map(|part| part.split('/')) {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            name => segments.push(name),
        }
    }
    // A share has no slash at its end, a drive has one: `C:` alone would be the drive's working directory.
    match segments.is_empty() && root.starts_with("//") {
        true => root.trim_end_matches('/').to_owned(),
        false => format!("{root}{}", segments.join("/")),
    }
}
