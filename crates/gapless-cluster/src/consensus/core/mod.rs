//! [`Consensus`]: the state of a member, its time, and the calls of its own agent.

mod fast_path;
pub mod history;
pub mod inbound;
pub mod lagging;
pub mod membership_view;
mod outbound;
mod rejoining;
pub mod status;

use super::change::MembershipChange;
use super::effects::{OutgoingMessage, RoleChange};
use super::members::{Members, MembersError};
use super::options::{ConsensusOptions, OptionsError, mixed};
use super::record::{Checkpoint, HardState, RecordContent};
use super::recovered::RecoveredState;
use super::storage::Storage;
use super::types::{Batch, LogPosition, MemberId};
use raft::{Config, RawNode, SnapshotStatus, StateRole};
use rejoining::{CampaignVotes, RejoiningVoter};
use std::collections::VecDeque;

/// First index and term of every cluster, with no frame before it.
const BEGIN: u64 = 1;
const EARLY_CAMPAIGNS_MAX: u32 = 8;
/// Ticks between early campaigns, and the maximum before the first.
const EARLY_CAMPAIGN_TICKS: u64 = 4;
const REPEATED_OFFER_TIMEOUTS: usize = 4;

/// Limit of the membership changes in a checkpoint, which is one record. One change may exceed it.
const CHANGE_BYTES_MAX: usize = 64 << 10;

/// Reason for which a member cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ConsensusError {
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The journal belongs to a member of another cluster.
    #[error("the journal's members cannot be used: {0}")]
    Members(MembersError),
    #[error("consensus cannot start: {0}")]
    Raft(#[from] raft::Error),
}

/// Refusal of a proposal, change or transfer, without effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// This member is not the leader.
    #[error("this member does not lead")]
    NotLeader {
        /// Leader, as far as this member knows.
        leader: Option<MemberId>,
    },
    /// Uncommitted entries or bytes reached their limit; a commit makes room.
    #[error("as many entries or bytes are in flight as may be")]
    Full,
    #[error("the leader is handing over")]
    HandingOver,
    /// The batch does not follow the last proposal, or is empty.
    #[error("the batch does not begin at sequence {expected_sequence}, or has no frames")]
    Gap { expected_sequence: u64 },
    /// A change is in progress, or this one does not fit the members.
    #[error("the members cannot be changed like this now")]
    Change,
    #[error("member {0} leads already")]
    LeadsAlready(MemberId),
    #[error("member {0} is no member that votes")]
    NotVoter(MemberId),
}

struct EarlyCampaign {
    ticks_left: u64,
    attempts_left: u32,
}

/// Consensus of a member; [`crate::consensus`] gives the order of the calls.
pub struct Consensus {
    id: MemberId,
    options: ConsensusOptions,
    raw: RawNode<Storage>,
    last_tick_ns: Option<u64>,
    early_campaign: Option<EarlyCampaign>,
    /// Ticks without an answer to an offered log position.
    offered: Vec<(u64, usize)>,
    in_flight: VecDeque<(u64, u64)>,
    in_flight_bytes: u64,
    /// Messages that leave once the poll of this number is persisted.
    awaiting_persistence: VecDeque<(u64, Vec<OutgoingMessage>)>,
    leaving: Vec<OutgoingMessage>,
    last_number: u64,
    persisted_number: u64,
    /// Last poll that changed term or vote.
    vote_number: u64,
    last_role: Option<RoleChange>,
    released_sequence: u64,
    /// Log position up to which frames are being fetched.
    fetching: Option<(LogPosition, Members)>,
    fetch_is_new: bool,
    /// Fetched log position that is being persisted, and the poll that returned it.
    restoring: Option<(u64, LogPosition)>,
    /// Common prefix of the member's own frames and the fetched ones.
    common_sequence: u64,
    refused_messages: u64,
    is_first_poll: bool,
    /// Acknowledgements of others are to be recorded without an entry: once a heartbeat at most.
    acknowledged_is_due: bool,
    /// Whether the last stepped append is in the log already, and its records are returned.
    is_appended_on_fast_path: bool,
    has_updates: bool,
    rejoining: Option<RejoiningVoter>,
    votes: CampaignVotes,
    /// On a leader: members that answered in the time before raft-rs's last check of its quorum, which forgets them.
    active_before: Vec<u64>,
    ticks_since_check: u64,
}

impl Consensus {
    /// Starts a member with its journal's state. Frames after [`RecoveredState::truncate_after`] must be cut before.
    ///
    /// # Errors
    /// Options that are out of range or do not fit the journal.
    pub fn new(options: ConsensusOptions, recovered: RecoveredState) -> Result<Self, ConsensusError> {
        options.check()?;
        let rejoining = RejoiningVoter::of(recovered.rejoin);
        let state = recovered.state.unwrap_or_else(|| initial_state(&options));
        if !state.members.is_empty() {
            state.members.check().map_err(ConsensusError::Members)?;
        }
        let (lease, min, max) = options.election_ticks();
        let config = Config {
            id: options.id.get(),
            election_tick: lease,
            heartbeat_tick: options.heartbeat_ticks() as usize,
            min_election_tick: min,
            max_election_tick: max,
            applied: state.start.index,
            max_size_per_msg: u64::MAX,
            max_inflight_msgs: options.in_flight_messages_max,
            check_quorum: true,
            pre_vote: true,
            ..Config::default()
        };
        let released_sequence = state.start.sequence;
        let storage = Storage::new(state, options.entries_kept_max, options.message_frames_max);
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let raw = RawNode::new(&config, storage, &logger)?;
        let mut consensus = Self {
            id: options.id,
            options,
            raw,
            last_tick_ns: None,
            early_campaign: None,
            offered: Vec::new(),
            in_flight: VecDeque::new(),
            in_flight_bytes: 0,
            awaiting_persistence: VecDeque::new(),
            leaving: Vec::new(),
            last_number: 0,
            persisted_number: 0,
            vote_number: 0,
            active_before: Vec::new(),
            ticks_since_check: 0,
            last_role: None,
            released_sequence,
            fetching: None,
            fetch_is_new: false,
            restoring: None,
            common_sequence: 0,
            refused_messages: 0,
            is_first_poll: true,
            acknowledged_is_due: false,
            is_appended_on_fast_path: false,
            has_updates: true,
            rejoining,
            votes: CampaignVotes::default(),
        };
        consensus.set_timeout();
        consensus.check_caught_up();
        Ok(consensus)
    }

    pub(super) fn storage(&self) -> &Storage {
        self.raw.raft.store()
    }

    /// Whether this member leads. A sole voter leads only once its vote is persisted, or it could forget it and elect
    /// another member.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.raw.raft.state == StateRole::Leader && self.vote_number <= self.persisted_number
    }

    /// Returns the leader, as far as this member knows.
    #[must_use]
    pub fn leader(&self) -> Option<MemberId> {
        MemberId::new(self.raw.raft.leader_id)
    }

    /// Newest known term; a leader stamps its frames with it.
    #[must_use]
    pub fn term(&self) -> u64 {
        self.raw.raft.term
    }

    /// Members in force.
    #[must_use]
    pub fn members(&self) -> &Members {
        self.storage().members()
    }

    /// End of the log, after which a new leader's frames and chain continue.
    #[must_use]
    pub fn end(&self) -> LogPosition {
        self.storage().end()
    }

    /// The whole state as a record, the first in a new segment. Records of earlier polls must precede it.
    #[must_use]
    pub fn checkpoint(&self) -> Vec<u8> {
        RecordContent::Checkpoint(Box::new(self.storage().checkpoint())).to_bytes()
    }

    /// Declares that the journal begins with the frame `first_sequence`. Members that need earlier entries are offered
    /// a log position; entries not yet applied are kept.
    pub fn forget_before(&mut self, first_sequence: u64) {
        if self.restoring.is_none() {
            self.raw.raft.mut_store().forget_before(first_sequence);
        }
    }

    /// Applied log position and its members, from which another log may begin.
    #[must_use]
    pub fn applied_position(&self) -> Option<(LogPosition, Members)> {
        self.storage().applied_position()
    }

    /// Newest known applied log position not after `sequence`.
    #[must_use]
    pub fn applied_position_until(&self, sequence: u64) -> Option<LogPosition> {
        self.storage().applied_position_until(sequence)
    }

    /// Record that this member would keep if its log began at `position`: its own term and vote, everything up to there
    /// committed. `None` if its log reaches further or its term is older: then its log must not begin there.
    #[must_use]
    pub fn checkpoint_at(&self, position: LogPosition, members: &Members) -> Option<Vec<u8>> {
        let HardState { term, vote, .. } = self.storage().hard_state();
        if self.raw.raft.raft_log.last_index() > position.index || term < position.term || self.restoring.is_some() {
            return None;
        }
        let hard_state = HardState { term, vote, commit: position.index };
        let acknowledged = self.acknowledged().collect();
        let checkpoint =
            Checkpoint { hard_state, start: position, members: members.clone(), entries: Vec::new(), acknowledged };
        Some(RecordContent::Checkpoint(Box::new(checkpoint)).to_bytes())
    }

    /// Advances the core to a monotonic time, before the messages received by then; [`Consensus::next_tick_ns`] is the
    /// time of the next call.
    ///
    /// A call that is a heartbeat interval or more late (process stopped, thread not scheduled) advances the clock by
    /// that interval alone: messages sent meanwhile are unread, and a member that wakes up must not depose its leader
    /// because of its own pause. A less late call more than an interval after the previous one advances only to the due
    /// time; for a follower that is the tick before its timeout ends, so messages are read before the timeout.
    pub fn tick(&mut self, now_ns: u64) {
        let last_ns = *self.last_tick_ns.get_or_insert(now_ns);
        let (tick_ns, heartbeat_ticks) = (self.options.tick_ns(), self.options.heartbeat_ticks());
        let ticks = now_ns.saturating_sub(last_ns) / tick_ns;
        if ticks == 0 {
            return;
        }
        let quiet = self.quiet_ticks();
        let advanced = if ticks >= quiet + heartbeat_ticks {
            self.last_tick_ns = Some(now_ns);
            heartbeat_ticks
        } else {
            let advanced = if ticks > heartbeat_ticks { ticks.min(quiet) } else { ticks };
            self.last_tick_ns = Some(last_ns + advanced * tick_ns);
            advanced
        };
        self.has_updates = true;
        let heartbeat_ns = heartbeat_ticks * tick_ns;
        self.acknowledged_is_due |= last_ns / heartbeat_ns != now_ns / heartbeat_ns && self.restoring.is_none();
        for _ in 0..advanced {
            self.tick_once();
        }
    }

    /// Due time of the next [`Consensus::tick`], unless a message or a request arrives.
    #[must_use]
    pub fn next_tick_ns(&self) -> u64 {
        self.last_tick_ns.map_or(0, |last_ns| last_ns + self.quiet_ticks() * self.options.tick_ns())
    }

    /// Ticks until the first with an effect, at least 1: a leader's heartbeat, or the tick before a follower's timeout
    /// ends.
    fn quiet_ticks(&self) -> u64 {
        let raft = &self.raw.raft;
        let is_busy =
            self.early_campaign.is_some() || self.is_rejoining() || !self.offered.is_empty() || !self.may_campaign();
        let quiet = match raft.state {
            StateRole::Follower if !is_busy && raft.leader_id != raft::INVALID_ID => {
                raft.randomized_election_timeout().saturating_sub(raft.election_elapsed + 1)
            }
            StateRole::Leader if !is_busy && self.wants_transfer().is_none() => {
                let until_heartbeats =
                    (self.options.heartbeat_ticks() as usize).saturating_sub(raft.heartbeat_elapsed());
                until_heartbeats.min(raft.election_timeout().saturating_sub(raft.election_elapsed))
            }
            _ => 1,
        };
        quiet.max(1) as u64
    }

    fn tick_once(&mut self) {
        if !self.may_campaign() {
            return;
        }
        self.note_active_members();
        self.raw.tick();
        self.set_timeout();
        self.advance_early_campaign();
        self.repeat_offers();
        self.hand_over();
        self.request_end();
    }

    /// Keeps the members that raft-rs forgets in this tick, when it checks its quorum: they have a heartbeat interval to
    /// answer again.
    fn note_active_members(&mut self) {
        let raft = &self.raw.raft;
        self.ticks_since_check += 1;
        if raft.state == StateRole::Leader && raft.election_elapsed + 1 >= raft.election_timeout() {
            let active = raft.prs().iter().filter(|(_, progress)| progress.recent_active);
            self.active_before.clear();
            self.active_before.extend(active.map(|(number, _)| *number));
            self.ticks_since_check = 0;
        }
    }

    /// Reports whether a member has answered since the last check of the quorum, or shortly before.
    fn is_active(&self, number: u64, progress: &raft::Progress) -> bool {
        let is_recent = self.ticks_since_check <= 2 * self.options.heartbeat_ticks();
        progress.recent_active || (is_recent && self.active_before.contains(&number))
    }

    /// False while a log position is being persisted: the log has a hole. A sole voter counts on all of its log at
    /// once, so all of it must be persisted before.
    pub(super) fn may_campaign(&self) -> bool {
        let raft = &self.raw.raft;
        let is_alone = raft.prs().is_singleton() && raft.promotable() && raft.state != StateRole::Leader;
        let is_persisted = raft.raft_log.last_index() == raft.raft_log.persisted;
        self.restoring.is_none() && (!is_alone || is_persisted)
    }

    /// Replaces raft-rs's timeout by one from (seed, member, term) (decision 9), after every step and tick.
    pub(super) fn set_timeout(&mut self) {
        let (_, min, max) = self.options.election_ticks();
        let drawn = mixed(&[self.options.seed, self.id.get(), self.raw.raft.term]);
        self.raw.raft.set_randomized_election_timeout(min + (drawn % (max - min) as u64) as usize);
    }

    /// Reports a new connection. A leader asks the member again for the end of its log: after a power cut at a tier
    /// without sync, it may have less than it acknowledged, and raft-rs would never resend those entries.
    pub fn peer_connected(&mut self, member: MemberId) {
        self.has_updates = true;
        let raft = &mut self.raw.raft;
        if raft.state != StateRole::Leader || member == self.id {
            return;
        }
        let next = raft.raft_log.last_index() + 1;
        if let Some(progress) = raft.mut_prs().get_mut(member.get()) {
            progress.matched = 0;
            progress.become_probe();
            // The member's answers find the end of its log, backwards from the leader's end.
            progress.next_idx = next;
        }
    }

    /// Reports that a peer's process ended. Its follower gives up the lease and campaigns after 0 to 4 ticks (at most a
    /// heartbeat interval and 30 ms) by (seed, member, term), so that candidates seldom collide; a witness 8 ticks
    /// later. The campaign starts with a pre-vote, which a live leader's followers refuse. Because others may notice
    /// later, it repeats every 5 ticks a few times, and then leaves it to the timeout.
    pub fn peer_disconnected(&mut self, member: MemberId) {
        self.has_updates = true;
        self.unreachable(member);
        let raft = &mut self.raw.raft;
        if raft.state != StateRole::Follower || raft.leader_id != member.get() {
            return;
        }
        let term = raft.term;
        raft.become_follower(term, raft::INVALID_ID);
        self.set_timeout();
        let later = if self.options.is_witness { 2 * EARLY_CAMPAIGN_TICKS } else { 0 };
        let delay = mixed(&[!self.options.seed, self.id.get(), term]) % (EARLY_CAMPAIGN_TICKS + 1);
        self.early_campaign = Some(EarlyCampaign { ticks_left: delay + later, attempts_left: EARLY_CAMPAIGNS_MAX });
    }

    fn advance_early_campaign(&mut self) {
        let raft = &self.raw.raft;
        let is_waiting = matches!(raft.state, StateRole::Follower | StateRole::PreCandidate) && raft.leader_id == 0;
        let Some(early_campaign) = self.early_campaign.as_mut().filter(|_| is_waiting && raft.promotable()) else {
            self.early_campaign = None;
            return;
        };
        if early_campaign.ticks_left > 0 {
            early_campaign.ticks_left -= 1;
            return;
        }
        early_campaign.ticks_left = EARLY_CAMPAIGN_TICKS;
        early_campaign.attempts_left -= 1;
        if early_campaign.attempts_left == 0 {
            self.early_campaign = None;
        }
        // Refused only while a membership change waits to be applied; the timeout tries again.
        let _ = self.raw.campaign();
        self.set_timeout();
    }

    /// Raft-rs waits for ever for the answer to an offer, but either may be lost.
    fn repeat_offers(&mut self) {
        if self.raw.raft.state != StateRole::Leader {
            self.offered.clear();
            return;
        }
        let progress = self.raw.raft.prs();
        let is_waiting = |number: &u64| progress.get(*number).is_some_and(|found| found.pending_snapshot != 0);
        self.offered.retain(|(number, _)| is_waiting(number));
        for (number, found) in progress.iter() {
            if found.pending_snapshot != 0 && !self.offered.iter().any(|(other, _)| other == number) {
                self.offered.push((*number, 0));
            }
        }
        let again = self.options.election_ticks().0 * REPEATED_OFFER_TIMEOUTS;
        for at in 0..self.offered.len() {
            self.offered[at].1 += 1;
            if self.offered[at].1.is_multiple_of(again) {
                self.raw.report_snapshot(self.offered[at].0, SnapshotStatus::Failure);
            }
        }
    }

    fn hand_over(&mut self) {
        let Some(target) = self.wants_transfer() else { return };
        let raft = &self.raw.raft;
        let has_all = raft.prs().get(target.get()).is_some_and(|found| found.matched == raft.raft_log.last_index());
        if raft.lead_transferee.is_none() && has_all && raft.commit_to_current_term() {
            self.raw.transfer_leader(target.get());
        }
    }

    /// Whether [`Consensus::propose`] would accept a batch now.
    ///
    /// # Errors
    /// Errors of that call.
    pub fn can_propose(&self) -> Result<(), ProposeError> {
        if !self.is_leader() {
            return Err(ProposeError::NotLeader { leader: self.leader() });
        }
        if self.raw.raft.lead_transferee.is_some() {
            return Err(ProposeError::HandingOver);
        }
        let limits = &self.options;
        if self.in_flight.len() >= limits.in_flight_entries_max || self.in_flight_bytes >= limits.in_flight_bytes_max {
            return Err(ProposeError::Full);
        }
        Ok(())
    }

    /// Proposes the leader's appended frames, of `length_bytes`, as one entry.
    ///
    /// # Errors
    /// If this member does not lead, transfers leadership, has too much in flight, or the batch leaves a gap. The
    /// caller must then remove the frames again.
    pub fn propose(&mut self, batch: Batch, length_bytes: u64) -> Result<(), ProposeError> {
        self.has_updates = true;
        self.can_propose()?;
        let expected_sequence = self.proposed_end() + 1;
        if batch.first_sequence != expected_sequence || batch.is_empty() {
            return Err(ProposeError::Gap { expected_sequence });
        }
        let proposed = self.raw.propose(Vec::new(), batch.to_bytes().to_vec());
        proposed.map_err(|_| ProposeError::NotLeader { leader: self.leader() })?;
        self.in_flight.push_back((self.raw.raft.raft_log.last_index(), length_bytes));
        self.in_flight_bytes += length_bytes;
        Ok(())
    }

    /// Includes entries that no poll has returned.
    fn proposed_end(&self) -> u64 {
        let unstable = self.raw.raft.raft_log.unstable_entries();
        let last = unstable.iter().rev().find_map(crate::consensus::raft_form::batch_in);
        last.map_or_else(|| self.end().sequence, |batch| batch.end_sequence)
    }

    pub(super) fn forget_committed_in_flight(&mut self, committed: u64) {
        while let Some((_, length_bytes)) = self.in_flight.pop_front_if(|(index, _)| *index <= committed) {
            self.in_flight_bytes -= length_bytes;
        }
    }

    pub(super) fn forget_in_flight(&mut self) {
        self.in_flight.clear();
        self.in_flight_bytes = 0;
    }

    /// Proposes a membership change, one at a time; it takes effect when applied.
    ///
    /// # Errors
    /// No lead, another change in progress, or no valid cluster as the result.
    pub fn propose_members(&mut self, change: &MembershipChange) -> Result<(), ProposeError> {
        self.has_updates = true;
        if !self.is_leader() {
            return Err(ProposeError::NotLeader { leader: self.leader() });
        }
        let raft = &self.raw.raft;
        let change_to_raft = change.to_raft();
        let is_joint = !self.members().voters_outgoing.is_empty();
        let is_right = change.steps.len() <= super::types::CONSENSUS_MEMBERS_MAX
            && change.witnesses.len() <= super::types::CONSENSUS_MEMBERS_MAX
            && change.details.len() <= super::types::CONSENSUS_MEMBERS_MAX
            && self.storage().change_bytes() <= CHANGE_BYTES_MAX
            && !raft.has_pending_conf()
            && is_joint == change_to_raft.leave_joint()
            && self.is_applicable_change(change, &change_to_raft);
        if !is_right {
            return Err(ProposeError::Change);
        }
        let proposed = self.raw.propose_conf_change(Vec::new(), change_to_raft);
        proposed.map_err(|_| ProposeError::HandingOver)
    }

    fn is_applicable_change(&self, proposed: &MembershipChange, change: &raft::eraftpb::ConfChangeV2) -> bool {
        let changer = &mut raft::Changer::new(self.raw.raft.prs());
        let outcome = if change.leave_joint() {
            changer.leave_joint()
        } else if let Some(auto_leave) = change.enter_joint() {
            changer.enter_joint(auto_leave, change.get_changes())
        } else {
            changer.simple(change.get_changes())
        };
        outcome.is_ok_and(|(outcome, _)| {
            let mut members = self.members().clone();
            proposed.apply_to(&mut members);
            members.with_conf_state(&outcome.to_conf_state()).check().is_ok()
        })
    }

    /// Transfers leadership to another voter once that voter has every entry. Proposals are refused meanwhile; given up
    /// after an election timeout.
    ///
    /// # Errors
    /// No lead, or `member` is not another voter.
    pub fn transfer_to(&mut self, member: MemberId) -> Result<(), ProposeError> {
        self.has_updates = true;
        if !self.is_leader() {
            return Err(ProposeError::NotLeader { leader: self.leader() });
        }
        if member == self.id {
            return Err(ProposeError::LeadsAlready(member));
        }
        if !self.members().voters.contains(&member) {
            return Err(ProposeError::NotVoter(member));
        }
        self.raw.transfer_leader(member.get());
        Ok(())
    }

    /// Reports lost messages to `member`: entries in flight are sent again.
    pub fn unreachable(&mut self, member: MemberId) {
        self.has_updates = true;
        self.raw.report_unreachable(member.get());
        self.raw.report_snapshot(member.get(), SnapshotStatus::Failure);
    }
}

/// At the beginning with the configured members, or before it without any, so that a leader offers a log position.
fn initial_state(options: &ConsensusOptions) -> Checkpoint {
    let begin = if options.members.is_empty() { 0 } else { BEGIN };
    let hash = super::Chain::new(options.chain_seed).value();
    Checkpoint {
        hard_state: HardState { term: begin, vote: None, commit: begin },
        start: LogPosition { index: begin, term: begin, sequence: 0, hash },
        members: options.members.clone().sorted(),
        entries: Vec::new(),
        acknowledged: Vec::new(),
    }
}
