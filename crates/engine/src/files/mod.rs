//! Files: looking at them, deciding what a look means, tracking them, and knowing which version the model knows.

pub mod difference;
pub mod due;
pub mod index;
pub mod known;
pub mod many;
pub mod observed;
pub mod reading;
pub mod reconcile;
pub mod seen;
pub mod stamps;
pub mod tracking;
