//! Questions for the outcomes of commands over reconnections.

use super::reconnecting::Server;
use super::*;
use crate::CommandNumber;

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
    until("the question", || client.waiting() == 0);
    server.disconnect();
    server.sessions.lock().unwrap().is_mute = false;
    assert_eq!(patient.join().unwrap(), Ok(3));
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
