//! A forked child must use neither shared objects nor any that a thread of the parent may have locked. A word in a page
//! that the kernel wipes in each child (`MADV_WIPEONFORK`) tells the two apart: a load instead of a system call.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE: usize = 4096;

/// Identity of the process that created an object.
#[derive(Clone, Copy, Debug)]
pub struct ProcessMark {
    word: &'static AtomicU64,
    number: u64,
}

impl ProcessMark {
    #[must_use]
    pub fn current() -> Self {
        static WORD: OnceLock<&'static AtomicU64> = OnceLock::new();
        // Inherited by a child, which so does not reuse numbers.
        static LAST: AtomicU64 = AtomicU64::new(0);
        let word = *WORD.get_or_init(wiped_word);
        loop {
            // Relaxed, here and below: the word publishes no other memory.
            let number = word.load(Ordering::Relaxed);
            if number != 0 {
                return Self { word, number };
            }
            let next = LAST.fetch_add(1, Ordering::Relaxed) + 1;
            let _ = word.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Whether this process is the creator, not a child of it.
    #[inline]
    #[must_use]
    pub fn is_here(self) -> bool {
        self.word.load(Ordering::Relaxed) == self.number
    }

    /// Ends a forked child when the application function that forked it has returned: its only thread's further work
    /// belongs to the parent.
    #[inline]
    pub fn end_child(self, what: &str) {
        if !self.is_here() {
            tracing::error!("{what} has returned in a child process that it had forked: that process ends");
            std::process::abort();
        }
    }
}

/// Returns a word that is 0 in each child. If the kernel cannot wipe a page (before Linux 4.14), the child keeps the
/// value.
fn wiped_word() -> &'static AtomicU64 {
    static NOT_WIPED: AtomicU64 = AtomicU64::new(0);
    // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
    let page = unsafe { mmap_anonymous(ptr::null_mut(), PAGE, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) };
    let Ok(page) = page else { return &NOT_WIPED };
    // SAFETY: the page is ours, and empty.
    if let Err(errno) = unsafe { madvise(page, PAGE, Advice::LinuxWipeOnFork) } {
        tracing::debug!("children of this process cannot be told from it: {errno}");
        // SAFETY: as above; no reference to it exists.
        let _ = unsafe { munmap(page, PAGE) };
        return &NOT_WIPED;
    }
    // SAFETY: it is never unmapped, it is aligned, and zeros are a valid atomic.
    unsafe { &*page.cast::<AtomicU64>() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_a_process_are_equal() {
        let marks = [0; 3].map(|_| ProcessMark::current());
        assert!(marks.iter().all(|mark| mark.is_here() && mark.number == marks[0].number));
        let in_a_thread = std::thread::spawn(move || marks[0].is_here());
        assert!(in_a_thread.join().unwrap());
    }
}
