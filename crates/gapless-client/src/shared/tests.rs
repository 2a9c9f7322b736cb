//! A client over rings whose other ends the test holds: rings without room, and the end of the helper.

use super::*;
use crate::polled::ClientOptions;
use gapless_agent::block_on::block_on;
use gapless_agent::wake_fd;
use gapless_log::ring::{self, RingReader, RingWriter};
use gapless_log::{LogError, MemoryKind, StreamIdentity};
use gapless_message::{Message, contract};
use gapless_testkit::wait::until;
use gapless_transport::handshake::{HandshakeStatus, Welcome};
use gapless_transport::publisher_link::PublisherLink;
use gapless_transport::tier::Tier;
use gapless_wire::control::{SessionOpen, SessionOpened};
use gapless_wire::{Frame, FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length};
use rustix::fd::OwnedFd;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

const SESSION: u64 = 100;

/// Replied to with its length.
#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64)]
struct Bytes(Vec<u8>);

/// Takes commands, and answers them.
struct FakeService {
    commands: RingReader,
    replies: RingWriter,
    wake: OwnedFd,
    sessions: u64,
    sequence: u64,
    /// Session and number of each command, and of each close.
    taken: Vec<(Kind, u64, u64)>,
}

impl FakeService {
    fn start(command_ring_bytes: usize, stops: &Arc<AtomicBool>) -> (PolledClient, JoinHandle<Self>) {
        let identity = StreamIdentity { stream_id: 5, incarnation: 1 };
        let (writer, commands) = ring::create(&MemoryKind::Anonymous, command_ring_bytes, identity).unwrap();
        let (replies, reader) = ring::create(&MemoryKind::Anonymous, 4_096, identity).unwrap();
        let welcome = Welcome {
            status: HandshakeStatus::Welcome,
            connection: 1,
            identity,
            frame_length_max: 1_024,
            tier: Tier::Memory as u32,
            process_id: 1,
            message_length_max: 4_096,
            released_sequence: 0,
            mtu: None,
        };
        let link = PublisherLink::of_rings(welcome, writer, reader).unwrap();
        let wake = rustix::io::fcntl_dupfd_cloexec(&link.wake_publisher, 0).unwrap();
        let mut service = Self { commands, replies, wake, sessions: 0, sequence: 0, taken: Vec::new() };
        let stops = Arc::clone(stops);
        let thread = std::thread::spawn(move || {
            // The last frames come before the end.
            while !stops.load(Ordering::SeqCst) || service.take() {
                if !service.take() {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
            service
        });
        (PolledClient::local(link, ClientOptions::default()), thread)
    }

    /// Takes one frame; `false` without any.
    fn take(&mut self) -> bool {
        let Some(length) = self.commands.next_length().unwrap() else { return false };
        let mut bytes = vec![0; aligned_length(length)];
        self.commands.copy(&mut bytes);
        self.commands.advance(length);
        self.commands.release();
        let frame = Frame::parse(&bytes[..length]).unwrap();
        frame.verify().unwrap();
        self.sequence += 1;
        let header = FrameHeader { kind: Kind::Reply, sequence: self.sequence, ..FrameHeader::default() };
        match frame.kind() {
            Kind::SessionOpen => {
                let SessionOpen { token, .. } = SessionOpen::from_bytes(frame.payload()).unwrap();
                let opened = SessionOpened { token, next_session_seq: 1, notices_acknowledged: 0 };
                self.say(&FrameHeader { session: SESSION + self.sessions, ..header }, &opened.to_bytes());
                self.sessions += 1;
            }
            kind => {
                self.taken.push((kind, frame.session(), frame.session_seq()));
                let (session, session_seq, schema, flags) =
                    (frame.session(), frame.session_seq(), frame.schema(), frame.flags());
                if kind == Kind::Command {
                    let Bytes(bytes) = Bytes::decode(contract::split_request(frame.payload()).unwrap().1).unwrap();
                    let mut payload = Vec::new();
                    let agreed = contract::contracts_of::<Bytes>().into_iter().next().unwrap();
                    contract::encode_reply(&(bytes.len() as u64), &agreed, &mut payload);
                    self.say(&FrameHeader { session, session_seq, schema, flags, ..header }, &payload);
                }
            }
        }
        true
    }

    fn say(&mut self, header: &FrameHeader, payload: &[u8]) {
        let mut bytes = vec![0; aligned_length(HEADER_LENGTH + payload.len())];
        let mut writer = FrameWriter::new(&mut bytes);
        writer.payload_mut()[..payload.len()].copy_from_slice(payload);
        writer.finish(header, payload.len());
        until("room for a reply", || match self.replies.append(&bytes) {
            Err(LogError::Full { .. }) => false,
            appended => appended.map(|()| true).unwrap(),
        });
        if self.replies.publish() {
            wake_fd::signal(&self.wake);
        }
    }
}

fn options(sessions: usize) -> CallOptions {
    CallOptions { sessions, within: Duration::from_secs(120), ..CallOptions::default() }
}

/// Nothing wakes a client for which a ring has room again.
#[test]
fn full_ring_is_retried() {
    for (sessions, has_helper) in [(1, false), (1, true), (3, true)] {
        let stops = Arc::new(AtomicBool::new(false));
        let (polled, service) = FakeService::start(4_096, &stops);
        let client = Client::over(polled, options(sessions)).unwrap();
        let lengths = (0..500).map(|number| number * 7 % 600);
        let started: Vec<_> = lengths.clone().map(|length| client.start(Bytes(vec![7; length]))).collect();
        for (length, call) in lengths.zip(started) {
            let replied = if has_helper { block_on(call) } else { call.wait() };
            assert_eq!(replied, Ok(length as u64));
        }
        drop(client);
        stops.store(true, Ordering::SeqCst);
        let mut taken = service.join().unwrap().taken;
        taken.retain(|(kind, ..)| *kind == Kind::Command);
        assert_eq!(taken.len(), 500);
        for session in SESSION..SESSION + sessions as u64 {
            let numbers = taken.iter().filter(|(_, of, _)| *of == session).map(|(.., number)| *number);
            assert!(numbers.enumerate().all(|(index, number)| number == index as u64 + 1), "without a gap");
        }
    }
}

/// Helpers of this process.
fn helpers() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap_or_default());
    names.filter(|name| name.trim_end() == channel::HELPER_NAME).count()
}

/// The other tests of this crate have helpers, too, but no more after their end.
#[test]
fn last_client_ends_helper() {
    let stops = Arc::new(AtomicBool::new(false));
    let (polled, service) = FakeService::start(1 << 16, &stops);
    let client = Client::over(polled, options(2)).unwrap();
    assert_eq!(block_on(client.call(Bytes(vec![7]))), Ok(1));
    let (clone, call) = (client.ordered(1), client.call(Bytes(vec![7; 2])));
    drop(client);
    drop(clone);
    assert_eq!(block_on(call), Ok(2), "a call keeps its client");
    until("no helper", || helpers() == 0);
    stops.store(true, Ordering::SeqCst);
    let taken = service.join().unwrap().taken;
    let closed = taken.iter().filter(|(kind, ..)| *kind == Kind::SessionClose).count();
    assert_eq!(closed, 2, "the sessions are closed: {taken:?}");
}

#[test]
fn clients_are_shared() {
    const fn is_shared<T: Clone + Send + Sync + 'static>() {}
    const fn is_sent<T: Send + Sync + Unpin + 'static>() {}
    is_shared::<Client>();
    is_shared::<blocking::Client>();
    is_sent::<Call<Bytes>>();
    is_sent::<Connecting>();
}
