//! Standard output as the program was started with it. The runtime of Rust opens `/dev/null` in the place of a closed one, before
//! `main`: a result that nobody gets would look like one that was printed.

#![expect(unsafe_code, reason = "only a constructor runs before the runtime")]

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    let is_closed = rustix::io::fcntl_getfd(rustix::stdio::stdout()) == Err(rustix::io::Errno::BADF);
    // Relaxed: there is no other thread yet.
    WAS_CLOSED.store(is_closed, Ordering::Relaxed);
}

// SAFETY: the section holds pointers to functions that the C runtime calls once, before `main`. `look` makes one system call and
// stores its result: it needs nothing of Rust's runtime, allocates nothing and cannot panic.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// # Errors
/// Standard output was closed when the program was started.
pub(crate) fn check() -> io::Result<()> {
    // Relaxed: it was stored before there were threads.
    if WAS_CLOSED.load(Ordering::Relaxed) {
        return Err(io::Error::other("standard output: it is closed, so nobody would get the result"));
    }
    Ok(())
}
