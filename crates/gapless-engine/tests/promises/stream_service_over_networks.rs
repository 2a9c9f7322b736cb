//! A service reached by packets or TCP catches up with little room for its published messages, and survives a restart
//! of the sequencer.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_client::StreamConfig;
use gapless_client::node::{AnyLink, NodeEvent, StreamNode};
use gapless_client::polled::MessageType;
use gapless_engine::{Handlers, Reject, Service, StreamService, StreamServiceOptions};
use gapless_schema::{EncodeError, Encoding};
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::ports::free_address;
use std::path::Path;
use std::time::{Duration, Instant};

const NUMBER: u32 = 1 << 16 | 1;
const SUM: u32 = 1 << 16 | 2;
const NUMBERS: u64 = 2_000;
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Adder(u64);

impl Service for Adder {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(NUMBER, |adder: &mut Self, payload, context| {
            adder.0 += u64::from_le_bytes(payload.try_into().map_err(|_| Reject::from("not 8 bytes".to_owned()))?);
            context.publish_bytes(SUM, Encoding::Opaque, 8, |buffer| {
                buffer.copy_from_slice(&adder.0.to_le_bytes());
                Ok::<_, EncodeError>(8)
            })
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.0.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.0 = u64::from_le_bytes(state.try_into().map_err(|_| "8 bytes are expected")?);
        Ok(())
    }
}

fn config(place: &Path, transport: &str, second: &str) -> StreamConfig {
    let directory = place.join("stream");
    let text = format!(
        "[stream]\ndirectory = {directory:?}\ntransport = \"{transport}\"\nwindow = \"8 MiB\"\n\
         message_length_max = \"64 KiB\"\n[journal]\nsegment_length = \"4 MiB\"\n\
         [network]\ncommand = \"{}\"\n{second} = \"{}\"\n",
        free_address(),
        free_address()
    );
    StreamConfig::parse(&text, "stream.toml").unwrap()
}

fn service(config: &StreamConfig) -> StreamService<Adder, AnyLink> {
    let mut options = StreamServiceOptions::new(7);
    options.kept_bytes_max = 16 << 10;
    StreamService::new(Adder::default(), config.link().unwrap(), options).unwrap()
}

fn run(
    node: &mut StreamNode<AnyLink>,
    services: &mut [StreamService<Adder, AnyLink>],
    sums: &mut Vec<u64>,
    is_done: impl Fn(&StreamNode<AnyLink>, &[u64]) -> bool,
) {
    let deadline = Instant::now() + PATIENCE;
    while !is_done(node, sums) {
        node.poll(256, |event| {
            if let NodeEvent::Message(message) = event
                && message.schema == SUM
            {
                sums.push(u64::from_le_bytes(message.payload.try_into().unwrap()));
            }
        })
        .unwrap();
        for service in services.iter_mut() {
            service.poll(64).unwrap();
        }
        let states: Vec<_> = services.iter().map(|service| (service.last_sequence(), service.node().state())).collect();
        assert!(Instant::now() < deadline, "{} sums; node at {}; {states:?}", sums.len(), node.position());
    }
}

fn works(transport: &str, second: &str) {
    let place = tempfile::tempdir().unwrap();
    let config = config(place.path(), transport, second);
    let options = EventStreamOptions::from_config(&config).unwrap();
    let stream = EventStream::start(&options).unwrap();
    let mut node = StreamNode::new(config.link().unwrap(), config.node_options(None));
    node.wait_open(PATIENCE).unwrap();
    let (mut sums, mut expected, mut sum) = (Vec::new(), Vec::new(), 0);
    let message = MessageType { schema: NUMBER, encoding: Encoding::Opaque };
    let mut publish = |node: &mut StreamNode<AnyLink>, expected: &mut Vec<u64>| {
        for number in 0..NUMBERS {
            node.publish(message, &number.to_le_bytes()).unwrap();
            sum += number;
            expected.push(sum);
        }
    };
    publish(&mut node, &mut expected);
    run(&mut node, &mut [], &mut sums, |node, _| node.in_flight() == 0);
    let mut services = [service(&config), service(&config)];
    run(&mut node, &mut services, &mut sums, |_, sums| sums.len() == expected.len());

    stream.stop().unwrap();
    let stream = EventStream::start(&options).unwrap();
    publish(&mut node, &mut expected);
    run(&mut node, &mut services, &mut sums, |_, sums| sums.len() == expected.len());
    assert!(sums == expected, "two instances publish each sum once, in order");

    let mut late = [service(&config)];
    let position = node.position();
    let deadline = Instant::now() + PATIENCE;
    while late[0].last_sequence() + 1 < position {
        run(&mut node, &mut late, &mut sums, |_, _| true);
        late[0].poll(64).unwrap();
        assert!(Instant::now() < deadline, "the late instance is at {} of {position}", late[0].last_sequence());
    }
    assert_eq!(late[0].service().0, sum);
    assert_eq!(sums.len(), expected.len(), "nothing was published again");
    stream.stop().unwrap();
}

#[test]
fn works_over_udp() {
    works("udp", "request");
}

#[test]
fn works_over_tcp() {
    works("tcp", "rewind");
}
