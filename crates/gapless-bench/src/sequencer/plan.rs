//! The rows that are measured, and the target of each.

use super::arguments::{SequencerArguments, SequencerPart, StreamTier, StreamTransport};
use crate::{BenchError, Result};
use clap::ValueEnum;
use gapless_load::sequencer::protocol::StreamAddress;
use gapless_measure::RunExtent;
use gapless_measure::published::coralsequencer::rate_of;
use gapless_wire::mtu::Mtu;
use std::path::PathBuf;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RowPlan {
    Latency(LatencyPlan),
    Throughput(ThroughputPlan),
    Rewind(RewindPlan),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LatencyPlan {
    pub transport: StreamTransport,
    pub payload_bytes: usize,
    pub mtu: Option<Mtu>,
    /// Untimed messages of each repetition.
    pub warm_up: u64,
    pub messages: u64,
    pub repetitions: u64,
    /// Limit of a repetition, ms.
    pub time_limit_ms: u64,
    /// Greatest allowed ratio of the medians to the floor's.
    pub ratio_max: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ThroughputPlan {
    pub transport: StreamTransport,
    pub payload_bytes: usize,
    pub mtu: Option<Mtu>,
    pub nodes: usize,
    pub batch: bool,
    pub warm_up: u64,
    /// Messages of each node.
    pub messages: u64,
    pub window_messages: u32,
    /// Target, messages a second through the sequencer.
    pub rate_min_per_s: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RewindPlan {
    /// Transport of the late joiner; by packets it is rewound over TCP.
    pub transport: StreamTransport,
    pub payload_bytes: usize,
    pub mtu: Option<Mtu>,
    pub frames: u64,
    /// Messages a second of the live node.
    pub rate_per_s: u64,
    /// Time of the live node without the late joiner, ms.
    pub before_ms: u64,
    /// Target, frames a second.
    pub rate_min_per_s: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct SequencerRunPlan {
    pub rows: Vec<RowPlan>,
    /// `None`: starts its own stream.
    pub running: Option<StreamAddress>,
    pub tier: StreamTier,
    /// Parent of the journals.
    pub parent: PathBuf,
    /// Percent of the floors' usual effort.
    pub floor_effort_percent: u32,
    /// False for short runs and for another's stream.
    pub has_targets: bool,
}

const NODES: u64 = 3;

const RATIO_MAX_SHARED_MEMORY: f64 = 2.5;
const RATIO_MAX_PACKETS: f64 = 1.25;
const REWIND_RATE_MIN: f64 = 2e6;

impl SequencerRunPlan {
    /// The parts to measure.
    ///
    /// # Errors
    /// Options that leave nothing to measure.
    pub(super) fn of(arguments: &SequencerArguments) -> Result<SequencerRunPlan> {
        let username = arguments.username.map_or_else(String::new, |name| name.as_str().to_owned());
        let password = arguments.password.map_or_else(String::new, |password| password.as_str().to_owned());
        let running = match (&arguments.stream, arguments.command, arguments.request, arguments.rewind) {
            (Some(directory), ..) => Some(StreamAddress::SharedMemory { directory: directory.clone() }),
            (None, Some(command), Some(request), rewind) => {
                let (groups, interface) = (arguments.group.clone(), arguments.interface.clone());
                Some(StreamAddress::Datagrams { command, request, groups, interface, rewind, username, password })
            }
            (None, Some(_), None, _) if !arguments.group.is_empty() => {
                return Err(BenchError::Option("--group: packets, which need --request".to_owned()));
            }
            (None, Some(command), None, Some(rewind)) => {
                Some(StreamAddress::Tcp { command, rewind, username, password })
            }
            (None, Some(_), None, None) => {
                let reason = "--command needs --request, for packets, or --rewind, for TCP";
                return Err(BenchError::Option(reason.to_owned()));
            }
            _ => None,
        };
        let plan = SequencerRunPlan::new(arguments, running);
        if plan.rows.is_empty() {
            let reason = "nothing is left to be measured: a rewind is of a stream that this program starts, and that has a journal";
            return Err(BenchError::Option(reason.to_owned()));
        }
        Ok(plan)
    }

    pub(super) fn new(arguments: &SequencerArguments, running: Option<StreamAddress>) -> Self {
        let transports = match &running {
            Some(way) => vec![StreamTransport::of(way)],
            None if arguments.transport.is_empty() => StreamTransport::value_variants().to_vec(),
            None => arguments.transport.clone(),
        };
        let is_asked = |part| arguments.only.is_empty() || arguments.only.contains(&part);
        let mut rows = Vec::new();
        if is_asked(SequencerPart::Latency) {
            rows.extend(latencies(arguments, &transports).map(RowPlan::Latency));
        }
        if is_asked(SequencerPart::Throughput) {
            rows.extend(throughputs(arguments, &transports, running.is_some()).into_iter().map(RowPlan::Throughput));
        }
        let tier = arguments.tier.unwrap_or_default();
        if is_asked(SequencerPart::Rewind) && running.is_none() && tier != StreamTier::Memory {
            // Once by packets, and TCP: the transport of the live feed makes no difference.
            let by_packets = transports.iter().copied().find(|transport| transport.is_by_packets());
            let by = |transport| transports.contains(&transport).then_some(transport);
            let all = by(StreamTransport::SharedMemory).into_iter().chain(by_packets).chain(by(StreamTransport::Tcp));
            let all = all.flat_map(|transport| mtus(arguments).map(move |mtu| (transport, mtu)));
            rows.extend(all.map(|(transport, mtu)| RowPlan::Rewind(rewind(arguments, transport, mtu))));
        }
        let parent = arguments.log_location.clone().unwrap_or_else(|| PathBuf::from("."));
        let floor_effort_percent = if arguments.quick { 5 } else { 100 };
        let is_usual = tier == StreamTier::Journal && arguments.nodes.is_none_or(|nodes| nodes == NODES);
        let has_targets = running.is_none() && !arguments.quick && is_usual;
        Self { rows, running, tier, parent, floor_effort_percent, has_targets }
    }
}

fn payloads(arguments: &SequencerArguments, usual: &[usize]) -> Vec<usize> {
    if arguments.payload.is_empty() {
        return usual.to_vec();
    }
    arguments.payload.iter().map(|&bytes| bytes as usize).collect()
}

fn mtus(arguments: &SequencerArguments) -> impl Iterator<Item = Option<Mtu>> {
    let stated: Vec<_> = arguments.mtu.iter().copied().map(Some).collect();
    if stated.is_empty() { vec![None] } else { stated }.into_iter()
}

fn latencies(arguments: &SequencerArguments, transports: &[StreamTransport]) -> impl Iterator<Item = LatencyPlan> {
    let extent = RunExtent::of(arguments.quick, arguments.full);
    let messages = arguments.messages.unwrap_or_else(|| extent.pick(2_000, 200_000, 1_000_000));
    let payloads = payloads(arguments, &[256, 1024]);
    transports.iter().flat_map(move |&transport| {
        let shapes = payloads.clone().into_iter().flat_map(|bytes| mtus(arguments).map(move |mtu| (bytes, mtu)));
        shapes.map(move |(payload_bytes, mtu)| LatencyPlan {
            transport,
            payload_bytes,
            mtu,
            warm_up: (messages / 20).clamp(100, 50_000),
            messages,
            repetitions: extent.pick(1, 3, 5),
            // A requested number is measured however long it takes.
            time_limit_ms: if arguments.messages.is_some() { u64::MAX } else { extent.pick(60_000, 2_000, 20_000) },
            ratio_max: match transport {
                StreamTransport::SharedMemory => Some(RATIO_MAX_SHARED_MEMORY),
                StreamTransport::Udp | StreamTransport::Multicast => Some(RATIO_MAX_PACKETS),
                StreamTransport::Tcp => None,
            },
        })
    })
}

fn throughputs(
    arguments: &SequencerArguments,
    transports: &[StreamTransport],
    is_running: bool,
) -> Vec<ThroughputPlan> {
    let extent = RunExtent::of(arguments.quick, arguments.full);
    let mut rows = Vec::new();
    for &transport in transports {
        let (batched, single): (&[usize], &[usize]) = match transport {
            StreamTransport::SharedMemory | StreamTransport::Tcp => (&[256, 64], &[]),
            // A running sequencer batches by its own options.
            StreamTransport::Multicast if is_running => (&[256, 64], &[]),
            StreamTransport::Multicast => (&[256, 64], &[256, 1312, 1400]),
            StreamTransport::Udp if is_running || arguments.transport.contains(&transport) => (&[256, 64], &[]),
            StreamTransport::Udp => continue,
        };
        for (batch, usual) in [(true, batched), (false, single)] {
            if usual.is_empty() {
                continue;
            }
            for (payload_bytes, mtu) in shapes(arguments, usual, batch) {
                let by_extent = match (transport, batch) {
                    (StreamTransport::SharedMemory, _) => extent.pick(5_000, 600_000, 2_000_000),
                    (_, true) => extent.pick(5_000, 400_000, 1_000_000),
                    (_, false) => extent.pick(5_000, 100_000, 200_000),
                };
                let messages = arguments.throughput_messages.unwrap_or(by_extent);
                let window_messages = arguments.window.unwrap_or_else(|| window_messages(transport, payload_bytes));
                let rate_min_per_s = rate_min(transport, batch, (payload_bytes, mtu));
                let warm_up = (messages / 10).max(1);
                rows.push(ThroughputPlan {
                    nodes: arguments.nodes.unwrap_or(NODES) as usize,
                    transport,
                    payload_bytes,
                    mtu,
                    batch,
                    warm_up,
                    messages,
                    window_messages,
                    rate_min_per_s,
                });
            }
        }
    }
    rows
}

fn shapes(arguments: &SequencerArguments, usual: &[usize], batch: bool) -> Vec<(usize, Option<Mtu>)> {
    let mut shapes: Vec<_> = payloads(arguments, usual)
        .into_iter()
        .flat_map(|payload_bytes| mtus(arguments).map(move |mtu| (payload_bytes, mtu)))
        .collect();
    // The published size: two packets at Ethernet's MTU, one of jumbo frames.
    if !batch && arguments.mtu.is_empty() && shapes.contains(&(PUBLISHED_LONG, None)) {
        shapes.push((PUBLISHED_LONG, Mtu::new(JUMBO).ok()));
    }
    shapes
}

const PUBLISHED_LONG: usize = 1_400;
const JUMBO: u64 = 9_000;

/// Limited by the caches for shared memory; by packets, none may be dropped: a dropped one is sent again with
/// everything after it.
fn window_messages(transport: StreamTransport, payload_bytes: usize) -> u32 {
    const BYTES_MAX_SHARED_MEMORY: usize = 8 << 20;
    const BYTES_MAX_PACKETS: usize = 512 << 10;
    match transport {
        StreamTransport::SharedMemory => {
            let of_frames = BYTES_MAX_SHARED_MEMORY / (payload_bytes + gapless_wire::HEADER_LENGTH);
            of_frames.clamp(1_024, 65_536) as u32
        }
        StreamTransport::Udp | StreamTransport::Multicast | StreamTransport::Tcp => {
            let of_packets = BYTES_MAX_PACKETS / (payload_bytes + 2 * gapless_wire::HEADER_LENGTH);
            of_packets.clamp(64, 4_096) as u32
        }
    }
}

fn rate_min(transport: StreamTransport, batch: bool, (payload_bytes, mtu): (usize, Option<Mtu>)) -> Option<f64> {
    match (transport, batch, payload_bytes) {
        (StreamTransport::Multicast, false, PUBLISHED_LONG) if mtu.is_some() => {
            rate_of(PUBLISHED_LONG as u64, batch).map(|published| published.sequencer_per_s as f64)
        }
        (StreamTransport::SharedMemory, _, 256) => Some(5e6),
        (StreamTransport::SharedMemory, _, 64) => Some(10e6),
        (StreamTransport::Multicast, true, 256) => Some(1.1e6),
        (StreamTransport::Multicast, true, 64) => Some(2.3e6),
        (StreamTransport::Multicast, false, 256) => Some(250e3),
        (StreamTransport::Multicast, false, 1312) => Some(150e3),
        _ => None,
    }
}

fn rewind(arguments: &SequencerArguments, transport: StreamTransport, mtu: Option<Mtu>) -> RewindPlan {
    let extent = RunExtent::of(arguments.quick, arguments.full);
    RewindPlan {
        transport,
        mtu,
        payload_bytes: arguments.payload.first().map_or(64, |&bytes| bytes as usize),
        frames: arguments.rewind_frames.unwrap_or_else(|| extent.pick(20_000, 2_000_000, 10_000_000)),
        rate_per_s: arguments.rewind_rate.unwrap_or(2_000),
        before_ms: extent.pick(200, 2_000, 5_000),
        rate_min_per_s: REWIND_RATE_MIN,
    }
}
