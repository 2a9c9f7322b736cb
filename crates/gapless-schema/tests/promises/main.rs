//! What the generator promises; what generated messages promise is in `gapless-schema-tests`, where they are compiled.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod bad_schemas_are_refused_with_their_place;
mod what_others_would_misread_is_refused;
