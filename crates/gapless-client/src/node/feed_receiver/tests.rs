//! With any faults of the packets, the frames are read once, in order and complete.

use super::*;
use gapless_wire::mark;
use gapless_wire::mold::{PacketWriter, end_of_session, heartbeat};
use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH};
use proptest::prelude::*;

const PATIENCE_NS: u64 = 50_000;

fn name(text: &str) -> FeedSession {
    FeedSession::new(text).unwrap()
}

fn feed(text: &str, first_sequence: u64) -> Feed {
    Feed { name: name(text), first_sequence, last_sequence: None }
}

fn frame_of(kind: Kind, sequence: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; aligned_length(HEADER_LENGTH + payload.len())];
    let mut writer = FrameWriter::new(&mut bytes);
    writer.payload_mut()[..payload.len()].copy_from_slice(payload);
    let length = writer.finish(&FrameHeader { kind, sequence, ..FrameHeader::default() }, payload.len());
    bytes.truncate(length);
    bytes
}

fn event(sequence: u64) -> Vec<u8> {
    frame_of(Kind::Event, sequence, &vec![sequence as u8; sequence as usize % 50])
}

fn mark_frame(sequence: u64, mark: Mark<'_>) -> Vec<u8> {
    let mut payload = [0; mark::LENGTH_MAX];
    let length = mark.write_to(&mut payload);
    frame_of(Kind::Mark, sequence, &payload[..length])
}

fn packet(name: FeedSession, number: u64, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![0; 1400];
    let mut writer = PacketWriter::new(&mut bytes, name, number);
    frames.iter().for_each(|frame| assert!(writer.push(frame)));
    let length = writer.finish();
    bytes.truncate(length);
    bytes
}

fn events(name: FeedSession, sequences: std::ops::Range<u64>) -> Vec<u8> {
    packet(name, sequences.start, &sequences.map(event).collect::<Vec<_>>())
}

fn read(receiver: &mut FeedReceiver) -> Vec<u64> {
    let mut sequences = Vec::new();
    while let Some(frame) = receiver.next_frame() {
        frame.verify().unwrap();
        sequences.push(frame.sequence());
    }
    sequences
}

fn receiver() -> FeedReceiver {
    FeedReceiver::new(FeedReceiverOptions::default(), Some(feed("A", 1)), 1)
}

#[test]
fn gaps_are_requested() {
    let (mut receiver, a) = (receiver(), name("A"));
    receiver.take_packet(&events(a, 1..4), 0);
    receiver.take_packet(&events(a, 6..8), 10);
    assert_eq!(read(&mut receiver), [1, 2, 3]);
    assert_eq!(receiver.missing(), 2);
    assert_eq!(receiver.due_request(10 + PATIENCE_NS - 1), None, "it may only be late");
    let request = receiver.due_request(10 + PATIENCE_NS).unwrap();
    assert_eq!(request, MoldRequest { feed_session: a, sequence: 4, count: 2 });
    assert_eq!(receiver.due_request(10 + PATIENCE_NS + 1), None, "asked once");
    assert!(receiver.due_request(10 + PATIENCE_NS + 2_000_000).is_some(), "and again");
    receiver.take_packet(&events(a, 4..6), 20);
    receiver.take_packet(&events(a, 4..6), 20);
    assert_eq!(read(&mut receiver), [4, 5, 6, 7]);
    assert_eq!((receiver.missing(), receiver.due_request(1 << 40)), (0, None));
    assert_eq!(receiver.counts().packets_doubled, 1);
}

#[test]
fn heartbeat_reveals_loss_at_the_end() {
    let (mut receiver, a) = (receiver(), name("A"));
    let mut bytes = [0; 20];
    heartbeat(&mut bytes, a, 4);
    receiver.take_packet(&bytes, 0);
    assert_eq!((receiver.missing(), receiver.released_sequence()), (3, 3));
    assert_eq!(receiver.due_request(PATIENCE_NS).unwrap().count, 3);
    heartbeat(&mut bytes, a, 2);
    receiver.take_packet(&bytes, 0);
    assert_eq!(receiver.missing(), 1, "the next heartbeat corrects it");
}

#[test]
fn forged_heartbeats_have_no_effect() {
    let (mut receiver, a) = (receiver(), name("A"));
    receiver.take_packet(&events(a, 1..11), 0);
    for end in [1 << 60, (1 << 60) + 10, u64::MAX, 2_011, 4_000, 6_000] {
        receiver.take_packet(&beat(a, end), 0);
        receiver.take_packet(&ended(a, end), 0);
        assert_eq!((receiver.missing(), receiver.released_sequence()), (0, 10), "{end}");
    }
    // A chain of small steps must not work either.
    for step in 1..100 {
        receiver.take_packet(&beat(a, 11 + step * 1_999), 0);
        assert!(receiver.missing() < 2_000 && !receiver.wants_rewind(), "{step}");
    }
    receiver.take_packet(&beat(a, 11), 0);
    assert_eq!(receiver.missing(), 0, "a genuine heartbeat corrects it");
    assert_eq!((receiver.counts().claims_doubted, receiver.counts().claims_refuted), (110, 0));
    // Number and count of a packet are as unprotected as a heartbeat while its frames are not read.
    let options = FeedReceiverOptions { waiting_bytes_max: 100, ..FeedReceiverOptions::default() };
    let mut full = FeedReceiver::new(options, Some(feed("A", 1)), 1);
    full.take_packet(&events(a, 1..4), 0);
    full.take_packet(&events(a, 1 << 50..(1 << 50) + 2), 0);
    assert_eq!((full.counts().packets_dropped, full.missing()), (1, 0));
}

#[test]
fn far_heartbeat_needs_confirmation() {
    let (mut receiver, a) = (receiver(), name("A"));
    receiver.take_packet(&beat(a, 5_001), 0);
    assert!(receiver.has_unconfirmed_end() && receiver.missing() == 0);
    assert_eq!(receiver.set_feed(feed("A", 1), 100), None);
    assert!(receiver.has_unconfirmed_end());
    receiver.note_probe();
    assert_eq!(receiver.set_feed(feed("A", 1), 5_000), None);
    assert!(!receiver.has_unconfirmed_end() && receiver.wants_rewind());
    assert_eq!((receiver.missing(), receiver.counts().claims_refuted), (5_000, 0));
    receiver.take_packet(&beat(a, 1 << 40), 0);
    receiver.take_packet(&beat(a, 1 << 41), 0);
    receiver.note_probe();
    assert_eq!(receiver.set_feed(feed("A", 1), 5_000), Some((1 << 40) - 1));
    assert!(!receiver.has_unconfirmed_end());
    assert_eq!((receiver.missing(), receiver.counts().claims_refuted), (5_000, 1));
    receiver.take_packet(&beat(a, 9_003), 0);
    receiver.take_packet(&events(a, 9_000..9_003), 0);
    assert!(!receiver.has_unconfirmed_end() && receiver.released_sequence() == 9_002);
}

/// A late node in a feed whose own packets hold one frame each.
#[test]
fn large_gap_filled_by_full_packets() {
    const MISSING: u64 = 10_000;
    const FRAMES_PER_ANSWER: u64 = 12;
    let a = name("A");
    let mut receiver = receiver();
    receiver.set_feed(feed("A", 1), MISSING);
    let (mut end, mut requests, mut rounds) = (MISSING + 1, 0, 0);
    receiver.take_packet(&events(a, end..end + 1), 0);
    end += 1;
    // Time stands still, so no request is repeated for lack of an answer.
    let now_ns = PATIENCE_NS;
    while receiver.missing() > 0 {
        let asked: Vec<_> = std::iter::from_fn(|| receiver.due_request(now_ns)).collect();
        assert!(!asked.is_empty(), "it waits at {}", receiver.next_sequence());
        receiver.take_packet(&events(a, end..end + 1), now_ns);
        end += 1;
        for MoldRequest { sequence, count, .. } in &asked {
            let until = (sequence + FRAMES_PER_ANSWER.min(u64::from(*count))).min(end);
            receiver.take_packet(&events(a, *sequence..until), now_ns);
        }
        requests += asked.len();
        rounds += 1;
        read(&mut receiver);
    }
    assert_eq!(receiver.next_sequence(), end);
    assert!(rounds < 80, "{rounds} rounds");
    assert!((requests as u64) < MISSING / FRAMES_PER_ANSWER * 3 / 2, "{requests} requests");
}

/// The rest of an answer comes in further packets, of which the last is short.
#[test]
fn short_last_packet_is_no_measure() {
    const MISSING: u64 = 10_000;
    let a = name("A");
    let mut receiver = receiver();
    receiver.set_feed(feed("A", 1), MISSING);
    receiver.take_packet(&events(a, MISSING + 1..MISSING + 2), 0);
    let (mut requests, mut rooms) = (0, [12, 9].into_iter().cycle());
    while receiver.missing() > 0 {
        let asked: Vec<_> = std::iter::from_fn(|| receiver.due_request(PATIENCE_NS)).collect();
        assert!(!asked.is_empty(), "it waits at {}", receiver.next_sequence());
        requests += asked.len();
        for MoldRequest { sequence, count, .. } in asked {
            let (mut first, end) = (sequence, sequence + u64::from(count));
            while first < end {
                let until = (first + rooms.next().unwrap()).min(end);
                receiver.take_packet(&events(a, first..until), PATIENCE_NS);
                first = until;
            }
        }
        read(&mut receiver);
    }
    assert_eq!(receiver.next_sequence(), MISSING + 2);
    assert!(requests < 2_000, "{requests} requests");
}

#[test]
fn next_session_found_at_first_frame() {
    let (mut receiver, a, b) = (receiver(), name("A"), name("B"));
    let ended = mark_frame(3, Mark::FeedEnded { feed_session: a });
    let began = mark_frame(4, Mark::FeedBegan { feed_session: b });
    receiver.take_packet(&events(a, 1..3), 0);
    receiver.take_packet(&packet(b, 1, std::slice::from_ref(&began)), 0);
    assert_eq!(receiver.counts().packets_foreign, 1, "the end of the old one is not there yet");
    let mut bytes = [0; 20];
    end_of_session(&mut bytes, a, 4);
    receiver.take_packet(&bytes, 0);
    assert_eq!(receiver.due_request(PATIENCE_NS).unwrap(), MoldRequest { feed_session: a, sequence: 3, count: 1 });
    receiver.take_packet(&packet(a, 3, &[ended]), 0);
    assert_eq!(receiver.feed(), None);
    receiver.take_packet(&packet(b, 2, &[event(5)]), 0);
    assert!(receiver.is_lost(), "a node that missed the beginning must ask");
    receiver.set_feed(feed("B", 4), 5);
    receiver.take_packet(&packet(b, 2, &[event(5)]), 0);
    receiver.take_packet(&packet(b, 1, &[began]), 0);
    assert_eq!(read(&mut receiver), [1, 2, 3, 4, 5]);
    assert!(!receiver.is_lost());
}

fn ended(name: FeedSession, number: u64) -> [u8; 20] {
    let mut bytes = [0; 20];
    end_of_session(&mut bytes, name, number);
    bytes
}

fn beat(name: FeedSession, number: u64) -> [u8; 20] {
    let mut bytes = [0; 20];
    heartbeat(&mut bytes, name, number);
    bytes
}

#[test]
fn old_session_end_is_ignored() {
    let (mut receiver, a, b) = (receiver(), name("A"), name("B"));
    let end = packet(a, 3, &[mark_frame(3, Mark::FeedEnded { feed_session: a })]);
    receiver.take_packet(&events(a, 1..3), 0);
    receiver.take_packet(&end, 0);
    let say_again = |receiver: &mut FeedReceiver| {
        for _ in 0..30 {
            for packet in [&ended(a, 4)[..], &beat(a, 4), &events(a, 1..3), &end] {
                receiver.take_packet(packet, 0);
            }
            assert!(!receiver.is_lost(), "there is nothing to ask the sequencer");
        }
        assert_eq!((receiver.counts().packets_foreign, receiver.missing()), (0, 0));
    };
    say_again(&mut receiver);
    assert_eq!(receiver.feed(), None);
    receiver.take_packet(&packet(b, 1, &[mark_frame(4, Mark::FeedBegan { feed_session: b }), event(5)]), 0);
    assert_eq!(receiver.feed().unwrap().name, b);
    say_again(&mut receiver);
    receiver.take_packet(&packet(b, 3, &[event(6)]), 0);
    assert_eq!(read(&mut receiver), [1, 2, 3, 4, 5, 6]);
    receiver.take_packet(&packet(b, 4, &[mark_frame(7, Mark::FeedEnded { feed_session: b })]), 0);
    receiver.take_packet(&packet(b, 1, &[mark_frame(8, Mark::FeedBegan { feed_session: b }), event(9)]), 0);
    assert_eq!(read(&mut receiver), [7, 8, 9]);
}

#[test]
fn forged_session_end_is_ignored() {
    let (mut receiver, a) = (receiver(), name("A"));
    receiver.take_packet(&events(a, 1..3), 0);
    for (which, number) in [(a, 0), (a, 1), (a, 3), (a, 1 << 40), (a, u64::MAX), (name("B"), 1), (name("B"), 3)] {
        receiver.take_packet(&ended(which, number), 0);
        assert_eq!((receiver.feed().unwrap().name, receiver.next_sequence()), (a, 3));
        assert!(receiver.missing() == 0 && !receiver.is_lost(), "{which} {number}");
    }
    let counts = receiver.counts();
    assert_eq!((counts.packets_foreign, counts.packets_damaged), (2, 1));
    receiver.take_packet(&events(a, 3..6), 0);
    assert_eq!(read(&mut receiver), [1, 2, 3, 4, 5]);
}

#[test]
fn damaged_and_foreign_are_counted() {
    let (mut receiver, a) = (receiver(), name("A"));
    let good = events(a, 1..4);
    receiver.take_packet(&events(name("OTHER"), 1..4), 0);
    assert_eq!(receiver.counts().packets_foreign, 1);
    for position in 0..good.len() {
        let mut damaged = good.clone();
        damaged[position] ^= 0x40;
        receiver.take_packet(&damaged, 0);
    }
    for length in 0..good.len() {
        receiver.take_packet(&good[..length], 0);
    }
    // Another sender under our feed session's name, with a different sequence inside.
    receiver.take_packet(&packet(a, receiver.next_sequence(), &[event(77)]), 0);
    let counts = *receiver.counts();
    receiver.take_packet(&good, 0);
    assert_eq!(read(&mut receiver), [1, 2, 3]);
    assert!(counts.packets_damaged > 300, "{counts:?}");
}

#[test]
fn early_frames_are_bounded() {
    let options = FeedReceiverOptions { waiting_bytes_max: 1_000, ..FeedReceiverOptions::default() };
    let mut receiver = FeedReceiver::new(options, Some(feed("A", 1)), 1);
    for first in (10..1000).step_by(3) {
        receiver.take_packet(&events(name("A"), first..first + 3), 0);
    }
    assert!(receiver.counts().packets_dropped > 100 && receiver.waiting_bytes <= 1_000);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_packet_faults_leave_no_gap(
        sizes in prop::collection::vec(1u64..6, 1..60),
        fates in prop::collection::vec((any::<u8>(), any::<prop::sample::Index>()), 1..200),
    ) {
        let (mut receiver, a) = (receiver(), name("A"));
        let mut packets = Vec::new();
        let mut first = 1;
        for size in sizes {
            packets.push(first..first + size);
            first += size;
        }
        let mut now_ns = 0;
        let mut met = Vec::new();
        for (fate, index) in fates {
            now_ns += 100_000;
            let range = packets[index.index(packets.len())].clone();
            match fate % 4 {
                0 => {}
                1 => receiver.take_packet(&events(a, range), now_ns),
                2 => {
                    receiver.take_packet(&events(a, range.clone()), now_ns);
                    receiver.take_packet(&events(a, range), now_ns);
                }
                _ => {
                    if let Some(request) = receiver.due_request(now_ns) {
                        let end = (request.sequence + 3).min(request.sequence + u64::from(request.count)).min(first);
                        if end > request.sequence {
                            receiver.take_packet(&events(a, request.sequence..end), now_ns);
                        }
                    }
                }
            }
            met.extend(read(&mut receiver));
        }
        let mut bytes = [0; 20];
        heartbeat(&mut bytes, a, first);
        receiver.take_packet(&bytes, now_ns);
        for _ in 0..2_000 {
            now_ns += 1 << 28;
            while let Some(request) = receiver.due_request(now_ns) {
                prop_assert!(request.sequence < first, "only announced messages are requested");
                receiver.take_packet(&events(a, request.sequence..(request.sequence + 2).min(first)), now_ns);
            }
            met.extend(read(&mut receiver));
        }
        prop_assert_eq!(met, (1..first).collect::<Vec<_>>());
    }
}
