//! Commands and replies longer than a frame have their effect once; a duplicate gets the same bytes, also after a
//! restart.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::attacked::*;
use gapless_client::ClientError;
use gapless_client::{Incoming, PolledClient};
use gapless_engine::ServiceHostOptions;
use gapless_transport::Tier;
use std::time::{Duration, Instant};

fn repeated(client: &mut PolledClient, key: gapless_client::SessionKey, number: u64) -> Vec<u8> {
    client.repeat(key, number).unwrap();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut found = None;
        client
            .poll(8, |incoming| {
                if let Incoming::Reply { reply, first, .. } = incoming {
                    assert!(!first && reply.refusal.is_none());
                    assert_eq!(reply.session_seq, number);
                    found = Some(reply.payload.to_vec());
                }
            })
            .unwrap();
        if let Some(payload) = found {
            return payload;
        }
        assert!(Instant::now() < deadline, "no reply to the repeated command");
        client.wait(Duration::from_millis(10)).unwrap();
    }
}

#[test]
fn long_messages_survive_restarts() {
    for (tier, snapshot_on_stop) in [(Tier::Journal, false), (Tier::Journal, true), (Tier::Sync, false)] {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        let restartable = || ServiceHostOptions { tier, snapshot_on_stop, ..options(place) };
        let host = start(restartable());
        let mut client = connect(place);
        let key = client.open_session(5, 8).unwrap();

        let sum = call(&mut client, key, ADD, &vec![1; 100_000]).unwrap();
        assert_eq!(sum.payload, 100_000u64.to_le_bytes());
        let long = call(&mut client, key, FILL, &50_000u32.to_le_bytes()).unwrap();
        let expected = vec![100_001u64 as u8; 50_000];
        assert_eq!(long.payload, expected);
        let (first, second) = (100_000u64.div_ceil(4096 - 64), 100_000u64.div_ceil(4096 - 64) + 1);
        for _ in 0..2 {
            assert_eq!(repeated(&mut client, key, first), 100_000u64.to_le_bytes());
            assert_eq!(repeated(&mut client, key, second), expected);
        }
        host.stop().unwrap();

        let host = start(restartable());
        assert_eq!(host.recovered().snapshot_sequence > 0, snapshot_on_stop);
        client.reconnect().unwrap();
        assert_eq!(repeated(&mut client, key, first), 100_000u64.to_le_bytes());
        assert_eq!(repeated(&mut client, key, second), expected);
        assert_eq!(add(&mut client, key, 1), 100_002, "each command had its effect once");
        host.stop().unwrap();
    }
}

#[test]
fn too_long_command_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let host = start(options(directory.path()));
    let mut client = connect(directory.path());
    let key = client.open_session(5, 8).unwrap();
    match call(&mut client, key, ADD, &vec![1; 2 << 20]) {
        Err(ClientError::TooLong { length_bytes, limit_bytes }) => assert!(length_bytes > limit_bytes),
        other => panic!("expected a refusal, not {other:?}"),
    }
    // A reply above the limit has its own outcome: the command is done.
    match call(&mut client, key, FILL, &(8u32 << 20).to_le_bytes()) {
        Err(ClientError::ReplyTooLong { length_bytes, .. }) => assert_eq!(length_bytes, 8 << 20),
        other => panic!("expected a reply that is too long, not {other:?}"),
    }
    assert_eq!(add(&mut client, key, 2), 3);
    host.stop().unwrap();
}
