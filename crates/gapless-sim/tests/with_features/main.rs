//! Tests that need a build with features: the simulator finds the defects that are planted in a member and its service,
//! and the model of a client those in a client.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod a_clients_mutants_are_caught;
mod mutants_are_caught;
#[path = "../promises/what_a_client_is_told_is_true/mod.rs"]
mod what_a_client_is_told_is_true;
