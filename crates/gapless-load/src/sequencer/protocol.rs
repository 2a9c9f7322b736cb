//! The requests to the processes of the benchmark, and their answers.

use crate::Result;
use crate::histogram::LatencyHistogram;
use crate::sequencer::failed;
use gapless_client::node::{DatagramLink, DatagramOptions, SharedMemoryLink, SharedMemoryOptions, TcpLink, TcpOptions};
use gapless_transport::network::{Interface, Segmentation, UdpSocket};
use gapless_wire::mtu::Mtu;
use gapless_wire::soup::Field;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The assignment of a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Assignment {
    /// Run an event stream.
    Sequencer(SequencerAssignment),
    /// Run a node of one.
    Node(NodeAssignment),
}

/// How the event stream is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SequencerAssignment {
    /// Where its journal is, at tier `journal`.
    pub directory: PathBuf,
    /// The packets that it serves beside shared memory.
    pub packets: Option<PacketOptions>,
    /// Whether it serves nodes by TCP.
    pub tcp: bool,
    /// Its tier: `memory`, `journal` or `sync`.
    pub tier: String,
    /// The thread plan: `min`, `default` or `max`.
    pub plan: String,
    /// Whether it is tuned for throughput; else for latency.
    pub for_throughput: bool,
    /// The CPU of its sequencer; none leaves it to the scheduler.
    pub cpu: Option<usize>,
    /// The MTU that the stream states, and with it the longest frame; without one the transport's default.
    pub mtu: Option<u16>,
    /// Length of the journal's segments, written full of zeros before the sequencer runs, bytes.
    pub segment_bytes: u64,
}

/// How it serves nodes by packets, on the loopback interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketOptions {
    /// Whether the feed goes to a multicast group; else to each node by itself.
    pub multicast: bool,
    /// Whether a packet of the feed may hold several messages.
    pub batch: bool,
    /// Whether it is rewound over TCP, where large gaps are filled.
    pub rewinds: bool,
}

/// The answer of a sequencer when nodes can connect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// How to connect.
    pub way: Way,
    /// The work of its threads, a line each.
    pub plan: String,
}

/// A request to a running sequencer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SequencerRequest {
    /// Say what it has cost so far.
    Cost,
    /// Stop, and say what it has cost.
    Stop,
}

/// The cost of a process so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time of all its threads, ns.
    pub cpu_ns: u64,
    /// The most memory that was resident, bytes.
    pub peak_memory_bytes: u64,
}

impl Cost {
    /// Of this process.
    pub fn of_this_process() -> Self {
        let peak_memory_bytes = crate::resources::memory().map_or(0, |memory| memory.peak_bytes);
        Self { cpu_ns: crate::resources::process_cpu_ns(), peak_memory_bytes }
    }
}

/// How a node reaches the sequencer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Through the rings and the window of the stream in this directory.
    SharedMemory {
        /// The stream's directory.
        directory: PathBuf,
    },
    /// By packets.
    Datagrams {
        /// The command port.
        command: SocketAddr,
        /// The request port.
        request: SocketAddr,
        /// The groups of the feed; none if it comes to each node by itself.
        groups: Vec<SocketAddr>,
        /// The interface of the groups, by address or name; none for the default one.
        interface: Option<String>,
        /// Where large gaps are filled over TCP; none if they are not.
        rewind: Option<SocketAddr>,
        /// The node's name; empty if nobody asks for it.
        username: String,
        password: String,
    },
    /// By TCP.
    Tcp {
        /// The command port.
        command: SocketAddr,
        /// Where the stream is read.
        rewind: SocketAddr,
        /// The node's name; empty if nobody asks for it.
        username: String,
        password: String,
    },
}

/// A link by TCP, as `way` says.
pub fn tcp(way: &Way, mtu: Option<Mtu>) -> Result<TcpLink> {
    let Way::Tcp { command, rewind, username, password } = way else {
        return Err(failed("TCP was asked for, and the way is another"));
    };
    let options = TcpOptions {
        username: Field::new(username).map_err(failed)?,
        password: Field::new(password).map_err(failed)?,
        mtu,
        ..TcpOptions::new(*command, *rewind)
    };
    Ok(TcpLink::new(options))
}

/// A link by shared memory.
pub fn shared_memory(directory: &std::path::Path, mtu: Option<Mtu>) -> SharedMemoryLink {
    SharedMemoryLink::new(directory, SharedMemoryOptions { mtu, ..SharedMemoryOptions::default() })
}

/// A link by packets, as `way` says.
pub fn datagrams(way: &Way, batch: bool, mtu: Option<Mtu>) -> Result<DatagramLink<UdpSocket>> {
    let Way::Datagrams { command, request, groups, interface, rewind, username, password } = way else {
        return Err(failed("packets were asked for, and the way is another"));
    };
    let interface = match interface {
        None => Interface::Default,
        Some(text) => text.parse().map_or_else(|_| Interface::Name(text.clone()), Interface::Address),
    };
    let options = DatagramOptions {
        batch,
        mtu,
        packet_length_max: mtu.unwrap_or(Mtu::DEFAULT).packet_length_max(),
        rewind: *rewind,
        username: Field::new(username).map_err(failed)?,
        password: Field::new(password).map_err(failed)?,
        ..DatagramOptions::new(*command, *request)
    };
    DatagramLink::open(groups, &interface, Segmentation::Auto, options).map_err(|error| stream_failed(&error))
}

/// The assignment of a node. It connects, opens a session, and answers [`Ready`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeAssignment {
    /// How it reaches the sequencer.
    pub way: Way,
    /// Whether its packets may hold several messages.
    pub batch: bool,
    /// The MTU that the node states.
    pub mtu: Option<u16>,
    /// Its CPU; none leaves it to the scheduler.
    pub cpu: Option<usize>,
    /// Whether it spins while it waits for one message; else it gives the CPU away.
    pub spins: bool,
    /// Messages that it may have in flight.
    pub window_messages: u32,
    /// Bytes of its messages.
    pub payload_bytes: usize,
    pub role: Role,
}

/// The work of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// One message in flight, timed, again and again: answers [`RoundTrips`].
    RoundTrips {
        /// Not timed, first.
        warm_up: u64,
        messages: u64,
        /// Ends the round trips that take longer, ms; the warm-up has a fifth of it more.
        time_limit_ms: u64,
    },
    /// Publishes as [`NodeRequest`] asks, and reads what everybody publishes.
    Push,
    /// Publishes nothing, reads from the first frame until it is live: answers [`Rewound`].
    Rewind,
}

/// A node can publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Its session; 0 for one that only reads.
    pub session: u64,
}

/// A request to a running node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeRequest {
    /// The participants whose messages it accounts for, bytes of each one's.
    Participants(Vec<Participant>),
    /// Publish so many messages as fast as the window lets it, and answer [`Pushed`] when it has seen as many of
    /// every participant.
    Push(u64),
    /// Publish at this rate, a second, until [`NodeRequest::Enough`], and answer [`Paced`] when all came back.
    Pace(u64),
    /// No more.
    Enough,
    /// Answer [`Account`] and end.
    End,
}

/// One that publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Participant {
    pub session: u64,
    /// Bytes of its messages.
    pub payload_bytes: usize,
}

/// The outcome of [`Role::RoundTrips`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundTrips {
    pub latencies: LatencyHistogram,
    /// Messages of the warm-up.
    pub warmed_up: u64,
    /// Messages of the timed section.
    pub measured: u64,
    /// Of the timed section.
    pub elapsed_ns: u64,
    /// CPU time of the timed section.
    pub cpu_ns: u64,
    /// The messages seen, warm-up included.
    pub account: Account,
}

/// The outcome of [`NodeRequest::Push`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pushed {
    /// Messages that it published.
    pub sent: u64,
    /// Messages that it saw, of all participants.
    pub seen: u64,
    /// From its first publish until its last message came back, ns.
    pub own_ns: u64,
    /// From its first publish until it had seen everything, ns.
    pub all_ns: u64,
    /// The sequencer's stamp of the first message that it saw, ns since the epoch.
    pub first_stamp_ns: u64,
    /// The sequencer's stamp of the last one.
    pub last_stamp_ns: u64,
    /// CPU time, ns.
    pub cpu_ns: u64,
}

/// The outcome of [`NodeRequest::Pace`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paced {
    /// Messages that it published, each of which came back.
    pub sent: u64,
    /// From the scheduled time.
    pub latencies: LatencyHistogram,
    /// Time, ns.
    pub elapsed_ns: u64,
    /// CPU time, ns.
    pub cpu_ns: u64,
}

/// The outcome of [`Role::Rewind`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewound {
    /// Frames that it read until it was live.
    pub frames: u64,
    /// How long that took, from the first poll on, ns.
    pub elapsed_ns: u64,
    /// CPU time, ns.
    pub cpu_ns: u64,
    /// The messages seen.
    pub account: Account,
}

/// The participants' messages that a node has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Messages of each participant, in their order.
    pub seen: Vec<u64>,
    /// Numbers that were passed over.
    pub lost: u64,
    /// Messages that came again.
    pub duplicated: u64,
    /// Messages with other contents than their sender's.
    pub wrong: u64,
    /// Over sequence, session, number and checksum of each message, in their order.
    pub checksum: u64,
    /// Messages that this node sent more than once.
    pub resent: u64,
    /// Messages that this node asked for again.
    pub requested: u64,
    /// Messages that came to this node by a rewind over TCP.
    pub rewound: u64,
    /// How often the stream was faster than this node.
    pub lapped: u64,
    /// The most memory that was resident, bytes.
    pub peak_memory_bytes: u64,
}

/// The error of a stream or node.
pub fn stream_failed(error: &impl std::fmt::Display) -> crate::BenchError {
    failed(error.to_string())
}
