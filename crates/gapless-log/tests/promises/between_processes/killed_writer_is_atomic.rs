use super::messages::{self, Progress, fragment};
use super::peer::{Peer, Place, memory};
use gapless_log::{StreamIdentity, ring};

const CAPACITY: usize = 16 << 10;
const KILLS: u64 = 20;

#[test]
fn killed_under_load() {
    for place in Place::each() {
        for round in 0..KILLS {
            let (writer, mut reader) = ring::create(&place.kind("ring"), CAPACITY, StreamIdentity::default()).unwrap();
            writer.leave_to_peer();
            let mut peer = Peer::start("publish for ever", &place, &[("ring", reader.fd())]);
            let mut progress = Progress::default();
            // Anywhere in a message, with the ring full or not.
            while progress.message < 1 + round * 37 {
                if !progress.take(&mut reader) {
                    peer.wait_a_little();
                }
            }
            peer.kill();
            while progress.take(&mut reader) {}
            assert_eq!(progress.index, 0, "half a message is visible");
            assert!(!reader.is_writer_closed(), "it was killed before closing");
            let mut writer = place.reopen("ring", reader.fd()).writer().unwrap();
            let next = progress.message;
            messages::publish(&mut writer, next);
            while progress.take(&mut reader) {}
            assert_eq!(progress, Progress { message: next + 1, index: 0 });
        }
    }
}

pub fn publish_for_ever() {
    let mut writer = memory(0).writer().unwrap();
    for message in 0.. {
        messages::publish(&mut writer, message);
    }
}

#[test]
fn killed_between_write_and_publish() {
    for place in Place::each() {
        let (writer, mut reader) = ring::create(&place.kind("ring"), CAPACITY, StreamIdentity::default()).unwrap();
        let (signal, mut signalled) = ring::create(&place.kind("signal"), CAPACITY, StreamIdentity::default()).unwrap();
        let mut peer = Peer::start("stop in mid-write", &place, &[("ring", writer.fd()), ("signal", signal.fd())]);
        writer.leave_to_peer();
        signal.leave_to_peer();
        while signalled.next_length().unwrap().is_none() {
            peer.wait_a_little();
        }
        peer.kill();
        let mut progress = Progress::default();
        while progress.take(&mut reader) {}
        assert_eq!(progress, Progress { message: 1, index: 0 });
        let mut writer = place.reopen("ring", reader.fd()).writer().unwrap();
        messages::publish(&mut writer, 1);
        while progress.take(&mut reader) {}
        assert_eq!(progress, Progress { message: 2, index: 0 });
    }
}

/// Killed between write and publish: one and a half fragments of message 2 must not become visible.
pub fn stop_in_mid_write() {
    let mut writer = memory(0).writer().unwrap();
    messages::publish(&mut writer, 0);
    writer.append(&fragment(2, 0, 0)).unwrap();
    writer.claim(512).unwrap()[..256].fill(0xff);
    messages::publish(&mut memory(1).writer().unwrap(), 0);
    loop {
        std::thread::park();
    }
}
