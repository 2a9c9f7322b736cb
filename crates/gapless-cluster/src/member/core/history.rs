//! Comparison of the members' logs, whose states are sent at each connection and, when changed, at intervals. A member
//! that diverges from its leader stops, and the others report it; see [`crate::consensus::core::history`].

use super::MemberCore;
use crate::ClusterError;
use crate::consensus::{AppendError, LogDivergence, LogHistory, MemberId, Message, StepError};
use crate::link::MessageContent;
use crate::member::Member;
use std::collections::BTreeMap;

/// Acknowledgements of the last interval may be unknown to the others.
const SEND_INTERVAL_NS: u64 = 100_000_000;
/// A stopping member takes no part, but keeps sending its reason.
const LINGERS_NS: u64 = 300_000_000;
/// Consecutive messages without the leader's chain until this log counts as divergent.
const FAILURES_MAX: u32 = 3;

#[derive(Default)]
pub(in crate::member) struct HistoryComparison {
    waiting: BTreeMap<MemberId, LogHistory>,
    divergent: BTreeMap<MemberId, LogDivergence>,
    divergences: u64,
    failed_fetches: u32,
    failed_appends: u32,
    /// Leader from which this member diverges, the place, and the time at which this member stops.
    stop: Option<(MemberId, LogDivergence, u64)>,
    sent: BTreeMap<u64, LogHistory>,
    next_ns: u64,
}

impl HistoryComparison {
    /// Members with a divergent log.
    pub const fn divergent(&self) -> &BTreeMap<MemberId, LogDivergence> {
        &self.divergent
    }

    /// Divergent logs since the start.
    pub const fn divergences(&self) -> u64 {
        self.divergences
    }

    /// Stopping, and takes no part any more.
    pub const fn is_stopping(&self) -> bool {
        self.stop.is_some()
    }

    pub fn forget(&mut self, member: MemberId) {
        self.waiting.remove(&member);
        self.divergent.remove(&member);
        self.sent.remove(&member.get());
    }

    /// A leader's frames gave its chain.
    pub const fn note_appended(&mut self) {
        self.failed_appends = 0;
    }

    /// Fetched frames gave the leader's chain.
    pub const fn note_fetched(&mut self) {
        self.failed_fetches = 0;
    }
}

impl MemberCore {
    /// Returns an answer if the logs diverge.
    pub fn receive_history(&mut self, from: MemberId, bytes: &[u8]) -> Option<LogHistory> {
        let Some(history) = LogHistory::from_bytes(bytes) else {
            self.warn(from, &"it says nothing about its log that can be said");
            return None;
        };
        self.consensus.remember(&history);
        let differs = match self.consensus.excess_over_leader(&history) {
            Some(divergence) if self.consensus.divergence(&history).is_none() => {
                self.note_divergence(from, divergence, true);
                true
            }
            _ => self.compare_history(from, &history) || self.lacks_applied_entries(from, &history),
        };
        (differs && !history.is_answer).then(|| self.consensus.history_in_answer_to(&history))
    }

    /// An undecided comparison is repeated later.
    fn compare_history(&mut self, from: MemberId, history: &LogHistory) -> bool {
        if let Some(divergence) = self.consensus.divergence(history) {
            self.note_divergence(from, divergence, self.consensus.is_led_by(history));
            return true;
        }
        if self.consensus.can_compare(history) {
            self.histories.divergent.remove(&from);
            self.histories.waiting.remove(&from);
        } else if !history.is_answer {
            self.histories.waiting.insert(from, history.clone());
        }
        false
    }

    fn lacks_applied_entries(&mut self, from: MemberId, history: &LogHistory) -> bool {
        let divergence = self.consensus.missing_applied_entries(history);
        if let Some(divergence) = divergence {
            self.note_divergence(from, divergence, false);
        }
        divergence.is_some()
    }

    fn note_divergence(&mut self, from: MemberId, divergence: LogDivergence, is_leader: bool) {
        let histories = &mut self.histories;
        histories.waiting.remove(&from);
        if histories.divergent.insert(from, divergence).is_none_or(|known| known.other != divergence.other) {
            histories.divergences += 1;
            let error = other_history(self.member, from, divergence);
            tracing::error!(member = %from, %error, "a member's log is another one");
        }
        if is_leader && histories.stop.is_none() {
            histories.stop = Some((from, divergence, self.now.monotonic_ns + LINGERS_NS));
        }
    }

    /// Frames fetched after the applied ones do not give the leader's chain.
    pub fn note_fetch_mismatch(&mut self, leader: MemberId) {
        self.histories.failed_fetches += 1;
        let Some((own, _)) = self.consensus.applied_position() else { return };
        if self.histories.failed_fetches >= FAILURES_MAX {
            self.note_divergence(leader, LogDivergence { same: None, other: own }, true);
        }
    }

    /// A leader's append contradicts this log.
    pub fn note_append_mismatch(&mut self, leader: MemberId, message: &Message, error: AppendError) {
        match error {
            AppendError::Entries(StepError::OtherEntry(divergence)) => self.note_divergence(leader, divergence, true),
            AppendError::Hash { .. } => {
                self.histories.failed_appends += 1;
                let base = self.consensus.position_at(message.index);
                if let Some(other) = base.filter(|_| self.histories.failed_appends >= FAILURES_MAX) {
                    self.note_divergence(leader, LogDivergence { same: None, other }, true);
                }
            }
            _ => {}
        }
    }

    fn compare_waiting(&mut self) {
        for (from, history) in std::mem::take(&mut self.histories.waiting) {
            self.compare_history(from, &history);
        }
    }
}

impl Member {
    pub(in crate::member) fn send_history_to(&mut self, member: u64) {
        let history = self.core.consensus.history();
        self.core.histories.sent.remove(&member);
        self.send_history(member, &history, &history.to_bytes());
    }

    /// A failure (no connection, full queue) is repeated later.
    fn send_history(&mut self, member: u64, history: &LogHistory, bytes: &[u8]) {
        if self.links.send(member, MessageContent::History, bytes, &[]).is_ok() {
            self.core.histories.sent.insert(member, history.clone());
        }
    }

    /// Before the first handshake.
    pub(in crate::member) fn begin_history(&mut self) {
        self.links.set_log(self.core.log_state());
        self.set_acknowledgements();
    }

    fn set_acknowledgements(&mut self) {
        for (member, acknowledged) in self.core.consensus.acknowledged() {
            self.links.set_acknowledged(member.get(), acknowledged);
        }
    }

    /// Errors if this log diverges from its leader's.
    pub(in crate::member) fn send_histories(&mut self) -> Result<(), ClusterError> {
        self.links.set_log(self.core.log_state());
        let now_ns = self.core.now.monotonic_ns;
        if let Some((leader, divergence, until_ns)) = self.core.histories.stop
            && now_ns >= until_ns
        {
            return Err(other_history(self.core.member, leader, divergence));
        }
        if now_ns < self.core.histories.next_ns {
            return Ok(());
        }
        self.core.histories.next_ns = now_ns + SEND_INTERVAL_NS;
        self.core.compare_waiting();
        self.core.consensus.remember_own();
        self.set_acknowledgements();
        let history = self.core.consensus.history();
        let sent = &self.core.histories.sent;
        let waits = |peer: &u64| self.links.is_connected(*peer) && sent.get(peer) != Some(&history);
        let waiting: Vec<_> = self.links.peers().filter(waits).collect();
        if !waiting.is_empty() {
            let bytes = history.to_bytes();
            waiting.into_iter().for_each(|peer| self.send_history(peer, &history, &bytes));
        }
        Ok(())
    }
}

fn other_history(
    member: MemberId,
    other: MemberId,
    LogDivergence { same, other: position }: LogDivergence,
) -> ClusterError {
    ClusterError::OtherHistory {
        member: member.get(),
        leader: other.get(),
        same_sequence: same.map(|position| position.sequence),
        index: position.index,
        sequence: position.sequence,
    }
}
