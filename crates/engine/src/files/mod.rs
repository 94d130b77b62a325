//! Files: looking at them, deciding what a look means, tracking them, and knowing what the model was told about them.

pub mod archive;
pub mod difference;
pub mod due;
pub mod evidence;
pub mod in_flight;
pub mod index;
pub mod known;
pub mod many;
pub mod observed;
pub mod reading;
pub mod reconcile;
pub mod recorded;
pub mod said;
pub mod seen;
pub mod stamps;
pub mod tracking;
pub mod written;
