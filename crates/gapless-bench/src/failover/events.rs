//! The events that a cluster meets under load, and their times.

use super::cluster::BenchCluster;
use crate::Result;
use gapless::prelude::Duration;
use gapless_load::failover::load::elapsed_ns;
use gapless_load::failover::member::MemberProcessRequest;
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EventKind {
    LeaderKilled,
    LeaderReturns,
    Transferred,
    FollowerKilled,
    FollowerReturns,
    Snapshot,
}

impl EventKind {
    pub const ALL: [Self; 6] = [
        Self::LeaderKilled,
        Self::LeaderReturns,
        Self::Transferred,
        Self::FollowerKilled,
        Self::FollowerReturns,
        Self::Snapshot,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::LeaderKilled => "leader killed",
            Self::LeaderReturns => "killed leader restarted",
            Self::Transferred => "lead transferred",
            Self::FollowerKilled => "follower killed",
            Self::FollowerReturns => "killed follower restarted",
            Self::Snapshot => "snapshot on the leader",
        }
    }

    /// Longest allowed wait of clients, ns.
    pub const fn target_ns(self) -> Option<u64> {
        match self {
            Self::LeaderKilled => Some(100_000_000),
            Self::Transferred => Some(10_000_000),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FailoverEvent {
    pub what: EventKind,
    pub at_ns: u64,
    /// Time at which the cluster was whole again: a leader there, a snapshot on the device, a member up to date.
    pub end_ns: u64,
}

pub(super) enum EventMoment<'a> {
    Before(&'a str),
    After(&'a FailoverEvent),
}

/// Each event has a quiet `window` before and after it, and `look` is called around it. Finished ones go into `events`.
pub(super) fn run(
    cluster: &mut BenchCluster<'_>,
    (kinds, repeats, window): (&[EventKind], u32, Duration),
    begin: Instant,
    look: &mut dyn FnMut(EventMoment<'_>) -> Result<()>,
    events: &mut Vec<FailoverEvent>,
) -> Result<()> {
    for _ in 0..repeats {
        let mut victim = 0;
        for &what in kinds {
            look(EventMoment::Before(what.name()))?;
            std::thread::sleep(window);
            let leader = cluster.leader()?;
            let follower = match what {
                EventKind::Transferred | EventKind::FollowerKilled => cluster.follower(leader)?,
                _ => 0,
            };
            let at_ns = elapsed_ns(begin);
            match what {
                EventKind::LeaderKilled => {
                    cluster.kill(leader);
                    victim = leader;
                }
                EventKind::FollowerKilled => {
                    cluster.kill(follower);
                    victim = follower;
                }
                EventKind::LeaderReturns | EventKind::FollowerReturns => cluster.start_one(victim)?,
                EventKind::Transferred => drop(cluster.ask(leader, MemberProcessRequest::Transfer(follower as u64))?),
                EventKind::Snapshot => drop(cluster.ask(leader, MemberProcessRequest::Snapshot)?),
            }
            // Asking members for more would disturb the measurement.
            std::thread::sleep(window.saturating_sub(Duration::from_nanos(elapsed_ns(begin) - at_ns)));
            match what {
                EventKind::LeaderKilled | EventKind::FollowerKilled => {
                    cluster.reap(victim);
                    cluster.leader()?;
                }
                _ => cluster.wait_until_level()?,
            }
            let event = FailoverEvent { what, at_ns, end_ns: elapsed_ns(begin) };
            events.push(event);
            look(EventMoment::After(&event))?;
            std::thread::sleep(window);
        }
    }
    Ok(())
}
