//! Requests to the processes of the benchmark, and their answers.

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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamAssignment {
    Sequencer(SequencerAssignment),
    Node(NodeAssignment),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SequencerAssignment {
    /// Directory of the stream, for tier `journal`.
    pub directory: PathBuf,
    /// Packets that it serves, besides shared memory.
    pub packets: Option<PacketOptions>,
    /// Whether it serves nodes by TCP.
    pub tcp: bool,
    /// Tier: `memory`, `journal` or `sync`.
    pub tier: String,
    /// Thread plan: `min`, `default` or `max`.
    pub plan: String,
    /// Whether it is tuned for throughput; else for latency.
    pub for_throughput: bool,
    /// CPU of its sequencer; `None` leaves it to the scheduler.
    pub cpu: Option<usize>,
    /// MTU of the stream, which limits the frame length; `None` for the transport's default.
    pub mtu: Option<u16>,
    /// Length of the journal's segments, zeroed before the sequencer runs, bytes.
    pub segment_bytes: u64,
}

/// Options for nodes by packets, on the loopback interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketOptions {
    /// Whether the feed goes to a multicast group; else to each node by itself.
    pub multicast: bool,
    /// Whether a packet of the feed may hold several messages.
    pub batch: bool,
    /// Whether it can be rewound over TCP, to fill large gaps.
    pub rewinds: bool,
}

/// Answer of a sequencer once nodes can connect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SequencerReady {
    pub way: StreamAddress,
    /// Plan of its threads, one line each.
    pub plan: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SequencerRequest {
    Cost,
    /// Stop, and report the cost.
    Stop,
}

/// Cost of a process so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessCost {
    /// CPU time of all its threads, ns.
    pub cpu_ns: u64,
    /// Peak of resident memory, bytes.
    pub peak_memory_bytes: u64,
}

impl ProcessCost {
    pub fn of_this_process() -> Self {
        let peak_memory_bytes = crate::resources::memory().map_or(0, |memory| memory.peak_bytes);
        Self { cpu_ns: crate::resources::process_cpu_ns(), peak_memory_bytes }
    }
}

/// Way of a node to the sequencer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamAddress {
    /// Rings and window of the stream in this directory.
    SharedMemory { directory: PathBuf },
    /// Packets.
    Datagrams {
        command: SocketAddr,
        request: SocketAddr,
        /// Groups of the feed; empty if it comes to each node by itself.
        groups: Vec<SocketAddr>,
        /// Interface of the groups, by address or name; `None` for the default one.
        interface: Option<String>,
        /// Address for filling large gaps over TCP, if that is possible.
        rewind: Option<SocketAddr>,
        /// Name of the node; empty if none is needed.
        username: String,
        password: String,
    },
    Tcp {
        command: SocketAddr,
        rewind: SocketAddr,
        /// Name of the node; empty if none is needed.
        username: String,
        password: String,
    },
}

pub fn tcp(way: &StreamAddress, mtu: Option<Mtu>) -> Result<TcpLink> {
    let StreamAddress::Tcp { command, rewind, username, password } = way else {
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

pub fn shared_memory(directory: &std::path::Path, mtu: Option<Mtu>) -> SharedMemoryLink {
    SharedMemoryLink::new(directory, SharedMemoryOptions { mtu, ..SharedMemoryOptions::default() })
}

pub fn datagrams(way: &StreamAddress, batch: bool, mtu: Option<Mtu>) -> Result<DatagramLink<UdpSocket>> {
    let StreamAddress::Datagrams { command, request, groups, interface, rewind, username, password } = way else {
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

/// Assignment of a node. It connects, opens a session, and answers [`NodeReady`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeAssignment {
    pub way: StreamAddress,
    /// Whether its packets may hold several messages.
    pub batch: bool,
    pub mtu: Option<u16>,
    /// CPU of the node; `None` leaves it to the scheduler.
    pub cpu: Option<usize>,
    /// Whether it spins while it waits for one message; else it yields the CPU.
    pub spins: bool,
    /// Most messages in flight.
    pub window_messages: u32,
    /// Length of its messages, bytes.
    pub payload_bytes: usize,
    pub role: NodeRole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeRole {
    /// One timed message in flight, repeatedly: answers [`RoundTripResult`].
    RoundTrips {
        /// Untimed messages at the start.
        warm_up: u64,
        messages: u64,
        /// Time limit of the round trips, ms; the warm-up has a fifth of it in addition.
        time_limit_ms: u64,
    },
    /// Publishes as requested by [`NodeRequest`], and reads all messages.
    Push,
    /// Publishes nothing, reads from the first frame until it is live: answers [`RewindResult`].
    Rewind,
}

/// Answer of a node that can publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReady {
    /// Session of the node; 0 for one that only reads.
    pub session: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeRequest {
    Participants(Vec<Participant>),
    /// Publish that many messages as fast as the window allows, and answer [`PushResult`] when it has received as many of
    /// every participant.
    Push(u64),
    /// Publish at this rate, a second, until [`NodeRequest::Enough`], and answer [`PaceResult`] when all came back.
    Pace(u64),
    /// Stop publishing.
    Enough,
    /// Answer [`MessageAccount`] and end.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Participant {
    pub session: u64,
    /// Length of its messages, bytes.
    pub payload_bytes: usize,
}

/// Result of [`NodeRole::RoundTrips`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundTripResult {
    pub latencies: LatencyHistogram,
    /// Messages of the warm-up.
    pub warmed_up: u64,
    /// Messages of the timed section.
    pub measured: u64,
    /// Duration of the timed section.
    pub elapsed_ns: u64,
    /// CPU time of the timed section.
    pub cpu_ns: u64,
    /// Account of all messages, warm-up included.
    pub account: MessageAccount,
}

/// Result of [`NodeRequest::Push`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushResult {
    pub sent: u64,
    /// Messages that it received, of all participants.
    pub seen: u64,
    /// Time from its first publish until its last message came back, ns.
    pub own_ns: u64,
    /// Time from its first publish until it had received everything, ns.
    pub all_ns: u64,
    /// The sequencer's stamp of the first received message, ns since the epoch.
    pub first_stamp_ns: u64,
    /// The sequencer's stamp of the last one.
    pub last_stamp_ns: u64,
    /// CPU time, ns.
    pub cpu_ns: u64,
}

/// Result of [`NodeRequest::Pace`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaceResult {
    /// Messages that it published, each of which came back.
    pub sent: u64,
    /// Latencies from the scheduled time.
    pub latencies: LatencyHistogram,
    pub elapsed_ns: u64,
    pub cpu_ns: u64,
}

/// Result of [`NodeRole::Rewind`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewindResult {
    /// Frames that it read until it was live.
    pub frames: u64,
    /// Time until then, from the first poll on, ns.
    pub elapsed_ns: u64,
    pub cpu_ns: u64,
    pub account: MessageAccount,
}

/// Account of the participants' messages that a node has received.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageAccount {
    /// Messages of each participant, in their order.
    pub seen: Vec<u64>,
    /// Skipped numbers.
    pub lost: u64,
    /// Duplicate messages.
    pub duplicated: u64,
    /// Messages with wrong contents.
    pub wrong: u64,
    /// Checksum over sequence, session, number and payload checksum of each message, in order.
    pub checksum: u64,
    /// Messages that this node sent more than once.
    pub resent: u64,
    /// Messages that this node requested again.
    pub requested: u64,
    /// Messages that reached this node by a rewind over TCP.
    pub rewound: u64,
    /// Number of times the stream has lapped this node.
    pub lapped: u64,
    /// Peak of resident memory, bytes.
    pub peak_memory_bytes: u64,
}

pub fn stream_failed(error: &impl std::fmt::Display) -> crate::BenchError {
    failed(error.to_string())
}
