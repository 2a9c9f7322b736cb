//! TLS proves the identity of members: in a build with the feature `tls-tests`.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

#[allow(dead_code, reason = "the program `promises` uses the rest")]
#[path = "../promises/meeting/mod.rs"]
mod meeting;

mod members_prove_who_they_are;
