//! Tests of the session table: kept replies, their numbers, and notices.

use super::*;
use gapless_wire::control::RefusalCode;
use gapless_wire::{FrameWriter, HEADER_LENGTH};

const TIME_NS: u64 = 1_000;

fn entry(window_messages: u32) -> SessionEntry {
    SessionTable::default().open(8, 80, window_messages, TIME_NS).clone()
}

fn handle(entry: &mut SessionEntry, session_seq: u64) -> usize {
    let slot = entry.next_slot(session_seq);
    entry.replies[slot] = StoredReply { session_seq, sequence: 100 + session_seq, ..StoredReply::default() };
    slot
}

fn notice(number: u64) -> StoredNotice {
    StoredNotice { number, sequence: 1, timestamp_ns: 2, schema: 3, encoding: Encoding::Opaque, payload: Vec::new() }
}

#[test]
fn reply_header_has_kept_fields() {
    let payload = vec![1, 2];
    let (session_seq, sequence, timestamp_ns, schema) = (5, 6, 7, 3 << 16 | 9);
    let mut reply = StoredReply { session_seq, sequence, timestamp_ns, schema, flags: 2, payload };
    let expected = FrameHeader {
        kind: Kind::Reply,
        flags: 2,
        sequence,
        timestamp_ns,
        session: 8,
        session_seq,
        schema,
        ..FrameHeader::default()
    };
    assert_eq!(reply.header(8), expected);
    assert!(!reply.is_refusal());
    let mut bytes = [0; HEADER_LENGTH + 8];
    let header = FrameHeader { session_seq: 15, sequence: 16, timestamp_ns: 17, schema: 1, ..FrameHeader::default() };
    FrameWriter::new(&mut bytes).finish(&header, 8);
    reply.begin(&Frame::parse(&bytes).unwrap());
    let empty = StoredReply { session_seq: 15, sequence: 16, timestamp_ns: 17, ..StoredReply::default() };
    assert_eq!(reply, empty);
}

#[test]
fn refusal_text_is_truncated() {
    for (length, kept) in [(0, 0), (10, 10), (1_023, 1_023), (1_024, 1_024), (1_025, 1_024), (5_000, 1_024)] {
        let text = "x".repeat(length);
        let mut reply = StoredReply { flags: 2, ..StoredReply::default() };
        reply.refuse(&Refusal { code: RefusalCode::Rejected, detail: 4, text: &text });
        let refusal = Refusal::from_bytes(&reply.payload).unwrap();
        assert_eq!((refusal.code, refusal.detail, refusal.text), (RefusalCode::Rejected, 4, &text[..kept]));
        assert!(reply.is_refusal() && reply.payload.len() == Refusal::FIXED_LENGTH + kept);
    }
    let mut reply = StoredReply::default();
    reply.refuse(&Refusal { code: RefusalCode::Rejected, detail: 0, text: &"ä".repeat(600).replacen('ä', "a", 1) });
    assert_eq!(Refusal::from_bytes(&reply.payload).unwrap().text.len(), 1_023);
    assert!(!StoredReply { flags: !REFUSED_FLAG, ..StoredReply::default() }.is_refusal());
}

#[test]
fn one_reply_is_kept_per_window_slot() {
    for window in [1, 3, 4, 5, 8] {
        let mut entry = entry(window);
        for number in 1..=3 * u64::from(window) {
            let slot = handle(&mut entry, number);
            assert_eq!(slot as u64, (number - 1) % u64::from(window), "command {number} of a window of {window}");
            let first = number.saturating_sub(u64::from(window)) + 1;
            assert_eq!((entry.messages, entry.last_session_seq, entry.first_stored()), (number, number, first));
            assert_eq!(entry.replies.len() as u64, number.min(u64::from(window)), "only used slots take memory");
            for kept in 0..number + 2 {
                let found = entry.find_reply(kept).map(|reply| reply.sequence);
                assert_eq!(found, (first..=number).contains(&kept).then_some(100 + kept), "{kept} of {number}");
            }
        }
    }
}

#[test]
fn reply_is_found_by_last_frame() {
    let mut entry = entry(2);
    assert_eq!((entry.first_stored(), entry.find_reply(1), entry.command_over(1)), (1, None, None));
    entry.last_session_seq = 6;
    assert_eq!(entry.first_stored(), 7, "nothing is kept");
    for number in [3, 4] {
        handle(&mut entry, number);
    }
    let found: Vec<_> = (0..6).map(|number| entry.find_reply(number).map(|reply| reply.session_seq)).collect();
    assert_eq!(found, [None, None, None, Some(3), Some(4), None]);
    // All commands are kept: the first three frames belong to the first.
    let over: Vec<_> = (0..6).map(|number| entry.command_over(number)).collect();
    assert_eq!(over, [Some(3), Some(3), Some(3), Some(4), None, None]);
    // The first command was replaced, so the frames up to the first kept command are uncertain.
    handle(&mut entry, 9);
    let over: Vec<_> = (0..10).map(|number| entry.command_over(number)).collect();
    let uncertain = [None; 5];
    assert_eq!(over[..5], uncertain);
    assert_eq!(over[5..], [Some(9), Some(9), Some(9), Some(9), None]);
    assert_eq!(entry.first_stored(), 4);
}

#[test]
fn acknowledged_notices_are_dropped() {
    let mut entry = entry(2);
    entry.notices = (1..=5).map(notice).collect();
    for (number, left) in [(0, 5), (1, 4), (1, 4), (4, 1), (9, 0)] {
        entry.acknowledge_notices(number);
        assert_eq!(entry.notices.len(), left, "after {number}");
    }
}

#[test]
fn closed_session_frees_its_slot() {
    let mut table = SessionTable::default();
    assert!(table.is_empty());
    for session in [30, 10, 20] {
        let entry = table.open(session, u128::from(session) << 70, 4, TIME_NS);
        assert_eq!((entry.session, entry.token, entry.window_messages), (session, u128::from(session) << 70, 4));
        assert_eq!((entry.messages, entry.last_session_seq, entry.last_active_ns), (0, 0, TIME_NS));
    }
    let sorted = |table: &SessionTable| table.sorted().iter().map(|entry| entry.session).collect::<Vec<_>>();
    assert_eq!((sorted(&table), table.len(), table.is_empty()), (vec![10, 20, 30], 3, false));
    table.get_mut(20).unwrap().messages = 7;
    assert_eq!((table.get(20).unwrap().messages, table.get(10).unwrap().messages), (7, 0));
    table.close(20);
    table.close(20);
    assert!(table.get(20).is_none() && table.get_mut(20).is_none());
    assert_eq!((sorted(&table), table.len(), table.iter().count()), (vec![10, 30], 2, 2));
    for session in [40, 50] {
        table.open(session, 0, 4, TIME_NS);
    }
    assert_eq!((table.entries.len(), table.len()), (4, 4));
    for session in [10, 30, 40, 50] {
        assert_eq!(table.get(session).map(|entry| entry.session), Some(session));
    }
    assert_eq!(sorted(&table), [10, 30, 40, 50]);
}

#[test]
fn session_over_limit_is_found() {
    let mut table = SessionTable::default();
    for session in [1, 2] {
        table.open(session, 0, 4, TIME_NS);
    }
    let limit = NOTICES_UNRECEIVED_MAX as u64;
    table.get_mut(2).unwrap().notices = (1..limit).map(notice).collect();
    assert_eq!(
        (table.unacknowledged_notices(1), table.unacknowledged_notices(2), table.unacknowledged_notices(3)),
        (Some(0), Some(limit as usize - 1), None)
    );
    let mut outputs = Outputs::default();
    let mut flooded = |sessions: &[u64]| {
        outputs.clear();
        for session in sessions {
            let draft = outputs.stage(1, Encoding::Opaque, 0, |_| Ok::<_, ()>(0)).unwrap();
            outputs.notices.push((*session, draft));
        }
        table.first_over_notice_limit(&outputs)
    };
    assert_eq!(flooded(&[]), None);
    assert_eq!(flooded(&[1, 2, 3]), None, "exactly the limit");
    assert_eq!(flooded(&[1, 2, 1, 2]), Some(2));
    assert_eq!(flooded(&vec![3; NOTICES_UNRECEIVED_MAX + 1]), None, "the session is not open");
    assert_eq!(flooded(&vec![1; NOTICES_UNRECEIVED_MAX]), None);
    assert_eq!(flooded(&vec![1; NOTICES_UNRECEIVED_MAX + 1]), Some(1));
}
