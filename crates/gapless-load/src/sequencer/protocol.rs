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
    pub directory: PathBuf,
    pub packets: Option<PacketOptions>,
    pub tcp: bool,
    /// `memory`, `journal` or `sync`.
    pub tier: String,
    /// `min`, `default` or `max`.
    pub plan: String,
    pub for_throughput: bool,
    /// `None` leaves it to the scheduler.
    pub cpu: Option<usize>,
    /// Limits the frame length; `None` for the transport's default.
    pub mtu: Option<u16>,
    /// Segments are zeroed before the sequencer runs.
    pub segment_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketOptions {
    /// Feed to a multicast group; else to each node.
    pub multicast: bool,
    /// Packets of the feed may hold several messages.
    pub batch: bool,
    /// Large gaps can be filled over TCP.
    pub rewinds: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SequencerReady {
    pub way: StreamAddress,
    /// One line per thread.
    pub plan: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SequencerRequest {
    Cost,
    Stop,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessCost {
    pub cpu_ns: u64,
    pub peak_memory_bytes: u64,
}

impl ProcessCost {
    pub fn of_this_process() -> Self {
        let peak_memory_bytes = crate::resources::memory().map_or(0, |memory| memory.peak_bytes);
        Self { cpu_ns: crate::resources::process_cpu_ns(), peak_memory_bytes }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamAddress {
    SharedMemory {
        directory: PathBuf,
    },
    Datagrams {
        command: SocketAddr,
        request: SocketAddr,
        /// Empty if the feed comes to each node by itself.
        groups: Vec<SocketAddr>,
        /// Address or name; `None` for the default one.
        interface: Option<String>,
        /// Fills large gaps over TCP, where possible.
        rewind: Option<SocketAddr>,
        /// Empty if none is needed.
        username: String,
        password: String,
    },
    Tcp {
        command: SocketAddr,
        rewind: SocketAddr,
        /// Empty if none is needed.
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

/// The node connects, opens a session, and answers [`NodeReady`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeAssignment {
    pub way: StreamAddress,
    pub batch: bool,
    pub mtu: Option<u16>,
    /// `None` leaves it to the scheduler.
    pub cpu: Option<usize>,
    /// Spins while it waits for one message; else it yields the CPU.
    pub spins: bool,
    pub window_messages: u32,
    pub payload_bytes: usize,
    pub role: NodeRole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeRole {
    /// One timed message in flight, repeatedly. Answer: [`RoundTripResult`].
    RoundTrips {
        warm_up: u64,
        messages: u64,
        /// Limit in ms; the warm-up has a fifth of it in addition.
        time_limit_ms: u64,
    },
    /// Publishes as [`NodeRequest`] says, and reads all messages.
    Push,
    /// Reads from the first frame until it is live. Answer: [`RewindResult`].
    Rewind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReady {
    /// 0 for one that only reads.
    pub session: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeRequest {
    Participants(Vec<Participant>),
    /// Publish as fast as the window allows. Answer: [`PushResult`], once as many of every participant have arrived.
    Push(u64),
    /// Publish at this rate, a second, until [`NodeRequest::Enough`]. Answer: [`PaceResult`], once all came back.
    Pace(u64),
    Enough,
    /// Answer: [`MessageAccount`].
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Participant {
    pub session: u64,
    pub payload_bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundTripResult {
    pub latencies: LatencyHistogram,
    pub warmed_up: u64,
    pub measured: u64,
    pub elapsed_ns: u64,
    pub cpu_ns: u64,
    /// Warm-up included.
    pub account: MessageAccount,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushResult {
    pub sent: u64,
    pub seen: u64,
    /// Time from its first publish until its last message came back.
    pub own_ns: u64,
    /// Time from its first publish until everything had arrived.
    pub all_ns: u64,
    /// The sequencer's stamp, ns since the epoch.
    pub first_stamp_ns: u64,
    pub last_stamp_ns: u64,
    pub cpu_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaceResult {
    /// Each came back.
    pub sent: u64,
    pub latencies: LatencyHistogram,
    pub elapsed_ns: u64,
    pub cpu_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewindResult {
    /// Frames read until it was live.
    pub frames: u64,
    /// Time from the first poll until it was live.
    pub elapsed_ns: u64,
    pub cpu_ns: u64,
    pub account: MessageAccount,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageAccount {
    /// Messages of each participant, in order.
    pub seen: Vec<u64>,
    /// Skipped numbers.
    pub lost: u64,
    pub duplicated: u64,
    pub wrong: u64,
    /// Checksum over sequence, session, number and payload checksum of each message, in order.
    pub checksum: u64,
    pub resent: u64,
    pub requested: u64,
    pub rewound: u64,
    /// Times that the stream has lapped this node.
    pub lapped: u64,
    pub peak_memory_bytes: u64,
}

pub fn stream_failed(error: &impl std::fmt::Display) -> crate::BenchError {
    failed(error.to_string())
}
