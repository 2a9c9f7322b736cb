#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod client_mutants_are_caught;
#[path = "../promises/client_replies_are_true/mod.rs"]
mod client_replies_are_true;
mod mutants_are_caught;
