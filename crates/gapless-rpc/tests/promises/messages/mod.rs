mod decoders_never_panic;
mod functions_become_routes;
mod messages_may_grow;
mod type_changes_are_detected;
mod values_round_trip;
mod versions_interoperate;

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
