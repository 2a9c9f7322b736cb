//! An older copy of a member's directory is restored, or two directories are exchanged. If two members cannot detect
//! it, the third stops as soon as it connects to them, and they report it.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::processes::load::PublisherLoad;
use crate::processes::{Cluster, PATIENCE, THREE, streams};
use gapless_testkit::folder;
use gapless_testkit::scenarios::Module;
use std::time::Instant;

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(2)
        .scenario("divergence_is_reported", divergence_is_reported)
        .scenario("shorter_leader_is_abandoned", shorter_leader_is_abandoned)
        .scenario("exchanged_directories_are_refused", exchanged_directories_are_refused)
}

/// Members 1 and 2 acknowledge entries that member 3 lacks; 1 restarts with an older directory while 2 is away. `later`
/// messages are published by 1 and 3.
fn diverge(later: u64) -> Cluster {
    let mut cluster = Cluster::start(THREE);
    cluster.make_leader(2);
    let load = PublisherLoad::start(&cluster, 2);
    load.wait_more(300);
    cluster.caught_up(1);
    cluster.kill(1);
    let copy = cluster.root.path().join("copy");
    folder::copy(&cluster.directory(1), &copy);
    cluster.kill(3);
    cluster.start_member(1, &[]);
    load.wait_more(400);
    cluster.caught_up(1);
    load.finish();
    let acknowledged = cluster.status(2).unwrap().released_sequence;
    cluster.kill(2);
    cluster.kill(1);
    std::fs::remove_dir_all(cluster.directory(1)).unwrap();
    std::fs::rename(&copy, cluster.directory(1)).unwrap();
    cluster.start_member(1, &[]);
    cluster.start_member(3, &[]);
    let leader = cluster.leader_among(&[1, 3]);
    let load = PublisherLoad::start_as(&cluster, 3..=3);
    load.wait_more(later);
    load.finish();
    let released = cluster.status(leader).unwrap().released_sequence;
    println!("{acknowledged} frames were acknowledged; members 1 and 3 have {released}");
    cluster
}

fn reports_divergence(mut cluster: Cluster) {
    const REPORT: [&str; 3] = ["ERROR", "a member's log is another one", "member=2"];
    let deadline = Instant::now() + PATIENCE;
    // Member 2 stops soon after its leader's history has arrived, possibly before its own has reached the third member.
    loop {
        cluster.start_member(2, &[]);
        assert_eq!(cluster.wait_end(2).code(), Some(3), "{}", cluster.log(2));
        if [1, 3].iter().all(|member| cluster.logged(*member, &REPORT).is_some()) {
            break;
        }
        assert!(Instant::now() < deadline, "one does not report it:\n{}\n{}", cluster.log(1), cluster.log(3));
    }
    let said = cluster.wait_log(2, &["member failed", "the logs of the members 2 and ", "they diverge at frame"]);
    println!("{said}");
    for member in [1, 3] {
        println!("{}", cluster.wait_log(member, &REPORT));
        let parted = cluster.wait("a member that reports it", |cluster| {
            cluster.status(member).filter(|status| status.partings > 0).map(|status| status.parted)
        });
        assert_eq!(parted.iter().map(|each| each.member).collect::<Vec<_>>(), [2], "{parted:?}");
    }
    let load = PublisherLoad::start_as(&cluster, 4..=4);
    load.wait_more(100);
    load.finish();
}

fn divergence_is_reported() {
    reports_divergence(diverge(2_000));
}

fn shorter_leader_is_abandoned() {
    reports_divergence(diverge(1));
}

fn exchanged_directories_are_refused() {
    let mut cluster = Cluster::start(THREE);
    cluster.make_leader(1);
    let load = PublisherLoad::start(&cluster, 2);
    load.wait_more(200);
    cluster.kill(2);
    cluster.kill(3);
    let aside = cluster.root.path().join("aside");
    let exchange = |cluster: &Cluster| {
        std::fs::rename(cluster.directory(2), &aside).unwrap();
        std::fs::rename(cluster.directory(3), cluster.directory(2)).unwrap();
        std::fs::rename(&aside, cluster.directory(3)).unwrap();
    };
    exchange(&cluster);
    for member in [2, 3] {
        cluster.start_member(member, &[]);
        assert_eq!(cluster.wait_end(member).code(), Some(3), "{}", cluster.log(member));
        println!("{}", cluster.wait_log(member, &["the directory is another member's"]));
    }
    exchange(&cluster);
    cluster.start_member(2, &[]);
    cluster.start_member(3, &[]);
    cluster.caught_up(2);
    load.wait_more(100);
    let count = streams::check(&mut cluster, load);
    println!("{count} messages, each there once and in order on all members");
}
