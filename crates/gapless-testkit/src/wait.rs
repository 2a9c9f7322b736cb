//! A missed deadline fails the test and names the event.

use std::time::{Duration, Instant};

/// Far beyond the usual time, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Sleeps between two checks.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    until_some(what, || is_so().then_some(()));
}

/// Sleeps about as long as a look takes, which leaves time to the others.
#[track_caller]
pub fn until_some<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        let since = Instant::now();
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: not within {} s", PATIENCE.as_secs());
        std::thread::sleep(since.elapsed().clamp(PAUSE_MIN, PAUSE_MAX));
    }
}

/// Does not sleep, for tests that poll the thing that they wait for.
#[track_caller]
pub fn turn_until(what: &str, mut turn: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !turn() {
        assert!(begun.elapsed() < PATIENCE, "{what}: not within {} s", PATIENCE.as_secs());
        std::thread::yield_now();
    }
}
