//! A member hands queries to its service, whether it leads or follows, and appends none of them. Damaged ones cost their
//! sender the ring.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::member::{EXPIRY_NS, Member, send};
use gapless_client::throttle::Throttle;
use gapless_stream::messages::{QueryMessage, SequencerRequest};
use gapless_stream::sequencer::SequencerRules;
use gapless_stream::{ResponderMessage, Sequencer};
use gapless_wire::control::RefusalCode;
use gapless_wire::{Encoding, FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length};

const MS_NS: u64 = 1_000_000;
const SECOND_NS: u64 = 1_000 * MS_NS;

fn query(session: u64, number: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; aligned_length(HEADER_LENGTH + payload.len())];
    let mut writer = FrameWriter::new(&mut bytes);
    writer.payload_mut()[..payload.len()].copy_from_slice(payload);
    let header = FrameHeader {
        kind: Kind::Query,
        flags: Encoding::Postcard.flags(),
        session,
        session_seq: number,
        sequence: 7,
        timestamp_ns: 9,
        schema: 5,
        ..FrameHeader::default()
    };
    writer.finish(&header, payload.len());
    bytes
}

fn queries_told(member: &Member) -> Vec<QueryMessage> {
    let queries = member.told().into_iter().map(|told| match told {
        ResponderMessage::Query(query) => *query,
        other => panic!("{other:?}"),
    });
    queries.collect()
}

fn service_member() -> Member {
    Member::with(Sequencer::new(SequencerRules::of_service(EXPIRY_NS)))
}

#[test]
fn query_goes_past_the_stream() {
    let mut member = service_member();
    let mut publisher = member.connect();
    for number in [1, 2, u64::MAX] {
        send(&mut publisher, &query(0, number, b"a query"));
    }
    member.poll(MS_NS);
    let told = queries_told(&member);
    assert_eq!(told.iter().map(|query| query.number).collect::<Vec<_>>(), [1, 2, u64::MAX]);
    for query in &told {
        assert_eq!((query.after, query.wait_ns_max, query.schema), (7, 9, 5));
        assert_eq!((query.encoding, &query.payload[..]), (Encoding::Postcard, &b"a query"[..]));
        assert_eq!(query.publisher.strong_count(), 1);
    }
    assert_eq!((member.appended().len(), member.ingress.last_sequence()), (0, 0));
    drop(publisher);
    member.poll(2 * MS_NS);
    assert_eq!(told[0].publisher.strong_count(), 0, "the service can tell that the client is gone");
}

#[test]
fn bad_query_costs_the_ring() {
    let mut damaged = query(0, 1, b"a query");
    damaged[HEADER_LENGTH] ^= 1;
    for (what, bytes) in [
        ("a query in a session", query(3, 1, b"a query")),
        ("a query without a number", query(0, 0, b"a query")),
        ("a damaged query", damaged),
    ] {
        for follows in [false, true] {
            let mut member = service_member();
            if follows {
                member.ingress.follow(Some("tcp:other:1"));
            }
            let mut publisher = member.connect();
            send(&mut publisher, &bytes);
            send(&mut publisher, &query(0, 1, b"a query"));
            member.poll(MS_NS);
            let told = member.told();
            assert!(matches!(&told[..], [ResponderMessage::Refuse { .. }]), "{what}: {told:?}");
            assert!(publisher.writer.is_reader_closed(), "{what}");
        }
    }
}

#[test]
fn follower_takes_queries() {
    for leader in [None, Some("tcp:other:1")] {
        let mut member = service_member();
        member.ingress.follow(leader);
        let mut publisher = member.connect();
        send(&mut publisher, &query(0, 1, b"a query"));
        send(&mut publisher, &query(0, 2, b"a query"));
        member.poll(MS_NS);
        assert_eq!(queries_told(&member).len(), 2);
        member.poll(SECOND_NS);
        assert_eq!(member.told(), [], "a client that only asks is not redirected");
    }
}

#[test]
fn redirected_client_still_asks() {
    let mut member = service_member();
    member.ingress.follow(Some("tcp:other:1"));
    let mut publisher = member.connect();
    let command = FrameHeader { kind: Kind::Command, session: 1, session_seq: 1, ..FrameHeader::default() };
    let mut bytes = vec![0; HEADER_LENGTH];
    FrameWriter::new(&mut bytes).finish(&command, 0);
    send(&mut publisher, &bytes);
    send(&mut publisher, &query(0, 1, b"a query"));
    member.poll(MS_NS);
    let told = member.told();
    assert!(matches!(&told[..], [ResponderMessage::NotLeader { .. }]), "{told:?}");
    member.poll(2 * MS_NS);
    assert_eq!(queries_told(&member).len(), 1);
    // Without a service here, the client has to go on.
    member.ingress.redirect_all();
    send(&mut publisher, &query(0, 2, b"a query"));
    member.poll(SECOND_NS);
    assert_eq!(member.turned_away(), ["tcp:other:1"]);
}

#[test]
fn follower_throttles_queries() {
    for leader in [None, Some("tcp:other:1")] {
        let mut member = service_member();
        member.ingress.follow(leader);
        let throttle = Throttle { frames_per_s: 10, burst_frames: 3 };
        member.requests.push(SequencerRequest::Throttle(Some(throttle))).unwrap();
        let mut publisher = member.connect();
        (1..=8).for_each(|number| send(&mut publisher, &query(0, number, b"a query")));
        member.poll(MS_NS);
        assert_eq!(queries_told(&member).len(), 3);
        member.poll(2 * MS_NS);
        let told = member.told();
        assert!(matches!(&told[..], [ResponderMessage::Refuse { code: RefusalCode::Throttled, .. }]), "{told:?}");
        member.poll(3 * MS_NS);
        assert_eq!(member.told(), [], "it is told once, and not redirected");
        member.poll(2 * SECOND_NS);
        assert_eq!(queries_told(&member).len(), 3);
    }
}
