//! Model checking of every order of events up to a number of steps, with the simplifications of `replication_model`;
//! breaking each rule shows that it is needed.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::replication_model::member::{Change, Set};
use crate::replication_model::properties as must;
use crate::replication_model::{Cluster, Mutant};
use gapless_testkit::random::rounds;
use stateright::{Checker, Expectation, HasDiscoveries, Model};
use std::time::Instant;

/// Two terms, one batch, one message in flight at a time.
fn cluster() -> Cluster {
    Cluster {
        voters: Set::of(&[0, 1, 2]),
        first: Set::of(&[0]),
        witnesses: Set::NONE,
        changes: Vec::new(),
        term_max: 2,
        batches: 1,
        restarts: 0,
        power_cuts: 0,
        in_flight_max: 1,
        mutant: None,
    }
}

/// From one to three, one by one.
fn growing() -> Cluster {
    let changes = [&[0, 1][..], &[0, 1, 2]].map(|voters| Change { voters: Set::of(voters) });
    Cluster { voters: Set::of(&[0]), changes: changes.into(), ..cluster() }
}

fn replacing() -> Cluster {
    let changes = vec![Change { voters: Set::of(&[1, 2]) }];
    Cluster { voters: Set::of(&[0]), changes, ..cluster() }
}

/// All orders would take minutes.
const STEPS_MAX: usize = 16;

/// With every change `fewer` than all; each step less halves the states.
fn steps_max(fewer: u64) -> usize {
    STEPS_MAX - rounds(0, fewer) as usize
}

#[track_caller]
fn holds(cluster: Cluster, steps_max: usize, wanted: &[&'static str]) {
    let started = Instant::now();
    let checker = cluster.checker().target_max_depth(steps_max).spawn_bfs().join();
    eprintln!("{} states, {} steps deep, {:?}", checker.unique_state_count(), checker.max_depth(), started.elapsed());
    for property in checker.model().properties() {
        if property.expectation == Expectation::Always {
            checker.assert_no_discovery(property.name);
        }
    }
    wanted.iter().for_each(|name| drop(checker.assert_any_discovery(name)));
    // Limits that leave next to nothing to try would show nothing.
    assert!(checker.unique_state_count() > 10_000, "{} states", checker.unique_state_count());
}

/// Depth first, for states many steps away.
#[track_caller]
fn happens(cluster: Cluster, wanted: &[&'static str]) {
    let started = Instant::now();
    let until = HasDiscoveries::AllOf(wanted.iter().copied().collect());
    let checker = cluster.checker().finish_when(until).spawn_dfs().join();
    eprintln!("{} states, {:?}", checker.unique_state_count(), started.elapsed());
    wanted.iter().for_each(|name| drop(checker.assert_any_discovery(name)));
}

#[track_caller]
fn fails(cluster: Cluster, mutant: Mutant, promises: &[&'static str]) {
    let started = Instant::now();
    let broken = Cluster { mutant: Some(mutant), ..cluster };
    let checker = broken.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let found = promises.iter().find_map(|promise| Some((promise, checker.discovery(promise)?)));
    eprintln!("{mutant:?}: {} states, {:?}", checker.unique_state_count(), started.elapsed());
    let Some((promise, path)) = found else { panic!("{mutant:?} is not caught: none of {promises:?} is broken") };
    eprintln!("broken: {promise}, after {:?}", path.into_actions());
}

/// The longest searches run with `GAPLESS_FULL=1` only.
fn is_left_to_the_night() -> bool {
    let is_left = rounds(1, 0) == 0;
    if is_left {
        println!("skipped: runs with GAPLESS_FULL=1");
    }
    is_left
}

#[test]
fn holds_while_leaders_change() {
    holds(Cluster { batches: 2, in_flight_max: 2, ..cluster() }, STEPS_MAX, &[must::LED, must::LOST]);
    happens(Cluster { batches: 2, ..cluster() }, &[must::TWO_TERMS]);
}

#[test]
fn holds_while_processes_die() {
    let cluster = Cluster { restarts: 1, in_flight_max: 2, ..cluster() };
    holds(cluster, steps_max(2), &[must::LED, must::LOST]);
}

#[test]
fn holds_while_machines_lose_power() {
    let cluster = Cluster { power_cuts: 1, in_flight_max: 2, ..cluster() };
    holds(cluster, steps_max(2), &[must::LED, must::CAUGHT_UP]);
}

#[test]
fn holds_with_a_witness() {
    let cluster = Cluster { first: Set::of(&[0, 2]), witnesses: Set::of(&[2]), ..cluster() };
    holds(cluster.clone(), STEPS_MAX, &[must::LED]);
    happens(cluster, &[must::WITNESS_HANDED_OVER]);
}

#[test]
fn holds_while_members_join() {
    holds(Cluster { restarts: 1, ..growing() }, steps_max(4), &[must::LED]);
    happens(growing(), &[must::CHANGED]);
}

#[test]
fn holds_while_replacing_members() {
    holds(Cluster { restarts: 1, ..replacing() }, steps_max(4), &[must::LED]);
    happens(replacing(), &[must::CHANGED, must::JOINT]);
}

#[test]
fn early_acknowledge_is_caught() {
    if is_left_to_the_night() {
        return;
    }
    let cluster = Cluster { restarts: 1, in_flight_max: 2, ..cluster() };
    fails(cluster, Mutant::AcknowledgeBeforeJournal, &[must::ACKNOWLEDGED_KEPT, must::SAME_RELEASED]);
}

#[test]
fn forgotten_vote_is_caught() {
    fails(Cluster { restarts: 1, ..cluster() }, Mutant::ForgetVote, &[must::ONE_LEADER]);
}

#[test]
fn commit_without_quorum_is_caught() {
    fails(cluster(), Mutant::CommitWithoutQuorum, &[must::ACKNOWLEDGED_KEPT, must::SAME_RELEASED]);
}

#[test]
fn skipped_truncation_is_caught() {
    fails(cluster(), Mutant::SkipTruncation, &[must::SAME_RELEASED, must::ACKNOWLEDGED_KEPT]);
}

#[test]
fn vote_for_shorter_log_is_caught() {
    let cluster = Cluster { in_flight_max: 2, ..cluster() };
    fails(cluster, Mutant::VoteForShorterLog, &[must::ACKNOWLEDGED_KEPT, must::RELEASED_STAYS]);
}

#[test]
fn single_quorum_change_is_caught() {
    if is_left_to_the_night() {
        return;
    }
    let cluster = Cluster { restarts: 1, ..replacing() };
    fails(cluster, Mutant::SingleQuorumChange, &[must::ONE_LEADER, must::ACKNOWLEDGED_KEPT]);
}

#[test]
fn forgotten_commit_is_caught() {
    if is_left_to_the_night() {
        return;
    }
    let cluster = Cluster { restarts: 1, batches: 0, ..growing() };
    fails(cluster, Mutant::ForgetCommit, &[must::ONE_LEADER, must::ACKNOWLEDGED_KEPT]);
}

#[test]
fn vote_after_power_cut_is_caught() {
    if is_left_to_the_night() {
        return;
    }
    let cluster = Cluster { power_cuts: 1, in_flight_max: 2, ..cluster() };
    fails(cluster, Mutant::VoteAfterPowerCut, &[must::ACKNOWLEDGED_KEPT, must::SAME_RELEASED]);
}
