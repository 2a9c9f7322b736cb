//! Mutation tests: the simulator finds the mutants of a member and its service, and the model of a client those of a
//! client.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod a_clients_mutants_are_caught;
mod mutants_are_caught;
#[path = "../promises/what_a_client_is_told_is_true/mod.rs"]
mod what_a_client_is_told_is_true;
