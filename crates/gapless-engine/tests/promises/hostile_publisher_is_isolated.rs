//! A hostile process that may connect and sends garbage, wrong checksums, forbidden kinds or foreign sessions loses at
//! most its own ring.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::attacked::*;
use gapless_log::RingWriter;
use gapless_transport::RingSizes;
use gapless_transport::handshake::{
    HELLO_LENGTH, HandshakeStatus, Hello, WELCOME_DESCRIPTORS, WELCOME_LENGTH, Welcome,
};
use gapless_wire::control::SessionOpen;
use gapless_wire::descriptor::UNHANDLED_FLAG;
use gapless_wire::{Fragment, FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length};
use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType,
};
use std::io::IoSliceMut;
use std::path::Path;
use std::time::{Duration, Instant};

struct Hostile {
    socket: OwnedFd,
    ring: RingWriter,
    wake_service: OwnedFd,
}

fn socket(place: &Path) -> OwnedFd {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    rustix::net::connect(&socket, &SocketAddrUnix::new(place.join("node.socket")).unwrap()).unwrap();
    socket
}

fn answer(socket: &OwnedFd, hello: &[u8]) -> Option<(Welcome, Vec<OwnedFd>)> {
    rustix::net::send(socket, hello, SendFlags::NOSIGNAL).unwrap();
    let mut bytes = [0; WELCOME_LENGTH];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(WELCOME_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received =
        rustix::net::recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC).ok()?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            descriptors.extend(fds);
        }
    }
    Some((Welcome::from_bytes(&bytes[..received.bytes])?, descriptors))
}

fn hello(ring_bytes: usize) -> Hello {
    let link = RingSizes { command_ring_bytes: ring_bytes, reply_ring_bytes: ring_bytes };
    Hello { link, identity: Default::default(), reads: false, seen: Default::default(), mtu: None }
}

impl Hostile {
    fn new(place: &Path) -> Self {
        let socket = socket(place);
        let (welcome, descriptors) = answer(&socket, &hello(1 << 16).to_bytes()).unwrap();
        assert_eq!(welcome.status, HandshakeStatus::Welcome);
        let [commands, _, wake_service, _] = <[OwnedFd; WELCOME_DESCRIPTORS]>::try_from(descriptors).unwrap();
        Self { socket, ring: RingWriter::open(commands).unwrap(), wake_service }
    }

    fn put(&mut self, length: usize, write: impl FnOnce(&mut [u8])) {
        let claim = self.ring.claim(length).unwrap();
        claim.fill(0);
        write(claim);
        self.ring.commit(length);
    }

    fn put_frame(&mut self, header: &FrameHeader, payload: &[u8], spoil: impl FnOnce(&mut [u8])) {
        self.put(HEADER_LENGTH + payload.len(), |claim| {
            let mut writer = FrameWriter::new(claim);
            writer.payload_mut()[..payload.len()].copy_from_slice(payload);
            writer.finish(header, payload.len());
            spoil(claim);
        });
    }

    fn reopen(&mut self, open: [u8; SessionOpen::LENGTH]) {
        let header = FrameHeader { kind: Kind::SessionOpen, ..FrameHeader::default() };
        self.put_frame(&header, &open, |_| {});
    }

    fn publish(&mut self) {
        // Wakes the service in any case.
        let _ = self.ring.publish();
        rustix::io::write(&self.wake_service, &1u64.to_ne_bytes()).unwrap();
    }

    fn assert_dropped(&self, what: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.ring.is_reader_closed() {
            assert!(Instant::now() < deadline, "the ring is kept: {what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn command(session: u64, session_seq: u64) -> FrameHeader {
    FrameHeader { kind: Kind::Command, session, session_seq, schema: ADD, ..FrameHeader::default() }
}

fn part(session: u64, session_seq: u64, index: u16, count: u16) -> FrameHeader {
    FrameHeader { fragment: Fragment { index, count }, ..command(session, session_seq) }
}

#[test]
fn garbage_costs_only_the_ring() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let node = start(options(place));
    let mut honest = connect(place);
    let key = honest.open_session(5, 8).unwrap();
    let session = honest.session_id(key).unwrap();
    let mut sum = add(&mut honest, key, 1);

    let open = |token: u128| SessionOpen { token, window_messages: 8, shared: false, notices_seen: 0 }.to_bytes();
    const PREY: u128 = 99;
    let prey = {
        let mut client = connect(place);
        let key = client.open_session(PREY, 8).unwrap();
        client.session_id(key).unwrap()
    };
    type Attack = Box<dyn Fn(&mut Hostile)>;
    let attacks: Vec<(&str, Attack)> = vec![
        ("zeros", Box::new(|h| h.put(256, |_| {}))),
        (
            "noise",
            Box::new(|h| h.put(256, |bytes| bytes.iter_mut().enumerate().for_each(|(i, b)| *b = (i * 37) as u8))),
        ),
        (
            "a length beyond the ring",
            Box::new(|h| h.put(256, |bytes| bytes[..4].copy_from_slice(&u32::MAX.to_le_bytes()))),
        ),
        ("a length beyond the stream's limit", Box::new(|h| h.put_frame(&command(1, 1), &[0; 5000], |_| {}))),
        (
            "a wrong payload checksum",
            Box::new(|h| h.put_frame(&command(1, 1), &[1, 2, 3], |bytes| bytes[HEADER_LENGTH] ^= 1)),
        ),
        ("a wrong header checksum", Box::new(|h| h.put_frame(&command(1, 1), &[1, 2, 3], |bytes| bytes[24] ^= 1))),
        (
            "a kind that only the service sends",
            Box::new(|h| h.put_frame(&FrameHeader { kind: Kind::Reply, ..command(1, 1) }, &[1], |_| {})),
        ),
        (
            "an answer, which only the service sends",
            Box::new(|h| h.put_frame(&FrameHeader { kind: Kind::Answer, ..command(0, 1) }, &[1], |_| {})),
        ),
        (
            "a command with a flag of the sequencer",
            Box::new(|h| h.put_frame(&FrameHeader { flags: UNHANDLED_FLAG, ..command(1, 1) }, &[1], |_| {})),
        ),
        (
            "a query in a session",
            Box::new(|h| h.put_frame(&FrameHeader { kind: Kind::Query, ..command(1, 1) }, &[1], |_| {})),
        ),
        (
            "a query without a number",
            Box::new(|h| h.put_frame(&FrameHeader { kind: Kind::Query, ..command(0, 0) }, &[1], |_| {})),
        ),
        (
            "a kind that only the sequencer appends",
            Box::new(|h| h.put_frame(&FrameHeader { kind: Kind::Timer, ..command(1, 1) }, &[0; 16], |_| {})),
        ),
        (
            "a session open of another form",
            Box::new(|h| {
                h.put_frame(&FrameHeader { kind: Kind::SessionOpen, ..FrameHeader::default() }, &[1; 8], |_| {})
            }),
        ),
        (
            "a session open that names a session",
            Box::new(move |h| {
                let header = FrameHeader { kind: Kind::SessionOpen, session: 77, ..FrameHeader::default() };
                h.put_frame(&header, &open(77), |_| {});
            }),
        ),
        (
            "a message that begins in the middle",
            Box::new(move |h| {
                h.reopen(open(PREY));
                h.put_frame(&part(prey, 1, 1, 3), &[1], |_| {});
            }),
        ),
        (
            "fragments of different messages",
            Box::new(move |h| {
                h.reopen(open(PREY));
                h.put_frame(&part(prey, 1, 0, 3), &[1], |_| {});
                h.put_frame(&part(prey, 2, 1, 4), &[1], |_| {});
            }),
        ),
        (
            "a message that is left unfinished",
            Box::new(move |h| {
                h.reopen(open(PREY));
                h.put_frame(&part(prey, 1, 0, 3), &[1], |_| {});
                h.put_frame(&command(prey, 2), &[1], |_| {});
            }),
        ),
        (
            "a message that would be longer than the stream's limit",
            Box::new(move |h| {
                h.reopen(open(PREY));
                h.put_frame(&part(prey, 1, 0, u16::MAX), &[0; 4000], |_| {});
            }),
        ),
    ];
    for (what, attack) in attacks {
        let mut hostile = Hostile::new(place);
        attack(&mut hostile);
        hostile.publish();
        hostile.assert_dropped(what);
        assert_eq!(add(&mut honest, key, 2), sum + 2, "after {what}");
        sum += 2;
        assert!(node.failure().is_none(), "after {what}");
    }
    assert_eq!(honest.session_id(key), Some(session));
    node.stop().unwrap();
}

#[test]
fn session_needs_its_token() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let node = start(options(place));
    let mut honest = connect(place);
    let key = honest.open_session(5, 8).unwrap();
    let session = honest.session_id(key).unwrap();
    assert_eq!(add(&mut honest, key, 1), 1);

    // A session's identifier and numbers are easy to guess, but give no access.
    let mut hostile = Hostile::new(place);
    hostile.put_frame(&command(session, 2), &[100], |_| {});
    hostile.put_frame(&command(session, 1), &[100], |_| {});
    hostile.put_frame(&FrameHeader { kind: Kind::SessionClose, ..command(session, 2) }, &[], |_| {});
    for index in 0..2 {
        let fragment = Fragment { index, count: 2 };
        let header = FrameHeader { fragment, ..command(session, 2 + u64::from(index)) };
        hostile.put_frame(&header, &[100], |_| {});
    }
    hostile.publish();
    // The ring is read to its end before it is known to be closed, so all frames are decided when it is dropped.
    hostile.put(64, |_| {});
    hostile.publish();
    hostile.assert_dropped("garbage at the end");
    assert_eq!(add(&mut honest, key, 2), 3, "nothing of it had an effect, and the session's numbers go on");
    node.stop().unwrap();
}

#[test]
fn bad_hello_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let node = start(options(place));
    let mut honest = connect(place);
    let key = honest.open_session(5, 8).unwrap();
    let good = hello(1 << 16).to_bytes();
    let mut wrong_magic = good;
    wrong_magic[3] ^= 1;
    let too_long = [good.as_slice(), &[0; 1000]].concat();
    for (what, bytes) in [
        ("a wrong magic", wrong_magic.as_slice()),
        ("half a hello", &good[..HELLO_LENGTH / 2]),
        ("an oversized hello", &too_long),
        ("noise", &[0xa5; HELLO_LENGTH]),
    ] {
        assert!(answer(&socket(place), bytes).is_none(), "{what} got an answer");
    }
    for ring_bytes in [0, 1, 4095, 5000, 1 << 31] {
        let refused = answer(&socket(place), &hello(ring_bytes).to_bytes()).map(|(welcome, _)| welcome.status);
        assert_eq!(refused, Some(HandshakeStatus::RingSize), "a ring of {ring_bytes} bytes");
    }
    let elsewhere = Hello { identity: gapless_log::StreamIdentity { stream_id: 7, incarnation: 0 }, ..hello(1 << 16) };
    let refused = answer(&socket(place), &elsewhere.to_bytes()).map(|(welcome, _)| welcome.status);
    assert_eq!(refused, Some(HandshakeStatus::OtherStream));
    assert_eq!(add(&mut honest, key, 2), 2);
    node.stop().unwrap();
}

#[test]
fn early_disconnects_are_harmless() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let node = start(options(place));
    let mut honest = connect(place);
    let key = honest.open_session(5, 8).unwrap();
    for round in 0..50u64 {
        match round % 3 {
            0 => drop(socket(place)),
            1 => {
                let socket = socket(place);
                rustix::net::send(&socket, &hello(1 << 16).to_bytes(), SendFlags::NOSIGNAL).unwrap();
            }
            _ => {
                let mut hostile = Hostile::new(place);
                let claim = hostile.ring.claim(aligned_length(200)).unwrap();
                claim.fill(0xff);
                rustix::net::send(&hostile.socket, b"more talk", SendFlags::NOSIGNAL).unwrap();
            }
        }
        assert_eq!(add(&mut honest, key, 1), round + 1);
    }
    assert!(node.failure().is_none());
    node.stop().unwrap();
}
