//! One program for all promises, because linking one for each would take minutes more.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod client_replies_are_true;
mod clusters_keep_invariants;
mod differing_replicas_are_found;
mod handler_faults_name_commands;
mod process_dependence_is_found;
