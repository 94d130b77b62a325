//! The tracker of local files: the system's events, filtered, merged and delivered on one thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

use crate::attach::{Attachments, Report};
use crate::inbox::{Batch, Cause, Inbox, Urgency};
use crate::listen::{Listener, Markers};
use crate::native::{Native, Watcher};
use crate::plan::Presence;
use crate::{Acknowledge, Event, Flush, Sink, Tracked, Tracker, TrackerStatus, WatchError, identity};

/// Settings of a [`NotifyTracker`].
#[derive(Clone, Debug)]
pub struct TrackerOptions {
    /// A directory of the product's own on a local disk, made with mode 0700 if it is missing; several trackers
    /// and processes may share it. [`Tracker::flush`] makes and removes an empty directory there, whose event
    /// shows that all earlier events came through. Without it a flush costs a rescan. Default: none.
    pub marker_directory: Option<Utf8PathBuf>,
    /// Number of changed paths that may wait for a busy sink before one [`Event::Rescan`] replaces them. Default: 16,384,
    /// as many as the Linux kernel keeps.
    pub capacity: usize,
    /// Time for which a change that is probably not complete waits to be completed: a file still open for writing, a
    /// removal, a new mode. Default: 50 ms.
    pub settle: Duration,
    /// Interval at which files that can't be watched are checked; longer if checking takes more than a twentieth of it.
    /// Default: 2 s.
    pub poll_interval: Duration,
    /// Check all files at intervals and watch none, for file systems that make no events (network mounts).
    /// Default: false.
    pub always_poll: bool,
}

impl Default for TrackerOptions {
    fn default() -> Self {
        Self {
            marker_directory: None,
            capacity: 16_384,
            settle: Duration::from_millis(50),
            poll_interval: Duration::from_secs(2),
            always_poll: false,
        }
    }
}

/// The [`Tracker`] of sources of type `filesystem`, over the operating system's file events.
///
/// It watches the parent directories of tracked paths, never recursively, and their ancestors, so that a
/// directory that is removed, made again, moved away or back, or replaced by a file is followed. Watching
/// costs nothing while nothing happens; a timer runs only while something is polled.
pub struct NotifyTracker {
    shared: Arc<TrackerShared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl NotifyTracker {
    /// Starts a tracker that delivers to `sink` on its own thread.
    ///
    /// If the operating system's watcher can't be opened, everything is polled and the sink is warned.
    ///
    /// # Errors
    /// [`WatchError::Thread`] if the thread can't be started.
    pub fn start(options: TrackerOptions, sink: impl Sink) -> Result<Self, WatchError> {
        let open = |listener| Watcher::open(listener).map(|native| Box::new(native) as Box<dyn Native>);
        Self::start_with(options, sink, open)
    }

    pub(crate) fn start_with(
        options: TrackerOptions,
        sink: impl Sink,
        open: impl FnOnce(Arc<Listener>) -> Result<Box<dyn Native>, String>,
    ) -> Result<Self, WatchError> {
        let markers =
            options.marker_directory.clone().filter(|_| !options.always_poll).and_then(|directory| {
                // Process numbers repeat across containers that share the directory; random numbers don't.
                Some(Markers { directory, prefix: format!("flush-{:016x}-", getrandom::u64().ok()?) })
            });
        let inbox = Inbox::new(options.capacity, options.settle);
        let listener = Arc::new(Listener::new(inbox, markers, sink.touch()));
        let native = if options.always_poll { None } else { open_or_warn(&listener, open) };
        let shared = Arc::new(TrackerShared {
            attachments: Mutex::new(Attachments::new(Arc::clone(&listener), native)),
            listener,
            flushes: AtomicU64::new(0),
            poll_interval: options.poll_interval,
        });
        shared.pin_markers();
        let working = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("context-watch".to_owned())
            .spawn(move || working.work(sink))
            .map_err(|error| WatchError::Thread { reason: error.to_string() })?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }
}

impl NotifyTracker {
    /// As [`Tracker::flush`], for a member of a shared tracker.
    pub(crate) fn flush_for(&self, member: u64) -> Flush {
        let (flush, acknowledge) = Acknowledge::pair_for(member);
        let number = self.shared.flushes.fetch_add(1, Ordering::Relaxed);
        let inbox = &self.shared.listener.inbox;
        inbox.await_marker(number, acknowledge);
        if inbox.is_closed() || self.shared.mark(number) {
            return flush;
        }
        // Polled paths are checked before any flush is answered; only watches leave events in a queue.
        let (watched, ..) = self.shared.listener.plan().counts();
        inbox.answer(number, watched > 0);
        flush
    }
}

impl Tracker for NotifyTracker {
    fn track(&self, path: &Utf8Path) -> Result<Tracked, WatchError> {
        if !is_trackable(path) {
            return Err(WatchError::InvalidPath { path: path.to_owned() });
        }
        let mut attachments = self.shared.attachments();
        if self.shared.listener.inbox.is_closed() {
            return Err(WatchError::Closed);
        }
        let (presence, report) = attachments.track(path);
        self.shared.pass_on(&attachments, report);
        Ok(match presence {
            Some(Presence::Watched(_)) => Tracked::Watched,
            Some(Presence::Polled(_)) => Tracked::Polled,
            Some(Presence::Absent | Presence::Idle(_)) | None => Tracked::Waiting,
        })
    }

    fn untrack(&self, path: &Utf8Path) {
        let mut attachments = self.shared.attachments();
        let report = attachments.untrack(path);
        self.shared.pass_on(&attachments, report);
    }

    fn flush(&self) -> Flush {
        self.flush_for(0)
    }

    fn status(&self) -> TrackerStatus {
        let inbox = &self.shared.listener.inbox;
        let (rescans, closed) = (inbox.rescans(), inbox.is_closed());
        let plan = self.shared.listener.plan();
        let (watched_directories, polled_directories, missing_directories) = plan.counts();
        TrackerStatus {
            tracked: plan.tracked(),
            watched_directories,
            polled_directories,
            missing_directories,
            rescans,
            closed,
        }
    }

    fn close(&self) {
        self.shared.listener.inbox.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id()) {
            // The thread catches the sink's panics, so there is none to pass on.
            let _ = thread.join();
        }
        self.shared.attachments().close();
    }
}

impl Drop for NotifyTracker {
    fn drop(&mut self) {
        self.close();
    }
}

struct TrackerShared {
    listener: Arc<Listener>,
    attachments: Mutex<Attachments>,
    flushes: AtomicU64,
    poll_interval: Duration,
}

impl TrackerShared {
    fn attachments(&self) -> MutexGuard<'_, Attachments> {
        self.attachments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread's life: wait, look, deliver.
    fn work(&self, sink: impl Sink) {
        let mut outlet = Outlet::new(sink);
        while let Some(mut batch) = self.listener.inbox.take() {
            self.prepare(&mut batch);
            self.deliver(batch, &mut outlet);
        }
    }

    /// Follows directories, polls the due ones, and adds the findings to the batch.
    fn prepare(&self, batch: &mut Batch) {
        let mut report = Report::default();
        let mut attachments = self.attachments();
        if batch.lost {
            attachments.renew(&mut report);
        } else {
            let causes = batch.directories.iter().map(|(path, cause)| (path.as_path(), *cause));
            attachments.look_at(causes, &mut report);
            if self
                .listener
                .markers
                .as_ref()
                .is_some_and(|markers| markers.are_touched_by(&batch.directories))
            {
                // A marker made before the directory was attached again has not been announced.
                self.listener.inbox.answer_all();
            }
        }
        if (batch.poll || !batch.flushes.is_empty()) && attachments.is_polling() {
            let start = Instant::now();
            attachments.poll(&mut report);
            let interval = self.poll_interval.max(start.elapsed() * 20);
            if attachments.is_polling() {
                self.listener.inbox.poll_after(interval);
            }
        }
        self.ensure_poll(&attachments);
        drop(attachments);
        batch.warnings.append(&mut report.warnings);
        if !batch.rescan {
            batch.changed.extend(report.changed);
            if batch.changed.len() > self.listener.inbox.capacity() {
                self.listener.inbox.count_rescan();
                batch.rescan = true;
            }
        }
    }

    fn deliver(&self, batch: Batch, outlet: &mut Outlet<impl Sink>) {
        let inbox = &self.listener.inbox;
        for event in batch.into_events() {
            match event {
                Event::Flush(flush) if inbox.is_closed() => flush.fail(WatchError::Closed),
                _ if inbox.is_closed() => {}
                event => outlet.deliver(event),
            }
        }
    }

    /// Hands the findings of a call to the thread.
    fn pass_on(&self, attachments: &Attachments, report: Report) {
        for path in &report.changed {
            self.listener.inbox.changed(path, Urgency::Now);
        }
        for warning in report.warnings {
            self.listener.inbox.warn(warning);
        }
        self.ensure_poll(attachments);
    }

    fn ensure_poll(&self, attachments: &Attachments) {
        if attachments.is_polling() {
            self.listener.inbox.poll_after(self.poll_interval);
        }
    }

    /// Makes a flush's marker. False if its event would not come.
    fn mark(&self, number: u64) -> bool {
        let Some(markers) = &self.listener.markers else { return false };
        let presence = self.listener.plan().presence(&markers.directory);
        let found = identity::of(&markers.directory);
        if found.is_none() || presence != found.map(Presence::Watched) {
            self.pin_markers();
            return false;
        }
        let marker = markers.directory.join(format!("{}{number}", markers.prefix));
        match std::fs::create_dir(&marker) {
            Ok(()) => {
                if let Err(error) = std::fs::remove_dir(&marker) {
                    tracing::warn!(%marker, %error, "a flush marker was left behind");
                }
                true
            }
            Err(error) => {
                tracing::debug!(%marker, %error, "a flush falls back to a rescan");
                false
            }
        }
    }

    /// Makes and watches the directory of the markers, if there is to be one.
    fn pin_markers(&self) {
        let Some(markers) = &self.listener.markers else { return };
        if let Err(error) = context_platform::private_directory(markers.directory.as_std_path()) {
            tracing::debug!(directory = %markers.directory, %error, "flushes fall back to rescans");
        }
        self.listener.plan().pin(&markers.directory);
        let mut attachments = self.attachments();
        let mut report = Report::default();
        attachments.look_at(std::iter::once((markers.directory.as_path(), Cause::Lost)), &mut report);
        self.pass_on(&attachments, report);
    }
}

/// The sink, whose panics must not end the tracker.
pub(crate) struct Outlet<S> {
    sink: S,
    failed: bool,
}

impl<S: Sink> Outlet<S> {
    pub(crate) fn new(sink: S) -> Self {
        Self { sink, failed: false }
    }

    pub(crate) fn deliver(&mut self, event: Event) {
        self.try_deliver(event);
        // The state of the sink is unknown. Try only once, because it may panic again.
        if std::mem::take(&mut self.failed) {
            self.try_deliver(Event::Rescan);
            self.failed = false;
        }
    }

    fn try_deliver(&mut self, event: Event) {
        let sink = &mut self.sink;
        if catch_unwind(AssertUnwindSafe(|| sink.deliver(event))).is_err() {
            tracing::error!("the receiver of file events panicked; it is told to look at all files");
            self.failed = true;
        }
    }
}

fn open_or_warn(
    listener: &Arc<Listener>,
    open: impl FnOnce(Arc<Listener>) -> Result<Box<dyn Native>, String>,
) -> Option<Box<dyn Native>> {
    match open(Arc::clone(listener)) {
        Ok(native) => Some(native),
        Err(reason) => {
            listener.inbox.warn(format!(
                "File watching can't be started ({reason}); files are checked at intervals instead, so their \
                 changes are seen later. Close other programs that watch files, or raise the limit (on Linux: \
                 sysctl fs.inotify.max_user_instances)."
            ));
            None
        }
    }
}

fn is_trackable(path: &Utf8Path) -> bool {
    // Iterating over components would hide doubled and trailing separators and inner dots. On Windows a canonical path
    // starts with a prefix of three separators, which is skipped.
    let prefix = if cfg!(windows) { 4 } else { 1 };
    let mut names = path.as_str().split(std::path::is_separator).skip(prefix);
    path.is_absolute()
        && path.file_name().is_some()
        && names.all(|name| !matches!(name, "" | "." | "..") && !name.contains('\0'))
}
