//! Each is started, and keeps every core busy for a while. `cargo test -p gapless-load --test end_to_end` runs the
//! tests.

mod brokers_answer_and_clean_up;
#[cfg(feature = "kafka")]
mod run_topics_are_removed;
