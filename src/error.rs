//! Errors with a stable `code`, for every method that returns a promise.

use context_engine::{EngineError, caught};
use context_model::error::ModelError;
use context_store::StoreError;
use context_store::transfer::TransferError;
use napi::bindgen_prelude::{Env, JsObjectValue as _, PromiseRaw, ToNapiValue};
use napi::{Error, JsValue as _};
use std::future::Future;
use std::task::{Context, Poll, Waker};

/// A core error on its way to JavaScript.
#[derive(Debug)]
pub(crate) struct Coded {
    code: &'static str,
    message: String,
}

/// The outcome of a call, before it is JavaScript's.
pub(crate) type Outcome<T> = Result<T, Coded>;

impl Coded {
    /// `INVALID_ARGUMENT` with a sentence.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self { code: "INVALID_ARGUMENT", message: message.into() }
    }

    /// `INTERNAL`: work of ours that ended before it was done.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { code: "INTERNAL", message: message.into() }
    }

    /// `CLOSED`, of a store.
    pub(crate) fn closed_store() -> Self {
        Self { code: "CLOSED", message: "the store is closed; open it again with Store.open".into() }
    }

    /// `CLOSED`.
    pub(crate) fn closed() -> Self {
        EngineError::Closed.into()
    }

    /// The JavaScript error with its `code`.
    pub(crate) fn into_napi(self, env: &Env) -> Error {
        let made = env.create_error(Error::from_reason(&self.message)).and_then(|mut error| {
            error.set_named_property("code", self.code)?;
            Ok(error.to_unknown())
        });
        match made {
            Ok(error) => Error::from(error),
            Err(error) => error,
        }
    }
}

macro_rules! coded {
    ($($error:ty),+) => {
        $(impl From<$error> for Coded {
            fn from(error: $error) -> Self {
                Self { code: error.code().as_str(), message: error.to_string() }
            }
        })+
    };
}

coded!(TransferError, EngineError, StoreError, ModelError);

/// Runs a future on the addon's runtime and gives its promise.
///
/// napi-rs rejects an `async fn` with a generic code only; a future with a callback may build the error that
/// JavaScript sees, so every asynchronous method goes through here.
pub(crate) fn promise<T: ToNapiValue + Send + 'static>(
    env: &Env,
    future: impl Future<Output = Outcome<T>> + Send + 'static,
) -> napi::Result<PromiseRaw<'_, T>> {
    spawned(env, caught(future, defect))
}

/// As [`promise`], for a call that needs only data in memory. It starts on the event loop's thread and usually ends there, because
/// waking another thread and being woken by it would take a hundred times as long.
pub(crate) fn prompt_promise<T: ToNapiValue + Send + 'static>(
    env: &Env,
    future: impl Future<Output = Outcome<T>> + Send + 'static,
) -> napi::Result<PromiseRaw<'_, T>> {
    let mut future = Box::pin(caught(future, defect));
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(value)) => PromiseRaw::resolve(env, value),
        Poll::Ready(Err(error)) => spawned(env, std::future::ready(Err(error))),
        // Another call holds the state; the runtime's own thread waits for it.
        Poll::Pending => spawned(env, future),
    }
}

fn spawned<T: ToNapiValue + Send + 'static>(
    env: &Env,
    future: impl Future<Output = Outcome<T>> + Send + 'static,
) -> napi::Result<PromiseRaw<'_, T>> {
    env.spawn_future_with_callback(async move { Ok(future.await) }, |env, outcome| {
        outcome.map_err(|error| error.into_napi(env))
    })
}

fn defect() -> Coded {
    Coded::failed(
        "a defect of pi-context-manager ended this call; what was acknowledged is stored: close this instance and \
         open the session again",
    )
}
