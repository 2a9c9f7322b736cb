//! [`StreamConfig`]: contents of one TOML file for a whole stream, its sequencer and its nodes, over any transport.
//!
//! A missing key that only the sequencer needs is `None`: the defaults are those of its options. Defaults of nodes are
//! those of [`DatagramOptions`] and [`StreamNodeOptions`]. `docs/guides/stream.toml` shows every key.
//!
//! ```
//! # mod gapless { pub mod prelude { pub use gapless_client::StreamConfig; } }
//! use gapless::prelude::*;
//! let config = StreamConfig::parse("[stream]\ndirectory = \"orders\"\nwindow = \"8 MiB\"", "orders.toml")?;
//! assert_eq!(config.sequencer.window_bytes, Some(8 << 20));
//! let refused = StreamConfig::parse("[stream]\ndirectory = \"orders\"\ntier = \"fast\"", "orders.toml").err().unwrap();
//! assert_eq!(
//!     refused.to_string(),
//!     r#"orders.toml:3: stream.tier: "fast" was found; "memory", "journal", "sync" are allowed"#
//! );
//! # Ok::<(), gapless_client::ClientError>(())
//! ```

mod checks;
mod reading;
mod tables;

use crate::ClientError;
use crate::node::{
    AnyLink, DatagramLink, DatagramOptions, PublisherOptions, SharedMemoryLink, SharedMemoryOptions, Start,
    StreamNodeOptions, TcpLink, TcpOptions,
};
use crate::throttle::Throttle;
use gapless_agent::{CpuMask, OptimizeFor, PlanKind};
use gapless_config::KeyLines;
use gapless_journal::{Flush, RecoveryCheck, Retention};
use gapless_transport::Tier;
use gapless_transport::credentials::Credentials;
use gapless_transport::network::{Interface, Segmentation, UdpSocket};
use gapless_transport::token::random_token;
use gapless_transport::transport::Transport;
use gapless_wire::feed_session::FeedSession;
use gapless_wire::mtu::Mtu;
use gapless_wire::soup::Field;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct StreamConfig {
    pub transport: Transport,
    /// Directory of the stream; `None` if it stores nothing.
    pub directory: Option<PathBuf>,
    /// Limits packets, and frames to the capacity of one packet.
    pub mtu: Option<Mtu>,
    /// Directories of other members on this machine.
    pub other_directories: Vec<PathBuf>,
    /// Tables `[stream]`, `[journal]`, `[threads]`, `[throttle]` and `[batch]`.
    pub sequencer: SequencerSettings,
    /// Table `[network]`.
    pub network: NetworkSettings,
    /// Tables `[[user]]`: users admitted over networks; if empty, everyone.
    pub users: Vec<Credentials>,
    /// Table `[node]`; a program may override it for its own node.
    pub node: NodeSettings,
    /// `None` if it was created without a file.
    #[doc(hidden)] // For what refuses a value later, at its line.
    pub lines: Option<KeyLines>,
}

/// Each as the sequencer's option of the same name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequencerSettings {
    /// Durability of a frame before any reader sees it.
    pub tier: Option<Tier>,
    pub feed_session: Option<FeedSession>,
    /// Longest frame, bytes; by default the maximum of the transport.
    pub frame_length_max: Option<usize>,
    /// Longest message, bytes of payload.
    pub message_length_max: Option<usize>,
    /// Memory for unfinished messages, bytes.
    pub fragments_bytes_max: Option<usize>,
    /// Bytes, a power of two.
    pub window_bytes: Option<usize>,
    /// Idle time after which a session is closed.
    pub session_expiry: Option<Duration>,
    /// Frames between two writes of the sequencer's state.
    pub state_interval_frames: Option<u64>,
    /// Shortest time between two states.
    pub state_interval_min: Option<Duration>,
    pub journal: JournalSettings,
    pub plan: Option<PlanKind>,
    pub optimize_for: Option<OptimizeFor>,
    pub sequencer_cpus: Option<CpuMask>,
    pub throttle: Option<Throttle>,
    /// Whether a packet of the feed may hold several frames.
    pub batch: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalSettings {
    /// Length of a preallocated segment, bytes.
    pub segment_length_bytes: Option<u64>,
    /// Length of a new journal's first segment; each next one is twice as long.
    pub first_segment_length_bytes: Option<u64>,
    /// Whether new segments are filled with zeros first.
    pub zero_initial: Option<bool>,
    /// The same for the first segment of a new journal.
    pub zero_first: Option<bool>,
    pub flush: Option<Flush>,
    pub write_buffer_bytes: Option<usize>,
    pub retention: Retention,
    /// Verified at a start, of the part covered by a state or a snapshot.
    pub check: Option<RecoveryCheck>,
}

/// Shared by the sequencer and its nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkSettings {
    /// Address to which nodes publish.
    pub command: Option<SocketAddr>,
    /// Address at which nodes that use packets request missed messages.
    pub request: Option<SocketAddr>,
    /// Address for reading the stream by TCP; nodes that use packets read there when they lag far.
    pub rewind: Option<SocketAddr>,
    /// Feeds A and B; if empty, the feed goes to each node separately.
    pub groups: Vec<SocketAddr>,
    /// Interface of outgoing multicast packets.
    pub interface: Option<Interface>,
    /// Time to live of multicast packets: routers that they may pass, plus one.
    pub hops: Option<u8>,
    /// Whether several packets may pass the kernel as one.
    pub segmentation: Option<Segmentation>,
    /// Longest packet, bytes of UDP payload.
    pub packet_length_max: Option<usize>,
    /// Interval on an idle feed, ns.
    pub heartbeat_interval_ns: Option<u64>,
    pub report_interval_ns: Option<u64>,
    pub nodes_max: Option<usize>,
}

/// The same for each node, unless it overrides them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSettings {
    pub start: Start,
    /// Each node has its own token.
    pub publisher: PublisherOptions,
    /// User name, if one is required.
    pub username: Field<6>,
    pub password: Field<10>,
    /// Whether packets of nodes may hold several frames.
    pub batch: bool,
    /// Sequencer counts as gone after so long.
    pub silence_ns_max: u64,
}

impl StreamConfig {
    /// A stream in `directory` at tier `journal`, over shared memory.
    #[must_use]
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self { directory: Some(directory.into()), ..Self::unnamed() }
    }

    fn unnamed() -> Self {
        let datagrams = DatagramOptions::new(UNSPECIFIED, UNSPECIFIED);
        let node = StreamNodeOptions::default();
        let node = NodeSettings {
            start: node.start,
            publisher: node.publisher.unwrap_or_default(),
            username: datagrams.username,
            password: datagrams.password,
            batch: datagrams.batch,
            silence_ns_max: datagrams.silence_ns_max,
        };
        Self {
            transport: Transport::SharedMemory,
            directory: None,
            mtu: None,
            other_directories: Vec::new(),
            sequencer: SequencerSettings::default(),
            network: NetworkSettings::default(),
            users: Vec::new(),
            node,
            lines: None,
        }
    }

    /// Further directories in which nodes over shared memory find the stream: those of other members on this machine.
    /// Nodes connect to the leader.
    #[must_use]
    pub fn or_in(mut self, directories: impl IntoIterator<Item = PathBuf>) -> Self {
        self.other_directories.extend(directories);
        self
    }

    /// `None` if the stream stores nothing.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Longest packet, bytes of UDP payload.
    #[must_use]
    pub fn packet_length_max(&self) -> usize {
        self.network.packet_length_max.unwrap_or_else(|| self.mtu.unwrap_or(Mtu::DEFAULT).packet_length_max())
    }

    /// Options of a publishing node, under `token` or a random one.
    #[must_use]
    pub fn node_options(&self, token: Option<u128>) -> StreamNodeOptions {
        let token = token.unwrap_or_else(random_token);
        let publisher = Some(PublisherOptions { token, ..self.node.publisher });
        StreamNodeOptions { start: self.node.start, publisher, ..StreamNodeOptions::default() }
    }

    #[must_use]
    pub fn reading_options(&self) -> StreamNodeOptions {
        StreamNodeOptions::reading(self.node.start)
    }

    /// Link of one node.
    ///
    /// # Errors
    /// An error of the operating system, for sockets.
    pub fn link(&self) -> Result<AnyLink, ClientError> {
        match self.transport {
            Transport::SharedMemory => {
                let directory = self.directory.as_deref().unwrap_or(Path::new("."));
                let others = self.other_directories.iter().map(PathBuf::as_path);
                let directories: Vec<&Path> = std::iter::once(directory).chain(others).collect();
                Ok(SharedMemoryLink::any(
                    &directories,
                    SharedMemoryOptions { mtu: self.mtu, ..SharedMemoryOptions::default() },
                )
                .into())
            }
            Transport::Udp | Transport::Multicast => self.datagram_link().map(AnyLink::from),
            Transport::Tcp => {
                let NetworkSettings { command, rewind, .. } = self.network;
                let options = TcpOptions {
                    username: self.node.username,
                    password: self.node.password,
                    silence_ns_max: self.node.silence_ns_max,
                    mtu: self.mtu,
                    ..TcpOptions::new(command.unwrap_or(UNSPECIFIED), rewind.unwrap_or(UNSPECIFIED))
                };
                Ok(TcpLink::new(options).into())
            }
        }
    }

    fn datagram_link(&self) -> Result<DatagramLink<UdpSocket>, ClientError> {
        let NetworkSettings { command, request, rewind, .. } = self.network;
        let interface = self.network.interface.clone().unwrap_or(Interface::Default);
        let segmentation = self.network.segmentation.unwrap_or(Segmentation::Auto);
        let defaults = DatagramOptions::new(command.unwrap_or(UNSPECIFIED), request.unwrap_or(UNSPECIFIED));
        let options = DatagramOptions {
            username: self.node.username,
            password: self.node.password,
            batch: self.node.batch,
            packet_length_max: self.packet_length_max(),
            mtu: self.mtu,
            silence_ns_max: self.node.silence_ns_max,
            rewind,
            ..defaults
        };
        DatagramLink::open(&self.network.groups, &interface, segmentation, options)
    }
}

const UNSPECIFIED: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
