#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_client::control_messages::ControlCommand;
use gapless_client::node::{NodeEvent, SharedMemoryLink, SharedMemoryOptions, StreamNode, StreamNodeOptions};
use gapless_client::polled::MessageType;
use gapless_stream::event_stream::EventStream;
use gapless_stream::messages::SequencerRequest;
use gapless_stream::options::EventStreamOptions;
use gapless_wire::Encoding;
use gapless_wire::feed_session::FeedSession;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const TYPE: MessageType = MessageType { schema: 3 << 16 | 1, encoding: Encoding::Opaque };

struct TestNode {
    node: StreamNode<SharedMemoryLink>,
    met: Vec<String>,
}

impl TestNode {
    fn until(&mut self, what: &str) {
        let begun = Instant::now();
        while self.met.last().is_none_or(|last| last != what) {
            assert!(begun.elapsed() < PATIENCE, "{what} does not come: {:?}", self.met);
            // Later ones are not in the list yet.
            self.node
                .poll(1, |event| match event {
                    NodeEvent::Message(message) => self.met.push(String::from_utf8(message.payload.to_vec()).unwrap()),
                    NodeEvent::Halted { reason, .. } => self.met.push(format!("halted {reason}")),
                    NodeEvent::Resumed { .. } => self.met.push("resumed".to_owned()),
                    NodeEvent::FeedBegan { feed_session, .. } => self.met.push(format!("began {feed_session}")),
                    NodeEvent::FeedEnded { feed_session, .. } => self.met.push(format!("ended {feed_session}")),
                    _ => {}
                })
                .unwrap();
        }
    }
}

fn begin(name: &str) -> SequencerRequest {
    SequencerRequest::BeginFeed { name: FeedSession::new(name).unwrap() }
}

fn halt(reason: &str) -> SequencerRequest {
    SequencerRequest::Halt { reason: reason.to_owned() }
}

#[test]
fn halt_between_sessions_holds() {
    let mut options = EventStreamOptions::in_memory();
    options.feed_session = FeedSession::new("MONDAY").unwrap();
    let stream = EventStream::start(&options).unwrap();
    let link = stream.local_link(SharedMemoryOptions::default()).unwrap();
    let mut party = TestNode { node: StreamNode::new(link, StreamNodeOptions::default()), met: Vec::new() };
    party.until("began MONDAY");
    party.node.wait_open(PATIENCE).unwrap();

    stream.ask(SequencerRequest::EndFeed).unwrap();
    party.until("ended MONDAY");
    party.node.publish(TYPE, b"early").unwrap();
    party.node.flush().unwrap();
    for request in [halt("never seen"), SequencerRequest::Resume, halt("not yet"), begin("TUESDAY")] {
        stream.ask(request).unwrap();
    }
    party.until("halted not yet");
    stream.ask(SequencerRequest::EndFeed).unwrap();
    party.until("ended TUESDAY");
    stream.ask(SequencerRequest::Resume).unwrap();
    stream.ask(begin("WEDNESDAY")).unwrap();
    party.until("early");
    stream.ask(halt("once more")).unwrap();
    party.until("halted once more");
    let expected = [
        "began MONDAY",
        "ended MONDAY",
        "began TUESDAY",
        "halted not yet",
        "ended TUESDAY",
        "began WEDNESDAY",
        "resumed",
        "early",
        "halted once more",
    ];
    assert_eq!(party.met, expected);
    drop(party);
    stream.stop().unwrap();
}

#[test]
fn halt_before_roll_over_holds() {
    let mut options = EventStreamOptions::in_memory();
    options.feed_session = FeedSession::new("MONDAY").unwrap();
    let stream = EventStream::start(&options).unwrap();
    let link = stream.local_link(SharedMemoryOptions::default()).unwrap();
    let mut party = TestNode { node: StreamNode::new(link, StreamNodeOptions::default()), met: Vec::new() };
    party.until("began MONDAY");
    party.node.wait_open(PATIENCE).unwrap();
    stream.ask(SequencerRequest::EndFeed).unwrap();
    party.until("ended MONDAY");
    party.node.publish(TYPE, b"early").unwrap();
    party.node.flush().unwrap();
    stream.ask(halt("not yet")).unwrap();
    let command = ControlCommand::RollOver { name: FeedSession::new("TUESDAY").unwrap() };
    stream.ask(SequencerRequest::Control { number: 1, command }).unwrap();
    party.until("halted not yet");
    stream.ask(SequencerRequest::Resume).unwrap();
    party.until("early");
    assert_eq!(party.met, ["began MONDAY", "ended MONDAY", "began TUESDAY", "halted not yet", "resumed", "early"]);
    drop(party);
    stream.stop().unwrap();
}
