//! Members in network namespaces joined by a switch: lost packets, pulled cables, deaf and mute hosts, slow links, with
//! the kernel's own TCP. Skipped if `unshare`, `ip` and `tc` cannot make such hosts.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::processes::hosts::{self, IsolatedScenario, PacketDirection};
use crate::processes::leaders::Deposed;
use crate::processes::load::PublisherLoad;
use crate::processes::{Cluster, ClusterPlan, STEADY, THREE, WITNESS, streams};
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use std::time::Duration;

/// Longer than the election timeout of a witness, 1.2 s, and than links wait for a peer.
const LONG: Duration = Duration::from_millis(3_000);
const ROUNDS: u32 = 16;

const SCENARIOS: [(&str, IsolatedScenario); 8] = [
    ("random_loss_only_slows", |_| random_loss_only_slows()),
    ("a_leader_whose_cable_is_pulled_is_replaced", |_| pull_the_leaders_cable(THREE)),
    ("a_primary_whose_cable_is_pulled_is_replaced", |_| pull_the_leaders_cable(WITNESS)),
    ("deaf_leader_steps_down", |_| lose_one_way(PacketDirection::In)),
    ("mute_leader_is_replaced", |_| lose_one_way(PacketDirection::Out)),
    ("slow_follower_link_is_isolated", |_| slow_follower_link_is_isolated()),
    ("all_cables_pulled", |_| all_cables_pulled()),
    ("random_network_faults", random_network_faults),
];

pub fn module() -> Module {
    SCENARIOS.into_iter().fold(Module::new(module_path!()).side_by_side(2), |module, (name, _)| {
        module.with_choices(name, |random| hosts::run_inside(name, random))
    })
}

pub fn run_if_inside() {
    hosts::run_if_inside(&SCENARIOS);
}

fn begin(plan: ClusterPlan) -> (Cluster, PublisherLoad, usize, Vec<usize>) {
    let mut cluster = Cluster::start_on_hosts(plan);
    let full = cluster.full();
    let leader = cluster.leader_among(&full);
    let load = PublisherLoad::start(&cluster, 2);
    load.wait_more(200);
    let others = cluster.all().filter(|other| *other != leader).collect();
    (cluster, load, leader, others)
}

fn end(mut cluster: Cluster, load: PublisherLoad) {
    load.wait_more(100);
    let dropped = cluster.hosts().dropped();
    let count = streams::check(&mut cluster, load);
    println!("{count} messages, each there once and in order on all members; {dropped} packets were dropped");
}

fn random_loss_only_slows() {
    let (cluster, load, ..) = begin(THREE);
    for host in cluster.all() {
        PacketDirection::BOTH.into_iter().for_each(|way| cluster.hosts().lose(host, way, 20));
    }
    load.wait_more(2_000);
    assert!(cluster.hosts().dropped() > 20, "packets were lost");
    for host in cluster.all() {
        PacketDirection::BOTH.into_iter().for_each(|way| cluster.hosts().lose(host, way, 0));
    }
    end(cluster, load);
}

/// No side is notified; both only receive nothing.
fn pull_the_leaders_cable(plan: ClusterPlan) {
    let (mut cluster, load, ..) = begin(plan);
    let Deposed { leader, term, .. } = cluster.depose(|cluster, host, is_cut| cluster.hosts().cut(host, is_cut));
    load.wait_more(200);
    cluster.wait("a leader that steps down", |cluster| (cluster.status(leader)?.role != "leader").then_some(()));
    std::thread::sleep(LONG);
    load.wait_more(200);
    cluster.hosts().cut(leader, false);
    cluster.caught_up(leader);
    assert!(cluster.status(leader).unwrap().term > term);
    end(cluster, load);
}

fn lose_one_way(way: PacketDirection) {
    let (mut cluster, load, first, others) = begin(THREE);
    cluster.hosts().lose(first, way, 1_000);
    cluster.leader_among(&others);
    cluster.wait("a leader that steps down", |cluster| (cluster.status(first)?.role != "leader").then_some(()));
    load.wait_more(200);
    assert!(cluster.hosts().dropped() > 0, "packets were lost");
    cluster.hosts().lose(first, way, 0);
    cluster.caught_up(first);
    end(cluster, load);
}

fn slow_follower_link_is_isolated() {
    let (mut cluster, load, ..) = begin(STEADY);
    let (slow, released, behind) = cluster.keeps_leader("a slow follower", |cluster, leader| {
        let slow = cluster.others(leader)[0];
        cluster.hosts().limit(slow, Some(1_000));
        load.wait_more_fast(15_000);
        let released = cluster.status(leader).unwrap().released_sequence;
        let behind = cluster.status(slow).unwrap().released_sequence;
        cluster.hosts().limit(slow, None);
        (slow, released, behind)
    });
    assert!(behind < released, "the link is slow: {behind} of {released}");
    cluster.caught_up(slow);
    end(cluster, load);
}

fn all_cables_pulled() {
    let (mut cluster, load, ..) = begin(THREE);
    cluster.all().for_each(|host| cluster.hosts().cut(host, true));
    cluster.wait("members without a leader", |cluster| {
        cluster.all().all(|member| cluster.status(member).is_some_and(|status| status.role != "leader")).then_some(())
    });
    let released = |cluster: &Cluster| -> Vec<u64> {
        cluster.all().map(|member| cluster.status(member).unwrap().released_sequence).collect()
    };
    let before = released(&cluster);
    std::thread::sleep(LONG);
    assert_eq!(released(&cluster), before, "a lone member releases nothing");
    cluster.all().for_each(|host| cluster.hosts().cut(host, false));
    cluster.leader();
    end(cluster, load);
}

fn random_network_faults(random: &mut Random) {
    let (mut cluster, load, ..) = begin(WITNESS);
    for round in 0..ROUNDS {
        let host = 1 + random.below(3) as usize;
        let time = Duration::from_millis(50 + random.below(1_200));
        let hosts = cluster.hosts();
        let what = random.below(6);
        println!("round {round}: {what} at host {host} for {} ms", time.as_millis());
        match what {
            0 => hosts.cut(host, true),
            1 => hosts.lose(host, PacketDirection::In, 1_000),
            2 => hosts.lose(host, PacketDirection::Out, 1_000),
            3 => cluster.all().for_each(|host| hosts.lose(host, PacketDirection::In, 100)),
            4 => hosts.limit(host, Some(500)),
            _ => {
                hosts.cut(host, true);
                cluster.kill(host);
            }
        }
        std::thread::sleep(time);
        let hosts = cluster.hosts();
        match what {
            0 => hosts.cut(host, false),
            1 | 2 => PacketDirection::BOTH.into_iter().for_each(|way| hosts.lose(host, way, 0)),
            3 => cluster.all().for_each(|host| hosts.lose(host, PacketDirection::In, 0)),
            4 => hosts.limit(host, None),
            _ => {
                hosts.cut(host, false);
                cluster.start_member(host, &[]);
            }
        }
        if random.below(2) == 0 {
            cluster.caught_up(host);
            load.wait_more(50);
        }
    }
    cluster.leader();
    end(cluster, load);
}
