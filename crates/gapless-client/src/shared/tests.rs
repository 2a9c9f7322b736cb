//! A client over rings whose other ends the test holds: rings without room, and the end of the helper.

mod notices;
mod outcomes;
mod reconnecting;

use super::*;
use crate::polled::{ClientOptions, MessageType};
use gapless_agent::block_on::block_on;
use gapless_agent::wake_fd;
use gapless_log::ring::{self, RingReader, RingWriter};
use gapless_log::{LogError, MemoryKind, StreamIdentity};
use gapless_message::{Message, contract};
use gapless_testkit::wait::until;
use gapless_transport::handshake::{HandshakeStatus, Welcome};
use gapless_transport::publisher_link::PublisherLink;
use gapless_transport::tier::Tier;
use gapless_wire::control::{Refusal, RefusalCode, SessionOpen, SessionOpened};
use gapless_wire::descriptor::REFUSED_FLAG;
use gapless_wire::{Frame, FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length};
use rustix::fd::OwnedFd;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Mutex;
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
    sessions: Arc<Mutex<Sessions>>,
    sequence: u64,
    /// Session and number of each command, and of each close.
    taken: Vec<(Kind, u64, u64)>,
    /// Awaited sequence of each query, which gets no answer.
    queries: Vec<u64>,
}

/// Sessions of a service, which outlive its connections.
#[derive(Default)]
struct Sessions {
    /// Session and next number by token.
    open: BTreeMap<u128, (u64, u64)>,
    count: u64,
    /// Opens to be refused for the limit of sessions.
    refused: usize,
    is_mute: bool,
    /// Frames that were ignored because it is mute.
    ignored: usize,
}

impl Sessions {
    /// `None` if it is refused.
    fn open(&mut self, token: u128) -> Option<(u64, u64)> {
        if self.refused > 0 {
            self.refused -= 1;
            return None;
        }
        let session = SESSION + self.count;
        let opened = *self.open.entry(token).or_insert((session, 1));
        self.count += u64::from(opened.0 == session);
        Some(opened)
    }

    fn knows(&self, session: u64) -> bool {
        self.open.values().any(|(id, _)| *id == session)
    }

    fn took(&mut self, session: u64, number: u64) {
        let taken = self.open.values_mut().find(|(id, next)| *id == session && *next == number);
        taken.into_iter().for_each(|(_, next)| *next += 1);
    }
}

const IDENTITY: StreamIdentity = StreamIdentity { stream_id: 5, incarnation: 1 };

impl FakeService {
    fn start(command_ring_bytes: usize, stops: &Arc<AtomicBool>) -> (PolledClient, JoinHandle<Self>) {
        let (link, mut service) = Self::link(command_ring_bytes, IDENTITY, &Arc::default());
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

    fn link(
        command_ring_bytes: usize,
        identity: StreamIdentity,
        sessions: &Arc<Mutex<Sessions>>,
    ) -> (PublisherLink, Self) {
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
        let sessions = Arc::clone(sessions);
        let service = Self { commands, replies, wake, sessions, sequence: 0, taken: Vec::new(), queries: Vec::new() };
        (link, service)
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
        let sequence = self.sequence;
        let header = FrameHeader { kind: Kind::Reply, sequence, timestamp_ns: sequence, ..FrameHeader::default() };
        match frame.kind() {
            Kind::SessionOpen => {
                let SessionOpen { token, notices_seen, .. } = SessionOpen::from_bytes(frame.payload()).unwrap();
                let opened = self.sessions.lock().unwrap().open(token);
                let Some((session, next_session_seq)) = opened else {
                    let mut payload = [0; 32];
                    let refusal = Refusal { code: RefusalCode::Limit, detail: token as u64, text: "too many" };
                    let length = refusal.write_to(&mut payload);
                    self.say(&FrameHeader { flags: REFUSED_FLAG, sequence: 0, ..header }, &payload[..length]);
                    return true;
                };
                let opened = SessionOpened { token, next_session_seq, notices_acknowledged: notices_seen };
                self.say(&FrameHeader { session, ..header }, &opened.to_bytes());
            }
            Kind::Query => self.queries.push(frame.sequence()),
            _ if self.sessions.lock().unwrap().is_mute => self.sessions.lock().unwrap().ignored += 1,
            _ if !self.sessions.lock().unwrap().knows(frame.session()) => {
                let mut payload = [0; 32];
                let refusal = Refusal { code: RefusalCode::SessionUnknown, detail: 0, text: "unknown" };
                let length = refusal.write_to(&mut payload);
                let (session, session_seq) = (frame.session(), frame.session_seq());
                let header = FrameHeader { flags: REFUSED_FLAG, session, session_seq, ..header };
                self.say(&header, &payload[..length]);
            }
            kind => {
                self.taken.push((kind, frame.session(), frame.session_seq()));
                self.sessions.lock().unwrap().took(frame.session(), frame.session_seq());
                let (session, session_seq) = (frame.session(), frame.session_seq());
                // An empty command asks for a reply.
                if kind == Kind::Command && frame.payload().is_empty() {
                    self.reply(&FrameHeader { session, session_seq, ..header }, 0);
                } else if kind == Kind::Command {
                    let Bytes(bytes) = Bytes::decode(contract::split_request(frame.payload()).unwrap().1).unwrap();
                    self.reply(&FrameHeader { session, session_seq, ..header }, bytes.len() as u64);
                } else if kind == Kind::Acknowledge {
                    self.say(&FrameHeader { session, session_seq, ..header }, &[]);
                }
            }
        }
        true
    }

    fn reply(&mut self, header: &FrameHeader, reply: u64) {
        let mut payload = Vec::new();
        let agreed = contract::contracts_of::<Bytes>().into_iter().next().unwrap();
        contract::encode_reply(&reply, &agreed, &mut payload);
        let message = MessageType::typed::<Bytes>();
        let header = FrameHeader { schema: message.schema, flags: message.encoding.flags(), ..*header };
        self.say(&header, &payload);
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
    until("no helper", || reconnecting::threads(channel::HELPER_NAME) == 0);
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
    is_sent::<Ended>();
    is_sent::<Notices>();
}
