//! Decision 7 for consensus records, byte by byte.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use std::path::{Path, PathBuf};

use crate::support::*;
use gapless_journal::{ConsensusRecord, Journal, JournalError, MarkName, inspect};
use gapless_testkit::random::{printed_seed, rounds};
use proptest::prelude::*;

fn journal(directory: &Path, commits: bool) -> (PathBuf, Vec<ConsensusRecord>) {
    let (mut journal, _) = Journal::open(options(directory)).unwrap();
    append(&mut journal, 5, 5, 0);
    if commits {
        journal.sync().unwrap();
    }
    journal.append_record(b"the first record").unwrap();
    journal.append(&batch(6, 5, 0), 6, 10).unwrap();
    journal.append_checkpoint(b"the second, a checkpoint").unwrap();
    journal.append_record(b"the third").unwrap();
    if commits {
        journal.commit().unwrap();
    }
    let path = segments(directory).remove(0);
    let all = [
        record(5, false, b"the first record".to_vec()),
        record(10, true, b"the second, a checkpoint".to_vec()),
        record(10, false, b"the third".to_vec()),
    ];
    (path, all.into())
}

fn from_newest_checkpoint(records: &[ConsensusRecord]) -> &[ConsensusRecord] {
    &records[records.iter().rposition(|record| record.is_checkpoint).unwrap_or(0)..]
}

#[test]
fn damaged_vouched_record_fails() {
    let directory = tempfile::tempdir().unwrap();
    let (path, all) = journal(directory.path(), true);
    for (number, (position, length, _)) in find_records(&path).into_iter().enumerate() {
        for place in position..position + length {
            flip(&path, place, 0x20);
            let opened = Journal::open(options(directory.path())).unwrap_err();
            let replayed = read_all(directory.path(), boot(1), 1);
            let read = read_records(directory.path(), boot(1));
            let verified = inspect::verify_in(directory.path(), boot(1)).unwrap();
            // Records before the newest readable checkpoint are not needed.
            let is_needed = number > 0;
            let errors = [Some(opened), Some(replayed.unwrap_err()), read.err(), verified.problems.into_iter().next()];
            for (way, error) in errors.into_iter().enumerate() {
                match error {
                    Some(JournalError::Corrupt { segment, position: found, mark, .. }) => {
                        assert_eq!((&segment, found, mark), (&path, position, MarkName::Journaled), "way {way}");
                    }
                    None => assert!(way == 2 && !is_needed, "byte {place}, way {way}"),
                    Some(other) => panic!("expected corruption, found: {other}"),
                }
            }
            flip(&path, place, 0x20);
        }
    }
    assert_eq!(read_records(directory.path(), boot(1)).unwrap(), from_newest_checkpoint(&all));
}

#[test]
fn unvouched_damage_is_removed() {
    let (step, offset) = (rounds(1, 10), printed_seed() % rounds(1, 10));
    for number in 0..3 {
        let directory = tempfile::tempdir().unwrap();
        let (path, all) = journal(directory.path(), false);
        let whole = std::fs::read(&path).unwrap();
        let (position, length, payload) = find_records(&path).swap_remove(number);
        let last_sequence = all[number].after_sequence;
        for place in (position + offset..position + length).step_by(step as usize) {
            std::fs::write(&path, &whole).unwrap();
            flip(&path, place, 0x08);
            let (journal, report) = Journal::open(options(directory.path())).unwrap();
            let cut = report.removed_tail.expect("the record and what follows it is cut");
            assert_eq!(
                (&cut.segment, cut.position, cut.sequence),
                (&path, position, last_sequence + 1),
                "byte {place}"
            );
            assert_eq!(cut.frames, 10 - last_sequence);
            // If only the padding is wrong, the record itself is intact.
            let is_padding = place >= position + 64 + payload.len() as u64;
            assert_eq!(cut.records as usize, 2 - number + usize::from(is_padding));
            assert_eq!((report.last_sequence, journal.last_sequence()), (last_sequence, last_sequence));
            drop(journal);
            assert_eq!(read_records(directory.path(), boot(1)).unwrap(), from_newest_checkpoint(&all[..number]));
            assert_holds(directory.path(), boot(1), 1, last_sequence, 0);
            let (_journal, report) = Journal::open(options(directory.path())).unwrap();
            assert!(report.removed_tail.is_none(), "nothing is left to cut: {:?}", report.removed_tail);
        }
    }
}

#[test]
fn torn_record_is_removed() {
    for covered in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let (path, all) = journal(directory.path(), covered);
        let whole = std::fs::read(&path).unwrap();
        let (position, length, payload) = find_records(&path).pop().unwrap();
        let end = position + 64 + payload.len() as u64;
        for place in position..end {
            std::fs::write(&path, &whole).unwrap();
            // Bytes that the process had not copied yet are zeros. Skips places where zeros belong.
            overwrite(&path, place, &vec![0; (position + length - place) as usize]);
            if std::fs::read(&path).unwrap() == whole {
                continue;
            }
            let opened = Journal::open(options(directory.path()));
            if covered {
                assert!(matches!(opened.unwrap_err(), JournalError::Corrupt { .. }), "byte {place}");
                assert!(matches!(read_records(directory.path(), boot(1)), Err(JournalError::Corrupt { .. })));
                continue;
            }
            let (journal, report) = opened.unwrap();
            let cut = report.removed_tail.filter(|_| place > position);
            assert_eq!(cut.as_ref().map(|cut| cut.position), (place > position).then_some(position), "byte {place}");
            drop(journal);
            assert_eq!(read_records(directory.path(), boot(1)).unwrap(), from_newest_checkpoint(&all[..2]));
            assert_holds(directory.path(), boot(1), 1, 10, 0);
        }
    }
}

#[test]
fn misplaced_record_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _) = journal(directory.path(), true);
    let records = find_records(&path);
    let bytes = std::fs::read(&path).unwrap();
    let of = |number: usize| {
        let (position, length, _) = records[number];
        &bytes[position as usize..(position + length) as usize]
    };
    assert_eq!(of(0).len(), of(2).len(), "the records have equal lengths");
    overwrite(&path, records[2].0, of(0));
    for error in
        [Journal::open(options(directory.path())).unwrap_err(), read_records(directory.path(), boot(1)).unwrap_err()]
    {
        assert!(error.to_string().contains("a record after sequence 10 expected, one after sequence 5"), "{error}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Frames(u64),
    Record(u64),
    Checkpoint(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u64..60).prop_map(Step::Frames),
        3 => (0u64..1000).prop_map(Step::Record),
        1 => (0u64..1000).prop_map(Step::Checkpoint),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: gapless_testkit::random::rounds(120, 12) as u32, ..ProptestConfig::default() })]

    #[test]
    fn vouched_records_exist_or_error(
        steps in proptest::collection::vec(step(), 1..60),
        synced_at in 0.0f64..1.0,
        place in (0.0f64..1.0, prop_oneof![0.0f64..1.0, 0.0f64..0.2]),
        damage in prop_oneof![
            (0u8..8).prop_map(|bit| vec![1 << bit]),
            proptest::collection::vec(any::<u8>(), 1..64),
            Just(vec![0; 4096]),
        ],
        is_other_boot in any::<bool>(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
        let mut all: Vec<ConsensusRecord> = Vec::new();
        let (mut synced, at) = ((0, 0), (steps.len() as f64 * synced_at) as usize);
        for (i, step) in steps.iter().enumerate() {
            match *step {
                Step::Frames(count) => append(&mut journal, count, count, 0),
                Step::Record(number) | Step::Checkpoint(number) => {
                    let is_checkpoint = matches!(step, Step::Checkpoint(_));
                    let payload = record_payload(number);
                    if is_checkpoint { journal.append_checkpoint(&payload) } else { journal.append_record(&payload) }.unwrap();
                    all.push(record(journal.last_sequence(), is_checkpoint, payload));
                }
            }
            if i == at {
                journal.sync().unwrap();
                synced = (journal.last_sequence(), all.len());
            }
        }
        journal.commit().unwrap();
        let last = journal.last_sequence();
        drop(journal);
        let paths = segments(directory.path());
        let path = &paths[(paths.len() as f64 * place.0) as usize];
        let position = (SEGMENT_LENGTH as f64 * place.1) as u64;
        overwrite(path, position, &damage[..damage.len().min((SEGMENT_LENGTH - position) as usize)]);

        let must_hold = if is_other_boot { synced } else { (last, all.len()) };
        let environment = boot(if is_other_boot { 2 } else { 1 });
        let check = |records: &[ConsensusRecord]| {
            // A contiguous part of all records, from a checkpoint or the first on, that ends no earlier than was
            // vouched for.
            let is_here = |end: usize| end >= records.len() && all[end - records.len()..end] == *records;
            let found = (must_hold.1..=all.len()).any(is_here);
            prop_assert!(found, "{} records of {}, {} vouched for", records.len(), all.len(), must_hold.1);
            let begins = all.len() == records.len() || records.first().is_some_and(|record| record.is_checkpoint);
            prop_assert!(begins || records == &all[..records.len()]);
            Ok(())
        };
        if let Ok(records) = read_records(directory.path(), environment.clone()) {
            check(&records)?;
        }
        let mut options = options(directory.path());
        options.environment = environment.clone();
        if let Ok((journal, report)) = Journal::open(options) {
            prop_assert!(report.last_sequence >= must_hold.0);
            drop(journal);
            if let Ok(records) = read_records(directory.path(), environment.clone()) {
                check(&records)?;
            }
        }
    }
}
