//! One program, because linking one for each promise costs more than running them all.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod between_processes;
mod conformance;
mod corrupt_mapping_is_error;
mod foreign_file_is_refused;
mod writer_reads_its_frames;
