//! The store and session on which an instance is open. JavaScript makes the instance and then opens it, so that the
//! instance can belong to a subclass.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use napi::Result;
use napi::bindgen_prelude::{Env, PromiseRaw, ToNapiValue};
use tracing::{Instrument as _, Span};

use crate::error::{Coded, Outcome, promise, prompt_promise};

/// The state that an instance has while it is open.
pub(crate) trait Held: Clone + Send + 'static {
    /// `CLOSED`, of an instance that has none.
    fn closed() -> Coded;

    /// Returns the span under which the log files a call's steps.
    fn span(&self) -> Span {
        Span::none()
    }
}

/// The place of an instance's state while it is open: empty before that and after it.
pub(crate) struct Life<T>(Arc<Mutex<Option<T>>>);

impl<T: Held> Life<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// Opens the instance.
    pub(crate) fn begin<'e>(
        &self,
        env: &'e Env,
        opening: impl Future<Output = Outcome<T>> + Send + 'static,
    ) -> Result<PromiseRaw<'e, ()>> {
        let place = Arc::clone(&self.0);
        promise(env, async move {
            let opened = opening.await?;
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
            Ok(())
        })
    }

    /// Runs a call on the open instance. Fails with `CLOSED` inside the promise, never by throwing.
    pub(crate) fn call<'e, U, F>(
        &self,
        env: &'e Env,
        work: impl FnOnce(T) -> F + Send + 'static,
    ) -> Result<PromiseRaw<'e, U>>
    where
        F: Future<Output = Outcome<U>> + Send + 'static,
        U: ToNapiValue + Send + 'static,
    {
        promise(env, run(self.current(), work))
    }

    /// As `call`, for a call that needs only data in memory.
    pub(crate) fn call_promptly<'e, U, F>(
        &self,
        env: &'e Env,
        work: impl FnOnce(T) -> F + Send + 'static,
    ) -> Result<PromiseRaw<'e, U>>
    where
        F: Future<Output = Outcome<U>> + Send + 'static,
        U: ToNapiValue + Send + 'static,
    {
        prompt_promise(env, run(self.current(), work))
    }

    /// Ends the life, and runs the call that closes the instance's state. If it is not open, does nothing and resolves with
    /// undefined.
    pub(crate) fn end<'e, F, U>(
        &self,
        env: &'e Env,
        closing: impl FnOnce(T) -> F + Send + 'static,
    ) -> Result<PromiseRaw<'e, Option<U>>>
    where
        F: Future<Output = Outcome<U>> + Send + 'static,
        U: ToNapiValue + Send + 'static,
    {
        let Some(held) = self.place().take() else { return PromiseRaw::resolve(env, None) };
        let span = held.span();
        promise(env, async move { closing(held).await.map(Some) }.instrument(span))
    }

    pub(crate) fn current(&self) -> Outcome<T> {
        self.place().clone().ok_or_else(T::closed)
    }

    fn place(&self) -> MutexGuard<'_, Option<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a call on the instance's state, if it is open.
async fn run<T: Held, U, F: Future<Output = Outcome<U>>>(
    held: Outcome<T>,
    work: impl FnOnce(T) -> F,
) -> Outcome<U> {
    let held = held?;
    let span = held.span();
    work(held).instrument(span).await
}
