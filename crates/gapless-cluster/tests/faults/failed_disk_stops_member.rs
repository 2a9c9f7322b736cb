//! The disk of one member fails: the kernel answers its calls with errors, or its file system is full.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::processes::disk::Fault;
use crate::processes::load::PublisherLoad;
use crate::processes::{Cluster, ClusterPlan, THREE, WITNESS, streams};
use gapless_testkit::folder::SmallDisk;
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;

const FAILED: i32 = 3;

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(2)
        .scenario("a_leader_s_disk_fails", a_leader_s_disk_fails)
        .scenario("a_follower_s_disk_fails", a_follower_s_disk_fails)
        .scenario("a_witness_s_disk_fails", a_witness_s_disk_fails)
        .with_choices("a_disk_fails_at_quorum_sync", a_disk_fails_at_quorum_sync)
        .scenario("a_disk_is_full", a_disk_is_full)
}

struct FailingCluster {
    cluster: Cluster,
    load: PublisherLoad,
}

impl FailingCluster {
    fn begin(plan: ClusterPlan) -> Self {
        let mut cluster = Cluster::start(plan);
        let full = cluster.full();
        cluster.leader_among(&full);
        let load = PublisherLoad::start(&cluster, 2);
        load.wait_more(200);
        Self { cluster, load }
    }

    fn fails(&mut self, member: usize, fault: Fault) {
        self.cluster.fail_disk(member, fault);
        let others: Vec<usize> = self.cluster.all().filter(|other| *other != member).collect();
        let status = self.cluster.wait_end_under(member, || self.load.wait_more_fast(500));
        assert_eq!(status.code(), Some(FAILED), "{}", self.cluster.log(member));
        self.said(member, fault.words());
        self.cluster.leader_among(&others);
        self.load.wait_more(200);
        self.cluster.start_member(member, &[]);
        self.cluster.caught_up(member);
    }

    fn said(&self, member: usize, words: &str) {
        let log = self.cluster.log(member);
        let last = log.lines().rfind(|line| line.starts_with("member failed: ")).unwrap_or_default();
        assert!(last.contains(words), "member {member} should log {words:?}:\n{log}");
        let place = self.cluster.directory(member);
        assert!(last.contains(place.to_str().unwrap()), "the file is named: {last}");
        println!("{last}");
    }

    fn end(mut self) {
        self.load.wait_more(100);
        let count = streams::check(&mut self.cluster, self.load);
        println!("{count} messages, each there once and in order on all members");
    }
}

const FAULTS: [Fault; 4] = [Fault::Sync, Fault::Write, Fault::Space, Fault::Create];

fn a_leader_s_disk_fails() {
    let mut failing = FailingCluster::begin(THREE);
    for fault in FAULTS {
        let leader = failing.cluster.leader();
        failing.fails(leader, fault);
    }
    failing.end();
}

fn a_follower_s_disk_fails() {
    let mut failing = FailingCluster::begin(THREE);
    for fault in FAULTS {
        let leader = failing.cluster.leader();
        failing.fails(leader % 3 + 1, fault);
    }
    failing.end();
}

fn a_witness_s_disk_fails() {
    let mut failing = FailingCluster::begin(WITNESS);
    for fault in FAULTS {
        failing.fails(3, fault);
    }
    failing.end();
}

fn a_disk_fails_at_quorum_sync(random: &mut Random) {
    let mut failing = FailingCluster::begin(ClusterPlan { tier: "quorum-sync", ..THREE });
    for _ in 0..3 {
        failing.fails(1 + random.below(3) as usize, Fault::Sync);
    }
    failing.end();
}

fn a_disk_is_full() {
    for is_leader in [true, false] {
        let mut cluster = Cluster::prepare(THREE);
        let Some(disk) = SmallDisk::mount(&cluster.directory(1), 40 << 10) else { return };
        cluster.all().for_each(|member| cluster.start_member(member, &[]));
        cluster.make_leader(if is_leader { 1 } else { 2 });
        let load = PublisherLoad::start(&cluster, 2);
        let mut failing = FailingCluster { cluster, load };
        for attempt in 0..2 {
            if attempt == 1 {
                failing.cluster.start_member(1, &[]);
            }
            let status = failing.cluster.wait_end_under(1, || failing.load.wait_more_fast(500));
            assert_eq!(status.code(), Some(FAILED));
            failing.said(1, Fault::Space.words());
            failing.load.wait_more(200);
        }
        disk.remount("size=400m");
        failing.cluster.start_member(1, &[]);
        failing.cluster.caught_up(1);
        failing.end();
    }
}
