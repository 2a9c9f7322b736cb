//! Many aggregates.

pub mod bus_process;
pub mod spread;
