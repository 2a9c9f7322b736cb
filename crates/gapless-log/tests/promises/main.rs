//! Promises of rings and windows: one program, with a module for each promise, because linking a program for each costs
//! more than running them all.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod a_corrupt_mapping_is_an_error_never_a_panic;
mod a_foreign_file_is_refused_with_its_field;
mod a_writer_finds_its_frames_again;
mod between_processes;
mod conformance;
