//! The promises of the brokers beside which calls are measured: each is started, and keeps every core busy for a while.
//! `cargo test -p gapless-load --test crowds` runs them.

mod a_broker_answers_and_leaves_nothing;
#[cfg(feature = "kafka")]
mod topics_of_a_run_end_with_it;
