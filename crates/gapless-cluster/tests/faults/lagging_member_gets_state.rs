//! A member needs frames that only one journal still holds; it receives a state under load, and is killed at each crash
//! point of the transfer.

#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it says what it has done")]

use crate::processes::load::PublisherLoad;
use crate::processes::{Cluster, ClusterPlan, THREE, WITNESS, streams};
#[cfg(debug_assertions)]
use gapless_agent::fault::SNAPSHOT_TRANSFER_CRASH_POINTS;
use gapless_journal::JournalReader;
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use std::time::{Duration, Instant};

const VICTIM: usize = 3;
const LEADER: usize = 2;

pub fn module() -> Module {
    let module = Module::new(module_path!()).side_by_side(2);
    let module = module.scenario("a_member", || comes_back(THREE)).scenario("a_witness", || comes_back(WITNESS));
    #[cfg(debug_assertions)]
    let module = module
        .scenario("killed_on_the_way", || is_killed_during_transfer(THREE))
        .scenario("a_witness_killed_on_the_way", || is_killed_during_transfer(WITNESS));
    module
        .with_choices("with_wrong_bytes", wrong_bytes)
        .scenario("witness_retains_missing_frames", witness_retains_missing_frames)
}

/// Member 1 keeps its whole journal, for the comparison.
fn begin(plan: ClusterPlan) -> (Cluster, PublisherLoad) {
    let mut cluster = Cluster::prepare(plan);
    for member in [LEADER, VICTIM] {
        cluster.write_file(member, &format!("{}retention_bytes = \"2 MiB\"\n", cluster.text(member)));
    }
    cluster.all().for_each(|member| cluster.start_member(member, &[]));
    cluster.leader();
    let load = PublisherLoad::start(&cluster, 2);
    cluster.make_leader(LEADER);
    load.wait_more(200);
    (cluster, load)
}

fn end_of(cluster: &Cluster, member: usize) -> u64 {
    JournalReader::open(cluster.journal(member)).unwrap().recoverable_sequence().unwrap()
}

fn fall_behind(cluster: &mut Cluster, load: &PublisherLoad) {
    cluster.caught_up(VICTIM);
    cluster.kill(VICTIM);
    let end = end_of(cluster, VICTIM);
    while JournalReader::open(cluster.journal(LEADER)).unwrap().first_sequence() <= end + 1 {
        load.wait_more_fast(2_000);
    }
    assert!(cluster.make_leader(LEADER), "the victim runs");
}

fn wait_transferred(cluster: &mut Cluster, load: &PublisherLoad, times: usize) {
    let words = "lagged too far for its leader's journal and has fetched a state";
    cluster.wait("a state", |cluster| (cluster.log(VICTIM).matches(words).count() >= times).then_some(()));
    cluster.caught_up(VICTIM);
    let first = JournalReader::open(cluster.journal(VICTIM)).unwrap().first_sequence();
    assert!(first > 1, "its journal begins after the frames that were not held");
    cluster.wait("no transfer is left", |cluster| (!cluster.directory(VICTIM).join("incoming").exists()).then_some(()));
    load.wait_more(500);
}

fn comes_back(plan: ClusterPlan) {
    let (mut cluster, load) = begin(plan);
    for round in 1..=2 {
        fall_behind(&mut cluster, &load);
        println!("the victim returns, round {round}");
        cluster.start_member(VICTIM, &[]);
        wait_transferred(&mut cluster, &load, round);
    }
    if plan.kinds[VICTIM - 1] == "full" {
        assert!(cluster.make_leader(VICTIM), "the victim runs");
        load.wait_more(500);
    }
    let count = streams::check(&mut cluster, load);
    println!("{count} messages, each there once and in order on all members");
}

#[cfg(debug_assertions)]
fn is_killed_during_transfer(plan: ClusterPlan) {
    let (mut cluster, load) = begin(plan);
    fall_behind(&mut cluster, &load);
    for point in SNAPSHOT_TRANSFER_CRASH_POINTS {
        cluster.start_member(VICTIM, &[("GAPLESS_CRASH_POINT", &format!("{point}:1"))]);
        cluster.wait(point, |cluster| cluster.has_died(VICTIM).then_some(()));
        println!("killed at {point}");
    }
    cluster.start_member(VICTIM, &[]);
    cluster.caught_up(VICTIM);
    assert!(!cluster.directory(VICTIM).join("incoming").exists(), "no file of the transfer is left");
    let count = streams::check(&mut cluster, load);
    println!("{count} messages, each there once and in order on all members");
}

/// Damages the leader's newest state; the next one is accepted.
fn wrong_bytes(random: &mut Random) {
    let (mut cluster, load) = begin(THREE);
    fall_behind(&mut cluster, &load);
    load.pause(true);
    let newest = |cluster: &Cluster| {
        let entries = std::fs::read_dir(cluster.directory(LEADER).join("sequencer")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("state-")).max().unwrap()
    };
    let mut path = newest(&cluster);
    let mut since = Instant::now();
    while since.elapsed() < Duration::from_secs(1) {
        std::thread::sleep(Duration::from_millis(50));
        let now = newest(&cluster);
        if now != path {
            (path, since) = (now, Instant::now());
        }
    }
    let mut bytes = std::fs::read(&path).unwrap();
    let at = random.below(bytes.len() as u64) as usize;
    bytes[at] ^= 1 << random.below(8);
    std::fs::write(&path, &bytes).unwrap();
    println!("byte {at} of {} is changed", path.display());
    cluster.start_member(VICTIM, &[]);
    cluster.wait_log(VICTIM, &["the state of the leader is not taken", "its state cannot be used"]);
    assert!(!cluster.log(VICTIM).contains("has fetched a state"));
    load.pause(false);
    while newest(&cluster) == path {
        load.wait_more(500);
    }
    wait_transferred(&mut cluster, &load, 1);
    let count = streams::check(&mut cluster, load);
    println!("{count} messages, each there once and in order on all members");
}

/// The primary is lost while its backup is away: the witness has kept the frames that the backup lacks, whatever its
/// retention says.
fn witness_retains_missing_frames() {
    const BACKUP: usize = 1;
    let first_held = |cluster: &Cluster, member| JournalReader::open(cluster.journal(member)).unwrap().first_sequence();
    let (mut cluster, load) = begin(WITNESS);
    while first_held(&cluster, VICTIM) == 1 {
        load.wait_more_fast(2_000);
    }
    println!("the witness deletes frames that both others have");
    cluster.kill(BACKUP);
    let end = end_of(&cluster, BACKUP);
    while first_held(&cluster, LEADER) <= end + 1 {
        load.wait_more_fast(2_000);
    }
    let (by_primary, by_witness) = (first_held(&cluster, LEADER), first_held(&cluster, VICTIM));
    println!("the backup has {end}; the primary's journal begins at {by_primary}, the witness's at {by_witness}");
    assert!(by_witness <= end + 1, "no other member could bring the backup up to date");
    cluster.kill(LEADER);
    cluster.start_member(BACKUP, &[]);
    assert_eq!(cluster.leader_among(&[BACKUP]), BACKUP);
    load.wait_more(500);
    assert!(!cluster.log(BACKUP).contains("has fetched a state"));
    cluster.start_member(LEADER, &[]);
    let count = streams::check(&mut cluster, load);
    println!("{count} messages, each there once and in order on all members");
}
