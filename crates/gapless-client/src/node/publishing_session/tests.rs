//! A publisher's numbers, its resending, and the close of its session, while answers are lost, late and duplicated.

use super::*;
use gapless_wire::{Fragment, Frame};

const TOKEN: u128 = 9;
const MS: u64 = 1_000_000;

fn opened(publisher: &mut PublishingSession, session: u64, next_session_seq: u64) {
    let opened = SessionOpened { token: TOKEN, next_session_seq, notices_acknowledged: 0 };
    publisher.opened(session, &opened, 0).unwrap();
}

/// Frames due now: kind, session, number.
fn sent(publisher: &mut PublishingSession) -> Vec<(Kind, u64, u64)> {
    let mut all = Vec::new();
    while let Some(bytes) = publisher.next_frame() {
        let frame = Frame::parse(bytes).unwrap();
        all.push((frame.kind(), frame.session(), frame.session_seq()));
        publisher.sent();
    }
    all
}

fn numbers(publisher: &mut PublishingSession) -> Vec<u64> {
    sent(publisher).into_iter().map(|(_, _, number)| number).collect()
}

fn publisher(options: PublisherOptions) -> PublishingSession {
    PublishingSession::new(PublisherOptions { token: TOKEN, ..options })
}

fn open(options: PublisherOptions) -> PublishingSession {
    let mut publisher = publisher(options);
    opened(&mut publisher, 3, 1);
    publisher
}

/// One of several instances that publish the same: the stream has their messages up to `accepted`.
fn instance(accepted: u64) -> PublishingSession {
    let mut publisher = publisher(PublisherOptions { shared: true, ..PublisherOptions::default() });
    opened(&mut publisher, 3, accepted + 1);
    publisher
}

const FRAME_LENGTH_MAX: usize = 1_000;

fn publish(publisher: &mut PublishingSession, length: usize, now_ns: u64) -> Result<u64, ClientError> {
    let header = FrameHeader { kind: Kind::Event, ..FrameHeader::default() };
    publisher.publish(header, (length, FRAME_LENGTH_MAX), now_ns, |buffer| {
        buffer.iter_mut().enumerate().for_each(|(index, byte)| *byte = index as u8);
        Ok(buffer.len())
    })
}

fn with_sent(count: u64) -> PublishingSession {
    let mut publisher = open(PublisherOptions::default());
    (1..=count).for_each(|number| assert_eq!(publish(&mut publisher, 8, 0).unwrap(), number));
    assert_eq!(numbers(&mut publisher), Vec::from_iter(1..=count));
    publisher
}

/// Each open is answered as unknown.
fn asked(publisher: &mut PublishingSession, from_ms: u64) -> Vec<u64> {
    let mut all = Vec::new();
    for now_ns in (from_ms..from_ms + 10_000).map(|ms| ms * MS) {
        if let Some((open, session)) = publisher.due_open(now_ns) {
            assert_eq!(open.token, TOKEN);
            all.push(session);
            publisher.open_sent(now_ns);
            publisher.note_unknown();
        }
    }
    all
}

fn closing() -> PublishingSession {
    let mut publisher = publisher(PublisherOptions::default());
    assert_eq!(publisher.due_open(0).map(|(_, session)| session), Some(0));
    opened(&mut publisher, 3, 1);
    let header = FrameHeader { kind: Kind::Event, ..FrameHeader::default() };
    publisher.publish(header, (8, 1_000), 0, |_| Ok(8)).unwrap();
    publisher.close(0).unwrap();
    assert_eq!(sent(&mut publisher), [(Kind::Event, 3, 1), (Kind::SessionClose, 3, 2)]);
    publisher
}

#[test]
fn closing_opens_no_other_session() {
    // A resent message may be answered with "session unknown": the stream has the close, which is about to come back.
    for is_reconnected in [false, true] {
        let mut publisher = closing();
        publisher.note_unknown();
        if is_reconnected {
            publisher.connected();
        }
        let asked = asked(&mut publisher, 1);
        assert!(asked.len() > 100 && asked.iter().all(|session| *session == 3), "{asked:?}");
        assert!(!publisher.is_closed() && publisher.in_flight() == 1, "the close is no message");
        publisher.frame_returned(1, 0);
        publisher.closed(0);
        assert!(publisher.is_closed() && publisher.session().is_none() && publisher.in_flight() == 0);
        assert_eq!(publisher.due_open(u64::MAX), None);
    }
}

#[test]
fn lost_close_is_resent() {
    let mut publisher = closing();
    publisher.connected();
    opened(&mut publisher, 3, 2);
    assert_eq!(sent(&mut publisher), [(Kind::SessionClose, 3, 2)]);
}

#[test]
fn stray_session_after_close_is_closed() {
    for (comes_first, is_reconnected) in [(true, false), (true, true), (false, false), (false, true)] {
        let mut publisher = closing();
        if comes_first {
            opened(&mut publisher, 8, 1);
            assert_eq!((publisher.session(), publisher.in_flight()), (Some(3), 1), "first things first");
        }
        publisher.frame_returned(1, 0);
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
fn late_answers_are_ignored() {
    let mut publisher = closing();
    publisher.closed(0);
    opened(&mut publisher, 3, 1);
    publisher.session_seen(20);
    assert!(publisher.is_closed() && publisher.session().is_none());
    assert_eq!(publisher.due_open(u64::MAX), None);
}

#[test]
fn expired_session_is_replaced() {
    let mut publisher = open(PublisherOptions::default());
    publisher.closed(0);
    opened(&mut publisher, 3, 1);
    assert!(!publisher.is_open() && !publisher.is_closed(), "the answer came late");
    assert_eq!(publisher.due_open(u64::MAX).map(|(_, session)| session), Some(0));
    opened(&mut publisher, 9, 1);
    assert_eq!((publisher.session(), publisher.is_open()), (Some(9), true));
}

#[test]
fn only_open_session_publishes() {
    let mut publisher = publisher(PublisherOptions::default());
    assert!(matches!(publish(&mut publisher, 8, 0), Err(ClientError::NotOpen)));
    publisher.session_seen(3);
    assert_eq!((publisher.session(), publisher.is_open(), publisher.token()), (Some(3), false, TOKEN));
    assert!(matches!(publish(&mut publisher, 8, 0), Err(ClientError::NotOpen)));
    opened(&mut publisher, 3, 8);
    publisher.session_seen(4);
    assert_eq!((publisher.session(), publisher.next_number()), (Some(3), 8));
    assert_eq!(publish(&mut publisher, 8, 0).unwrap(), 8);
    assert_eq!(sent(&mut publisher), [(Kind::Event, 3, 8)]);
    publisher.close(0).unwrap();
    assert!(matches!(publish(&mut publisher, 8, 0), Err(ClientError::NotOpen)));
}

#[test]
fn window_and_throttle_block() {
    let throttle = Some(Throttle { frames_per_s: 1_000, burst_frames: 4 });
    let mut publisher = open(PublisherOptions { window_messages: 3, throttle, ..PublisherOptions::default() });
    for number in 1..=3 {
        assert_eq!(publish(&mut publisher, 0, 0).unwrap(), number);
    }
    let full = publish(&mut publisher, 0, 0);
    assert!(matches!(full, Err(ClientError::WindowFull { session: 3, window_messages: 3 })), "{full:?}");
    publisher.frame_returned(3, 0);
    assert_eq!(publish(&mut publisher, 1_500, 0).unwrap(), 5);
    let throttled = publish(&mut publisher, 8, 0);
    assert!(matches!(throttled, Err(ClientError::Throttled { wait_ns }) if wait_ns == 2 * MS), "{throttled:?}");
    assert!(publish(&mut publisher, 8, 2 * MS - 1).is_err());
    assert_eq!(publish(&mut publisher, 8, 2 * MS).unwrap(), 6);
    assert!(matches!(publish(&mut publisher, 8, 2 * MS), Err(ClientError::Throttled { wait_ns }) if wait_ns == MS));
}

#[test]
fn each_frame_of_message_is_numbered() {
    let room = FRAME_LENGTH_MAX - HEADER_LENGTH;
    let mut publisher = open(PublisherOptions::default());
    let mut next = 1;
    for length in [0, 1, room - 1, room, room + 1, FRAME_LENGTH_MAX, 2 * room, 2 * room + 1, 10 * room - 1] {
        let count = length.div_ceil(room).max(1);
        assert_eq!(publish(&mut publisher, length, 0).unwrap(), next + count as u64 - 1);
        let mut payload = Vec::new();
        for index in 0..count {
            let frame = Frame::parse(publisher.next_frame().unwrap()).unwrap();
            let fragment = Fragment { index: index as u16, count: count as u16 };
            assert_eq!((frame.session(), frame.session_seq(), frame.header().fragment), (3, next, fragment));
            let equal = HEADER_LENGTH + length.div_ceil(count);
            assert!(frame.length() == equal || index + 1 == count, "{length}: parts of several lengths");
            payload.extend_from_slice(frame.payload());
            next += 1;
            publisher.sent();
        }
        let expected: Vec<u8> = (0..length).map(|index| index as u8).collect();
        assert!(payload == expected && publisher.next_frame().is_none(), "{length}");
    }
    assert_eq!((publisher.in_flight(), publisher.next_number()), (9, next));
}

#[test]
fn part_count_fits_the_header() {
    let mut publisher = open(PublisherOptions::default());
    let mut publish =
        |length| publisher.publish(FrameHeader::default(), (length, HEADER_LENGTH + 8), 0, |buffer| Ok(buffer.len()));
    assert_eq!(publish(8 * 65_535).unwrap(), 65_535);
    let error = publish(8 * 65_535 + 1);
    let is_right = |length, limit| (length, limit) == (8 * 65_535 + 1, 8 * 65_535);
    assert!(
        matches!(error, Err(ClientError::TooLong { length_bytes, limit_bytes }) if is_right(length_bytes, limit_bytes)),
        "{error:?}"
    );
}

#[test]
fn message_without_room_is_not_kept() {
    let (length_max, part_length) = (64 << 10, 1_200);
    let length = 50 * part_length;
    let mut kept = [0; 2];
    for before in (1_000..3_000).step_by(8) {
        let mut publisher = open(PublisherOptions { kept_bytes_max: length_max, ..PublisherOptions::default() });
        let publish = |publisher: &mut PublishingSession, length, frame_length_max| {
            publisher.publish(FrameHeader::default(), (length, frame_length_max), 0, |buffer| Ok(buffer.len()))
        };
        publish(&mut publisher, before, 1 << 16).unwrap();
        let outcome = publish(&mut publisher, length, HEADER_LENGTH + part_length);
        let is_kept = outcome.is_ok();
        let state = (publisher.in_flight(), publisher.next_number());
        assert_eq!(state, if is_kept { (2, 52) } else { (1, 2) }, "{outcome:?}");
        assert!(is_kept || matches!(outcome, Err(ClientError::KeptFull { .. })), "{outcome:?}");
        assert!(is_kept || before + length + 52 * (HEADER_LENGTH + 8) > length_max, "{before}: there was room");
        kept[usize::from(is_kept)] += 1;
    }
    assert!(kept[0] > 0 && kept[1] > 0);
}

#[test]
fn instance_sends_only_what_is_new() {
    let mut publisher = instance(4);
    (1..=5).for_each(|number| assert_eq!(publish(&mut publisher, 8, 0).unwrap(), number));
    assert_eq!(numbers(&mut publisher), [5]);
    publisher.note_accepted(3, 0);
    assert_eq!(publisher.in_flight(), 2, "frames that the sequencer has are released");
    let mut publisher = instance(2);
    assert_eq!(publish(&mut publisher, 2_500, 0).unwrap(), 3);
    assert_eq!(numbers(&mut publisher), [3]);
    publisher.connected();
    opened(&mut publisher, 3, 2);
    assert_eq!(numbers(&mut publisher), [2, 3]);
}

#[test]
fn known_derived_messages_are_skipped() {
    let mut publisher = instance(4);
    assert!(publisher.skip(2) && publisher.next_number() == 3);
    assert!(!publisher.skip(3) && publisher.next_number() == 3, "the stream lacks a part");
    assert!(publisher.skip(2) && publisher.next_number() == 5);
    assert!(!publisher.skip(1), "the next one is not there either");
    assert_eq!(publish(&mut publisher, 8, 0).unwrap(), 5);
    assert_eq!(numbers(&mut publisher), [5]);
    publisher.set_next_derived(2);
    assert!(publisher.skip(1));
    assert_eq!(publish(&mut publisher, 8, 0).unwrap(), 3);
    assert!(!publisher.skip(1), "an earlier frame is kept");
    assert!(numbers(&mut publisher).is_empty());
}

#[test]
fn derived_messages_get_half() {
    let mut publisher = open(PublisherOptions { window_messages: 9, ..PublisherOptions::default() });
    for _ in 0..4 {
        assert!(publisher.has_room_for_derived());
        publish(&mut publisher, 8, 0).unwrap();
    }
    assert!(!publisher.has_room_for_derived());
    let mut publisher = open(PublisherOptions { kept_bytes_max: 64 << 10, ..PublisherOptions::default() });
    for _ in 0..8 {
        assert!(publisher.has_room_for_derived());
        let length = 4_096 - HEADER_LENGTH;
        publisher.publish(FrameHeader::default(), (length, 1 << 16), 0, |_| Ok(length)).unwrap();
    }
    assert!(!publisher.has_room_for_derived());
}

#[test]
fn open_is_resent_until_answered() {
    let mut publisher = publisher(PublisherOptions::default());
    let interval_ns = publisher.options.resend_interval_ns;
    assert!(publisher.due_open(MS).is_some(), "at once");
    publisher.open_sent(MS);
    assert_eq!(publisher.due_open(MS + interval_ns - 1), None);
    assert!(publisher.due_open(MS + interval_ns).is_some());
    opened(&mut publisher, 3, 1);
    assert_eq!((publisher.due_open(u64::MAX), publisher.is_attached()), (None, true));
    publisher.open_sent(5 * MS);
    publisher.connected();
    assert_eq!(publisher.due_open(5 * MS).map(|(_, session)| session), Some(0), "at once again");
    assert!(!publisher.is_attached() && publisher.is_open());
}

#[test]
fn reopened_session_resumes() {
    let mut publisher = with_sent(4);
    publisher.frame_returned(1, 0);
    publisher.connected();
    assert!(publisher.next_frame().is_none());
    opened(&mut publisher, 3, 3);
    assert_eq!(numbers(&mut publisher), [3, 4]);
    opened(&mut publisher, 3, 2);
    assert!(numbers(&mut publisher).is_empty());
    publisher.resend_overdue(20 * MS);
    assert_eq!((numbers(&mut publisher), publisher.resent()), (vec![3, 4], 2));
    let mut successor = publisher_that_found(5);
    assert_eq!(publish(&mut successor, 8, 0).unwrap(), 5);
    assert_eq!(numbers(&mut successor), [5]);
    successor.resend_overdue(20 * MS);
    assert_eq!(numbers(&mut successor), [5]);
}

fn publisher_that_found(next_session_seq: u64) -> PublishingSession {
    let mut publisher = publisher(PublisherOptions::default());
    opened(&mut publisher, 3, next_session_seq);
    publisher
}

#[test]
fn session_behind_the_node_is_lost() {
    let answer = |next_session_seq| SessionOpened { token: TOKEN, next_session_seq, notices_acknowledged: 0 };
    let lost = |outcome| match outcome {
        Err(ClientError::SessionLost { session, expected, found }) => Some((session, expected, found)),
        _ => None,
    };
    let mut publisher = with_sent(3);
    publisher.frame_returned(1, 0);
    publisher.connected();
    assert_eq!(lost(publisher.opened(3, &answer(1), 0)), Some((3, 2, 1)));
    let mut publisher = with_sent(3);
    publisher.connected();
    assert_eq!(lost(publisher.opened(4, &answer(1), 0)), Some((3, 1, 1)));
    let mut publisher = with_sent(3);
    publisher.frame_returned(3, 0);
    publisher.connected();
    publisher.opened(4, &answer(7), 0).unwrap();
    assert_eq!(publish(&mut publisher, 8, 0).unwrap(), 7);
    assert_eq!(sent(&mut publisher), [(Kind::Event, 4, 7)]);
    let mut publisher = instance(0);
    (1..=3).for_each(|_| _ = publish(&mut publisher, 8, 0).unwrap());
    publisher.frame_returned(2, 0);
    publisher.connected();
    publisher.opened(3, &answer(1), 0).unwrap();
    assert_eq!(numbers(&mut publisher), [3]);
}

#[test]
fn wait_for_absent_messages_ends() {
    const S: u64 = 1_000 * MS;
    let begun_at_50 = || {
        let mut publisher = instance(44);
        publisher.set_next_derived(50);
        publish(&mut publisher, 8, 0).unwrap();
        assert_eq!(numbers(&mut publisher), [50]);
        publisher.note_missing(45, 0);
        assert_eq!(numbers(&mut publisher), [50]);
        publisher.note_missing(45, 0);
        assert!(numbers(&mut publisher).is_empty(), "each resending would cause the next request");
        publisher.check_absent(7 * S).unwrap();
        publisher.check_absent(36 * S).unwrap();
        publisher
    };
    let lost = begun_at_50().check_absent(37 * S);
    assert!(matches!(lost, Err(ClientError::DerivedLost { session: 3, expected: 50, found: 45 })), "{lost:?}");

    let mut publisher = begun_at_50();
    publisher.frame_returned(45, 0);
    publisher.check_absent(100 * S).unwrap();
    publisher.note_missing(46, 0);
    publisher.check_absent(101 * S).unwrap();
    publisher.note_missing(50, 0);
    assert!(!publisher.has_absent(), "another instance has published them");
    assert_eq!(numbers(&mut publisher), [50]);
}

#[test]
fn received_frames_are_not_sent() {
    let mut publisher = open(PublisherOptions::default());
    (1..=7).for_each(|_| _ = publish(&mut publisher, 8, 0).unwrap());
    publisher.frame_returned(2, 0);
    assert_eq!((publisher.in_flight(), publisher.next_frame().map(sequence)), (5, Some(3)));
    publisher.note_accepted(4, 0);
    assert_eq!((publisher.in_flight(), publisher.next_frame().map(sequence)), (5, Some(5)), "4 has not come back yet");
    assert_eq!(numbers(&mut publisher), [5, 6, 7]);
    publisher.note_accepted(9, 0);
    publish(&mut publisher, 8, 0).unwrap();
    assert!(numbers(&mut publisher).is_empty());
}

fn sequence(bytes: &[u8]) -> u64 {
    Frame::parse(bytes).unwrap().session_seq()
}

#[test]
fn resend_starts_at_missing_frame() {
    let mut publisher = with_sent(5);
    publisher.note_missing(3, 0);
    assert_eq!((numbers(&mut publisher), publisher.resent()), (vec![3, 4, 5], 3));
    publisher.resend_overdue(20 * MS);
    assert_eq!((numbers(&mut publisher), publisher.resent()), (vec![3, 4, 5], 6));
    publisher.note_asked();
    assert_eq!(publisher.resent(), 7);
    publisher.note_missing(0, 0);
    assert_eq!(numbers(&mut publisher), [1, 2, 3, 4, 5]);
}

#[test]
fn last_frame_probes_the_sequencer() {
    let mut publisher = open(PublisherOptions::default());
    (1..=3).for_each(|_| _ = publish(&mut publisher, 8, 0).unwrap());
    assert_eq!(publisher.last_sent(), None);
    publisher.sent();
    publisher.sent();
    assert_eq!(publisher.last_sent().map(sequence), Some(2));
    publisher.frame_returned(1, 0);
    assert_eq!(publisher.last_sent().map(sequence), Some(2));
    publisher.note_unknown();
    assert_eq!(publisher.last_sent(), None);
    opened(&mut publisher, 3, 3);
    assert_eq!(publisher.last_sent().map(sequence), Some(2));
    publisher.frame_returned(2, 0);
    assert_eq!(publisher.last_sent(), None);
    let due: Vec<u64> = (0..4_000).filter(|us| publisher.take_due_probe(us * 1_000)).collect();
    assert_eq!(due, [1_000, 2_000, 3_000]);
}

fn resent_at(publisher: &mut PublishingSession, from_ms: u64, until_ms: u64) -> Vec<u64> {
    let is_resent = |ms: &u64| {
        publisher.resend_overdue(ms * MS);
        !numbers(publisher).is_empty()
    };
    (from_ms..until_ms).filter(is_resent).collect()
}

#[test]
fn resends_back_off() {
    let mut publisher = with_sent(2);
    assert_eq!(resent_at(&mut publisher, 0, 5_200), [20, 60, 140, 300, 620, 1_260, 2_540, 3_820, 5_100]);
    // A duplicate is no progress.
    publisher.frame_returned(1, 5_200 * MS);
    publisher.frame_returned(1, 5_210 * MS);
    assert_eq!(resent_at(&mut publisher, 5_200, 5_270), [5_220, 5_260]);
    publisher.connected();
    assert!(resent_at(&mut publisher, 5_270, 5_900).is_empty(), "not attached yet");
    let answer = SessionOpened { token: TOKEN, next_session_seq: 2, notices_acknowledged: 0 };
    publisher.opened(3, &answer, 5_900 * MS).unwrap();
    assert_eq!(numbers(&mut publisher), [2]);
    assert_eq!(resent_at(&mut publisher, 5_900, 5_970), [5_920, 5_960]);
    publisher.note_accepted(2, 6_000 * MS);
    assert!(resent_at(&mut publisher, 6_000, 9_000).is_empty());
}

#[test]
fn unsent_frames_are_never_overdue() {
    // Sent at 20 ms: until then nothing is overdue, and the interval stays the same.
    let mut publisher = open(PublisherOptions::default());
    publish(&mut publisher, 8, 0).unwrap();
    publisher.resend_overdue(20 * MS);
    assert_eq!(numbers(&mut publisher), [1]);
    publisher.resend_overdue(40 * MS);
    assert_eq!((numbers(&mut publisher), publisher.resent()), (vec![1], 1));
    let mut publisher = instance(0);
    publisher.set_next_derived(10);
    publisher.resend_overdue(500 * MS);
    publish(&mut publisher, 8, 500 * MS).unwrap();
    assert_eq!(numbers(&mut publisher), [10]);
    publisher.resend_overdue(520 * MS);
    assert_eq!(publisher.resent(), 1);
}

#[test]
fn look_is_due_while_frames_in_flight() {
    let is_due = |publisher: &mut PublishingSession| {
        publisher.note_slept();
        publisher.take_clock_check()
    };
    let mut publisher = open(PublisherOptions::default());
    assert!(!is_due(&mut publisher), "nothing is published");
    for _ in 1..=3 {
        publish(&mut publisher, 8, 0).unwrap();
    }
    assert!(!is_due(&mut publisher), "nothing is sent");
    assert_eq!(numbers(&mut publisher), [1, 2, 3]);
    assert!(is_due(&mut publisher) && !publisher.take_clock_check(), "each look costs time");
    publisher.note_accepted(2, 0);
    assert!(is_due(&mut publisher));
    publisher.note_unknown();
    assert!(!is_due(&mut publisher), "not attached");
    opened(&mut publisher, 3, 3);
    publisher.note_accepted(3, 0);
    assert!(!is_due(&mut publisher), "everything is there");
    publisher.frame_returned(3, 0);
    publisher.set_next_derived(9);
    assert!(!is_due(&mut publisher), "nothing is kept");
}

#[test]
fn held_publisher_asks_no_questions() {
    let mut publisher = with_sent(1);
    let stalled = |publisher: &mut PublishingSession, ms| publisher.take_due_question(ms * MS);
    assert!(!stalled(&mut publisher, 0) && !stalled(&mut publisher, 19) && stalled(&mut publisher, 20));
    publisher.hold(100 * MS, 20 * MS);
    assert!(!stalled(&mut publisher, 159) && stalled(&mut publisher, 160));
    publisher.release();
    assert!(!stalled(&mut publisher, 1_000) && !stalled(&mut publisher, 1_019) && stalled(&mut publisher, 1_020));
}

#[test]
fn timer_request_has_its_own_kind() {
    assert_eq!(PublishingSession::timer_header().kind, Kind::TimerRequest);
}
