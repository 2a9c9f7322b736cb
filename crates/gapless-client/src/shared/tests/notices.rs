//! Streams of notices: over reconnections, and at the end of a session and of a client.

use super::reconnecting::Server;
use super::*;

impl FakeService {
    fn notify(&mut self, session: u64, numbers: std::ops::RangeInclusive<u64>) {
        for session_seq in numbers {
            let header = FrameHeader { kind: Kind::Notice, session, session_seq, ..FrameHeader::default() };
            self.say(&header, &session_seq.to_le_bytes());
        }
    }
}

#[track_caller]
fn assert_next(notices: &mut blocking::Notices, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        let notice = notices.next().unwrap().unwrap();
        assert_eq!((notice.number, &*notice.payload), (number, &number.to_le_bytes()[..]));
    }
}

#[test]
fn reconnection_repeats_no_notice() {
    let server = Server::start(1 << 16);
    let client = server.client(1);
    let mut notices = blocking::Client::from(client.clone()).notices();
    until("a session, without a command", || server.sessions.lock().unwrap().open.len() == 1);
    server.with(|service| service.notify(SESSION, 1..=200));
    assert_next(&mut notices, 1..=200);
    assert_eq!(notices.next_within(Duration::from_millis(1)), None);
    server.disconnect();
    assert_eq!(block_on(client.call(Bytes(vec![7]))), Ok(1));
    server.with(|service| service.notify(SESSION, 190..=300));
    assert_next(&mut notices, 201..=300);
    assert_eq!(client.discarded_notices(), 0);
    drop(notices);
    server.with(|service| service.notify(SESSION, 301..=310));
    until("discarded notices", || client.discarded_notices() == 10);
}

#[test]
fn lost_session_is_a_gap_of_each_stream() {
    let server = Server::start(1 << 16);
    let client = blocking::Client::from(server.client(1));
    assert_eq!(client.call(Bytes(vec![7])), Ok(1));
    let mut streams = [client.notices(), client.notices()];
    server.with(|service| service.notify(SESSION, 1..=1));
    streams.iter_mut().for_each(|notices| assert_next(notices, 1..=1));
    server.sessions.lock().unwrap().open.clear();
    server.disconnect();
    for notices in &mut streams {
        assert_eq!(notices.next(), Some(Err(NoticesLost::Session)));
    }
    until("another session", || client.call(Bytes(vec![7])) == Ok(1));
    let session = *server.sessions.lock().unwrap().open.values().map(|(session, _)| session).max().unwrap();
    server.with(|service| service.notify(session, 1..=2));
    streams.iter_mut().for_each(|notices| assert_next(notices, 1..=2));
}

/// The service sends no further notices before they are acknowledged.
#[test]
fn acknowledgement_waits_for_room() {
    let server = Server::start(1 << 16);
    let client = server.client(1);
    let mut notices = blocking::Client::from(client.clone()).notices();
    assert_eq!(block_on(client.call(Bytes(vec![7]))), Ok(1));
    server.sessions.lock().unwrap().is_mute = true;
    let full: Vec<_> = (0..64).map(|_| client.start(Bytes(vec![7; 2]))).collect();
    until("a full window", || server.sessions.lock().unwrap().ignored == 64);
    server.with(|service| service.notify(SESSION, 1..=100));
    assert_next(&mut notices, 1..=100);
    server.sessions.lock().unwrap().is_mute = false;
    server.disconnect();
    full.into_iter().for_each(|call| assert_eq!(call.wait(), Ok(2)));
    let is_acknowledged = |service: &mut FakeService| service.taken.iter().any(|(kind, ..)| *kind == Kind::Acknowledge);
    until("an acknowledgement", || server.with(is_acknowledged));
}

#[test]
fn listening_session_is_kept() {
    let server = Server::start(1 << 16);
    let client = server.client(2);
    let mut notices = blocking::Client::from(client.clone()).notices();
    (0..2).for_each(|_| assert_eq!(block_on(client.call(Bytes(vec![7]))), Ok(1)));
    let pass_a_minute = || {
        client.channel().connection.lock().0.kept_ns = 0;
        client.channel().wake_watcher();
    };
    pass_a_minute();
    let is_kept = |service: &mut FakeService| {
        [SESSION, SESSION + 1].iter().all(|session| service.taken.contains(&(Kind::Acknowledge, *session, 2)))
    };
    until("an acknowledgement of each", || server.with(is_kept));
    server.sessions.lock().unwrap().open.clear();
    pass_a_minute();
    assert_eq!(notices.next(), Some(Err(NoticesLost::Session)), "the expiry is noticed");
    until("other sessions", || server.sessions.lock().unwrap().open.len() == 2);
    assert_eq!(server.connections(), 1);
}
