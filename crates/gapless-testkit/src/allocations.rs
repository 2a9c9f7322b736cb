//! A counting allocator. It counts for a whole program, so a test that counts is a program of its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts per thread. A test program makes it its `#[global_allocator]`.
#[derive(Debug)]
pub struct CountingAllocator;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed to the system's allocator unchanged; counting touches a cell of the thread and allocates
// nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`, and `pointer` came from `alloc` above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Counts this thread.
///
/// # Panics
/// If [`CountingAllocator`] is not the program's allocator.
pub fn during(work: impl FnOnce()) -> u64 {
    let count = |work: &mut dyn FnMut()| {
        let before = ALLOCATIONS.with(Cell::get);
        work();
        ALLOCATIONS.with(Cell::get) - before
    };
    assert!(count(&mut || drop(std::hint::black_box(Box::new(1)))) > 0, "`Counting` is not the allocator");
    let mut work = Some(work);
    count(&mut || work.take().into_iter().for_each(|work| work()))
}
