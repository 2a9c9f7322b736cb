//! Waits with a deadline; a missed one fails the test and names the event.

use std::time::{Duration, Instant};

/// How long anything may take: far beyond what it takes on a machine that has a lot else to do.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Pauses between two looks at what others do.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Waits until others have made it so; sleeps between two looks.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    until_some(what, || is_so().then_some(()));
}

/// Waits until others have made what `look` finds. Sleeps between two looks about as long as a look takes, which leaves the others their time.
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

/// Takes turns until one says that it is so: for tests that poll what they wait for, without sleeping between two turns.
#[track_caller]
pub fn turn_until(what: &str, mut turn: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !turn() {
        assert!(begun.elapsed() < PATIENCE, "{what}: not within {} s", PATIENCE.as_secs());
        std::thread::yield_now();
    }
}
