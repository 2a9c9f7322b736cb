//! [`ConsensusOptions`]: the configuration of a member's consensus.

use super::members::{Members, MembersError};
use super::record::CHECKPOINT_ENTRIES_MAX;
use super::types::MemberId;

/// Default of [`ConsensusOptions::in_flight_entries_max`].
pub const IN_FLIGHT_ENTRIES: usize = 1024;
/// Default of [`ConsensusOptions::entries_kept_max`].
pub const ENTRIES_KEPT: usize = 4096;

/// Configuration of a member's consensus; the times should be equal on all members.
#[derive(Clone, Debug)]
pub struct ConsensusOptions {
    pub id: MemberId,
    /// Members at the first start, equal on each; empty for a joining member. Ignored when the journal knows the
    /// members.
    pub members: Members,
    /// A witness waits longer before it campaigns, and transfers leadership at once.
    pub is_witness: bool,
    /// First value of the chain: from the stream's identity, the same on every member.
    pub chain_seed: u64,
    /// Seed of the election timeouts; may be equal everywhere, since member and term are mixed in.
    pub seed: u64,
    pub heartbeat_interval_ns: u64,
    /// Shortest time without a leader before a campaign; also the leader's lease.
    pub election_timeout_min_ns: u64,
    /// Longest such time. A witness waits from here up to here plus the difference of the two.
    pub election_timeout_max_ns: u64,
    /// Uncommitted entries; further proposals are refused.
    pub in_flight_entries_max: usize,
    /// Bytes of uncommitted frames; one proposal may exceed it.
    pub in_flight_bytes_max: u64,
    /// Messages with entries in flight to one member.
    pub in_flight_messages_max: usize,
    /// Frames in a message; one entry may exceed it.
    pub message_frames_max: u64,
    /// Applied entries kept for lagging members; at most [`CHECKPOINT_ENTRIES_MAX`] / 2.
    pub entries_kept_max: usize,
}

const HEARTBEAT_TICKS_MIN: u64 = 4;
/// Long heartbeat intervals must not delay a campaign after a leader's death.
const TICK_MAX_NS: u64 = 7_500_000;

/// Refusal of options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// The members at the first start are not a valid cluster.
    #[error("the members at the first start: {0}")]
    Members(#[from] MembersError),
    #[error("member {0} is not among the members at the first start; one that joins later starts without a list")]
    NotListed(MemberId),
    /// The times are out of order.
    #[error(
        "times: a heartbeat of at least 4 ns, an election time-out of at least 2 heartbeats and one heartbeat between its \
         limits are expected, {heartbeat_interval_ns}, {election_timeout_min_ns} and {election_timeout_max_ns} ns were \
         given"
    )]
    Times { heartbeat_interval_ns: u64, election_timeout_min_ns: u64, election_timeout_max_ns: u64 },
    /// Zero, or above the capacity of a checkpoint.
    #[error("{0} is out of its range")]
    Limit(&'static str),
}

impl ConsensusOptions {
    /// Defaults for members in one place: heartbeats every 10 ms, timeouts of 50 to 100 ms.
    #[must_use]
    pub fn new(id: MemberId, members: Members) -> Self {
        Self {
            is_witness: members.witnesses.contains(&id),
            id,
            members,
            chain_seed: 0,
            seed: 0,
            heartbeat_interval_ns: 10_000_000,
            election_timeout_min_ns: 50_000_000,
            election_timeout_max_ns: 100_000_000,
            in_flight_entries_max: IN_FLIGHT_ENTRIES,
            in_flight_bytes_max: 32 << 20,
            in_flight_messages_max: 256,
            message_frames_max: 16_384,
            entries_kept_max: ENTRIES_KEPT,
        }
    }

    /// Checks the options.
    ///
    /// # Errors
    /// The first invalid option.
    pub fn check(&self) -> Result<(), OptionsError> {
        if !self.members.is_empty() {
            self.members.check()?;
            if !self.members.contains(self.id) {
                return Err(OptionsError::NotListed(self.id));
            }
        }
        let heartbeat = self.heartbeat_interval_ns;
        let (min, max) = (self.election_timeout_min_ns, self.election_timeout_max_ns);
        let is_ordered = heartbeat >= HEARTBEAT_TICKS_MIN
            && min >= heartbeat.saturating_mul(2)
            && max >= min.saturating_add(heartbeat)
            && max <= 1 << 50;
        if !is_ordered {
            return Err(OptionsError::Times {
                heartbeat_interval_ns: heartbeat,
                election_timeout_min_ns: min,
                election_timeout_max_ns: max,
            });
        }
        let entries = self.in_flight_entries_max;
        let limits = [
            ("in_flight_entries_max", (1..=CHECKPOINT_ENTRIES_MAX / 2).contains(&entries)),
            ("in_flight_bytes_max", self.in_flight_bytes_max >= 1),
            ("in_flight_messages_max", (1..=65_536).contains(&self.in_flight_messages_max)),
            ("message_frames_max", self.message_frames_max >= 1),
            ("entries_kept_max", (1..=CHECKPOINT_ENTRIES_MAX / 2).contains(&self.entries_kept_max)),
        ];
        limits.iter().find(|(_, is_right)| !is_right).map_or(Ok(()), |(name, _)| Err(OptionsError::Limit(name)))
    }

    pub(super) fn heartbeat_ticks(&self) -> u64 {
        self.heartbeat_interval_ns.div_ceil(TICK_MAX_NS).max(HEARTBEAT_TICKS_MIN)
    }

    pub(super) fn tick_ns(&self) -> u64 {
        self.heartbeat_interval_ns / self.heartbeat_ticks()
    }

    /// Lease, and the half-open range of timeouts, in ticks.
    pub(super) fn election_ticks(&self) -> (usize, usize, usize) {
        let min = (self.election_timeout_min_ns / self.tick_ns()) as usize;
        let max = (self.election_timeout_max_ns / self.tick_ns()) as usize + 1;
        if self.is_witness { (min, max, max + (max - min)) } else { (min, min, max) }
    }
}

/// SplitMix64.
pub(super) fn mixed(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |mixed, number| gapless_wire::split_mix::next(&mut (mixed ^ number)))
}
