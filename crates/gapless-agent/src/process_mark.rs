//! [`ProcessMark`]: whether this process has made something, or is a child that `fork` has given a copy of it.
//!
//! A child has its parent's memory, but none of its threads but one, and where memory is shared it writes into its parent's. So what is
//! shared is not to be used there, nor what a thread of the parent may have had locked. One word tells the two apart: it lies in a page
//! that the kernel wipes in each child (`MADV_WIPEONFORK`), so a look at it is a load, and no system call.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the page; less than that cannot be wiped.
const PAGE: usize = 4096;

/// The process that made something. Copies are the same.
#[derive(Clone, Copy, Debug)]
pub struct ProcessMark {
    word: &'static AtomicU64,
    number: u64,
}

impl ProcessMark {
    /// This process.
    #[must_use]
    pub fn current() -> Self {
        static WORD: OnceLock<&'static AtomicU64> = OnceLock::new();
        // A child has this from its parent, whose numbers it so does not use again.
        static LAST: AtomicU64 = AtomicU64::new(0);
        let word = *WORD.get_or_init(wiped_word);
        loop {
            // Relaxed, here and below: the word says nothing about other memory.
            let number = word.load(Ordering::Relaxed);
            if number != 0 {
                return Self { word, number };
            }
            let next = LAST.fetch_add(1, Ordering::Relaxed) + 1;
            let _ = word.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Whether this is that process, and no child of it.
    #[inline]
    #[must_use]
    pub fn is_here(self) -> bool {
        self.word.load(Ordering::Relaxed) == self.number
    }

    /// Ends a child in which a function of the application has returned that had forked it: it has only this thread, and everything
    /// that the thread would do next is its parent's affair.
    #[inline]
    pub fn end_child(self, what: &str) {
        if !self.is_here() {
            tracing::error!("{what} has returned in a child process that it had forked: that process ends");
            std::process::abort();
        }
    }
}

/// A word that is 0 in each child. Where the kernel cannot wipe a page (before Linux 4.14) it is one that is as it was.
fn wiped_word() -> &'static AtomicU64 {
    static NOT_WIPED: AtomicU64 = AtomicU64::new(0);
    // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
    let page = unsafe { mmap_anonymous(ptr::null_mut(), PAGE, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) };
    let Ok(page) = page else { return &NOT_WIPED };
    // SAFETY: the page is ours, and holds nothing yet.
    if let Err(errno) = unsafe { madvise(page, PAGE, Advice::LinuxWipeOnFork) } {
        tracing::debug!("children of this process cannot be told from it: {errno}");
        // SAFETY: as above; nobody knows it.
        let _ = unsafe { munmap(page, PAGE) };
        return &NOT_WIPED;
    }
    // SAFETY: it is never unmapped, it is aligned, and zeros are an atomic word.
    unsafe { &*page.cast::<AtomicU64>() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_marks_of_a_process_are_of_it() {
        let marks = [0; 3].map(|_| ProcessMark::current());
        assert!(marks.iter().all(|mark| mark.is_here() && mark.number == marks[0].number));
        let in_a_thread = std::thread::spawn(move || marks[0].is_here());
        assert!(in_a_thread.join().unwrap());
    }
}
