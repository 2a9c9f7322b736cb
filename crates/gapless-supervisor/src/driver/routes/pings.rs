//! [`Pings`]: liveness of one instance, as a state machine. It knows neither clocks nor processes: inputs are events
//! and times, outputs are steps.

use super::protocol::Answer;
use crate::config::process::PingConfig;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Pings {
    config: PingConfig,
    next: Instant,
    asking: Option<Asking>,
    /// Consecutive failures.
    failures: u32,
    is_over: bool,
}

#[derive(Clone, Copy, Debug)]
struct Asking {
    until: Instant,
    /// Number of the question; `None` while it could not be sent.
    question: Option<u64>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Wait until [`Pings::next`] or an event.
    Wait,
    /// Send a ping; call [`Pings::asked`] once it was sent.
    Ask,
    /// The instance is hung. Final.
    Stuck(String),
}

impl Pings {
    pub fn new(config: PingConfig, now: Instant) -> Self {
        Self { next: now + config.every, config, asking: None, failures: 0, is_over: false }
    }

    pub const fn config(&self) -> &PingConfig {
        &self.config
    }

    /// Advances to `now`. `is_to_answer`: the instance serves the route and takes calls, or has not announced its
    /// routes yet.
    pub fn look(&mut self, now: Instant, is_to_answer: bool) -> Step {
        if self.is_over {
            return Step::Wait;
        }
        if !is_to_answer {
            // Draining or suspended: a sleeping worker answers no pings.
            (self.asking, self.failures) = (None, 0);
            self.next = self.next.max(now + self.config.every);
            return Step::Wait;
        }
        if let Some(asking) = self.asking.filter(|asking| asking.until <= now) {
            self.asking = None;
            // This thread was late itself, so the timeout is no evidence.
            let is_looked_at = now < asking.until + self.config.within.max(LATE);
            return if is_looked_at { self.fail() } else { Step::Wait };
        }
        match &self.asking {
            Some(asking) if asking.question.is_none() => Step::Ask,
            Some(_) => Step::Wait,
            None if self.next <= now => {
                self.next = now + self.config.every;
                self.asking = Some(Asking { until: now + self.config.within, question: None });
                Step::Ask
            }
            None => Step::Wait,
        }
    }

    /// Records that the ping was sent.
    pub fn asked(&mut self, number: u64) {
        self.asking.iter_mut().for_each(|asking| asking.question = Some(number));
    }

    /// Records the end of a question; ignores questions of other instances.
    pub fn answered(&mut self, number: u64, answer: Answer) -> Step {
        if self.asking.is_none_or(|asking| asking.question != Some(number)) {
            return Step::Wait;
        }
        self.asking = None;
        match answer {
            Answer::Said => self.failures = 0,
            Answer::Nothing => return self.fail(),
            Answer::NotAsked => {}
        }
        Step::Wait
    }

    /// Time of the next [`Pings::look`]; `None` if only an event matters.
    pub fn next(&self) -> Option<Instant> {
        let next = self.asking.map_or(self.next, |asking| asking.until);
        (!self.is_over).then_some(next)
    }

    fn fail(&mut self) -> Step {
        self.failures += 1;
        if self.failures < self.config.failures_max {
            return Step::Wait;
        }
        self.is_over = true;
        let pings = if self.failures == 1 { "a ping".to_owned() } else { format!("{} pings", self.failures) };
        Step::Stuck(format!("stuck: did not answer {pings} in {:?}", self.config.within))
    }
}

/// Delay of a look after which the timeout of a ping is no evidence.
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
        assert_eq!(pings.look(begin, true), Step::Wait);
        let mut now = begin;
        for number in 0..5 {
            now = pings.next().unwrap();
            assert_eq!(now, begin + EVERY * (number as u32 + 1));
            assert_eq!(pings.look(now, true), Step::Ask);
            pings.asked(number);
            assert_eq!(pings.look(now, true), Step::Wait);
            let answer = if number % 2 == 0 { Answer::Nothing } else { Answer::Said };
            assert_eq!(pings.answered(number + 100, Answer::Nothing), Step::Wait, "it belongs to another instance");
            assert_eq!(pings.answered(number, answer), Step::Wait);
        }
        assert_eq!(pings.look(now, true), Step::Wait);
    }

    #[test]
    fn silence_is_reported_once() {
        let (mut pings, _) = pings(3);
        let mut steps = Vec::new();
        for number in 0..6 {
            let Some(now) = pings.next() else { break };
            steps.push(pings.look(now, true));
            // The second ping cannot be sent, as its table is missing.
            if number != 2 {
                pings.asked(number);
            }
        }
        let reason = "stuck: did not answer 3 pings in 500ms".to_owned();
        assert_eq!(steps, [Step::Ask, Step::Wait, Step::Ask, Step::Wait, Step::Ask, Step::Stuck(reason)]);
        assert_eq!((pings.next(), pings.look(Instant::now(), true)), (None, Step::Wait));
    }

    #[test]
    fn late_looks_are_no_evidence() {
        let (mut pings, begin) = pings(1);
        let now = begin + EVERY;
        assert_eq!(pings.look(now, true), Step::Ask);
        assert_eq!(pings.look(now + WITHIN, false), Step::Wait);
        assert_eq!(pings.look(now + WITHIN * 2, true), Step::Wait);
        let now = pings.next().unwrap();
        assert_eq!(pings.look(now, true), Step::Ask);
        assert_eq!(pings.look(now + WITHIN * 10, true), Step::Wait);
        assert_eq!(pings.look(now + WITHIN * 10, true), Step::Ask, "it is asked again");
    }
}
