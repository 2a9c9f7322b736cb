//! Kills leader, follower and witness from outside at random and, in builds with debug assertions, at each named crash
//! point; the hits are printed and must not be zero. Prints its seed and takes one from `GAPLESS_SEED`.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::processes::load::PublisherLoad;
use crate::processes::{Cluster, ClusterPlan, PATIENCE, THREE, WITNESS, streams};
use gapless_agent::fault::CLUSTER_CRASH_POINTS;
use gapless_testkit::random::{Random, rounds};
use gapless_testkit::scenarios::Module;
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

const KILLS_FROM_OUTSIDE: u32 = 6;
const KILLS_PER_POINT: u64 = 2;
const PUBLISHERS: u64 = 2;
/// An armed member that lives longer is not counted.
const ARMED: Duration = Duration::from_secs(20);
/// On a busy machine a member may not reach its point.
const ATTEMPTS_MAX: u32 = 3;
/// More than the 4,096 entries that a log keeps, even with messages of both publishers in each.
const MESSAGES_MISSED: u64 = 9_000;

const OF_THE_JOURNAL: [&str; 5] =
    ["before_journal_copy", "after_journal_copy", "before_journaled_mark", "before_segment_roll", "after_segment_roll"];

pub fn module() -> Module {
    let module = Module::new(module_path!())
        .side_by_side(2)
        .with_choices("three_members_killed_from_outside", |random| kills_from_outside(THREE, random))
        .with_choices("with_a_witness_killed_from_outside", |random| kills_from_outside(WITNESS, random));
    if !cfg!(debug_assertions) {
        return module;
    }
    module
        .with_choices("three_members_killed_at_every_point", three_members)
        .with_choices("with_a_witness_killed_at_every_point", with_a_witness)
        .with_choices("killed_around_a_sync", around_a_sync)
}

fn kills_from_outside(plan: ClusterPlan, random: &mut Random) {
    let mut cluster = Cluster::start(plan);
    cluster.leader();
    let load = PublisherLoad::start(&cluster, PUBLISHERS);
    let mut killed_leaders = 0;
    for round in 0..KILLS_FROM_OUTSIDE {
        load.wait_more(100 + random.below(300));
        let leader = cluster.leader();
        let victim = if round % 2 == 0 { leader } else { 1 + random.below(cluster.count() as u64) as usize };
        killed_leaders += u32::from(victim == leader);
        cluster.kill(victim);
        load.wait_more(100);
        cluster.start_member(victim, &[]);
        cluster.caught_up(victim);
    }
    for member in cluster.all() {
        cluster.kill(member);
    }
    for member in cluster.all() {
        cluster.start_member(member, &[]);
    }
    load.wait_more(100);
    let count = streams::check(&mut cluster, load);
    println!(
        "{KILLS_FROM_OUTSIDE} kills, {killed_leaders} of leaders, and one of all, while {count} messages were published"
    );
    assert!(killed_leaders > 0);
}

struct KilledCluster {
    cluster: Cluster,
    load: PublisherLoad,
    hits: BTreeMap<String, u32>,
}

impl KilledCluster {
    fn new(plan: ClusterPlan) -> Self {
        let mut cluster = Cluster::start(plan);
        cluster.leader();
        let load = PublisherLoad::start(&cluster, PUBLISHERS);
        Self { cluster, load, hits: BTreeMap::new() }
    }

    fn until_hit(&mut self, name: &str, mut attempt: impl FnMut(&mut Self)) {
        let hits = |dying: &Self| dying.hits.get(name).copied();
        let before = hits(self);
        for _ in 0..ATTEMPTS_MAX {
            attempt(self);
            if hits(self) > before.max(Some(0)) {
                return;
            }
        }
    }

    fn arm(&mut self, member: usize, point: &str, pass: u64) {
        if self.cluster.is_running(member) && !self.cluster.has_died(member) {
            self.cluster.kill(member);
        }
        self.cluster.start_member(member, &[("GAPLESS_CRASH_POINT", &format!("{point}:{pass}"))]);
    }

    fn dies(&mut self, member: usize, name: &str, meanwhile: impl FnMut(&mut Cluster)) {
        if !self.has_died_within(ARMED, member, name, meanwhile) {
            self.cluster.kill(member);
        }
        self.revive(member);
    }

    /// Returns false only while the member runs, even if `meanwhile` takes long.
    fn has_died_within(
        &mut self,
        time: Duration,
        member: usize,
        name: &str,
        mut meanwhile: impl FnMut(&mut Cluster),
    ) -> bool {
        let deadline = Instant::now() + time;
        let hits = self.hits.entry(name.to_owned()).or_default();
        loop {
            if self.cluster.has_died(member) {
                *hits += 1;
                return true;
            }
            if Instant::now() > deadline {
                return false;
            }
            meanwhile(&mut self.cluster);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn revive(&mut self, member: usize) {
        self.cluster.start_member(member, &[]);
        self.load.wait_more(20);
        self.cluster.caught_up(member);
    }

    fn follower(&mut self) -> usize {
        let leader = self.cluster.leader();
        if leader == 1 { 2 } else { 1 }
    }

    fn leader_dies(&mut self, point: &str, pass: u64) {
        let victim = self.follower();
        self.arm(victim, point, pass);
        self.cluster.make_leader(victim);
        self.dies(victim, point, |cluster| {
            if cluster.leader_of(&[victim]).is_none() && !cluster.has_died(victim) {
                cluster.make_leader(victim);
            }
        });
    }

    /// Counts no hit if the victim has lost the lead, or knows of no live follower: then it hands nothing over.
    fn stopping_leader_dies(&mut self, point: &str) {
        let victim = self.follower();
        self.arm(victim, point, 1);
        let is_hit = if self.cluster.make_leader(victim) {
            self.load.wait_more(20);
            self.cluster.ask_to_stop(victim);
            let status = self.cluster.wait_end(victim);
            let is_killed = status.signal() == Some(9);
            assert!(is_killed || status.success(), "member {victim}: {status}\n{}", self.cluster.log(victim));
            is_killed
        } else {
            true
        };
        *self.hits.entry(point.to_owned()).or_default() += u32::from(is_hit);
        self.revive(victim);
    }

    fn follower_dies(&mut self, victim: usize, point: &str, name: &str, pass: u64) {
        self.arm(victim, point, pass);
        self.dies(victim, name, |cluster| {
            if cluster.leader_of(&[victim]).is_some() {
                let other = if victim == 1 { 2 } else { 1 };
                cluster.transfer(victim, other);
            }
        });
    }

    /// Cuts the leader off under load: frames that only it has appended are cut.
    fn deposed_dies(&mut self, point: &str, and_then: Option<&str>) {
        let victim = self.follower();
        self.arm(victim, point, 1);
        if self.cluster.make_leader(victim) {
            self.load.wait_more(20);
            self.cluster.isolate(victim, true);
            let others: Vec<usize> = self.cluster.all().filter(|other| *other != victim).collect();
            self.cluster.leader_among(&others);
            self.load.wait_more(50);
            self.cluster.isolate(victim, false);
        }
        let has_died = self.has_died_within(ARMED, victim, point, |_| {});
        if let Some(next) = and_then.filter(|_| has_died) {
            self.arm(victim, next, 1);
            self.dies(victim, next, |_| {});
        } else if has_died {
            self.revive(victim);
        } else {
            self.cluster.kill(victim);
            self.revive(victim);
        }
    }

    /// The primary dies while the witness has frames that the backup lacks: the witness leads until the backup has
    /// them.
    fn leading_witness_dies(&mut self, point: &str, name: &str) {
        const WITNESS_MEMBER: usize = 3;
        self.arm(WITNESS_MEMBER, point, 1);
        self.cluster.caught_up(WITNESS_MEMBER);
        let primary = self.cluster.leader_among(&[1, 2]);
        let backup = 3 - primary;
        self.cluster.hold(primary, backup, true);
        self.load.wait_more(50);
        self.cluster.kill(primary);
        if self.has_died_within(ARMED, WITNESS_MEMBER, name, |_| {}) {
            self.cluster.start_member(WITNESS_MEMBER, &[]);
        }
        self.cluster.leader_among(&[backup]);
        self.cluster.between(primary, backup).0.reset();
        self.cluster.hold(primary, backup, false);
        self.revive(primary);
    }

    /// Misses more frames than the others' logs keep.
    fn fetching_dies(&mut self, victim: usize, who: &str) {
        self.cluster.kill(victim);
        self.load.wait_more_singly(MESSAGES_MISSED);
        for point in of("fetch_") {
            self.arm(victim, point, 1);
            // One attempt for each point.
            self.has_died_within(PATIENCE, victim, &format!("{point}{who}"), |_| {});
        }
        if self.cluster.is_running(victim) {
            self.cluster.kill(victim);
        }
        self.revive(victim);
    }

    fn end(mut self, expected: impl Iterator<Item = String>) {
        let count = streams::check(&mut self.cluster, self.load);
        for (point, hits) in &self.hits {
            println!("{point}: {hits} kills");
        }
        println!("{count} messages, each there once and in order on all members");
        for point in expected {
            assert!(self.hits.get(&point).is_some_and(|hits| *hits > 0), "{point} was never hit");
        }
    }
}

fn of(role: &str) -> impl Iterator<Item = &'static str> {
    CLUSTER_CRASH_POINTS.into_iter().filter(move |point| point.starts_with(role))
}

fn three_members(random: &mut Random) {
    let mut dying = KilledCluster::new(THREE);
    for _ in 0..rounds(KILLS_PER_POINT, 1) {
        for point in of("leader_") {
            dying.until_hit(point, |dying| dying.leader_dies(point, 1 + random.below(200)));
        }
        for point in of("follower_").chain(OF_THE_JOURNAL) {
            let passes = match point {
                _ if point.contains("segment") => 1,
                _ if OF_THE_JOURNAL.contains(&point) => 100,
                _ => 200,
            };
            dying.until_hit(point, |dying| {
                let victim = dying.follower();
                dying.follower_dies(victim, point, point, 1 + random.below(passes));
            });
        }
        for (point, and_then) in [
            ("cut_before_checkpoint", None),
            ("cut_after_checkpoint", Some("start_before_truncation")),
            ("cut_after_truncation", Some("start_after_truncation")),
            ("cut_before_removal", None),
        ] {
            dying.until_hit(and_then.unwrap_or(point), |dying| dying.deposed_dies(point, and_then));
        }
        dying.until_hit("becoming_leader", |dying| {
            let victim = dying.follower();
            dying.arm(victim, "becoming_leader", 1);
            dying.cluster.make_leader(victim);
            dying.dies(victim, "becoming_leader", |_| {});
        });
        dying.until_hit("ceasing_to_lead", |dying| {
            let victim = dying.follower();
            dying.arm(victim, "ceasing_to_lead", 1);
            dying.cluster.make_leader(victim);
            dying.dies(victim, "ceasing_to_lead", |cluster| cluster.transfer(victim, victim % 3 + 1));
        });
        dying.until_hit("hand_over", |dying| dying.stopping_leader_dies("hand_over"));
    }
    let victim = dying.follower();
    dying.fetching_dies(victim, "");
    dying.end(CLUSTER_CRASH_POINTS.iter().chain(&OF_THE_JOURNAL).map(|point| (*point).to_owned()));
}

fn with_a_witness(random: &mut Random) {
    const WHO: &str = " of the witness";
    let mut dying = KilledCluster::new(WITNESS);
    for point in of("leader_") {
        dying.until_hit(point, |dying| dying.leader_dies(point, 1 + random.below(200)));
    }
    for point in of("follower_").chain(OF_THE_JOURNAL) {
        let (passes, name) = (if point.contains("segment") { 1 } else { 200 }, format!("{point}{WHO}"));
        dying.until_hit(&name, |dying| dying.follower_dies(3, point, &name, 1 + random.below(passes)));
    }
    for point in ["becoming_leader", "ceasing_to_lead"] {
        let name = format!("{point}{WHO}");
        dying.until_hit(&name, |dying| dying.leading_witness_dies(point, &name));
    }
    dying.fetching_dies(3, WHO);
    let of_the_witness =
        of("follower_").chain(OF_THE_JOURNAL).chain(of("fetch_")).chain(["becoming_leader", "ceasing_to_lead"]);
    dying.end(of("leader_").map(str::to_owned).chain(of_the_witness.map(|point| format!("{point}{WHO}"))));
}

fn around_a_sync(random: &mut Random) {
    // Few, because a sync of a busy disk may take a second.
    let pass = |random: &mut Random| 5 + random.below(6);
    let mut dying = KilledCluster::new(ClusterPlan { tier: "quorum-sync", ..THREE });
    for point in ["before_sync", "after_sync"] {
        dying.until_hit(point, |dying| dying.leader_dies(point, pass(random)));
        let name = format!("{point} of a follower");
        dying.until_hit(&name, |dying| {
            let victim = dying.follower();
            dying.follower_dies(victim, point, &name, pass(random));
        });
    }
    let expected = ["before_sync", "after_sync", "before_sync of a follower", "after_sync of a follower"];
    dying.end(expected.into_iter().map(str::to_owned));
}
