//! How fast a ring is, beside the floor that a minimal hand-written one sets on the same cores in the
//! same run: `cargo run --release -p gapless-log --example log_speed [ROUNDS]`.
//!
//! Floor and ring take turns; each row gives the best round of both, because whatever else the machine
//! does only ever makes a round slower. A frame is the payload and a header of 64 bytes; the floor
//! moves as many bytes.

mod floor;
mod pinned;
mod ring;

/// Frames per round of a one-way row.
const FRAMES: usize = 1 << 19;
/// Round trips per round of a ping-pong row.
const ROUND_TRIPS: usize = 20_000;
/// Bytes of each ring.
const CAPACITY: usize = 1 << 20;
/// Bytes of a frame's header.
const HEADER: usize = 64;

/// Median and 99th percentile of one round of a ping-pong.
#[derive(Clone, Copy)]
struct Latency {
    p50_ns: u64,
    p99_ns: u64,
}

impl Latency {
    const WORST: Self = Self { p50_ns: u64::MAX, p99_ns: u64::MAX };

    fn of(mut samples_ns: Vec<u64>) -> Self {
        samples_ns.sort_unstable();
        Self { p50_ns: samples_ns[samples_ns.len() / 2], p99_ns: samples_ns[samples_ns.len() * 99 / 100] }
    }

    fn best(self, other: Self) -> Self {
        if other.p50_ns < self.p50_ns { other } else { self }
    }
}

fn main() {
    let rounds = std::env::args().nth(1).map_or(10, |text| text.parse().expect("ROUNDS is a number"));
    println!("{:<34}{:>12}{:>12}{:>8}", "one way, M frames/s", "floor", "ring", "ratio");
    for payload in [64, 256, 1024] {
        for batch in [1, 16] {
            one_way(payload, batch, rounds);
        }
    }
    println!("{:<34}{:>12}{:>12}{:>8}", "ping-pong, ns", "floor", "ring", "ratio");
    for payload in [64, 256, 1024] {
        ping_pong(payload, rounds);
    }
}

fn one_way(payload: usize, batch: usize, rounds: usize) {
    let length = payload + HEADER;
    let (mut floor, mut ring) = (0.0_f64, 0.0_f64);
    for _ in 0..rounds {
        floor = floor.max(floor::one_way(length, batch));
        ring = ring.max(ring::one_way(length, batch));
    }
    let name = format!("{payload} B, {batch} per publish");
    println!("{name:<34}{floor:>12.1}{ring:>12.1}{:>8.2}", ring / floor);
}

fn ping_pong(payload: usize, rounds: usize) {
    let length = payload + HEADER;
    let (mut floor, mut ring) = (Latency::WORST, Latency::WORST);
    for _ in 0..rounds {
        floor = floor.best(floor::ping_pong(length));
        ring = ring.best(ring::ping_pong(length));
    }
    for (name, floor, ring) in [("p50", floor.p50_ns, ring.p50_ns), ("p99", floor.p99_ns, ring.p99_ns)] {
        let name = format!("{payload} B, {name}");
        println!("{name:<34}{floor:>12}{ring:>12}{:>8.2}", ring as f64 / floor as f64);
    }
}
