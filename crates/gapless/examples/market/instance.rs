//! An instance of the matching service as a process. All instances publish under one token, so that their common output
//! is in the stream once; each publishes its standing under a token of its own.

use crate::matching::Market;
use crate::messages::AskStanding;
use crate::{Failure, Lifeline, say, stream};
use gapless::prelude::*;

const TOKEN: u128 = 0x6d61_726b_6574;
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

pub fn run(name: &str, lifeline: &Lifeline) -> Result<(), Failure> {
    let host = Host::on_stream(stream::FILE).token(TOKEN).directory(name).snapshot_every(10_000);
    let host = host.service(Market::default()).start()?;
    say(name, format!("its snapshot is at sequence {}", host.status().recovered.snapshot_sequence));
    let standing = loop {
        if lifeline.is_finished() {
            return Ok(());
        }
        let standing = host.query(&AskStanding)?;
        if standing.is_closed {
            break standing;
        }
        std::thread::sleep(LOOK_INTERVAL);
    };
    say(name, format!("{} trades, state {:016x} at sequence {}", standing.trades, standing.fingerprint, host.stop()?));

    let config = StreamConfig::load(stream::FILE)?;
    let mut node = StreamNode::new(config.link()?, config.node_options(None));
    node.wait_open(stream::TIMEOUT)?;
    node.publish_message(&standing)?;
    Ok(node.finish(stream::TIMEOUT, |_| {})?)
}
