//! The promises of the generator. Those of generated messages are in `gapless-schema-tests`, which compiles them.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod bad_schemas_are_refused_with_their_place;
mod what_others_would_misread_is_refused;
