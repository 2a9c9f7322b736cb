use super::messages::fragment;
use super::peer::{Peer, Place, memory};
use gapless_log::{FreeRead, StreamIdentity, WindowOptions};
use gapless_wire::Frame;

const SEQUENCES: u64 = 50_000;
const IDENTITY: StreamIdentity = StreamIdentity { stream_id: 77, incarnation: 2 };

#[test]
fn while_the_writer_laps_it() {
    for place in Place::each() {
        let options = WindowOptions {
            memory: place.kind("window"),
            capacity_bytes: 16 << 10,
            index_slots: 64,
            frame_length_max: 1024,
            identity: IDENTITY,
        };
        let (mut writer, mut releaser) = options.create(1).unwrap();
        let mut peer = Peer::start("read the window", &place, &[("window", writer.window().fd())]);
        for sequence in 1..=SEQUENCES {
            writer.append(&fragment(sequence, 0, sequence), sequence).unwrap();
            writer.publish();
            releaser.release(writer.tail(), sequence);
            if sequence % 64 == 0 {
                peer.wait_a_little();
            }
        }
        peer.join();
    }
}

pub fn read() {
    let window = memory(0).window().unwrap();
    assert_eq!(window.identity(), IDENTITY);
    let mut cursor = window.free_cursor(1);
    let mut copy = Vec::new();
    while cursor.sequence() <= SEQUENCES {
        let due = cursor.sequence();
        match cursor.read(&mut copy).unwrap() {
            FreeRead::Frame(length) => {
                Frame::parse(&copy).unwrap().verify().unwrap();
                assert_eq!(copy, fragment(due, 0, due)[..length]);
            }
            FreeRead::Empty => std::thread::yield_now(),
            FreeRead::Lapped { from_sequence } => {
                assert_eq!(from_sequence, due);
                cursor.seek(window.released_sequence().max(due));
            }
        }
    }
}
