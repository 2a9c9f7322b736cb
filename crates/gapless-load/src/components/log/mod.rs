//! Ring and window between two processes.

pub mod endpoints;
pub mod partner;
pub mod sending;
