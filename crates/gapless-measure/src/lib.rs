//! What every benchmark measures with. Nothing here knows what is measured.
//!
//! | module | what lives there |
//! |---|---|
//! | [`reporting`] | from a measurement to its report, interrupted or not |
//! | [`turns`] | one row of several turns |
//! | [`floor`] | the floors of the machine itself, measured in the same run |
//! | [`time_sources`] | clocks that can be read, and their cost |
//! | [`histogram`] | latencies: recording, percentiles, intervals, `.hlog` files |
//! | [`open_loop`] | when a message is due (open loop), the warm-up, whether the asked rate was reached |
//! | [`statistics`] | the median, and the interval of a ratio from pairs |
//! | [`resources`] | CPU time and memory of a process |
//! | [`child_process`] | a process that a benchmark starts, and how the two speak |
//! | [`own_directory`] | a directory that a benchmark makes for itself, and removes |
//! | `error` | [`BenchError`] |
//!
//! `unsafe` lives in [`floor`] alone, in the module that maps memory.

#![deny(unsafe_code)]

pub mod child_process;
mod error;
pub mod floor;
pub mod histogram;
pub mod open_loop;
pub mod own_directory;
pub mod reporting;
pub mod resources;
pub mod statistics;
pub mod time_sources;
pub mod turns;

pub use error::{BenchError, Result};
