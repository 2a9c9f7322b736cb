//! Messages through shared memory: whole and in order, waking sleepers, never harmed by the other side's writes.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::linked_members::{Member, PATIENCE, identity, listening, now, peer};
use gapless_cluster::link::{LinkError, MemberLinkOptions, MessageContent, PeerOptions};
use gapless_log::{MemoryKind, RingReader, RingWriter, StreamIdentity, descriptor, ring};
use gapless_testkit::process::{Process, this_program};
use gapless_testkit::random::{Random, printed_seed};
use gapless_testkit::wait::turn_until;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tempfile::TempDir;

/// Listening path, set in the child of a test.
const CHILD_PATH: &str = "GAPLESS_TEST_SHARED_PATH";

fn position() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("member-2");
    (directory, path)
}

fn address(path: &Path) -> PeerOptions {
    PeerOptions { member: 2, addresses: vec![format!("shm:{}", path.display())] }
}

fn patient() -> MemberLinkOptions {
    MemberLinkOptions { silence_ns_max: u64::MAX, ..MemberLinkOptions::default() }
}

fn listens(path: &Path, options: MemberLinkOptions) -> Member {
    let options = MemberLinkOptions { listen_shared: Some(path.to_owned()), ..options };
    Member::new(options, identity(2), &[peer(1, &[])])
}

fn shared_pair(path: &Path, options: MemberLinkOptions) -> (Member, Member) {
    let mut second = listens(path, options.clone());
    let mut first = Member::new(options, identity(1), &[address(path)]);
    turn_until("both are connected", || {
        first.idle();
        second.idle();
        !first.events.is_empty() && !second.events.is_empty()
    });
    assert_eq!(
        (first.event_texts(), second.event_texts()),
        (vec!["connected 2".to_owned()], vec!["connected 1".to_owned()])
    );
    assert_eq!(second.links.local_address(), None, "there is no other way");
    (first, second)
}

/// Every byte follows from the number.
fn parts(number: u64, random: &mut Random) -> (Vec<u8>, Vec<u8>) {
    let length = match random.below(20) {
        0 => random.below(3_000_000),
        1..4 => random.below(100_000),
        _ => random.below(400),
    };
    let consensus = vec![number as u8; 8 + random.below(120) as usize];
    (consensus, (0..length).map(|at| (at ^ number) as u8).collect())
}

#[test]
fn messages_of_all_lengths_arrive() {
    let seed = printed_seed();
    for shared_ring_bytes in [4096, 1 << 16, 1 << 20] {
        let (_directory, path) = position();
        let options = MemberLinkOptions { shared_ring_bytes, queue_bytes_max: 1 << 30, ..patient() };
        let (mut first, mut second) = shared_pair(&path, options);
        let [mut says, mut expects, mut answers, mut hears] = [0, 0, 1, 1].map(|each| Random::new(seed ^ each));
        let (mut sent, mut echoed, mut heard) = (0, 0, 0);
        const ALL: u64 = 200;
        turn_until("all messages are echoed", || {
            if sent < ALL {
                sent += 1;
                let (consensus, frames) = parts(sent, &mut says);
                let (head, tail) = frames.split_at(frames.len() / 3);
                first.links.send(2, MessageContent::Consensus, &consensus, &[head, tail]).unwrap();
            }
            let before = echoed;
            second.turn(|message| {
                echoed += 1;
                let (consensus, frames) = parts(echoed, &mut expects);
                assert!(message.consensus == consensus && message.frames == frames, "message {echoed}");
            });
            for number in before + 1..=echoed {
                let (consensus, frames) = parts(number, &mut answers);
                second.links.send(1, MessageContent::CatchUpFrames, &consensus, &[&frames]).unwrap();
            }
            first.turn(|message| {
                heard += 1;
                let (consensus, frames) = parts(heard, &mut hears);
                assert!(message.consensus == consensus && message.frames == frames, "answer {heard}");
            });
            heard == ALL
        });
        assert_eq!(first.links.statistics(2).unwrap().messages_received, ALL);
        assert_eq!((first.event_texts(), second.event_texts()), (vec![], vec![]));
    }
}

#[test]
fn sent_messages_precede_the_end() {
    for _ in 0..20 {
        let (_directory, path) = position();
        let (mut first, second) = shared_pair(&path, patient());
        let mut second = second;
        for _ in 0..30 {
            second.send(1, b"before the end");
        }
        drop(second);
        let mut read = 0;
        turn_until("the end of the connection is noticed", || {
            first.turn(|message| {
                assert_eq!(message.consensus, b"before the end");
                read += 1;
            });
            !first.events.is_empty()
        });
        assert_eq!((read, first.event_texts()), (30, vec!["gone 2".to_owned()]));
        assert!(!path.exists(), "the socket's file goes with its member");
        let mut second = listens(&path, patient());
        turn_until("both are connected again", || {
            first.idle();
            second.idle();
            !first.events.is_empty() && !second.events.is_empty()
        });
    }
}

#[test]
fn child_that_listens() {
    let Ok(path) = std::env::var(CHILD_PATH) else { return };
    let mut second = listens(Path::new(&path), MemberLinkOptions::default());
    let parent = std::os::unix::process::parent_id();
    while std::os::unix::process::parent_id() == parent {
        let mut answers = 0;
        second.turn(|_| answers += 1);
        (0..answers).for_each(|_| second.send(1, b"heard"));
        std::thread::yield_now();
    }
}

#[test]
fn killed_process_is_gone_at_once() {
    let (_directory, path) = position();
    let mut first = Member::new(patient(), identity(1), &[address(&path)]);
    for _ in 0..2 {
        let mut command = this_program();
        command.args(["--exact", "local_members_share_memory::child_that_listens"]).env(CHILD_PATH, &path);
        let mut child = Process::start_as(command.stdout(Stdio::null()));
        let mut answers = 0;
        turn_until("the other process answers", || {
            if first.events.len() == 1 && answers == 0 {
                let _ = first.links.send(2, MessageContent::Consensus, b"are you there", &[]);
            }
            first.turn(|_| answers += 1);
            answers > 0
        });
        assert_eq!(first.event_texts(), ["connected 2"]);
        child.kill();
        turn_until("the end of the process is noticed", || {
            first.turn(|_| ());
            !first.events.is_empty()
        });
        assert_eq!(first.event_texts(), ["gone 2"]);
        assert!(path.exists(), "a killed process removes nothing");
    }
}

#[test]
fn sleeping_member_is_woken() {
    let (_directory, path) = position();
    let options = MemberLinkOptions { ping_interval_ns: u64::MAX / 8, ..patient() };
    let (mut first, mut second) = shared_pair(&path, options);
    let (is_asleep, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (is_asleep, stop) = (&is_asleep, &stop);
        let sleeper = scope.spawn(move || {
            let mut heard = 0_u32;
            while second.events.is_empty() {
                second.turn(|_| heard += 1);
                second.links.arm();
                let mut found = false;
                second.turn(|_| found = true);
                heard += u32::from(found);
                let may_sleep = second.links.next_deadline_ns() > now().monotonic_ns;
                if !found && may_sleep && second.events.is_empty() {
                    let mut descriptors = Vec::new();
                    second.links.watch(&mut descriptors);
                    let mut polled: Vec<_> =
                        descriptors.iter().map(|descriptor| PollFd::new(descriptor, PollFlags::IN)).collect();
                    is_asleep.store(true, Ordering::SeqCst);
                    let patience = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
                    let woken = rustix::event::poll(&mut polled, Some(&patience)).unwrap();
                    is_asleep.store(false, Ordering::SeqCst);
                    assert!(woken > 0, "the member is not woken");
                }
                second.links.disarm();
            }
            stop.store(true, Ordering::SeqCst);
            heard
        });
        for _ in 0..50 {
            turn_until("the member sleeps", || is_asleep.load(Ordering::SeqCst));
            first.send(2, b"wake up");
            first.idle();
        }
        turn_until("the member sleeps", || is_asleep.load(Ordering::SeqCst));
        drop(first);
        turn_until("the member notices the end", || stop.load(Ordering::SeqCst));
        assert_eq!(sleeper.join().unwrap(), 50);
    });
}

#[test]
fn tcp_works_without_shared_memory() {
    let (_directory, path) = position();
    let mut second = Member::listens(2, &[peer(1, &[])]);
    let addresses = vec![format!("shm:{}", path.display()), second.address().to_string()];
    let mut first = Member::new(MemberLinkOptions::default(), identity(1), &[PeerOptions { member: 2, addresses }]);
    turn_until("both are connected over TCP", || {
        first.idle();
        second.idle();
        !first.events.is_empty() && !second.events.is_empty()
    });
    assert_eq!(second.links.pending_statistics().accepted, 1);
    let port = second.address();
    drop(second);
    assert_eq!(first.event_texts(), ["connected 2"]);
    let mut second = listens(&path, MemberLinkOptions { listen: Some(port), ..MemberLinkOptions::default() });
    turn_until("both are connected again", || {
        first.idle();
        second.idle();
        second.links.is_connected(1) && first.links.is_connected(2) && first.events.len() == 2
    });
    assert_eq!(
        (first.event_texts(), second.event_texts()),
        (vec!["gone 2".to_owned(), "connected 2".to_owned()], vec!["connected 1".to_owned()])
    );
}

#[test]
fn path_has_one_listener() {
    let (_directory, path) = position();
    let second = listens(&path, MemberLinkOptions::default());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let options = MemberLinkOptions { listen_shared: Some(path.clone()), ..listening() };
    let refused = gapless_cluster::link::Links::open(options, identity(2), &[peer(1, &[])]).unwrap_err();
    assert!(matches!(refused, LinkError::ListenShared { .. }), "{refused}");
    assert!(refused.to_string().contains("another process listens there"), "{refused}");
    drop(second);
    std::fs::write(&path, "precious").unwrap();
    let options = MemberLinkOptions { listen_shared: Some(path.clone()), ..listening() };
    assert!(gapless_cluster::link::Links::open(options, identity(2), &[peer(1, &[])]).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}

struct HostilePeer {
    socket: OwnedFd,
}

impl HostilePeer {
    fn dial(path: &Path) -> Self {
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
        Self { socket }
    }

    fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
        }
        rustix::net::sendmsg(&self.socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).unwrap();
    }

    fn in_memory(path: &Path) -> (Self, RingWriter, RingReader) {
        let hostile = Self::dial(path);
        let ((writer, its_reader), (its_writer, reader)) = (new_ring(), new_ring());
        hostile.send(b"GAPRING\x01", &[its_reader.fd(), its_writer.fd()]);
        its_reader.leave_to_peer();
        its_writer.leave_to_peer();
        (hostile, writer, reader)
    }
}

fn new_ring() -> (RingWriter, RingReader) {
    ring::create(&MemoryKind::Shared, 4096, StreamIdentity { stream_id: 0, incarnation: 0 }).unwrap()
}

/// The file's length can still be changed.
fn unsealed() -> OwnedFd {
    let (writer, _reader) = new_ring();
    let mut bytes = vec![0; descriptor::HEADER_LENGTH + 4096];
    rustix::io::pread(writer.fd(), &mut bytes, 0).unwrap();
    let file = rustix::fs::memfd_create("unsealed", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::io::write(&file, &bytes).unwrap();
    file
}

/// Sealed; its claimed length is too long, or longer than its file.
fn resized(length: u64, capacity: u64) -> OwnedFd {
    let file = unsealed();
    rustix::io::pwrite(&file, &capacity.to_le_bytes(), (descriptor::CAPACITY_WORD * 8) as u64).unwrap();
    rustix::fs::ftruncate(&file, length).unwrap();
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW).unwrap();
    file
}

fn record(length: u32, bytes: u32) -> Vec<u8> {
    let mut record = vec![7; (length as usize).next_multiple_of(8)];
    record[..4].copy_from_slice(&length.to_le_bytes());
    record[4..8].copy_from_slice(&bytes.to_le_bytes());
    record
}

fn still_works(second: &mut Member, path: &Path) {
    let mut first = Member::new(MemberLinkOptions::default(), identity(1), &[address(path)]);
    turn_until("a valid member is accepted", || {
        first.idle();
        second.idle();
        first.links.is_connected(2) && second.links.is_connected(1)
    });
    first.send(2, b"good");
    let mut heard = false;
    turn_until("the message arrives", || {
        second.turn(|message| heard = message.consensus == b"good");
        heard
    });
    drop(first);
    turn_until("the member has disconnected", || {
        second.idle();
        !second.links.is_connected(1)
    });
    second.events.clear();
}

#[test]
fn bad_rings_are_dropped() {
    let (_directory, path) = position();
    let mut second = listens(&path, patient());
    let (writer, reader) = new_ring();
    let (pipe, _other_end) = std::io::pipe().unwrap();
    let (unsealed, far_too_long) = (unsealed(), resized(descriptor::HEADER_LENGTH as u64 + (1 << 36), 1 << 36));
    let shorter = resized(descriptor::HEADER_LENGTH as u64 + 4096, 1 << 20);
    let good = writer.fd();
    let magic = b"GAPRING\x01";
    let cases: [(&[u8], Vec<BorrowedFd<'_>>, &str); 9] = [
        (b"GET / HTTP/1.1", vec![good, reader.fd()], "another first packet"),
        (b"GAPRING\x02", vec![good, reader.fd()], "another version"),
        (magic, vec![], "no ring"),
        (magic, vec![good], "one ring"),
        (magic, vec![good, good, good], "three rings"),
        (magic, vec![pipe.as_fd(), good], "a pipe"),
        (magic, vec![unsealed.as_fd(), good], "a ring that can shrink"),
        (magic, vec![good, far_too_long.as_fd()], "64 GiB"),
        (magic, vec![shorter.as_fd(), good], "a ring that says that it is longer"),
    ];
    for (at, (bytes, descriptors, what)) in cases.iter().enumerate() {
        let hostile = HostilePeer::dial(&path);
        hostile.send(bytes, descriptors);
        turn_until(what, || {
            second.idle();
            second.links.pending_statistics().garbage == at as u64 + 1
        });
        let mut polled = [PollFd::new(&hostile.socket, PollFlags::IN)];
        assert_eq!(rustix::event::poll(&mut polled, Some(&Timespec { tv_sec: 60, tv_nsec: 0 })), Ok(1), "{what}");
    }
    still_works(&mut second, &path);
}

type InvalidRecord = fn(&mut RingWriter);

#[test]
fn ring_records_are_checked() {
    let (_directory, path) = position();
    let mut second = listens(&path, patient());
    let bad: [(&str, InvalidRecord); 7] = [
        ("nothing in a record", |writer| writer.append(&record(64, 0)).unwrap()),
        ("more than the record", |writer| writer.append(&record(64, 64)).unwrap()),
        ("far more than the record", |writer| writer.append(&record(64, u32::MAX - 7)).unwrap()),
        ("half a word", |writer| writer.append(&record(64, 12)).unwrap()),
        ("no message", |writer| writer.append(&record(128, 120)).unwrap()),
        ("a record longer than what is published", |writer| {
            let mut bytes = record(64, 8);
            bytes[..4].copy_from_slice(&1024_u32.to_le_bytes());
            writer.append(&bytes).unwrap();
        }),
        ("a position that cannot be", |writer| {
            rustix::io::pwrite(writer.fd(), &u64::MAX.to_le_bytes(), (descriptor::TAIL_WORD * 8) as u64).unwrap();
        }),
    ];
    for (at, (what, spoil)) in bad.into_iter().enumerate() {
        let (_hostile, mut writer, _reader) = HostilePeer::in_memory(&path);
        spoil(&mut writer);
        if at < 6 {
            let _ = writer.publish();
        }
        turn_until(what, || {
            second.idle();
            second.links.pending_statistics().garbage == at as u64 + 1
        });
    }
    still_works(&mut second, &path);
}

#[test]
fn bad_reader_breaks_its_own_link() {
    let (_directory, path) = position();
    for position in [u64::MAX - 7, 1 << 40] {
        let mut second = listens(&path, MemberLinkOptions { shared_ring_bytes: 4096, ..patient() });
        let (hostile, mut writer, reader) = HostilePeer::in_memory(&path);
        let hello = gapless_cluster::link::wire::Introduction {
            from: identity(1),
            to: 2,
            log: gapless_cluster::link::log_state::LogState::default(),
        }
        .to_bytes();
        let header = gapless_cluster::link::wire::MessageHeader::new(
            gapless_cluster::link::wire::MessageKind::Hello,
            1,
            &hello,
            0,
        )
        .to_bytes();
        let mut bytes = record(8 + 168, 168);
        bytes[8..40].copy_from_slice(&header);
        bytes[40..176].copy_from_slice(&hello);
        writer.append(&bytes).unwrap();
        let _ = writer.publish();
        turn_until("the member is accepted", || {
            second.idle();
            second.links.is_connected(1)
        });
        rustix::io::pwrite(reader.fd(), &position.to_le_bytes(), (descriptor::HEAD_WORD * 8) as u64).unwrap();
        let begun = Instant::now();
        while second.links.is_connected(1) {
            let _ = second.links.send(1, MessageContent::Consensus, &[1; 1000], &[]);
            second.links.poll(now());
            assert!(begun.elapsed() < PATIENCE, "the invalid position is noticed");
        }
        drop(hostile);
        second.events.clear();
        still_works(&mut second, &path);
    }
}
