//! [`Pings`]: liveness of one instance, as a state machine without clocks or processes.

use super::protocol::PingOutcome;
use crate::config::process::PingConfig;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Pings {
    config: PingConfig,
    next: Instant,
    pending: Option<PendingPing>,
    failures: u32,
    is_over: bool,
}

#[derive(Clone, Copy, Debug)]
struct PendingPing {
    until: Instant,
    question: Option<u64>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum PingStep {
    Wait,
    Ask,
    Stuck(String),
}

impl Pings {
    pub fn new(config: PingConfig, now: Instant) -> Self {
        Self { next: now + config.every, config, pending: None, failures: 0, is_over: false }
    }

    pub const fn config(&self) -> &PingConfig {
        &self.config
    }

    /// Advances to `now`. `is_to_answer`: the instance serves the route and takes calls, or has not announced its
    /// routes yet.
    pub fn poll(&mut self, now: Instant, is_to_answer: bool) -> PingStep {
        if self.is_over {
            return PingStep::Wait;
        }
        if !is_to_answer {
            // Draining or suspended: a sleeping worker answers no pings.
            (self.pending, self.failures) = (None, 0);
            self.next = self.next.max(now + self.config.every);
            return PingStep::Wait;
        }
        if let Some(pending) = self.pending.filter(|pending| pending.until <= now) {
            self.pending = None;
            // This thread was late itself, so the timeout is no evidence.
            let is_timely = now < pending.until + self.config.within.max(LATE);
            return if is_timely { self.fail() } else { PingStep::Wait };
        }
        match &self.pending {
            Some(pending) if pending.question.is_none() => PingStep::Ask,
            Some(_) => PingStep::Wait,
            None if self.next <= now => {
                self.next = now + self.config.every;
                self.pending = Some(PendingPing { until: now + self.config.within, question: None });
                PingStep::Ask
            }
            None => PingStep::Wait,
        }
    }

    /// Records that the ping was sent.
    pub fn sent(&mut self, number: u64) {
        self.pending.iter_mut().for_each(|pending| pending.question = Some(number));
    }

    /// Ends a question; ignores those of other instances.
    pub fn answered(&mut self, number: u64, answer: PingOutcome) -> PingStep {
        if self.pending.is_none_or(|pending| pending.question != Some(number)) {
            return PingStep::Wait;
        }
        self.pending = None;
        match answer {
            PingOutcome::Answered => self.failures = 0,
            PingOutcome::TimedOut => return self.fail(),
            PingOutcome::NotDelivered => {}
        }
        PingStep::Wait
    }

    /// Time of the next [`Pings::poll`]; `None` if only an event matters.
    pub fn next(&self) -> Option<Instant> {
        let next = self.pending.map_or(self.next, |pending| pending.until);
        (!self.is_over).then_some(next)
    }

    fn fail(&mut self) -> PingStep {
        self.failures += 1;
        if self.failures < self.config.failures_max {
            return PingStep::Wait;
        }
        self.is_over = true;
        let pings = if self.failures == 1 { "a ping".to_owned() } else { format!("{} pings", self.failures) };
        PingStep::Stuck(format!("stuck: did not answer {pings} in {:?}", self.config.within))
    }
}

const LATE: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(1);
    const WITHIN: Duration = Duration::from_millis(500);

    fn pings(failures_max: u32) -> (Pings, Instant) {
        let now = Instant::now();
        let config = PingConfig { route: "r".to_owned(), every: EVERY, within: WITHIN, failures_max };
        (Pings::new(config, now), now)
    }

    #[test]
    fn an_answer_resets_failures() {
        let (mut pings, begin) = pings(2);
        assert_eq!(pings.poll(begin, true), PingStep::Wait);
        let mut now = begin;
        for number in 0..5 {
            now = pings.next().unwrap();
            assert_eq!(now, begin + EVERY * (number as u32 + 1));
            assert_eq!(pings.poll(now, true), PingStep::Ask);
            pings.sent(number);
            assert_eq!(pings.poll(now, true), PingStep::Wait);
            let answer = if number % 2 == 0 { PingOutcome::TimedOut } else { PingOutcome::Answered };
            assert_eq!(
                pings.answered(number + 100, PingOutcome::TimedOut),
                PingStep::Wait,
                "it belongs to another instance"
            );
            assert_eq!(pings.answered(number, answer), PingStep::Wait);
        }
        assert_eq!(pings.poll(now, true), PingStep::Wait);
    }

    #[test]
    fn silence_is_reported_once() {
        let (mut pings, _) = pings(3);
        let mut steps = Vec::new();
        for number in 0..6 {
            let Some(now) = pings.next() else { break };
            steps.push(pings.poll(now, true));
            if number != 2 {
                pings.sent(number);
            }
        }
        let reason = "stuck: did not answer 3 pings in 500ms".to_owned();
        assert_eq!(
            steps,
            [PingStep::Ask, PingStep::Wait, PingStep::Ask, PingStep::Wait, PingStep::Ask, PingStep::Stuck(reason)]
        );
        assert_eq!((pings.next(), pings.poll(Instant::now(), true)), (None, PingStep::Wait));
    }

    #[test]
    fn late_looks_are_no_evidence() {
        let (mut pings, begin) = pings(1);
        let now = begin + EVERY;
        assert_eq!(pings.poll(now, true), PingStep::Ask);
        assert_eq!(pings.poll(now + WITHIN, false), PingStep::Wait);
        assert_eq!(pings.poll(now + WITHIN * 2, true), PingStep::Wait);
        let now = pings.next().unwrap();
        assert_eq!(pings.poll(now, true), PingStep::Ask);
        assert_eq!(pings.poll(now + WITHIN * 10, true), PingStep::Wait);
        assert_eq!(pings.poll(now + WITHIN * 10, true), PingStep::Ask, "it is asked again");
    }
}
