//! Compares random operations with a model of two vectors. A failure prints its seed.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::support::*;
use gapless_journal::{ConsensusRecord, Flush, Journal, JournalError, JournalReader, RecoveryCheck, inspect};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Frames { count: u64 },
    Records { count: u64, number: u64 },
    Long { number: u64 },
    Checkpoint { number: u64 },
    Commit,
    Sync,
    Truncate { keep_percent: u64 },
    Reopen { clean: bool, other_boot: bool, flush: bool, check: bool },
    Prepare { steps: usize },
    Snapshot { percent: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (1u64..150).prop_map(|count| Step::Frames { count }),
        4 => (1u64..20, 0u64..1000).prop_map(|(count, number)| Step::Records { count, number }),
        2 => (0u64..256).prop_map(|number| Step::Long { number }),
        2 => (0u64..1000).prop_map(|number| Step::Checkpoint { number }),
        3 => Just(Step::Commit),
        1 => Just(Step::Sync),
        2 => (0u64..=100).prop_map(|keep_percent| Step::Truncate { keep_percent }),
        2 => any::<(bool, bool, bool, bool)>()
            .prop_map(|(clean, other_boot, flush, check)| Step::Reopen { clean, other_boot, flush, check }),
        2 => (1usize..10).prop_map(|steps| Step::Prepare { steps }),
        1 => (0u64..=100).prop_map(|percent| Step::Snapshot { percent }),
    ]
}

#[derive(Default)]
struct Model {
    /// By sequence from 1; retention may have deleted the first of them.
    frames: Vec<Vec<u8>>,
    records: Vec<ConsensusRecord>,
}

impl Model {
    fn put(&mut self, journal: &mut Journal, payload: Vec<u8>, is_checkpoint: bool) {
        let appended =
            if is_checkpoint { journal.append_checkpoint(&payload) } else { journal.append_record(&payload) };
        match appended {
            Ok(()) => self.records.push(record(self.frames.len() as u64, is_checkpoint, payload)),
            // A segment without a frame accepts only a limited number.
            Err(JournalError::RecordsFull { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }

    fn check(&self, journal: &Journal, environment: gapless_journal::JournalEnvironment) {
        let directory = journal.directory();
        let first = journal.first_sequence();
        let found = read_all(directory, environment.clone(), first).unwrap();
        assert_eq!(found.len() as u64, self.frames.len() as u64 + 1 - first);
        for ((sequence, payload), expected) in found.iter().zip(first..) {
            assert_eq!((*sequence, payload), (expected, &self.frames[expected as usize - 1]));
        }
        let from = self.records.iter().rposition(|record| record.is_checkpoint).unwrap_or(0);
        assert_eq!(read_records(directory, environment.clone()).unwrap(), self.records[from..]);
        let report = inspect::verify_in(directory, environment.clone()).unwrap();
        assert!(report.problems.is_empty() && report.stop.is_none(), "{report:?}");
        assert_eq!((report.last_sequence, report.bad_index_entries), (self.frames.len() as u64, 0));
        if first == 1 {
            assert_eq!(report.records, self.records.len() as u64);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: gapless_testkit::random::rounds(80, 16) as u32, ..ProptestConfig::default() })]

    #[test]
    fn journal_equals_its_model(steps in proptest::collection::vec(step(), 1..40), is_small in any::<bool>()) {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path());
        if is_small {
            options.segment_length_bytes = 24 * 1024;
        }
        options.retention.bytes_max = Some(2 * options.segment_length_bytes);
        let mut boots = 1;
        let mut model = Model::default();
        let mut snapshot = 0;
        let (mut journal, _) = Journal::open(options.clone()).unwrap();
        for (salt, step) in (0..).zip(&steps) {
            match *step {
                Step::Frames { count } => {
                    let first = model.frames.len() as u64 + 1;
                    journal.append(&batch(first, count, salt), first, first + count - 1).unwrap();
                    model.frames.extend((first..first + count).map(|sequence| payload(sequence, salt)));
                }
                Step::Records { count, number } => {
                    for number in number..number + count {
                        model.put(&mut journal, record_payload(number), false);
                    }
                }
                Step::Long { number } => {
                    model.put(&mut journal, vec![number as u8; FRAME_LENGTH_MAX - 64 - number as usize], false);
                }
                Step::Checkpoint { number } => model.put(&mut journal, record_payload(number), true),
                Step::Commit => {
                    prop_assert_eq!(journal.commit().unwrap(), model.frames.len() as u64);
                    model.check(&journal, options.environment.clone());
                }
                Step::Sync => prop_assert_eq!(journal.sync().unwrap(), model.frames.len() as u64),
                Step::Truncate { keep_percent } => {
                    // A snapshot covers only released frames.
                    let keep = (model.frames.len() as u64 * keep_percent / 100).max(snapshot);
                    journal.set_released(snapshot);
                    journal.truncate_after(keep).unwrap();
                    // A truncation without later frames does nothing.
                    journal.commit().unwrap();
                    model.frames.truncate(keep as usize);
                    // Records after the last frame are removed, even if no frame is.
                    model.records.retain(|record| record.after_sequence < keep);
                    model.check(&journal, options.environment.clone());
                }
                Step::Reopen { clean, other_boot, flush, check } => {
                    if clean {
                        journal.close().unwrap();
                    } else {
                        journal.commit().unwrap();
                        drop(journal);
                    }
                    boots += u128::from(other_boot);
                    options.environment = boot(boots);
                    let way = if flush { Flush::Write } else { Flush::Mapped };
                    (options.flush, options.marks) = (way, way);
                    options.check = if check { RecoveryCheck::All } else { RecoveryCheck::Tail };
                    let (reopened, report) = Journal::open(options.clone()).unwrap();
                    prop_assert!(report.removed_tail.is_none(), "{:?}", report.removed_tail);
                    journal = reopened;
                    model.check(&journal, options.environment.clone());
                }
                Step::Prepare { steps } => {
                    let mut preparer = journal.preparer();
                    for _ in 0..steps {
                        if !preparer.run_once().unwrap() {
                            break;
                        }
                    }
                }
                Step::Snapshot { percent } => {
                    snapshot = snapshot.max(model.frames.len() as u64 * percent / 100);
                    journal.set_snapshot_sequence(snapshot);
                }
            }
            prop_assert_eq!(journal.last_sequence(), model.frames.len() as u64);
        }
        journal.commit().unwrap();
        model.check(&journal, options.environment.clone());
        let last = JournalReader::open_in(directory.path(), options.environment.clone()).unwrap().last_sequence().unwrap();
        prop_assert_eq!(last, model.frames.len() as u64);
    }
}
