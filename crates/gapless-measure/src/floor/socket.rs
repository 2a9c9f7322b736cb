//! The cost of a round trip and of a stream through the kernel's sockets inside one machine.

use std::hint::black_box;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use super::sampling::{FloorEffort, SpinWait, StopFlag};
use crate::FloorRow;
use crate::histogram::LatencyHistogram;
use crate::{BenchError, Result};

/// The limit of UDP over IPv4.
const UDP_PAYLOAD_MAX: usize = 65_507;
const STREAM_PARTS: u64 = 30;
const READ_BYTES: usize = 1 << 20;

pub(super) fn udp(effort: &FloorEffort, payload: usize, connected: bool) -> Result<FloorRow> {
    let open = || -> io::Result<_> {
        let first = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let second = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let (of_first, of_second) = (first.local_addr()?, second.local_addr()?);
        first.set_nonblocking(true)?;
        second.set_nonblocking(true)?;
        if connected {
            first.connect(of_second)?;
            second.connect(of_first)?;
            return Ok((UdpSocketLink(first, None), UdpSocketLink(second, None)));
        }
        Ok((UdpSocketLink(first, Some(of_second)), UdpSocketLink(second, Some(of_first))))
    };
    let (first, second) = open().map_err(|source| BenchError::system("open UDP sockets on loopback", source))?;
    let payload = payload.min(UDP_PAYLOAD_MAX);
    effort.latency_row(payload.max(1), &round_trip(effort, payload, false, first, second)?)
}

pub(super) fn tcp(effort: &FloorEffort, payload: usize, is_paced: bool) -> Result<LatencyHistogram> {
    let (first, second) = tcp_pair()?;
    round_trip(effort, payload, is_paced, first, second)
}

fn tcp_pair() -> Result<(TcpStream, TcpStream)> {
    let open = || -> io::Result<_> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let first = TcpStream::connect(listener.local_addr()?)?;
        let (second, _) = listener.accept()?;
        for stream in [&first, &second] {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
        }
        Ok((first, second))
    };
    open().map_err(|source| BenchError::system("open TCP sockets on loopback", source))
}

pub(super) fn tcp_stream(effort: &FloorEffort, payload: usize) -> Result<FloorRow> {
    let (mut reader, mut writer) = tcp_pair()?;
    let payload = payload.max(1);
    let part = (effort.samples / STREAM_PARTS).max(1);
    let partner = |stop: &StopFlag| {
        let bytes = vec![1; payload];
        for _ in 0..part * STREAM_PARTS {
            if transfer(payload, stop, |done| writer.send(&bytes[done..])).map_err(|e| effort.failed(e))?
                == TransferEnd::Stopped
            {
                break;
            }
        }
        Ok(())
    };
    let (rate, samples) = effort.on_two_threads(partner, |stop| {
        let mut bytes = vec![0; READ_BYTES];
        let (begin, mut rates) = (Instant::now(), Vec::new());
        for index in 0..STREAM_PARTS {
            let part_begin = Instant::now();
            let length = part as usize * payload;
            let read = transfer(length, stop, |done| reader.receive(&mut bytes[..READ_BYTES.min(length - done)]));
            if read.map_err(|e| effort.failed(e))? == TransferEnd::Stopped {
                return Err(effort.abandoned());
            }
            black_box(&bytes);
            if index > 0 {
                rates.push(part as f64 / part_begin.elapsed().as_secs_f64());
            }
            if !rates.is_empty() && begin.elapsed() > effort.time_limit {
                break;
            }
        }
        reader.close();
        rates.sort_by(f64::total_cmp);
        Ok((rates.get(rates.len() / 2).copied().unwrap_or(0.0), part * rates.len() as u64))
    })?;
    Ok(FloorRow { rate_per_s: Some(rate.round()), samples: Some(samples), ..effort.row(payload) })
}

pub(super) fn unix(effort: &FloorEffort, payload: usize, blocking: bool) -> Result<FloorRow> {
    let open = || -> io::Result<_> {
        let (first, second) = UnixStream::pair()?;
        first.set_nonblocking(!blocking)?;
        second.set_nonblocking(!blocking)?;
        Ok((first, second))
    };
    let (first, second) = open().map_err(|source| BenchError::system("open Unix sockets", source))?;
    effort.latency_row(payload.max(1), &round_trip(effort, payload, false, first, second)?)
}

trait SocketLink: Send {
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize>;
    fn receive(&mut self, bytes: &mut [u8]) -> io::Result<usize>;
    /// Wakes a partner that blocks in `receive`.
    fn close(&mut self);
}

/// Socket, with the peer's address if it is not connected.
struct UdpSocketLink(UdpSocket, Option<SocketAddr>);

impl SocketLink for UdpSocketLink {
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.1 {
            Some(to) => self.0.send_to(bytes, to),
            None => self.0.send(bytes),
        }
    }

    fn receive(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.1 {
            Some(_) => self.0.recv_from(bytes).map(|(length, _)| length),
            None => self.0.recv(bytes),
        }
    }

    fn close(&mut self) {}
}

macro_rules! stream_link {
    ($stream:ty) => {
        impl SocketLink for $stream {
            fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.write(bytes)
            }

            fn receive(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
                self.read(bytes)
            }

            fn close(&mut self) {
                // The partner may have closed it already.
                let _ = self.shutdown(Shutdown::Both);
            }
        }
    };
}

stream_link!(TcpStream);
stream_link!(UnixStream);

#[derive(PartialEq)]
enum TransferEnd {
    Done,
    Stopped,
}

fn round_trip(
    effort: &FloorEffort,
    payload: usize,
    is_paced: bool,
    mut first: impl SocketLink,
    mut second: impl SocketLink,
) -> Result<LatencyHistogram> {
    let payload = payload.max(1);
    let partner = |stop: &StopFlag| {
        let mut bytes = vec![0; payload];
        loop {
            let received = transfer(payload, stop, |done| second.receive(&mut bytes[done..]));
            let sent = match received {
                Ok(TransferEnd::Done) => transfer(payload, stop, |done| second.send(&bytes[done..])),
                other => other,
            };
            match sent {
                Ok(TransferEnd::Done) => (),
                Ok(TransferEnd::Stopped) => break,
                Err(error) => {
                    second.close();
                    return Err(effort.failed(error));
                }
            }
        }
        second.close();
        Ok(())
    };
    effort.on_two_threads(partner, |stop| {
        let mut bytes = vec![1; payload];
        let once = || {
            let sent = transfer(payload, stop, |done| first.send(&bytes[done..])).map_err(|e| effort.failed(e))?;
            let received =
                transfer(payload, stop, |done| first.receive(&mut bytes[done..])).map_err(|e| effort.failed(e))?;
            if sent == TransferEnd::Done && received == TransferEnd::Done { Ok(()) } else { Err(effort.abandoned()) }
        };
        let histogram = if is_paced { effort.sample_paced(once) } else { effort.sample(once) };
        first.close();
        histogram
    })
}

fn transfer(
    payload: usize,
    stop: &StopFlag,
    mut step: impl FnMut(usize) -> io::Result<usize>,
) -> io::Result<TransferEnd> {
    let mut done = 0;
    let mut spin = SpinWait::default();
    while done < payload {
        match step(done) {
            Ok(0) => return Ok(TransferEnd::Stopped),
            Ok(moved) => done += moved,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if !spin.turn(stop) {
                    return Ok(TransferEnd::Stopped);
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                return Ok(TransferEnd::Stopped);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(TransferEnd::Done)
}
