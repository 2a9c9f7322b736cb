//! Standard input and output as the program was started with them. The runtime of Rust opens `/dev/null` in the place of a closed one,
//! before `main`: a result that nobody gets would look like one that was printed, and a request that nobody wrote like an empty one.

#![expect(unsafe_code, reason = "only a constructor runs before the runtime")]

use rustix::fd::BorrowedFd;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static INPUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);
static OUTPUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    let is_closed = |stream: BorrowedFd<'_>| rustix::io::fcntl_getfd(stream) == Err(rustix::io::Errno::BADF);
    // Relaxed: there is no other thread yet.
    INPUT_WAS_CLOSED.store(is_closed(rustix::stdio::stdin()), Ordering::Relaxed);
    OUTPUT_WAS_CLOSED.store(is_closed(rustix::stdio::stdout()), Ordering::Relaxed);
}

// SAFETY: the section holds pointers to functions that the C runtime calls once, before `main`. `look` makes two system calls and
// stores their results: it needs nothing of Rust's runtime, allocates nothing and cannot panic.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// # Errors
/// Standard output was closed when the program was started.
pub(crate) fn check_output() -> io::Result<()> {
    // Relaxed: it was stored before there were threads.
    if OUTPUT_WAS_CLOSED.load(Ordering::Relaxed) {
        return Err(io::Error::other("standard output: it is closed, so nobody would get the result"));
    }
    Ok(())
}

/// # Errors
/// Standard input was closed when the program was started.
pub(crate) fn check_input() -> io::Result<()> {
    // Relaxed: as above.
    if INPUT_WAS_CLOSED.load(Ordering::Relaxed) {
        return Err(io::Error::other("it is closed"));
    }
    Ok(())
}
