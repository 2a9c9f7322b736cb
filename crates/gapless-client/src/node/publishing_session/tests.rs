//! A publisher that closes its session, while answers are lost, late and doubled.

use super::*;
use gapless_wire::Frame;

const TOKEN: u128 = 9;
const MS: u64 = 1_000_000;

fn opened(publisher: &mut PublishingSession, session: u64, next_session_seq: u64) {
    let opened = SessionOpened { token: TOKEN, next_session_seq, notices_acknowledged: 0 };
    publisher.opened(session, &opened, 0).unwrap();
}

/// The frames due now: kind, session, number.
fn sent(publisher: &mut PublishingSession) -> Vec<(Kind, u64, u64)> {
    let mut all = Vec::new();
    while let Some(bytes) = publisher.next_frame() {
        let frame = Frame::parse(bytes).unwrap();
        all.push((frame.kind(), frame.session(), frame.session_seq()));
        publisher.sent();
    }
    all
}

/// The sessions opened within 10 s, with a look each ms; the answer to each is that it is unknown.
fn asked(publisher: &mut PublishingSession, from_ms: u64) -> Vec<u64> {
    let mut all = Vec::new();
    for now_ns in (from_ms..from_ms + 10_000).map(|ms| ms * MS) {
        if let Some((open, session)) = publisher.due_open(now_ns) {
            assert_eq!(open.token, TOKEN);
            all.push(session);
            publisher.open_sent(now_ns);
            publisher.is_unknown();
        }
    }
    all
}

/// One that has sent a message and the close of session 3.
fn closing() -> PublishingSession {
    let mut publisher = PublishingSession::new(PublisherOptions { token: TOKEN, ..PublisherOptions::default() });
    assert_eq!(publisher.due_open(0).map(|(_, session)| session), Some(0));
    opened(&mut publisher, 3, 1);
    let header = FrameHeader { kind: Kind::Event, ..FrameHeader::default() };
    publisher.publish(header, (8, 1_000), 0, |_| Ok(8)).unwrap();
    publisher.close(0).unwrap();
    assert_eq!(sent(&mut publisher), [(Kind::Event, 3, 1), (Kind::SessionClose, 3, 2)]);
    publisher
}

#[test]
fn who_closes_asks_for_no_other_session_however_long_the_close_takes() {
    // Also when a message that was sent once more is answered by that the session is unknown, and when a connection
    // is made anew: the stream has the close, and it is on its way back.
    for is_reconnected in [false, true] {
        let mut publisher = closing();
        publisher.is_unknown();
        if is_reconnected {
            publisher.connected();
        }
        let asked = asked(&mut publisher, 1);
        assert!(asked.len() > 100 && asked.iter().all(|session| *session == 3), "{asked:?}");
        assert!(!publisher.is_closed() && publisher.in_flight() == 1, "the close is no message");
        publisher.came_back(1, 0);
        publisher.closed(0);
        assert!(publisher.is_closed() && publisher.session().is_none() && publisher.in_flight() == 0);
        assert_eq!(publisher.due_open(u64::MAX), None);
    }
}

#[test]
fn a_close_that_was_lost_is_sent_again_when_the_session_is_found() {
    let mut publisher = closing();
    publisher.connected();
    opened(&mut publisher, 3, 2);
    assert_eq!(sent(&mut publisher), [(Kind::SessionClose, 3, 2)]);
}

#[test]
fn a_session_that_a_doubled_open_has_made_behind_the_close_is_closed_too() {
    // The answer comes before the close, or after it; the connection may be lost meanwhile.
    for (comes_first, is_reconnected) in [(true, false), (true, true), (false, false), (false, true)] {
        let mut publisher = closing();
        if comes_first {
            opened(&mut publisher, 8, 1);
            assert_eq!((publisher.session(), publisher.in_flight()), (Some(3), 1), "first things first");
        }
        publisher.came_back(1, 0);
        publisher.closed(0);
        assert_eq!(publisher.is_closed(), !comes_first);
        if !comes_first {
            opened(&mut publisher, 8, 1);
        }
        if is_reconnected {
            publisher.connected();
        }
        assert!(!publisher.is_closed() && !publisher.is_open() && sent(&mut publisher).is_empty());
        assert_eq!(publisher.due_open(u64::MAX).map(|(_, session)| session), Some(8));
        opened(&mut publisher, 8, 1);
        assert_eq!(sent(&mut publisher), [(Kind::SessionClose, 8, 1)]);
        publisher.closed(0);
        assert!(publisher.is_closed());
    }
}

#[test]
fn late_answers_open_nothing_and_a_successor_is_let_be() {
    let mut publisher = closing();
    publisher.closed(0);
    opened(&mut publisher, 3, 1);
    publisher.found(20);
    assert!(publisher.is_closed() && publisher.session().is_none());
    assert_eq!(publisher.due_open(u64::MAX), None);
}

#[test]
fn who_has_closed_nothing_opens_another_when_its_session_expires() {
    let mut publisher = PublishingSession::new(PublisherOptions { token: TOKEN, ..PublisherOptions::default() });
    opened(&mut publisher, 3, 1);
    publisher.closed(0);
    opened(&mut publisher, 3, 1);
    assert!(!publisher.is_open() && !publisher.is_closed(), "the answer came late");
    assert_eq!(publisher.due_open(u64::MAX).map(|(_, session)| session), Some(0));
    opened(&mut publisher, 9, 1);
    assert_eq!((publisher.session(), publisher.is_open()), (Some(9), true));
}
