//! Listeners: weak thread-safe functions, so that a watched session never keeps Node alive.

use context_engine::{Engine, FileEvent, FileEventKind};
use napi::Status;
use napi::bindgen_prelude::{Env, Function};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};

use crate::types::WatchEvent;

type Listener = ThreadsafeFunction<WatchEvent, (), WatchEvent, Status, false, true>;

/// Subscribes a JavaScript listener and gives the function that ends the subscription.
pub fn subscribe<'e>(
    env: &'e Env,
    engine: Engine,
    listener: Function<'e, WatchEvent, ()>,
) -> napi::Result<Function<'e, (), ()>> {
    let number = engine.subscribe(calling(listener)?);
    env.create_function_from_closure("unsubscribe", move |_| {
        engine.unsubscribe(number);
        Ok(())
    })
}

/// As [`subscribe`] for files that were touched and not read yet.
pub fn subscribe_touches<'e>(
    env: &'e Env,
    engine: Engine,
    listener: Function<'e, WatchEvent, ()>,
) -> napi::Result<Function<'e, (), ()>> {
    let number = engine.subscribe_touches(calling(listener)?);
    env.create_function_from_closure("unsubscribe", move |_| {
        engine.unsubscribe_touches(number);
        Ok(())
    })
}

fn calling(
    listener: Function<'_, WatchEvent, ()>,
) -> napi::Result<impl Fn(&FileEvent) + Send + Sync + 'static> {
    let listener: Listener = listener
        .build_threadsafe_function::<WatchEvent>()
        .callee_handled::<false>()
        .weak::<true>()
        .build()?;
    Ok(move |event: &FileEvent| {
        listener.call(converted(event), ThreadsafeFunctionCallMode::NonBlocking);
    })
}

fn converted(event: &FileEvent) -> WatchEvent {
    let action = match event.kind {
        FileEventKind::Touched => "touched",
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
