//! A log for finding the cause of a slow turn: one line for each call that ended and each of its steps, with the time that
//! it took. Off unless the environment names a file.

use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The variable that names the file. Lines are appended, so that several processes can share it.
const FILE: &str = "PI_CONTEXT_LOG";

/// The variable with the level: `error`, `warn`, `info`, `debug` (the default) or `trace`.
const LEVEL: &str = "PI_CONTEXT_LOG_LEVEL";

/// Starts the log if the environment asks for one. A file that can't be opened costs one line on standard error and
/// nothing else.
pub(crate) fn start() {
    let Some(path) = env::var_os(FILE).filter(|path| !path.is_empty()) else { return };
    let path = Path::new(&path);
    match opened(path) {
        Ok(file) => {
            let level =
                env::var(LEVEL).ok().and_then(|level| level.parse().ok()).unwrap_or(LevelFilter::DEBUG);
            let lines = tracing_subscriber::fmt::layer()
                .with_writer(Mutex::new(file))
                .with_ansi(false)
                .with_span_events(FmtSpan::CLOSE)
                .with_filter(Targets::new().with_target("context", level));
            // A second copy of this addon in the process finds the log started.
            let _already = tracing_subscriber::registry().with(lines).try_init();
        }
        Err(error) => {
            let _lost = writeln!(
                std::io::stderr(),
                "pi-context-manager: no log: {} can't be opened: {error}; {FILE} names the file",
                path.display(),
            );
        }
    }
}

fn opened(path: &Path) -> std::io::Result<std::fs::File> {
    context_platform::private_file(OpenOptions::new().append(true).create(true), path)
}
