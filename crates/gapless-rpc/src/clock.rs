//! The clock of deadlines.

pub(crate) use gapless_agent::monotonic::monotonic_ns;
