//! A service is killed with SIGKILL at each named crash point, under load, at the tiers `journal` and `sync`. After
//! each restart, repeats of acknowledged commands get the same bytes, and the final state is that of an independent
//! fold, also after snapshots and the deletion of older segments. The same check catches the planted mutants.
//!
//! CI kills once at each point, `GAPLESS_FULL` five times; needs debug assertions.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::fault_witness::process::{Kind, ServiceProcess};
use crate::fault_witness::witness::{Ended, Witness};
use gapless::journal::JournalReader;
use gapless::prelude::*;
use gapless_agent::fault::CRASH_POINTS;
use gapless_testkit::random::{Random, rounds};
use gapless_testkit::scenarios::Module;
use std::collections::BTreeMap;
use std::path::Path;

/// CI kills once, and more often only at missed points.
const KILLS_PER_POINT: u64 = 5;
const COMMANDS_PER_ATTEMPT: usize = 6000;
const KILLS_PER_MUTANT: u32 = 60;

pub fn module() -> Module {
    // Scenarios wait more than they compute.
    Module::new(module_path!())
        .side_by_side(4)
        .with_choices("nothing_is_lost_at_tier_journal", move |random| {
            nothing_is_lost_at_any_crash_point(Tier::Journal, Kind::EventSourced, random);
        })
        .with_choices("nothing_is_lost_at_tier_sync", move |random| {
            nothing_is_lost_at_any_crash_point(Tier::Sync, Kind::EventSourced, random);
        })
        .with_choices("nothing_is_lost_of_a_replicated_state_at_tier_journal", move |random| {
            nothing_is_lost_at_any_crash_point(Tier::Journal, Kind::StateReplicated, random);
        })
        .with_choices("nothing_is_lost_of_a_replicated_state_at_tier_sync", move |random| {
            nothing_is_lost_at_any_crash_point(Tier::Sync, Kind::StateReplicated, random);
        })
        .with_choices("the_mutant_drop_session_table_is_caught", move |random| {
            the_check_catches("drop_session_table", "before_reply", random);
        })
        .with_choices("the_mutant_acknowledge_before_journal_is_caught", move |random| {
            the_check_catches("acknowledge_before_journal", "before_journal_copy", random);
        })
}

/// Passes before the death: some points are passed by every frame, some by every segment.
fn passes(point: &str, tier: Tier, random: &mut Random) -> u64 {
    let most = match point {
        "between_claim_and_commit" | "before_reply" => 2000,
        "before_journal_copy" | "after_journal_copy" | "before_journaled_mark" => 100,
        // At tier journal only snapshots sync.
        "before_sync" | "after_sync" if tier == Tier::Sync => 50,
        _ => 3,
    };
    1 + random.below(most)
}

fn one_life(
    directory: &Path,
    (tier, kind): (Tier, Kind),
    environment: &[(&str, &str)],
    witness: &mut Option<Witness>,
    random: &mut Random,
) -> Result<bool, String> {
    let mut service = ServiceProcess::start(directory, tier, kind, environment);
    if service.is_ready()? {
        let mut ended = Ended::Answered;
        match witness {
            None => *witness = Some(Witness::connect(&directory.join("node.socket"), random)?),
            Some(witness) => ended = witness.go_on(&mut service)?,
        }
        let witness = witness.as_mut().unwrap();
        if ended == Ended::Answered && witness.load(random, COMMANDS_PER_ATTEMPT)? == Ended::Answered {
            service.kill();
            return Ok(false);
        }
    }
    let (status, said) = service.wait();
    match (std::os::unix::process::ExitStatusExt::signal(&status), said.is_empty()) {
        (Some(9), true) => Ok(true),
        _ => Err(format!("the service ended with {status} and said: {said}")),
    }
}

fn nothing_is_lost_at_any_crash_point(tier: Tier, kind: Kind, random: &mut Random) {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let mut witness = None;
    one_life(place, (tier, kind), &[], &mut witness, random).unwrap();
    let mut hits: BTreeMap<&str, u32> = CRASH_POINTS.into_iter().map(|point| (point, 0)).collect();
    for round in 0..KILLS_PER_POINT {
        for point in CRASH_POINTS {
            if round >= rounds(KILLS_PER_POINT, 1) && hits[point] > 0 {
                continue;
            }
            let armed = format!("{point}:{}", passes(point, tier, random));
            let hit = one_life(place, (tier, kind), &[("GAPLESS_CRASH_POINT", &armed)], &mut witness, random);
            let hit = hit.unwrap_or_else(|problem| panic!("tier {tier}, killed at {armed}: {problem}"));
            *hits.get_mut(point).unwrap() += u32::from(hit);
        }
    }
    let mut service = ServiceProcess::start(place, tier, kind, &[]);
    assert!(service.is_ready().unwrap());
    let witness = witness.as_mut().unwrap();
    assert_eq!(witness.go_on(&mut service), Ok(Ended::Answered));
    let commands = witness.check_everything(random).unwrap_or_else(|problem| panic!("tier {tier}: {problem}"));

    println!("tier {tier}: {commands} commands, {} repeats answered with the original bytes", witness.repeats_checked);
    for (point, hits) in &hits {
        println!("  {point:<26} {hits} hits");
    }
    for (point, hits) in &hits {
        assert!(*hits > 0, "tier {tier}: nothing was killed at {point}");
    }
    assert!(witness.repeats_checked > 0);
    let oldest = JournalReader::open(place.join("journal")).unwrap().first_sequence();
    assert!(oldest > 1, "older segments were deleted: the journal begins at {oldest}");
}

fn the_check_catches(mutant: &str, point: &str, random: &mut Random) {
    let directory = tempfile::tempdir().unwrap();
    let lives = (Tier::Journal, Kind::EventSourced);
    let mut witness = None;
    one_life(directory.path(), lives, &[("GAPLESS_MUTANT", mutant)], &mut witness, random).unwrap();
    for kill in 1..=KILLS_PER_MUTANT {
        let armed = format!("{point}:{}", passes(point, Tier::Journal, random));
        let environment = [("GAPLESS_MUTANT", mutant), ("GAPLESS_CRASH_POINT", &armed)];
        if let Err(problem) = one_life(directory.path(), lives, &environment, &mut witness, random) {
            println!("mutant {mutant}: caught after {kill} kills: {problem}");
            return;
        }
    }
    panic!("mutant {mutant} survived {KILLS_PER_MUTANT} kills");
}
