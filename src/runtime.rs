//! The loading of the addon: its log starts, if one is wanted, and its own small tokio runtime. Two workers suffice,
//! because the work is one session's.

use napi::bindgen_prelude::create_custom_tokio_runtime;

#[napi_derive::module_init]
fn init() {
    crate::log::start();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(32)
        .thread_name("context-manager")
        .enable_all()
        .build();
    // Without an own runtime napi makes its default one, which works as well.
    if let Ok(runtime) = runtime {
        create_custom_tokio_runtime(runtime);
    }
}
