//! Reasons for which a member waits, logged once a second at first, then less often.

use super::core::MemberCore;
use crate::link::wire::LinkRefusal;
use gapless_agent::wait_notices::WaitNotices;
use std::collections::BTreeMap;
use std::time::Duration;

pub(super) struct MemberWaits {
    no_leader: WaitNotices,
    refusals: BTreeMap<u64, WaitNotices>,
}

impl Default for MemberWaits {
    fn default() -> Self {
        Self { no_leader: WaitNotices::after_a_second(), refusals: BTreeMap::new() }
    }
}

impl MemberWaits {
    /// Ends the notices about a connected member.
    pub fn peer_connected(&mut self, member: u64) {
        if let Some(notices) = self.refusals.get_mut(&member) {
            notices.end();
        }
    }

    /// Fails at each attempt until an operator acts.
    pub fn log_refusal(&mut self, member: u64, refusal: &LinkRefusal, now_ns: u64) {
        if let Some(waited) = self.take_refusal_due(member, now_ns) {
            tracing::warn!(member, waited_s = waited.as_secs(), %refusal, "a member cannot be connected");
        }
    }

    fn take_refusal_due(&mut self, member: u64, now_ns: u64) -> Option<Duration> {
        self.refusals.entry(member).or_insert_with(WaitNotices::at_once).take_due(now_ns)
    }

    /// Logs that no member leads: nothing is committed, and publishers wait.
    pub fn log_no_leader(&mut self, core: &MemberCore, now_ns: u64) {
        if core.consensus.leader().is_some() {
            return self.no_leader.end();
        }
        let Some(waited) = self.no_leader.take_due(now_ns) else { return };
        let connected = &core.membership.connected;
        let absent = core.consensus.members().all().into_iter();
        let absent = absent.filter(|member| *member != core.member && !connected.contains(member));
        let absent = absent.map(|member| member.get().to_string()).collect::<Vec<_>>().join(", ");
        let waited_s = waited.as_secs();
        if absent.is_empty() {
            tracing::warn!(waited_s, "no member leads, although all are connected; an election is waited for");
        } else {
            tracing::warn!(
                waited_s,
                absent,
                "no member leads: a majority of those that vote is waited for, and in a new cluster all of them"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_logs_back_off() {
        let mut waits = MemberWaits::default();
        let mut told = |member, seconds: std::ops::Range<u64>| -> Vec<u64> {
            let tenths = seconds.start * 10..seconds.end * 10;
            let told = tenths.filter(|tenth| waits.take_refusal_due(member, tenth * 100_000_000).is_some());
            told.map(|tenth| tenth / 10).collect()
        };
        assert_eq!(told(2, 0..60), [0, 1, 2, 3, 4, 5, 10, 15, 20, 25, 30]);
        assert_eq!(told(3, 60..63), [60, 61, 62], "another member");
        waits.peer_connected(2);
        assert!(waits.take_refusal_due(2, 61_000_000_000).is_some(), "the member was connected meanwhile");
    }
}
