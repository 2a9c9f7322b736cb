//! What copies of a service promise and only a build with crash points can show: one of them is killed at each.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

#[allow(dead_code, reason = "the program `promises` uses the rest")]
#[path = "../promises/replicas/mod.rs"]
mod replicas;

#[path = "../promises/a_member_too_far_behind_gets_a_snapshot.rs"]
mod a_member_too_far_behind_gets_a_snapshot;
