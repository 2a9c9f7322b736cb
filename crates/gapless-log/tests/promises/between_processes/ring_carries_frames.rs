use super::messages::{self, Progress};
use super::peer::{Peer, Place, memory};
use gapless_log::{StreamIdentity, ring};
use gapless_testkit::random::rounds;

fn messages_in_all() -> u64 {
    rounds(20_000, 4_000)
}

fn round_trips() -> u64 {
    rounds(2_000, 400)
}

/// The ring wraps and fills all the time.
const CAPACITY: usize = 8192;

#[test]
fn one_way_with_fragments_in_order() {
    for place in Place::each() {
        let (writer, mut reader) = ring::create(&place.kind("ring"), CAPACITY, StreamIdentity::default()).unwrap();
        let mut peer = Peer::start("publish", &place, &[("ring", reader.fd())]);
        writer.leave_to_peer();
        let mut progress = Progress::default();
        let messages = messages_in_all();
        while progress.message < messages {
            if !progress.take(&mut reader) {
                peer.wait_a_little();
            }
        }
        peer.join();
        assert!(reader.is_writer_closed());
        assert_eq!(reader.next_length().unwrap(), None);
    }
}

pub fn publish() {
    let mut writer = memory(0).writer().unwrap();
    for message in 0..messages_in_all() {
        messages::publish(&mut writer, message);
    }
}

#[test]
fn back_and_forth() {
    for place in Place::each() {
        let new_ring = |name| ring::create(&place.kind(name), CAPACITY, StreamIdentity::default()).unwrap();
        let ((mut ping, pinged), (pong, mut ponged)) = (new_ring("ping"), new_ring("pong"));
        let mut peer = Peer::start("echo", &place, &[("ping", ping.fd()), ("pong", pong.fd())]);
        pinged.leave_to_peer();
        pong.leave_to_peer();
        let mut progress = Progress::default();
        for message in 0..round_trips() {
            messages::publish(&mut ping, message);
            while progress.message == message {
                if !progress.take(&mut ponged) {
                    peer.wait_a_little();
                }
            }
        }
        drop(ping);
        peer.join();
        assert!(ponged.is_writer_closed());
    }
}

pub fn echo() {
    let mut reader = memory(0).reader().unwrap();
    let mut writer = memory(1).writer().unwrap();
    loop {
        let is_last_look = reader.is_writer_closed();
        match reader.next_length().unwrap() {
            Some(length) => {
                let space = writer.claim(length).unwrap();
                reader.copy(space);
                writer.commit(length);
                assert!(!writer.publish());
                reader.advance(length);
                reader.release();
            }
            None if is_last_look => return,
            None => std::thread::yield_now(),
        }
    }
}
