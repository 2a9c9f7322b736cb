//! The promises of generated messages: one program, with a module for each promise, because linking a program for each
//! costs more than running them all.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod any_bytes_are_safe_to_decode;
mod any_name_and_width_is_taken;
mod generated_sources_are_current;
mod golden_bytes_are_read_and_written;
mod groups_and_data_follow_the_schema;
mod protobuf_is_what_prost_writes;
