//! A client that never reads fills its reply ring; others are served as before, and it gets all replies in order when
//! it reads.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::attacked::*;
use gapless_client::polled::ClientOptions;
use gapless_client::{ClientError, Incoming, PolledClient};
use gapless_log::LogError;
use gapless_transport::RingSizes;
use std::time::{Duration, Instant};

#[test]
fn slow_client_gets_all_replies() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let node = start(options(place));
    let link = RingSizes { command_ring_bytes: 1 << 16, reply_ring_bytes: 1 << 14 };
    let slow_options = ClientOptions { link, timeout: PATIENCE, ..ClientOptions::default() };
    let mut slow = PolledClient::connect(place.join("node.socket"), slow_options).unwrap();
    let slow_key = slow.open_session(5, 64).unwrap();
    let numbers: Vec<u64> = (0..64).map(|_| send(&mut slow, slow_key, FILL, &2000u32.to_le_bytes())).collect();

    // 64 replies of 2,000 bytes exceed 16 KiB.
    let mut quick = connect(place);
    let key = quick.open_session(6, 8).unwrap();
    let before = add(&mut quick, key, 0);
    let mut last = before;
    for _ in 0..2000 {
        last = add(&mut quick, key, 1);
    }
    assert!(last >= before + 2000);

    let deadline = Instant::now() + PATIENCE;
    let mut answered = Vec::new();
    while answered.len() < numbers.len() {
        slow.poll(1, |incoming| {
            if let Incoming::Reply { reply, first, .. } = incoming {
                assert!(first && reply.refusal.is_none() && reply.payload.len() == 2000);
                answered.push(reply.session_seq);
            }
        })
        .unwrap();
        slow.wait(Duration::from_millis(10)).unwrap();
        assert!(Instant::now() < deadline, "{} of {} replies came", answered.len(), numbers.len());
    }
    assert_eq!(answered, numbers, "in order");
    assert_eq!(slow.in_flight(slow_key), 0);
    node.stop().unwrap();
}

#[test]
fn late_reader_misses_no_reply() {
    const SESSIONS: usize = 70_000;
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let node = start(options(place));
    let link = RingSizes { command_ring_bytes: 1 << 20, reply_ring_bytes: 1 << 14 };
    let late_options = ClientOptions { link, timeout: PATIENCE, ..ClientOptions::default() };
    let mut late = PolledClient::connect(place.join("node.socket"), late_options).unwrap();
    let deadline = Instant::now() + PATIENCE;
    let until_there_is_room = |attempt: &mut dyn FnMut() -> Result<(), ClientError>| {
        while let Err(error) = attempt() {
            assert!(matches!(error, ClientError::Log(LogError::Full { .. })), "{error}");
            assert!(Instant::now() < deadline, "the ring stays full");
            std::thread::yield_now();
        }
    };
    let mut keys = Vec::new();
    for token in 1..=SESSIONS as u128 {
        until_there_is_room(&mut || late.begin_session(token, 1).map(|key| keys.push(key)));
    }
    let (mut opened, mut replies) = (0, 0);
    while opened < SESSIONS {
        assert!(Instant::now() < deadline, "{opened} of {SESSIONS} sessions are open");
        late.poll(1_000, |incoming| opened += usize::from(matches!(incoming, Incoming::Opened { .. }))).unwrap();
    }
    for key in keys {
        until_there_is_room(&mut || {
            let sent = late.send(key, message(ADD), 1, |buffer| {
                buffer[0] = 1;
                Ok(1)
            });
            sent.map(|_| ())
        });
    }
    while replies < SESSIONS {
        assert!(Instant::now() < deadline, "{replies} of {SESSIONS} replies have come");
        late.poll(1_000, |incoming| replies += usize::from(matches!(incoming, Incoming::Reply { first: true, .. })))
            .unwrap();
    }
    node.stop().unwrap();
}
