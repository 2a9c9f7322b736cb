//! A follower missed thousands of single messages and catches up within seconds, even as half of the quorum of a leader
//! that has just started, so that no window has the frames.

#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(clippy::print_stdout, reason = "it says what it has done")]

use crate::processes::load::PublisherLoad;
use crate::processes::{Cluster, ClusterPlan, PATIENT, streams};
use gapless_testkit::scenarios::Module;
use std::time::{Duration, Instant};

/// Fewer entries than a log keeps; then more.
const IN_THE_LOG: u64 = 3_800;
const BEFORE_THE_LOG: u64 = 10_000;
/// Includes an election and the start of two processes; a round trip for each entry would take minutes.
const LEVEL_WITHIN: Duration = Duration::from_secs(60);

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("that_the_log_knows", || comes_back(PATIENT, IN_THE_LOG))
        .scenario("that_the_log_has_forgotten", || comes_back(PATIENT, BEFORE_THE_LOG))
}

fn comes_back(plan: ClusterPlan, missed: u64) {
    let mut cluster = Cluster::start(plan);
    let leader = cluster.leader();
    let load = PublisherLoad::start(&cluster, 1);
    load.wait_more(50);
    let others: Vec<usize> = cluster.all().filter(|member| *member != leader).collect();
    let [victim, stays] = others[..] else { panic!("three members") };
    cluster.caught_up(victim);
    cluster.kill(victim);
    load.wait_more_singly(missed);
    load.pause(true);
    cluster.caught_up(stays);
    let end = cluster.status(stays).unwrap().released_sequence;
    cluster.kill(leader);
    cluster.kill(stays);

    let begun = Instant::now();
    cluster.start_member(stays, &[]);
    cluster.start_member(victim, &[]);
    cluster.wait("a caught-up follower", |cluster| (cluster.status(victim)?.released_sequence >= end).then_some(()));
    let took = begun.elapsed();
    println!("{missed} messages missed, caught up after {} ms", took.as_millis());
    assert!(took < LEVEL_WITHIN, "caught up only after {took:?}");
    load.pause(false);
    load.wait_more(200);
    cluster.start_member(leader, &[]);
    let count = streams::check(&mut cluster, load);
    println!("{count} messages, each there once and in order on all members");
}
