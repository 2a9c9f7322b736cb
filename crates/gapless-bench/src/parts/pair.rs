//! Two threads with a core each, where there are two, for measurements that spin.

use crate::affinity::{pair_of_cores, pin_current_thread};
use crate::{BenchError, Result};
use std::sync::atomic::{AtomicBool, Ordering};

/// Set when one of the two sides has ended, well or not.
pub(super) struct Ended(AtomicBool);

/// Sets the flag also when its side fails or panics, or the other would spin for ever.
struct AtEnd<'a>(&'a Ended);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `Wait::turn`; what this side sent last is seen.
        self.0.0.store(true, Ordering::Release);
    }
}

/// One waiting for the other side.
#[derive(Default)]
pub(super) struct Wait(u32);

impl Wait {
    /// One turn; false when the other side has ended. Yields after a while: two sides may share a CPU.
    #[inline]
    pub(super) fn turn(&mut self, ended: &Ended) -> bool {
        const TURNS_BEFORE_YIELD: u32 = 10_000;
        if self.0 < TURNS_BEFORE_YIELD {
            self.0 += 1;
            std::hint::spin_loop();
            return true;
        }
        // Acquire: pairs with the Release in `AtEnd`.
        if ended.0.load(Ordering::Acquire) {
            return false;
        }
        std::thread::yield_now();
        true
    }
}

/// Runs `there` on the second core while `here` runs on the first; what `here` returns. The calling
/// thread waits and keeps its own affinity.
pub(super) fn on_two_cores<T: Send>(
    name: &'static str,
    there: impl FnOnce(&Ended) -> Result<()> + Send,
    here: impl FnOnce(&Ended) -> Result<T> + Send,
) -> Result<T> {
    let ended = Ended(AtomicBool::new(false));
    let cpus = pair_of_cores();
    let panicked = |_| BenchError::Measurement { name, reason: "one side panicked".to_owned() };
    std::thread::scope(|scope| {
        let ended = &ended;
        let there = scope.spawn(move || {
            let _at_end = AtEnd(ended);
            cpus.map_or(Ok(()), |(_, second)| pin_current_thread(&[second]))?;
            there(ended)
        });
        let here = scope.spawn(move || {
            let _at_end = AtEnd(ended);
            cpus.map_or(Ok(()), |(first, _)| pin_current_thread(&[first]))?;
            here(ended)
        });
        let measured = here.join().map_err(panicked).and_then(|result| result);
        let partnered = there.join().map_err(panicked).and_then(|result| result);
        // The partner's error is the cause if both failed.
        partnered.and(measured)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_that_fails_ends_the_other_s_waiting() {
        let fails = |_: &Ended| Err(BenchError::Measurement { name: "there", reason: "broken".to_owned() });
        let waits = |ended: &Ended| {
            let mut wait = Wait::default();
            while wait.turn(ended) {}
            Ok(())
        };
        let error = on_two_cores("test", fails, waits).unwrap_err();
        assert!(error.to_string().contains("broken"), "{error}");
    }
}
