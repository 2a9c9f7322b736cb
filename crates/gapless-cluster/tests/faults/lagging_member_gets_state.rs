//! A member needs frames that only one journal still holds; it receives a state under load, and is killed at each crash
//! point of the transfer.

#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it says what it has done")]

use crate::processes::leaders::ATTEMPTS_MAX;
use crate::processes::load::PublisherLoad;
use crate::processes::{Cluster, ClusterPlan, PATIENT, WITNESS, streams};
#[cfg(debug_assertions)]
use gapless_agent::fault::SNAPSHOT_TRANSFER_CRASH_POINTS;
use gapless_journal::JournalReader;
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const VICTIM: usize = 3;
const LEADER: usize = 2;
/// Timeouts are short, because a leader repeats the offer of a state after four of them.
const MEMBERS: ClusterPlan = PATIENT;
const MEMBERS_AND_WITNESS: ClusterPlan = ClusterPlan { election_timeout: PATIENT.election_timeout, ..WITNESS };
const REFUSAL: [&str; 2] = ["the state of the leader is not taken", "its state cannot be used"];

pub fn module() -> Module {
    let module = Module::new(module_path!()).side_by_side(2);
    let module =
        module.scenario("a_member", || comes_back(MEMBERS)).scenario("a_witness", || comes_back(MEMBERS_AND_WITNESS));
    #[cfg(debug_assertions)]
    let module = module
        .scenario("killed_on_the_way", || is_killed_during_transfer(MEMBERS))
        .scenario("a_witness_killed_on_the_way", || is_killed_during_transfer(MEMBERS_AND_WITNESS));
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

/// Returns the last sequence of the victim, whose leader does not hold the next one.
fn fall_behind(cluster: &mut Cluster, load: &PublisherLoad) -> u64 {
    cluster.caught_up(VICTIM);
    if cluster.is_running(VICTIM) {
        cluster.kill(VICTIM);
    }
    let end = end_of(cluster, VICTIM);
    while JournalReader::open(cluster.journal(LEADER)).unwrap().first_sequence() <= end + 1 {
        load.wait_more_fast(2_000);
    }
    assert!(cluster.make_leader(LEADER), "the leader runs");
    end
}

fn states_fetched(cluster: &Cluster) -> usize {
    cluster.log(VICTIM).matches("lagged too far for its leader's journal and has fetched a state").count()
}

/// Returns false if the victim first receives frames after `end`: member 1 leads, which holds all.
#[track_caller]
fn lags_until(cluster: &mut Cluster, end: u64, what: &str, mut is_there: impl FnMut(&mut Cluster) -> bool) -> bool {
    cluster.wait(what, |cluster| {
        // Read first: a state that brings these frames is in the log before.
        let released = cluster.status(VICTIM).map_or(0, |status| status.released_sequence);
        if is_there(cluster) { Some(true) } else { (released > end).then_some(false) }
    })
}

/// Lets the victim fall behind again if member 1 sends it the frames.
#[track_caller]
fn wait_lagging(
    cluster: &mut Cluster,
    load: &PublisherLoad,
    end: &mut u64,
    environment: &[(&str, &str)],
    what: &str,
    mut is_there: impl FnMut(&mut Cluster) -> bool,
) {
    let mut attempts = 1;
    while !lags_until(cluster, *end, what, &mut is_there) {
        assert!(attempts < ATTEMPTS_MAX, "{what}: member 1 led in each of {ATTEMPTS_MAX} attempts");
        attempts += 1;
        println!("{what}: another leader has sent the frames");
        *end = fall_behind(cluster, load);
        cluster.start_member(VICTIM, environment);
    }
}

/// `fetched`: states before.
fn wait_transferred(cluster: &mut Cluster, load: &PublisherLoad, mut end: u64, fetched: usize) {
    wait_lagging(cluster, load, &mut end, &[], "a state", |cluster| states_fetched(cluster) > fetched);
    cluster.caught_up(VICTIM);
    let first = JournalReader::open(cluster.journal(VICTIM)).unwrap().first_sequence();
    assert!(first > 1, "its journal begins after the frames that were not held");
    cluster.wait("no transfer is left", |cluster| (!cluster.directory(VICTIM).join("incoming").exists()).then_some(()));
    load.wait_more(500);
}

fn comes_back(plan: ClusterPlan) {
    let (mut cluster, load) = begin(plan);
    for round in 1..=2 {
        let end = fall_behind(&mut cluster, &load);
        let fetched = states_fetched(&cluster);
        println!("the victim returns, round {round}");
        cluster.start_member(VICTIM, &[]);
        wait_transferred(&mut cluster, &load, end, fetched);
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
    let mut end = fall_behind(&mut cluster, &load);
    for point in SNAPSHOT_TRANSFER_CRASH_POINTS {
        let first_pass = format!("{point}:1");
        let environment = [("GAPLESS_CRASH_POINT", first_pass.as_str())];
        cluster.start_member(VICTIM, &environment);
        wait_lagging(&mut cluster, &load, &mut end, &environment, point, |cluster| cluster.has_died(VICTIM));
        println!("killed at {point}");
    }
    cluster.start_member(VICTIM, &[]);
    cluster.caught_up(VICTIM);
    assert!(!cluster.directory(VICTIM).join("incoming").exists(), "no file of the transfer is left");
    let count = streams::check(&mut cluster, load);
    println!("{count} messages, each there once and in order on all members");
}

fn newest_state(cluster: &Cluster) -> PathBuf {
    let entries = std::fs::read_dir(cluster.directory(LEADER).join("sequencer")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("state-")).max().unwrap()
}

/// Changes a bit of the newest state, and of newer ones that were being written.
fn damage_newest_state(cluster: &Cluster, random: &mut Random) -> PathBuf {
    const SETTLED: Duration = Duration::from_secs(1);
    let (mut newest, mut since) = (newest_state(cluster), Instant::now());
    let mut damaged: Option<PathBuf> = None;
    while damaged.as_ref() != Some(&newest) || since.elapsed() < SETTLED {
        std::thread::sleep(Duration::from_millis(50));
        let found = newest_state(cluster);
        if found != newest {
            (newest, since) = (found, Instant::now());
        } else if damaged.as_ref() != Some(&newest) && since.elapsed() >= SETTLED {
            let mut bytes = std::fs::read(&newest).unwrap();
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << random.below(8);
            std::fs::write(&newest, &bytes).unwrap();
            println!("byte {at} of {} is changed", newest.display());
            (damaged, since) = (Some(newest.clone()), Instant::now());
        }
    }
    newest
}

/// Damages the leader's newest state; the next one is accepted.
fn wrong_bytes(random: &mut Random) {
    let (mut cluster, load) = begin(MEMBERS);
    let mut attempts = 0;
    let (end, fetched, damaged) = loop {
        attempts += 1;
        let end = fall_behind(&mut cluster, &load);
        load.pause(true);
        let damaged = damage_newest_state(&cluster, random);
        let fetched = states_fetched(&cluster);
        cluster.start_member(VICTIM, &[]);
        let is_refused =
            lags_until(&mut cluster, end, "a refusal", |cluster| cluster.logged(VICTIM, &REFUSAL).is_some());
        let is_fetched = states_fetched(&cluster) > fetched;
        assert!(!is_fetched || newest_state(&cluster) != damaged, "a damaged state is not used");
        load.pause(false);
        if is_refused {
            break (end, fetched, damaged);
        }
        assert!(attempts < ATTEMPTS_MAX, "no attempt met the damaged state");
        println!("another leader has sent the frames, or a newer state was written");
    };
    while newest_state(&cluster) == damaged {
        load.wait_more(500);
    }
    wait_transferred(&mut cluster, &load, end, fetched);
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
