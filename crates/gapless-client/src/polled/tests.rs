//! A client and its service in one process: the test holds the other ends of the rings, and the clock.

mod hostile;
mod queries;
mod shared;

use super::*;
use gapless_log::MemoryKind;
use gapless_log::ring::{self, RingReader, RingWriter};
use gapless_transport::handshake::HandshakeStatus;
use gapless_wire::Encoding;
use gapless_wire::control::{Refusal, RefusalCode, SessionOpen, SessionOpened};
use gapless_wire::descriptor::REFUSED_FLAG;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

const FRAME_LENGTH_MAX: usize = 256;
const PART_LENGTH: usize = FRAME_LENGTH_MAX - HEADER_LENGTH;
const MESSAGE_LENGTH_MAX: usize = 2_000;
const RING_BYTES_MIN: usize = 4_096;
const TYPE: MessageType = MessageType { schema: 3 << 16 | 7, encoding: Encoding::Sbe };
const TIMEOUT: Duration = Duration::from_secs(5);

struct Service {
    begun: Instant,
    now: Instant,
    ring_bytes: usize,
    rings: Option<(RingReader, RingWriter)>,
    connections: usize,
    takes: bool,
    taken: VecDeque<Vec<u8>>,
    /// Next number in the answer to each open, with session 100 + token; a connection begins with 1.
    opens_at: Option<u64>,
    says: VecDeque<Vec<u8>>,
}

#[derive(Clone)]
struct Shared(Arc<Mutex<Service>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Service> {
        self.0.lock().unwrap()
    }
}

impl Service {
    fn elapsed(&self) -> Duration {
        self.now - self.begun
    }

    fn take(&mut self) {
        let Some((commands, _)) = &mut self.rings else { return };
        let mut opens = Vec::new();
        while let Some(length) = commands.next_length().unwrap() {
            let mut bytes = vec![0; aligned_length(length)];
            commands.copy(&mut bytes);
            commands.advance(length);
            bytes.truncate(length);
            let frame = Frame::parse(&bytes).unwrap();
            frame.verify().unwrap();
            if frame.kind() == Kind::SessionOpen {
                opens.push(SessionOpen::from_bytes(frame.payload()).unwrap());
            }
            self.taken.push_back(bytes);
        }
        commands.release();
        let Some(next_session_seq) = self.opens_at else { return };
        for SessionOpen { token, notices_seen, .. } in opens {
            self.say(opened(token, next_session_seq, notices_seen));
        }
    }

    fn say(&mut self, mut bytes: Vec<u8>) {
        let (_, replies) = self.rings.as_mut().unwrap();
        bytes.resize(aligned_length(bytes.len()), 0);
        replies.append(&bytes).unwrap();
        let _ = replies.publish();
    }

    /// Kind, session, number.
    fn seen(&mut self) -> Vec<(Kind, u64, u64)> {
        self.take();
        let frames = self.taken.drain(..);
        frames
            .map(|bytes| Frame::parse(&bytes).map(|each| (each.kind(), each.session(), each.session_seq())).unwrap())
            .collect()
    }
}

impl ClientEnvironment for Shared {
    fn now(&self) -> Instant {
        self.lock().now
    }

    fn sleep(&mut self, timeout: Duration) {
        let mut service = self.lock();
        if service.takes {
            service.take();
        }
        let soon = Duration::from_millis(1);
        match service.says.pop_front() {
            Some(bytes) => {
                service.now += soon;
                service.say(bytes);
            }
            None => service.now += timeout.max(soon),
        }
    }

    fn connect(&mut self, _: Duration) -> Result<PublisherLink, ClientError> {
        let mut service = self.lock();
        let identity = StreamIdentity { stream_id: 5, incarnation: 1 };
        let (writer, commands) = ring::create(&MemoryKind::Anonymous, service.ring_bytes, identity)?;
        let (replies, reader) = ring::create(&MemoryKind::Anonymous, 1 << 16, identity)?;
        service.rings = Some((commands, replies));
        service.connections += 1;
        service.opens_at = Some(1);
        let welcome = Welcome {
            status: HandshakeStatus::Welcome,
            connection: 1,
            identity,
            frame_length_max: FRAME_LENGTH_MAX as u32,
            tier: Tier::Sync as u32,
            process_id: 1,
            message_length_max: MESSAGE_LENGTH_MAX as u64,
            released_sequence: 9,
            mtu: None,
        };
        Ok(PublisherLink::of_rings(welcome, writer, reader)?)
    }
}

fn frame(header: &FrameHeader, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; aligned_length(HEADER_LENGTH + payload.len())];
    let mut writer = FrameWriter::new(&mut bytes);
    writer.payload_mut()[..payload.len()].copy_from_slice(payload);
    let length = writer.finish(header, payload.len());
    bytes.truncate(length);
    bytes
}

fn reply(session: u64, session_seq: u64, sequence: u64) -> Vec<u8> {
    frame(&FrameHeader { kind: Kind::Reply, session, session_seq, sequence, ..FrameHeader::default() }, b"done")
}

fn opened(token: u128, next_session_seq: u64, notices_acknowledged: u64) -> Vec<u8> {
    let opened = SessionOpened { token, next_session_seq, notices_acknowledged };
    let header = FrameHeader { kind: Kind::Reply, session: 100 + token as u64, ..FrameHeader::default() };
    frame(&header, &opened.to_bytes())
}

fn notice(session: u64, session_seq: u64) -> Vec<u8> {
    frame(&FrameHeader { kind: Kind::Notice, session, session_seq, sequence: 1, ..FrameHeader::default() }, b"news")
}

fn refusal(code: RefusalCode, session: u64, session_seq: u64, detail: u64) -> Vec<u8> {
    let mut payload = [0; 64];
    let length = Refusal { code, detail, text: "" }.write_to(&mut payload);
    let header = FrameHeader { kind: Kind::Reply, flags: REFUSED_FLAG, session, session_seq, ..FrameHeader::default() };
    frame(&header, &payload[..length])
}

fn connected() -> (PolledClient, Shared) {
    with_ring(1 << 16)
}

fn with_ring(ring_bytes: usize) -> (PolledClient, Shared) {
    let now = Instant::now();
    let service = Service {
        begun: now,
        now,
        ring_bytes,
        rings: None,
        connections: 0,
        takes: true,
        taken: VecDeque::new(),
        opens_at: None,
        says: VecDeque::new(),
    };
    let service = Shared(Arc::new(Mutex::new(service)));
    let options = ClientOptions { timeout: TIMEOUT, ..ClientOptions::default() };
    (PolledClient::connect_in(Box::new(service.clone()), options).unwrap(), service)
}

fn send(client: &mut PolledClient, key: SessionKey, length: usize) -> Result<u64, ClientError> {
    client.send(key, TYPE, length, encode)
}

fn encode(buffer: &mut [u8]) -> Result<usize, ClientError> {
    buffer.iter_mut().enumerate().for_each(|(index, byte)| *byte = index as u8);
    Ok(buffer.len())
}

fn polled(client: &mut PolledClient) -> Vec<String> {
    let mut all = Vec::new();
    client
        .poll(usize::MAX, |incoming| {
            all.push(match incoming {
                Incoming::Opened { session } => format!("opened {}", session.index()),
                Incoming::SessionLost { session } => format!("lost {}", session.index()),
                Incoming::Reply { session, reply, first } => {
                    assert_eq!(reply.payload, b"done");
                    format!("{} {} {}", if first { "reply" } else { "again" }, session.index(), reply.session_seq)
                }
                Incoming::Notice { session, notice } => format!("notice {} {}", session.index(), notice.session_seq),
            });
        })
        .unwrap();
    all
}

#[test]
fn flush_sends_numbered_command() {
    let (mut client, service) = connected();
    assert_eq!((client.welcome().released_sequence, client.tier()), (9, Some(Tier::Sync)));
    let key = client.open_session(7, 8).unwrap();
    let open = service.lock().taken.pop_front().unwrap();
    let open = Frame::parse(&open).unwrap();
    let expected = SessionOpen { token: 7, window_messages: 8, shared: false, notices_seen: 0 };
    assert_eq!((open.kind(), SessionOpen::from_bytes(open.payload())), (Kind::SessionOpen, Some(expected)));
    assert_eq!((client.session_id(key), client.next_session_seq(key), client.in_flight(key)), (Some(107), Some(1), 0));
    for (number, length) in [0, 1, 64, PART_LENGTH - 1, PART_LENGTH].into_iter().enumerate() {
        let number = number as u64 + 1;
        assert_eq!(client.enqueue(key, TYPE, length, encode).unwrap(), number);
        assert_eq!(service.lock().seen(), [], "it is enqueued");
        client.flush();
        service.lock().take();
        let bytes = service.lock().taken.pop_front().unwrap();
        let frame = Frame::parse(&bytes).unwrap();
        let header = FrameHeader {
            kind: Kind::Command,
            flags: TYPE.encoding.flags(),
            session: 107,
            session_seq: number,
            schema: TYPE.schema,
            ..FrameHeader::default()
        };
        assert_eq!((frame.header(), frame.payload().len()), (header, length));
        assert_eq!((client.in_flight(key), client.next_session_seq(key)), (number as u32, Some(number + 1)));
    }
    assert_eq!(send(&mut client, key, 3).unwrap(), 6);
    assert_eq!(service.lock().seen(), [(Kind::Command, 107, 6)], "sent at once");
    assert!(client.can_send(key));
    (7..=8).for_each(|number| assert_eq!(send(&mut client, key, 3).unwrap(), number));
    assert!(!client.can_send(key) && matches!(send(&mut client, key, 3), Err(ClientError::WindowFull { .. })));
    let nobody = SessionKey(1);
    assert!(!client.can_send(nobody) && matches!(send(&mut client, nobody, 3), Err(ClientError::NoSuchSession(_))));
    assert_eq!((client.session_id(nobody), client.next_session_seq(nobody), client.in_flight(nobody)), (None, None, 0));
}

#[test]
fn long_command_gets_its_last_number() {
    let (mut client, service) = connected();
    let key = client.open_session(7, 64).unwrap();
    service.lock().taken.clear();
    let mut next = 1;
    // The longest message has 8 parts, each with a header and padding.
    let longest = MESSAGE_LENGTH_MAX - 8 * (HEADER_LENGTH + 8);
    for length in [PART_LENGTH + 1, FRAME_LENGTH_MAX, 2 * PART_LENGTH, 2 * PART_LENGTH + 1, longest] {
        let count = length.div_ceil(PART_LENGTH);
        assert_eq!(send(&mut client, key, length).unwrap(), next + count as u64 - 1);
        service.lock().take();
        let mut payload = Vec::new();
        for index in 0..count {
            let bytes = service.lock().taken.pop_front().unwrap();
            let frame = Frame::parse(&bytes).unwrap();
            let fragment = Fragment { index: index as u16, count: count as u16 };
            assert_eq!((frame.session(), frame.session_seq(), frame.header().fragment), (107, next, fragment));
            let equal = HEADER_LENGTH + length.div_ceil(count);
            assert!(frame.length() == equal || index + 1 == count, "{length}: parts of several lengths");
            payload.extend_from_slice(frame.payload());
            next += 1;
        }
        let expected: Vec<u8> = (0..length).map(|index| index as u8).collect();
        assert!(payload == expected && service.lock().seen().is_empty(), "{length}");
        assert_eq!(client.next_session_seq(key), Some(next));
    }
    assert_eq!(client.in_flight(key), 5);
    let error = send(&mut client, key, longest + 1);
    let is_right = |length, limit| (length, limit) == (longest + 1, MESSAGE_LENGTH_MAX);
    assert!(
        matches!(error, Err(ClientError::TooLong { length_bytes, limit_bytes }) if is_right(length_bytes, limit_bytes)),
        "{error:?}"
    );
    // Any number of parts that a header can count is accepted, whatever is written then.
    let most = usize::from(u16::MAX) * PART_LENGTH;
    assert_eq!(client.send(key, TYPE, most, |_| Ok(3)).unwrap(), next);
    let error = client.send(key, TYPE, most + 1, |_| Ok(3));
    assert!(matches!(error, Err(ClientError::TooLong { length_bytes, .. }) if length_bytes == most + 1), "{error:?}");
}

#[test]
fn full_ring_keeps_enqueued_commands() {
    let (mut client, service) = with_ring(RING_BYTES_MIN);
    let key = client.open_session(7, 64).unwrap();
    service.lock().taken.clear();
    for number in 1..=9 {
        assert_eq!(client.enqueue(key, TYPE, PART_LENGTH, encode).unwrap(), number);
    }
    let full = send(&mut client, key, MESSAGE_LENGTH_MAX - 8 * (HEADER_LENGTH + 8));
    assert!(matches!(full, Err(ClientError::Log(LogError::Full { .. }))), "{full:?}");
    assert_eq!((client.in_flight(key), client.next_session_seq(key)), (9, Some(10)));
    let numbers: Vec<u64> = service.lock().seen().into_iter().map(|(_, _, number)| number).collect();
    assert_eq!(numbers, Vec::from_iter(1..=9));
    assert_eq!(send(&mut client, key, PART_LENGTH + 1).unwrap(), 11);
    assert_eq!(service.lock().seen().len(), 2);
}

#[test]
fn token_names_session_until_lost() {
    let (mut client, service) = connected();
    let mut option = |token, window| match client.begin_session(token, window) {
        Err(ClientError::Option { option, .. }) => option,
        _ => "none",
    };
    assert_eq!((option(0, 8), option(7, 0), option(7, 65)), ("token", "window_messages", "window_messages"));
    assert_eq!(service.lock().seen(), []);
    let key = client.begin_session(7, 64).unwrap();
    let other = client.open_session(8, 1).unwrap();
    assert_eq!((key, other), (SessionKey(0), SessionKey(1)));
    assert_eq!(polled(&mut client), ["opened 0"], "the other session was opened by a waiting call");
    assert_eq!((client.begin_session(7, 64).unwrap(), client.open_session(8, 1).unwrap()), (key, other));
    assert_eq!(service.lock().seen(), [(Kind::SessionOpen, 0, 0); 2]);
    send(&mut client, key, 8).unwrap();
    service.lock().say(refusal(RefusalCode::SessionUnknown, 107, 1, 0));
    assert_eq!(polled(&mut client), ["lost 0"]);
    let again = client.open_session(7, 64).unwrap();
    assert!(again == SessionKey(2) && client.can_send(again) && !client.can_send(key));
    service.lock().seen();
    send(&mut client, again, 8).unwrap();
    let busy = client.close_session(again);
    assert!(matches!(busy, Err(ClientError::InFlight { session: 107, in_flight: 1 })), "{busy:?}");
    service.lock().say(reply(107, 1, 3));
    assert_eq!(polled(&mut client), ["reply 2 1"]);
    client.close_session(again).unwrap();
    assert_eq!(service.lock().seen(), [(Kind::Command, 107, 1), (Kind::SessionClose, 107, 2)]);
    for closed in [again, key, SessionKey(9)] {
        assert!(matches!(client.close_session(closed), Err(ClientError::NoSuchSession(_))));
    }
    service.lock().say(notice(107, 1));
    assert!(polled(&mut client).is_empty());
    assert_eq!(client.open_session(7, 64).unwrap(), SessionKey(3));
}

#[test]
fn timeout_error_names_the_peer() {
    let (mut client, service) = connected();
    service.lock().opens_at = None;
    let error = client.open_session(7, 8);
    let expected = TIMEOUT.as_millis() as u64;
    assert!(
        matches!(&error, Err(ClientError::TimedOut { peer, request, timeout_ms })
            if peer == "the simulated service" && request == "a session open" && *timeout_ms == expected),
        "{error:?}"
    );
    let took = service.lock().elapsed();
    assert!((TIMEOUT..TIMEOUT + Duration::from_millis(50)).contains(&took), "{took:?}");
    service.lock().rings = None;
    let error = client.open_session(7, 8);
    assert!(matches!(error, Err(ClientError::Disconnected { .. })) && service.lock().connections == 1, "{error:?}");
}

#[test]
fn follower_is_left_for_another() {
    let (mut client, service) = connected();
    service.lock().opens_at = None;
    service.lock().says.push_back(refusal(RefusalCode::NotLeader, 0, 0, 0));
    let begun = client.begin_session(9, 8).unwrap();
    let key = client.open_session(8, 8).unwrap();
    assert!(client.can_send(key) && client.can_send(begun));
    assert_eq!(service.lock().connections, 2);
}

#[test]
fn poll_delivers_each_message_once() {
    let (mut client, service) = connected();
    let (first, second) = (client.open_session(7, 8).unwrap(), client.open_session(8, 8).unwrap());
    for key in [first, second, first] {
        send(&mut client, key, 8).unwrap();
    }
    for bytes in
        [reply(107, 1, 11), reply(108, 1, 12), reply(107, 2, 13), reply(107, 2, 13), notice(108, 1), notice(108, 1)]
    {
        service.lock().say(bytes);
    }
    let mut handed = 0;
    assert_eq!(client.poll(2, |_| handed += 1).unwrap(), 2);
    assert_eq!((handed, client.in_flight(first), client.in_flight(second)), (2, 1, 0));
    assert_eq!(polled(&mut client), ["reply 0 2", "again 0 2", "notice 1 1"]);
    assert_eq!(client.poll(8, |_| panic!("nothing is left")).unwrap(), 0);
    // A message of several parts counts once. A reply without a sequence is no reply.
    send(&mut client, second, 8).unwrap();
    let header = FrameHeader { kind: Kind::Reply, session: 108, session_seq: 2, ..FrameHeader::default() };
    service.lock().say(frame(&header, b""));
    assert_eq!(client.poll(8, |_| panic!("not a reply")).unwrap(), 1);
    for index in 0..3 {
        let fragment = Fragment { index, count: 3 };
        service.lock().say(frame(&FrameHeader { sequence: 14, fragment, ..header }, &[index as u8; 100]));
    }
    let mut whole = Vec::new();
    let taken = client.poll(8, |incoming| match incoming {
        Incoming::Reply { session, reply, first: true } if session == second => whole = reply.payload.to_vec(),
        other => panic!("{other:?}"),
    });
    assert_eq!((taken.unwrap(), whole), (1, [[0; 100], [1; 100], [2; 100]].concat()));
    let key = client.open_session(9, 8).unwrap();
    send(&mut client, key, 8).unwrap();
    let header =
        FrameHeader { kind: Kind::Reply, session: 109, session_seq: 1, sequence: 15, ..FrameHeader::default() };
    service.lock().say(frame(&header, &[1; 5_000]));
    let mut length = 0;
    client
        .poll(8, |incoming| {
            if let Incoming::Reply { reply, .. } = incoming {
                length = reply.payload.len()
            }
        })
        .unwrap();
    assert_eq!(length, 5_000);
    let mut damaged = reply(109, 1, 15);
    damaged[HEADER_LENGTH] ^= 1;
    service.lock().say(damaged);
    assert!(matches!(client.poll(8, |_| {}), Err(ClientError::Protocol { .. })));
}

#[test]
fn empty_polls_detect_lost_service() {
    let (mut client, service) = connected();
    client.open_session(7, 8).unwrap();
    let poll = |client: &mut PolledClient| {
        service.lock().now += Duration::from_millis(10);
        client.poll(8, |_| {})
    };
    (0..100).for_each(|_| assert_eq!(poll(&mut client).unwrap(), 0));
    service.lock().rings = None;
    let outcome = (0..100).map(|_| poll(&mut client)).find(Result::is_err);
    assert!(
        matches!(&outcome, Some(Err(ClientError::Disconnected { peer, .. })) if peer == "the simulated service"),
        "{outcome:?}"
    );
}

#[test]
fn one_frame_acknowledges_many_notices() {
    let (mut client, service) = connected();
    let (first, second) = (client.open_session(7, 8).unwrap(), client.open_session(8, 8).unwrap());
    send(&mut client, second, 8).unwrap();
    service.lock().seen();
    for number in 1..=64 {
        assert_eq!(service.lock().seen(), [], "{number}");
        service.lock().say(notice(107, number));
        assert_eq!(polled(&mut client).len(), 1);
    }
    client.flush();
    service.lock().take();
    let bytes = service.lock().taken.pop_front().unwrap();
    let acknowledgement = Frame::parse(&bytes).unwrap();
    assert_eq!(
        (acknowledgement.kind(), acknowledgement.session(), acknowledgement.session_seq()),
        (Kind::Acknowledge, 107, 1)
    );
    assert_eq!((acknowledgement.payload(), client.in_flight(first)), (&64u64.to_le_bytes()[..], 1));
    client.reconnect().unwrap();
    let again: Vec<_> = service.lock().seen().into_iter().filter(|(kind, ..)| *kind != Kind::SessionOpen).collect();
    assert_eq!(again, [(Kind::Command, 108, 1), (Kind::Acknowledge, 107, 1)]);
    service.lock().say(reply(107, 1, 5));
    assert_eq!((polled(&mut client).len(), client.in_flight(first)), (0, 0), "the reply is hidden");
}

#[test]
fn resend_keeps_order_as_room_allows() {
    let (mut client, service) = with_ring(RING_BYTES_MIN);
    let (first, second) = (client.open_session(7, 16).unwrap(), client.open_session(8, 16).unwrap());
    let mut sent = Vec::new();
    for number in 1..=10 {
        let length = if number == 3 { PART_LENGTH + 1 } else { PART_LENGTH };
        for (key, session) in [(second, 108), (first, 107)] {
            let last = send(&mut client, key, length).unwrap();
            sent.extend(
                (if number == 3 { last - 1 } else { last }..=last).map(|number| (Kind::Command, session, number)),
            );
        }
        service.lock().seen();
    }
    service.lock().say(refusal(RefusalCode::Gap, 108, 9, 1));
    service.lock().say(refusal(RefusalCode::Gap, 107, 9, 3));
    let mut again = Vec::new();
    assert!(polled(&mut client).is_empty() && !client.can_send(first) && !client.can_send(second));
    for _ in 0..8 {
        again.extend(service.lock().seen());
        assert!(polled(&mut client).is_empty());
    }
    sent.retain(|(_, session, number)| *session == 108 || *number >= 3);
    assert_eq!(again, sent);
    assert!(client.can_send(first) && client.can_send(second));
}

#[test]
fn reconnect_waits_for_room_in_time() {
    let (mut client, shared) = with_ring(RING_BYTES_MIN);
    let keys: Vec<_> = (1..=8).map(|token| client.open_session(token, 16).unwrap()).collect();
    for key in keys.iter().cycle().take(80) {
        send(&mut client, *key, PART_LENGTH).unwrap();
        shared.lock().seen();
    }
    client.reconnect().unwrap();
    let again = shared.lock().seen();
    let commands = again.into_iter().filter(|(kind, ..)| *kind == Kind::Command).collect::<Vec<_>>();
    let in_order = (1..=10).flat_map(|number| (101..=108).map(move |session| (Kind::Command, session, number)));
    assert_eq!(commands, Vec::from_iter(in_order));
    let mut service = shared.lock();
    service.takes = false;
    service.says.extend((1..=8).map(|token| opened(token, 11, 0)));
    let begun = service.elapsed();
    drop(service);
    let outcome = client.reconnect();
    assert!(matches!(outcome, Err(ClientError::Log(LogError::Full { .. }))), "{outcome:?}");
    assert!(shared.lock().elapsed() - begun >= TIMEOUT);
}

#[test]
fn closed_session_gets_nothing_late() {
    let (mut client, service) = connected();
    let keys = [7, 8, 9].map(|token| client.open_session(token, 8).unwrap());
    for key in &keys[1..] {
        send(&mut client, *key, 8).unwrap();
    }
    let says = [reply(108, 1, 3), notice(108, 1), reply(109, 1, 4), notice(109, 1), reply(107, 1, 5)];
    service.lock().says.extend(says);
    let answer = client.call(keys[0], TYPE, b"a question", TIMEOUT).unwrap();
    assert_eq!((answer.sequence, &answer.payload[..]), (5, &b"done"[..]));
    client.close_session(keys[1]).unwrap();
    assert_eq!(polled(&mut client), ["reply 2 1", "notice 2 1"]);
}

#[test]
fn frame_needs_only_its_own_room() {
    let (mut client, service) = with_ring(RING_BYTES_MIN);
    let (first, second) = (client.open_session(7, 64).unwrap(), client.open_session(8, 64).unwrap());
    service.lock().taken.clear();
    for _ in 0..RING_BYTES_MIN / FRAME_LENGTH_MAX - 1 {
        send(&mut client, second, PART_LENGTH).unwrap();
    }
    (1..=64).for_each(|number| service.lock().say(notice(107, number)));
    assert_eq!(polled(&mut client).len(), 64);
    client.begin_session(9, 64).unwrap();
    let kinds: Vec<_> = service.lock().seen().into_iter().skip(15).map(|(kind, ..)| kind).collect();
    assert_eq!((kinds, client.in_flight(first)), (vec![Kind::Acknowledge, Kind::SessionOpen], 1));
}

#[test]
fn silent_address_is_left_soon() {
    let folder = tempfile::tempdir().unwrap();
    let nobody = ["first", "second"].map(|name| folder.path().join(name));
    let error = PolledClient::connect_any(&nobody, ClientOptions::default()).map(drop).unwrap_err();
    assert!(error.to_string().contains("second"), "{error}");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("{TCP_PREFIX}{}", listener.local_addr().unwrap()).into();
    let waited = |paths: &[&PathBuf], timeout| match PolledClient::connect_any(
        paths,
        ClientOptions { timeout, ..ClientOptions::default() },
    ) {
        Err(ClientError::TimedOut { timeout_ms, .. }) => timeout_ms,
        other => panic!("{:?}", other.map(drop)),
    };
    let others = SILENCE_MAX.as_millis() as u64;
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(waited(&[&silent], Duration::from_millis(1_200)), 1_200));
        scope.spawn(|| assert_eq!(waited(&[&nobody[0], &silent], Duration::from_secs(9)), others));
    });
}

#[test]
fn only_busy_sessions_are_resent() {
    let (mut client, service) = connected();
    let keys: Vec<_> = (1..=3).map(|token| client.open_session(token, 16).unwrap()).collect();
    assert_eq!(client.resending, []);
    send(&mut client, keys[1], 8).unwrap();
    service.lock().seen();
    service.lock().rings = None;
    client.reconnect().unwrap();
    assert_eq!(client.resending, []);
    let seen = service.lock().seen();
    let commands: Vec<_> = seen.into_iter().filter(|(kind, ..)| *kind == Kind::Command).collect();
    assert_eq!(commands, [(Kind::Command, 102, 1)]);
}
