//! Promises of bridges: cores over topics in memory, on virtual time.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod world;

mod bridges_come_and_go;
mod calls_have_one_outcome;
mod clients_fail;
mod foreign_programs_call;
mod limits_hold;
mod routes_are_chosen;
mod segments_come_whole;
mod status_is_true;
