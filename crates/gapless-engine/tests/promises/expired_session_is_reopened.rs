//! An expired session is reported by poll, call and send, and its token opens a new one on the same client.

use crate::attacked::{ADD, PATIENCE, call, connect, message, options, start};
use gapless_client::ClientError;
use gapless_client::{Incoming, PolledClient, SessionKey};
use gapless_engine::ServiceHostOptions;
use std::path::Path;
use std::time::{Duration, Instant};

fn of_short_sessions(directory: &Path) -> ServiceHostOptions {
    ServiceHostOptions { session_expiry: Duration::from_millis(50), ..options(directory) }
}

fn expire(client: &mut PolledClient, session: SessionKey) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        std::thread::sleep(Duration::from_millis(200));
        match call(client, session, ADD, &[1]) {
            Ok(_) => assert!(Instant::now() < deadline, "the session never expires"),
            Err(ClientError::NoSuchSession(lost)) => return assert_eq!(lost, session),
            Err(error) => panic!("{error}"),
        }
    }
}

/// On a slow machine it may expire at once too.
fn open_again(client: &mut PolledClient, lost: SessionKey) -> SessionKey {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let again = client.open_session(7, 4).unwrap();
        assert_ne!(again, lost);
        match call(client, again, ADD, &[1]) {
            Ok(_) => return again,
            Err(ClientError::NoSuchSession(_)) => assert!(Instant::now() < deadline, "no session takes a command"),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn after_a_call() {
    let directory = tempfile::tempdir().unwrap();
    let _node = start(of_short_sessions(directory.path()));
    let mut client = connect(directory.path());
    let mut session = client.open_session(7, 4).unwrap();
    for _ in 0..3 {
        expire(&mut client, session);
        assert!(!client.can_send(session));
        for _ in 0..5 {
            assert!(matches!(call(&mut client, session, ADD, &[1]), Err(ClientError::NoSuchSession(_))));
            let sent = client.send(session, message(ADD), 1, |_| Ok(1));
            assert!(matches!(sent, Err(ClientError::NoSuchSession(lost)) if lost == session), "{sent:?}");
        }
        session = open_again(&mut client, session);
    }
}

#[test]
fn after_a_poll() {
    let directory = tempfile::tempdir().unwrap();
    let _node = start(of_short_sessions(directory.path()));
    let mut client = connect(directory.path());
    let session = client.open_session(7, 4).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let mut lost = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    while lost.is_empty() {
        assert!(Instant::now() < deadline, "the expiry is not reported");
        match client.send(session, message(ADD), 1, |_| Ok(1)) {
            Ok(_) | Err(ClientError::WindowFull { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        let take = |incoming: Incoming<'_>| {
            if let Incoming::SessionLost { session } = incoming {
                lost.push(session);
            }
        };
        client.poll(usize::MAX, take).unwrap();
    }
    assert_eq!(lost[0], session);
    assert_eq!(client.in_flight(session), 0);
    open_again(&mut client, session);
}

#[test]
fn after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let first = start(of_short_sessions(directory.path()));
    let mut client = connect(directory.path());
    let session = client.open_session(7, 4).unwrap();
    expire(&mut client, session);
    let again = open_again(&mut client, session);
    first.stop().unwrap();
    let _second = start(of_short_sessions(directory.path()));
    match call(&mut client, again, ADD, &[1]) {
        Ok(_) => {}
        // The session may have expired meanwhile.
        Err(ClientError::NoSuchSession(lost)) => assert_eq!(lost, again),
        Err(error) => panic!("{error}"),
    }
    open_again(&mut client, session);
}
