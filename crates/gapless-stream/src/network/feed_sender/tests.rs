//! Packets of a feed at the end of a feed session, with a clock moved by hand.

use super::*;
use gapless_agent::Counters;
use gapless_log::{Releaser, Scope, WindowOptions, WindowWriter};
use gapless_wire::mark;
use gapless_wire::mold::{MoldPacket, PacketContent};
use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH};
use rustix::fd::BorrowedFd;
use std::io;
use std::sync::{Arc, Mutex};

const SECOND_NS: u64 = 1_000_000_000;

fn name(text: &str) -> FeedSession {
    FeedSession::new(text).unwrap()
}

#[derive(Clone, Default)]
struct Wire {
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Datagrams for Wire {
    fn send(&mut self, _to: Peer, bytes: &[u8], packet_length: usize) -> io::Result<usize> {
        self.sent.lock().unwrap().extend(bytes.chunks(packet_length).map(<[u8]>::to_vec));
        Ok(bytes.len())
    }

    fn send_uneven(&mut self, _to: Peer, mut bytes: &[u8], lengths: &[usize]) -> io::Result<usize> {
        for length in lengths {
            let (packet, rest) = bytes.split_at(*length);
            self.sent.lock().unwrap().push(packet.to_vec());
            bytes = rest;
        }
        Ok(lengths.len())
    }

    fn receive(&mut self, _take: &mut dyn FnMut(Peer, &[u8])) -> io::Result<usize> {
        Ok(0)
    }

    fn local_address(&self) -> Peer {
        "10.0.0.1:1".parse().unwrap()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

struct Stream {
    writer: WindowWriter,
    releaser: Releaser,
    feed: FeedSender<Wire>,
    wire: Wire,
    now_ns: u64,
}

impl Stream {
    fn new(feeds: &Feeds, next_sequence: u64) -> Self {
        let (mut writer, releaser) = WindowOptions::default().create(next_sequence).unwrap();
        let cursor = writer.gating_cursor(Scope::Released);
        let options =
            FeedSenderOptions { groups: vec!["239.0.0.1:1".parse().unwrap()], ..FeedSenderOptions::default() };
        let counters = FeedCounters::add_to(&Counters::in_memory(16).unwrap()).unwrap();
        let wire = Wire::default();
        let feed = FeedSender::new(wire.clone(), cursor, feeds, next_sequence, options, Mailbox::new(4), counters);
        Self { writer, releaser, feed, wire, now_ns: 1 }
    }

    fn append(&mut self, kind: Kind, payload: &[u8]) {
        let sequence = self.writer.last_sequence() + 1;
        let mut frame = vec![0; aligned_length(HEADER_LENGTH + payload.len())];
        let mut writer = FrameWriter::new(&mut frame);
        writer.payload_mut()[..payload.len()].copy_from_slice(payload);
        writer.finish(&FrameHeader { kind, sequence, ..FrameHeader::default() }, payload.len());
        self.writer.append(&frame, sequence).unwrap();
        self.writer.publish();
        self.releaser.release(self.writer.tail(), sequence);
    }

    fn mark(&mut self, mark: Mark<'_>) {
        let mut payload = [0; mark::LENGTH_MAX];
        let length = mark.write_to(&mut payload);
        self.append(Kind::Mark, &payload[..length]);
    }

    fn events(&mut self, count: usize) {
        (0..count).for_each(|_| self.append(Kind::Event, b"something"));
    }

    fn roll_over(&mut self, from: &str, to: &str) {
        self.mark(Mark::FeedEnded { feed_session: name(from) });
        self.mark(Mark::FeedBegan { feed_session: name(to) });
    }

    /// Polls every 1/100 s: feed session, number, count of messages.
    fn take_packets(&mut self, nanoseconds: u64) -> Vec<(String, u64, String)> {
        let end_ns = self.now_ns + nanoseconds;
        loop {
            while self.feed.poll(Now { monotonic_ns: self.now_ns, epoch_ns: 0 }).unwrap() > 0 {}
            if self.now_ns >= end_ns {
                break;
            }
            self.now_ns += SECOND_NS / 100;
        }
        let packets = std::mem::take(&mut *self.wire.sent.lock().unwrap());
        packets.iter().map(|bytes| describe(&MoldPacket::parse(bytes).unwrap())).collect()
    }
}

fn describe(packet: &MoldPacket<'_>) -> (String, u64, String) {
    let what = match &packet.content {
        PacketContent::Heartbeat => "heartbeat".to_owned(),
        PacketContent::EndOfSession => "end".to_owned(),
        PacketContent::Messages(messages) => messages.len().to_string(),
    };
    (packet.feed_session.as_str().to_owned(), packet.sequence, what)
}

fn assert_packets(packets: &[(String, u64, String)], expected: &[(&str, u64, &str)]) {
    let packets: Vec<_> = packets.iter().map(|(name, number, what)| (name.as_str(), *number, what.as_str())).collect();
    assert_eq!(packets, expected);
}

fn monday() -> Stream {
    let mut stream = Stream::new(&Feeds::default(), 1);
    stream.mark(Mark::FeedBegan { feed_session: name("MONDAY") });
    stream.events(2);
    assert_packets(&stream.take_packets(0), &[("MONDAY", 1, "3")]);
    stream
}

#[test]
fn session_ends_before_next_begins() {
    let mut stream = monday();
    stream.roll_over("MONDAY", "TUESDAY");
    stream.events(1);
    assert_packets(&stream.take_packets(0), &[("MONDAY", 4, "1"), ("MONDAY", 5, "end"), ("TUESDAY", 1, "2")]);
}

#[test]
fn end_is_repeated_during_busy_feed() {
    let mut stream = monday();
    stream.roll_over("MONDAY", "TUESDAY");
    let mut ends = Vec::new();
    for tenth in 0..600 {
        stream.events(1);
        let packets = stream.take_packets(SECOND_NS / 10);
        ends.extend(
            packets.iter().filter(|packet| packet.2 == "end").map(|packet| (packet.0.clone(), packet.1, tenth / 10)),
        );
    }
    assert!(ends.iter().all(|end| (end.0.as_str(), end.1) == ("MONDAY", 5)), "{ends:?}");
    assert!((1..25).all(|second| ends.iter().any(|end| end.2 == second)), "{ends:?}");
    assert!((20..=40).contains(&ends.len()) && ends.iter().all(|end| end.2 < 40), "{ends:?}");
}

#[test]
fn two_quick_ends_are_both_sent() {
    let mut stream = monday();
    stream.roll_over("MONDAY", "TUESDAY");
    stream.roll_over("TUESDAY", "WEDNESDAY");
    let packets = stream.take_packets(5 * SECOND_NS);
    assert_packets(
        &packets[..5],
        &[("MONDAY", 4, "1"), ("MONDAY", 5, "end"), ("TUESDAY", 1, "2"), ("TUESDAY", 3, "end"), ("WEDNESDAY", 1, "1")],
    );
    let count = |which: (&str, u64, &str)| {
        packets.iter().filter(|packet| (packet.0.as_str(), packet.1, packet.2.as_str()) == which).count()
    };
    assert!(count(("MONDAY", 5, "end")) >= 5 && count(("TUESDAY", 3, "end")) >= 5);
    assert!(count(("WEDNESDAY", 2, "heartbeat")) >= 5);
}

#[test]
fn reused_name_has_not_ended() {
    let mut stream = monday();
    stream.roll_over("MONDAY", "MONDAY");
    let packets = stream.take_packets(5 * SECOND_NS);
    assert_packets(&packets[..3], &[("MONDAY", 4, "1"), ("MONDAY", 5, "end"), ("MONDAY", 1, "1")]);
    assert!(packets.len() > 5 && packets[3..].iter().all(|packet| packet.2 == "heartbeat"), "{packets:?}");
}

#[test]
fn final_stop_sends_end_of_session() {
    for ends_here in [false, true] {
        let mut stream = monday();
        stream.feed.ends_here = ends_here;
        stream.events(1);
        stream.feed.on_close(Now { monotonic_ns: stream.now_ns, epoch_ns: 0 }).unwrap();
        assert!(!stream.feed.is_drained());
        let packets = stream.take_packets(SECOND_NS / 10);
        assert_eq!(packets[0], ("MONDAY".to_owned(), 4, "1".to_owned()));
        let ends = packets.iter().filter(|packet| (packet.1, packet.2.as_str()) == (5, "end")).count();
        assert_eq!(ends >= 3, ends_here, "{packets:?}");
        assert!(stream.feed.is_drained());
    }
}

#[test]
fn announced_ends_are_bounded() {
    let mut stream = monday();
    let days: Vec<String> = (0..100).map(|day| format!("DAY{day}")).collect();
    stream.roll_over("MONDAY", &days[0]);
    days.windows(2).for_each(|two| stream.roll_over(&two[0], &two[1]));
    assert_eq!(stream.take_packets(0).iter().filter(|packet| packet.2 == "end").count(), 100);
    let again = stream.take_packets(SECOND_NS / 50);
    assert!((1..=16).contains(&again.len()), "{again:?}");
}

#[test]
fn only_end_is_sent_between_sessions() {
    let mut stream = monday();
    stream.mark(Mark::FeedEnded { feed_session: name("MONDAY") });
    let packets = stream.take_packets(60 * SECOND_NS);
    assert_packets(&packets[..2], &[("MONDAY", 4, "1"), ("MONDAY", 5, "end")]);
    assert!((20..=40).contains(&packets.len()), "{}", packets.len());
    assert!(packets[2..].iter().all(|packet| packet.2 == "end"), "{packets:?}");
    stream.mark(Mark::FeedBegan { feed_session: name("TUESDAY") });
    assert_packets(&stream.take_packets(0), &[("TUESDAY", 1, "1")]);
}

#[test]
fn new_sender_repeats_last_end() {
    let mut feeds = Feeds::default();
    feeds.begin(name("MONDAY"), 1);
    feeds.end(4);
    let packets = Stream::new(&feeds, 5).take_packets(SECOND_NS);
    assert!(
        packets.len() >= 3
            && packets.iter().all(|packet| (packet.0.as_str(), packet.1, packet.2.as_str()) == ("MONDAY", 5, "end"))
    );
    feeds.begin(name("TUESDAY"), 5);
    let packets = Stream::new(&feeds, 7).take_packets(SECOND_NS);
    for expected in [("MONDAY", 5, "end"), ("TUESDAY", 3, "heartbeat")] {
        assert!(
            packets.iter().any(|packet| (packet.0.as_str(), packet.1, packet.2.as_str()) == expected),
            "{packets:?}"
        );
    }
}
