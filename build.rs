//! Sets the linker flags that a Node-API addon needs on this platform.

fn main() {
    napi_build::setup();
}
