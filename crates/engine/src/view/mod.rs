//! The canonical view of the specification

pub mod assembled;
pub mod sections;
pub mod turn;
