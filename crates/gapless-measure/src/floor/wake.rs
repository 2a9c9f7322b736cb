//! The cost of waking a blocked thread and of being woken by it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex;
use rustix::time::Timespec;

use super::sampling::{FloorEffort, StopFlag};
use crate::FloorRow;
use crate::Result;

/// One word per direction; each counts the wake-ups sent.
pub(super) fn futex(effort: &FloorEffort) -> Result<FloorRow> {
    let (there, back) = (AtomicU32::new(0), AtomicU32::new(0));
    let partner = |stop: &StopFlag| {
        let mut seen = 0;
        while wait_for_change(&there, seen, stop, effort)? {
            seen = seen.wrapping_add(1);
            send(&back, seen, effort)?;
        }
        Ok(())
    };
    let histogram = effort.on_two_threads(partner, |stop| {
        let mut sent: u32 = 0;
        effort.sample(|| {
            sent = sent.wrapping_add(1);
            send(&there, sent, effort)?;
            if wait_for_change(&back, sent.wrapping_sub(1), stop, effort)? { Ok(()) } else { Err(effort.abandoned()) }
        })
    })?;
    effort.latency_row(0, &histogram)
}

fn send(word: &AtomicU32, value: u32, effort: &FloorEffort) -> Result<()> {
    // SeqCst, the kernel compares the word under its own lock: a waiting thread sees the new value or is woken.
    word.store(value, Ordering::SeqCst);
    futex::wake(word, futex::Flags::PRIVATE, 1).map(drop).map_err(|error| effort.failed(error))
}

/// `false` when the other side has stopped.
fn wait_for_change(word: &AtomicU32, old: u32, stop: &StopFlag, effort: &FloorEffort) -> Result<bool> {
    // A thread that stops does not wake the other one.
    let limit = Timespec::try_from(Duration::from_millis(20)).map_err(|error| effort.failed(error))?;
    while word.load(Ordering::SeqCst) == old {
        match futex::wait(word, futex::Flags::PRIVATE, old, Some(&limit)) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => (),
            Err(Errno::TIMEDOUT) => {
                if stop.is_set() {
                    return Ok(false);
                }
            }
            Err(error) => return Err(effort.failed(error)),
        }
    }
    Ok(true)
}
