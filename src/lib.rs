//! The napi binding.
