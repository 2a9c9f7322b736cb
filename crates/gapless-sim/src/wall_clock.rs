//! Time of day for application code: the member's clock in a run, another time in the second pass. The executable
//! defines `clock_gettime`, which precedes the C library's, so [`std::time::SystemTime`] uses it. The crate's only
//! `unsafe` code.
#![allow(unsafe_code, reason = "the C library's function has a pointer, and a name that the linker looks for")]

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    static EPOCH_NS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Shift by 407 days, 3 hours, 7 minutes and 1.387 seconds, ns. Odd in each unit in which a handler may read a clock
/// (one weekday); little below a minute, so that few moments carry over to an even number of minutes.
pub(crate) const OTHER_TIME_NS: u64 = ((407 * 24 + 3) * 3_600 + 7 * 60 + 1) * 1_000_000_000 + 387_000_000;

static SHIFT_NS: AtomicU64 = AtomicU64::new(0);

pub(crate) fn shift() {
    // Relaxed: set before the reading threads start.
    SHIFT_NS.store(OTHER_TIME_NS, Ordering::Relaxed);
}

/// Guard that ends the change when dropped.
pub(crate) struct TimeOfDay {
    before: Option<u64>,
}

impl TimeOfDay {
    /// `epoch_ns` is since 1970.
    pub(crate) fn set(epoch_ns: u64) -> Self {
        // Keeps the function in the program.
        std::hint::black_box(clock_gettime as unsafe extern "C" fn(_, _) -> _);
        let epoch_ns = epoch_ns.wrapping_add(SHIFT_NS.load(Ordering::Relaxed));
        Self { before: EPOCH_NS.replace(Some(epoch_ns)) }
    }
}

impl Drop for TimeOfDay {
    fn drop(&mut self) {
        EPOCH_NS.set(self.before);
    }
}

/// Replaces the C library's function.
///
/// # Safety
/// `time` is null or valid for writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> libc::c_int {
    let is_time_of_day = matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI);
    match EPOCH_NS.get() {
        Some(epoch_ns) if is_time_of_day && !time.is_null() => {
            let (seconds, nanoseconds) = (epoch_ns / 1_000_000_000, epoch_ns % 1_000_000_000);
            // SAFETY: `time` is valid for writes by the caller's contract, and not null.
            unsafe {
                time.write(libc::timespec { tv_sec: seconds as libc::time_t, tv_nsec: nanoseconds as libc::c_long });
            }
            0
        }
        // SAFETY: the kernel checks the pointer. A direct system call, because the C library's function may be this
        // one.
        _ => unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) as libc::c_int },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant, SystemTime};

    #[test]
    fn time_of_day_is_per_thread() {
        let (before, begun) = (SystemTime::now(), Instant::now());
        let given = Duration::from_millis(1_234_567);
        let time_of_day = TimeOfDay::set(given.as_nanos() as u64);
        assert_eq!(SystemTime::now(), SystemTime::UNIX_EPOCH + given);
        let other = std::thread::spawn(SystemTime::now).join().expect("it reads a clock");
        assert!(other >= before);
        drop(time_of_day);
        assert!(SystemTime::now() >= before && Instant::now() >= begun);
    }
}
