//! Sets the linker flags that a Node-API addon needs on this platform.

use std::env;

fn main() {
    let target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    // On Windows the addon looks Node's functions up when it is loaded. Only a linker that links to Node needs the
    // `libnode.dll` that `setup` asks for.
    if target("OS") != "windows" {
        napi_build::setup();
    }
}
