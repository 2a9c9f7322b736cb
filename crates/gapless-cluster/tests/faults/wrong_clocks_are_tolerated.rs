//! Wall clocks that are wrong and jump by hours. The stream's time goes on evenly and strictly rising under every
//! leader: no session expires and no timer fires because of a clock. Members are processes with a replaced kernel
//! clock.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::processes::load::{PublisherLoad, TYPE, payload};
use crate::processes::{Cluster, ClusterPlan, PATIENCE, THREE, WITNESS, clock, streams};
use gapless_client::node::{NodeEvent, SharedMemoryLink, SharedMemoryOptions, StreamNode, StreamNodeOptions};
use gapless_stream::stream_time::FAR_SLEW_PPM;
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use std::time::{Duration, Instant};

const HOUR_S: u64 = 3_600;
/// Longer than a session lives without a message.
const WRONG_S_MAX: u64 = 48 * HOUR_S;
const SLEW_PPM_MAX: u128 = FAR_SLEW_PPM as u128 + 500;
const UNDER_WAY_NS_MAX: u128 = 2_000_000_000;
const OWNER: u64 = 100;

pub fn module() -> Module {
    Module::new(module_path!())
        .with_choices("clocks_jump_during_elections", clocks_jump_during_elections)
        .with_choices("clocks_jump_with_a_witness", clocks_jump_with_a_witness)
        .scenario("restart_with_late_clocks", restart_with_late_clocks)
}

#[derive(Clone, Copy)]
struct TimedReply {
    /// The stream's time is from between the request and its answer.
    asked: Instant,
    told: Instant,
    stream_ns: u64,
}

struct TimeWatch {
    node: StreamNode<SharedMemoryLink>,
    number: u64,
    begun: Option<TimedReply>,
}

impl TimeWatch {
    fn begin(cluster: &Cluster) -> Self {
        let link = SharedMemoryLink::any(&cluster.directories(), SharedMemoryOptions::default());
        let node = StreamNode::new(link, StreamNodeOptions::with_token(u128::from(OWNER)));
        let mut watch = Self { node, number: 0, begun: None };
        watch.begun = Some(watch.now());
        watch
    }

    fn now(&mut self) -> TimedReply {
        let asked = Instant::now();
        self.number += 1;
        let mut is_sent = false;
        loop {
            let now = Instant::now();
            assert!(now - asked < PATIENCE, "message {} of the watch was not read back", self.number);
            if !is_sent && self.node.can_publish() {
                is_sent = self.node.publish(TYPE, &payload(OWNER, self.number)).is_ok();
            }
            let mut stamped_ns = None;
            let polled = self.node.poll(256, |event| {
                if let NodeEvent::Message(message) = event
                    && message.own
                {
                    stamped_ns = Some(message.timestamp_ns);
                }
            });
            if polled.unwrap() == 0 {
                self.node.wait(Duration::from_micros(500)).unwrap();
            }
            if let Some(stream_ns) = stamped_ns {
                return TimedReply { asked, told: Instant::now(), stream_ns };
            }
        }
    }

    fn check(&mut self, after: &str) {
        let (begun, now) = (self.begun.expect("at the beginning"), self.now());
        let passed_ns = u128::from(now.stream_ns.checked_sub(begun.stream_ns).expect("time rises"));
        let at_least_ns = now.asked.saturating_duration_since(begun.told).as_nanos();
        let at_most_ns = (now.told - begun.asked).as_nanos();
        let slewed_ns = at_most_ns * SLEW_PPM_MAX / 1_000_000 + UNDER_WAY_NS_MAX;
        assert!(
            at_least_ns <= passed_ns + slewed_ns && passed_ns <= at_most_ns + slewed_ns,
            "after {after} {passed_ns} ns have passed in the stream, and {at_least_ns} to {at_most_ns} ns here"
        );
    }
}

fn some_time(random: &mut Random) -> i64 {
    let wrong_s = (60 + random.below(WRONG_S_MAX)) as i64;
    if random.below(2) == 0 { wrong_s } else { -wrong_s }
}

fn begin(plan: ClusterPlan, wrong_s: impl Fn(usize) -> i64) -> Cluster {
    let mut cluster = Cluster::prepare(plan);
    for member in cluster.all() {
        cluster.set_clock(member, wrong_s(member));
        cluster.start_member(member, &[]);
    }
    let full = cluster.full();
    cluster.leader_among(&full);
    cluster
}

fn jumps(plan: ClusterPlan, random: &mut Random) {
    if !clock::is_possible() {
        return;
    }
    let wrong_s: Vec<i64> = (0..plan.kinds.len()).map(|_| some_time(random)).collect();
    println!("clocks are wrong by {wrong_s:?} s at the beginning");
    let mut cluster = begin(plan, |member| wrong_s[member - 1]);
    let load = PublisherLoad::start(&cluster, 2);
    load.wait_more(200);
    let mut watch = TimeWatch::begin(&cluster);
    let full = cluster.full();
    for _ in 0..8 {
        let (member, jump_s) = (1 + random.below(plan.kinds.len() as u64) as usize, some_time(random));
        cluster.set_clock(member, jump_s);
        let leader = cluster.leader_among(&full);
        let next = full.iter().copied().find(|other| *other != leader).unwrap();
        let event = match random.below(3) {
            0 => {
                std::thread::sleep(Duration::from_millis(600));
                "a jump"
            }
            1 => {
                cluster.make_leader(next);
                "a change of leader"
            }
            _ => {
                cluster.kill(leader);
                let others: Vec<usize> = full.iter().copied().filter(|other| *other != leader).collect();
                cluster.leader_among(&others);
                cluster.start_member(leader, &[]);
                cluster.caught_up(leader);
                "a leader's death"
            }
        };
        println!("member {member}'s clock is {jump_s} s ahead, {event}");
        load.wait_more(100);
        watch.check(event);
    }
    for member in full.clone() {
        cluster.make_leader(member);
        watch.check("a turn of each");
    }
    drop(watch);
    let count = streams::check(&mut cluster, load);
    println!("{count} messages, each there once and in order on all members");
}

fn clocks_jump_during_elections(random: &mut Random) {
    jumps(THREE, random);
}

fn clocks_jump_with_a_witness(random: &mut Random) {
    jumps(WITNESS, random);
}

/// No member knows the time: it goes on from the last frame.
fn restart_with_late_clocks() {
    if !clock::is_possible() {
        return;
    }
    let mut cluster = begin(THREE, |_| 0);
    let load = PublisherLoad::start(&cluster, 2);
    load.wait_more(500);
    let mut watch = TimeWatch::begin(&cluster);
    load.pause(true);
    let last = watch.now();
    for member in cluster.all() {
        cluster.kill(member);
        cluster.set_clock(member, -(HOUR_S as i64));
    }
    cluster.all().for_each(|member| cluster.start_member(member, &[]));
    cluster.leader();
    load.pause(false);
    watch.begun = Some(watch.now());
    let first_ns = watch.begun.unwrap().stream_ns;
    assert!(first_ns > last.stream_ns && first_ns - last.stream_ns < PATIENCE.as_nanos() as u64);
    std::thread::sleep(Duration::from_secs(4));
    watch.check("the return of all");
    let leader = cluster.leader();
    let ahead_ms = cluster.status(leader).unwrap().time_ahead_ms.expect("a leader knows the time");
    assert!((HOUR_S as i64 * 1_000 - PATIENCE.as_millis() as i64..=HOUR_S as i64 * 1_000).contains(&ahead_ms));
    drop(watch);
    streams::check(&mut cluster, load);
}
