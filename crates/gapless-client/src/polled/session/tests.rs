//! Commands, replies and notices of one session, without a service.

use super::*;

const KEY: SessionKey = SessionKey(7);
const TOKEN: u128 = 9;
const WINDOW: u32 = 3;

fn answer(next_session_seq: u64) -> SessionOpened {
    SessionOpened { token: TOKEN, next_session_seq, notices_acknowledged: 0 }
}

fn open(next_session_seq: u64) -> CommandSession {
    let mut session = CommandSession::new(KEY, TOKEN, WINDOW);
    assert!(session.opened(5, &answer(next_session_seq)));
    session
}

/// Returns the first number.
fn send(session: &mut CommandSession, count: u64, place: u64) -> u64 {
    let (slot, header) = session.next_command().unwrap();
    let first_seq = header.session_seq;
    slot.keep(&[place as u8; 8], first_seq, first_seq + count - 1);
    session.sent(count, place);
    first_seq
}

fn kept(place: u8, in_flight: bool) -> ([u8; 8], bool) {
    ([place; 8], in_flight)
}

fn command(session: &CommandSession, session_seq: u64) -> ([u8; 8], bool) {
    match session.number_state(session_seq) {
        NumberState::Kept { frames, in_flight } => (frames.try_into().unwrap(), in_flight),
        other => panic!("{session_seq}: {other:?}"),
    }
}

fn unanswered(session: &CommandSession, from: u64) -> Vec<(u64, u64)> {
    let mut all: Vec<_> = session.unanswered(from).map(|command| (command.place, command.first_seq)).collect();
    all.sort_unstable();
    all
}

#[test]
fn window_limits_consecutive_commands() {
    let mut session = open(1_000);
    assert_eq!((session.id(), session.token(), session.window_messages()), (Some(5), TOKEN, WINDOW));
    for (place, number) in (1..=3).zip(1_000..) {
        let (_, header) = session.next_command().unwrap();
        assert_eq!((header.kind, header.session, header.session_seq), (Kind::Command, 5, number));
        assert_eq!((session.in_flight(), send(&mut session, 1, place)), (place as u32 - 1, number));
    }
    let full = session.next_command().map(drop);
    assert!(matches!(full, Err(ClientError::WindowFull { session: 5, window_messages: WINDOW })), "{full:?}");
    assert_eq!(session.answered(1_001), ReplyKind::First);
    assert!(!session.has_room() && session.in_flight() == 2);
    assert_eq!(session.answered(1_000), ReplyKind::First);
    assert_eq!((send(&mut session, 1, 4), send(&mut session, 1, 5)), (1_003, 1_004));
    assert!(!session.has_room() && session.in_flight() == 3);
    assert_eq!(session.next_session_seq(), 1_005);
}

#[test]
fn reply_answers_its_command_once() {
    let mut session = open(1);
    assert_eq!((send(&mut session, 4, 1), send(&mut session, 1, 2), send(&mut session, 2, 3)), (1, 5, 6));
    assert_eq!(session.answered(1), ReplyKind::Again, "a reply names the last part");
    for number in [4, 7, 5] {
        assert_eq!((session.answered(number), session.answered(number)), (ReplyKind::First, ReplyKind::Again));
    }
    assert_eq!((session.in_flight(), session.answered(8)), (0, ReplyKind::Again));
}

#[test]
fn each_number_has_a_state() {
    let mut session = open(6);
    assert_eq!((send(&mut session, 3, 1), send(&mut session, 1, 2)), (6, 9));
    assert_eq!((session.number_state(0), session.number_state(10)), (NumberState::NotSent, NumberState::NotSent));
    assert_eq!((session.number_state(1), session.number_state(5)), (NumberState::InStream, NumberState::InStream));
    assert_eq!((session.number_state(6), session.number_state(7)), (NumberState::PartOf(8), NumberState::PartOf(8)));
    assert_eq!((command(&session, 8), command(&session, 9)), (kept(1, true), kept(2, true)));
    session.answered(8);
    assert_eq!(command(&session, 8), kept(1, false));
    // The fourth command reuses its slot.
    assert_eq!((send(&mut session, 1, 3), send(&mut session, 1, 4)), (10, 11));
    assert_eq!((session.number_state(8), command(&session, 11)), (NumberState::InStream, kept(4, true)));
}

#[test]
fn unanswered_resent_before_new() {
    let mut session = open(1);
    (1..=3).for_each(|place| _ = send(&mut session, 2, place));
    session.answered(4);
    assert_eq!(unanswered(&session, 0), [(1, 1), (3, 5)]);
    assert_eq!(unanswered(&session, 2), [(1, 1), (3, 5)], "from its second frame on it is the same command");
    assert_eq!(unanswered(&session, 3), [(3, 5)]);
    assert!(session.unanswered(3).all(|command| command.session == KEY && command.frames == [3; 8]));
    session.answered(2);
    assert!(session.has_room());
    session.set_resend_from(Some(5));
    assert_eq!((session.resend_from(), session.has_room()), (Some(5), false));
    let full = session.next_command().map(drop);
    assert!(matches!(full, Err(ClientError::WindowFull { .. })), "{full:?}");
    session.set_resend_from(None);
    assert!(session.has_room());
}

#[test]
fn session_resumes_only_where_it_was() {
    // (answered, the service goes on with, it is the same session)
    for (answered, next, is_same) in
        [(0, 1, true), (0, 4, true), (0, 5, false), (2, 2, false), (2, 3, true), (3, 3, false), (3, 4, true)]
    {
        let mut session = open(1);
        (1..=3).for_each(|place| _ = send(&mut session, 1, place));
        (1..=answered).for_each(|number| _ = session.answered(number));
        let reopened = session.begin_reopen();
        assert_eq!((reopened.token, reopened.window_messages, reopened.shared), (TOKEN, WINDOW, false));
        assert!(!session.is_open() && matches!(session.next_command().map(drop), Err(ClientError::NotOpen)));
        assert_eq!(session.opened(5, &answer(next)), is_same, "{answered} answered, on with {next}");
        assert_eq!((session.is_open(), session.is_lost()), (is_same, !is_same));
        let in_flight = if is_same { 3 - answered as u32 } else { 0 };
        assert_eq!((session.in_flight(), session.next_session_seq()), (in_flight, 4));
    }
    let mut session = open(1);
    assert!(session.is_blank() && session.opened(6, &answer(3)) && session.id() == Some(6));
    assert!(!session.is_blank() && !session.opened(7, &answer(3)));
    let mut session = open(1);
    session.notice(1);
    assert!(!session.is_blank() && !session.opened(6, &answer(1)));
}

#[test]
fn lost_session_takes_no_commands() {
    let mut session = open(1);
    (1..=2).for_each(|place| _ = send(&mut session, 1, place));
    session.set_resend_from(Some(1));
    session.lost();
    assert_eq!((session.is_open(), session.in_flight(), session.resend_from()), (false, 0, None));
    assert!(unanswered(&session, 0).is_empty() && session.answered(1) == ReplyKind::Again);
    assert_eq!(session.slots.capacity(), 0, "it uses no memory");
    let outcome = session.next_command().map(drop);
    assert!(matches!(outcome, Err(ClientError::NoSuchSession(KEY))), "{outcome:?}");
}

#[test]
fn notices_are_acknowledged_in_batches() {
    let mut session = CommandSession::new(KEY, TOKEN, WINDOW);
    assert!(session.opened(5, &SessionOpened { notices_acknowledged: 100, ..answer(1) }));
    assert_eq!((session.notices_acknowledged(), session.due_acknowledgement()), (100, None));
    assert!(!session.notice(100) && !session.notice(102) && !session.notice(0));
    for number in 101..164 {
        assert!(session.notice(number) && !session.notice(number));
        assert_eq!(session.due_acknowledgement(), None);
    }
    assert!(session.notice(164));
    assert_eq!(session.due_acknowledgement(), Some(164));
    assert_eq!(session.begin_reopen().notices_seen, 164);
}

#[test]
fn acknowledgement_reply_is_hidden() {
    let mut session = open(1);
    (1..=64).for_each(|number| assert!(session.notice(number)));
    (1..=3).for_each(|place| _ = send(&mut session, 1, place));
    assert!(session.next_command().is_err(), "there is no room");
    (1..=3).for_each(|number| _ = session.answered(number));
    let number = session.due_acknowledgement().unwrap();
    let (slot, header) = session.next_command().unwrap();
    slot.keep(&[0; 8], header.session_seq, header.session_seq);
    session.acknowledging(number);
    session.sent(1, 4);
    assert_eq!((session.notices_acknowledged(), session.due_acknowledgement()), (64, None));
    assert_eq!((session.number_state(4), session.in_flight()), (NumberState::Acknowledgement, 1));
    assert_eq!((session.answered(4), session.in_flight()), (ReplyKind::Acknowledgement, 0));
    (4..=6).for_each(|place| _ = send(&mut session, 1, place));
    assert_eq!(command(&session, 7), kept(6, true));
    assert_eq!(session.answered(7), ReplyKind::First);
}

/// A command sent before a refused repeat may have had an effect.
#[test]
fn refused_repeat_tells_of_no_other() {
    let lost = |number| {
        let mut session = open(1);
        assert_eq!((send(&mut session, 1, 1), send(&mut session, 2, 2)), (1, 2));
        assert_eq!(session.answered(1), ReplyKind::First);
        session.refused(number);
        assert!(session.is_lost());
        session.refused_from()
    };
    assert_eq!((lost(1), lost(2), lost(3)), (None, Some(2), Some(3)));
}
