//! A client that sends and never reads: its ring to it fills up, the others are served as before, and
//! its replies are there when it reads at last, all of them and in order.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::attacked::*;
use gapless_client::client::ClientOptions;
use gapless_client::{Client, Incoming};
use gapless_transport::RingSizes;
use std::time::{Duration, Instant};

#[test]
fn its_replies_wait_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let node = start(options(place));
    let link = RingSizes { command_ring_bytes: 1 << 16, reply_ring_bytes: 1 << 14 };
    let slow_options = ClientOptions { link, timeout: PATIENCE, ..ClientOptions::default() };
    let mut slow = Client::connect(place.join("node.socket"), slow_options).unwrap();
    let slow_key = slow.open_session(5, 64).unwrap();
    let numbers: Vec<u64> = (0..64).map(|_| send(&mut slow, slow_key, FILL, &2000u32.to_le_bytes())).collect();

    // 64 replies of 2,000 bytes do not fit 16 KiB. Meanwhile the others.
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
