//! No loss: a message takes a millisecond, a write no time.

use super::checker::Checker;
use super::node::{MS, Node, Packet};
use gapless_cluster::consensus::{
    AppendError, Batch, Chain, ChangeStep, Consensus, LogDivergence, LogHistory, LogPosition, MemberId, Members,
    MembershipChange, Message, ProposeError, StepError,
};
use gapless_testkit::random::Random;
use gapless_wire::{FrameHeader, FrameWriter};

struct FaultlessCluster {
    nodes: Vec<Node>,
    checker: Checker,
    random: Random,
    now_ns: u64,
    in_flight: Vec<Packet>,
}

fn member(number: u64) -> MemberId {
    MemberId::new(number).unwrap()
}

impl FaultlessCluster {
    fn new(count: u64, witness: Option<u64>) -> Self {
        let mut members = Members::of_voters(&(1..=count).map(member).collect::<Vec<_>>());
        members.witnesses = witness.map(member).into_iter().collect();
        let mut checker = Checker::default();
        let node = |number| {
            let known = if number <= count { members.clone() } else { Members::default() };
            let mut node = Node::new(number, known, 5, 64);
            node.crash_in_cut = 0;
            node.start(&mut checker);
            node
        };
        let nodes = (1..=count + 1).map(node).collect();
        Self { nodes, checker, random: Random::new(1), now_ns: 0, in_flight: Vec::new() }
    }

    fn step(&mut self) {
        self.now_ns += MS;
        for packet in std::mem::take(&mut self.in_flight) {
            let node = &mut self.nodes[packet.to as usize - 1];
            node.receive(&packet, self.now_ns, &mut self.random, &mut self.checker, &mut self.in_flight);
        }
        for node in &mut self.nodes {
            node.turn(self.now_ns, &mut self.random, &mut self.checker, &mut self.in_flight);
        }
    }

    fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) -> u64 {
        let begun_ns = self.now_ns;
        while !is_so(self) {
            assert!(self.now_ns < begun_ns + 1_000 * MS, "{what} does not occur");
            self.step();
        }
        (self.now_ns - begun_ns) / MS
    }

    fn leader(&self) -> Option<usize> {
        self.nodes.iter().position(Node::leads)
    }

    fn elected(&mut self) -> usize {
        self.until("a leader", |cluster| cluster.leader().is_some());
        self.leader().unwrap()
    }
}

#[test]
fn one_and_two_members_release() {
    for count in [1, 2] {
        let mut cluster = FaultlessCluster::new(count, None);
        let leader = cluster.elected();
        assert!(cluster.nodes[leader].propose(3, &mut cluster.random));
        cluster.until("the release", |cluster| (1..=count).all(|number| cluster.checker.released_by(number) == 3));
    }
}

#[test]
fn dead_leader_is_replaced_early() {
    let mut cluster = FaultlessCluster::new(3, None);
    let leader = cluster.elected();
    (0..20).for_each(|_| cluster.step());
    let gone = cluster.nodes[leader].id;
    cluster.nodes[leader].crash(&mut cluster.random);
    for node in &mut cluster.nodes {
        if let Some(core) = &mut node.core {
            core.peer_disconnected(gone);
        }
    }
    // A round trip for each vote, and at most one heartbeat interval before.
    let took_ms = cluster.until("a successor", |cluster| cluster.leader().is_some());
    assert!(took_ms < 15, "a successor after {took_ms} ms; the shortest time-out is 20 ms");
}

#[test]
fn idle_members_are_seldom_called() {
    let mut cluster = FaultlessCluster::new(3, None);
    let leader = cluster.elected();
    (0..20).for_each(|_| cluster.step());
    let mut turns = [0_u32; 4];
    let mut step_by_need = |cluster: &mut FaultlessCluster| {
        cluster.now_ns += MS;
        let mut is_called = [false; 4];
        for packet in std::mem::take(&mut cluster.in_flight) {
            let (at, now_ns) = (packet.to as usize - 1, cluster.now_ns);
            if let Some(core) = cluster.nodes[at].core.as_mut().filter(|_| !is_called[at]) {
                core.tick(now_ns);
            }
            is_called[at] = true;
            cluster.nodes[at].receive(
                &packet,
                now_ns,
                &mut cluster.random,
                &mut cluster.checker,
                &mut cluster.in_flight,
            );
        }
        for at in 0..cluster.nodes.len() {
            let next_ns = cluster.nodes[at].core.as_ref().map_or(u64::MAX, Consensus::next_tick_ns);
            if is_called[at] || next_ns <= cluster.now_ns {
                turns[at] += u32::from(!is_called[at]);
                let now_ns = cluster.now_ns;
                cluster.nodes[at].turn(now_ns, &mut cluster.random, &mut cluster.checker, &mut cluster.in_flight);
            }
        }
    };
    (0..1_000).for_each(|_| step_by_need(&mut cluster));
    assert_eq!(cluster.leader(), Some(leader), "no member campaigns");
    cluster.nodes[leader].crash(&mut cluster.random);
    // The longest timeout, a round trip for each vote, and a tick.
    let mut took_ms = 0;
    while cluster.leader().is_none() {
        took_ms += 1;
        assert!(took_ms < 50, "no successor");
        step_by_need(&mut cluster);
    }
    assert!(
        took_ms >= 16,
        "a successor after {took_ms} ms; the shortest time-out is 20 ms, from the last heartbeat on"
    );
    for (at, turns) in turns.iter().enumerate().take(3) {
        // A heartbeat every 4 ms; a follower has the turns of its timeout alone.
        let turns_max = if at == leader { 260 } else { 40 };
        assert!(*turns <= turns_max, "member {} was called {turns} times in a second without a message", at + 1);
    }
}

#[test]
fn woken_member_reads_first() {
    for sleeps_ms in 1..200 {
        let mut cluster = FaultlessCluster::new(3, None);
        let leader = cluster.elected();
        (0..20).for_each(|_| cluster.step());
        let term = cluster.nodes[leader].core.as_ref().unwrap().term();
        let sleeper = (leader + 1) % 3;
        let mut unread = Vec::new();
        for _ in 0..sleeps_ms {
            cluster.now_ns += MS;
            let (for_sleeper, others) =
                std::mem::take(&mut cluster.in_flight).into_iter().partition(|packet| packet.to == sleeper as u64 + 1);
            unread.extend::<Vec<_>>(for_sleeper);
            for packet in others {
                let node = &mut cluster.nodes[packet.to as usize - 1];
                node.receive(
                    &packet,
                    cluster.now_ns,
                    &mut cluster.random,
                    &mut cluster.checker,
                    &mut cluster.in_flight,
                );
            }
            for at in (0..3).filter(|at| *at != sleeper) {
                cluster.nodes[at].turn(
                    cluster.now_ns,
                    &mut cluster.random,
                    &mut cluster.checker,
                    &mut cluster.in_flight,
                );
            }
        }
        // The time is set before received messages are read.
        let core = cluster.nodes[sleeper].core.as_mut().unwrap();
        core.tick(cluster.now_ns);
        for packet in unread {
            let node = &mut cluster.nodes[sleeper];
            node.receive(&packet, cluster.now_ns, &mut cluster.random, &mut cluster.checker, &mut cluster.in_flight);
        }
        (0..200).for_each(|_| cluster.step());
        let core = cluster.nodes[sleeper].core.as_ref().unwrap();
        assert_eq!((core.leader(), core.term()), (Some(member(leader as u64 + 1)), term), "after {sleeps_ms} ms");
    }
}

#[test]
fn witness_hands_over() {
    let mut cluster = FaultlessCluster::new(3, Some(3));
    let first = cluster.elected();
    cluster.nodes[first].core.as_mut().unwrap().transfer_to(member(3)).unwrap();
    cluster.until("another leader", |cluster| cluster.leader().is_some_and(|at| at != first));
    cluster.until("a leader with a service", |cluster| cluster.leader().is_some_and(|at| at != 2));
    let terms = cluster.nodes[cluster.leader().unwrap()].core.as_ref().unwrap().term();
    assert!(terms >= 4, "the witness led in between: {terms}");
}

#[test]
fn member_joins_by_log_position() {
    let mut cluster = FaultlessCluster::new(3, None);
    let leader = cluster.elected();
    for _ in 0..100 {
        cluster.nodes[leader].propose(1, &mut cluster.random);
        cluster.step();
    }
    let core = cluster.nodes[leader].core.as_mut().unwrap();
    core.propose_members(&MembershipChange::of(ChangeStep::Voter(member(4)))).unwrap();
    assert_eq!(core.propose_members(&MembershipChange::default()), Err(ProposeError::Change), "one change at a time");
    cluster.until("the offer", |cluster| cluster.nodes[3].fetch.is_some());
    let position = cluster.nodes[3].fetch.as_ref().unwrap().1.position;
    let frames: Vec<_> =
        (1..=position.sequence).map(|at| cluster.nodes[leader].disk.frame(at).unwrap().clone()).collect();
    cluster.nodes[3].fetched(
        &frames,
        cluster.now_ns,
        &mut cluster.random,
        &mut cluster.checker,
        &mut cluster.in_flight,
    );
    cluster.until("the newcomer's release", |cluster| cluster.checker.released_by(4) >= position.sequence);
    let other = (0..3).find(|at| *at != leader).unwrap() as u64 + 1;
    let core = cluster.nodes[leader].core.as_mut().unwrap();
    core.propose_members(&MembershipChange::of(ChangeStep::Remove(member(other)))).unwrap();
    cluster.until("the change", |cluster| {
        cluster.nodes[3].core.as_ref().is_some_and(|core| !core.members().contains(member(other)))
    });
}

#[test]
fn slow_writers_keep_their_leader() {
    let mut cluster = FaultlessCluster::new(3, None);
    let leader = cluster.elected();
    (0..20).for_each(|_| cluster.step());
    let term = cluster.nodes[leader].core.as_ref().unwrap().term();
    // A write takes up to ten times the shortest timeout, and waits for the previous one.
    for at in (0..3).filter(|at| *at != leader) {
        cluster.nodes[at].write_ns_max = 200 * MS;
    }
    for turn in 0..500 {
        if turn % 50 == 0 {
            cluster.nodes[leader].propose(1, &mut cluster.random);
        }
        cluster.step();
        let core = cluster.nodes[leader].core.as_ref().unwrap();
        assert!(core.is_leader() && core.term() == term, "deposed after {turn} ms");
    }
    for node in &mut cluster.nodes {
        node.write_ns_max = 0;
    }
    let end = cluster.nodes[leader].disk.last_sequence();
    cluster.until("the release", |cluster| (1..=3).all(|number| cluster.checker.released_by(number) == end));
}

#[test]
fn impossible_messages_are_refused() {
    let mut cluster = FaultlessCluster::new(3, None);
    let leader = cluster.elected();
    (0..20).for_each(|_| cluster.step());
    let at = (leader + 1) % 3;
    let (id, from) = (cluster.nodes[at].id, cluster.nodes[leader].id);
    let core = cluster.nodes[at].core.as_mut().unwrap();
    let mut message = Message::default();
    message.set_msg_type(raft::eraftpb::MessageType::MsgHeartbeat);
    (message.to, message.from, message.term) = (id.get(), from.get(), core.term());
    let before = core.status().refused_messages;
    let to_another = Message { to: 9, ..message.clone() };
    assert_eq!(core.step(from, to_another), Err(StepError::Receiver(9)));
    assert_eq!(core.step(member(4), message.clone()), Err(StepError::Sender { claimed: from.get(), found: member(4) }));
    let ahead = Message { commit: 1_000_000, ..message.clone() };
    assert!(matches!(core.step(from, ahead), Err(StepError::Contradiction(_))));
    let mut answer = Message { from: 7, ..message.clone() };
    answer.set_msg_type(raft::eraftpb::MessageType::MsgRequestVoteResponse);
    assert_eq!(core.step(member(7), answer), Err(StepError::NotMember(member(7))));
    assert_eq!(core.status().refused_messages, before + 4);
    assert_eq!(core.step(from, message), Ok(()));
}

/// One entry of the newest term with one frame, after `core`'s end or an earlier `base`.
fn append_of(
    core: &Consensus,
    from: MemberId,
    to: MemberId,
    base: LogPosition,
    payload: &[u8; 3],
) -> (Message, Vec<u8>) {
    let term = core.term();
    let mut frames = vec![0; 72];
    let mut writer = FrameWriter::new(&mut frames);
    writer.payload_mut()[..3].copy_from_slice(payload);
    writer.finish(&FrameHeader { sequence: base.sequence + 1, term, ..FrameHeader::default() }, 3);
    let mut chain = Chain::at(base.hash);
    chain.extend_frames(&frames).unwrap();
    let batch = Batch { first_sequence: base.sequence + 1, end_sequence: base.sequence + 1, hash: chain.value() };
    let mut message = Message::default();
    message.set_msg_type(raft::eraftpb::MessageType::MsgAppend);
    (message.to, message.from, message.term) = (to.get(), from.get(), term);
    (message.index, message.log_term) = (base.index, base.term);
    let data = batch.to_bytes().to_vec().into();
    message.mut_entries().push(raft::eraftpb::Entry { index: base.index + 1, term, data, ..Default::default() });
    (message, frames)
}

#[test]
fn unpadded_frames_are_refused() {
    let mut cluster = FaultlessCluster::new(3, None);
    let leader = cluster.elected();
    (0..20).for_each(|_| cluster.step());
    let at = (leader + 1) % 3;
    let (id, from) = (cluster.nodes[at].id, cluster.nodes[leader].id);
    let core = cluster.nodes[at].core.as_mut().unwrap();
    let sequence = core.end().sequence + 1;
    let (message, frames) = append_of(core, from, id, core.end(), b"abc");
    for length in 67..72 {
        let refused = core.verify_append(&message, &frames[..length]);
        assert!(matches!(refused, Err(AppendError::Frame { .. })), "{length} of 72 bytes: {refused:?}");
    }
    assert_eq!(core.verify_append(&message, &frames), Ok(Some((sequence, sequence))));
}

#[test]
fn divergent_entry_names_its_place() {
    let mut cluster = FaultlessCluster::new(3, None);
    let leader = cluster.elected();
    (0..20).for_each(|_| cluster.step());
    let at = (leader + 1) % 3;
    let (id, from) = (cluster.nodes[at].id, cluster.nodes[leader].id);
    let base = cluster.nodes[at].core.as_ref().unwrap().end();
    assert!(cluster.nodes[leader].propose(1, &mut cluster.random));
    for _ in 0..5 {
        cluster.step();
        cluster.in_flight.retain(|packet| packet.from == from.get() && packet.to == id.get());
    }
    let core = cluster.nodes[at].core.as_mut().unwrap();
    let kept = core.end();
    assert_eq!((kept.index, kept.term), (base.index + 1, core.term()));
    let (message, frames) = append_of(core, from, id, base, b"abc");
    let refused = StepError::OtherEntry(LogDivergence { same: Some(base), other: kept });
    assert_eq!(core.verify_append(&message, &frames), Err(AppendError::Entries(refused)));
    let before = core.status().refused_messages;
    assert_eq!(core.step(from, message), Err(refused));
    assert_eq!((core.status().refused_messages, core.end()), (before + 1, kept));
}

#[test]
fn leader_notices_it_lacks_applied() {
    let mut cluster = FaultlessCluster::new(3, None);
    let leader = cluster.elected();
    assert!(cluster.nodes[leader].propose(3, &mut cluster.random));
    cluster.until("the release", |cluster| (1..=3).all(|number| cluster.checker.released_by(number) == 3));
    (0..20).for_each(|_| cluster.step());
    let core = |at: usize| cluster.nodes[at].core.as_ref().unwrap();
    let (leads, follows) = (core(leader), core((leader + 1) % 3));
    let history = follows.history();
    let end = leads.end();
    assert_eq!(history.positions[0], end);
    assert_eq!(leads.missing_applied_entries(&history), None);
    let mut ahead = history.clone();
    ahead.positions.insert(0, LogPosition { index: end.index + 1, sequence: end.sequence + 1, ..end });
    let divergence = leads.missing_applied_entries(&ahead).unwrap();
    assert_eq!(
        (divergence.same, divergence.other.index, divergence.other.sequence),
        (Some(end), end.index + 1, end.sequence + 1)
    );
    // A follower lacks entries that others have, and so does a succeeded leader that does not know it yet.
    assert_eq!(follows.missing_applied_entries(&ahead), None);
    assert_eq!(leads.missing_applied_entries(&LogHistory { term: leads.term() + 1, ..ahead.clone() }), None);
    assert!(leads.missing_applied_entries(&LogHistory { term: leads.term() - 1, ..ahead }).is_some());
    assert_eq!(leads.missing_applied_entries(&LogHistory { positions: Vec::new(), ..history }), None);
}

/// Three members with released frames; `lost` lose their unsynced items.
fn after_a_loss_of_power(lost: impl Fn(usize, usize) -> bool) -> (FaultlessCluster, usize) {
    let mut cluster = FaultlessCluster::new(3, None);
    let leader = cluster.elected();
    for _ in 0..5 {
        assert!(cluster.nodes[leader].propose(3, &mut cluster.random));
        (0..5).for_each(|_| cluster.step());
    }
    cluster.until("the release", |cluster| (1..=3).all(|number| cluster.checker.released_by(number) == 15));
    for at in 0..3 {
        if lost(at, leader) {
            cluster.nodes[at].lose_power(&mut cluster.random);
        } else {
            cluster.nodes[at].crash(&mut cluster.random);
        }
    }
    (cluster, leader)
}

#[test]
fn power_loss_needs_all_votes() {
    let (mut cluster, leader) = after_a_loss_of_power(|at, leader| at == (leader + 1) % 3);
    let lost = (leader + 1) % 3;
    for at in [lost, (leader + 2) % 3] {
        cluster.nodes[at].start(&mut cluster.checker);
    }
    for _ in 0..500 {
        cluster.step();
        assert_eq!(cluster.leader(), None, "the vote of the rejoining member counted");
    }
    cluster.nodes[leader].start(&mut cluster.checker);
    let next = cluster.elected();
    cluster.until("the end of the rejoining", |cluster| !cluster.nodes[lost].may_lack_something());
    assert!(cluster.nodes[next].propose(3, &mut cluster.random));
    cluster.until("the release", |cluster| (1..=3).all(|number| cluster.checker.released_by(number) == 18));
}

#[test]
fn power_loss_ends_after_catch_up() {
    let mut cluster = FaultlessCluster::new(3, None);
    let leader = cluster.elected();
    let (lost, other) = ((leader + 1) % 3, (leader + 2) % 3);
    for _ in 0..5 {
        assert!(cluster.nodes[leader].propose(3, &mut cluster.random));
        (0..5).for_each(|_| cluster.step());
    }
    let term = cluster.nodes[leader].core.as_ref().unwrap().term();
    cluster.nodes[lost].lose_power(&mut cluster.random);
    cluster.nodes[lost].start(&mut cluster.checker);
    assert!(cluster.nodes[lost].core.as_ref().unwrap().status().is_rejoining);
    cluster.until("the leader's end", |cluster| !cluster.nodes[lost].may_lack_something());
    assert_eq!(cluster.nodes[leader].core.as_ref().unwrap().term(), term, "no election was needed");
    assert_eq!(cluster.nodes[lost].disk.last_sequence(), 15);
    cluster.nodes[leader].crash(&mut cluster.random);
    let next = cluster.elected();
    assert!([lost, other].contains(&next));
}

#[test]
fn power_loss_keeps_longest_log() {
    let (mut cluster, _) = after_a_loss_of_power(|_, _| true);
    let left = (0..3).map(|at| cluster.nodes[at].disk.recover().truncate_after()).max().unwrap();
    // Entries that no member has any more may come again, with other frames.
    cluster.checker = Checker::default();
    for at in [0, 1] {
        cluster.nodes[at].start(&mut cluster.checker);
    }
    for _ in 0..500 {
        cluster.step();
        assert_eq!(cluster.leader(), None, "not all have voted");
    }
    cluster.nodes[2].start(&mut cluster.checker);
    let leader = cluster.elected();
    cluster
        .until("the end of the rejoining", |cluster| cluster.nodes[..3].iter().all(|node| !node.may_lack_something()));
    assert!(cluster.nodes[leader].propose(3, &mut cluster.random));
    cluster.until("the release", |cluster| (1..=3).all(|number| cluster.checker.released_by(number) == left + 3));
}
