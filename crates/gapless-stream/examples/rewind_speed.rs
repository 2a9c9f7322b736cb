//! How fast a late joiner gets everything over TCP: SoupBinTCP from a stream's first frame on, over the loopback
//! interface, read by a node that checks every frame.
//!
//! `cargo run --release -p gapless-stream --example rewind_speed [messages] [payload bytes]`

use gapless_client::ClientError;
use gapless_client::client::MessageType;
use gapless_client::node::{NodeState, SharedMemoryOptions, Start, StreamNode, StreamNodeOptions, TcpLink, TcpOptions};
use gapless_stream::Persistence;
use gapless_stream::event_stream::EventStream;
use gapless_stream::network::TcpNetwork;
use gapless_stream::options::EventStreamOptions;
use gapless_wire::Encoding;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

const TYPE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let messages: u64 = arguments.next().map_or(Ok(10_000_000), |text| text.parse())?;
    let payload_bytes: usize = arguments.next().map_or(Ok(64), |text| text.parse())?;
    let directory = std::env::temp_dir().join(format!("gapless-rewind-{}", std::process::id()));
    let mut options = EventStreamOptions::in_directory(&directory);
    options.persistence = Persistence::default();
    options.frame_length_max = 1_376;
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    options.tcp = Some(TcpNetwork::new(any_port, any_port));
    let stream = EventStream::start(&options)?;
    println!("{}", stream.plan());

    let link = stream.local_link(SharedMemoryOptions::default())?;
    let mut publisher = StreamNode::new(link, StreamNodeOptions::default());
    publisher.wait_open(Duration::from_secs(5))?;
    let payload = vec![7; payload_bytes];
    let begun = Instant::now();
    for _ in 0..messages {
        while let Err(error) = publisher.publish(TYPE, &payload) {
            match error {
                ClientError::WindowFull { .. } | ClientError::KeptFull { .. } => publisher.poll(1024, |_| {})?,
                error => return Err(error.into()),
            };
        }
    }
    publisher.poll_until(Duration::from_secs(60), "all", |node| node.in_flight() == 0, |_| {})?;
    report("published", messages, begun.elapsed());

    let addresses = stream.tcp_addresses().ok_or("the stream has a rewind port")?;
    let link = TcpLink::new(TcpOptions::new(addresses.command, addresses.rewind));
    let mut late = StreamNode::new(link, StreamNodeOptions::reading(Start::First));
    let (begun, mut frames) = (Instant::now(), 0);
    while late.state() != NodeState::Live {
        let count = late.poll(4096, |_| {})?;
        frames += count as u64;
        if count == 0 {
            late.wait(Duration::from_millis(1))?;
        }
    }
    report("rewound over TCP", frames, begun.elapsed());
    stream.stop()?;
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

fn report(what: &str, frames: u64, time: Duration) {
    let rate = frames as f64 / time.as_secs_f64() / 1e6;
    println!("{what}: {frames} frames in {:.2} s, {rate:.2} M/s", time.as_secs_f64());
}
