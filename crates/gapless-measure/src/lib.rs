//! Measuring and reporting, for every benchmark.
//!
//! | module | what lives there |
//! |---|---|
//! | [`turns`] | measuring in turns: one row of several |
//! | [`reporting`] | from a measurement to its report, interrupted or not |
//! | [`floor`] | the floors of the machine itself, measured in the same run |
//! | [`time_sources`] | clocks that can be read, and their cost |
//! | [`histogram`] | latencies: recording, percentiles, intervals, `.hlog` files |
//! | [`open_loop`] | when a message is due (open loop), the warm-up, whether the asked rate was reached |
//! | [`statistics`] | the median, and the interval of a ratio from pairs |
//! | [`resources`] | CPU time and memory of a process |
//! | [`child_process`] | a process that a benchmark starts, and how the two speak |
//! | [`own_directory`] | a directory that a benchmark makes for itself, and removes |
//! | [`plot`] | charts over time, and curves, as SVG |
//! | [`table`] | tables of figures, floors and references |
//! | [`published`] | figures of others, to be printed next to ours |
//! | `numbers` | numbers as text |
//! | `extent` | how much of a benchmark is measured |
//! | [`workbook`] | Excel output |
//! | `output_file` | whether a file can be written, before a long run |
//! | `report` | the JSON object, as types |
//! | [`progress`] | progress bar and lines on stderr |
//! | [`environment`] | the machine, the kernel and the commit that a figure belongs to |
//! | [`affinity`] | which CPUs there are, and pinning the calling thread |
//! | `error` | [`BenchError`] |
//!
//! `unsafe` lives in [`floor`] alone, in the module that maps memory.

#![deny(unsafe_code)]

pub mod affinity;
pub mod child_process;
pub mod environment;
mod error;
mod extent;
pub mod floor;
pub mod histogram;
mod numbers;
pub mod open_loop;
mod output_file;
pub mod own_directory;
pub mod plot;
pub mod progress;
pub mod published;
mod report;
pub mod reporting;
pub mod resources;
pub mod statistics;
pub mod table;
pub mod time_sources;
pub mod turns;
pub mod workbook;

pub use error::{BenchError, Result};
pub use extent::RunExtent;
pub use output_file::output_file;
pub use report::{CpuPerMessage, FAILED, FloorRow, IntervalRow, LatencyNs, Report, Row, RowConfig};
