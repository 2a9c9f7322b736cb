//! One program with a module for each promise, because linking a program for each would take minutes more.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

#[path = "../../examples/bank/account.rs"]
mod account;
#[path = "../../examples/bank/transfer.rs"]
mod transfer;

mod ledger_fold;
mod ledger_process;

mod bank_keeps_its_rules;
mod bank_survives_leader_loss;
mod bus_rejects_bad_input;
mod commands_match_the_model;
mod killed_bank_keeps_accepted;
mod killed_client_deposits_once;
mod killed_ledger_loses_nothing;
mod ledger_errors;
mod ledger_refuses_bad_lines;
mod market_adds_up;
mod market_price_time_priority;
mod schema_messages_without_glue;
mod shipped_transfers_match_generator;
mod smallest_service_resumes;
mod stopped_ledger_resumes;
