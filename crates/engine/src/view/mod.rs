//! The canonical view of SSOT 4.1.

pub mod assembled;
pub mod sections;
pub mod turn;
