//! Load generators, floors and benchmarks. Their reports are in `gapless-report`.
//!
//! | module | what lives there |
//! |---|---|
//! | [`roles`] | the work of each child process of a benchmark |
//! | [`compare`] | `gapless bench compare`: whether one build is slower than another |
//! | [`components`] | `gapless bench serialization`, `log`, `messaging`, `persistence` and `time` |
//! | [`canonical`] | `gapless bench canonical` |
//! | [`options`] | every option of `gapless bench canonical`, parsed and validated |
//! | [`sequencer`] | `gapless bench sequencer`: nodes and a sequencer, over every transport |
//! | [`failover`] | `gapless bench failover`: the outage that clients see while members die and the lead changes |
//! | [`floor`] | the floors of the machine itself, measured in the same run |
//! | `open_loop` | when a message is due (open loop), the warm-up, whether the asked rate was reached |
//! | `statistics` | the median, and the interval of a ratio from pairs |
//! | `own_directory` | a directory that a benchmark makes for itself, and removes |
//! | `child_process` | a process that a benchmark starts, and how the two speak |
//! | `time_sources` | clocks that can be read, and their cost |
//! | `histogram` | latencies: recording, percentiles, intervals, `.hlog` files |
//! | `resources` | CPU time and memory of a process |
//! | `error` | [`BenchError`] |
//!
//! `unsafe` lives in [`floor`] alone, in the module that maps memory.

#![deny(unsafe_code)]

pub mod canonical;
mod child_process;
pub mod compare;
pub mod components;
mod error;
pub mod failover;
pub mod floor;
mod histogram;
mod open_loop;
pub mod options;
mod own_directory;
mod resources;
pub mod roles;
pub mod sequencer;
mod statistics;
mod time_sources;

pub use error::{BenchError, Result};
