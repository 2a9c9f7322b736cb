//! Promises of the brokers that calls are compared with. Each is started, and keeps every core busy for a while. `cargo
//! test -p gapless-load --test crowds` runs the tests.

mod a_broker_answers_and_leaves_nothing;
#[cfg(feature = "kafka")]
mod topics_of_a_run_end_with_it;
