//! Rust's runtime replaces a closed standard stream by `/dev/null` before `main`, so that a lost result would seem
//! printed, and a missing request empty.

#![expect(unsafe_code, reason = "only a constructor runs before the runtime")]

use rustix::fd::BorrowedFd;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static INPUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);
static OUTPUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn check_standard_streams() {
    let is_closed = |stream: BorrowedFd<'_>| rustix::io::fcntl_getfd(stream) == Err(rustix::io::Errno::BADF);
    // Relaxed: no other thread exists yet.
    INPUT_WAS_CLOSED.store(is_closed(rustix::stdio::stdin()), Ordering::Relaxed);
    OUTPUT_WAS_CLOSED.store(is_closed(rustix::stdio::stdout()), Ordering::Relaxed);
}

// SAFETY: the section holds pointers to functions that the C runtime calls once, before `main`. `check_standard_streams` makes two system
// calls and stores their results: it does not depend on Rust's runtime, does not allocate and cannot panic.
#[used]
#[unsafe(link_section = ".init_array")]
static CHECK_STANDARD_STREAMS: extern "C" fn() = check_standard_streams;

pub(crate) fn check_output() -> io::Result<()> {
    if OUTPUT_WAS_CLOSED.load(Ordering::Relaxed) {
        return Err(io::Error::other("standard output: it is closed, so nobody would get the result"));
    }
    Ok(())
}

pub(crate) fn check_input() -> io::Result<()> {
    if INPUT_WAS_CLOSED.load(Ordering::Relaxed) {
        return Err(io::Error::other("it is closed"));
    }
    Ok(())
}
