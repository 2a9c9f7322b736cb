//! Steady state: appending and committing allocate nothing, rolls to a prepared segment included,
//! and neither does replay within a segment. A program of its own, because its allocator counts.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

#[path = "promises/support/mod.rs"]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use gapless_journal::{Flush, Journal, JournalReader};
use support::*;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: passes everything on to the system's allocator; the counter does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's contract is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

#[test]
fn appending_and_replaying_allocate_nothing() {
    assert!({
        let before = allocations();
        drop(std::hint::black_box(Box::new(1)));
        allocations() > before
    });
    for flush in [Flush::Mapped, Flush::Write] {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path());
        (options.flush, options.marks) = (flush, flush);
        let (mut journal, _) = Journal::open(options).unwrap();
        let batches: Vec<(Vec<u8>, u64)> = (0..300).map(|i| (batch(i * 10 + 1, 10, 0), i * 10 + 1)).collect();
        let mut preparer = journal.preparer();
        for (bytes, first) in &batches {
            // The helper's work is its own.
            while preparer.run_once().unwrap() {}
            let before = allocations();
            journal.append(bytes, *first, first + 9).unwrap();
            journal.commit().unwrap();
            assert_eq!(allocations() - before, 0, "{flush:?}, at sequence {first}");
        }
        assert!(segments(directory.path()).len() > 5, "rolls were among them");

        let mut replay = JournalReader::open_in(directory.path(), boot(1)).unwrap().replay(1).unwrap();
        let before = allocations();
        for _ in 0..200 {
            assert!(replay.next_frame().unwrap().is_some());
        }
        assert_eq!(allocations() - before, 0);
    }
}
