//! The options of `gapless bench sequencer`, checked before anything is run.

use clap::{Args, ValueEnum};
use gapless_load::sequencer::protocol::StreamAddress;
use gapless_measure::reporting::{JsonArguments, output_path};
use gapless_wire::mtu::Mtu;
use gapless_wire::soup::Field;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Options of `gapless bench sequencer`.
#[derive(Debug, Clone, Default, Args)]
pub struct SequencerArguments {
    /// Parts to measure [default: all]
    #[arg(long, value_name = "PART", value_enum, value_delimiter = ',')]
    pub only: Vec<SequencerPart>,

    /// Transport between nodes and sequencer [default: all]
    #[arg(long, value_name = "TRANSPORT", value_enum, value_delimiter = ',')]
    pub transport: Vec<StreamTransport>,

    /// Nodes that push in a throughput [default: 3]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=64))]
    pub nodes: Option<u64>,

    /// Durability of a message before a node sees it [default: journal]
    #[arg(long, value_name = "TIER", value_enum, conflicts_with_all = ["stream", "command"])]
    pub tier: Option<StreamTier>,

    /// Bytes of a message [default: the usual sizes]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(16..=65_536))]
    pub payload: Vec<u64>,

    /// MTU that the stream and its nodes state; repeated, each row once for each [default: 1500 by packets, and 9000 for 1,400 bytes]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = clap::value_parser!(Mtu))]
    pub mtu: Vec<Mtu>,

    /// Round trips of each latency [default: 200000; with --full 1000000]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub messages: Option<u64>,

    /// Messages of each node in a throughput [default: about a second's worth, with --full two]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub throughput_messages: Option<u64>,

    /// Messages that a node may have in flight in a throughput [default: 8 MiB through shared memory, 512 KiB by packets]
    #[arg(long, value_name = "MESSAGES", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub window: Option<u32>,

    /// Frames that the late joiner reads [default: 2000000; with --full 10000000]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub rewind_frames: Option<u64>,

    /// Messages per second of the live node meanwhile [default: 2000]
    #[arg(long, value_name = "RATE", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub rewind_rate: Option<u64>,

    /// Run briefly, as a functional check without figures
    #[arg(long)]
    pub quick: bool,

    /// Run as published: five repetitions, a million round trips, ten million frames
    #[arg(long, conflicts_with = "quick")]
    pub full: bool,

    /// Directory below which the sequencer keeps its journal while it runs [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub log_location: Option<PathBuf>,

    /// Use the stream that runs in this directory, through shared memory, instead of starting one
    #[arg(long, value_name = "DIR", conflicts_with_all = ["transport", "log_location"])]
    #[arg(conflicts_with_all = ["command", "request", "group", "rewind", "username", "password"])]
    pub stream: Option<PathBuf>,

    /// Use the stream with this command port instead of starting one: by packets with --request, by TCP with --rewind alone
    #[arg(long, value_name = "ADDR", conflicts_with_all = ["transport", "log_location"])]
    pub command: Option<SocketAddr>,

    /// Request port of that stream
    #[arg(long, value_name = "ADDR", requires = "command")]
    pub request: Option<SocketAddr>,

    /// Multicast group of its feed, feed A first [default: unicast to each node]
    #[arg(long, value_name = "ADDR", requires = "command")]
    pub group: Vec<SocketAddr>,

    /// Interface of the groups, by name or address
    #[arg(long, value_name = "NAME", requires = "group")]
    pub interface: Option<String>,

    /// TCP port for reading that stream from any frame on; by packets it fills large gaps
    #[arg(long, value_name = "ADDR", requires = "command")]
    pub rewind: Option<SocketAddr>,

    /// User name of the nodes, for a stream with users; at most 6 characters
    #[arg(long, value_name = "NAME", requires_all = ["command", "password"], value_parser = Field::<6>::new)]
    pub username: Option<Field<6>>,

    /// Password of that user; at most 10 characters
    #[arg(long, value_name = "PASSWORD", requires = "username", value_parser = Field::<10>::new)]
    pub password: Option<Field<10>>,

    #[command(flatten)]
    pub json: JsonArguments,

    /// Write the latencies as an HdrHistogram interval log
    #[arg(long, value_name = "FILE", value_parser = output_path())]
    pub hlog: Option<PathBuf>,
}

/// The parts of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub enum SequencerPart {
    /// Round trips, one message in flight.
    Latency,
    /// Nodes that push, each of which reads everything.
    Throughput,
    /// A late joiner.
    Rewind,
}

/// The transport between nodes and sequencer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub enum StreamTransport {
    /// Rings up, the sequencer's window down.
    SharedMemory,
    /// Packets, the feed to each node by itself.
    Udp,
    /// Packets, the feed to a group.
    Multicast,
    /// Connections, the feed by SoupBinTCP.
    Tcp,
}

/// The tier of a stream that this program starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum)]
pub enum StreamTier {
    /// In the sequencer's process.
    Memory,
    /// In the operating system's hands: survives the process.
    #[default]
    Journal,
    /// On the device: survives power.
    Sync,
}

impl StreamTransport {
    /// Datagrams may be batched and get lost.
    pub(super) const fn is_by_packets(self) -> bool {
        matches!(self, Self::Udp | Self::Multicast)
    }

    pub(super) fn of(way: &StreamAddress) -> Self {
        match way {
            StreamAddress::SharedMemory { .. } => Self::SharedMemory,
            StreamAddress::Tcp { .. } => Self::Tcp,
            StreamAddress::Datagrams { groups, .. } if groups.is_empty() => Self::Udp,
            StreamAddress::Datagrams { .. } => Self::Multicast,
        }
    }
}
