use super::*;
use gapless_cluster::consensus::{ChangeStep, MemberDetails, MembershipChange, ProposeError};

/// Member 1 of three, elected, its first entry committed by `2`.
fn leading(options: ConsensusOptions) -> LoneMember {
    let mut alone = LoneMember::new(options, RecoveredState::empty());
    alone.lead(&[2]);
    alone.acknowledge(2, alone.last());
    alone.sent.clear();
    alone
}

#[test]
fn proposals_need_no_poll() {
    let mut alone = leading(options(1, voters(3)));
    assert_eq!(alone.propose(2, 8), Err(ProposeError::Gap { expected_sequence: 1 }));
    for sequence in 1..=3 {
        alone.propose(sequence, 8).unwrap();
        assert_eq!(alone.propose(sequence, 8), Err(ProposeError::Gap { expected_sequence: sequence + 1 }));
    }
    alone.settle();
    let end = alone.core.end();
    assert_eq!(end.sequence, 3);
    let empty = Batch::empty_after(end.sequence, end.hash);
    assert_eq!(alone.core.propose(empty, 0), Err(ProposeError::Gap { expected_sequence: 4 }));
    let mut other = LoneMember::of(3);
    other.follow(2);
    let refused = Err(ProposeError::NotLeader { leader: Some(member(2)) });
    assert_eq!((other.core.can_propose(), other.propose(1, 8)), (refused, refused));
}

#[test]
fn commit_makes_room_in_flight() {
    let limits = options(1, voters(3));
    let of_entries = ConsensusOptions { in_flight_entries_max: 2, ..limits.clone() };
    let of_bytes = ConsensusOptions { in_flight_bytes_max: 2, ..limits };
    for options in [of_entries, of_bytes] {
        let mut alone = leading(options);
        for sequence in [1, 3, 5] {
            alone.propose(sequence, 1).unwrap();
            alone.propose(sequence + 1, 1).unwrap();
            assert_eq!(alone.propose(sequence + 2, 1), Err(ProposeError::Full));
            alone.settle();
            alone.acknowledge(2, alone.last());
            assert_eq!(alone.core.can_propose(), Ok(()));
        }
        alone.propose(7, 1).unwrap();
        alone.propose(8, 1).unwrap();
        alone.settle();
        alone.acknowledge(2, alone.last() - 1);
        alone.propose(9, 1).unwrap();
        assert_eq!(alone.core.can_propose(), Err(ProposeError::Full));
        alone.settle();
        alone.follow(2);
        alone.lead(&[2]);
        assert_eq!(alone.core.can_propose(), Ok(()));
    }
}

#[test]
fn one_valid_change_at_a_time() {
    let mut alone = leading(options(1, voters(3)));
    let learner = |number| MembershipChange::of(ChangeStep::Learner(member(number)));
    let refused = Err(ProposeError::Change);
    let nowhere = MemberDetails { member: member(4), addresses: vec![String::new()], joining: None };
    let wrong = [
        MembershipChange::default(),
        MembershipChange { details: vec![nowhere], ..learner(4) },
        MembershipChange {
            steps: (4..=68).map(|number| ChangeStep::Learner(member(number))).collect(),
            ..MembershipChange::default()
        },
        MembershipChange {
            steps: (1..=3).map(|number| ChangeStep::Remove(member(number))).collect(),
            ..MembershipChange::default()
        },
    ];
    for change in wrong {
        assert_eq!(alone.core.propose_members(&change), refused, "{change:?}");
    }
    assert_eq!(alone.core.propose_members(&learner(4)), Ok(()));
    assert_eq!(alone.core.propose_members(&learner(5)), refused, "another change is in progress");
    alone.settle();
    assert_eq!(alone.core.propose_members(&learner(5)), refused);
    alone.acknowledge(2, alone.last());
    assert_eq!(alone.core.members().learners, [member(4)]);
    assert_eq!(alone.core.propose_members(&learner(5)), Ok(()));
    alone.settle();
    alone.acknowledge(2, alone.last());
    assert_eq!(alone.core.members().learners, [member(4), member(5)]);
    let mut other = LoneMember::of(3);
    other.follow(2);
    let not_leader = Err(ProposeError::NotLeader { leader: Some(member(2)) });
    assert_eq!((other.core.propose_members(&learner(4)), other.core.transfer_to(member(3))), (not_leader, not_leader));
}

#[test]
fn leadership_goes_to_voters_only() {
    let members = Members { learners: vec![member(4)], ..voters(3) };
    let mut alone = leading(options(1, members));
    assert_eq!(alone.core.transfer_to(member(1)), Err(ProposeError::LeadsAlready(member(1))));
    assert_eq!(alone.core.transfer_to(member(4)), Err(ProposeError::NotVoter(member(4))));
    assert_eq!(alone.core.status().transfer_to, None);
    assert_eq!(alone.core.transfer_to(member(2)), Ok(()));
    alone.settle();
    assert_eq!(alone.take(MessageType::MsgTimeoutNow, 2).len(), 1);
    assert_eq!(alone.core.can_propose(), Err(ProposeError::HandingOver));
}

#[test]
fn witness_hands_over_when_level() {
    let members = Members { witnesses: vec![member(1)], ..voters(3) };
    let mut alone = LoneMember::new(options(1, members), RecoveredState::empty());
    alone.lead(&[2]);
    alone.ticks(1);
    assert_eq!(alone.core.status().transfer_to, None, "no member has its first entry");
    alone.acknowledge(2, alone.last());
    assert_eq!(alone.next_tick(), 1);
    alone.propose(1, 8).unwrap();
    alone.settle();
    alone.ticks(1);
    assert_eq!(alone.core.status().transfer_to, None, "an entry is in flight");
    alone.acknowledge(2, alone.last());
    alone.ticks(1);
    assert_eq!(alone.core.status().transfer_to, Some(member(2)));
    assert_eq!(alone.take(MessageType::MsgTimeoutNow, 2).len(), 1);
}

#[test]
fn answering_member_stays_active() {
    let mut alone = leading(options(1, voters(3)));
    let answer_of = |alone: &mut LoneMember, number| {
        if !alone.take(MessageType::MsgHeartbeat, number).is_empty() {
            alone.tell(alone.message(MessageType::MsgHeartbeatResponse, number)).unwrap();
        }
    };
    let is_active =
        |alone: &LoneMember| alone.core.status().peers.iter().map(|peer| peer.is_active).collect::<Vec<_>>();
    // Five checks of the quorum, each of which forgets who has answered.
    for _ in 0..100 {
        alone.ticks(1);
        assert!(is_active(&alone)[0], "before its next answer");
        answer_of(&mut alone, 2);
    }
    assert_eq!(is_active(&alone), [true, false]);
    for _ in 0..50 {
        alone.ticks(1);
        answer_of(&mut alone, 3);
    }
    assert_eq!(is_active(&alone), [false, true]);
}

#[test]
fn reconnected_member_is_probed() {
    let mut alone = leading(options(1, voters(3)));
    alone.propose(1, 8).unwrap();
    alone.settle();
    alone.acknowledge(2, alone.last());
    let matched = |alone: &LoneMember| alone.core.status().peers[0].matched_index;
    assert_eq!(matched(&alone), alone.last());
    alone.core.peer_connected(member(2));
    assert_eq!(matched(&alone), 0);
    let before = alone.last();
    alone.settle();
    alone.sent.clear();
    alone.propose(2, 8).unwrap();
    alone.settle();
    let appends = alone.take(MessageType::MsgAppend, 2);
    assert_eq!(appends.iter().map(|message| message.index).collect::<Vec<_>>(), [before], "backwards from the end");
    alone.acknowledge(2, alone.last());
    assert_eq!(matched(&alone), alone.last());
    alone.propose(3, 8).unwrap();
    alone.settle();
    alone.core.peer_connected(member(1));
    alone.acknowledge(2, alone.last());
    assert_eq!(alone.committed(), alone.last());
}

#[test]
fn lost_entries_are_resent() {
    let mut alone = leading(options(1, voters(3)));
    alone.propose(1, 8).unwrap();
    alone.settle();
    assert_eq!(alone.take(MessageType::MsgAppend, 2).len(), 1);
    alone.core.unreachable(member(2));
    alone.tell(alone.message(MessageType::MsgHeartbeatResponse, 2)).unwrap();
    let appends = alone.take(MessageType::MsgAppend, 2);
    assert!(appends.iter().any(|message| message.get_entries().len() == 1), "{appends:?}");
}

#[test]
fn unanswered_offer_is_repeated() {
    let mut alone = leading(options(1, voters(3)));
    for sequence in 1..=4 {
        alone.propose(sequence, 8).unwrap();
        alone.settle();
        alone.acknowledge(2, alone.last());
    }
    alone.core.forget_before(5);
    alone.ticks(5);
    assert!((1..=4).contains(&alone.next_tick()));
    alone.tell(alone.message(MessageType::MsgHeartbeatResponse, 3)).unwrap();
    alone.tell(Message { reject: true, index: 2, ..alone.message(MessageType::MsgAppendResponse, 3) }).unwrap();
    assert_eq!(alone.take(MessageType::MsgSnapshot, 3).len(), 1);
    let mut times = Vec::new();
    for at in 1..=260 {
        alone.ticks(1);
        for peer in [2, 3] {
            alone.tell(alone.message(MessageType::MsgHeartbeatResponse, peer)).unwrap();
        }
        times.extend(alone.take(MessageType::MsgSnapshot, 3).iter().map(|_| at));
        assert!(alone.core.is_leader() && alone.next_tick() == 1);
    }
    assert_eq!(times, [80, 160, 240], "after four of the shortest time-outs");
    alone.acknowledge(3, alone.last());
    alone.ticks(3);
    assert!(alone.take(MessageType::MsgSnapshot, 3).is_empty());
    let until_heartbeats = alone.next_tick();
    alone.ticks(until_heartbeats);
    assert_eq!(alone.next_tick(), 4);
}
