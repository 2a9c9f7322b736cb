//! `AnyLink`: the link of the configured transport, so that one program runs over each of them.

use super::link::{ConnectionInfo, LinkRead, LinkReads, NodeLink, Start};
use super::{DatagramLink, JournalLink, SharedMemoryLink, TcpLink};
use crate::ClientError;
use crate::node_progress::ProgressReport;
use gapless_transport::network::UdpSocket;
use gapless_transport::seen_frame::SeenFrame;
use gapless_wire::Frame;
use rustix::fd::BorrowedFd;
use std::time::Duration;

pub enum AnyLink {
    SharedMemory(Box<SharedMemoryLink>),
    /// UDP, to this node alone or to multicast groups.
    Datagram(Box<DatagramLink<UdpSocket>>),
    Tcp(Box<TcpLink>),
    /// The journal, without a sequencer.
    Journal(Box<JournalLink>),
}

impl From<SharedMemoryLink> for AnyLink {
    fn from(link: SharedMemoryLink) -> Self {
        Self::SharedMemory(Box::new(link))
    }
}

impl From<DatagramLink<UdpSocket>> for AnyLink {
    fn from(link: DatagramLink<UdpSocket>) -> Self {
        Self::Datagram(Box::new(link))
    }
}

impl From<TcpLink> for AnyLink {
    fn from(link: TcpLink) -> Self {
        Self::Tcp(Box::new(link))
    }
}

impl From<JournalLink> for AnyLink {
    fn from(link: JournalLink) -> Self {
        Self::Journal(Box::new(link))
    }
}

macro_rules! delegate {
    ($self:ident, $link:ident => $call:expr) => {
        match $self {
            Self::SharedMemory($link) => $call,
            Self::Datagram($link) => $call,
            Self::Tcp($link) => $call,
            Self::Journal($link) => $call,
        }
    };
}

impl NodeLink for AnyLink {
    fn connect(&mut self, start: Start, seen: SeenFrame, now_ns: u64) -> Result<Option<ConnectionInfo>, ClientError> {
        delegate!(self, link => link.connect(start, seen, now_ns))
    }

    #[inline]
    fn send(&mut self, frame: &[u8]) -> Result<bool, ClientError> {
        delegate!(self, link => link.send(frame))
    }

    #[inline]
    fn flush(&mut self) -> Result<(), ClientError> {
        delegate!(self, link => link.flush())
    }

    #[inline]
    fn answers(&mut self, take: &mut dyn FnMut(&Frame<'_>)) -> Result<usize, ClientError> {
        delegate!(self, link => link.answers(take))
    }

    fn take_in(&mut self, now_ns: u64) -> Result<(), ClientError> {
        delegate!(self, link => link.take_in(now_ns))
    }

    #[inline]
    fn read(&mut self, now_ns: u64) -> Result<LinkRead<'_>, ClientError> {
        delegate!(self, link => link.read(now_ns))
    }

    #[inline]
    fn read_each(
        &mut self,
        limit: usize,
        now_ns: u64,
        take: &mut impl FnMut(&Frame<'_>) -> Result<(), ClientError>,
    ) -> Result<LinkReads, ClientError> {
        delegate!(self, link => link.read_each(limit, now_ns, take))
    }

    fn released_sequence(&self) -> u64 {
        delegate!(self, link => link.released_sequence())
    }

    fn loses(&self) -> bool {
        delegate!(self, link => link.loses())
    }

    fn is_timed(&self) -> bool {
        delegate!(self, link => link.is_timed())
    }

    #[inline]
    fn note(&mut self, progress: ProgressReport) {
        delegate!(self, link => link.note(progress));
    }

    fn on_not_leader(&mut self, leaders: &str) -> Result<(), ClientError> {
        delegate!(self, link => link.on_not_leader(leaders))
    }

    #[inline]
    fn tick(&mut self, now_ns: u64) -> Result<(), ClientError> {
        delegate!(self, link => link.tick(now_ns))
    }

    fn wait(&mut self, timeout: Duration) -> Result<(), ClientError> {
        delegate!(self, link => link.wait(timeout))
    }

    fn watch<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        delegate!(self, link => link.watch(descriptors));
    }

    fn connect_failure(&self) -> Option<String> {
        delegate!(self, link => link.connect_failure())
    }

    fn standstill(&self) -> Option<String> {
        delegate!(self, link => link.standstill())
    }

    fn peer(&self) -> String {
        delegate!(self, link => link.peer())
    }
}
