//! What clusters promise and only a build with features can show: a planted defect of the core is found, and members
//! prove by TLS who they are.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

#[allow(dead_code, reason = "the program `promises` uses the rest")]
#[path = "../promises/meeting/mod.rs"]
mod meeting;

mod members_prove_who_they_are;
#[path = "../promises/what_a_quorum_has_is_kept/mod.rs"]
mod what_a_quorum_has_is_kept;
