//! Carries frames between a client's rings and a service's TCP port on another machine, with the packets of
//! `docs/protocols/upstream.md`; runs when the client is polled.

use crate::TransportError;
use crate::network::TcpConnection;
use crate::network::tcp::Received;
use crate::readiness;
use gapless_log::{LogError, RingReader, RingWriter};
use gapless_wire::upstream::{self, HEADER_LENGTH, NodeReport, UpstreamBody, UpstreamPacket, finish_frames};
use gapless_wire::{Frame, aligned_length};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, BorrowedFd};
use std::io;
use std::time::{Duration, Instant};

const PACKET_LENGTH: usize = 60_000;

pub struct Pump {
    connection: TcpConnection,
    key: u64,
    commands: RingReader,
    replies: RingWriter,
    /// Bytes of the first packet of answers that are in the ring already.
    taken: usize,
    packet: Vec<u8>,
    heartbeat_interval: Duration,
    last_sent: Instant,
    is_over: bool,
}

struct ConnectionLost;

/// Waits until bytes have arrived, or can be sent if `sends`, or for `timeout`.
pub(crate) fn wait(connection: &TcpConnection, sends: bool, timeout: Duration) -> io::Result<()> {
    let flags = if sends { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
    Ok(readiness::wait(&mut [PollFd::from_borrowed_fd(connection.as_fd(), flags)], Some(timeout))?)
}

impl Pump {
    pub(crate) fn new(
        (connection, key): (TcpConnection, u64),
        (commands, replies): (RingReader, RingWriter),
        heartbeat_interval: Duration,
    ) -> Self {
        let (taken, packet, last_sent, is_over) = (0, Vec::new(), Instant::now(), false);
        Self { connection, key, commands, replies, taken, packet, heartbeat_interval, last_sent, is_over }
    }

    /// Sends and receives as far as there is room.
    pub fn turn(&mut self) {
        self.is_over = self.is_over || self.try_turn().is_err();
    }

    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Sleeps until there may be work, or for `timeout`.
    ///
    /// # Errors
    /// The operating system cannot wait.
    pub fn sleep(&mut self, timeout: Duration) -> Result<(), TransportError> {
        self.turn();
        let (limit, sends) = self.sleep_limit();
        if limit.is_zero() {
            return Ok(());
        }
        wait(&self.connection, sends, timeout.min(limit))
            .map_err(|source| TransportError::System { action: "waiting for a service".to_owned(), source })?;
        self.turn();
        Ok(())
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }

    /// Longest sleep, and whether it also ends once bytes can be sent.
    pub(crate) fn sleep_limit(&self) -> (Duration, bool) {
        if self.is_over || self.replies.backlog_bytes() > 0 {
            return (Duration::ZERO, false);
        }
        (self.heartbeat_interval.saturating_sub(self.last_sent.elapsed()), self.connection.unsent() > 0)
    }

    fn try_turn(&mut self) -> Result<(), ConnectionLost> {
        self.send()?;
        let received = self.connection.receive().map_err(|_| ConnectionLost)?;
        // Frames that arrived before the end are still taken.
        self.receive()?;
        if received == Received::End { Err(ConnectionLost) } else { Ok(()) }
    }

    fn send(&mut self) -> Result<(), ConnectionLost> {
        while let Some(length) = self.commands.next_length().map_err(|_| ConnectionLost)? {
            let padded = aligned_length(length);
            let start = self.packet.len().max(HEADER_LENGTH);
            if self.connection.room().len() < start + padded {
                break;
            }
            self.packet.resize(start + padded, 0);
            self.commands.copy(&mut self.packet[start..]);
            self.commands.advance(length);
            if self.packet.len() >= PACKET_LENGTH {
                self.queue_packet();
            }
        }
        self.queue_packet();
        self.commands.release();
        if self.last_sent.elapsed() >= self.heartbeat_interval {
            self.report();
        }
        self.connection.send().map(|_| ()).map_err(|_| ConnectionLost)
    }

    fn queue_packet(&mut self) {
        if self.packet.is_empty() {
            return;
        }
        finish_frames(&mut self.packet, self.key);
        assert!(self.connection.queue(&self.packet), "its room was looked at");
        self.packet.clear();
        self.last_sent = Instant::now();
    }

    /// Heartbeat; without room, waiting bytes serve as well.
    #[cold]
    fn report(&mut self) {
        self.last_sent = Instant::now();
        let (position, frames_requested, packets_refused, frames_resent) = (0, 0, 0, 0);
        let report =
            NodeReport { position, frames_requested, packets_refused, frames_resent, is_live: true, in_flight: 0 };
        let packet = UpstreamPacket { key: self.key, body: UpstreamBody::Report(report) };
        if let Some(length) = packet.write_to(self.connection.room()) {
            self.connection.commit(length);
        }
    }

    fn receive(&mut self) -> Result<(), ConnectionLost> {
        let mut outcome = Ok(());
        while let Some(length) = self.receive_packet().unwrap_or_else(|over| {
            outcome = Err(over);
            None
        }) {
            self.connection.consume(length);
            self.taken = 0;
        }
        let _ = self.replies.publish();
        outcome
    }

    /// Length of a complete packet that was handled entirely; an invalid one ends the connection.
    fn receive_packet(&mut self) -> Result<Option<usize>, ConnectionLost> {
        let Some(length) = upstream::peek(self.connection.incoming()).map_err(|_| ConnectionLost)? else {
            return Ok(None);
        };
        let Some(packet) = self.connection.incoming().get(..length) else { return Ok(None) };
        match UpstreamPacket::parse(packet).map_err(|_| ConnectionLost)?.body {
            UpstreamBody::Answers(frames) => {
                while self.taken < frames.len() {
                    let frame = Frame::parse(&frames[self.taken..]).map_err(|_| ConnectionLost)?;
                    let end = self.taken + aligned_length(frame.length());
                    match self.replies.append(frames.get(self.taken..end).ok_or(ConnectionLost)?) {
                        Ok(()) => self.taken = end,
                        Err(LogError::Full { .. }) => return Ok(None),
                        Err(_) => return Err(ConnectionLost),
                    }
                }
                Ok(Some(length))
            }
            UpstreamBody::Welcome(_) => Ok(Some(length)),
            _ => Err(ConnectionLost),
        }
    }
}
