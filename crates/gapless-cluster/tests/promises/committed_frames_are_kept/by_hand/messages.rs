use super::*;
use gapless_cluster::consensus::{AppendError, LogDivergence};
use std::iter;

const CONTRADICTIONS: [&str; 5] = [
    "more is committed than this member has",
    "a member has more than its leader",
    "its entries do not follow each other",
    "its entries leave a gap in the stream",
    "a log position without members, or without this one",
];

#[track_caller]
fn contradicts(taken: Result<(), StepError>, reason: usize) {
    assert_eq!(taken, Err(StepError::Contradiction(CONTRADICTIONS[reason])));
}

/// Follower of member 2 in term 2, with `count` entries.
fn following(count: usize) -> LoneMember {
    let mut alone = LoneMember::of(3);
    alone.follow(2);
    let (message, _) = append(&alone, 2, alone.core.end(), &vec![2; count]);
    alone.tell(message).unwrap();
    assert_eq!((alone.last(), alone.core.term()), (1 + count as u64, 2));
    alone.sent.clear();
    alone
}

#[test]
fn heartbeat_commits_to_log_end() {
    let mut alone = following(3);
    for commit in [2, 3, 4] {
        alone.tell(Message { commit, ..alone.message(MessageType::MsgHeartbeat, 2) }).unwrap();
        assert_eq!(alone.committed(), commit);
    }
    contradicts(alone.tell(Message { commit: 5, ..alone.message(MessageType::MsgHeartbeat, 2) }), 0);
    alone.tell(Message { commit: 9, term: 1, ..alone.message(MessageType::MsgHeartbeat, 3) }).unwrap();
    assert_eq!((alone.committed(), alone.core.leader()), (4, Some(member(2))));
}

#[test]
fn strangers_may_lead_or_campaign() {
    let mut alone = following(1);
    for kind in [
        MessageType::MsgHeartbeat,
        MessageType::MsgAppend,
        MessageType::MsgSnapshot,
        MessageType::MsgRequestVote,
        MessageType::MsgRequestPreVote,
    ] {
        let message = Message { term: 1, ..alone.message(kind, 7) };
        assert_eq!(alone.tell(message), Ok(()), "{kind:?}");
    }
    for kind in [
        MessageType::MsgAppendResponse,
        MessageType::MsgHeartbeatResponse,
        MessageType::MsgReadIndex,
        MessageType::MsgReadIndexResp,
        MessageType::MsgTimeoutNow,
        MessageType::MsgRequestVoteResponse,
        MessageType::MsgPropose,
    ] {
        assert_eq!(alone.tell(alone.message(kind, 7)), Err(StepError::NotMember(member(7))), "{kind:?}");
    }
    for kind in [MessageType::MsgHup, MessageType::MsgBeat, MessageType::MsgPropose, MessageType::MsgCheckQuorum] {
        assert_eq!(alone.tell(alone.message(kind, 3)), Err(StepError::Type), "{kind:?}");
    }
    let own = alone.message(MessageType::MsgHeartbeat, 1);
    assert_eq!(alone.tell(own), Err(StepError::Sender { claimed: 1, found: member(1) }));
    let other = Message { to: 2, ..alone.message(MessageType::MsgHeartbeat, 2) };
    assert_eq!(alone.tell(other), Err(StepError::Receiver(2)));
    assert_eq!(alone.core.status().refused_messages, 13);
}

#[test]
fn excess_acknowledge_is_refused() {
    let mut alone = LoneMember::of(3);
    alone.lead(&[2]);
    let last = alone.last();
    let answer = |alone: &LoneMember, index| Message { index, ..alone.message(MessageType::MsgAppendResponse, 2) };
    contradicts(alone.tell(answer(&alone, last + 1)), 1);
    let refusal = Message { reject: true, ..answer(&alone, last + 9) };
    assert_eq!(alone.tell(refusal), Ok(()));
    let late = Message { term: alone.core.term() - 1, ..answer(&alone, last + 9) };
    assert_eq!(alone.tell(late), Ok(()));
    assert_eq!(alone.tell(answer(&alone, last)), Ok(()));
    assert_eq!(alone.committed(), last);
    let mut alone = following(1);
    assert_eq!(alone.tell(answer(&alone, 99)), Ok(()));
    assert_eq!(alone.core.status().refused_messages, 0);
}

#[test]
fn only_leader_orders_campaign() {
    for (from, term) in [(3, 2), (2, 1)] {
        let mut alone = following(1);
        let order = Message { term, ..alone.message(MessageType::MsgTimeoutNow, from) };
        assert_eq!(alone.tell(order), Err(StepError::Type), "from {from} in term {term}");
        assert!(!alone.campaigns());
    }
    let mut alone = following(1);
    assert_eq!(alone.tell(alone.message(MessageType::MsgTimeoutNow, 2)), Ok(()));
    assert!(alone.campaigns() && alone.core.term() == 3);
}

#[test]
fn append_must_follow_the_log() {
    let mut alone = following(3);
    let base = alone.core.end();
    let (message, frames) = append(&alone, 2, base, &[2, 2]);
    let sequences = Some((base.sequence + 1, base.sequence + 2));
    assert_eq!(alone.core.verify_append(&message, &frames), Ok(sequences));
    let unlike = |change: &dyn Fn(&mut Message)| {
        let mut message = message.clone();
        change(&mut message);
        message
    };
    let ignored = [
        unlike(&|message| message.term = 1),
        unlike(&|message| message.index += 3),
        unlike(&|message| message.log_term = 1),
        unlike(&|message| message.set_msg_type(MessageType::MsgSnapshot)),
    ];
    for message in &ignored {
        assert_eq!(alone.core.verify_append(message, &frames), Ok(None), "{message:?}");
    }
    alone.tell(Message { commit: 3, ..alone.message(MessageType::MsgHeartbeat, 2) }).unwrap();
    let first = alone.core.position_at(1).unwrap();
    let (message, frames) = append(&alone, 2, first, &[2]);
    assert_eq!(alone.core.verify_append(&message, &frames), Ok(None));
    let third = alone.core.position_at(3).unwrap();
    let (same, same_frames) = append(&alone, 2, third, &[2, 2]);
    assert_eq!(alone.core.verify_append(&same, &same_frames), Ok(Some((3, 4))));
    alone.follow(3);
    let (newer, newer_frames) = append(&alone, 3, third, &[3]);
    assert_eq!(alone.core.verify_append(&newer, &newer_frames), Ok(Some((3, 3))));
    alone.tell(newer).unwrap();
    assert_eq!((alone.last(), alone.core.end().term), (4, 3));
    let (next, frames) = append(&alone, 3, alone.core.end(), &[3]);
    assert_eq!(alone.core.step(member(3), next.clone()), Ok(()));
    assert_eq!(alone.core.verify_append(&next, &frames), Err(AppendError::Entries(StepError::Busy)));
}

#[test]
fn entry_gaps_are_refused() {
    let mut alone = following(2);
    let base = alone.core.end();
    let (right, frames) = append(&alone, 2, base, &[2, 2]);
    let mut wrong = |reason: usize, change: &dyn Fn(&mut [Entry])| {
        let mut message = right.clone();
        change(message.mut_entries());
        let refused = StepError::Contradiction(CONTRADICTIONS[reason]);
        assert_eq!(alone.core.verify_append(&message, &frames), Err(AppendError::Entries(refused)));
        contradicts(alone.tell(message), reason);
        assert_eq!(alone.core.end(), base);
    };
    wrong(2, &|entries| entries[0].index += 1);
    wrong(2, &|entries| entries[1].index -= 1);
    wrong(2, &|entries| entries[0].term = 1);
    wrong(2, &|entries| entries[1].term = 3);
    let batch = |first_sequence, end_sequence| Batch { first_sequence, end_sequence, hash: 1 }.to_bytes().to_vec();
    wrong(3, &|entries| entries[0].data = batch(base.sequence + 2, base.sequence + 2).into());
    wrong(3, &|entries| entries[0].data = batch(base.sequence, base.sequence + 1).into());
    wrong(3, &|entries| entries[1].data = batch(base.sequence + 1, base.sequence + 2).into());
    assert_eq!(alone.core.status().refused_messages, 14, "each twice, when it is verified and when it is taken");
    alone.follow(3);
    alone.follow(2);
    let (message, frames) = append(&alone, 2, base, &[2, 3, 4]);
    assert_eq!(alone.core.verify_append(&message, &frames), Ok(Some((base.sequence + 1, base.sequence + 3))));
    alone.tell(message).unwrap();
    assert_eq!(alone.last(), base.index + 3);
}

#[test]
fn divergent_entry_is_located() {
    let mut alone = following(2);
    let (first, second) = (alone.core.position_at(1).unwrap(), alone.core.position_at(2).unwrap());
    let (mut message, frames) = append(&alone, 2, first, &[2, 2]);
    let batch = Batch { first_sequence: second.sequence + 1, end_sequence: second.sequence + 1, hash: 7 };
    message.mut_entries()[1].data = batch.to_bytes().to_vec().into();
    let divergence = LogDivergence { same: Some(second), other: alone.core.end() };
    let refused = AppendError::Entries(StepError::OtherEntry(divergence));
    assert_eq!(alone.core.verify_append(&message, &frames), Err(refused));
}

#[test]
fn frames_must_match_their_entries() {
    let mut alone = following(1);
    let base = alone.core.end();
    let first = base.sequence + 1;
    let (message, frames) = append(&alone, 2, base, &[2, 2]);
    let with = |at: usize, sequence, term| {
        let mut changed = frames.clone();
        let header = FrameHeader { sequence, term, ..FrameHeader::default() };
        FrameWriter::new(&mut changed[at * FRAME_BYTES..][..FRAME_BYTES]).finish(&header, 8);
        changed
    };
    let mut verify = |frames: &[u8]| alone.core.verify_append(&message, frames).unwrap_err();
    let (expected_sequence, found_sequence) = (first + 1, first + 2);
    let refused = AppendError::Sequence { expected_sequence, found_sequence };
    assert_eq!(verify(&with(1, found_sequence, 2)), refused);
    let refused = AppendError::Term { sequence: first, expected_term: 2, found_term: 1 };
    assert_eq!(verify(&with(0, first, 1)), refused);
    let mut other = frames.clone();
    let header = FrameHeader { sequence: first + 1, term: 2, session: 9, ..FrameHeader::default() };
    FrameWriter::new(&mut other[FRAME_BYTES..]).finish(&header, 8);
    assert!(matches!(verify(&other), AppendError::Hash { end_sequence, .. } if end_sequence == first + 1));
    let longer: Vec<_> = frames.iter().copied().chain(iter::repeat_n(0, 8)).collect();
    assert_eq!(verify(&longer), AppendError::Rest { left_bytes: 8, end_sequence: first + 1 });
    assert!(matches!(verify(&frames[..FRAME_BYTES]), AppendError::Frame { .. }));
    assert_eq!(alone.core.status().refused_messages, 5);
    assert_eq!(alone.core.verify_append(&message, &frames), Ok(Some((first, first + 1))));
    assert_eq!(alone.core.status().refused_messages, 5);
}

/// Offer of member 2 with `frames` frames to member 1 of `count`; its position; the leader.
fn offer(count: u64, frames: u64) -> (Message, LogPosition, LoneMember) {
    let mut leader = LoneMember::new(options(2, voters(count)), RecoveredState::empty());
    leader.lead(&[3]);
    for sequence in 1..=frames {
        leader.propose(sequence, 8).unwrap();
        leader.settle();
        leader.acknowledge(3, leader.last());
    }
    leader.core.forget_before(frames + 1);
    leader.sent.clear();
    leader.heartbeat_answer(1);
    leader.tell(Message { reject: true, index: 2, ..leader.message(MessageType::MsgAppendResponse, 1) }).unwrap();
    let offer = leader.take(MessageType::MsgSnapshot, 1).pop().expect("the entries are forgotten");
    (offer, leader.core.applied_position().unwrap().0, leader)
}

impl LoneMember {
    fn heartbeat_answer(&mut self, from: u64) {
        self.tell(self.message(MessageType::MsgHeartbeatResponse, from)).unwrap();
    }

    fn fetches(&mut self, offer: &Message) -> Result<Option<LogPosition>, StepError> {
        self.core.step(member(offer.from), offer.clone())?;
        self.poll();
        let fetch = self.effects.fetch.take().map(|fetch| fetch.position);
        self.core.persisted(self.effects.number);
        self.settle();
        Ok(fetch)
    }
}

#[test]
fn failed_fetch_is_repeated() {
    let (offer, position, _) = offer(3, 4);
    let mut alone = LoneMember::of(3);
    alone.follow(2);
    assert_eq!(alone.fetches(&offer), Ok(Some(position)));
    assert_eq!(alone.fetches(&offer), Ok(None), "the position is being fetched");
    alone.core.fetch_failed();
    assert_eq!(alone.fetches(&offer), Ok(Some(position)));
    alone.core.peer_disconnected(member(2));
    assert!(!alone.core.fetched(position, 0));
    alone.heartbeat(2);
    assert!(alone.core.fetched(position, 0));
    alone.poll();
    assert_eq!(alone.effects.restored, Some(position));
    assert_eq!(alone.core.step(member(2), alone.message(MessageType::MsgHeartbeat, 2)), Err(StepError::Busy));
    assert_eq!(alone.next_tick(), 1);
    alone.core.persisted(alone.effects.number);
    alone.settle();
    assert_eq!((alone.core.end(), alone.committed()), (position, position.index));
    assert!(alone.core.fetched(position, 0), "the position is of no more use");
}

#[test]
fn fetch_waits_for_a_quiet_log() {
    let (offer, position, _) = offer(3, 4);
    let mut alone = LoneMember::of(3);
    alone.follow(2);
    assert_eq!(alone.fetches(&offer), Ok(Some(position)));
    let (message, _) = append(&alone, 2, alone.core.end(), &[alone.core.term()]);
    assert_eq!(alone.core.step(member(2), message), Ok(()));
    assert!(!alone.core.fetched(position, 0));
    alone.settle();
    alone.lead(&[3]);
    assert!(!alone.core.fetched(position, 0));
    let term = alone.core.term() + 1;
    alone.core.step(member(2), Message { term, ..alone.message(MessageType::MsgHeartbeat, 2) }).unwrap();
    assert!(!alone.core.fetched(position, 0));
    alone.settle();
    assert!(alone.core.fetched(position, 0));
}

#[test]
fn invalid_offers_are_refused() {
    let (offer, position, _) = offer(3, 4);
    let mut stranger = LoneMember::new(options(5, Members::default()), RecoveredState::empty());
    let refused = Err(StepError::Contradiction(CONTRADICTIONS[4]));
    assert_eq!(stranger.fetches(&Message { to: 5, ..offer.clone() }), refused);
    let mut alone = LoneMember::of(3);
    alone.follow(3);
    alone.follow(3);
    assert_eq!(alone.fetches(&offer), Ok(None));
    let mut alone = LoneMember::of(3);
    alone.follow(2);
    let (message, _) = append(&alone, 2, alone.core.end(), &vec![2; position.index as usize]);
    alone.tell(message).unwrap();
    assert_eq!(alone.fetches(&offer), Ok(None), "the entry is in the log");
    let released = position.index - 1;
    for commit in [position.index, position.index + 1] {
        alone.tell(Message { commit, ..alone.message(MessageType::MsgHeartbeat, 2) }).unwrap();
        assert_eq!(alone.fetches(&offer), Ok(None), "{commit} entries are committed");
    }
    assert_eq!(alone.core.status().released_sequence, released + 1);
    let at = |index, term| {
        let mut other = offer.clone();
        other.term = 2;
        (other.mut_snapshot().mut_metadata().index, other.mut_snapshot().mut_metadata().term) = (index, term);
        other
    };
    let before = Err(StepError::Contradiction("a log position before what is committed here"));
    assert_eq!(alone.fetches(&at(alone.committed(), 1)), before);
    assert_eq!(alone.fetches(&at(alone.committed() + 5, 2)), before, "with fewer frames than are released here");
    assert_eq!(alone.fetches(&at(alone.committed() - 1, 1)), Ok(None));
    let mut alone = LoneMember::of(3);
    alone.follow(2);
    let (message, _) = append(&alone, 2, alone.core.end(), &vec![2; position.sequence as usize]);
    alone.tell(message).unwrap();
    alone.tell(Message { commit: alone.last(), ..alone.message(MessageType::MsgHeartbeat, 2) }).unwrap();
    assert_eq!(alone.core.status().released_sequence, position.sequence);
    assert!(alone.fetches(&at(alone.last() + 5, 2)).unwrap().is_some());
}

#[test]
fn earlier_offer_is_accepted() {
    let (_, position, mut leader) = offer(3, 4);
    for sequence in [5, 6] {
        leader.propose(sequence, 8).unwrap();
        leader.settle();
        leader.acknowledge(3, leader.last());
    }
    leader.core.forget_before(7);
    leader.core.unreachable(member(1));
    leader.settle();
    leader.heartbeat_answer(1);
    assert_eq!(leader.take(MessageType::MsgSnapshot, 1).len(), 1);
    let is_fetching = |leader: &LoneMember| leader.core.status().peers.iter().any(|peer| peer.is_fetching);
    assert!(is_fetching(&leader));
    leader.tell(Message { reject: true, index: 2, ..leader.message(MessageType::MsgAppendResponse, 1) }).unwrap();
    leader.heartbeat_answer(1);
    assert!(is_fetching(&leader) && leader.sent.iter().all(|message| message.to != 1), "{:?}", leader.sent);
    leader.acknowledge(1, position.index);
    let next: Vec<_> = leader.sent.iter().filter(|message| message.to == 1).map(Message::get_msg_type).collect();
    assert!(next.contains(&MessageType::MsgAppend) || next.contains(&MessageType::MsgSnapshot), "{next:?}");
}
