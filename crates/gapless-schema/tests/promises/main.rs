//! The promises of generated messages are in `gapless-schema-tests`, which compiles them.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod ambiguous_schemas_are_refused;
mod bad_schemas_are_refused;
