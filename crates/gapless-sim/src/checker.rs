//! [`Checker`]: the invariants that hold under every fault. It sees every frame that any member releases, at any time.

use crate::trace::hash_of;
use gapless_wire::descriptor::TRANSACTION_FLAG;
use gapless_wire::{Frame, Kind};
use std::collections::BTreeMap;

/// A promise that was not kept: in words.
pub(crate) type Broken = String;

/// The one order of frames over all members and times.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    /// The hash of each frame that was released anywhere, from sequence 1 on.
    history: Vec<u64>,
    last_timestamp_ns: u64,
    last_term: u64,
    /// The last number of each session.
    sessions: BTreeMap<u64, u64>,
    /// The leader of each term.
    leaders: BTreeMap<u64, u64>,
    /// Of the services, at each sequence that a member has compared.
    states: BTreeMap<u64, (u64, u64)>,
    /// Behind which sequence two of them differ.
    pub parted: Option<u64>,
    pub terms: u64,
    /// Timers that came.
    pub timers: u64,
    /// How far the time of each term's leader was ahead of true time when it was last looked at, ns.
    times: BTreeMap<u64, i64>,
    /// How often another leader has gone on with the time of the one before.
    pub times_kept: u64,
    /// There may be several histories, which is checked elsewhere.
    has_stopped: bool,
}

/// A follower's clock message may have been under way so long, and the same again, ns.
const TIME_ERROR_NS_MAX: u64 = 3_000_000_000;

impl Checker {
    /// From now on nothing is checked against earlier releases.
    pub(crate) const fn stop(&mut self) {
        self.has_stopped = true;
    }

    /// The last sequence that was released anywhere.
    pub(crate) const fn last_sequence(&self) -> u64 {
        self.history.len() as u64
    }

    /// `member` has released this frame, which it reads directly after the one before. Whether nobody had before.
    pub(crate) fn released(&mut self, member: u64, frame: &Frame<'_>) -> Result<bool, Broken> {
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
                // In the place of a command of one frame or of several, it has the last one's number.
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

    /// A frame of a journal: each released frame is there as it was.
    pub(crate) fn journaled(&self, member: u64, frame: &Frame<'_>) -> Result<(), Broken> {
        if self.has_stopped {
            return Ok(());
        }
        let known = self.history.get(frame.sequence() as usize - 1);
        if known.is_none_or(|known| *known == hash_of(frame.bytes())) {
            return Ok(());
        }
        Err(format!("the journal of member {member} has another frame {} than was released", frame.sequence()))
    }

    /// `member` says that it leads.
    pub(crate) fn leads(&mut self, member: u64, term: u64) -> Result<(), Broken> {
        if self.has_stopped {
            return Ok(());
        }
        let leader = *self.leaders.entry(term).or_insert(member);
        self.terms = self.leaders.len() as u64;
        if leader == member { Ok(()) } else { Err(format!("members {leader} and {member} both lead in term {term}")) }
    }

    /// `member` leads, and stamps with this time: as long as it leads, and from the leader before on whose time it
    /// knew, no wall clock moves it. Clocks go wrong by so many in a million by themselves.
    pub(crate) fn time(
        &mut self,
        member: u64,
        time: StreamTime,
        true_ns: u64,
        drift_ppm_max: u64,
    ) -> Result<(), Broken> {
        if self.has_stopped {
            return Ok(());
        }
        let StreamTime { term, now_ns, from_term } = time;
        let ahead_ns = now_ns as i64 - true_ns as i64;
        let led_ns = self.times.get(&term).copied();
        // A member that has died in the turn in which it began to lead was not looked at.
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

    /// The service of `member` has this state after `sequence`.
    pub(crate) fn state(&mut self, member: u64, sequence: u64, hash: u64) -> Result<(), Broken> {
        if self.has_stopped {
            return Ok(());
        }
        let (first, known) = *self.states.entry(sequence).or_insert((member, hash));
        if known == hash {
            return Ok(());
        }
        self.parted = Some(sequence);
        Err(if member == first {
            format!(
                "the service of member {member} has another state than before a restart, behind sequence {sequence}"
            )
        } else {
            format!(
                "the service has another state on member {member} than on member {first} behind sequence {sequence}"
            )
        })
    }
}

/// The stream time of a leader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamTime {
    pub term: u64,
    pub now_ns: u64,
    /// The term of the leader whose time it went on with, or 0.
    pub from_term: u64,
}
