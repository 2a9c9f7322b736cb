//! One member alone, whose writes take no time, and the messages of the others made by hand: acceptance and refusal of
//! messages, campaigns, votes, and the work of a leader.

mod campaigns;
mod leading;
mod log_positions;
mod lost_power;
mod messages;

use super::disk::CHAIN_SEED;
use super::node::MS;
use gapless_cluster::consensus::{
    Batch, Chain, Consensus, ConsensusOptions, Effects, LogPosition, MemberId, MemberRole, Members, RecoveredState,
    StepError,
};
use gapless_wire::{FrameHeader, FrameWriter};
use raft::eraftpb::{Entry, Message, MessageType};

const FRAME_BYTES: usize = 72;

fn member(number: u64) -> MemberId {
    MemberId::new(number).unwrap()
}

fn voters(count: u64) -> Members {
    Members::of_voters(&(1..=count).map(member).collect::<Vec<_>>())
}

/// Ticks of 1 ms, a heartbeat every 4, timeouts of 20 to 40.
fn options(number: u64, members: Members) -> ConsensusOptions {
    ConsensusOptions {
        chain_seed: CHAIN_SEED,
        seed: 5,
        heartbeat_interval_ns: 4 * MS,
        election_timeout_min_ns: 20 * MS,
        election_timeout_max_ns: 40 * MS,
        ..ConsensusOptions::new(member(number), members)
    }
}

struct LoneMember {
    id: u64,
    core: Consensus,
    effects: Effects,
    sent: Vec<Message>,
    now_ns: u64,
}

impl LoneMember {
    fn of(count: u64) -> Self {
        Self::new(options(1, voters(count)), RecoveredState::empty())
    }

    fn new(options: ConsensusOptions, recovered: RecoveredState) -> Self {
        let id = options.id.get();
        let core = Consensus::new(options, recovered).unwrap();
        let mut alone = Self { id, core, effects: Effects::default(), sent: Vec::new(), now_ns: 0 };
        alone.core.tick(0);
        alone.settle();
        alone
    }

    fn poll(&mut self) {
        self.core.poll(&mut self.effects);
        self.sent.extend(self.effects.messages.drain(..).map(|outgoing| outgoing.message));
    }

    fn settle(&mut self) {
        while self.core.has_updates() {
            self.poll();
            self.core.persisted(self.effects.number);
        }
    }

    fn ticks(&mut self, count: u64) {
        for _ in 0..count {
            self.now_ns += MS;
            self.core.tick(self.now_ns);
            self.settle();
        }
    }

    fn ticks_until(&mut self, is_so: impl Fn(&Self) -> bool) -> u64 {
        for passed in 0..1_000 {
            if is_so(self) {
                return passed;
            }
            self.ticks(1);
        }
        panic!("the condition does not occur: {:?}", self.core.status());
    }

    fn message(&self, kind: MessageType, from: u64) -> Message {
        let mut message = Message { to: self.id, from, term: self.core.term(), ..Message::default() };
        message.set_msg_type(kind);
        message
    }

    fn tell(&mut self, message: Message) -> Result<(), StepError> {
        let taken = self.core.step(member(message.from), message);
        self.settle();
        taken
    }

    fn heartbeat(&mut self, from: u64) {
        self.tell(self.message(MessageType::MsgHeartbeat, from)).unwrap();
    }

    fn follow(&mut self, leader: u64) {
        let term = self.core.term() + 1;
        self.tell(Message { term, ..self.message(MessageType::MsgHeartbeat, leader) }).unwrap();
        assert_eq!(self.core.leader(), Some(member(leader)));
    }

    fn lead(&mut self, voters: &[u64]) {
        self.ticks_until(Self::campaigns);
        for kind in [MessageType::MsgRequestPreVoteResponse, MessageType::MsgRequestVoteResponse] {
            for voter in voters.iter().copied() {
                self.grant(kind, voter);
            }
        }
        assert!(self.core.is_leader());
        self.sent.clear();
    }

    fn grant(&mut self, kind: MessageType, voter: u64) {
        let term = self.core.term() + u64::from(kind == MessageType::MsgRequestPreVoteResponse);
        self.tell(Message { term, ..self.message(kind, voter) }).unwrap();
    }

    fn acknowledge(&mut self, from: u64, index: u64) {
        self.tell(Message { index, ..self.message(MessageType::MsgAppendResponse, from) }).unwrap();
    }

    fn campaigns(&self) -> bool {
        self.core.status().role == MemberRole::Candidate
    }

    fn last(&self) -> u64 {
        self.core.end().index
    }

    fn committed(&self) -> u64 {
        self.core.status().committed_index
    }

    fn next_tick(&self) -> u64 {
        (self.core.next_tick_ns() - self.now_ns) / MS
    }

    fn take(&mut self, kind: MessageType, to: u64) -> Vec<Message> {
        self.sent.extract_if(.., |message| message.get_msg_type() == kind && message.to == to).collect()
    }

    fn propose(&mut self, sequence: u64, length_bytes: u64) -> Result<(), gapless_cluster::consensus::ProposeError> {
        self.core.propose(Batch { first_sequence: sequence, end_sequence: sequence, hash: sequence }, length_bytes)
    }
}

/// One entry of one frame for each of `terms` after `base`.
fn append(alone: &LoneMember, leader: u64, base: LogPosition, terms: &[u64]) -> (Message, Vec<u8>) {
    let mut message = alone.message(MessageType::MsgAppend, leader);
    (message.index, message.log_term) = (base.index, base.term);
    let (mut chain, mut frames) = (Chain::at(base.hash), Vec::new());
    for (at, term) in (1..).zip(terms) {
        let mut frame = [0; FRAME_BYTES];
        let sequence = base.sequence + at;
        FrameWriter::new(&mut frame).finish(&FrameHeader { sequence, term: *term, ..FrameHeader::default() }, 8);
        chain.extend_frames(&frame).unwrap();
        frames.extend_from_slice(&frame);
        let batch = Batch { first_sequence: sequence, end_sequence: sequence, hash: chain.value() };
        message.mut_entries().push(entry(base.index + at, *term, batch));
    }
    (message, frames)
}

fn entry(index: u64, term: u64, batch: Batch) -> Entry {
    Entry { index, term, data: batch.to_bytes().to_vec().into(), ..Entry::default() }
}
