use super::*;
use gapless_cluster::consensus::record::RecordContent;
use gapless_cluster::consensus::{ChangeStep, LogHistory, MembershipChange};
use std::collections::BTreeSet;

/// Follower of member 2 in this term, and its timeout in ms.
fn time_out(options: &ConsensusOptions, term: u64) -> (LoneMember, u64) {
    let mut alone = LoneMember::new(options.clone(), RecoveredState::empty());
    alone.tell(Message { term, ..alone.message(MessageType::MsgHeartbeat, 2) }).unwrap();
    let time_out = alone.next_tick() + 1;
    (alone, time_out)
}

#[test]
fn timeout_is_deterministic() {
    let options = options(1, voters(3));
    let mut all = BTreeSet::new();
    for term in 2..200 {
        let (mut alone, expected) = time_out(&options, term);
        assert_eq!(alone.ticks_until(LoneMember::campaigns), expected, "in term {term}");
        assert_eq!(time_out(&options, term).1, expected);
        all.insert(expected);
    }
    assert_eq!(all, (20..=40).collect());
    let witness = ConsensusOptions { is_witness: true, ..options.clone() };
    let waits: BTreeSet<_> = (2..200).map(|term| time_out(&witness, term).1).collect();
    assert_eq!(waits, (41..=61).collect());
    let of_another = ConsensusOptions { seed: 6, ..options.clone() };
    assert!((2..60).any(|term| time_out(&of_another, term).1 != time_out(&options, term).1));
}

#[test]
fn tick_precedes_the_timeout() {
    let (mut alone, time_out) = time_out(&options(1, voters(3)), 2);
    let at = |ticks: u64| ticks * MS;
    assert_eq!(alone.core.next_tick_ns(), at(time_out - 1));
    alone.core.tick(at(time_out - 1));
    assert_eq!((alone.core.next_tick_ns(), alone.campaigns()), (at(time_out), false));
    alone.core.tick(at(time_out));
    assert!(alone.campaigns());
    let mut alone = following_two();
    alone.core.tick(MS + MS / 2);
    assert_eq!(alone.core.next_tick_ns(), at(time_out - 1));
    alone.core.tick(2 * MS);
    assert_eq!(alone.core.next_tick_ns(), at(time_out - 1));
    alone.core.tick(2 * MS + MS / 2);
    alone.core.tick(at(time_out - 1));
    alone.core.tick(at(time_out));
    assert!(alone.campaigns());
}

fn following_two() -> LoneMember {
    time_out(&options(1, voters(3)), 2).0
}

#[test]
fn pause_counts_one_heartbeat() {
    let (_, time_out) = time_out(&options(1, voters(3)), 2);
    let quiet = time_out - 1;
    // Slept as planned, or up to a heartbeat interval longer: received messages are read before.
    for ticks in [quiet, quiet + 1, quiet + 3] {
        let mut alone = following_two();
        alone.core.tick(ticks * MS);
        assert_eq!((alone.core.next_tick_ns(), alone.campaigns()), (time_out * MS, false), "{ticks}");
    }
    for ticks in [quiet + 4, quiet + 5, 10_000] {
        let mut alone = following_two();
        alone.core.tick(ticks * MS);
        assert_eq!(alone.core.next_tick_ns(), (ticks + quiet - 4) * MS, "{ticks}");
    }
    // With less than a heartbeat interval to go, a short delay is no sleep.
    for (late, campaigns) in [(1, false), (2, false), (3, true), (4, true), (5, false), (6, true)] {
        let mut alone = following_two();
        let from = time_out - 3;
        alone.core.tick(from * MS);
        alone.core.tick((from + late) * MS);
        assert_eq!(alone.campaigns(), campaigns, "{late} ms after its call");
    }
}

#[test]
fn leaderless_member_ticks() {
    let mut alone = LoneMember::of(3);
    assert_eq!(alone.next_tick(), 1);
    alone.follow(2);
    assert!(alone.next_tick() > 1);
    alone.core.peer_disconnected(member(2));
    assert_eq!(alone.next_tick(), 1);
    alone.heartbeat(2);
    assert_eq!(alone.next_tick(), 1);
    alone.ticks(1);
    assert!(alone.next_tick() > 1);
    alone.ticks_until(LoneMember::campaigns);
    assert_eq!(alone.next_tick(), 1);
}

#[test]
fn leader_ticks_for_its_heartbeats() {
    let mut alone = LoneMember::of(3);
    alone.lead(&[2]);
    alone.acknowledge(2, alone.last());
    for _ in 0..4 {
        let next = alone.next_tick();
        assert!((1..=4).contains(&next));
        alone.ticks(next - 1);
        assert!(alone.take(MessageType::MsgHeartbeat, 2).is_empty());
        alone.ticks(1);
        assert_eq!((alone.take(MessageType::MsgHeartbeat, 2).len(), alone.next_tick()), (1, 4));
        alone.tell(alone.message(MessageType::MsgHeartbeatResponse, 2)).unwrap();
    }
}

/// Milliseconds from a broken connection to the campaign.
fn hurries(options: &ConsensusOptions, term: u64) -> u64 {
    let mut alone = time_out(options, term).0;
    alone.core.peer_disconnected(member(3));
    assert_eq!(alone.core.leader(), Some(member(2)), "a member other than the leader is gone");
    alone.core.peer_disconnected(member(2));
    assert_eq!(alone.core.leader(), None);
    alone.settle();
    alone.ticks_until(LoneMember::campaigns)
}

#[test]
fn dead_leader_is_succeeded_soon() {
    let options = options(1, voters(3));
    let all: BTreeSet<_> = (2..60).map(|term| hurries(&options, term)).collect();
    assert_eq!(all, (1..=5).collect());
    let witness = ConsensusOptions { is_witness: true, ..options };
    let all: BTreeSet<_> = (2..60).map(|term| hurries(&witness, term)).collect();
    assert_eq!(all, (9..=13).collect());
}

#[test]
fn long_heartbeats_delay_nothing() {
    let options = ConsensusOptions {
        heartbeat_interval_ns: 75 * MS,
        election_timeout_min_ns: 300 * MS,
        election_timeout_max_ns: 600 * MS,
        ..options(1, voters(3))
    };
    let tick_ns = 75 * MS / 10;
    let all: BTreeSet<_> = (2..60)
        .map(|term| {
            let mut alone = time_out(&options, term).0;
            alone.core.peer_disconnected(member(2));
            alone.settle();
            let campaigns_at = (1..=100).find(|tick| {
                alone.core.tick(tick * tick_ns);
                alone.poll();
                alone.campaigns()
            });
            campaigns_at.unwrap()
        })
        .collect();
    // Ticks of 7.5 ms each: at most 30 ms, and the tick that sees it.
    assert_eq!(all, (1..=5).collect());
    let mut alone = LoneMember::new(options, RecoveredState::empty());
    alone.lead(&[2]);
    alone.acknowledge(2, alone.last());
    let sent: Vec<_> = (0..300u64)
        .filter(|_| {
            alone.ticks(1);
            let is_sent = !alone.take(MessageType::MsgHeartbeat, 2).is_empty();
            alone.tell(alone.message(MessageType::MsgHeartbeatResponse, 2)).unwrap();
            is_sent
        })
        .collect();
    assert_eq!(sent.len(), 4, "in 300 ms: {sent:?}");
}

#[test]
fn hurried_campaigns_are_limited() {
    let mut alone = following_two();
    alone.core.peer_disconnected(member(2));
    alone.settle();
    alone.sent.clear();
    let mut times = Vec::new();
    for at in 1..=140 {
        alone.ticks(1);
        times.extend(alone.take(MessageType::MsgRequestPreVote, 3).iter().map(|_| at));
    }
    let first = times[0];
    let hurried: Vec<_> = (0..8).map(|attempt| first + 5 * attempt).collect();
    assert!(hurried.iter().all(|at| times.contains(at)), "{times:?}");
    let last = *hurried.last().unwrap();
    let later: Vec<_> = times.iter().filter(|at| **at > last).collect();
    assert!((2..=5).contains(&later.len()), "{times:?}");
}

#[test]
fn live_leader_is_not_deposed() {
    let mut alone = following_two();
    alone.core.peer_disconnected(member(2));
    alone.heartbeat(2);
    for _ in 0..10 {
        alone.ticks(4);
        alone.heartbeat(2);
    }
    assert_eq!((alone.core.leader(), alone.core.term()), (Some(member(2)), 2));
    assert!(alone.take(MessageType::MsgRequestPreVote, 3).is_empty());
}

#[test]
fn learner_does_not_campaign() {
    let members = Members { voters: vec![member(2), member(3)], learners: vec![member(1)], ..Members::default() };
    let mut alone = LoneMember::new(options(1, members), RecoveredState::empty());
    alone.follow(2);
    alone.core.peer_disconnected(member(2));
    for _ in 0..200 {
        alone.ticks(1);
        assert!(!alone.campaigns());
    }
}

#[test]
fn follower_campaigns_while_writing() {
    let mut alone = following_two();
    let (message, _) = append(&alone, 2, alone.core.end(), &[2]);
    alone.core.step(member(2), message).unwrap();
    alone.poll();
    for _ in 0..50 {
        alone.now_ns += MS;
        alone.core.tick(alone.now_ns);
        alone.poll();
    }
    assert!(alone.campaigns());
}

#[test]
fn sole_voter_leads_when_synced() {
    let mut alone = LoneMember::new(options(1, voters(2)), RecoveredState::empty());
    alone.follow(2);
    let mut other = LoneMember::new(options(2, voters(2)), RecoveredState::empty());
    other.lead(&[1]);
    other.acknowledge(1, other.last());
    other.core.propose_members(&MembershipChange::of(ChangeStep::Remove(member(2)))).unwrap();
    other.settle();
    let mut change =
        other.take(MessageType::MsgAppend, 1).into_iter().flat_map(|message| message.entries).last().unwrap();
    let (mut message, _) = append(&alone, 2, alone.core.end(), &[]);
    (change.index, change.term) = (alone.last() + 1, 2);
    message.mut_entries().push(change);
    alone.tell(message).unwrap();
    alone.tell(Message { commit: alone.last(), ..alone.message(MessageType::MsgHeartbeat, 2) }).unwrap();
    assert_eq!(alone.core.members().voters, [member(1)]);
    let (message, _) = append(&alone, 2, alone.core.end(), &[2]);
    alone.core.step(member(2), message).unwrap();
    alone.poll();
    let number = alone.effects.number;
    let pass = |alone: &mut LoneMember| {
        for _ in 0..100 {
            alone.now_ns += MS;
            alone.core.tick(alone.now_ns);
            alone.poll();
        }
    };
    assert_eq!(alone.next_tick(), 1);
    pass(&mut alone);
    assert_eq!((alone.core.term(), alone.core.is_leader()), (2, false), "the log is not persisted");
    alone.core.persisted(number);
    pass(&mut alone);
    assert_eq!((alone.core.term(), alone.core.is_leader()), (3, false), "the vote is not persisted");
    alone.core.persisted(alone.effects.number);
    assert!(alone.core.is_leader());
    alone.settle();
    alone.propose(alone.core.end().sequence + 1, 8).unwrap();
    alone.poll();
    pass(&mut alone);
    assert!(alone.core.is_leader() && alone.core.term() == 3);
}

#[test]
fn acknowledgements_are_recorded() {
    let mut alone = following_two();
    let acknowledged = |index| LogHistory {
        is_leader: true,
        term: 2,
        acknowledged: vec![(member(3), index)],
        ..LogHistory::default()
    };
    let is_recorded = |alone: &mut LoneMember| {
        alone.now_ns += MS;
        alone.core.tick(alone.now_ns);
        alone.poll();
        alone.core.persisted(alone.effects.number);
        let is_it = |payload: &[u8]| matches!(RecordContent::from_bytes(payload), Ok(RecordContent::Acknowledged(_)));
        alone.effects.records.iter().any(|record| is_it(&record.payload))
    };
    for round in 0..3 {
        alone.core.remember(&acknowledged(1 + round));
        let recorded: Vec<_> = (0..4).map(|_| is_recorded(&mut alone)).collect();
        assert_eq!(recorded, [false, false, false, true], "interval {round}");
        alone.heartbeat(2);
    }
}
