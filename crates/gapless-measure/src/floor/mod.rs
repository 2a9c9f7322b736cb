//! The machine's own floor: the cost of shared memory, disk, sockets and wake-ups here and now, without any of our
//! code.
//!
//! | module | what lives there |
//! |---|---|
//! | `shared` | raw shared memory: a ping-pong and a ring; the only `unsafe` of this crate |
//! | `memory` | ping-pong, one-way stream, memcpy, reading the clock |
//! | `disk` | page cache, device, sequential writing |
//! | `socket` | UDP, TCP and Unix round trips, TCP one way |
//! | `wake` | waking a blocked thread |
//! | `sampling` | the loop around one sample, the two pinned threads |
//!
//! Measured in the same run, on the same cores and with the same payload as the figure that stands
//! next to it. Every floor runs on threads of its own, so the caller's affinity is never changed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::FloorRow;
use crate::Result;
use crate::affinity::pair_of_cores;
use crate::histogram::LatencyHistogram;
use clap::ValueEnum;

mod disk;
mod memory;
mod sampling;
mod shared;
mod socket;
mod wake;

/// A benchmark of N payload bytes has the floor of N + 64.
pub const HEADER_BYTES: u64 = gapless_wire::HEADER_LENGTH as u64;

/// A floor that can be measured. The names in the JSON are those of [`FloorKind::name`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum FloorKind {
    /// Round trip between two spinning threads, the payload copied in and out on both sides.
    ShmPingPong,
    /// The same, begun 10,000 times a second and timed from the scheduled time: also what the machine adds by
    /// taking a CPU away.
    ShmPingPongPaced,
    /// One way through a ring in shared memory, the payload copied in and out; messages per second.
    ShmStream,
    /// One `pwrite` into the page cache.
    Pwrite,
    /// One `pwrite` and one `fdatasync` in a preallocated, zeroed file.
    PwriteFdatasync,
    /// Sequential writing of a new file into the page cache; bytes per second.
    SequentialWrite,
    /// The same with an `fdatasync` at its end.
    SequentialWriteSync,
    /// Copying memory; bytes per second.
    Memcpy,
    /// The same in pieces of the payload's length, each from and to where the caches have nothing of it.
    MemcpyCold,
    /// Reading the monotonic clock once.
    ClockRead,
    /// Loopback round trip over UDP, spinning, sockets connected to each other.
    UdpRoundTrip,
    /// The same with sockets that are not connected, as one needs with more than one peer.
    UdpRoundTripUnconnected,
    /// Loopback round trip over TCP without delay, spinning.
    TcpRoundTrip,
    /// The same, begun 10,000 times a second and timed from the scheduled time.
    TcpRoundTripPaced,
    /// One way over TCP on loopback, one write for each message, spinning; messages per second.
    TcpStream,
    /// Round trip over a Unix socket, spinning.
    UnixRoundTrip,
    /// Round trip over a Unix socket, blocking.
    UnixRoundTripBlocking,
    /// Round trip of two threads that block on a futex.
    FutexRoundTrip,
}

impl FloorKind {
    /// Name, and samples at full effort for any payload: messages of a rate, passes of a bandwidth.
    const fn figures(self) -> (&'static str, u64) {
        match self {
            Self::ShmPingPong => ("shm_ping_pong", 200_000),
            Self::ShmPingPongPaced => ("shm_ping_pong_paced", 20_000),
            Self::ShmStream => ("shm_stream", 2_500_000),
            Self::Pwrite => ("pwrite", 30_000),
            Self::PwriteFdatasync => ("pwrite_fdatasync", 1_000),
            Self::SequentialWrite => ("sequential_write", 1),
            Self::SequentialWriteSync => ("sequential_write_sync", 1),
            Self::Memcpy => ("memcpy", 16),
            Self::MemcpyCold => ("memcpy_cold", 16),
            Self::ClockRead => ("clock_read", 2_000),
            Self::UdpRoundTrip => ("udp_round_trip", 30_000),
            Self::UdpRoundTripUnconnected => ("udp_round_trip_unconnected", 30_000),
            Self::TcpRoundTrip => ("tcp_round_trip", 30_000),
            Self::TcpRoundTripPaced => ("tcp_round_trip_paced", 20_000),
            Self::TcpStream => ("tcp_stream", 300_000),
            Self::UnixRoundTrip => ("unix_round_trip", 30_000),
            Self::UnixRoundTripBlocking => ("unix_round_trip_blocking", 2_000),
            Self::FutexRoundTrip => ("futex_round_trip", 2_000),
        }
    }

    pub const fn name(self) -> &'static str {
        self.figures().0
    }
}

#[derive(Debug, Clone)]
pub struct FloorPlan {
    /// Kinds with payloads in bytes, in the order of the report.
    pub items: Vec<(FloorKind, u64)>,
    /// Directory on the device of the benchmark's journal.
    pub directory: PathBuf,
    /// `None` leaves the threads to the scheduler.
    pub cpus: Option<(usize, usize)>,
    /// Limit of one measurement, which then keeps the samples it has.
    pub time_limit: Duration,
    /// Percent of the usual samples, 100 by default.
    pub effort_percent: u32,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct FloorReport {
    pub rows: Vec<FloorRow>,
    /// One line per floor, with the reason.
    pub skipped: Vec<String>,
}

impl FloorPlan {
    /// Pinned to two cores where there are two.
    pub fn new(directory: &Path, items: Vec<(FloorKind, u64)>) -> Self {
        Self {
            items,
            directory: directory.to_owned(),
            cpus: pair_of_cores(),
            time_limit: Duration::from_millis(450),
            effort_percent: 100,
        }
    }

    /// Payloads plus the frame's header.
    pub fn canonical(directory: &Path, payload_bytes: u64) -> Self {
        let frame = payload_bytes + HEADER_BYTES;
        let framed = [
            FloorKind::ShmPingPong,
            FloorKind::ShmPingPongPaced,
            FloorKind::ShmStream,
            FloorKind::Pwrite,
            FloorKind::PwriteFdatasync,
        ];
        let mut items: Vec<_> = framed.into_iter().map(|kind| (kind, frame)).collect();
        items.extend([(FloorKind::SequentialWrite, 0), (FloorKind::ClockRead, 0)]);
        Self::new(directory, items)
    }

    /// Canonical floors, and the link between two members.
    pub fn clustered(directory: &Path, payload_bytes: u64) -> Self {
        let mut plan = Self::canonical(directory, payload_bytes);
        let frame = payload_bytes + HEADER_BYTES;
        let link = [FloorKind::TcpRoundTrip, FloorKind::TcpRoundTripPaced, FloorKind::TcpStream];
        plan.items.extend(link.into_iter().map(|kind| (kind, frame)));
        plan
    }

    pub fn complete(directory: &Path) -> Self {
        let mut items = Vec::new();
        for &kind in FloorKind::value_variants() {
            let payloads: &[u64] = match kind {
                FloorKind::ShmPingPong => &[0, 64, 256, 1024],
                FloorKind::ShmPingPongPaced | FloorKind::TcpRoundTripPaced => &[256],
                FloorKind::ShmStream => &[32, 64, 256, 1400],
                FloorKind::Pwrite | FloorKind::PwriteFdatasync => &[256, 4096],
                FloorKind::UdpRoundTrip | FloorKind::UdpRoundTripUnconnected => &[64, 1024],
                FloorKind::TcpRoundTrip | FloorKind::TcpStream => &[256, 1024],
                FloorKind::UnixRoundTrip | FloorKind::UnixRoundTripBlocking => &[64],
                FloorKind::MemcpyCold => &[500_068],
                _ => &[0],
            };
            items.extend(payloads.iter().map(|&payload| (kind, payload)));
        }
        Self::new(directory, items)
    }

    /// Skips and reports a floor that fails.
    pub fn measure(&self) -> FloorReport {
        self.measure_with(|_, _| ())
    }

    /// Calls `begin(index, kind)` before each floor.
    pub fn measure_with(&self, mut begin: impl FnMut(usize, FloorKind)) -> FloorReport {
        let mut report = FloorReport::default();
        for (index, &(kind, payload_bytes)) in self.items.iter().enumerate() {
            begin(index, kind);
            match self.measure_one(kind, payload_bytes) {
                Ok(row) => report.rows.push(row),
                Err(error) => report.skipped.push(format!("floor {} was skipped: {error}", kind.name())),
            }
        }
        report
    }

    fn measure_one(&self, kind: FloorKind, payload_bytes: u64) -> Result<FloorRow> {
        let effort = sampling::FloorEffort {
            kind,
            samples: (kind.figures().1 * u64::from(self.effort_percent) / 100).max(1),
            time_limit: self.time_limit,
            cpus: self.cpus,
            paced_per_s: sampling::PACED_PER_S,
        };
        let payload = usize::try_from(payload_bytes).unwrap_or(usize::MAX).min(sampling::PAYLOAD_MAX);
        match kind {
            FloorKind::ShmPingPong | FloorKind::ShmPingPongPaced => {
                let is_paced = kind == FloorKind::ShmPingPongPaced;
                effort.latency_row(payload, &memory::ping_pong(&effort, payload, is_paced)?)
            }
            FloorKind::ShmStream => memory::stream(&effort, payload),
            FloorKind::Memcpy => memory::memcpy(&effort),
            FloorKind::MemcpyCold => memory::memcpy_cold(&effort, payload.max(1)),
            FloorKind::ClockRead => memory::clock_read(&effort),
            FloorKind::Pwrite => disk::write_one(&effort, &self.directory, payload, false),
            FloorKind::PwriteFdatasync => disk::write_one(&effort, &self.directory, payload, true),
            FloorKind::SequentialWrite => disk::sequential(&effort, &self.directory, false),
            FloorKind::SequentialWriteSync => disk::sequential(&effort, &self.directory, true),
            FloorKind::UdpRoundTrip => socket::udp(&effort, payload, true),
            FloorKind::UdpRoundTripUnconnected => socket::udp(&effort, payload, false),
            FloorKind::TcpRoundTrip | FloorKind::TcpRoundTripPaced => {
                let is_paced = kind == FloorKind::TcpRoundTripPaced;
                effort.latency_row(payload.max(1), &socket::tcp(&effort, payload, is_paced)?)
            }
            FloorKind::TcpStream => socket::tcp_stream(&effort, payload),
            FloorKind::UnixRoundTrip => socket::unix(&effort, payload, false),
            FloorKind::UnixRoundTripBlocking => socket::unix(&effort, payload, true),
            FloorKind::FutexRoundTrip => wake::futex(&effort),
        }
    }
}

/// A slice next to one slice of a row: round trips over TCP, or else through shared memory, `rate_per_s` for
/// `duration`, timed from the scheduled time, on two cores where possible.
///
/// # Errors
/// No sockets, no shared memory, no sample.
pub fn paced_slice(
    is_over_tcp: bool,
    payload_bytes: u64,
    rate_per_s: u64,
    duration: Duration,
) -> Result<LatencyHistogram> {
    let rate_per_s = rate_per_s.max(1);
    let effort = sampling::FloorEffort {
        kind: if is_over_tcp { FloorKind::TcpRoundTripPaced } else { FloorKind::ShmPingPongPaced },
        samples: (u128::from(rate_per_s) * duration.as_nanos() / 1_000_000_000).clamp(1, 10_000_000) as u64,
        time_limit: duration,
        cpus: pair_of_cores(),
        paced_per_s: rate_per_s,
    };
    let payload = usize::try_from(payload_bytes).unwrap_or(usize::MAX).min(sampling::PAYLOAD_MAX);
    if is_over_tcp { socket::tcp(&effort, payload, true) } else { memory::ping_pong(&effort, payload, true) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_give_figures_and_clean_up() {
        let directory = tempfile::tempdir().unwrap();
        let plan = FloorPlan { effort_percent: 1, ..FloorPlan::complete(directory.path()) };
        let mut begun = Vec::new();
        let report = plan.measure_with(|index, kind| begun.push((index, kind)));
        assert_eq!(report.skipped, Vec::<String>::new());
        assert_eq!(report.rows.len(), plan.items.len());
        assert_eq!(begun.len(), plan.items.len());
        for row in &report.rows {
            let has_latency = row.p50_ns.is_some_and(|p50| p50 > 0) && row.p99_9_ns >= row.p50_ns;
            let has_rate = row.rate_per_s.or(row.bytes_per_s).is_some_and(|rate| rate.is_finite() && rate > 0.0);
            assert!(has_latency != has_rate, "one kind of figure, not both or none: {row:?}");
            assert!(row.samples.is_some_and(|samples| samples > 0), "{row:?}");
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn names_are_distinct() {
        let names: std::collections::HashSet<_> = FloorKind::value_variants().iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), FloorKind::value_variants().len());
    }

    #[test]
    fn missing_directory_skips_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("no");
        let plan = FloorPlan {
            effort_percent: 1,
            ..FloorPlan::new(&missing, vec![(FloorKind::PwriteFdatasync, 256), (FloorKind::ClockRead, 0)])
        };
        let report = plan.measure();
        assert_eq!(report.rows.len(), 1);
        assert!(report.skipped[0].contains("pwrite_fdatasync") && report.skipped[0].contains("no"));
    }

    #[test]
    fn canonical_floor_has_the_header() {
        let plan = FloorPlan::canonical(Path::new("."), 180);
        assert!(plan.items.contains(&(FloorKind::ShmPingPong, 244)));
    }

    #[test]
    fn slice_length_follows_its_pace() {
        for is_over_tcp in [false, true] {
            let slice = paced_slice(is_over_tcp, 100, 2_000, Duration::from_millis(50)).unwrap();
            assert!((1..=100).contains(&slice.count()), "{}", slice.count());
        }
    }

    #[test]
    fn one_cpu_is_enough() {
        let cpu = *crate::affinity::available_cpus().first().unwrap();
        let plan = FloorPlan {
            effort_percent: 1,
            cpus: Some((cpu, cpu)),
            time_limit: Duration::from_millis(100),
            ..FloorPlan::new(
                Path::new("."),
                vec![(FloorKind::ShmPingPong, 64), (FloorKind::ShmPingPongPaced, 64), (FloorKind::ShmStream, 64)],
            )
        };
        let report = plan.measure();
        assert_eq!(report.rows.len(), 3, "{:?}", report.skipped);
    }
}
