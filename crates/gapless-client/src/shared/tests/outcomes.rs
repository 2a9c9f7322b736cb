//! Questions for the outcomes of commands over reconnections.

use super::reconnecting::Server;
use super::*;
use crate::CommandNumber;
use std::future::Future as _;
use std::task::{Context, Waker};

const SOON: Duration = Duration::from_millis(20);

/// A command without a reply.
fn unknown(client: &Client, length: usize) -> CommandNumber {
    let end = client.call(Bytes(vec![7; length])).within(SOON);
    match block_on(end) {
        Err(CallError::Unknown { number, .. }) => number,
        other => panic!("{other:?}"),
    }
}

#[test]
fn outcome_of_a_command_in_flight_arrives() {
    let server = Server::start(1 << 16);
    let client = server.client(2);
    (0..2).for_each(|_| assert_eq!(block_on(client.call(Bytes(vec![7]))), Ok(1)));
    server.sessions.lock().unwrap().is_mute = true;
    let number = unknown(&client, 5);
    let again = block_on(client.outcome::<Bytes>(number).within(SOON)).unwrap_err();
    assert!(matches!(again, CallError::Unknown { number: of, .. } if of == number), "{again}");
    let (first, second) = (client.outcome::<Bytes>(number), blocking::Client::from(client.clone()));
    let (first, second) = std::thread::scope(|scope| {
        let second = scope.spawn(|| second.outcome::<Bytes>(number));
        server.sessions.lock().unwrap().is_mute = false;
        server.disconnect();
        (block_on(first), second.join().unwrap())
    });
    assert_eq!((first, second), (Ok(5), Ok(5)));
}

#[test]
fn outcome_is_asked_for_on_each_connection() {
    let server = Server::start(1 << 16);
    let client = server.client(1);
    assert_eq!(block_on(client.call(Bytes(vec![7; 3]))), Ok(3));
    let number = CommandNumber { session: SESSION, session_seq: 1 };
    assert_eq!(block_on(client.outcome::<Bytes>(number)), Ok(3));
    server.sessions.lock().unwrap().is_mute = true;
    let mut outcome = Box::pin(client.outcome::<Bytes>(number).within(SOON));
    let late = block_on(outcome.as_mut()).unwrap_err();
    assert_eq!(late.took_effect(), None, "{late}");
    let patient = std::thread::spawn({
        let client = client.clone();
        move || block_on(client.outcome::<Bytes>(number))
    });
    until("two questions", || server.sessions.lock().unwrap().ignored >= 2);
    server.disconnect();
    server.sessions.lock().unwrap().is_mute = false;
    assert_eq!(patient.join().unwrap(), Ok(3));
}

#[test]
fn outcome_is_asked_for_again() {
    let server = Server::start(1 << 16);
    let client = server.client(1);
    assert_eq!(block_on(client.call(Bytes(vec![7; 3]))), Ok(3));
    let number = CommandNumber { session: SESSION, session_seq: 1 };
    for has_helper in [false, true] {
        let ignored = {
            let mut sessions = server.sessions.lock().unwrap();
            sessions.is_mute = true;
            sessions.ignored
        };
        let outcome = client.outcome::<Bytes>(number);
        let asked = std::thread::spawn(move || if has_helper { block_on(outcome) } else { outcome.wait() });
        until("a question", || server.sessions.lock().unwrap().ignored > ignored);
        server.sessions.lock().unwrap().is_mute = false;
        assert_eq!(asked.join().unwrap(), Ok(3));
    }
    assert_eq!(server.connections(), 1);
}

/// More than wait at the same time.
#[test]
fn abandoned_questions_make_room() {
    let server = Server::start(1 << 16);
    let client = server.client(1);
    assert_eq!(block_on(client.call(Bytes(vec![7; 3]))), Ok(3));
    let number = CommandNumber { session: SESSION, session_seq: 1 };
    server.sessions.lock().unwrap().is_mute = true;
    let mut context = Context::from_waker(Waker::noop());
    let mut asked: Vec<_> = (0..1_500).map(|_| Box::pin(client.outcome::<Bytes>(number))).collect();
    assert!(asked.iter_mut().all(|outcome| outcome.as_mut().poll(&mut context).is_pending()));
    assert!(client.waiting() > 0, "not all have a place");
    drop(asked);
    server.sessions.lock().unwrap().is_mute = false;
    assert_eq!(block_on(client.outcome::<Bytes>(number)), Ok(3));
}

/// The number may stand for another command, which has an effect.
#[test]
fn outcome_of_a_former_incarnation_is_unknown() {
    let server = Server::start(1 << 16);
    let client = server.client(1);
    assert_eq!(block_on(client.call(Bytes(vec![7; 3]))), Ok(3));
    server.sessions.lock().unwrap().is_mute = true;
    let number = unknown(&client, 4);
    assert_eq!(number, CommandNumber { session: SESSION, session_seq: 2 });
    server.be_restored();
    for length in 5..9 {
        until("a new session", || block_on(client.call(Bytes(vec![7; length]))) == Ok(length as u64));
    }
    let outcome = block_on(client.outcome::<Bytes>(number)).unwrap_err();
    assert!(matches!(outcome, CallError::Unknown { number: of, .. } if of == number), "{outcome}");
    let later = CommandNumber { session_seq: 4, ..number };
    assert_eq!(block_on(client.outcome::<Bytes>(later)), Ok(8), "a number of the new session alone");
}

/// The refusal of a question overtakes the replies of earlier commands.
#[test]
fn refused_question_repeats_no_command() {
    let server = Server::start(1 << 16);
    let client = server.client(1);
    assert_eq!(block_on(client.call(Bytes(vec![7]))), Ok(1));
    server.sessions.lock().unwrap().holds = true;
    let sent = client.start(Bytes(vec![7; 9]));
    until("an effect", || server.sessions.lock().unwrap().effects.len() == 1);
    server.sessions.lock().unwrap().open.clear();
    let number = CommandNumber { session: SESSION, session_seq: 1 };
    assert!(matches!(block_on(client.outcome::<Bytes>(number)), Err(CallError::Unknown { .. })));
    assert!(matches!(block_on(sent), Err(CallError::Unknown { .. })));
    server.sessions.lock().unwrap().holds = false;
    until("another session", || block_on(client.call(Bytes(vec![7]))) == Ok(1));
    assert_eq!(server.sessions.lock().unwrap().effects.len(), 1);
}

#[test]
fn outcomes_of_no_command_are_told_apart() {
    let server = Server::start(1 << 16);
    let client = server.client(1);
    assert_eq!(block_on(client.call(Bytes(vec![7; 3]))), Ok(3));
    let unsent = block_on(client.outcome::<Bytes>(CommandNumber { session: SESSION, session_seq: 9 })).unwrap_err();
    assert!(matches!(unsent, CallError::NotSent { .. }), "{unsent}");
    let number = CommandNumber { session: 7, session_seq: 1 };
    let foreign = block_on(client.outcome::<Bytes>(number)).unwrap_err();
    assert!(matches!(foreign, CallError::Unknown { number: of, .. } if of == number), "{foreign}");
    server.sessions.lock().unwrap().is_mute = true;
    let number = unknown(&client, 1);
    server.sessions.lock().unwrap().open.clear();
    let asked = std::thread::spawn({
        let client = client.clone();
        move || block_on(client.outcome::<Bytes>(number))
    });
    until("the question", || client.waiting() == 0);
    server.disconnect();
    let lost = asked.join().unwrap().unwrap_err();
    assert!(matches!(lost, CallError::Unknown { number: of, .. } if of == number), "{lost}");
}
