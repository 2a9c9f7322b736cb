#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod any_bytes_decode_safely;
mod generated_sources_are_current;
mod golden_bytes_match;
mod groups_follow_the_schema;
mod names_and_widths_are_accepted;
mod objects_are_messages;
mod protobuf_matches_prost;
