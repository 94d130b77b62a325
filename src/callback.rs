//! Listeners: weak thread-safe functions, so that a watched session never keeps Node alive.

use context_engine::{Engine, FileEvent, FileEventKind};
use napi::Status;
use napi::bindgen_prelude::{Env, Function};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};

use crate::types::WatchEvent;

type Listener = ThreadsafeFunction<WatchEvent, (), WatchEvent, Status, false, true>;

/// Subscribes a JavaScript listener to files that have changed, or to those that were `touched` and not read yet, and gives the
/// function that ends the subscription.
pub(crate) fn subscribe<'e>(
    env: &'e Env,
    engine: Engine,
    listener: Function<'e, WatchEvent, ()>,
    touched: bool,
) -> napi::Result<Function<'e, (), ()>> {
    let call = calling(listener)?;
    let number = if touched { engine.subscribe_touches(call) } else { engine.subscribe(call) };
    env.create_function_from_closure("unsubscribe", move |_| {
        if touched {
            engine.unsubscribe_touches(number);
        } else {
            engine.unsubscribe(number);
        }
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
