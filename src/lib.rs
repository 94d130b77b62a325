//! The napi binding.

mod outputs;
