#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod mutation;

mod hostile_bytes_break_no_decoder;
