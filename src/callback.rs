//! Listeners: weak thread-safe functions, so that a watched session never keeps Node alive.

use context_engine::{Engine, FileEvent, FileEventKind};
use napi::Status;
use napi::bindgen_prelude::{Env, Function};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};

use crate::types::WatchEvent;

type Listener = ThreadsafeFunction<WatchEvent, (), WatchEvent, Status, false, true>;

/// Subscribes a JavaScript listener and gives the function that ends the subscription.
pub fn subscribe<'env>(
    env: &'env Env,
    engine: Engine,
    listener: Function<'env, WatchEvent, ()>,
) -> napi::Result<Function<'env, (), ()>> {
    let listener: Listener = listener
        .build_threadsafe_function::<WatchEvent>()
        .callee_handled::<false>()
        .weak::<true>()
        .build()?;
    let number = engine.subscribe(move |event| {
        listener.call(converted(event), ThreadsafeFunctionCallMode::NonBlocking);
    });
    env.create_function_from_closure("unsubscribe", move |_| {
        engine.unsubscribe(number);
        Ok(())
    })
}

fn converted(event: &FileEvent) -> WatchEvent {
    let action = match event.kind {
        FileEventKind::Indexed(action) => action.as_str(),
        FileEventKind::Orphaned => "orphaned",
        FileEventKind::Warning => "warning",
    };
    WatchEvent {
        id: event.id.as_ref().map(ToString::to_string).unwrap_or_default(),
        path: event.path.clone(),
        action: action.to_owned(),
    }
}
