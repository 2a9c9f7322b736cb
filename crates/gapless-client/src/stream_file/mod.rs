//! [`StreamConfig`]: the contents of one TOML file for a whole stream, its sequencer and its nodes, over any transport.
//! Plain data, and the options that a node makes of it; the sequencer's crate makes its options of the same.
//!
//! | module | what lives there |
//! |---|---|
//! | this | [`StreamConfig`], and how a node is run by it |
//! | `reading` | from the file's text to its [`StreamConfig`] |
//! | `tables` | the tables of the file: the keys there are, and the values of each |
//! | `checks` | contradictions between keys |
//! | [`document`] | a TOML text that knows the line of each of its keys |
//! | [`key_lines`] | the lines themselves, for values that are refused later |
//! | `units` | sizes and durations as people write them |
//!
//! A key that the file does not have is `None` where the sequencer alone needs it: the defaults are those of its options.
//! Those of nodes are [`DatagramOptions`]' and [`StreamNodeOptions`]'. `docs/guides/stream.toml` shows every key. Reading needs
//! the feature `toml`.
//!
//! ```
//! # #[cfg(feature = "toml")] {
//! # mod gapless { pub mod prelude { pub use gapless_client::StreamConfig; } }
//! use gapless::prelude::*;
//! let config = StreamConfig::parse("[stream]\ndirectory = \"orders\"\nwindow = \"8 MiB\"", "orders.toml")?;
//! assert_eq!(config.sequencer.window_bytes, Some(8 << 20));
//! let refused = StreamConfig::parse("[stream]\ndirectory = \"orders\"\ntier = \"fast\"", "orders.toml").err().unwrap();
//! assert_eq!(
//!     refused.to_string(),
//!     r#"orders.toml:3: stream.tier: "fast" was found; "memory", "journal", "sync" are allowed"#
//! );
//! # }
//! # Ok::<(), gapless_client::ClientError>(())
//! ```

#[cfg(feature = "toml")]
mod checks;
#[cfg(feature = "toml")]
pub mod document;
pub mod key_lines;
#[cfg(feature = "toml")]
mod reading;
#[cfg(feature = "toml")]
mod tables;
#[cfg(feature = "toml")]
mod units;

use crate::ClientError;
use crate::node::{
    AnyLink, DatagramLink, DatagramOptions, PublisherOptions, SharedMemoryLink, SharedMemoryOptions, Start,
    StreamNodeOptions, TcpLink, TcpOptions,
};
use crate::throttle::Throttle;
use gapless_agent::{CpuMask, OptimizeFor, PlanKind};
use gapless_journal::{Flush, RecoveryCheck, Retention};
use gapless_transport::Tier;
use gapless_transport::credentials::Credentials;
use gapless_transport::network::{Interface, Segmentation, UdpSocket};
use gapless_transport::token::random_token;
use gapless_transport::transport::Transport;
use gapless_wire::feed_session::FeedSession;
use gapless_wire::mtu::Mtu;
use gapless_wire::soup::Field;
use key_lines::KeyLines;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A stream as its file describes it.
#[derive(Clone, Debug)]
pub struct StreamConfig {
    /// The transport of the stream.
    pub transport: Transport,
    /// Where the stream lives; `None` where it keeps nothing.
    pub directory: Option<PathBuf>,
    /// The MTU of the stream's networks: the longest packet, and frames that fit one.
    pub mtu: Option<Mtu>,
    /// Where other members of its cluster keep it on this machine.
    pub other_directories: Vec<PathBuf>,
    /// Tables `[stream]`, `[journal]`, `[threads]`, `[throttle]` and `[batch]`.
    pub sequencer: SequencerSettings,
    /// Table `[network]`.
    pub network: NetworkSettings,
    /// Tables `[[user]]`: the users that are let in over networks; nobody named: everybody.
    pub users: Vec<Credentials>,
    /// Table `[node]`; a program may change what the file says of its own node.
    pub node: NodeSettings,
    /// Where the keys stand; `None` if it was made without a file.
    #[doc(hidden)] // For what refuses a value later, at its line.
    pub lines: Option<KeyLines>,
}

/// The sequencer's options in the file: each as the option of the same name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequencerSettings {
    /// How durable a frame is before anybody sees it.
    pub tier: Option<Tier>,
    /// The name of the first feed session.
    pub feed_session: Option<FeedSession>,
    /// The longest frame, bytes; without it as long as the transport carries.
    pub frame_length_max: Option<usize>,
    /// The longest message, bytes of payload.
    pub message_length_max: Option<usize>,
    /// Memory for messages of which not every part is there, bytes.
    pub fragments_bytes_max: Option<usize>,
    /// Bytes of the window, a power of two.
    pub window_bytes: Option<usize>,
    /// Sessions without a frame for so long are closed.
    pub session_expiry: Option<Duration>,
    /// The sequencer's state is written to a file after so many frames,
    pub state_interval_frames: Option<u64>,
    /// but not more often than this.
    pub state_interval_min: Option<Duration>,
    /// How the journal is kept.
    pub journal: JournalSettings,
    /// The thread plan.
    pub plan: Option<PlanKind>,
    pub optimize_for: Option<OptimizeFor>,
    /// CPUs of the sequencer.
    pub sequencer_cpus: Option<CpuMask>,
    /// How much each publisher may send.
    pub throttle: Option<Throttle>,
    /// Whether a packet of the feed may hold several frames.
    pub batch: Option<bool>,
}

/// The journal's options in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalSettings {
    /// Length of a segment in bytes, preallocated.
    pub segment_length_bytes: Option<u64>,
    /// The same of a new journal's first segment; each next one is twice as long.
    pub first_segment_length_bytes: Option<u64>,
    /// Whether new segments are written full of zeros first.
    pub zero_initial: Option<bool>,
    /// Whether a new journal's first segment is.
    pub zero_first: Option<bool>,
    /// Mapped or written.
    pub flush: Option<Flush>,
    /// Length of the write buffer in bytes.
    pub write_buffer_bytes: Option<usize>,
    /// When old segments are deleted.
    pub retention: Retention,
    /// How much of the part that a state or a snapshot covers a start reads, too.
    pub check: Option<RecoveryCheck>,
}

/// The network's options in the file, for the sequencer and for its nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkSettings {
    /// Where nodes send to.
    pub command: Option<SocketAddr>,
    /// Where nodes by packets ask for missed messages.
    pub request: Option<SocketAddr>,
    /// The address where the stream is read by TCP; nodes by packets that lag far read there.
    pub rewind: Option<SocketAddr>,
    /// The groups that the feed is sent to: A, and B if there are two. None: to each node by itself.
    pub groups: Vec<SocketAddr>,
    /// The interface that packets to groups leave by.
    pub interface: Option<Interface>,
    /// Routers that a packet to a group may pass, and one.
    pub hops: Option<u8>,
    /// Whether many packets may pass the kernel as one.
    pub segmentation: Option<Segmentation>,
    /// The longest packet, bytes of UDP payload.
    pub packet_length_max: Option<usize>,
    /// Between two heartbeats of a feed that stands still, ns.
    pub heartbeat_interval_ns: Option<u64>,
    /// A node says this often how it is, ns.
    pub report_interval_ns: Option<u64>,
    /// Nodes at one time.
    pub nodes_max: Option<usize>,
}

/// The options of nodes: the same for each, unless a node changes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSettings {
    /// Where a node begins to read.
    pub start: Start,
    /// How it publishes; the token is another one in each node.
    pub publisher: PublisherOptions,
    /// Its name, where it must give one.
    pub username: Field<6>,
    pub password: Field<10>,
    /// Whether its packets may hold several frames.
    pub batch: bool,
    /// A sequencer that says nothing for so long is gone, ns.
    pub silence_ns_max: u64,
}

impl StreamConfig {
    /// The defaults: a stream in `directory` at tier `journal`, over shared memory.
    #[must_use]
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self { directory: Some(directory.into()), ..Self::unnamed() }
    }

    /// The configuration of an empty file.
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

    /// Nodes over shared memory find it in these directories as well: those of other members of its cluster on this
    /// machine. They go to the one that leads.
    #[must_use]
    pub fn or_in(mut self, directories: impl IntoIterator<Item = PathBuf>) -> Self {
        self.other_directories.extend(directories);
        self
    }

    /// Where the stream lives; `None` where it keeps nothing.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// The longest packet of the stream and its nodes, bytes of UDP payload.
    #[must_use]
    pub fn packet_length_max(&self) -> usize {
        self.network.packet_length_max.unwrap_or_else(|| self.mtu.unwrap_or(Mtu::DEFAULT).packet_length_max())
    }

    /// How a node that publishes is run: under `token`, or a random one.
    #[must_use]
    pub fn node_options(&self, token: Option<u128>) -> StreamNodeOptions {
        let token = token.unwrap_or_else(random_token);
        let publisher = Some(PublisherOptions { token, ..self.node.publisher });
        StreamNodeOptions { start: self.node.start, publisher, ..StreamNodeOptions::default() }
    }

    /// How a node that only reads is run.
    #[must_use]
    pub fn reading_options(&self) -> StreamNodeOptions {
        StreamNodeOptions::reading(self.node.start)
    }

    /// A new way for one node to the sequencer.
    ///
    /// # Errors
    /// The operating system's, for sockets.
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
