//! Waiting for the other process: spinning, then yielding and looking whether it is still there, so
//! that no wait outlives the process that would end it.

use crate::Result;

/// The other process, as one that waits for it sees it.
pub(super) trait Other {
    /// An error if there is nothing to wait for any more.
    fn look(&mut self) -> Result<()>;

    /// Whether both processes have the same CPU, so that spinning keeps the other from working.
    fn shares_the_cpu(&self) -> bool;

    /// Waits until `ready` says so.
    ///
    /// # Errors
    /// That of `ready`; that of [`Other::look`] if `ready` still says no afterwards.
    #[inline]
    fn wait_until(&mut self, mut ready: impl FnMut() -> Result<bool>) -> Result<()>
    where
        Self: Sized,
    {
        const TURNS_BEFORE_YIELD: u32 = 10_000;
        let mut turns = 0;
        while !ready()? {
            if turns < TURNS_BEFORE_YIELD && !self.shares_the_cpu() {
                turns += 1;
                std::hint::spin_loop();
                continue;
            }
            if let Err(gone) = self.look() {
                // What it did last before it went still counts.
                return if ready()? { Ok(()) } else { Err(gone) };
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BenchError;

    /// Gone after so many looks.
    struct Goes(u32);

    impl Other for Goes {
        fn look(&mut self) -> Result<()> {
            self.0 = self.0.checked_sub(1).ok_or(BenchError::Measurement { name: "log", reason: "gone".to_owned() })?;
            Ok(())
        }

        fn shares_the_cpu(&self) -> bool {
            false
        }
    }

    #[test]
    fn an_other_that_goes_ends_the_waiting() {
        let error = Goes(3).wait_until(|| Ok(false)).unwrap_err();
        assert!(error.to_string().contains("gone"), "{error}");
    }

    #[test]
    fn what_it_did_last_is_still_seen() {
        let looks = std::cell::Cell::new(0);
        struct Finishes<'a>(&'a std::cell::Cell<u32>);
        impl Other for Finishes<'_> {
            fn look(&mut self) -> Result<()> {
                self.0.set(1);
                Goes(0).look()
            }
            fn shares_the_cpu(&self) -> bool {
                true
            }
        }
        Finishes(&looks).wait_until(|| Ok(looks.get() == 1)).unwrap();
    }
}
