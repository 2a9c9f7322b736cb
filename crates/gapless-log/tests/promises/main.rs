//! Promises of rings and windows: one program, with a module for each promise, because linking a program for each costs
//! more than running them all.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod between_processes;
mod conformance;
mod corrupt_mapping_is_error;
mod foreign_file_is_refused;
mod writer_reads_its_frames;
