//! `Addresses`: the addresses of a cluster's members, and which to try next.

use std::fmt::Display;
use std::time::{Duration, Instant};

pub struct Addresses<A> {
    all: Vec<A>,
    at: usize,
    failed: u32,
    failed_at: Option<Instant>,
}

/// Wait after a full round of failed attempts, doubled each round, from the minimum to the maximum.
const WAIT_MIN: Duration = Duration::from_millis(5);
const WAIT_MAX: Duration = Duration::from_millis(100);
/// Connected this long, the wait starts again at the minimum.
const CALM: Duration = Duration::from_secs(1);

impl<A: Display> Addresses<A> {
    /// Starts with the first address.
    ///
    /// # Panics
    /// If `all` is empty.
    #[must_use]
    pub fn new(all: Vec<A>) -> Self {
        assert!(!all.is_empty(), "one address at least");
        Self { all, at: 0, failed: 0, failed_at: None }
    }

    #[must_use]
    pub fn current(&self) -> &A {
        &self.all[self.at]
    }

    #[must_use]
    pub fn all(&self) -> &[A] {
        &self.all
    }

    #[must_use]
    pub const fn count(&self) -> usize {
        self.all.len()
    }

    /// Moves to the next address; returns the wait before the next attempt.
    pub fn failed(&mut self, now: Instant) -> Duration {
        self.at = (self.at + 1) % self.all.len();
        self.wait(now)
    }

    /// Moves to a known address of `leaders` (one a line), otherwise to the next; returns the wait.
    pub fn on_not_leader(&mut self, leaders: &str, now: Instant) -> Duration {
        let is_named = |address: &A| {
            let address = address.to_string();
            leaders.lines().any(|leader| leader == address)
        };
        let named = self.all.iter().position(is_named).filter(|named| *named != self.at);
        self.at = named.unwrap_or((self.at + 1) % self.all.len());
        self.wait(now)
    }

    fn wait(&mut self, now: Instant) -> Duration {
        if self.failed_at.replace(now).is_none_or(|before| now.saturating_duration_since(before) > CALM) {
            self.failed = 0;
        }
        self.failed = self.failed.saturating_add(1);
        let count = self.all.len() as u32;
        if !self.failed.is_multiple_of(count) {
            return Duration::ZERO;
        }
        (WAIT_MIN * (1 << (self.failed / count - 1).min(8))).min(WAIT_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_with_each_round() {
        let mut addresses = Addresses::new(vec!["a", "b", "c"]);
        let mut waits_ms = Vec::new();
        for expected in ["b", "c", "a"].repeat(8) {
            waits_ms.push(addresses.failed(Instant::now()).as_millis());
            assert_eq!(*addresses.current(), expected);
        }
        let at_the_end: Vec<u128> = waits_ms.iter().skip(2).step_by(3).copied().collect();
        assert_eq!(at_the_end, [5, 10, 20, 40, 80, 100, 100, 100]);
        assert_eq!(waits_ms.iter().sum::<u128>(), at_the_end.iter().sum(), "within a round there is no wait");
    }

    #[test]
    fn named_leader_is_tried_next() {
        let mut addresses = Addresses::new(vec!["a", "b", "c"]);
        assert_eq!(addresses.on_not_leader("10.0.0.1:9\nc", Instant::now()), Duration::ZERO);
        assert_eq!(*addresses.current(), "c");
        addresses.on_not_leader("c", Instant::now());
        assert_eq!(*addresses.current(), "a", "it does not lead by its own answer");
        assert!(addresses.on_not_leader("z", Instant::now()) > Duration::ZERO, "counts as a round without failures");
        assert_eq!(*addresses.current(), "b");
        let mut alone = Addresses::new(vec!["a"]);
        assert!(alone.on_not_leader("", Instant::now()) > Duration::ZERO);
        assert_eq!((*alone.current(), alone.count()), ("a", 1));
    }
}
