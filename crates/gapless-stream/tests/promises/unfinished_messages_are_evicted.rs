//! Memory for unfinished messages is bounded, and held for a bounded time.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::raw_publisher::{Answer, PATIENCE, RawPublisher, event, part};
use gapless_client::node::{NodeEvent, SharedMemoryLink, SharedMemoryOptions, StreamNode, StreamNodeOptions};
use gapless_client::polled::MessageType;
use gapless_client::throttle::Throttle;
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use gapless_wire::Encoding;
use gapless_wire::control::RefusalCode;
use std::time::{Duration, Instant};

const TYPE: MessageType = MessageType { schema: 3 << 16 | 1, encoding: Encoding::Opaque };
const LONG: usize = 16 << 20;
const PAUSE: Duration = Duration::from_micros(200);

fn options() -> EventStreamOptions {
    let mut options = EventStreamOptions::in_memory();
    options.frame_length_max = 8 << 10;
    options.message_length_max = LONG;
    options.fragments_bytes_max = 36 << 20;
    options
}

fn counter(stream: &EventStream, label: &str) -> u64 {
    stream.counters().values().into_iter().find(|(each, _)| each == label).unwrap().1
}

fn node(stream: &EventStream) -> StreamNode<SharedMemoryLink> {
    let link = stream.local_link(SharedMemoryOptions::default()).unwrap();
    StreamNode::new(link, StreamNodeOptions::default())
}

fn first_part(session: u64) -> Vec<u8> {
    let length = 8_000;
    part(session, 1, 0, (LONG / length) as u16, length)
}

#[test]
fn unfinished_message_delays_no_other() {
    let stream = EventStream::start(&options()).unwrap();
    let mut others: Vec<_> = (0..6).map(|_| RawPublisher::connect(&stream)).collect();
    let sessions: Vec<_> = others.iter_mut().enumerate().map(|(index, each)| each.open(100 + index as u128)).collect();
    for (other, session) in others.iter_mut().zip(&sessions) {
        other.send(&first_part(*session));
        // The longest idle one is evicted.
        other.wait_taken();
    }
    let mut honest = [node(&stream), node(&stream), node(&stream)];
    honest.iter_mut().for_each(|node| node.wait_open(PATIENCE).unwrap());
    let payload: Vec<u8> = (0..LONG).map(|index| (index % 251) as u8).collect();
    let (mut begun, mut met) = (Instant::now(), 0);
    for _ in 0..2 {
        for node in &mut honest {
            node.publish(TYPE, &payload).unwrap();
        }
        while honest.iter().any(|node| node.in_flight() > 0) {
            let mut count = 0;
            for node in &mut honest {
                let polled = node.poll(1024, |event| {
                    if let NodeEvent::Message(message) = event {
                        assert!(message.payload == payload);
                        met += 1;
                        begun = Instant::now();
                    }
                });
                count += polled.unwrap();
            }
            if count == 0 {
                std::thread::sleep(PAUSE);
            }
            assert!(begun.elapsed() < PATIENCE, "{met} of 18 came, then none");
        }
    }
    assert!(met >= 16, "{met} came");
    assert!(counter(&stream, "sequencer.messages_evicted") >= 4);
    let (first, session) = (&mut others[0], sessions[0]);
    first.send(&part(session, 2, 1, (LONG / 8_000) as u16, 8_000));
    assert_eq!(first.answer(), Answer::Refused { code: RefusalCode::Gap, session, detail: 1 });
    first.send(&event(session, 1, b"something shorter"));
    drop(others);
    honest[0].publish(TYPE, &payload).unwrap();
    honest[0].poll_until(PATIENCE, "one more", |node| node.in_flight() == 0, |_| {}).unwrap();
    stream.stop().unwrap();
}

/// The nodes of a relay are one connection to the sequencer.
#[test]
fn connection_never_waits_for_itself() {
    let stream = EventStream::start(&options()).unwrap();
    let mut publisher = RawPublisher::connect(&stream);
    let sessions: Vec<_> = (0..3).map(|token| publisher.open(100 + token)).collect();
    for session in &sessions[..2] {
        publisher.send(&first_part(*session));
    }
    publisher.send(&first_part(sessions[2]));
    let session = sessions[2];
    assert_eq!(publisher.answer(), Answer::Refused { code: RefusalCode::Gap, session, detail: 1 });
    let count = (LONG / 8_000) as u16;
    for index in 1..count {
        publisher.send(&part(sessions[0], 1 + u64::from(index), index, count, 8_000));
    }
    let begun = Instant::now();
    while stream.released_sequence() < u64::from(count) {
        assert!(begun.elapsed() < PATIENCE, "the message whose parts are all there is not in the stream");
        std::thread::yield_now();
    }
    for index in 0..count {
        publisher.send(&part(session, 1 + u64::from(index), index, count, 8_000));
    }
    while stream.released_sequence() < 2 * u64::from(count) {
        assert!(begun.elapsed() < PATIENCE, "nor is the other");
        std::thread::yield_now();
    }
    assert_eq!(counter(&stream, "sequencer.messages_evicted"), 0);
    stream.stop().unwrap();
}

#[test]
fn postponed_message_is_recalled() {
    let mut options = options();
    options.message_length_max = 1 << 20;
    options.fragments_bytes_max = 2 << 20;
    let stream = EventStream::start(&options).unwrap();
    let mut publisher = RawPublisher::connect(&stream);
    let sessions: Vec<_> = (0..3).map(|token| publisher.open(100 + token)).collect();
    let (length, count) = (8_000, 120);
    for session in &sessions[..2] {
        publisher.send(&part(*session, 1, 0, count, length));
    }
    let session = sessions[2];
    let whole = |publisher: &mut RawPublisher, session: u64, from: u16| {
        for index in from..count {
            publisher.send(&part(session, 1 + u64::from(index), index, count, length));
        }
    };
    let asked_again = Answer::Refused { code: RefusalCode::Gap, session, detail: 1 };
    whole(&mut publisher, session, 0);
    assert_eq!(publisher.answer(), asked_again);
    publisher.send(&event(session, 1 + u64::from(count), b"behind it"));
    let repeated = event(sessions[1], 9, b"too early");
    publisher.send(&repeated);
    let other = Answer::Refused { code: RefusalCode::Gap, session: sessions[1], detail: 2 };
    assert_eq!(publisher.answer(), other, "only the first refused part is answered");
    whole(&mut publisher, sessions[0], 1);
    assert_eq!(publisher.answer(), asked_again);
    whole(&mut publisher, session, 0);
    whole(&mut publisher, sessions[1], 1);
    let begun = Instant::now();
    while stream.released_sequence() < 3 * u64::from(count) {
        assert!(begun.elapsed() < PATIENCE, "not all of them are in the stream");
        std::thread::yield_now();
    }
    assert_eq!(counter(&stream, "sequencer.messages_evicted"), 0);
    stream.stop().unwrap();
}

#[test]
fn leaving_publishers_message_is_taken() {
    let throttle = Some(Throttle { frames_per_s: 200, burst_frames: 5 });
    let stream = EventStream::start(&EventStreamOptions { throttle, ..options() }).unwrap();
    let mut publisher = RawPublisher::connect(&stream);
    let session = publisher.open(1);
    for number in 1..=100 {
        publisher.send(&event(session, number, b"published whole"));
    }
    drop(publisher);
    let mut reader = node(&stream);
    let (begun, mut met) = (Instant::now(), 0);
    while met < 100 {
        reader.poll(64, |event| met += u64::from(matches!(event, NodeEvent::Message(_)))).unwrap();
        assert!(begun.elapsed() < PATIENCE, "{met} of 100 came");
    }
    stream.stop().unwrap();
}
