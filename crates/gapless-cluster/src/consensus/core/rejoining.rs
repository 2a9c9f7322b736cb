//! A rejoining voter: a member that lost power at a tier without sync, and may lack entries that it acknowledged.
//!
//! Its term and its vote are always synced, so it acknowledged nothing in a later term than its remembered one, T.
//! Until it has every entry again that it ever acknowledged, it is *rejoining* (`is_rejoining`):
//!
//! - **Its vote counts only together with the votes of all voters.** The vote carries a mark. A candidate counts marked
//!   votes once all voters, of both halves of a joint configuration, have voted for it; a rejoining candidate counts
//!   all votes like that. A candidate with the votes of all has the newest remaining log, with every entry that any
//!   voter still has.
//! - **Its acknowledgements count.** They are of entries that it has now. Acknowledgements of its former life that are
//!   still in flight are of entries that it will have before it votes by itself.
//!
//! It has caught up when its journal holds
//!
//! - an entry of a later term than T: that term's leader was elected without it, or by all, so it has all entries that
//!   count; or
//! - the log that the leader of T had at a moment after the start. That leader has every entry that this member
//!   acknowledged in T, and it had those of earlier terms when it was elected. So a rejoining member asks its leader
//!   for the end of its log. The answer names the start of the receiving member, so an answer to a former life does not
//!   count. Reaching the commit index would not be enough: an acknowledgement of the former life may still commit more.
//!
//! The asked leader also resets its view of the member's log to the member's report: otherwise raft-rs would never
//! resend the missing entries.

use super::Consensus;
use crate::consensus::recovered::RejoinState;
use crate::consensus::types::MemberId;
use crate::consensus::wire::{CONDITIONAL_CONTEXT, CONTEXT_LENGTH, END_CONTEXT};
use gapless_agent::fault::mutant;
use raft::StateRole;
use raft::eraftpb::{Entry, Message, MessageType};

pub(super) struct RejoiningVoter {
    rejoin: RejoinState,
    /// Earliest log position that suffices: term and index.
    enough: Option<(u64, u64)>,
    ticks_to_question: usize,
}

impl RejoiningVoter {
    pub fn of(rejoin: Option<RejoinState>) -> Option<Self> {
        let rejoin = rejoin.filter(|_| !mutant("vote_after_power_loss"));
        rejoin.map(|rejoin| Self { rejoin, enough: None, ticks_to_question: 0 })
    }
}

#[derive(Default)]
pub(super) struct CampaignVotes {
    campaign: Option<(u64, StateRole)>,
    received: Vec<(u64, Option<Message>)>,
}

pub(super) fn is_end_message(message: &Message) -> bool {
    message.get_context() == END_CONTEXT
}

const fn is_vote(kind: MessageType) -> bool {
    matches!(kind, MessageType::MsgRequestVoteResponse | MessageType::MsgRequestPreVoteResponse)
}

impl Consensus {
    /// Whether this member may lack entries that it acknowledged; its vote then counts only with all others.
    #[must_use]
    pub const fn is_rejoining(&self) -> bool {
        self.rejoining.is_some()
    }

    pub(super) fn mark_votes(&self, messages: &mut [Message]) {
        if !self.is_rejoining() {
            return;
        }
        for message in messages.iter_mut().filter(|message| is_vote(message.get_msg_type()) && !message.reject) {
            message.context = CONDITIONAL_CONTEXT.into();
        }
    }

    /// Passes the votes that waited for this one to raft-rs; returns the message if raft-rs is to see it now.
    pub(super) fn count_vote(&mut self, message: Message) -> Option<Message> {
        let kind = message.get_msg_type();
        if !is_vote(kind) || message.reject {
            return Some(message);
        }
        let raft = &self.raw.raft;
        let (term, state) = (raft.term, raft.state);
        let is_of_campaign = match state {
            StateRole::Candidate => kind == MessageType::MsgRequestVoteResponse && message.term == term,
            StateRole::PreCandidate => kind == MessageType::MsgRequestPreVoteResponse && message.term == term + 1,
            StateRole::Follower | StateRole::Leader => false,
        };
        if !is_of_campaign {
            return None;
        }
        if self.votes.campaign != Some((term, state)) {
            self.votes = CampaignVotes { campaign: Some((term, state)), received: Vec::new() };
        }
        let counts = !self.is_rejoining() && message.get_context() != CONDITIONAL_CONTEXT;
        let from = message.from;
        self.votes.received.retain(|(voter, _)| *voter != from);
        let (now, later) = if counts { (Some(message), None) } else { (None, Some(message)) };
        self.votes.received.push((from, later));
        if self.votes.received.iter().any(|(_, waiting)| waiting.is_some()) && self.have_all_voted() {
            self.count_waiting_votes();
        }
        now
    }

    fn have_all_voted(&self) -> bool {
        let members = self.members();
        let mut voters = members.voters.iter().chain(&members.voters_outgoing);
        voters.all(|voter| *voter == self.id || self.votes.received.iter().any(|(voted, _)| *voted == voter.get()))
    }

    fn count_waiting_votes(&mut self) {
        tracing::warn!(
            term = self.raw.raft.term,
            "members that lost their power before they had caught up vote together with all others: what only they had \
             acknowledged may be lost"
        );
        for (_, waiting) in std::mem::take(&mut self.votes.received) {
            if let Some(mut vote) = waiting {
                vote.context.clear();
                let _ = self.raw.step(vote);
            }
        }
    }

    pub(super) fn request_end(&mut self) {
        let leader = self.raw.raft.leader_id;
        let interval_ticks = self.options.election_ticks().0;
        let index = self.raw.raft.raft_log.persisted;
        let Some(rejoining) = &mut self.rejoining else { return };
        if leader == raft::INVALID_ID || leader == self.id.get() {
            rejoining.ticks_to_question = 0;
            return;
        }
        if rejoining.ticks_to_question > 0 {
            rejoining.ticks_to_question -= 1;
            return;
        }
        rejoining.ticks_to_question = interval_ticks;
        let context = context(self.id, rejoining.rejoin.start);
        let message = end_message(MessageType::MsgReadIndex, leader, index, context);
        self.send_directly(message);
    }

    pub(super) fn handle_end_message(&mut self, message: &Message) {
        let asked = message.get_entries().first().map(|entry| entry.get_data().to_vec()).unwrap_or_default();
        if message.get_msg_type() == MessageType::MsgReadIndex {
            self.answer_end(message, asked);
            return;
        }
        let Some(rejoining) = &mut self.rejoining else { return };
        // A message of another term would have been refused, and no term is older than the one at the loss.
        if asked == context(self.id, rejoining.rejoin.start) {
            let said = (message.term, message.index);
            rejoining.enough = Some(rejoining.enough.map_or(said, |known| known.min(said)));
            self.check_caught_up();
        }
    }

    fn answer_end(&mut self, message: &Message, asked: Vec<u8>) {
        let Some(from) = MemberId::new(message.from) else { return };
        let raft = &self.raw.raft;
        let last = raft.raft_log.last_index();
        let mut answer = end_message(MessageType::MsgReadIndexResp, message.from, last, asked);
        answer.term = raft.term;
        if raft.prs().get(message.from).is_some_and(|progress| progress.matched > message.index) {
            self.peer_connected(from);
        }
        self.send_directly(answer);
    }

    fn send_directly(&mut self, mut message: Message) {
        message.from = self.id.get();
        let vote_number = self.vote_number;
        self.send(vec![message], vote_number);
    }

    pub(super) fn check_caught_up(&mut self) {
        let Some(rejoining) = &self.rejoining else { return };
        let Some(position) = self.storage().position_at(self.raw.raft.raft_log.persisted) else { return };
        let has_enough = rejoining.enough.is_some_and(|enough| (position.term, position.index) >= enough);
        if position.term > rejoining.rejoin.term || has_enough {
            tracing::info!(index = position.index, term = position.term, "this member has caught up, and votes again");
            self.rejoining = None;
        }
    }
}

fn context(member: MemberId, start: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(CONTEXT_LENGTH);
    bytes.extend_from_slice(&member.get().to_le_bytes());
    bytes.extend_from_slice(&start.to_le_bytes());
    bytes
}

fn end_message(kind: MessageType, to: u64, index: u64, context: Vec<u8>) -> Message {
    let mut message = Message { to, index, ..Message::default() };
    message.set_msg_type(kind);
    message.context = END_CONTEXT.into();
    message.mut_entries().push(Entry { data: context.into(), ..Entry::default() });
    message
}
