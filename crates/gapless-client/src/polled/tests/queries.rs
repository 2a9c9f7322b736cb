//! Queries: their frames, answers and refusals, a reconnection, and limits.

use super::*;
use crate::QueryError;
use gapless_message::{Message, Request, contract};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u32, refusal = NoRow)]
struct Seats(u32);

#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
struct NoRow;

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u32)]
struct Long(Vec<u8>);

const WAIT: Duration = Duration::from_secs(3);

fn header_of<Q: Request>(number: u64, sequence: u64) -> FrameHeader {
    FrameHeader {
        kind: Kind::Answer,
        flags: Encoding::Postcard.flags(),
        session_seq: number,
        sequence,
        timestamp_ns: sequence,
        schema: contract::name_key(Q::TYPE_NAME),
        ..FrameHeader::default()
    }
}

fn answer(number: u64, sequence: u64, result: Result<u32, NoRow>) -> Vec<u8> {
    let (agreed, mut payload) = (contract::contracts_of::<Seats>()[0], Vec::new());
    match result {
        Ok(seats) => contract::encode_reply(&seats, &agreed, &mut payload),
        Err(refusal) => contract::encode_refusal(&refusal, &agreed, &mut payload).unwrap(),
    }
    frame(&header_of::<Seats>(number, sequence), &payload)
}

fn refused_answer(number: u64, code: RefusalCode, detail: u64) -> Vec<u8> {
    let mut payload = [0; 64];
    let length = Refusal { code, detail, text: "no" }.write_to(&mut payload);
    let header = header_of::<Seats>(number, 7);
    frame(&FrameHeader { flags: header.flags | REFUSED_FLAG, ..header }, &payload[..length])
}

fn queries_seen(service: &Shared) -> Vec<u64> {
    let seen = service.lock().seen().into_iter();
    seen.filter(|(kind, _, _)| *kind == Kind::Query).map(|(_, _, number)| number).collect()
}

#[test]
fn query_asks_for_seen_frames() {
    let (mut client, service) = connected();
    let key = client.open_session(7, 8).unwrap();
    service.lock().seen();
    send(&mut client, key, 8).unwrap();
    let seen = FrameHeader { kind: Kind::Reply, session: 107, session_seq: 1, ..FrameHeader::default() };
    service.lock().say(frame(&FrameHeader { sequence: 11, timestamp_ns: 99, ..seen }, b"done"));
    client.poll(8, |_| {}).unwrap();
    assert_eq!(client.seen_sequence(), 11);
    service.lock().seen();
    for (after, sequence) in [(0, 11), (20, 20)] {
        let number = client.send_query(&Seats(5), after, WAIT).unwrap();
        let mut service = service.lock();
        service.take();
        let bytes = service.taken.pop_front().unwrap();
        let query = Frame::parse(&bytes).unwrap();
        let expected =
            FrameHeader { kind: Kind::Query, timestamp_ns: 3_000_000_000, ..header_of::<Seats>(number, sequence) };
        assert_eq!(query.header(), expected);
        let mut payload = Vec::new();
        contract::encode_request(&Seats(5), &mut payload).unwrap();
        assert_eq!(query.payload(), payload);
    }
}

#[test]
fn answers_are_kept_until_taken() {
    let (mut client, service) = connected();
    let numbers: Vec<u64> = (0..4).map(|row| client.send_query(&Seats(row), 0, WAIT).unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert!(client.take_answer::<Seats>(2).is_none());
    for bytes in [answer(2, 21, Ok(20)), answer(1, 20, Err(NoRow)), answer(9, 22, Ok(9)), answer(2, 23, Ok(99))] {
        service.lock().say(bytes);
    }
    client.forget_query(3);
    service.lock().say(answer(3, 24, Ok(30)));
    assert_eq!(client.poll(9, |incoming| panic!("{incoming:?}")).unwrap(), 5);
    assert_eq!(client.seen_sequence(), 24);
    assert_eq!(client.take_answer::<Seats>(2).unwrap().unwrap(), Ok(20), "the first one");
    assert_eq!(client.take_answer::<Seats>(1).unwrap().unwrap(), Err(NoRow));
    for gone in [0, 1, 2, 3, 5] {
        let error = client.take_answer::<Seats>(gone).unwrap().unwrap_err();
        assert!(matches!(error, QueryError::Client(ClientError::Option { option: "number", .. })), "{gone}: {error}");
    }
    service.lock().say(answer(4, 25, Ok(40)));
    client.poll(9, |_| {}).unwrap();
    let other = client.take_answer::<Long>(4).unwrap().unwrap_err();
    assert!(matches!(other, QueryError::Client(ClientError::Decode { .. })), "{other}");
}

#[test]
fn refusals_are_errors() {
    let (mut client, service) = connected();
    let mut error_of = |say: &dyn Fn(u64) -> Vec<u8>| {
        let number = client.send_query(&Seats(1), 0, WAIT).unwrap();
        service.lock().say(say(number));
        client.poll(9, |_| {}).unwrap();
        client.take_answer::<Seats>(number).unwrap().unwrap_err()
    };
    let behind = error_of(&|number| refused_answer(number, RefusalCode::Behind, 50));
    assert!(matches!(behind, QueryError::Behind { handled: 7, wanted: 50 }), "{behind}");
    assert!(matches!(error_of(&|number| refused_answer(number, RefusalCode::Busy, 1024)), QueryError::Busy));
    for code in [RefusalCode::Unhandled, RefusalCode::Malformed] {
        let error = error_of(&|number| refused_answer(number, code, 0));
        assert!(matches!(&error, QueryError::Unhandled { reason } if reason == "no"), "{error}");
    }
    for code in [RefusalCode::HandlerPanicked, RefusalCode::ReplyTooLong, RefusalCode::Rejected] {
        let error = error_of(&|number| refused_answer(number, code, 0));
        assert!(matches!(&error, QueryError::Failed { reason } if reason == "no"), "{error}");
    }
    let malformed = FrameHeader { flags: REFUSED_FLAG, ..header_of::<Seats>(0, 7) };
    let error = error_of(&|number| frame(&FrameHeader { session_seq: number, ..malformed }, b"?"));
    assert!(matches!(error, QueryError::Client(ClientError::Protocol { .. })), "{error}");
    let error = error_of(&|number| frame(&header_of::<Seats>(number, 7), b""));
    assert!(matches!(error, QueryError::Client(ClientError::Decode { .. })), "{error}");
    let mut lost = Vec::new();
    contract::encode_reply(&1u32, &contract::contracts_of::<Seats>()[0], &mut lost);
    lost[0] = 2;
    let error = error_of(&|number| frame(&header_of::<Seats>(number, 7), &lost));
    assert!(matches!(&error, QueryError::Unhandled { reason } if reason.contains("version")), "{error}");
}

#[test]
fn waiting_query_keeps_other_messages() {
    let (mut client, service) = connected();
    let key = client.open_session(7, 8).unwrap();
    send(&mut client, key, 8).unwrap();
    service.lock().says.extend([reply(107, 1, 11), notice(107, 1), answer(1, 12, Ok(5)), notice(107, 2)]);
    assert_eq!(client.query_request(&Seats(1), TIMEOUT).unwrap(), Ok(5));
    let last = service.lock().says.pop_front().unwrap();
    service.lock().say(last);
    assert_eq!(polled(&mut client), ["reply 0 1", "notice 0 1", "notice 0 2"]);
    // A call keeps answers, too.
    let number = client.send_query(&Seats(1), 0, WAIT).unwrap();
    service.lock().says.extend([answer(number, 13, Ok(6)), reply(107, 2, 14)]);
    client.call(key, TYPE, b"a call", TIMEOUT).unwrap();
    assert_eq!(client.take_answer::<Seats>(number).unwrap().unwrap(), Ok(6));
}

#[test]
fn silent_service_is_a_timeout() {
    let (mut client, service) = connected();
    let error = client.query_request(&Seats(1), TIMEOUT).unwrap_err();
    let QueryError::Client(ClientError::TimedOut { request, timeout_ms: 5_000, .. }) = &error else {
        panic!("{error}")
    };
    assert_eq!(request, "the query Seats");
    assert!(service.lock().elapsed() >= TIMEOUT);
    assert!(client.queries.is_empty(), "its place is free");
}

#[test]
fn queries_follow_a_reconnection() {
    let (mut client, service) = connected();
    client.open_session(7, 8).unwrap();
    for row in 0..3 {
        client.send_query(&Seats(row), 0, WAIT).unwrap();
    }
    assert_eq!(queries_seen(&service), [1, 2, 3]);
    service.lock().say(answer(2, 11, Ok(5)));
    client.poll(9, |_| {}).unwrap();
    client.reconnect().unwrap();
    client.poll(9, |_| {}).unwrap();
    assert_eq!(queries_seen(&service), [1, 3]);
    client.poll(9, |_| {}).unwrap();
    assert!(queries_seen(&service).is_empty(), "once");
    for number in [3, 1] {
        service.lock().say(answer(number, 12, Ok(number as u32)));
    }
    client.poll(9, |_| {}).unwrap();
    for (number, seats) in [(1, 1), (2, 5), (3, 3)] {
        assert_eq!(client.take_answer::<Seats>(number).unwrap().unwrap(), Ok(seats));
    }
}

#[test]
fn full_ring_is_filled_again() {
    let (mut client, service) = with_ring(RING_BYTES_MIN);
    let fill = |client: &mut PolledClient| loop {
        match client.send_query(&Seats(1), 0, WAIT) {
            Ok(number) => assert!(number < 200),
            Err(QueryError::Client(ClientError::Log(LogError::Full { .. }))) => break,
            Err(error) => panic!("{error}"),
        }
    };
    fill(&mut client);
    let first = queries_seen(&service).len();
    fill(&mut client);
    let all = first + queries_seen(&service).len();
    assert!(first > 10 && all > first);
    client.reconnect().unwrap();
    let mut seen = Vec::new();
    while seen.len() < all {
        client.poll(9, |_| {}).unwrap();
        let more = queries_seen(&service);
        assert!(!more.is_empty(), "{} of {all}", seen.len());
        seen.extend(more);
    }
    assert!(seen.iter().copied().eq(1..=all as u64), "in order, once");
}

#[test]
fn long_query_is_not_sent() {
    let (mut client, service) = connected();
    let error = client.query_request(&Long(vec![7; PART_LENGTH]), TIMEOUT).unwrap_err();
    let too_long = ClientError::TooLong { length_bytes: PART_LENGTH + 4 + 2, limit_bytes: PART_LENGTH };
    assert_eq!(error.to_string(), too_long.to_string());
    assert!(queries_seen(&service).is_empty());
    client.send_query(&Long(vec![7; PART_LENGTH - 4 - 2]), 0, WAIT).unwrap();
    assert_eq!(queries_seen(&service), [1]);
}
