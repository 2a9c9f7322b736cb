//! Needs the feature `tls-tests`.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

#[allow(dead_code, reason = "the program `promises` uses the rest")]
#[path = "../promises/linked_members/mod.rs"]
mod linked_members;

mod members_are_authenticated;
