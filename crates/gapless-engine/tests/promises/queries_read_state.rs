//! Queries read a service's state without entering the stream: typed answers, reads of the client's own writes, waits,
//! limits, faults, and hostile clients.

use crate::replicas::{Cluster, PATIENCE};
use gapless_client::polled::{ClientOptions, QUERIES_IN_FLIGHT_MAX};
use gapless_client::{ClientError, PolledClient, QueryError, SessionKey};
use gapless_engine::state::{StateHandlers, StateService};
use gapless_engine::store::Store;
use gapless_engine::{Context, Handlers, QueryContext, Service, ServiceHost, ServiceHostOptions};
use gapless_message::{Message, NoRefusal, contract};
use gapless_testkit::ports::free_address;
use gapless_testkit::wait::{until, until_some};
use gapless_transport::connect::{ConnectOptions, shared_memory};
use gapless_transport::link::RingSizes;
use gapless_transport::publisher_link::PublisherLink;
use gapless_wire::control::{Refusal, RefusalCode};
use gapless_wire::descriptor::REFUSED_FLAG;
use gapless_wire::{Encoding, Frame, FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u32)]
struct Take(u32);

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u32)]
struct Taken;

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u32, refusal = NotTaken)]
struct Order(u32);

#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
struct NotTaken {
    last: u32,
}

#[derive(Serialize, Deserialize, Message)]
#[message(reply = Place)]
struct Where;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Message)]
struct Place {
    sequence: u64,
    time_ns: u64,
    version: u32,
}

/// Number of the answering member.
#[derive(Serialize, Deserialize, Message)]
#[message(reply = u32)]
struct Member;

#[derive(Serialize, Deserialize, Message)]
#[message(reply = Vec<u8>)]
struct Bytes {
    length: u32,
    number: u8,
}

#[derive(Serialize, Deserialize, Message)]
#[message(request)]
struct Fail;

#[derive(Serialize, Deserialize, Message)]
#[message(request)]
struct Unknown;

/// A query of the same name with another layout.
mod other {
    use super::*;

    #[derive(Serialize, Deserialize, Message)]
    #[message(reply = u64)]
    pub struct Taken;
}

#[derive(Default)]
struct Hall {
    taken: u32,
    orders: BTreeMap<u32, u32>,
    /// Differs between members; no part of the state.
    member: u32,
}

impl Service for Hall {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers
            .command(|hall: &mut Self, Take(seats), _: &mut Context<'_>| {
                hall.taken += seats;
                let last = hall.orders.len() as u32;
                hall.orders.insert(last + 1, seats);
                Ok::<_, NoRefusal>(hall.taken)
            })
            .query(|hall: &Self, _: Taken, _: &QueryContext| Ok::<_, NoRefusal>(hall.taken))
            .query(|hall: &Self, Order(number), _: &QueryContext| {
                hall.orders.get(&number).copied().ok_or(NotTaken { last: hall.orders.len() as u32 })
            })
            .query(|_: &Self, _: Where, context: &QueryContext| {
                let (sequence, time_ns, version) = (context.sequence(), context.time_ns(), context.version());
                Ok::<_, NoRefusal>(Place { sequence, time_ns, version })
            })
            .query(|hall: &Self, _: Member, _: &QueryContext| Ok::<_, NoRefusal>(hall.member))
            .query(|_: &Self, Bytes { length, number }, _: &QueryContext| {
                Ok::<_, NoRefusal>(vec![number; length as usize])
            })
            .query(|_: &Self, _: Fail, _: &QueryContext| -> Result<(), NoRefusal> { panic!("a query with a bug") });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        for seats in self.orders.values() {
            state.extend_from_slice(&seats.to_le_bytes());
        }
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let orders = (1..).zip(state.as_chunks::<4>().0).map(|(number, seats)| (number, u32::from_le_bytes(*seats)));
        self.orders = orders.collect();
        self.taken = self.orders.values().sum();
        Ok(())
    }
}

fn start(options: ServiceHostOptions) -> (ServiceHost, PolledClient, SessionKey) {
    let host = ServiceHost::start(Hall::default(), options).unwrap();
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let session = client.open_session(1, 16).unwrap();
    (host, client, session)
}

fn take(client: &mut PolledClient, session: SessionKey, seats: u32) -> u32 {
    client.call_request(session, &Take(seats), PATIENCE).unwrap().unwrap()
}

fn taken(client: &mut PolledClient) -> u32 {
    client.query_request(&Taken, PATIENCE).unwrap().unwrap()
}

#[test]
fn answer_and_refusal_are_typed() {
    let (host, mut client, session) = start(ServiceHostOptions::in_memory());
    assert_eq!(taken(&mut client), 0);
    assert_eq!(take(&mut client, session, 3), 3);
    assert_eq!(take(&mut client, session, 4), 7);
    assert_eq!(taken(&mut client), 7);
    assert_eq!(client.query_request(&Order(2), PATIENCE).unwrap(), Ok(4));
    assert_eq!(client.query_request(&Order(3), PATIENCE).unwrap(), Err(NotTaken { last: 2 }));
    // A client without a session asks, too.
    let mut reader = host.connect(ClientOptions::default()).unwrap();
    assert_eq!(taken(&mut reader), 7);
    host.stop().unwrap();
}

#[test]
fn queries_leave_no_trace() {
    let directory = tempfile::tempdir().unwrap();
    let (host, mut client, session) = start(ServiceHostOptions::in_directory(directory.path()));
    take(&mut client, session, 5);
    let last = client.seen_sequence();
    let place = client.query_request(&Where, PATIENCE).unwrap().unwrap();
    assert_eq!((place.sequence, place.version), (last, 1));
    for _ in 0..100 {
        assert_eq!(client.query_request(&Where, PATIENCE).unwrap().unwrap(), place);
    }
    assert_eq!(client.seen_sequence(), last);
    assert_eq!(host.released_sequence(), last);
    host.stop().unwrap();
    let (host, mut client, _) = start(ServiceHostOptions::in_directory(directory.path()));
    assert_eq!(taken(&mut client), 5);
    host.stop().unwrap();
}

#[test]
fn client_reads_its_own_writes() {
    let directory = tempfile::tempdir().unwrap();
    let (host, mut client, session) = start(ServiceHostOptions::in_directory(directory.path()));
    let mut other = host.connect(ClientOptions::default()).unwrap();
    for seats in 1..=200 {
        let after = take(&mut client, session, 1);
        assert_eq!((after, taken(&mut client)), (seats, seats));
        let read = other.query_request_after(&Taken, client.seen_sequence(), PATIENCE).unwrap();
        assert_eq!(read, Ok(seats), "another client that knows the sequence");
    }
    host.stop().unwrap();
}

#[test]
fn query_waits_for_its_sequence() {
    let (host, mut client, session) = start(ServiceHostOptions::in_memory());
    let mut reader = host.connect(ClientOptions::default()).unwrap();
    take(&mut client, session, 3);
    let next = client.seen_sequence() + 1;
    let early = reader.send_query(&Taken, next, PATIENCE).unwrap();
    assert_eq!(taken(&mut reader), 3, "it waits for nothing");
    assert!(reader.take_answer::<Taken>(early).is_none(), "the frame is not there yet");
    take(&mut client, session, 4);
    let answer = until_some("the answer", || {
        reader.poll(usize::MAX, |_| {}).unwrap();
        reader.take_answer::<Taken>(early)
    });
    assert_eq!(answer.unwrap(), Ok(7));
    let gone = reader.take_answer::<Taken>(early).unwrap().unwrap_err();
    assert!(matches!(gone, QueryError::Client(ClientError::Option { .. })), "{gone}");
    host.stop().unwrap();
}

#[test]
fn far_sequence_ends_as_behind() {
    let (host, mut client, session) = start(ServiceHostOptions::in_memory());
    take(&mut client, session, 3);
    let handled = client.seen_sequence();
    for wanted in [handled + 1, u64::MAX] {
        let number = client.send_query(&Taken, wanted, Duration::from_millis(10)).unwrap();
        let answer = until_some("the answer", || {
            client.poll(usize::MAX, |_| {}).unwrap();
            client.take_answer::<Taken>(number)
        });
        let behind = answer.unwrap_err();
        let QueryError::Behind { handled: found, wanted: asked } = behind else { panic!("{behind}") };
        assert_eq!((found, asked), (handled, wanted));
    }
    let behind = client.query_request_after(&Taken, u64::MAX, Duration::from_millis(400)).unwrap_err();
    assert!(
        matches!(&behind, QueryError::Behind { .. } | QueryError::Client(ClientError::TimedOut { .. })),
        "the latter on a slow machine: {behind}"
    );
    assert_eq!(taken(&mut client), 3);
    host.stop().unwrap();
}

#[test]
fn faults_leave_service_untouched() {
    let (host, mut client, session) = start(ServiceHostOptions::in_memory());
    take(&mut client, session, 3);
    let failed = client.query_request(&Fail, PATIENCE).unwrap_err();
    assert!(matches!(&failed, QueryError::Failed { reason } if reason.contains("a query with a bug")), "{failed}");
    let unknown = client.query_request(&Unknown, PATIENCE).unwrap_err();
    assert!(
        matches!(&unknown, QueryError::Mismatch { difference, .. } if difference.contains("has no query")),
        "{unknown}"
    );
    let command = client.query_request(&Take(1), PATIENCE).unwrap_err();
    assert!(matches!(&command, QueryError::Mismatch { .. }), "a command is no query: {command}");
    let other = client.query_request(&other::Taken, PATIENCE).unwrap_err();
    assert!(matches!(&other, QueryError::Mismatch { name: "Taken", .. }), "{other}");
    let query = client.call_request(session, &Taken, PATIENCE).unwrap_err();
    assert!(matches!(&query, ClientError::Mismatch { name: "Taken", .. }), "no command: {query}");
    let length = gapless_engine::OUTPUT_LENGTH_MAX as u32;
    let long = client.query_request(&Bytes { length, number: 1 }, PATIENCE).unwrap_err();
    assert!(matches!(&long, QueryError::Failed { .. }), "{long}");
    assert_eq!(taken(&mut client), 3);
    assert!(host.failure().is_none());
    host.stop().unwrap();
}

/// A replicated state with the same queries.
struct StoredHall {
    taken: gapless_engine::store::Counter,
}

impl StoredHall {
    fn new(store: &mut Store) -> Self {
        Self { taken: store.counter(1, "taken") }
    }
}

impl StateService for StoredHall {
    fn handlers(handlers: &mut StateHandlers<Self>) {
        handlers
            .command(|hall: &Self, store, Take(seats), _| {
                store.add(hall.taken, seats.into()).unwrap();
                Ok::<_, NoRefusal>(store.value(hall.taken) as u32)
            })
            .query(|hall: &Self, store, _: Taken, _| Ok::<_, NoRefusal>(store.value(hall.taken) as u32))
            .query(|hall: &Self, store, _: Order, _| Err::<u32, _>(NotTaken { last: store.value(hall.taken) as u32 }))
            .query(|_: &Self, _, _: Where, context| {
                let (sequence, time_ns, version) = (context.sequence(), context.time_ns(), context.version());
                Ok::<_, NoRefusal>(Place { sequence, time_ns, version })
            })
            .query(|_: &Self, _, Bytes { length, number }, _| Ok::<_, NoRefusal>(vec![number; length as usize]))
            .query(|_: &Self, _, _: Fail, _| -> Result<(), NoRefusal> { panic!("a query with a bug") });
    }
}

#[test]
fn replicated_state_answers_queries() {
    let directory = tempfile::tempdir().unwrap();
    for before in [0, 200] {
        let options = ServiceHostOptions::in_directory(directory.path());
        let host = ServiceHost::start_state(StoredHall::new, options).unwrap();
        let mut client = host.connect(ClientOptions::default()).unwrap();
        let session = client.open_session(1, 16).unwrap();
        assert_eq!(taken(&mut client), before);
        let mut other = host.connect(ClientOptions::default()).unwrap();
        for seats in before + 1..=before + 200 {
            assert_eq!((take(&mut client, session, 1), taken(&mut client)), (seats, seats));
            let read = other.query_request_after(&Taken, client.seen_sequence(), PATIENCE).unwrap();
            assert_eq!(read, Ok(seats), "another client that knows the sequence");
        }
        let last = client.seen_sequence();
        let place = client.query_request(&Where, PATIENCE).unwrap().unwrap();
        assert_eq!((place.sequence, place.version, place.time_ns > 0), (last, 1, true));
        assert_eq!(client.query_request(&Order(1), PATIENCE).unwrap(), Err(NotTaken { last: before + 200 }));
        let failed = client.query_request(&Fail, PATIENCE).unwrap_err();
        assert!(matches!(&failed, QueryError::Failed { reason } if reason.contains("a query with a bug")), "{failed}");
        let unknown = client.query_request(&Unknown, PATIENCE).unwrap_err();
        assert!(matches!(&unknown, QueryError::Mismatch { .. }), "{unknown}");
        let long = Bytes { length: gapless_engine::OUTPUT_LENGTH_MAX as u32, number: 1 };
        let long = client.query_request(&long, PATIENCE).unwrap_err();
        assert!(matches!(&long, QueryError::Failed { .. }), "{long}");
        let number = client.send_query(&Taken, last + 1, Duration::from_millis(10)).unwrap();
        let behind = until_some("the answer", || {
            client.poll(usize::MAX, |_| {}).unwrap();
            client.take_answer::<Taken>(number)
        });
        let Err(QueryError::Behind { handled, wanted }) = behind else { panic!("{behind:?}") };
        assert_eq!((handled, wanted, client.seen_sequence()), (last, last + 1, last));
        assert_eq!(host.released_sequence(), last, "queries leave no trace");
        host.stop().unwrap();
    }
}

/// More than the leader lends at once, with answers that do not fit in the ring.
#[test]
fn many_queries_of_replicated_state() {
    let host = ServiceHost::start_state(StoredHall::new, ServiceHostOptions::in_memory()).unwrap();
    let link = RingSizes { command_ring_bytes: 1 << 18, reply_ring_bytes: 1 << 14 };
    let mut slow = host.connect(ClientOptions { link, ..ClientOptions::default() }).unwrap();
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let session = client.open_session(1, 16).unwrap();
    let numbers: Vec<u64> = (0..300)
        .map(|number| slow.send_query(&Bytes { length: 2000, number: number as u8 }, 0, PATIENCE).unwrap())
        .collect();
    for seats in 1..=200 {
        assert_eq!((take(&mut client, session, 1), taken(&mut client)), (seats, seats), "others go on");
    }
    for (number, sent) in numbers.into_iter().enumerate() {
        let answer = until_some("the answer", || {
            slow.poll(1, |_| {}).unwrap();
            slow.take_answer::<Bytes>(sent)
        });
        assert_eq!(answer.unwrap(), Ok(vec![number as u8; 2000]));
    }
    host.stop().unwrap();
}

#[test]
fn client_limits_its_queries() {
    let (host, mut client, session) = start(ServiceHostOptions::in_memory());
    take(&mut client, session, 1);
    let next = client.seen_sequence() + 1;
    let numbers: Vec<u64> =
        (0..QUERIES_IN_FLIGHT_MAX).map(|_| client.send_query(&Taken, next, PATIENCE).unwrap()).collect();
    assert!(matches!(client.send_query(&Taken, 0, PATIENCE), Err(QueryError::Busy)));
    assert!(matches!(client.query_request(&Taken, PATIENCE), Err(QueryError::Busy)));
    assert_eq!(take(&mut client, session, 1), 2, "commands go on");
    let mut answers = 0;
    until("all answers", || {
        client.poll(usize::MAX, |_| {}).unwrap();
        for number in &numbers[answers..] {
            let Some(answer) = client.take_answer::<Taken>(*number) else { return false };
            assert_eq!(answer.unwrap(), Ok(2));
            answers += 1;
        }
        answers == numbers.len()
    });
    assert_eq!(taken(&mut client), 2);
    host.stop().unwrap();
}

/// With both kinds of senders.
#[test]
fn unread_answers_wait_for_room() {
    for detach_sender in [false, true] {
        let mut options = ServiceHostOptions::in_memory();
        options.threads.detach_sender = detach_sender;
        let (host, mut client, session) = start(options);
        let link = RingSizes { command_ring_bytes: 1 << 16, reply_ring_bytes: 1 << 14 };
        let mut slow = host.connect(ClientOptions { link, ..ClientOptions::default() }).unwrap();
        let ask = |number: u8| Bytes { length: 2000, number };
        let numbers: Vec<u64> = (0..100).map(|number| slow.send_query(&ask(number), 0, PATIENCE).unwrap()).collect();
        for seats in 1..=200 {
            assert_eq!((take(&mut client, session, 1), taken(&mut client)), (seats, seats));
        }
        // 100 answers of 2,000 bytes exceed 16 KiB.
        for (number, sent) in (0..100).zip(numbers) {
            let answer = until_some("the answer", || {
                slow.poll(1, |_| {}).unwrap();
                slow.take_answer::<Bytes>(sent)
            });
            assert_eq!(answer.unwrap(), Ok(vec![number; 2000]));
        }
        let whole = slow.query_request(&Bytes { length: 1_000_000, number: 7 }, PATIENCE).unwrap().unwrap();
        assert_eq!(whole, vec![7; 1_000_000], "longer than the ring");
        host.stop().unwrap();
    }
}

#[test]
fn queries_outlive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let options = || ServiceHostOptions::in_directory(directory.path());
    let by_socket = |directory: &Path| {
        let options = ClientOptions { timeout: PATIENCE, ..ClientOptions::default() };
        PolledClient::connect(directory.join("node.socket"), options).unwrap()
    };
    let (host, mut client, session) = start(options());
    take(&mut client, session, 3);
    let (mut reader, mut waiting) = (by_socket(directory.path()), by_socket(directory.path()));
    assert_eq!(taken(&mut reader), 3);
    let next = client.seen_sequence() + 1;
    let early = waiting.send_query(&Taken, next, PATIENCE).unwrap();
    assert_eq!(taken(&mut waiting), 3, "the service has both");
    host.stop().unwrap();

    let asking = std::thread::spawn(move || taken(&mut reader));
    let (host, mut client, session) = start(options());
    assert_eq!(asking.join().unwrap(), 3);
    assert_eq!(take(&mut client, session, 4), 7);
    let answer = until_some("the answer", || {
        if let Err(ClientError::Disconnected { .. }) = waiting.poll(usize::MAX, |_| {}) {
            waiting.reconnect().unwrap();
        }
        waiting.take_answer::<Taken>(early)
    });
    assert_eq!(answer.unwrap(), Ok(7));
    host.stop().unwrap();
}

/// With TCP ports.
fn cluster() -> (Cluster, Vec<SocketAddr>) {
    let mut cluster = Cluster::new(3, "");
    let ports: Vec<_> = (0..3).map(|_| free_address()).collect();
    for (member, port) in (1..).zip(&ports) {
        let text = std::fs::read_to_string(cluster.file(member)).unwrap();
        std::fs::write(cluster.file(member), text + &format!("[clients]\naddress = \"{port}\"\n")).unwrap();
        cluster.start(member, Hall { member: member as u32, ..Hall::default() }).unwrap();
    }
    (cluster, ports)
}

#[test]
fn followers_answer() {
    let (mut cluster, ports) = cluster();
    let leader = cluster.leader();
    let options = || ClientOptions { timeout: PATIENCE, ..ClientOptions::default() };
    let mut client = PolledClient::connect_any(&cluster.sockets(), options()).unwrap();
    let session = client.open_session(1, 16).unwrap();
    for (follower, by_tcp) in (1..=3).filter(|member| *member != leader).zip([false, true]) {
        let mut reader = if by_tcp {
            PolledClient::connect(format!("tcp:{}", ports[follower - 1]), options()).unwrap()
        } else {
            PolledClient::connect(&cluster.sockets()[follower - 1], options()).unwrap()
        };
        let before = take(&mut client, session, 1);
        for seats in before + 1..before + 100 {
            assert_eq!(take(&mut client, session, 1), seats);
            let read = reader.query_request_after(&Taken, client.seen_sequence(), PATIENCE).unwrap();
            assert_eq!((read, reader.seen_sequence()), (Ok(seats), client.seen_sequence()));
        }
        assert_eq!(reader.query_request(&Member, PATIENCE).unwrap(), Ok(follower as u32));
        // The follower lags as far as the frame is not there yet.
        let early = reader.send_query(&Taken, client.seen_sequence() + 1, PATIENCE).unwrap();
        assert_eq!(taken(&mut reader), before + 99);
        assert!(reader.take_answer::<Taken>(early).is_none());
        take(&mut client, session, 1);
        let answer = until_some("the answer", || {
            reader.poll(usize::MAX, |_| {}).unwrap();
            reader.take_answer::<Taken>(early)
        });
        assert_eq!(answer.unwrap(), Ok(before + 100));
    }
    cluster.ends_equal(&[1, 2, 3]);
}

#[test]
fn members_answer_from_replicated_state() {
    let mut cluster = Cluster::new(3, "");
    for member in 1..=3 {
        cluster.start_state(member, StoredHall::new);
    }
    let leader = cluster.leader();
    let options = || ClientOptions { timeout: PATIENCE, ..ClientOptions::default() };
    let mut client = PolledClient::connect_any(&cluster.sockets(), options()).unwrap();
    let session = client.open_session(1, 16).unwrap();
    for member in (1..=3).filter(|member| *member != leader).chain([leader]) {
        let mut reader = PolledClient::connect(&cluster.sockets()[member - 1], options()).unwrap();
        let before = taken(&mut client);
        for seats in before + 1..=before + 100 {
            assert_eq!((take(&mut client, session, 1), taken(&mut client)), (seats, seats));
            let read = reader.query_request_after(&Taken, client.seen_sequence(), PATIENCE).unwrap();
            assert_eq!((read, reader.seen_sequence()), (Ok(seats), client.seen_sequence()), "member {member}");
        }
    }
    cluster.ends_equal(&[1, 2, 3]);
}

/// Over a change of the leader.
#[test]
fn members_answer_by_tcp() {
    let (mut cluster, ports) = cluster();
    let leader = cluster.leader();
    let mut order: Vec<_> = (1..=3).filter(|member| *member != leader).chain([leader]).collect();
    let connect = |order: &[usize]| {
        let addresses: Vec<_> = order.iter().map(|member| format!("tcp:{}", ports[member - 1])).collect();
        let options = ClientOptions { timeout: PATIENCE, ..ClientOptions::default() };
        PolledClient::connect_any(&addresses, options).unwrap()
    };
    let mut reader = connect(&order);
    order.reverse();
    let mut client = connect(&order);
    let session = client.open_session(1, 16).unwrap();
    assert_eq!(take(&mut client, session, 3), 3);
    let read = |reader: &mut PolledClient, client: &PolledClient| {
        reader.query_request_after(&Taken, client.seen_sequence(), PATIENCE).unwrap().unwrap()
    };
    assert_eq!((taken(&mut client), read(&mut reader, &client)), (3, 3));
    let bytes = reader.query_request(&Bytes { length: 200_000, number: 5 }, PATIENCE).unwrap().unwrap();
    assert_eq!(bytes, vec![5; 200_000]);
    cluster.members[leader - 1].take().unwrap().stop().unwrap();
    assert_eq!(read(&mut reader, &client), 3);
    assert_eq!((taken(&mut client), take(&mut client, session, 4)), (3, 7));
    assert_eq!(read(&mut reader, &client), 7);
    let others: Vec<_> = (1..=3).filter(|member| *member != leader).collect();
    cluster.ends_equal(&others);
}

struct RawClient(PublisherLink);

impl RawClient {
    fn new(directory: &Path) -> Self {
        let options = ConnectOptions {
            link: RingSizes { command_ring_bytes: 1 << 20, reply_ring_bytes: 1 << 20 },
            identity: Default::default(),
            reads: false,
            seen: Default::default(),
            mtu: None,
            timeout: PATIENCE,
        };
        Self(shared_memory::connect(&directory.join("node.socket"), &options).unwrap())
    }

    fn send(&mut self, header: &FrameHeader, payload: &[u8]) {
        let mut frame = vec![0; aligned_length(HEADER_LENGTH + payload.len())];
        let mut writer = FrameWriter::new(&mut frame);
        writer.payload_mut()[..payload.len()].copy_from_slice(payload);
        writer.finish(&FrameHeader { kind: Kind::Query, ..*header }, payload.len());
        self.0.writer.append(&frame).unwrap();
        self.0.flush();
    }

    fn answer(&mut self) -> (FrameHeader, Vec<u8>) {
        until_some("an answer", || {
            let length = self.0.reader.next_length().unwrap()?;
            let mut bytes = vec![0; aligned_length(length)];
            self.0.reader.copy(&mut bytes);
            self.0.reader.advance(length);
            self.0.reader.release();
            let frame = Frame::parse(&bytes).unwrap();
            frame.verify().unwrap();
            Some((frame.header(), frame.payload().to_vec()))
        })
    }

    fn refusal(&mut self) -> (u64, RefusalCode, u64) {
        let (header, payload) = self.answer();
        assert_eq!((header.kind, header.flags & REFUSED_FLAG, header.session), (Kind::Answer, REFUSED_FLAG, 0));
        let refusal = Refusal::from_bytes(&payload).unwrap();
        (header.session_seq, refusal.code, refusal.detail)
    }
}

#[test]
fn hostile_queries_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (host, mut client, session) = start(ServiceHostOptions::in_directory(directory.path()));
    take(&mut client, session, 3);
    let (schema, flags) = (contract::name_key("Taken"), Encoding::Postcard.flags());
    let query = |session_seq| FrameHeader { session_seq, schema, flags, ..FrameHeader::default() };
    let good = contract::newest::<Taken>().to_le_bytes();
    let mut raw = RawClient::new(directory.path());
    for (number, header, payload, code) in [
        (1, query(1), &[][..], RefusalCode::Malformed),
        (2, query(2), &good[..3], RefusalCode::Malformed),
        (3, query(3), &[&good[..], &[1]].concat(), RefusalCode::Malformed),
        (4, query(4), b"!!!!", RefusalCode::Unhandled),
        (5, FrameHeader { schema: 7, ..query(5) }, &good[..], RefusalCode::Unhandled),
        (6, FrameHeader { flags: 0, ..query(6) }, &good[..], RefusalCode::Unhandled),
        (u64::MAX, FrameHeader { sequence: u64::MAX, ..query(u64::MAX) }, &good[..], RefusalCode::Behind),
    ] {
        raw.send(&header, payload);
        let (answered, found, detail) = raw.refusal();
        assert_eq!((answered, found), (number, code));
        assert_eq!(detail, if code == RefusalCode::Behind { u64::MAX } else { 0 });
    }
    // Waits that would last for centuries.
    let far = |number| FrameHeader { sequence: u64::MAX, timestamp_ns: u64::MAX, ..query(number) };
    let limit = QUERIES_IN_FLIGHT_MAX as u64;
    for number in 1..=limit + 1 {
        raw.send(&far(number), &good);
    }
    assert_eq!(raw.refusal(), (limit + 1, RefusalCode::Busy, limit));
    assert_eq!(taken(&mut client), 3, "other connections have their own limit");
    drop(raw);
    let mut raw = RawClient::new(directory.path());
    raw.send(&query(1), &good);
    let (header, payload) = raw.answer();
    assert_eq!((header.session_seq, header.flags), (1, flags));
    assert_eq!(contract::decode_answer::<Taken>(&payload), Ok(Ok(3)));
    assert_eq!(take(&mut client, session, 1), 4);
    assert!(host.failure().is_none());
    host.stop().unwrap();
}
