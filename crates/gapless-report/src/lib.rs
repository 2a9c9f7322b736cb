//! Everything that a benchmark reports: the report, the machine that it belongs to, and the forms that people read.
//!
//! | module | what lives there | feature |
//! |---|---|---|
//! | [`plot`] | charts over time, and curves, as SVG | `plots` |
//! | [`table`] | its tables | `tables`: lines around the cells |
//! | [`published`] | figures of others, to be printed beside ours | – |
//! | [`workbook`] | Excel output | `workbooks` |
//! | `output_file` | whether a file can be written, before a long run | – |
//! | `report` | the JSON object, as types | – |
//! | [`progress`] | progress bar and lines on stderr | `progress`: the bar |
//! | [`environment`] | the machine, the kernel and the commit that a figure belongs to | – |
//! | [`affinity`] | which CPUs there are, and pinning the calling thread | – |
//! | `error` | [`ReportError`] | – |
//!
//! Nothing here measures. No other crate of the workspace is imported, and no function is generic: all of it is compiled
//! once, early, beside the engine, and not again in the benchmarks that call it. A function whose feature is not built
//! refuses with [`ReportError::Feature`], and its module's `check` does so before a long run.

#![forbid(unsafe_code)]

pub mod affinity;
pub mod environment;
mod error;
mod output_file;
pub mod plot;
pub mod progress;
pub mod published;
mod report;
pub mod table;
pub mod workbook;

pub use error::{ReportError, Result};
pub use output_file::output_file;
pub use report::{CpuPerMessage, FAILED, FloorRow, IntervalRow, LatencyNs, Report, Row, RowConfig};
