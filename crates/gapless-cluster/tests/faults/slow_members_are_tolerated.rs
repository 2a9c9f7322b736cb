//! Paused, deaf, mute or slow members, behind proxies. Frames that only a minority has appended are cut.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::processes::leaders::{ATTEMPTS_MAX, Deposed};
use crate::processes::load::PublisherLoad;
use crate::processes::{self, Cluster, STEADY, THREE, WITNESS, streams};
use gapless_journal::JournalReader;
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use std::time::Duration;

/// Longer than the election timeout of a witness, 1.2 s, and than links wait for a peer.
const LONG: Duration = Duration::from_millis(2_500);

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("paused_leader_is_deposed", paused_leader_is_deposed)
        .scenario("paused_primary_is_deposed", paused_primary_is_deposed)
        .scenario("paused_follower_slows_no_one", paused_follower_slows_no_one)
        .scenario("slow_follower_slows_no_one", slow_follower_slows_no_one)
        .scenario("slow_network_only_slows", slow_network_only_slows)
        .scenario("cut_off_leader_is_truncated", cut_off_leader_is_truncated)
        .scenario("long_cut_off_leader_is_truncated", long_cut_off_leader_is_truncated)
        .with_choices("cut_off_members_return", cut_off_members_return)
        .scenario("deaf_leader_steps_down", deaf_leader_steps_down)
        .scenario("mute_leader_is_replaced", mute_leader_is_replaced)
        .scenario("half_deaf_follower_deposes_no_one", half_deaf_follower_deposes_no_one)
}

fn begin(plan: processes::ClusterPlan) -> (Cluster, PublisherLoad, usize, Vec<usize>) {
    let mut cluster = Cluster::start(plan);
    let full = cluster.full();
    let leader = cluster.leader_among(&full);
    let load = PublisherLoad::start(&cluster, 2);
    load.wait_more(200);
    let others = cluster.all().filter(|other| *other != leader).collect();
    (cluster, load, leader, others)
}

fn end(mut cluster: Cluster, load: PublisherLoad) {
    load.wait_more(100);
    let count = streams::check(&mut cluster, load);
    println!("{count} messages, each there once and in order on all members");
}

fn pause_leader(plan: processes::ClusterPlan) {
    let (mut cluster, load, ..) = begin(plan);
    let Deposed { leader, term, next } = cluster.depose(|cluster, member, is_paused| match is_paused {
        true => cluster.pause(member),
        false => cluster.go_on(member),
    });
    load.wait_more(200);
    std::thread::sleep(LONG);
    load.wait_more(200);
    cluster.go_on(leader);
    cluster.caught_up(leader);
    cluster.wait("a deposed leader", |cluster| {
        let status = cluster.status(leader)?;
        (status.term > term && status.role == "follower").then_some(())
    });
    println!("member {leader} led in term {term}, stood still, and follows since {next} led");
    end(cluster, load);
}

fn paused_leader_is_deposed() {
    pause_leader(THREE);
}

fn paused_primary_is_deposed() {
    pause_leader(WITNESS);
}

fn slow_follower(slow: impl Fn(&Cluster, usize, usize), well: impl Fn(&Cluster, usize, usize)) {
    let (mut cluster, load, ..) = begin(STEADY);
    let (victim, released) = cluster.keeps_leader("a slow follower", |cluster, leader| {
        let victim = cluster.others(leader)[0];
        slow(cluster, leader, victim);
        // More than a window holds, and than a link queues.
        load.wait_more_fast(25_000);
        let released = cluster.status(leader).unwrap().released_sequence;
        well(cluster, leader, victim);
        (victim, released)
    });
    println!("{released} frames were released while member {victim} was slow");
    cluster.caught_up(victim);
    end(cluster, load);
}

fn paused_follower_slows_no_one() {
    slow_follower(|cluster, _, victim| cluster.pause(victim), |cluster, _, victim| cluster.go_on(victim));
}

fn slow_follower_slows_no_one() {
    let throttle = |bytes_per_ms| {
        move |cluster: &Cluster, leader: usize, victim: usize| {
            let (proxy, is_forward) = cluster.between(leader, victim);
            proxy.way(is_forward).throttle(bytes_per_ms);
        }
    };
    slow_follower(throttle(100), throttle(0));
}

fn slow_network_only_slows() {
    let (mut cluster, load, leader, others) = begin(THREE);
    for other in others {
        let (proxy, _) = cluster.between(leader, other);
        for is_forward in [true, false] {
            proxy.way(is_forward).delay(40);
            proxy.way(is_forward).throttle(2_000);
        }
    }
    load.wait_more(1_000);
    for member in cluster.all() {
        cluster.caught_up(member);
    }
    end(cluster, load);
}

/// Former leader, whose newest frame no other member has.
struct CutOffLeader {
    member: usize,
    term: u64,
    journaled: u64,
    released: u64,
}

fn term_of(cluster: &Cluster, member: usize, sequence: u64) -> u64 {
    let mut replay = JournalReader::open(cluster.journal(member)).unwrap().replay(sequence).unwrap();
    replay.next_frame().unwrap().unwrap().term()
}

/// Cuts a leader off until it steps down. Frames that it appends meanwhile are only in its journal; if no publisher ran,
/// there are none, and another attempt follows.
fn cut_off_leader(cluster: &mut Cluster, load: &PublisherLoad) -> CutOffLeader {
    for _ in 0..ATTEMPTS_MAX {
        load.wait_more(20);
        let Deposed { leader: member, term, next } = cluster.depose(Cluster::isolate);
        let status = cluster.wait("a leader that steps down", |cluster| {
            cluster.status(member).filter(|status| status.role != "leader")
        });
        let (journaled, released) = (status.journaled_sequence, status.released_sequence);
        let is_at_end = |cluster: &mut Cluster| (cluster.status(next)?.released_sequence >= journaled).then_some(());
        cluster.wait("another frame with its sequence", is_at_end);
        let is_own = journaled > released && term_of(cluster, member, journaled) == term;
        if is_own && term_of(cluster, next, journaled) > term {
            return CutOffLeader { member, term, journaled, released };
        }
        println!("member {member} has appended nothing since it was cut off");
        cluster.isolate(member, false);
        cluster.caught_up(member);
    }
    panic!("no leader that was cut off has appended a frame of its own");
}

fn cut_off_leader_is_truncated() {
    let (mut cluster, load, ..) = begin(THREE);
    let CutOffLeader { member, term, journaled, released } = cut_off_leader(&mut cluster, &load);
    load.wait_more(200);
    cluster.isolate(member, false);
    cluster.caught_up(member);
    assert!(term_of(&cluster, member, journaled) > term, "another frame has this sequence now");
    println!("member {member} had {} frames more than it had released", journaled - released);
    end(cluster, load);
}

/// More is committed than its log and window hold: it cannot hold the replacement frames, and receives a state.
fn long_cut_off_leader_is_truncated() {
    let (mut cluster, load, ..) = begin(THREE);
    let CutOffLeader { member, journaled, .. } = cut_off_leader(&mut cluster, &load);
    // About 1 KiB each: more than half of a window of 8 MiB, and more than the 4,096 entries of a log.
    load.wait_more_singly(9_000);
    cluster.isolate(member, false);
    cluster.caught_up(member);
    cluster.wait_log(member, &["frames are fetched from the leader"]);
    let held = JournalReader::open(cluster.journal(member)).unwrap().first_sequence();
    assert!(held > journaled, "the journal begins after a fetched state, at {held}");
    end(cluster, load);
}

fn cut_off_members_return(random: &mut Random) {
    let (mut cluster, load, ..) = begin(WITNESS);
    for round in 0..6 {
        let victim = if round < 3 { round + 1 } else { 1 + random.below(3) as usize };
        cluster.isolate(victim, true);
        let others: Vec<usize> = cluster.all().filter(|other| *other != victim).collect();
        cluster.leader_among(&others);
        load.wait_more(100);
        if random.below(2) == 0 {
            std::thread::sleep(LONG);
        }
        cluster.isolate(victim, false);
        cluster.caught_up(victim);
        load.wait_more(50);
    }
    end(cluster, load);
}

fn deaf_leader_steps_down() {
    let (mut cluster, load, first, others) = begin(THREE);
    others.iter().for_each(|other| cluster.hold(*other, first, true));
    cluster.wait("a leader that steps down", |cluster| (cluster.status(first)?.role != "leader").then_some(()));
    cluster.leader_among(&others);
    load.wait_more(200);
    others.iter().for_each(|other| cluster.hold(*other, first, false));
    cluster.caught_up(first);
    end(cluster, load);
}

fn mute_leader_is_replaced() {
    let (mut cluster, load, first, others) = begin(THREE);
    others.iter().for_each(|other| cluster.hold(first, *other, true));
    cluster.leader_among(&others);
    load.wait_more(200);
    others.iter().for_each(|other| cluster.hold(first, *other, false));
    cluster.caught_up(first);
    end(cluster, load);
}

/// Loses its leader's messages, but can send to all. The other follower has a leader, and grants no vote.
fn half_deaf_follower_deposes_no_one() {
    let (mut cluster, load, ..) = begin(STEADY);
    let deaf = cluster.keeps_leader("a half-deaf follower", |cluster, leader| {
        let deaf = cluster.others(leader)[0];
        cluster.hold(leader, deaf, true);
        cluster.wait("a campaign", |cluster| {
            let campaigns = cluster.status(deaf)?.role == "candidate";
            (campaigns || cluster.leading_term(leader).is_none()).then_some(())
        });
        // Further campaigns follow soon.
        load.wait_more(1_000);
        cluster.hold(leader, deaf, false);
        deaf
    });
    cluster.caught_up(deaf);
    end(cluster, load);
}
