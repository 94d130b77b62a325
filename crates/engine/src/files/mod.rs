//! Files: looking at them, deciding what a look means, tracking them, and knowing what the model was told about them.

pub mod due;
pub mod index;
pub mod many;
pub mod observed;
pub mod reading;
pub mod reconcile;
pub mod recorded;
pub mod seen;
pub mod stamps;
pub mod tracking;
