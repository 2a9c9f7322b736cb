//! A client over rings whose other ends the test holds: rings without room, and the end of the helper.

mod faults;
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
    /// Replies of the commands that are not committed yet.
    held: Vec<(FrameHeader, u64)>,
    /// Nothing reaches the client.
    is_gone: bool,
}

/// Sessions of a service, which outlive its connections.
#[derive(Default)]
struct Sessions {
    /// Session and next number by token.
    open: BTreeMap<u128, (u64, u64)>,
    count: u64,
    /// Opens to be refused for the limit of sessions.
    refused: usize,
    /// Sessions that expire as soon as they are open.
    expiring: usize,
    is_mute: bool,
    /// Frames that were ignored because it is mute.
    ignored: usize,
    /// Commands are not committed.
    holds: bool,
    /// Reply by session and number.
    replies: BTreeMap<(u64, u64), u64>,
    /// First 8 bytes of each command that was longer, in the order of the effects.
    effects: Vec<u64>,
}

/// Place of a command in its session.
enum Place {
    New,
    Earlier,
    Gap {
        next: u64,
    },
    UnknownSession,
    /// The service is mute.
    Ignored,
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
        if self.expiring > 0 {
            self.expiring -= 1;
            self.open.remove(&token);
        }
        Some(opened)
    }

    fn take(&mut self, session: u64, number: u64) -> Place {
        if self.is_mute {
            self.ignored += 1;
            return Place::Ignored;
        }
        match self.open.values_mut().find(|(id, _)| *id == session) {
            Some((_, next)) if *next == number => {
                *next += 1;
                Place::New
            }
            Some((_, next)) if number > *next => Place::Gap { next: *next },
            Some(_) => Place::Earlier,
            None => Place::UnknownSession,
        }
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
        let service = Self {
            commands,
            replies,
            wake,
            sessions,
            sequence: 0,
            taken: Vec::new(),
            queries: Vec::new(),
            held: Vec::new(),
            is_gone: false,
        };
        (link, service)
    }

    /// Takes one frame; `false` without any.
    fn take(&mut self) -> bool {
        if !self.sessions.lock().unwrap().holds {
            std::mem::take(&mut self.held).into_iter().for_each(|(header, reply)| self.reply(&header, reply));
        }
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
                    self.refuse(RefusalCode::Limit, token as u64, &FrameHeader { sequence: 0, ..header });
                    return true;
                };
                let opened = SessionOpened { token, next_session_seq, notices_acknowledged: notices_seen };
                self.say(&FrameHeader { session, ..header }, &opened.to_bytes());
            }
            Kind::Query => self.queries.push(frame.sequence()),
            kind => {
                let (session, session_seq) = (frame.session(), frame.session_seq());
                let header = FrameHeader { session, session_seq, ..header };
                let place = self.sessions.lock().unwrap().take(session, session_seq);
                match place {
                    Place::Ignored => {}
                    Place::UnknownSession => self.refuse(RefusalCode::SessionUnknown, 0, &header),
                    Place::Gap { next } => self.refuse(RefusalCode::Gap, next, &header),
                    Place::New | Place::Earlier => {
                        self.taken.push((kind, session, session_seq));
                        match kind {
                            Kind::Command => self.take_command(&frame, matches!(place, Place::New), &header),
                            Kind::Acknowledge => self.say(&header, &[]),
                            _ => {}
                        }
                    }
                }
            }
        }
        true
    }

    fn take_command(&mut self, frame: &Frame<'_>, is_new: bool, header: &FrameHeader) {
        let key = (header.session, header.session_seq);
        let mut sessions = self.sessions.lock().unwrap();
        if is_new {
            let Bytes(bytes) = Bytes::decode(contract::split_request(frame.payload()).unwrap().1).unwrap();
            sessions.replies.insert(key, bytes.len() as u64);
            if let Some((name, [_, ..])) = bytes.split_first_chunk() {
                sessions.effects.push(u64::from_le_bytes(*name));
            }
        }
        let (holds, reply) = (sessions.holds && is_new, sessions.replies[&key]);
        drop(sessions);
        let is_held = |(held, _): &(FrameHeader, u64)| (held.session, held.session_seq) == key;
        if holds {
            self.held.push((*header, reply));
        } else if !self.held.iter().any(is_held) {
            self.reply(header, reply);
        }
    }

    fn refuse(&mut self, code: RefusalCode, detail: u64, header: &FrameHeader) {
        let mut payload = [0; 32];
        let length = Refusal { code, detail, text: "refused" }.write_to(&mut payload);
        self.say(&FrameHeader { flags: REFUSED_FLAG, ..*header }, &payload[..length]);
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
        if self.is_gone {
            return;
        }
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
