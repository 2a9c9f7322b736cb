//! Promises of messages, a module for each.

mod any_bytes_are_a_message_or_an_error;
mod any_message_may_grow;
mod every_change_of_a_type_is_noticed;
mod every_value_comes_back;
mod functions_are_served_and_called;
mod old_and_new_programs_understand_each_other;

use gapless_rpc::Message;
use gapless_testkit::random::rounds;
use proptest::test_runner::Config;

fn encoded<M: Message>(message: &M) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes).unwrap();
    bytes
}

/// An eighth of proptest's cases, or all with `GAPLESS_FULL`.
fn cases() -> Config {
    let config = Config::default();
    let fewer = (config.cases / 8).max(1);
    Config { cases: rounds(config.cases.into(), fewer.into()) as u32, ..config }
}
