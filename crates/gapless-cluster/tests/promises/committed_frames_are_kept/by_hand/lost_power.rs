//! Votes, questions and the end of a rejoining member, which may lack acknowledged entries.

use super::*;
use gapless_cluster::consensus::RejoinState;

const START: u64 = 7;
const END: &[u8] = b"End";
const CONDITIONAL: &[u8] = b"Conditional";

/// Member 1 of `count`; its journal has nothing but term 4.
fn rejoining(count: u64) -> LoneMember {
    let mut begun = LoneMember::of(count);
    begun.tell(Message { term: 4, ..begun.message(MessageType::MsgHeartbeat, 2) }).unwrap();
    let record = begun.core.checkpoint();
    let recovered = RecoveredState::from_records([(0, true, &record[..])], 0).unwrap();
    let alone = LoneMember::new(options(1, voters(count)), recovered.rejoining(RejoinState { term: 4, start: START }));
    assert!(alone.core.is_rejoining() && alone.core.term() == 4);
    alone
}

fn about_end(alone: &LoneMember, kind: MessageType, from: u64, asked: &[u8]) -> Message {
    let mut message = alone.message(kind, from);
    message.context = END.to_vec().into();
    message.mut_entries().push(Entry { data: asked.to_vec().into(), ..Entry::default() });
    message
}

fn asked_at(start: u64) -> Vec<u8> {
    [1_u64.to_le_bytes(), start.to_le_bytes()].concat()
}

#[test]
fn own_campaign_needs_all_votes() {
    let mut alone = rejoining(5);
    alone.ticks_until(LoneMember::campaigns);
    let (pre, vote) = (MessageType::MsgRequestPreVoteResponse, MessageType::MsgRequestVoteResponse);
    let term = alone.core.term();
    for voter in [2, 3, 4] {
        alone.grant(pre, voter);
        alone.grant(pre, voter);
    }
    alone.tell(Message { term: term + 1, ..alone.message(vote, 5) }).unwrap();
    alone.tell(Message { term: term + 2, ..alone.message(pre, 5) }).unwrap();
    alone.tell(Message { reject: true, ..alone.message(pre, 5) }).unwrap();
    assert!(alone.campaigns() && alone.core.term() == term, "{:?}", alone.core.status());
    alone.grant(pre, 5);
    assert!(alone.campaigns() && alone.core.term() == term + 1);
    for voter in [2, 3, 4] {
        alone.grant(vote, voter);
    }
    alone.tell(alone.message(pre, 5)).unwrap();
    alone.tell(Message { term, ..alone.message(vote, 5) }).unwrap();
    alone.tell(Message { reject: true, ..alone.message(vote, 5) }).unwrap();
    assert!(!alone.core.is_leader());
    alone.grant(vote, 5);
    assert!(alone.core.is_leader());
}

#[test]
fn former_votes_do_not_count() {
    let mut alone = rejoining(3);
    let pre = MessageType::MsgRequestPreVoteResponse;
    alone.ticks_until(LoneMember::campaigns);
    alone.grant(pre, 2);
    alone.follow(2);
    alone.ticks_until(LoneMember::campaigns);
    alone.grant(pre, 3);
    assert!(alone.campaigns() && alone.core.term() == 5, "member 2 has voted in term 4");
    alone.grant(pre, 2);
    assert_eq!(alone.core.term(), 6);
}

#[test]
fn conditional_vote_waits() {
    let mut alone = LoneMember::of(5);
    alone.ticks_until(LoneMember::campaigns);
    let (pre, vote) = (MessageType::MsgRequestPreVoteResponse, MessageType::MsgRequestVoteResponse);
    alone.grant(pre, 2);
    alone.grant(pre, 3);
    assert_eq!(alone.core.term(), 2);
    let conditional =
        |alone: &LoneMember, voter| Message { context: CONDITIONAL.to_vec().into(), ..alone.message(vote, voter) };
    alone.tell(conditional(&alone, 4)).unwrap();
    alone.tell(conditional(&alone, 5)).unwrap();
    assert!(!alone.core.is_leader());
    alone.grant(vote, 2);
    assert!(!alone.core.is_leader());
    alone.grant(vote, 3);
    assert!(alone.core.is_leader());
}

#[test]
fn only_votes_are_marked() {
    let mut alone = rejoining(3);
    let ask = |alone: &LoneMember, index| Message {
        term: 9,
        index,
        log_term: 1,
        ..alone.message(MessageType::MsgRequestVote, 3)
    };
    alone.tell(ask(&alone, 1)).unwrap();
    let given = alone.take(MessageType::MsgRequestVoteResponse, 3);
    assert_eq!(given.iter().map(|vote| (vote.reject, vote.get_context())).collect::<Vec<_>>(), [(false, CONDITIONAL)]);
    alone.tell(Message { from: 2, term: 10, index: 0, log_term: 0, ..ask(&alone, 1) }).unwrap();
    let refused = alone.take(MessageType::MsgRequestVoteResponse, 2);
    assert_eq!(refused.iter().map(|vote| (vote.reject, vote.get_context())).collect::<Vec<_>>(), [(true, &b""[..])]);
    alone.follow(2);
    let answers = alone.take(MessageType::MsgHeartbeatResponse, 2);
    assert_eq!(answers.iter().map(Message::get_context).collect::<Vec<_>>(), [&b""[..]]);
}

#[test]
fn leader_is_asked_for_its_end() {
    let mut alone = rejoining(3);
    alone.ticks(3);
    alone.follow(2);
    let term = alone.core.term();
    let mut questions = Vec::new();
    for at in 1..=64 {
        alone.ticks(1);
        let asked = alone.take(MessageType::MsgReadIndex, 2);
        questions.extend(asked.iter().map(|_| at));
        for question in asked {
            assert_eq!((question.from, question.index, question.get_context()), (1, 1, END));
            assert_eq!(question.get_entries()[0].get_data(), asked_at(START));
        }
        assert_eq!(alone.next_tick(), 1);
        if at % 4 == 0 {
            alone.heartbeat(2);
        }
    }
    assert_eq!(questions, [1, 22, 43, 64], "each 20 ticks, and the one that asks");
    alone.ticks(3);
    alone.core.peer_disconnected(member(2));
    alone.ticks(1);
    alone.follow(3);
    alone.ticks(1);
    assert_eq!(alone.take(MessageType::MsgReadIndex, 3).len(), 1);
    assert!(alone.core.term() > term);
}

#[test]
fn caught_up_at_the_named_end() {
    let mut alone = rejoining(3);
    alone.tell(alone.message(MessageType::MsgHeartbeat, 2)).unwrap();
    alone.tell(Message { commit: 50, ..alone.message(MessageType::MsgHeartbeat, 2) }).unwrap();
    assert_eq!(alone.tell(alone.message(MessageType::MsgTimeoutNow, 2)), Err(StepError::Type));
    let answer = |alone: &LoneMember, index, start| Message {
        index,
        ..about_end(alone, MessageType::MsgReadIndexResp, 2, &asked_at(start))
    };
    let mut wrong = answer(&alone, 1, START);
    wrong.term = 3;
    assert_eq!(alone.tell(wrong), Err(StepError::Type));
    let mut wrong = answer(&alone, 1, START);
    wrong.mut_entries().push(Entry::default());
    assert_eq!(alone.tell(wrong), Err(StepError::Type));
    let wrong = Message { context: Vec::new().into(), ..answer(&alone, 1, START) };
    assert_eq!(alone.tell(wrong), Err(StepError::Type));
    alone.tell(answer(&alone, 1, START - 1)).unwrap();
    assert!(alone.core.is_rejoining());
    alone.tell(answer(&alone, 3, START)).unwrap();
    let add = |alone: &mut LoneMember| {
        let (message, _) = append(alone, 2, alone.core.end(), &[4]);
        alone.tell(message).unwrap();
    };
    add(&mut alone);
    assert!(alone.core.is_rejoining());
    alone.tell(answer(&alone, 9, START)).unwrap();
    add(&mut alone);
    assert!(!alone.core.is_rejoining() && alone.next_tick() > 1);
    assert!(matches!(
        alone.tell(Message { commit: 50, ..alone.message(MessageType::MsgHeartbeat, 2) }),
        Err(StepError::Contradiction(_))
    ));
    assert_eq!(alone.tell(alone.message(MessageType::MsgTimeoutNow, 2)), Ok(()));
}

#[test]
fn caught_up_with_a_later_term() {
    let mut alone = rejoining(3);
    alone.follow(2);
    let (message, _) = append(&alone, 2, alone.core.end(), &[4]);
    alone.tell(message).unwrap();
    assert!(alone.core.is_rejoining(), "an entry of the same term");
    let (message, _) = append(&alone, 2, alone.core.end(), &[5]);
    alone.core.step(member(2), message).unwrap();
    alone.poll();
    assert!(alone.core.is_rejoining(), "the entry is not persisted");
    alone.core.persisted(alone.effects.number);
    assert!(!alone.core.is_rejoining());
}

#[test]
fn leader_resets_progress() {
    let mut alone = LoneMember::of(3);
    let question = |alone: &LoneMember, index| Message {
        index,
        ..about_end(alone, MessageType::MsgReadIndex, 2, b"sixteen bytes...")
    };
    alone.follow(3);
    assert_eq!(alone.tell(question(&alone, 1)), Err(StepError::Type), "the member does not lead");
    alone.lead(&[2]);
    alone.acknowledge(2, alone.last());
    let read = Message { context: Vec::new().into(), ..question(&alone, 1) };
    assert_eq!(alone.tell(read), Err(StepError::Type), "reads are not offered");
    let matched = |alone: &LoneMember| alone.core.status().peers[0].matched_index;
    let last = alone.last();
    for (index, kept) in [(last + 1, last), (last, last), (last - 1, 0)] {
        alone.sent.clear();
        alone.tell(question(&alone, index)).unwrap();
        let answers = alone.take(MessageType::MsgReadIndexResp, 2);
        let [answer] = &answers[..] else { panic!("{answers:?}") };
        assert_eq!((answer.index, answer.term, answer.from), (last, alone.core.term(), 1));
        assert_eq!((answer.get_context(), answer.get_entries()[0].get_data()), (END, &b"sixteen bytes..."[..]));
        assert_eq!(matched(&alone), kept, "asked by one that has {index}");
    }
}
