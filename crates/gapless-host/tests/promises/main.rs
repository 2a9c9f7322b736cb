//! Promises of hosts. One program, because linking one for each promise would take minutes more.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod clusters;
mod programs;

mod handles_share_one_host;
mod lagging_member_starts_again;
mod manual_time_fires_timers;
mod members_serve_clients;
mod nodes_join_streams;
mod places_run_every_program;
mod unfit_options_are_refused;
mod unfit_places_are_refused;
