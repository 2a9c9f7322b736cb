//! Compares replayed frames with a vector, across batches, rolls, reopenings, truncations and both flush modes.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::support::*;
use gapless_journal::{Flush, Journal, JournalError, JournalReader, RecoveryCheck, Zeroing};
use proptest::prelude::*;

const WAYS: [(Flush, Flush); 4] = [
    (Flush::Mapped, Flush::Mapped),
    (Flush::Write, Flush::Mapped),
    (Flush::Mapped, Flush::Write),
    (Flush::Write, Flush::Write),
];

#[test]
fn frames_survive_rolls_and_starts() {
    for (flush, marks) in WAYS {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path());
        (options.flush, options.marks) = (flush, marks);
        let (mut journal, report) = Journal::open(options.clone()).unwrap();
        assert!(report.is_new);
        append(&mut journal, 1500, 7, 0);
        let incarnation = journal.incarnation();
        drop(journal);
        assert!(segments(directory.path()).len() > 3);
        assert_holds(directory.path(), boot(1), 1, 1500, 0);

        let (mut journal, report) = Journal::open(options).unwrap();
        assert_eq!((report.last_sequence, report.is_new, report.is_same_boot), (1500, false, true));
        assert!(report.removed_tail.is_none(), "{:?}", report.removed_tail);
        assert_eq!(journal.incarnation(), incarnation);
        append(&mut journal, 1000, 100, 0);
        assert_holds(directory.path(), boot(1), 1, 2500, 0);
    }
}

#[test]
fn segments_double_in_length() {
    for zeroing in [Zeroing::None, Zeroing::First, Zeroing::All] {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path());
        options.zeroing = zeroing;
        options.first_segment_length_bytes = 48 << 10;
        options.segment_length_bytes = 256 << 10;
        let lengths =
            || segments(directory.path()).iter().map(|path| path.metadata().unwrap().len() >> 10).collect::<Vec<_>>();
        let (mut journal, _) = Journal::open(options.clone()).unwrap();
        append(&mut journal, 1, 1, 0);
        assert_eq!(lengths(), [48], "a journal of one frame");
        append(&mut journal, 999, 7, 0);
        drop(journal);
        let before = lengths();
        assert_eq!(before[..2], [48, 96]);
        let (mut journal, _) = Journal::open(options).unwrap();
        append(&mut journal, 9_000, 100, 0);
        let grown = lengths();
        assert_eq!(grown[..5], [48, 96, 192, 256, 256], "{grown:?}");
        assert_holds(directory.path(), boot(1), 1, 10_000, 0);
    }
}

#[test]
fn long_batch_is_split_at_frames() {
    for (flush, marks) in WAYS {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path());
        (options.flush, options.marks) = (flush, marks);
        let (mut journal, _) = Journal::open(options).unwrap();
        append(&mut journal, 2000, 2000, 0);
        assert!(segments(directory.path()).len() > 4);
        assert_holds(directory.path(), boot(1), 1, 2000, 0);
    }
}

#[test]
fn replay_begins_at_any_sequence() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 900, 13, 0);
    for from in (1..=901).step_by(7) {
        assert_holds(directory.path(), boot(1), from, 900, 0);
    }
    assert!(read_all(directory.path(), boot(1), 901).unwrap().is_empty());
    for outside in [0, 902, u64::MAX] {
        let refused = read_all(directory.path(), boot(1), outside).unwrap_err();
        assert!(matches!(refused, JournalError::NotHeld { first: 1, last: 900, .. }), "{refused}");
    }
}

#[test]
fn replay_seeks_to_any_sequence() {
    let random = &mut gapless_testkit::random::Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 2000, 13, 0);
    assert!(segments(directory.path()).len() > 4);
    let open = || JournalReader::open_in(directory.path(), boot(1)).unwrap().replay_until(1, 2000).unwrap();
    let mut replay = open();
    for _ in 0..500 {
        let from = 1 + random.below(2000);
        let until = from + random.below(2001 - from);
        replay.seek(from, until).unwrap();
        for expected in from..=until.min(from + random.below(300)) {
            let frame = replay.next_frame().unwrap().unwrap();
            assert_eq!((frame.sequence(), frame.payload()), (expected, &payload(expected, 0)[..]));
        }
    }
    replay.seek(2000, 2000).unwrap();
    assert_eq!(replay.next_frame().unwrap().unwrap().sequence(), 2000);
    assert!(replay.next_frame().unwrap().is_none());
    append(&mut journal, 2, 1, 0);
    replay.seek(2001, 2001).unwrap();
    assert_eq!(replay.next_frame().unwrap().unwrap().sequence(), 2001);
    append(&mut journal, 1000, 13, 0);
    replay.seek(3000, 3000).unwrap();
    for outside in [0, 3004, u64::MAX] {
        let refused = replay.seek(outside, outside).unwrap_err();
        assert!(matches!(refused, JournalError::NotHeld { .. }), "{refused}");
    }
}

#[test]
fn replay_follows_a_live_writer() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    let mut replay = JournalReader::open_in(directory.path(), boot(1)).unwrap().replay(1).unwrap();
    let mut expected = 1;
    for round in 1..60 {
        append(&mut journal, round, 5, 0);
        let first = journal.last_sequence() + 1;
        journal.append(&batch(first, 1, 0), first, first).unwrap();
        while let Some(frame) = replay.next_frame().unwrap() {
            assert_eq!((frame.sequence(), frame.payload()), (expected, &payload(expected, 0)[..]));
            expected += 1;
        }
        assert!(expected >= first && expected <= first + 1);
        journal.commit().unwrap();
    }
    assert!(segments(directory.path()).len() > 3);
}

#[test]
fn batches_equal_single_frames() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 1000, 50, 0);
    let mut replay = JournalReader::open_in(directory.path(), boot(1)).unwrap().replay(5).unwrap();
    let mut expected = 5;
    assert_eq!(replay.next_frame().unwrap().unwrap().sequence(), 5);
    expected += 1;
    while let Some(batch) = replay.next_batch().unwrap() {
        assert_eq!(batch.first_sequence(), expected);
        for frame in batch {
            assert_eq!((frame.sequence(), frame.payload()), (expected, &payload(expected, 0)[..]));
            expected += 1;
        }
    }
    assert_eq!(expected, 1001);
}

#[test]
fn unordered_batch_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 10, 10, 0);
    let refused = |journal: &mut Journal, bytes: &[u8], first, last| journal.append(bytes, first, last).unwrap_err();
    assert!(matches!(
        refused(&mut journal, &batch(12, 1, 0), 12, 12),
        JournalError::BatchSequence { expected: 11, found: 12 }
    ));
    assert!(matches!(refused(&mut journal, &batch(10, 1, 0), 10, 10), JournalError::BatchSequence { .. }));
    assert!(matches!(refused(&mut journal, &batch(11, 1, 0), 11, 10), JournalError::BatchSequence { .. }));
    assert!(matches!(refused(&mut journal, &batch(12, 1, 0), 11, 11), JournalError::BatchMalformed { .. }));
    assert!(matches!(refused(&mut journal, &[], 11, 11), JournalError::BatchMalformed { .. }));
    assert!(matches!(refused(&mut journal, &batch(11, 1, 0)[..65], 11, 11), JournalError::BatchMalformed { .. }));
    append(&mut journal, 1, 1, 0);
    assert_holds(directory.path(), boot(1), 1, 11, 0);
}

#[test]
fn unflushed_is_not_journaled() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    options.flush = Flush::Write;
    options.write_buffer_bytes = 1 << 20;
    let (mut journal, _) = Journal::open(options.clone()).unwrap();
    append(&mut journal, 5, 5, 0);
    journal.append(&batch(6, 3, 0), 6, 8).unwrap();
    assert_eq!(journal.commit_buffered().unwrap(), 5);
    assert_holds(directory.path(), boot(1), 1, 5, 0);
    assert_eq!(journal.commit().unwrap(), 8);
    assert_holds(directory.path(), boot(1), 1, 8, 0);
    drop(journal);

    options.flush_on_commit = true;
    let (mut journal, _) = Journal::open(options).unwrap();
    journal.append(&batch(9, 3, 0), 9, 11).unwrap();
    assert_eq!(journal.commit_buffered().unwrap(), 11);
    assert_holds(directory.path(), boot(1), 1, 11, 0);
}

#[test]
fn released_frames_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 1000, 10, 0);
    journal.set_released(400);
    let refused = journal.truncate_after(399).unwrap_err();
    assert!(matches!(refused, JournalError::TruncatesReleased { sequence: 399, released: 400 }), "{refused}");
    journal.truncate_after(1000).unwrap();
    assert_eq!(journal.last_sequence(), 1000);
    journal.truncate_after(400).unwrap();
    assert_holds(directory.path(), boot(1), 1, 400, 0);
    append(&mut journal, 50, 10, 3);
    drop(journal);
    let (journal, report) = Journal::open(options(directory.path())).unwrap();
    assert_eq!(report.last_sequence, 450);
    assert!(report.removed_tail.is_none(), "no truncated frame reappears: {:?}", report.removed_tail);
    let frames = read_all(directory.path(), boot(1), 1).unwrap();
    assert!(frames[..400].iter().all(|(sequence, found)| *found == payload(*sequence, 0)));
    assert!(frames[400..].iter().all(|(sequence, found)| *found == payload(*sequence, 3)));
    drop(journal);
}

#[test]
fn full_truncation_empties_journal() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    options.first_sequence = 500;
    let (mut journal, report) = Journal::open(options.clone()).unwrap();
    assert_eq!((report.first_sequence, report.last_sequence), (500, 499));
    append(&mut journal, 700, 10, 0);
    assert!(matches!(journal.truncate_after(498), Err(JournalError::NotHeld { first: 500, .. })));
    journal.truncate_after(499).unwrap();
    assert_eq!((journal.first_sequence(), journal.last_sequence()), (500, 499));
    append(&mut journal, 3, 1, 1);
    drop(journal);
    let (_journal, report) = Journal::open(options).unwrap();
    assert_eq!((report.first_sequence, report.last_sequence, report.segments), (500, 502, 1));
}

#[test]
fn truncated_reader_fails() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 20, 10, 0);
    let mut replay = JournalReader::open_in(directory.path(), boot(1)).unwrap().replay(1).unwrap();
    while replay.next_frame().unwrap().is_some() {}
    journal.truncate_after(10).unwrap();
    assert!(matches!(replay.next_frame(), Err(JournalError::Rewound { .. })));
}

#[derive(Clone, Debug)]
enum Step {
    Append { count: u64, size: u64 },
    Truncate { keep_percent: u64 },
    Reopen { clean: bool, other_boot: bool, flush: bool, marks: bool, check: bool },
    Sync,
    Prepare { steps: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (1u64..300, 1u64..120).prop_map(|(count, size)| Step::Append { count, size }),
        1 => (0u64..=100).prop_map(|keep_percent| Step::Truncate { keep_percent }),
        2 => any::<(bool, bool, bool, bool, bool)>()
            .prop_map(|(clean, other_boot, flush, marks, check)| Step::Reopen { clean, other_boot, flush, marks, check }),
        1 => Just(Step::Sync),
        2 => (1usize..10).prop_map(|steps| Step::Prepare { steps }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: gapless_testkit::random::rounds(60, 12) as u32, ..ProptestConfig::default() })]

    #[test]
    fn journal_equals_its_model(steps in proptest::collection::vec(step(), 1..25)) {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path());
        let mut boots = 1;
        let mut model: Vec<Vec<u8>> = Vec::new();
        let (mut journal, _) = Journal::open(options.clone()).unwrap();
        for (salt, step) in (0..).zip(&steps) {
            match *step {
                Step::Append { count, size } => {
                    append(&mut journal, count, size, salt);
                    let first = model.len() as u64 + 1;
                    model.extend((first..first + count).map(|sequence| payload(sequence, salt)));
                }
                Step::Truncate { keep_percent } => {
                    let keep = model.len() as u64 * keep_percent / 100;
                    journal.truncate_after(keep).unwrap();
                    model.truncate(keep as usize);
                }
                Step::Reopen { clean, other_boot, flush, marks, check } => {
                    if clean {
                        journal.close().unwrap();
                    } else {
                        drop(journal);
                    }
                    boots += u128::from(other_boot);
                    options.environment = boot(boots);
                    options.flush = if flush { Flush::Write } else { Flush::Mapped };
                    options.marks = if marks { Flush::Write } else { Flush::Mapped };
                    options.check = if check { RecoveryCheck::All } else { RecoveryCheck::Tail };
                    let (reopened, report) = Journal::open(options.clone()).unwrap();
                    prop_assert!(report.removed_tail.is_none(), "{:?}", report.removed_tail);
                    journal = reopened;
                }
                Step::Sync => {
                    let synced = journal.syncer().sync().unwrap();
                    prop_assert_eq!(synced, model.len() as u64);
                }
                Step::Prepare { steps } => {
                    let mut preparer = journal.preparer();
                    for _ in 0..steps {
                        if !preparer.run_once().unwrap() {
                            break;
                        }
                    }
                }
            }
            prop_assert_eq!(journal.last_sequence(), model.len() as u64);
        }
        let found = read_all(directory.path(), options.environment, 1).unwrap();
        prop_assert_eq!(found.len(), model.len());
        for ((sequence, found), (expected, payload)) in found.iter().zip((1..).zip(&model)) {
            prop_assert_eq!((*sequence, found), (expected, payload));
        }
    }
}
