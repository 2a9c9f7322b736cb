//! Promises of the simulator and of whole clusters in it: one program with a module for each promise, because linking a
//! program for each would take minutes more.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod a_handlers_fault_is_told_with_its_command;
mod replicas_that_differ_are_found;
mod what_a_client_is_told_is_true;
mod what_one_process_hides_is_found;
mod whole_clusters_keep_their_promises;
