//! Covers rolls to a prepared segment too. A separate program, because its allocator counts.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

#[path = "promises/support/mod.rs"]
mod support;

use gapless_journal::{Flush, Journal, JournalReader};
use gapless_testkit::allocations;
use support::*;

#[global_allocator]
static ALLOCATOR: allocations::CountingAllocator = allocations::CountingAllocator;

#[test]
fn append_and_replay_do_not_allocate() {
    for flush in [Flush::Mapped, Flush::Write] {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path());
        (options.flush, options.marks) = (flush, flush);
        let (mut journal, _) = Journal::open(options).unwrap();
        let batches: Vec<(Vec<u8>, u64)> = (0..300).map(|i| (batch(i * 10 + 1, 10, 0), i * 10 + 1)).collect();
        let mut preparer = journal.preparer();
        for (bytes, first) in &batches {
            // The helper's allocations do not count.
            while preparer.run_once().unwrap() {}
            let count = allocations::during(|| {
                journal.append(bytes, *first, first + 9).unwrap();
                journal.commit().unwrap();
            });
            assert_eq!(count, 0, "{flush:?}, at sequence {first}");
        }
        assert!(segments(directory.path()).len() > 5, "the appends roll segments");

        let mut replay = JournalReader::open_in(directory.path(), boot(1)).unwrap().replay(1).unwrap();
        let count = allocations::during(|| (0..200).for_each(|_| assert!(replay.next_frame().unwrap().is_some())));
        assert_eq!(count, 0);
    }
}
