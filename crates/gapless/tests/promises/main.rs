//! The promises of this crate and its examples: one program, with a module for each promise, because linking a program
//! for each would take minutes more.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

/// Accounts and transfers of the example `bank`, with their tests.
#[path = "../../examples/bank/account.rs"]
mod account;
#[path = "../../examples/bank/transfer.rs"]
mod transfer;

mod ledger_fold;
mod ledger_process;

mod a_bank_on_a_cluster_outlives_its_leader;
mod a_command_bus_takes_bad_input;
mod a_killed_bank_keeps_what_it_has_accepted;
mod a_killed_client_books_each_deposit_once;
mod a_killed_ledger_loses_and_doubles_nothing;
mod a_ledger_refuses_bad_lines_with_their_reason;
mod a_ledger_says_what_is_wrong;
mod a_market_adds_up;
mod a_market_matches_by_price_and_time;
mod a_stopped_ledger_goes_on;
mod any_sequence_of_commands_is_as_its_model;
mod messages_of_a_schema_need_no_glue;
mod the_shipped_transfers_are_their_generators;
mod the_smallest_service_goes_on_counting;
