//! Peers that violate the protocol: the connection is closed, nothing of theirs is kept, and service continues.

use super::member::{attach, memory};
use super::{Domain, Member};
use crate::registry::connection::{PeerConnection, ReceiveResult};
use crate::registry::directory::{FileKind, InstanceId, path_in};
use crate::registry::instance_files::InstanceFiles;
use crate::registry::packets::{
    AttachRefusal, AttachRefusalReason, Hello, PACKET_LENGTH_MAX, PROTOCOL_VERSION, Packet, PeerRole, RouteDescription,
};
use crate::registry::reactor::CONNECTIONS_OF_PROCESS_MAX;
use gapless_testkit::random::{Random, rounds};
use gapless_testkit::wait::until_some;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType,
};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::sync::Arc;

struct RawConnection(OwnedFd);

impl RawConnection {
    fn connect(domain: &Domain) -> Self {
        let listed_instances = domain.directory.list().unwrap();
        let (id, _) = *listed_instances.iter().find(|(_, kind)| *kind == FileKind::Socket).unwrap();
        let address = SocketAddrUnix::new(path_in(&domain.directory.fd(), &id.file(FileKind::Socket))).unwrap();
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let socket = socket.unwrap();
        rustix::net::connect(&socket, &address).unwrap();
        Self(socket)
    }

    fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
        }
        let sent = rustix::net::sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL);
        assert!(matches!(sent, Ok(_) | Err(Errno::PIPE | Errno::CONNRESET)), "{sent:?}");
    }

    fn packet(&self, packet: &Packet, descriptors: &[BorrowedFd<'_>]) {
        self.send(&packet.encode().unwrap(), descriptors);
    }

    #[track_caller]
    fn expect_end(&self) {
        until_some("the other side closes", || {
            match rustix::net::recv(&self.0, &mut [0; PACKET_LENGTH_MAX], RecvFlags::DONTWAIT) {
                Ok((0, _)) | Err(Errno::CONNRESET | Errno::PIPE) => Some(()),
                Ok(_) | Err(Errno::AGAIN) => None,
                Err(errno) => panic!("{errno}"),
            }
        });
    }

    #[track_caller]
    fn expect_packet(&self, name: &str) {
        let mut bytes = [0; PACKET_LENGTH_MAX];
        until_some(name, || {
            let (length, _) = rustix::net::recv(&self.0, &mut bytes[..], RecvFlags::DONTWAIT).ok()?;
            (Packet::decode(&bytes[..length]).unwrap().name() == name).then_some(())
        });
    }

    fn is_open(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::RDHUP)];
        poll(&mut fds, Some(&rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
        fds[0].revents().is_empty()
    }
}

fn hello(role: PeerRole) -> Packet {
    Packet::Hello(Hello { role, process_id: 1, started_ns: 0, process_name: "raw".to_owned() })
}

fn instance_and_witness(domain: &Domain) -> (Member, Member) {
    let instance = domain.member(&["announce orders"]);
    let mut witness = domain.member(&["discover"]);
    witness.expect("listed 1");
    (instance, witness)
}

fn still_talk(instance: &mut Member, witness: &mut Member) {
    instance.tell("suspend orders");
    witness.expect("route 1 orders Suspended");
    witness.tell("attach 1 1 orders");
    witness.expect("attached 1 1");
    witness.expect_no("closed");
}

#[test]
fn garbage_from_caller_is_isolated() {
    let domain = Domain::new();
    let (mut instance, mut witness) = instance_and_witness(&domain);
    let before = instance.descriptors();
    let mut random = Random::seeded();
    let greeting = hello(PeerRole::Caller).encode().unwrap();
    for turn in 0..rounds(300, 60) {
        let raw = RawConnection::connect(&domain);
        if turn % 2 == 0 {
            raw.send(&greeting, &[]);
        }
        let length = 1 + random.below(200) as usize;
        let mut bytes = (0..length).map(|_| random.number() as u8).collect::<Vec<_>>();
        if random.happens(700) {
            let head = [&b"GAPR\x04\x00"[..], &[random.below(10) as u8, 0]].concat();
            bytes.splice(..head.len().min(length), head);
        }
        raw.send(&bytes, &[]);
        // The random bytes may form a packet; these do not.
        raw.send(&[0xff; 16], &[]);
        raw.expect_end();
    }
    instance.expect_descriptors(before);
    still_talk(&mut instance, &mut witness);
}

#[test]
fn misplaced_packet_closes_connection() {
    let domain = Domain::new();
    let (mut instance, mut witness) = instance_and_witness(&domain);
    let before = instance.descriptors();
    let route = Packet::Route(RouteDescription::new("mine"));
    let refused = AttachRefusal::new(AttachRefusalReason::NoRoute, "");
    let refused = Packet::Refused { attachment: 1, refused };
    let caller = || hello(PeerRole::Caller);
    for packets in [
        vec![hello(PeerRole::Instance)],
        vec![Packet::Detach { attachment: 1 }],
        vec![Packet::Listed],
        vec![caller(), caller()],
        vec![caller(), route],
        vec![caller(), refused],
        vec![caller(), Packet::Listed],
    ] {
        let raw = RawConnection::connect(&domain);
        packets.iter().for_each(|packet| raw.packet(packet, &[]));
        raw.expect_end();
    }
    let raw = RawConnection::connect(&domain);
    raw.send(&vec![0; PACKET_LENGTH_MAX + 1], &[]);
    raw.expect_end();
    let raw = RawConnection::connect(&domain);
    raw.send(&[], &[]);
    raw.expect_end();
    let raw = RawConnection::connect(&domain);
    raw.packet(&caller(), &[]);
    raw.packet(&Packet::Detach { attachment: 5 }, &[]);
    instance.tell("announce another");
    instance.expect_no("detach");
    assert!(raw.is_open());
    drop(raw);
    instance.expect_descriptors(before);
    still_talk(&mut instance, &mut witness);
}

#[test]
fn wrong_descriptor_count_is_refused() {
    let domain = Domain::new();
    let (mut instance, mut witness) = instance_and_witness(&domain);
    let before = instance.descriptors();
    let region = memory("x");
    let attaching = Packet::Attach(attach(1, "orders"));
    for turn in 0..20 {
        for count in [0, 1, 2, 4, 5, 6, 100, 253] {
            let descriptors = vec![region.as_fd(); count];
            for packet in [&attaching, &hello(PeerRole::Caller), &Packet::Detach { attachment: 1 }] {
                if count == 0 && packet != &attaching {
                    continue;
                }
                let raw = RawConnection::connect(&domain);
                if turn % 2 == 0 || packet == &attaching {
                    raw.packet(&hello(PeerRole::Caller), &[]);
                }
                raw.packet(packet, &descriptors);
                raw.expect_end();
            }
        }
    }
    instance.expect_descriptors(before);
    instance.expect_no("attach");
    let raw = RawConnection::connect(&domain);
    raw.packet(&hello(PeerRole::Caller), &[]);
    raw.packet(&attaching, &[region.as_fd(), region.as_fd(), instance_eventfd().as_fd()]);
    instance.expect("attach");
    raw.packet(&attaching, &[region.as_fd(), region.as_fd(), instance_eventfd().as_fd()]);
    raw.expect_end();
    instance.expect("gone");
    instance.expect_descriptors(before);
    still_talk(&mut instance, &mut witness);
}

fn instance_eventfd() -> OwnedFd {
    rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap()
}

#[test]
fn silent_connection_times_out() {
    let domain = Domain::new();
    let (mut instance, mut witness) = instance_and_witness(&domain);
    let before = instance.descriptors();
    let silent = (0..50).map(|_| RawConnection::connect(&domain)).collect::<Vec<_>>();
    let greeted = RawConnection::connect(&domain);
    greeted.packet(&hello(PeerRole::Caller), &[]);
    instance.expect_descriptors(before + 52);
    silent.iter().for_each(RawConnection::expect_end);
    assert!(greeted.is_open());
    instance.expect_descriptors(before + 2);
    still_talk(&mut instance, &mut witness);
}

#[test]
fn stuck_reader_is_dropped() {
    let domain = Domain::new();
    let (mut instance, mut witness) = instance_and_witness(&domain);
    let deaf = RawConnection::connect(&domain);
    deaf.packet(&hello(PeerRole::Caller), &[]);
    let mut told = 0;
    for _ in 0..40 {
        instance.tell("toggle orders 100");
        told += 100;
        for _ in 0..100 {
            witness.expect("route 1 orders Suspended");
            witness.expect("route 1 orders Open");
        }
        if !deaf.is_open() {
            break;
        }
    }
    assert!(!deaf.is_open(), "{told} changes wait for it");
    deaf.expect_end();
    still_talk(&mut instance, &mut witness);
}

#[test]
fn callers_wait_for_free_descriptors() {
    let domain = Domain::new();
    let (mut instance, mut witness) = instance_and_witness(&domain);
    let before = instance.descriptors();
    instance.tell(&format!("descriptors {}", before + 10));
    let callers = (0..40).map(|_| RawConnection::connect(&domain)).collect::<Vec<_>>();
    callers.iter().for_each(|caller| caller.packet(&hello(PeerRole::Caller), &[]));
    let late = RawConnection::connect(&domain);
    late.packet(&hello(PeerRole::Caller), &[]);
    callers[0].expect_packet("hello");
    instance.tell("announce another");
    witness.expect("route 1 another Open");
    let closed = callers.iter().filter(|caller| !caller.is_open()).count();
    assert_eq!((closed, late.is_open()), (0, true), "who finds no descriptor waits");
    drop(callers);
    late.expect_packet("listed");
    assert!(late.is_open());
    witness.expect_no("closed");
}

struct RawInstance {
    listener: OwnedFd,
    _files: InstanceFiles,
}

impl RawInstance {
    fn new(domain: &Domain) -> Self {
        let (files, listener) = InstanceFiles::create(&domain.directory, |_: InstanceId| ()).unwrap();
        Self { listener, _files: files }
    }

    fn accept(&self) -> RawConnection {
        let socket =
            until_some("a caller connects", || rustix::net::accept_with(&self.listener, SocketFlags::CLOEXEC).ok());
        RawConnection(socket)
    }
}

#[test]
fn greedy_process_shuts_out_no_other() {
    let domain = Domain::new();
    let (mut instance, mut witness) = instance_and_witness(&domain);
    let greeting = hello(PeerRole::Caller);
    let connect = || {
        let raw = RawConnection::connect(&domain);
        raw.packet(&greeting, &[]);
        raw
    };
    let greeted = |raw: &RawConnection| raw.expect_packet("listed");
    let connections: Vec<RawConnection> = (0..CONNECTIONS_OF_PROCESS_MAX).map(|_| connect()).collect();
    connections.iter().for_each(greeted);
    (0..8).for_each(|_| connect().expect_end());
    assert!(connections.iter().all(RawConnection::is_open));
    still_talk(&mut instance, &mut witness);
    let mut other = domain.member(&["discover"]);
    other.expect("listed 1");
    drop(connections);
    until_some("there is room again", || {
        let raw = connect();
        std::thread::sleep(std::time::Duration::from_millis(20));
        raw.is_open().then_some(())
    });
}

#[test]
fn full_instance_is_unknown() {
    let domain = Domain::new();
    let instance = RawInstance::new(&domain);
    let mut caller = domain.member(&["discover"]);
    drop(instance.accept());
    caller.expect("settled");
    let own = format!("unknown_server {} None", std::process::id());
    caller.expect(&own);
    caller.expect(&own);
    caller.expect_no("heard");
    drop(instance);
    caller.expect("heard");
}

#[test]
fn garbage_from_instance_is_retried() {
    let domain = Domain::new();
    let mut caller = domain.member(&["discover"]);
    let before = caller.descriptors();
    let region = memory("x");
    let many = |count| vec![region.as_fd(); count];
    let refused = AttachRefusal::new(AttachRefusalReason::NoRoute, "");
    let mut instances = Vec::new();
    for (packet, descriptors) in [
        (Packet::Attached { attachment: 77 }, many(2)),
        (Packet::Attached { attachment: 77 }, many(1)),
        (Packet::Refused { attachment: 77, refused }, many(0)),
        (Packet::Attach(attach(1, "orders")), many(3)),
        (hello(PeerRole::Instance), many(0)),
        (Packet::Listed, many(0)),
        (Packet::Listed, many(4)),
    ] {
        let instance = RawInstance::new(&domain);
        for _ in 0..2 {
            let raw = instance.accept();
            raw.packet(&hello(PeerRole::Instance), &[]);
            raw.packet(&Packet::Listed, &[]);
            raw.packet(&packet, &descriptors);
            raw.expect_end();
            caller.expect("closed");
        }
        instances.push(instance);
    }
    // The peers' process lives: none is dead, and one pidfd stands for all.
    caller.expect_no("dead");
    assert_eq!(caller.seen.iter().filter(|line| line.starts_with("found")).count(), 14);
    let instance = RawInstance::new(&domain);
    let raw = instance.accept();
    raw.packet(&hello(PeerRole::Caller), &[]);
    raw.expect_end();
    drop((instance, instances));
    caller.expect_descriptors(before + 1);
    assert_eq!(caller.seen.iter().filter(|line| line.starts_with("found")).count(), 14);
}

#[test]
fn endless_route_list_is_closed() {
    let domain = Domain::new();
    let instance = RawInstance::new(&domain);
    let mut caller = domain.member(&["discover"]);
    let raw = instance.accept();
    raw.packet(&hello(PeerRole::Instance), &[]);
    raw.packet(&Packet::Route(RouteDescription::new("orders")), &[]);
    caller.expect("route 1 orders Open");
    caller.expect("settled");
    caller.expect("closed 1");
    let raw = instance.accept();
    raw.packet(&hello(PeerRole::Instance), &[]);
    for number in 0..1025 {
        raw.packet(&Packet::Route(RouteDescription::new(format!("route/{number}"))), &[]);
    }
    raw.expect_end();
    caller.expect("closed 2");
    assert_eq!(caller.seen.iter().filter(|line| line.starts_with("route 2 ")).count(), 1024);
}

#[test]
fn answer_after_detach_is_dropped() {
    let domain = Domain::new();
    let instance = RawInstance::new(&domain);
    let mut caller = domain.member(&["discover"]);
    let raw = instance.accept();
    raw.packet(&hello(PeerRole::Instance), &[]);
    raw.packet(&Packet::Listed, &[]);
    caller.expect("listed 1");
    let before = caller.descriptors();
    caller.tell("attach 1 5 orders");
    caller.tell("detach 1 5");
    // An answer before the question would be an error.
    raw.expect_packet("attach");
    raw.expect_packet("detach");
    let (bell, eventfd) = (memory(""), memory(""));
    raw.packet(&Packet::Attached { attachment: 5 }, &[bell.as_fd(), eventfd.as_fd()]);
    raw.packet(&Packet::Route(RouteDescription::new("orders")), &[]);
    caller.expect("route 1 orders");
    caller.expect_no("attached");
    assert!(raw.is_open());
    caller.expect_descriptors(before);
}

#[test]
fn queue_is_bounded_and_ordered() {
    let (ours, theirs) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )
    .unwrap();
    let (mut ours, theirs) = (PeerConnection::over(ours), PeerConnection::over(theirs));
    let packet = |attachment| Arc::<[u8]>::from(Packet::Detach { attachment }.encode().unwrap());
    let mut sent = 0;
    let error = loop {
        match ours.send(packet(sent), Vec::new()) {
            Ok(_) => sent += 1,
            Err(error) => break error,
        }
    };
    assert!(error.contains("it does not read: 4097 packets"), "{error}");
    let mut buffer = vec![0; PACKET_LENGTH_MAX];
    for expected in 0..=sent {
        ours.flush().unwrap();
        match theirs.receive(&mut buffer).unwrap() {
            ReceiveResult::Packet(Packet::Detach { attachment }, _) => assert_eq!(attachment, expected),
            other => panic!("{other:?} in place of {expected}"),
        }
    }
    assert!(matches!(theirs.receive(&mut buffer), Ok(ReceiveResult::Nothing)));
    drop(ours);
    assert!(matches!(theirs.receive(&mut buffer), Ok(ReceiveResult::End)));
}

fn of_version(version: u16) -> Vec<u8> {
    [&b"GAPR"[..], &version.to_le_bytes(), &[1, 0], &[7; 100]].concat()
}

#[test]
fn other_version_is_told_and_closed() {
    let domain = Domain::new();
    let (mut instance, mut witness) = instance_and_witness(&domain);
    let before = instance.descriptors();
    for version in [0, 1, 3, 5, u16::MAX] {
        let raw = RawConnection::connect(&domain);
        raw.send(&of_version(version), &[memory("x").as_fd()]);
        let mut bytes = [0; PACKET_LENGTH_MAX];
        let length = until_some("its hello", || {
            let (length, _) = rustix::net::recv(&raw.0, &mut bytes[..], RecvFlags::DONTWAIT).ok()?;
            (length > 0).then_some(length)
        });
        assert_eq!(&bytes[..6], b"GAPR\x04\x00");
        assert_eq!(Packet::decode(&bytes[..length]).unwrap().name(), "hello");
        raw.expect_end();
        let said = Packet::decode(&of_version(version)).unwrap_err();
        let both =
            format!("version {version} of the protocol between processes, this process version {PROTOCOL_VERSION}");
        assert!(said.contains(&both), "{said}");
    }
    instance.expect_descriptors(before);
    still_talk(&mut instance, &mut witness);
}

#[test]
fn unknown_server_has_its_version() {
    let domain = Domain::new();
    let mut caller = domain.member(&["discover"]);
    let old = RawInstance::new(&domain);
    let process_id = std::process::id();
    for _ in 0..2 {
        let raw = old.accept();
        caller.expect(&format!("unknown_server {process_id} None"));
        raw.send(&of_version(1), &[]);
        raw.expect_end();
        caller.expect(&format!("unknown_server {process_id} Some(1)"));
    }
    let silent = RawInstance::new(&domain);
    let raw = silent.accept();
    caller.expect(&format!("unknown_server {process_id} None"));
    raw.packet(&hello(PeerRole::Instance), &[]);
    caller.expect("found");
    raw.packet(&Packet::Listed, &[]);
    caller.expect("heard");
}
