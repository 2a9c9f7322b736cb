//! The cost of packets, by the operating system's plain calls and by [`UdpSocket`].
//!
//! ```text
//! cargo run --release -p gapless-stream --example udp_speed [-- SECONDS]
//! ```
//!
//! `SECONDS` (default 1) is how long each row is measured in all. Everything is on the loopback of
//! this machine, between threads that spin and are pinned nowhere. The rows of a table take turns,
//! several times each, so that what else the machine does meets them alike.
//!
//! 1. Round trip: one packet there and back. `plain` is `send` and `recv` of connected sockets;
//!    `plain, unconnected` the same by `send_to` and `recv_from`, which is what a socket with more
//!    than one peer needs.
//! 2. One way to a group with three receivers. The sender stays at most 512 KiB ahead of the slowest,
//!    so that nothing is lost and the figure is what everyone received. Lengths are all equal, or
//!    each packet has another.

use gapless_transport::network::{Datagrams, Interface, MulticastOut, Peer, Segmentation, UdpOptions, UdpSocket};
use std::io;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const ROUNDS: u32 = 5;
const RECEIVERS: usize = 3;
const AHEAD_BYTES: usize = 512 << 10;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Result<()> {
    let seconds: f64 = std::env::args().nth(1).map_or(Ok(1.0), |text| text.parse())?;
    let turn = Duration::from_secs_f64(seconds / f64::from(ROUNDS));
    println!("round trip on loopback           bytes      p50      p90      p99");
    for bytes in [256, 1024] {
        let mut rows: Vec<(&str, Vec<u32>)> = vec![
            ("plain", vec![]),
            ("plain, unconnected", vec![]),
            ("UdpSocket", vec![]),
            ("UdpSocket, segmentation off", vec![]),
        ];
        for _ in 0..ROUNDS {
            for (name, samples_ns) in &mut rows {
                match *name {
                    "plain" => round_trips(plain_pair(true)?, bytes, turn, samples_ns)?,
                    "plain, unconnected" => round_trips(plain_pair(false)?, bytes, turn, samples_ns)?,
                    "UdpSocket" => round_trips(pair(Segmentation::Auto)?, bytes, turn, samples_ns)?,
                    _ => round_trips(pair(Segmentation::Off)?, bytes, turn, samples_ns)?,
                }
            }
        }
        for (name, mut samples_ns) in rows {
            samples_ns.sort_unstable();
            let at = |fraction: f64| f64::from(samples_ns[(samples_ns.len() as f64 * fraction) as usize]) / 1000.0;
            println!("{name:<30} {bytes:>7} {:>6.2} µs {:>5.2} µs {:>5.2} µs", at(0.5), at(0.9), at(0.99));
        }
    }
    println!("\none way to {RECEIVERS} receivers            bytes   packets/s to each     MB/s  packets per look");
    for (bytes, is_even) in [(256, true), (1024, true), (1400, true), (256, false), (1024, false)] {
        let mut rows = vec![(Segmentation::Auto, Way::default()), (Segmentation::Off, Way::default())];
        for _ in 0..ROUNDS {
            for (segmentation, way) in &mut rows {
                one_way(*segmentation, bytes, is_even, turn, way)?;
            }
        }
        for (segmentation, way) in rows {
            let name = format!("{segmentation:?}, {}", if is_even { "equal" } else { "different" });
            let rate = way.packets as f64 / way.elapsed.as_secs_f64();
            let look = (way.packets * RECEIVERS as u64) as f64 / way.looks as f64;
            println!("{name:<30} {bytes:>7} {:>17.0} k {:>8.0} {look:>17.1}", rate / 1e3, rate * bytes as f64 / 1e6);
        }
    }
    Ok(())
}

/// Keeps the packet from being optimized away.
fn look_at(packet: &[u8]) {
    std::hint::black_box(packet[0]);
}

/// One end of a round trip.
trait End: Send {
    fn send(&mut self, packet: &[u8]) -> io::Result<()>;
    /// Whether a packet came.
    fn receive(&mut self) -> io::Result<bool>;
}

struct Plain {
    socket: std::net::UdpSocket,
    to: Option<Peer>,
    received: Vec<u8>,
}

impl End for Plain {
    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        match self.to {
            Some(to) => self.socket.send_to(packet, to).map(drop),
            None => self.socket.send(packet).map(drop),
        }
    }

    fn receive(&mut self) -> io::Result<bool> {
        let received = match self.to {
            Some(_) => self.socket.recv_from(&mut self.received).map(|(length, _)| length),
            None => self.socket.recv(&mut self.received),
        };
        match received {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }
}

struct Ours(UdpSocket, Peer);

impl End for Ours {
    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        self.0.send(self.1, packet, packet.len()).map(drop)
    }

    fn receive(&mut self) -> io::Result<bool> {
        Ok(self.0.receive(&mut |_, packet| look_at(packet))? > 0)
    }
}

fn plain_pair(connected: bool) -> Result<(Plain, Plain)> {
    let open = || -> io::Result<_> {
        let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_nonblocking(true)?;
        Ok(Plain { socket, to: None, received: vec![0; 1 << 16] })
    };
    let (mut one, mut two) = (open()?, open()?);
    let (one_address, two_address) = (one.socket.local_addr()?, two.socket.local_addr()?);
    if connected {
        one.socket.connect(two_address)?;
        two.socket.connect(one_address)?;
    } else {
        (one.to, two.to) = (Some(two_address), Some(one_address));
    }
    Ok((one, two))
}

fn pair(segmentation: Segmentation) -> Result<(Ours, Ours)> {
    let options = UdpOptions { segmentation, ..UdpOptions::at((Ipv4Addr::LOCALHOST, 0).into()) };
    let (one, two) = (UdpSocket::open(&options)?, UdpSocket::open(&options)?);
    let (one_address, two_address) = (one.local_address(), two.local_address());
    Ok((Ours(one, two_address), Ours(two, one_address)))
}

fn round_trips<E: End>(
    (mut one, mut two): (E, E),
    bytes: usize,
    turn: Duration,
    samples_ns: &mut Vec<u32>,
) -> Result<()> {
    let stop = AtomicBool::new(false);
    let packet = vec![1; bytes];
    std::thread::scope(|scope| {
        let partner = scope.spawn(|| -> io::Result<()> {
            // Relaxed: nothing but the flag is passed.
            while !stop.load(Ordering::Relaxed) {
                if two.receive()? {
                    two.send(&packet)?;
                }
            }
            Ok(())
        });
        let mut measure = || -> io::Result<()> {
            let begin = Instant::now();
            let mut trips = 0;
            loop {
                let sent = Instant::now();
                one.send(&packet)?;
                while !one.receive()? {
                    // Loopback loses nothing of one packet, but a partner that failed answers nothing.
                    if sent.elapsed() > Duration::from_secs(5) {
                        return Err(io::Error::new(ErrorKind::TimedOut, "no answer for 5 s"));
                    }
                }
                trips += 1;
                // The first ones warm up.
                if trips > 500 {
                    samples_ns.push(sent.elapsed().as_nanos() as u32);
                }
                if begin.elapsed() > turn && trips > 1_000 {
                    return Ok(());
                }
            }
        };
        let measured = measure();
        stop.store(true, Ordering::Relaxed);
        let answered = partner.join().map_err(|_| "the partner's thread panicked")?;
        Ok(measured.and(answered)?)
    })
}

/// The sums of one row of the second table.
#[derive(Default)]
struct Way {
    /// Received by each receiver.
    packets: u64,
    /// Calls that brought something, by all receivers.
    looks: u64,
    elapsed: Duration,
}

fn one_way(segmentation: Segmentation, bytes: usize, is_even: bool, turn: Duration, way: &mut Way) -> Result<()> {
    let loopback = Interface::Address(Ipv4Addr::LOCALHOST.into());
    let mut options = UdpOptions { segmentation, ..UdpOptions::at((Ipv4Addr::LOCALHOST, 0).into()) };
    options.multicast_out = MulticastOut { interface: loopback.clone(), hops: 1, loops_back: true };
    let mut sender = UdpSocket::open(&options)?;
    let group = Peer::from((Ipv4Addr::new(239, 255, 71, 9), sender.local_address().port()));
    let receivers = (0..RECEIVERS).map(|_| {
        let options = UdpOptions { segmentation, ..UdpOptions::of_group(group.ip(), group.port(), loopback.clone()) };
        UdpSocket::open(&options)
    });
    let receivers = receivers.collect::<io::Result<Vec<_>>>()?;
    let received: Vec<AtomicU64> = (0..RECEIVERS).map(|_| AtomicU64::new(0)).collect();
    let (stop, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    let lengths: Vec<usize> = (0..64).map(|n| if is_even { bytes } else { bytes - 32 + n * 37 % 64 }).collect();
    let batch = vec![1; lengths.iter().sum()];
    let run = |(mut receiver, count): (UdpSocket, &AtomicU64)| -> io::Result<()> {
        let mut own_looks = 0;
        // Relaxed, here and below: counts and a flag, which order nothing else.
        while !stop.load(Ordering::Relaxed) {
            match receiver.receive(&mut |_, packet| look_at(packet))? {
                0 => std::thread::yield_now(),
                packets => {
                    own_looks += 1;
                    count.fetch_add(packets as u64, Ordering::Relaxed);
                }
            }
        }
        looks.fetch_add(own_looks, Ordering::Relaxed);
        Ok(())
    };
    let run = &run;
    std::thread::scope(|scope| {
        let threads: Vec<_> = receivers.into_iter().zip(&received).map(|pair| scope.spawn(move || run(pair))).collect();
        let mut send = || -> io::Result<u64> {
            let ahead_max = (AHEAD_BYTES / bytes) as u64;
            let slowest = || received.iter().map(|count| count.load(Ordering::Relaxed)).min().unwrap_or(0);
            let begin = Instant::now();
            let mut sent = 0;
            while begin.elapsed() < turn {
                if sent - slowest() > ahead_max {
                    std::thread::yield_now();
                    continue;
                }
                sent += if is_even {
                    sender.send(group, &batch, bytes)? as u64 / bytes as u64
                } else {
                    sender.send_uneven(group, &batch, &lengths)? as u64
                };
            }
            while slowest() < sent {
                if begin.elapsed() > turn + Duration::from_secs(5) {
                    let lost = sent - slowest();
                    return Err(io::Error::new(ErrorKind::TimedOut, format!("{lost} of {sent} packets were lost")));
                }
                std::thread::yield_now();
            }
            way.elapsed += begin.elapsed();
            Ok(sent)
        };
        let sent = send();
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| "a receiver's thread panicked")??;
        }
        way.packets += sent?;
        way.looks += looks.load(Ordering::Relaxed);
        Ok(())
    })
}
