//! A PostgreSQL of the test's own, on loopback, as a user without privileges.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// The user that a superuser's test runs it as; PostgreSQL refuses root.
const USER_ID: &str = "65534";

/// A running server; it ends when dropped.
pub struct Postgres {
    child: Child,
    port: u16,
    _place: tempfile::TempDir,
}

impl Postgres {
    /// Starts one, or says why that can't be.
    pub fn start() -> Result<Self, String> {
        let binaries = binaries().ok_or("PostgreSQL is not installed in /usr/lib/postgresql")?;
        let place = tempfile::tempdir().map_err(|e| e.to_string())?;
        let data = place.path().join("data");
        std::fs::create_dir(&data).map_err(|e| e.to_string())?;
        let is_root = Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout == b"0\n");
        if is_root {
            run(Command::new("chmod").arg("711").arg(place.path()))?;
            run(Command::new("chown").arg(USER_ID).arg(&data))?;
        }
        let command = |name: &str| {
            let mut command = match is_root {
                true => {
                    let mut command = Command::new("setpriv");
                    command.args(["--reuid", USER_ID, "--regid", USER_ID, "--clear-groups"]);
                    command.arg(binaries.join(name));
                    command
                }
                false => Command::new(binaries.join(name)),
            };
            command.current_dir("/").env("LC_ALL", "C").stdin(Stdio::null());
            command
        };
        run(command("initdb").arg("-D").arg(&data).args([
            "-U",
            "xtdb",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
        ]))?;
        let port = super::free_port();
        let mut server = command("postgres");
        server.arg("-D").arg(&data).args(["-h", "127.0.0.1", "-p", &port.to_string()]);
        server.args(["-F", "-c", "unix_socket_directories="]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = server.spawn().map_err(|e| e.to_string())?;
        let stderr = child.stderr.take().ok_or("no pipe")?;
        let (say, heard) = channel();
        std::thread::spawn(move || {
            let mut log = Vec::new();
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if line.contains("ready to accept connections") {
                    let _ = say.send(None);
                }
                log.push(line);
            }
            let _ = say.send(Some(log.join("\n")));
        });
        let started = Self { child, port, _place: place };
        match heard.recv_timeout(Duration::from_secs(60)) {
            Ok(None) => Ok(started),
            Ok(Some(log)) => Err(format!("PostgreSQL ended at its start: {log}")),
            Err(_) => Err("PostgreSQL does not start".to_owned()),
        }
    }

    /// The address at which a node finds it.
    pub fn kind(&self) -> super::Kind {
        super::Kind::Postgres(self.port, "postgres".into(), "xtdb".into())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // SIGINT ends its connections and all its processes.
        let _ = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
    }
}

fn binaries() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<PathBuf> = versions.flatten().map(|entry| entry.path().join("bin")).collect();
    found.retain(|path: &PathBuf| Path::new(&path.join("postgres")).is_file());
    found.sort();
    found.pop()
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|e| e.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}
