//! Event streams: many nodes publish, every node reads all messages in one order.
//!
//! ```
//! use gapless::prelude::*;
//!
//! const LINE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
//!
//! let stream = EventStream::start(&EventStreamOptions::in_memory())?;
//! let link = stream.local_link(SharedMemoryOptions::default())?;
//! let mut node = StreamNode::new(link, StreamNodeOptions::default());
//! node.wait_open(Duration::from_secs(5))?;
//! node.publish(LINE, b"hello")?;
//! let mut read = Vec::new();
//! while read.is_empty() {
//!     node.poll(16, |event| {
//!         if let NodeEvent::Message(message) = event {
//!             assert!(message.own); // Its own message, in its place among all others: it is acknowledged.
//!             read = message.payload.to_vec();
//!         }
//!     })?;
//! }
//! assert_eq!(read, b"hello");
//! drop(node);
//! stream.stop()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! In another process of the machine the directory is enough:
//!
//! ```no_run
//! use gapless::prelude::*;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let link = SharedMemoryLink::new("orders".as_ref(), SharedMemoryOptions::default());
//!     let mut node = StreamNode::new(link, StreamNodeOptions::reading(Start::First));
//!     loop {
//!         let count = node.poll(100, |event| match event {
//!             NodeEvent::Message(message) => println!("{} {:?}", message.sequence, message.payload),
//!             NodeEvent::State(state) => eprintln!("({state:?})"),
//!             _ => {}
//!         })?;
//!         if count == 0 {
//!             node.wait(Duration::from_secs(1))?;
//!         }
//!         if let Some(why) = node.connect_failure() {
//!             eprintln!("{why}"); // It goes on trying: a sequencer may be started later.
//!             std::thread::sleep(Duration::from_secs(1));
//!         }
//!     }
//! }
//! ```
//!
//! In other processes and on other machines a node finds its stream by a file ([`StreamConfig`]), which names the
//! transport: shared memory, UDP, multicast or TCP. `docs/guides/running-a-stream.md` has the details.

pub use gapless_client::StreamConfig;
pub use gapless_client::control::{Controller, NodeReading, StatusFeed};
pub use gapless_client::control_messages::{ControlCommand, ControlOutcome, ControlStatus};
pub use gapless_client::node::{
    AnyLink, Message, NodeEvent, NodeLink, NodeState, PublisherOptions, SharedMemoryLink, SharedMemoryOptions, Start,
    StreamNode, StreamNodeOptions,
};
pub use gapless_client::stream_file::{JournalSettings, NetworkSettings, NodeSettings, SequencerSettings};
pub use gapless_client::stream_layout::StreamLayout;
pub use gapless_client::throttle::Throttle;
pub use gapless_log::StreamIdentity;
pub use gapless_stream::StreamError;
pub use gapless_stream::event_stream::EventStream;
pub use gapless_stream::network::TcpNetwork;
pub use gapless_stream::network::endpoints::{Carrier, PacketNetwork};
pub use gapless_stream::options::EventStreamOptions;
pub use gapless_transport::{Tier, Transport};
pub use gapless_wire::feed_session::FeedSession;
pub use gapless_wire::mtu::Mtu;
pub use gapless_wire::{Encoding, Kind};
