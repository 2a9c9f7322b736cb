//! One member's end of a link.

use super::protocol::LinkTransport;
use super::{CONSENSUS_BYTES, LONG_BYTES, LONG_RING_BYTES};
use crate::Result;
use crate::components::failed;
use crate::components::peer::PeerProcess;
use gapless_agent::Now;
use gapless_agent::monotonic::saturating_ns;
use gapless_cluster::link::wire::{ClusterName, MemberIdentity, MemberNumber};
use gapless_cluster::link::{
    LinkError, LinkEvent, Links, MemberLinkOptions, MessageContent, PeerOptions, SHARED_MEMORY_PREFIX, SendError,
};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Instant;

const TURNS_BETWEEN_LOOKS: u32 = 10_000;
const DIALS: MemberNumber = 1;
const LISTENS: MemberNumber = 2;

/// Sent repeatedly, each time with another number.
pub struct NumberedMessage {
    consensus: [u8; CONSENSUS_BYTES],
    frame: Vec<u8>,
}

impl NumberedMessage {
    pub fn new(frame_length: usize) -> Self {
        let frame = (0..frame_length).map(|index| (index * 31 % 251) as u8).collect();
        Self { consensus: [7; CONSENSUS_BYTES], frame }
    }

    pub fn number(&mut self, number: u64) -> &Self {
        let bytes = number.to_le_bytes();
        self.frame[..8].copy_from_slice(&bytes);
        let end = self.frame.len() - 8;
        self.frame[end..].copy_from_slice(&bytes);
        self
    }
}

#[derive(Clone, Copy)]
pub struct ReceivedNumber {
    pub number: u64,
}

pub struct LinkEndpoint<'a> {
    links: Links,
    to: MemberNumber,
    other: PeerProcess<'a>,
    clock: Instant,
    is_connected: bool,
    empty_turns: u32,
    frame_length: Option<usize>,
    /// Socket for shared memory; `None` for TCP.
    path: Option<PathBuf>,
}

fn of_links(error: LinkError) -> crate::BenchError {
    failed("link", error)
}

impl<'a> LinkEndpoint<'a> {
    pub fn dials(address: String, frame_length: usize, other: PeerProcess<'a>) -> Result<Self> {
        let peer = PeerOptions { member: LISTENS, addresses: vec![address] };
        let mut options = options();
        if frame_length >= LONG_BYTES {
            options.shared_ring_bytes = LONG_RING_BYTES;
        }
        let mut end = Self::open(options, DIALS, &peer, other)?;
        while !end.is_connected {
            end.turn(|_| Ok(()))?;
        }
        Ok(end)
    }

    /// Accepts the first process.
    pub fn listens(other: PeerProcess<'a>, transport: LinkTransport, frame_length: usize) -> Result<Self> {
        let peer = PeerOptions { member: DIALS, addresses: Vec::new() };
        let mut options = options();
        match transport {
            LinkTransport::Tcp => options.listen = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            LinkTransport::SharedMemory => {
                let name = format!("gapless-bench-link-{}", std::process::id());
                options.listen_shared = Some(std::env::temp_dir().join(name));
            }
        }
        let path = options.listen_shared.clone();
        let mut end = Self::open(options, LISTENS, &peer, other)?;
        end.path = path;
        end.frame_length = Some(frame_length);
        Ok(end)
    }

    fn open(
        options: MemberLinkOptions,
        member: MemberNumber,
        peer: &PeerOptions,
        other: PeerProcess<'a>,
    ) -> Result<Self> {
        let cluster = ClusterName::new("bench").expect("a short printable name");
        let identity = MemberIdentity { cluster, stream_id: 1, incarnation: 1, member, instance: member };
        let links = Links::open(options, identity, std::slice::from_ref(peer)).map_err(of_links)?;
        let (to, clock) = (peer.member, Instant::now());
        Ok(Self { links, to, other, clock, is_connected: false, empty_turns: 0, frame_length: None, path: None })
    }

    pub fn address(&self) -> Option<String> {
        let shared = self.path.as_ref().map(|path| format!("{SHARED_MEMORY_PREFIX}{}", path.display()));
        shared.or_else(|| self.links.local_address().map(|address| address.to_string()))
    }

    pub const fn other(&mut self) -> &mut PeerProcess<'a> {
        &mut self.other
    }

    pub fn turn(&mut self, mut take: impl FnMut(ReceivedNumber) -> Result<()>) -> Result<usize> {
        self.poll()?;
        let (mut outcome, expected) = (Ok(()), self.frame_length);
        let handed = self.links.receive(|message| {
            if outcome.is_ok() {
                outcome = check(message.frames, expected).and_then(&mut take);
            }
        });
        outcome?;
        if handed == 0 {
            self.back_off()?;
        }
        Ok(handed)
    }

    pub fn wait_until(&mut self, mut is_done: impl FnMut(ReceivedNumber) -> Result<bool>) -> Result<()> {
        let mut done = false;
        while !done {
            self.turn(|message| {
                done = is_done(message)?;
                Ok(())
            })?;
        }
        Ok(())
    }

    pub fn send(&mut self, message: &NumberedMessage) -> Result<()> {
        loop {
            match self.links.send(self.to, MessageContent::Consensus, &message.consensus, &[&message.frame]) {
                Ok(()) => return Ok(()),
                Err(SendError::Full) => {
                    self.poll()?;
                    self.back_off()?;
                }
                Err(error) => return Err(failed("link", error)),
            }
        }
    }

    /// Waits until the operating system has everything.
    pub fn flush(&mut self) -> Result<()> {
        while self.links.statistics(self.to).is_some_and(|statistics| statistics.queued_bytes > 0) {
            self.poll()?;
            self.back_off()?;
        }
        Ok(())
    }

    pub fn finish(self) -> Result<()> {
        // The second process may wait for the connection's end.
        drop(self.links);
        self.other.finish()
    }

    pub fn wait_for_end(&mut self) -> Result<()> {
        while self.links.is_connected(self.to) {
            self.links.poll(self.now());
            self.links.receive(|_| ());
            self.back_off()?;
        }
        Ok(())
    }

    fn now(&self) -> Now {
        let monotonic_ns = saturating_ns(self.clock.elapsed());
        Now { monotonic_ns, epoch_ns: 0 }
    }

    fn poll(&mut self) -> Result<()> {
        self.links.poll(self.now());
        match self.links.next_event() {
            None => Ok(()),
            Some(LinkEvent::Connected(_)) => {
                self.is_connected = true;
                Ok(())
            }
            Some(LinkEvent::Disconnected(_, why)) => {
                // The end of the other process is the cause, if it has ended.
                self.other.check_running()?;
                Err(failed("link", why))
            }
            Some(LinkEvent::Refused(_, refusal) | LinkEvent::NotWanted(_, refusal)) => Err(failed("link", refusal)),
        }
    }

    fn back_off(&mut self) -> Result<()> {
        self.empty_turns += 1;
        if self.other.shares_the_cpu() {
            std::thread::yield_now();
        }
        if self.empty_turns < TURNS_BETWEEN_LOOKS {
            return Ok(());
        }
        self.empty_turns = 0;
        self.other.check_running()
    }
}

fn check(frame: &[u8], expected_length: Option<usize>) -> Result<ReceivedNumber> {
    let (Some(first), Some(last)) = (frame.first_chunk(), frame.last_chunk()) else {
        return Err(failed("link", format!("a frame of {} bytes", frame.len())));
    };
    if first != last || expected_length.is_some_and(|length| length != frame.len()) {
        return Err(failed("link", format!("a frame of {} bytes is not as it was sent", frame.len())));
    }
    Ok(ReceivedNumber { number: u64::from_le_bytes(*first) })
}

/// No queue on the sender's side: the connection is measured.
fn options() -> MemberLinkOptions {
    MemberLinkOptions { queue_bytes_max: 0, ..MemberLinkOptions::default() }
}
