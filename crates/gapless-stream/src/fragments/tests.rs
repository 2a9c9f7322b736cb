//! Collecting the parts of messages, with and without free memory.

use super::*;
use gapless_wire::FrameWriter;
use gapless_wire::descriptor::UNHANDLED_FLAG;
use gapless_wire::writer::add_flags;

fn part(session: u64, session_seq: u64, index: u16, count: u16, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; aligned_length(HEADER_LENGTH + length)];
    let fragment = Fragment { index, count };
    let header = FrameHeader { session, session_seq, fragment, ..FrameHeader::default() };
    FrameWriter::new(&mut bytes).finish(&header, length);
    bytes
}

fn add(fragments: &mut Fragments, bytes: &[u8], expected: u64) -> CollectResult {
    add_at(fragments, 1, bytes, expected, 0)
}

fn add_at(fragments: &mut Fragments, connection: u32, bytes: &[u8], expected: u64, now_ns: u64) -> CollectResult {
    fragments.add(ConnectionId(connection), &Frame::parse(bytes).unwrap(), bytes, expected, now_ns)
}

const LATE_NS: u64 = IDLE_NS_MAX + 1;

fn gap(next_session_seq: u64) -> CollectResult {
    CollectResult::Answer(Decision::Gap { next_session_seq })
}

fn room_for_two() -> Fragments {
    let length = 2 * aligned_length(HEADER_LENGTH + 1_000);
    Fragments::new(2 * (MESSAGE_OVERHEAD + length + 2 * PART_OVERHEAD), 1 << 20)
}

#[test]
fn parts_are_kept_until_all_are_there() {
    let mut fragments = Fragments::new(1 << 20, 1 << 20);
    assert_eq!(add(&mut fragments, &part(1, 5, 0, 3, 100), 5), CollectResult::Kept);
    assert_eq!(
        add(&mut fragments, &part(1, 7, 2, 3, 10), 5),
        CollectResult::Answer(Decision::Gap { next_session_seq: 6 })
    );
    assert_eq!(add(&mut fragments, &part(1, 5, 0, 3, 100), 5), CollectResult::Answer(Decision::Repeat));
    assert_eq!(add(&mut fragments, &part(1, 6, 1, 3, 100), 5), CollectResult::Kept);
    assert_eq!(add(&mut fragments, &part(1, 7, 2, 3, 10), 5), CollectResult::Complete);
    let (bytes, frames) = fragments.complete(1);
    assert_eq!((bytes.len(), frames.len()), (2 * 168 + 80, 3));
    assert_eq!(Frame::parse(&bytes[frames[2].clone()]).unwrap().session_seq(), 7);
    fragments.forget(1);
    assert!(!fragments.has(1) && fragments.reserved_bytes == 0);
}

#[test]
fn mismatched_parts_are_malformed() {
    let is_malformed = |collected| matches!(collected, CollectResult::Answer(Decision::Malformed(_)));
    let mut fragments = Fragments::new(1 << 20, 1 << 12);
    for flags in [SEQUENCER_FLAGS & !UNHANDLED_FLAG, UNHANDLED_FLAG] {
        let mut forged = part(1, 1, 0, 3, 10);
        add_flags(&mut forged, flags);
        assert!(is_malformed(add(&mut fragments, &forged, 1)), "flags of the sequencer");
    }
    assert!(is_malformed(add(&mut fragments, &part(1, 1, 1, 3, 10), 1)), "no beginning");
    assert!(is_malformed(add(&mut fragments, &part(1, 1, 0, 60, 100), 1)), "too long");
    assert!(is_malformed(add(&mut fragments, &part(1, u64::MAX - 1, 0, 2, 100), u64::MAX - 1)), "runs over");
    assert_eq!(add(&mut fragments, &part(1, 1, 0, 3, 10), 1), CollectResult::Kept);
    assert!(is_malformed(add(&mut fragments, &part(1, 2, 1, 4, 10), 1)), "another count");
    assert!(is_malformed(add(&mut fragments, &part(1, 2, 2, 3, 10), 1)), "another index");
    assert!(is_malformed(add(&mut fragments, &part(1, 2, 1, 3, 999), 1)), "longer than the first");
}

#[test]
fn length_limit_is_inclusive() {
    let limit = 2 * 1_064 + 72;
    for (last, is_taken) in [(8, true), (9, false)] {
        let mut fragments = Fragments::new(1 << 20, limit);
        assert_eq!(add(&mut fragments, &part(1, 1, 0, 3, 1_000), 1), CollectResult::Kept);
        assert_eq!(add(&mut fragments, &part(1, 2, 1, 3, 1_000), 1), CollectResult::Kept);
        let end = add(&mut fragments, &part(1, 3, 2, 3, last), 1);
        assert_eq!(end == CollectResult::Complete, is_taken, "{end:?}");
    }
    let mut fragments = Fragments::new(1 << 20, limit - 8);
    let begin = add(&mut fragments, &part(1, 1, 0, 3, 1_000), 1);
    assert!(matches!(begin, CollectResult::Answer(Decision::Malformed(_))), "{begin:?}");
}

#[test]
fn memory_is_bounded() {
    let mut fragments = Fragments::new(100, 1 << 20);
    assert_eq!(add(&mut fragments, &part(1, 1, 0, 2, 100), 1), CollectResult::Kept);
    assert_eq!(add_at(&mut fragments, 2, &part(2, 1, 0, 2, 100), 1, 0), CollectResult::NoMemory);
    fragments.forget_from(ConnectionId(1));
    assert_eq!((fragments.reserved_bytes, fragments.unfinished.len()), (0, 0));
    assert_eq!(add_at(&mut fragments, 2, &part(2, 1, 0, 2, 100), 1, 0), CollectResult::Kept);
}

#[test]
fn longest_idle_is_evicted_and_resent() {
    let mut fragments = room_for_two();
    assert_eq!(add_at(&mut fragments, 1, &part(1, 1, 0, 2, 1_000), 1, 5), CollectResult::Kept);
    assert_eq!(add_at(&mut fragments, 2, &part(2, 1, 0, 2, 1_000), 1, 0), CollectResult::Kept);
    assert_eq!(add_at(&mut fragments, 3, &part(3, 1, 0, 2, 1_000), 1, IDLE_NS_MAX), CollectResult::NoMemory);
    assert_eq!(fragments.evicted(), 0, "it is not idle for long enough");
    let now_ns = LATE_NS + CHECK_INTERVAL_NS;
    assert_eq!(add_at(&mut fragments, 3, &part(3, 1, 0, 2, 1_000), 1, now_ns), CollectResult::Kept);
    assert!(fragments.has(1) && !fragments.has(2) && fragments.evicted() == 1);
    assert_eq!(
        add_at(&mut fragments, 2, &part(2, 2, 1, 2, 1_000), 1, now_ns),
        gap(1),
        "the evicted message starts again"
    );
    assert_eq!(add_at(&mut fragments, 3, &part(3, 2, 1, 2, 1_000), 1, now_ns), CollectResult::Complete);
    assert_eq!(add_at(&mut fragments, 1, &part(1, 2, 1, 2, 1_000), 1, now_ns), CollectResult::Complete);
    assert_eq!(add_at(&mut fragments, 4, &part(4, 1, 0, 2, 1_000), 1, 9 * now_ns), CollectResult::NoMemory);
    fragments.forget(3);
    assert_eq!(add_at(&mut fragments, 4, &part(4, 1, 0, 2, 1_000), 1, 9 * now_ns), CollectResult::Kept);
    assert!(fragments.has(1) && fragments.reserved_bytes <= fragments.bytes_max);
}

#[test]
fn slow_drip_sender_is_evicted() {
    let mut fragments = room_for_two();
    let drip = |index: u16| part(1, 1 + u64::from(index), index, 20, 10);
    assert_eq!(add_at(&mut fragments, 1, &drip(0), 1, 0), CollectResult::Kept);
    assert_eq!(add_at(&mut fragments, 2, &part(2, 1, 0, 2, 1_000), 1, 0), CollectResult::Kept);
    for index in 1..4 {
        let now_ns = u64::from(index) * IDLE_NS_MAX / 2;
        assert_eq!(add_at(&mut fragments, 1, &drip(index), 1, now_ns), CollectResult::Kept);
        let _ = add_at(&mut fragments, 3, &part(3, 1, 0, 2, 1_000), 1, now_ns);
    }
    assert!(fragments.has(3) && fragments.evicted() >= 1);
    assert_eq!(add_at(&mut fragments, 4, &part(4, 1, 0, 2, 1_000), 1, 2 * LATE_NS), CollectResult::Kept);
    assert!(!fragments.has(1), "a few bytes now and then are not enough");
}

#[test]
fn waiters_are_served_in_order() {
    let mut fragments = room_for_two();
    assert_eq!(add_at(&mut fragments, 1, &part(1, 1, 0, 2, 700), 1, 0), CollectResult::Kept);
    assert_eq!(
        add_at(&mut fragments, 2, &part(2, 1, 0, 3, 1_000), 1, 0),
        CollectResult::NoMemory,
        "longer than the rest"
    );
    assert_eq!(add_at(&mut fragments, 3, &part(3, 1, 0, 2, 10), 1, 1), CollectResult::NoMemory, "others wait first");
    fragments.forget(1);
    assert_eq!(add_at(&mut fragments, 3, &part(3, 1, 0, 2, 10), 1, 2), CollectResult::NoMemory);
    assert_eq!(add_at(&mut fragments, 2, &part(2, 1, 0, 3, 1_000), 1, 3), CollectResult::Kept);
    assert_eq!(add_at(&mut fragments, 3, &part(3, 1, 0, 2, 10), 1, 4), CollectResult::Kept);
    assert_eq!(add_at(&mut fragments, 4, &part(4, 1, 0, 2, 1_000), 1, 5), CollectResult::NoMemory);
    fragments.forget_from(ConnectionId(4));
    assert_eq!(add_at(&mut fragments, 5, &part(5, 1, 0, 2, 10), 1, 6), CollectResult::Kept);
    fragments.forget(5);
    assert_eq!(add_at(&mut fragments, 6, &part(6, 1, 0, 2, 1_000), 1, 7), CollectResult::NoMemory);
    assert_eq!(add_at(&mut fragments, 7, &part(7, 1, 0, 2, 10), 1, 7 + IDLE_NS_MAX), CollectResult::NoMemory);
    assert_eq!(add_at(&mut fragments, 7, &part(7, 1, 0, 2, 10), 1, 8 + IDLE_NS_MAX), CollectResult::Kept);
}

#[test]
fn no_wait_for_room_behind_own_part() {
    let mut fragments = room_for_two();
    assert_eq!(add_at(&mut fragments, 1, &part(1, 1, 0, 2, 1_000), 1, 0), CollectResult::Kept);
    assert_eq!(add_at(&mut fragments, 1, &part(2, 1, 0, 2, 1_000), 1, 0), CollectResult::Kept);
    assert_eq!(add_at(&mut fragments, 1, &part(3, 1, 0, 2, 1_000), 1, 0), gap(1));
    assert!(fragments.drops_silently(3, 2, 0) && !fragments.drops_silently(2, 9, 0));
    assert_eq!(add_at(&mut fragments, 1, &part(1, 2, 1, 2, 1_000), 1, 0), CollectResult::Complete);
    fragments.forget(1);
    assert_eq!(add_at(&mut fragments, 1, &part(3, 1, 0, 2, 1_000), 1, 0), CollectResult::Kept);
    assert!(fragments.postponed.is_empty());
    fragments.forget_from(ConnectionId(1));
    assert_eq!((fragments.reserved_bytes, fragments.partial.len()), (0, 0));
}

#[test]
fn postponed_frames_answered_sparsely() {
    let mut fragments = room_for_two();
    for session in [1, 2] {
        assert_eq!(add(&mut fragments, &part(session, 1, 0, 2, 1_000), 1), CollectResult::Kept);
    }
    let mut answers = 0;
    for now_ns in (0..CHECK_INTERVAL_NS * 3).step_by(100_000) {
        let begin = add_at(&mut fragments, 1, &part(3, 1, 0, 20, 60), 1, now_ns);
        assert!(begin == gap(1) || begin == CollectResult::Postponed, "{begin:?}");
        answers += u64::from(begin == gap(1));
        assert!((2..40).all(|session_seq| fragments.drops_silently(3, session_seq, now_ns)));
    }
    assert_eq!(answers, 3);
    let now_ns = CHECK_INTERVAL_NS * 4;
    assert!(!fragments.drops_silently(3, 39, now_ns) && fragments.drops_silently(3, 39, now_ns));
    assert_eq!(add_at(&mut fragments, 1, &part(3, 1, 0, 20, 60), 1, now_ns), CollectResult::Postponed);
    assert_eq!((fragments.recalled(now_ns), fragments.next_recall_ns()), (None, Some(now_ns + CHECK_INTERVAL_NS)));
    fragments.forget(1);
    fragments.forget(2);
    assert_eq!(fragments.recalled(now_ns), Some((3, ConnectionId(1))));
    assert_eq!((fragments.recalled(now_ns), fragments.next_recall_ns()), (None, None));
    assert_eq!(add_at(&mut fragments, 1, &part(3, 1, 0, 20, 60), 1, now_ns), CollectResult::Kept);
    assert!(fragments.postponed.is_empty());
}

#[test]
fn part_overhead_counts_as_memory() {
    let length = 1_000 * aligned_length(HEADER_LENGTH + 8);
    let limit = 2 * (MESSAGE_OVERHEAD + length + 1_000 * PART_OVERHEAD);
    for (limit, second) in [(limit, CollectResult::Kept), (limit - 1, CollectResult::NoMemory)] {
        let mut fragments = Fragments::new(limit, 1 << 20);
        assert_eq!(add_at(&mut fragments, 1, &part(1, 1, 0, 1_000, 8), 1, 0), CollectResult::Kept);
        assert_eq!(add_at(&mut fragments, 2, &part(2, 1, 0, 1_000, 8), 1, 0), second);
    }
}

#[test]
fn unfinished_message_expects_next() {
    let mut fragments = Fragments::new(1 << 20, 1 << 20);
    assert_eq!(fragments.expected(1), None);
    for (index, expected) in [(0, 6), (1, 7)] {
        assert_eq!(add(&mut fragments, &part(1, 5 + u64::from(index), index, 3, 100), 5), CollectResult::Kept);
        assert_eq!((fragments.expected(1), fragments.expected(2)), (Some(expected), None));
    }
}

#[test]
fn finished_connection_waits_in_ring() {
    let mut fragments = room_for_two();
    for session in [1, 2] {
        assert_eq!(add_at(&mut fragments, 1, &part(session, 1, 0, 2, 10), 1, 0), CollectResult::Kept);
    }
    fragments.forget(1);
    fragments.forget(2);
    for session in [3, 4] {
        assert_eq!(add_at(&mut fragments, 2, &part(session, 1, 0, 2, 1_000), 1, 0), CollectResult::Kept);
    }
    assert_eq!(add_at(&mut fragments, 1, &part(5, 1, 0, 2, 1_000), 1, 0), CollectResult::NoMemory);
}

#[test]
fn minimum_rate_is_not_evicted() {
    let second_ns = 1_000_000_000;
    let length = BYTES_PER_S_MIN as usize - HEADER_LENGTH;
    let mut fragments = Fragments::new(1, 1 << 20);
    for (index, now_ns) in [(0, 0), (1, 2 * second_ns), (2, 4 * second_ns)] {
        let part = part(2, 1 + u64::from(index), index, 9, length);
        assert_eq!(add_at(&mut fragments, 2, &part, 1, now_ns), CollectResult::Kept);
    }
    let due_ns = IDLE_NS_MAX + 3 * second_ns;
    assert_eq!(add_at(&mut fragments, 1, &part(1, 1, 0, 2, 10), 1, due_ns), CollectResult::NoMemory);
    assert_eq!(add_at(&mut fragments, 1, &part(1, 1, 0, 2, 10), 1, due_ns + CHECK_INTERVAL_NS), CollectResult::Kept);
    assert!(!fragments.has(2) && fragments.evicted() == 1);
}

fn with_one_postponed(now_ns: u64) -> Fragments {
    let mut fragments = room_for_two();
    for session in [1, 2] {
        assert_eq!(add_at(&mut fragments, 1, &part(session, 1, 0, 2, 1_000), 1, now_ns), CollectResult::Kept);
    }
    assert_eq!(add_at(&mut fragments, 1, &part(3, 1, 0, 20, 8), 1, now_ns), gap(1));
    fragments
}

#[test]
fn only_repeated_postponed_is_answered() {
    let mut fragments = with_one_postponed(0);
    assert_eq!(add_at(&mut fragments, 1, &part(3, 2, 1, 20, 8), 1, 0), CollectResult::Postponed);
    for session_seq in 3..6 {
        assert!(fragments.drops_silently(3, session_seq, session_seq * CHECK_INTERVAL_NS));
    }
    assert_eq!(add_at(&mut fragments, 1, &part(3, 5, 4, 20, 8), 1, 6 * CHECK_INTERVAL_NS), gap(1));
    assert_eq!(add_at(&mut fragments, 1, &part(4, 2, 1, 20, 8), 1, 0), gap(1), "nothing of this one is put off");
}

#[test]
fn recall_suppresses_answers_briefly() {
    let mut fragments = with_one_postponed(5);
    fragments.forget(1);
    assert_eq!(fragments.recalled(100 * CHECK_INTERVAL_NS), Some((3, ConnectionId(1))));
    assert!(fragments.drops_silently(3, 1, 101 * CHECK_INTERVAL_NS - 1), "the call is the answer");
    assert!(!fragments.drops_silently(3, 1, 101 * CHECK_INTERVAL_NS), "the call may be lost");
}

#[test]
fn recall_evicts_idle_message() {
    let mut fragments = with_one_postponed(0);
    assert_eq!(fragments.recalled(IDLE_NS_MAX), None);
    assert_eq!(fragments.recalled(LATE_NS), Some((3, ConnectionId(1))));
    assert!(!fragments.has(1) && fragments.has(2) && fragments.evicted() == 1);
}

#[test]
fn recall_waits_for_turn_with_timeout() {
    let mut fragments = room_for_two();
    for session in [1, 2] {
        assert_eq!(add_at(&mut fragments, 1, &part(session, 1, 0, 2, 1_000), 1, 0), CollectResult::Kept);
    }
    assert_eq!(add_at(&mut fragments, 2, &part(9, 1, 0, 2, 1_000), 1, 0), CollectResult::NoMemory);
    for (session, now_ns) in [(3, 1), (4, 2)] {
        assert_eq!(add_at(&mut fragments, 1, &part(session, 1, 0, 20, 8), 1, now_ns), gap(1));
    }
    fragments.forget(1);
    fragments.forget(2);
    assert_eq!(fragments.recalled(IDLE_NS_MAX), None);
    assert_eq!(fragments.recalled(LATE_NS), Some((3, ConnectionId(1))));
    assert_eq!(fragments.recalled(LATE_NS + IDLE_NS_MAX), None);
    assert_eq!(fragments.recalled(LATE_NS + LATE_NS), Some((4, ConnectionId(1))));
}

#[test]
fn postponed_overflow_is_answered() {
    let mut fragments = with_one_postponed(0);
    for session in [1, 2] {
        assert_eq!(add(&mut fragments, &part(session, 2, 1, 2, 1_000), 1), CollectResult::Complete);
    }
    let last = 2 + POSTPONED_MAX as u64;
    for session in 4..=last {
        assert_eq!(add_at(&mut fragments, 1, &part(session, 1, 0, 2, 60), 1, 0), gap(1));
    }
    for _ in 0..2 {
        assert_eq!(
            add_at(&mut fragments, 1, &part(last, 1, 0, 2, 60), 1, 0),
            CollectResult::Postponed,
            "it is remembered"
        );
        assert_eq!(add_at(&mut fragments, 1, &part(last + 1, 1, 0, 2, 60), 1, IDLE_NS_MAX), gap(1));
    }
    assert!(fragments.postponed.len() == POSTPONED_MAX && !fragments.drops_silently(last + 1, 2, IDLE_NS_MAX));
    assert_eq!(add_at(&mut fragments, 1, &part(last + 1, 1, 0, 2, 60), 1, LATE_NS), gap(1));
    assert_eq!(add_at(&mut fragments, 1, &part(last + 1, 1, 0, 2, 60), 1, LATE_NS), CollectResult::Postponed);
    assert_eq!(fragments.postponed.len(), 1);
}

#[test]
fn forgetting_removes_everything() {
    let mut fragments = with_one_postponed(0);
    assert_eq!(add_at(&mut fragments, 2, &part(7, 1, 0, 2, 60), 1, 0), CollectResult::NoMemory);
    fragments.forget_from(ConnectionId(2));
    assert!(fragments.has(1) && fragments.next_recall_ns().is_some() && fragments.drops_silently(3, 2, 0));
    fragments.forget_from(ConnectionId(1));
    assert_eq!((fragments.reserved_bytes, fragments.next_recall_ns()), (0, None));
    assert!(!fragments.has(1) && !fragments.drops_silently(3, 3, 0));
    let mut fragments = with_one_postponed(0);
    assert_eq!(add_at(&mut fragments, 2, &part(5, 1, 0, 3, 1_000), 1, LATE_NS), CollectResult::Kept);
    assert!(fragments.evicted() > 0 && fragments.next_recall_ns().is_some());
    let evicted = fragments.evicted();
    fragments.forget_all();
    assert_eq!((fragments.evicted(), fragments.reserved_bytes, fragments.next_recall_ns()), (evicted, 0, None));
    assert!((1..=5).all(|session| !fragments.has(session) && !fragments.drops_silently(session, 9, 0)));
    for session in [1, 2] {
        assert_eq!(add_at(&mut fragments, 2, &part(session, 1, 0, 2, 1_000), 1, 0), CollectResult::Kept);
    }
}
