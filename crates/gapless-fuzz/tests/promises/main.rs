//! Promises of decoders for any input: one program, with a module for each promise.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod mutation;

mod hostile_bytes_break_no_decoder;
