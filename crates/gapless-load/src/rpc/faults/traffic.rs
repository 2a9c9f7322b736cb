//! Callers without a pause, each with one call at a time.

use super::content::{AnswerCheck, check, number, request};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub trait FaultCaller: Send {
    /// Waits; `false` if no further call is needed.
    fn ready(&mut self) -> bool {
        true
    }

    /// Makes a call; the answer is in `answer`.
    ///
    /// # Errors
    /// The kind of any other outcome.
    fn call(&mut self, request: &[u8], answer: &mut Vec<u8>) -> Result<(), &'static str>;
}

/// Shared by all callers: longest time without an answer.
#[derive(Debug)]
pub struct SilenceClock {
    began: Instant,
    last_ns: AtomicU64,
    longest_ns: AtomicU64,
}

impl Default for SilenceClock {
    fn default() -> Self {
        Self { began: Instant::now(), last_ns: AtomicU64::new(0), longest_ns: AtomicU64::new(0) }
    }
}

impl SilenceClock {
    fn answered(&self, at: Instant) {
        let now_ns = (at - self.began).as_nanos() as u64;
        // Relaxed: the numbers are read after the callers have ended.
        let last_ns = self.last_ns.fetch_max(now_ns, Ordering::Relaxed);
        // The time before the first answer does not count: callers start one after the other.
        if last_ns != 0 {
            self.longest_ns.fetch_max(now_ns.saturating_sub(last_ns), Ordering::Relaxed);
        }
    }

    pub fn longest_silence(&self) -> Duration {
        Duration::from_nanos(self.longest_ns.load(Ordering::Relaxed))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AffectedCall {
    pub began_at: Instant,
    /// Time at which the caller had the outcome.
    pub known_at: Instant,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallOutcomes {
    pub calls: u64,
    pub failed: BTreeMap<&'static str, u64>,
    pub wrong: u64,
    pub doubled: u64,
    pub answered: Vec<u64>,
    pub lost: Vec<AffectedCall>,
    /// Answered on a later attempt.
    pub answered_again: Vec<AffectedCall>,
}

impl CallOutcomes {
    pub fn of_all(each: Vec<Self>) -> Self {
        each.into_iter().fold(Self::default(), |mut all, seen| {
            all.calls += seen.calls;
            seen.failed.into_iter().for_each(|(kind, count)| *all.failed.entry(kind).or_default() += count);
            (all.wrong, all.doubled) = (all.wrong + seen.wrong, all.doubled + seen.doubled);
            all.answered.extend(seen.answered);
            all.lost.extend(seen.lost);
            all.answered_again.extend(seen.answered_again);
            all
        })
    }
}

pub fn call_until(
    stop: &AtomicBool,
    caller: usize,
    seed: u64,
    line: &mut dyn FaultCaller,
    shared: &SilenceClock,
) -> CallOutcomes {
    let (mut seen, mut answer) = (CallOutcomes::default(), Vec::new());
    while !stop.load(Ordering::Relaxed) && line.ready() {
        let number = number(caller, seen.calls);
        let request = request(number, seed);
        answer.clear();
        let began_at = Instant::now();
        let outcome = line.call(&request, &mut answer);
        let known_at = Instant::now();
        seen.calls += 1;
        match outcome.map(|()| check(number, seed, &answer)) {
            Ok(AnswerCheck::Right { attempt }) => {
                shared.answered(known_at);
                seen.answered.push(number);
                if attempt > 1 {
                    seen.answered_again.push(AffectedCall { began_at, known_at });
                }
            }
            Ok(AnswerCheck::Doubled) => seen.doubled += 1,
            Ok(AnswerCheck::Wrong) => seen.wrong += 1,
            Err(kind) => {
                *seen.failed.entry(kind).or_default() += 1;
                seen.lost.push(AffectedCall { began_at, known_at });
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::super::content::answer;
    use super::*;

    struct ScriptedCaller<'a>(std::slice::Iter<'a, &'static str>, Vec<u8>);

    impl FaultCaller for ScriptedCaller<'_> {
        fn ready(&mut self) -> bool {
            self.0.len() > 0
        }

        fn call(&mut self, request: &[u8], found: &mut Vec<u8>) -> Result<(), &'static str> {
            let told = self.0.next().copied().unwrap_or("the end");
            match told {
                "answer" => self.1 = answer(request, 1),
                "again" => self.1 = answer(request, 2),
                "the same once more" => {}
                "the request" => self.1 = request.to_vec(),
                kind => return Err(kind),
            }
            found.extend_from_slice(&self.1);
            Ok(())
        }
    }

    #[test]
    fn outcomes_are_counted_by_kind() {
        let told = ["answer", "unknown", "again", "the same once more", "the request", "unknown", "answer"];
        let shared = SilenceClock::default();
        let line = &mut ScriptedCaller(told.iter(), Vec::new());
        let seen = call_until(&AtomicBool::new(false), 2, 1, line, &shared);
        assert_eq!((seen.calls, seen.wrong, seen.doubled), (7, 1, 1));
        assert_eq!(seen.answered, [0, 2, 6].map(|count| number(2, count)));
        assert_eq!((seen.failed.get("unknown"), seen.lost.len(), seen.answered_again.len()), (Some(&2), 2, 1));
        assert!(seen.lost.iter().all(|touched| touched.began_at <= touched.known_at));
        assert!(shared.longest_silence() > Duration::ZERO);
        let all = CallOutcomes::of_all(vec![seen.clone(), seen]);
        assert_eq!((all.calls, all.failed["unknown"], all.answered.len(), all.lost.len()), (14, 4, 6, 4));
        let stopped = call_until(&AtomicBool::new(true), 0, 1, &mut ScriptedCaller(told.iter(), Vec::new()), &shared);
        assert_eq!(stopped, CallOutcomes::default());
    }
}
