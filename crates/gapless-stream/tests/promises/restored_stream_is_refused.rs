//! No file shows that a whole directory was restored from an older copy, but a node that has seen more refuses it.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_client::ClientError;
use gapless_client::node::{
    AnyLink, DatagramLink, DatagramOptions, NodeEvent, SharedMemoryLink, SharedMemoryOptions, StreamNode,
    StreamNodeOptions, TcpLink, TcpOptions,
};
use gapless_client::polled::MessageType;
use gapless_stream::Persistence;
use gapless_stream::event_stream::EventStream;
use gapless_stream::network::TcpNetwork;
use gapless_stream::network::endpoints::PacketNetwork;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::folder::copy;
use gapless_testkit::ports::free_address;
use gapless_transport::network::{Interface, Segmentation};
use gapless_transport::seen_frame::SeenFrame;
use gapless_wire::Encoding;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const TYPE: MessageType = MessageType { schema: 3 << 16 | 1, encoding: Encoding::Opaque };

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NodeTransport {
    SharedMemory,
    Udp,
    Tcp,
}

type Node = StreamNode<AnyLink>;

struct Deployment {
    transport: NodeTransport,
    directory: tempfile::TempDir,
    ports: [SocketAddr; 2],
}

impl Deployment {
    fn new(transport: NodeTransport) -> Self {
        let ports = [free_address(), free_address()];
        Self { transport, directory: tempfile::tempdir().unwrap(), ports }
    }

    fn stream(&self) -> EventStream {
        let mut options = EventStreamOptions::in_directory(self.directory.path().join("stream"));
        options.persistence = Persistence { segment_length_bytes: 1 << 20, ..Persistence::default() };
        options.window_bytes = 1 << 20;
        options.message_length_max = 64 << 10;
        options.frame_length_max = 1_376;
        let [command, request] = self.ports;
        match self.transport {
            NodeTransport::SharedMemory => {}
            NodeTransport::Udp => options.packets = Some(PacketNetwork::udp(command, request)),
            NodeTransport::Tcp => options.tcp = Some(TcpNetwork::new(command, request)),
        }
        EventStream::start(&options).unwrap()
    }

    fn node(&self, token: u128) -> Node {
        let [command, request] = self.ports;
        let link: AnyLink = match self.transport {
            NodeTransport::SharedMemory => {
                SharedMemoryLink::new(&self.directory.path().join("stream"), SharedMemoryOptions::default()).into()
            }
            NodeTransport::Udp => {
                let options = DatagramOptions::new(command, request);
                DatagramLink::open(&[], &Interface::Default, Segmentation::Auto, options).unwrap().into()
            }
            NodeTransport::Tcp => TcpLink::new(TcpOptions::new(command, request)).into(),
        };
        let mut node = StreamNode::new(link, StreamNodeOptions::with_token(token));
        node.wait_open(PATIENCE).unwrap();
        node
    }

    fn copy(&self, from: &str, to: &str) {
        let (from, to) = (self.directory.path().join(from), self.directory.path().join(to));
        copy(&from, &to);
    }
}

fn publish(node: &mut Node, count: usize) {
    let (mut sent, mut came) = (0, 0);
    let deadline = Instant::now() + PATIENCE;
    while came < count {
        assert!(Instant::now() < deadline, "{came} of {count} have come");
        while sent < count && node.can_publish() {
            node.publish(TYPE, b"a message").unwrap();
            sent += 1;
        }
        node.poll(64, |event| came += usize::from(matches!(event, NodeEvent::Message(message) if message.own)))
            .unwrap();
    }
}

fn ends(node: &mut Node) -> ClientError {
    let deadline = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < deadline, "it goes on at {}", node.position());
        if let Err(error) = node.poll(64, |event| assert!(!matches!(event, NodeEvent::Message(_)), "a message")) {
            return error;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn refuses_another_history(transport: NodeTransport, published_again: usize) {
    let deployment = Deployment::new(transport);
    let stream = deployment.stream();
    let mut node = deployment.node(1);
    publish(&mut node, 100);
    drop(node);
    stream.stop().unwrap();
    deployment.copy("stream", "copy");

    let stream = deployment.stream();
    let mut node = deployment.node(2);
    publish(&mut node, 50);
    let position = node.position();
    stream.stop().unwrap();

    deployment.copy("copy", "stream");
    let stream = deployment.stream();
    if published_again > 0 {
        let mut other = deployment.node(3);
        publish(&mut other, published_again);
        assert!(other.position() > position);
    }
    let error = ends(&mut node);
    let is_it = matches!(&error, ClientError::OtherHistory { seen: SeenFrame { sequence, .. }, .. } if *sequence == position - 1);
    assert!(is_it, "{error}");
    let text = error.to_string();
    assert!(text.contains("journal restore"), "{text}");
    stream.stop().unwrap();
}

#[test]
fn shorter_stream_over_shared_memory() {
    refuses_another_history(NodeTransport::SharedMemory, 0);
}

#[test]
fn shorter_stream_over_udp() {
    refuses_another_history(NodeTransport::Udp, 0);
}

#[test]
fn shorter_stream_over_tcp() {
    refuses_another_history(NodeTransport::Tcp, 0);
}

#[test]
fn diverged_over_shared_memory() {
    refuses_another_history(NodeTransport::SharedMemory, 200);
}

#[test]
fn diverged_over_udp() {
    refuses_another_history(NodeTransport::Udp, 200);
}

#[test]
fn diverged_over_tcp() {
    refuses_another_history(NodeTransport::Tcp, 200);
}

#[test]
fn journal_shows_divergence() {
    refuses_another_history(NodeTransport::SharedMemory, 12_000);
}
