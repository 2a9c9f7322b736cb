#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::linked_members::{self, Member, connected_pair, peer};
use gapless_cluster::link::{MemberLinkOptions, MessageContent, SendError};
use gapless_testkit::random::{Random, rounds};
use gapless_testkit::wait::turn_until;

fn fill(bytes: &mut [u8], number: u64, direction: u64) {
    let mut random = Random::new(number << 1 | direction);
    for word in bytes.as_chunks_mut::<8>().0 {
        *word = random.number().to_le_bytes();
    }
}

fn exchange(count: u64, frames_length: usize, options: MemberLinkOptions) {
    let (first, second) = connected_pair(options);
    let mut members = [first, second];
    let (mut sent, mut taken) = ([0; 2], [0; 2]);
    let mut frames = vec![0; frames_length];
    let mut expected = vec![0; frames_length];
    turn_until("everything has arrived", || {
        for side in 0..2 {
            for _ in 0..64 {
                if sent[side] == count {
                    break;
                }
                fill(&mut frames, sent[side], side as u64);
                let (head, tail) = frames.split_at(frames_length / 16 * 8);
                let consensus = sent[side].to_le_bytes();
                let to = 2 - side as u64;
                match members[side].links.send(to, MessageContent::Consensus, &consensus[..5], &[head, tail]) {
                    Ok(()) => sent[side] += 1,
                    Err(SendError::Full) => break,
                    Err(error) => panic!("message {} of side {side}: {error}", sent[side]),
                }
            }
            let other = 1 - side as u64;
            members[side].turn(|message| {
                let number: u64 = taken[side];
                assert_eq!((message.from, message.content), (2 - side as u64, MessageContent::Consensus));
                assert_eq!(message.consensus, &number.to_le_bytes()[..5], "side {side}");
                fill(&mut expected, number, other);
                assert!(message.frames == expected, "the frames of message {number} on side {side}");
                assert!(message.frames.as_ptr().cast::<u64>().is_aligned());
                taken[side] += 1;
            });
        }
        taken == [count; 2]
    });
    for member in &mut members {
        assert_eq!(member.event_texts(), Vec::<String>::new());
    }
    let statistics = members[0].links.statistics(2).unwrap();
    assert_eq!((statistics.messages_sent, statistics.messages_received), (count, count));
    assert_eq!(statistics.bytes_received, count * (frames_length as u64 + 5));
}

#[test]
fn million_small_messages_both_ways() {
    exchange(rounds(500_000, 50_000), 72, MemberLinkOptions::default());
}

#[test]
fn ten_megabyte_messages_both_ways() {
    exchange(8, 10_000_000, MemberLinkOptions::default());
}

#[test]
fn small_buffer_suffices() {
    exchange(
        300,
        20_000,
        MemberLinkOptions { receive_buffer_bytes: 4096, queue_bytes_max: 0, ..MemberLinkOptions::default() },
    );
}

#[test]
fn many_slices_are_one_message() {
    let (mut first, mut second) = connected_pair(MemberLinkOptions::default());
    let frames: Vec<[u8; 8]> = (0..1000u64).map(u64::to_le_bytes).collect();
    for count in [0, 1, 11, 12, 13, 1000] {
        let slices: Vec<&[u8]> = frames[..count].iter().map(|frame| &frame[..]).collect();
        first.links.send(2, MessageContent::CatchUpFrames, b"", &slices).unwrap();
        let mut taken = false;
        turn_until("the message has arrived", || {
            first.idle();
            second.turn(|message| {
                assert_eq!(
                    (message.content, message.frames),
                    (MessageContent::CatchUpFrames, frames[..count].as_flattened())
                );
                taken = true;
            });
            taken
        });
    }
}

#[test]
fn slow_reader_slows_no_other() {
    const QUEUE: usize = 1 << 20;
    let mut slow = Member::listens(2, &[peer(1, &[])]);
    let mut quick = Member::listens(3, &[peer(1, &[])]);
    let peers = [peer(2, &[slow.address()]), peer(3, &[quick.address()])];
    let options = MemberLinkOptions { queue_bytes_max: QUEUE, ..MemberLinkOptions::default() };
    let mut first = Member::new(options, linked_members::identity(1), &peers);
    turn_until("all are connected", || {
        first.idle();
        slow.idle();
        quick.idle();
        first.events.len() == 2 && slow.events.len() == 1 && quick.events.len() == 1
    });

    // Polled, so alive, but none of its messages is taken.
    let frames = vec![7; 64 << 10];
    let (mut taken_by_slow, mut taken, mut full) = (0, 0, 0);
    let mut number = 0u64;
    turn_until("the queue is full", || {
        number += 1;
        match first.links.send(2, MessageContent::Consensus, &number.to_le_bytes(), &[&frames]) {
            Ok(()) => taken_by_slow += 1,
            Err(SendError::Full) => full += 1,
            Err(error) => panic!("{error}"),
        }
        first.links.send(3, MessageContent::Consensus, &number.to_le_bytes(), &[&frames]).unwrap();
        first.poll();
        slow.poll();
        let before = taken;
        turn_until("the fast reader gets the message meanwhile", || {
            first.poll();
            quick.turn(|message| {
                taken += 1;
                assert_eq!(message.consensus, taken.to_string().parse::<u64>().unwrap().to_le_bytes());
            });
            taken > before
        });
        let queued = first.links.statistics(2).unwrap().queued_bytes as usize;
        assert!(queued <= QUEUE + frames.len() + 64, "{queued} bytes are queued");
        full == 100
    });
    assert_eq!(first.links.statistics(2).unwrap().messages_dropped, 100);
    assert!(first.links.is_connected(2));

    let mut read = 0;
    let mut last = 0;
    turn_until("the slow reader has read all messages", || {
        first.poll();
        slow.turn(|message| {
            let number = u64::from_le_bytes(message.consensus.try_into().unwrap());
            assert!(number > last && message.frames == frames);
            last = number;
            read += 1;
        });
        read == taken_by_slow
    });
}

#[test]
fn unsendable_message_is_an_error() {
    let (mut first, _second) = connected_pair(MemberLinkOptions::default());
    let long = vec![0; (64 << 20) + 1];
    let mut send = |to, content, consensus, frames: &[&[u8]]| first.links.send(to, content, consensus, frames);
    assert_eq!(send(2, MessageContent::Consensus, &long[..(1 << 20) + 1], &[]), Err(SendError::TooLong));
    assert_eq!(send(2, MessageContent::Consensus, &[], &[&long]), Err(SendError::TooLong));
    assert_eq!(send(2, MessageContent::CatchUpRequest, &[], &[&long[..8]]), Err(SendError::TooLong));
    assert_eq!(send(3, MessageContent::Consensus, &[], &[]), Err(SendError::UnknownMember));
    assert!(first.links.remove_peer(2) && !first.links.remove_peer(2));
    assert_eq!(first.links.send(2, MessageContent::Consensus, &[], &[]), Err(SendError::UnknownMember));
}
