//! [`Checker`]: the invariants that hold under every fault, for each frame that any member releases.

use crate::trace::hash_of;
use gapless_wire::descriptor::TRANSACTION_FLAG;
use gapless_wire::{Frame, Kind};
use std::collections::BTreeMap;

pub(crate) type Violation = String;

#[derive(Debug, Default)]
pub(crate) struct Checker {
    /// Hashes of all released frames, from sequence 1 on.
    history: Vec<u64>,
    last_timestamp_ns: u64,
    last_term: u64,
    sessions: BTreeMap<u64, u64>,
    leaders: BTreeMap<u64, u64>,
    /// State hash at each compared sequence, with the member that reported it first.
    states: BTreeMap<u64, (u64, u64)>,
    pub diverged_after: Option<u64>,
    pub terms: u64,
    pub timers: u64,
    /// Offset of each leader's stream time from true time at the last look, ns, by term.
    times: BTreeMap<u64, i64>,
    /// Leaders that continued their predecessor's time.
    pub times_kept: u64,
    /// Several histories may exist; other checks cover that.
    has_stopped: bool,
}

/// Twice the longest delay of a follower's clock message.
const TIME_ERROR_NS_MAX: u64 = 3_000_000_000;

impl Checker {
    pub(crate) const fn stop(&mut self) {
        self.has_stopped = true;
    }

    pub(crate) const fn last_sequence(&self) -> u64 {
        self.history.len() as u64
    }

    /// The frame directly follows the member's previous one. Returns whether `member` is the first to release it.
    pub(crate) fn released(&mut self, member: u64, frame: &Frame<'_>) -> Result<bool, Violation> {
        if self.has_stopped {
            return Ok(false);
        }
        let (sequence, hash) = (frame.sequence(), hash_of(frame.bytes()));
        if let Some(known) = sequence.checked_sub(1).and_then(|at| self.history.get(at as usize)) {
            return if *known == hash {
                Ok(false)
            } else {
                Err(format!("member {member} has released another frame {sequence} than was released before"))
            };
        }
        if sequence != self.last_sequence() + 1 {
            return Err(format!("member {member} has released frame {sequence}, {} is due", self.last_sequence() + 1));
        }
        self.history.push(hash);
        let (timestamp_ns, term) = (frame.timestamp_ns(), frame.term());
        if timestamp_ns <= self.last_timestamp_ns {
            return Err(format!(
                "frame {sequence} is of {timestamp_ns} ns, the one before of {}",
                self.last_timestamp_ns
            ));
        }
        if term < self.last_term {
            return Err(format!("frame {sequence} is of term {term}, the one before of {}", self.last_term));
        }
        (self.last_timestamp_ns, self.last_term) = (timestamp_ns, term);
        if matches!(frame.kind(), Kind::Event | Kind::Command | Kind::Acknowledge) {
            let last = self.sessions.entry(frame.session()).or_default();
            let (session, found) = (frame.session(), frame.session_seq());
            let is_due = if frame.flags() & TRANSACTION_FLAG == 0 {
                found == *last + 1
            } else if frame.fragment().index == 0 {
                // A refusal in place of a command of several frames has the number of its last frame.
                found > *last
            } else {
                found == *last
            };
            if !is_due {
                return Err(format!("frame {sequence} is number {found} of session {session}, behind {last}"));
            }
            *last = found;
        }
        self.timers += u64::from(frame.kind() == Kind::Timer);
        Ok(true)
    }

    /// A released frame must be unchanged in a journal.
    pub(crate) fn journaled(&self, member: u64, frame: &Frame<'_>) -> Result<(), Violation> {
        if self.has_stopped {
            return Ok(());
        }
        let known = self.history.get(frame.sequence() as usize - 1);
        if known.is_none_or(|known| *known == hash_of(frame.bytes())) {
            return Ok(());
        }
        Err(format!("the journal of member {member} has another frame {} than was released", frame.sequence()))
    }

    pub(crate) fn leads(&mut self, member: u64, term: u64) -> Result<(), Violation> {
        if self.has_stopped {
            return Ok(());
        }
        let leader = *self.leaders.entry(term).or_insert(member);
        self.terms = self.leaders.len() as u64;
        if leader == member { Ok(()) } else { Err(format!("members {leader} and {member} both lead in term {term}")) }
    }

    /// Checks that no wall clock moves the time beyond its clocks' drift (parts per million), while a member leads and
    /// across a handover of known time.
    pub(crate) fn time(
        &mut self,
        member: u64,
        time: LeaderTime,
        true_ns: u64,
        drift_ppm_max: u64,
    ) -> Result<(), Violation> {
        if self.has_stopped {
            return Ok(());
        }
        let LeaderTime { term, now_ns, from_term } = time;
        let ahead_ns = now_ns as i64 - true_ns as i64;
        let led_ns = self.times.get(&term).copied();
        // A member that dies in the turn in which it became leader was never looked at.
        let before_ns = led_ns.or_else(|| self.times.get(&from_term).copied());
        let error_ns_max = TIME_ERROR_NS_MAX + true_ns / 1_000_000 * 2 * drift_ppm_max;
        if let Some(before_ns) = before_ns.filter(|before_ns| ahead_ns.abs_diff(*before_ns) > error_ns_max) {
            let moved_ns = ahead_ns - before_ns;
            return Err(format!(
                "member {member} moves the stream's time by {moved_ns} ns in term {term}, from that of term {from_term}"
            ));
        }
        self.times_kept += u64::from(led_ns.is_none() && before_ns.is_some());
        self.times.insert(term, ahead_ns);
        Ok(())
    }

    pub(crate) fn state(&mut self, member: u64, sequence: u64, hash: u64) -> Result<(), Violation> {
        if self.has_stopped {
            return Ok(());
        }
        let (first, known) = *self.states.entry(sequence).or_insert((member, hash));
        if known == hash {
            return Ok(());
        }
        self.diverged_after = Some(sequence);
        Err(if member == first {
            format!("the service of member {member} has another state than before a restart, after sequence {sequence}")
        } else {
            format!("the service has another state on member {member} than on member {first} after sequence {sequence}")
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaderTime {
    pub term: u64,
    pub now_ns: u64,
    /// Term whose time this leader continued, or 0.
    pub from_term: u64,
}
