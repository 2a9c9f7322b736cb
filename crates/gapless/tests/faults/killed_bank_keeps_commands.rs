//! A bank with a command bus is killed with SIGKILL at each named step of a command, of its journal and of its index,
//! under load. A checker that reads only the journal compares it with the tellers' outcomes: no accepted command is
//! lost or applied twice, a refused command had no effect, each answer matches the accounts at its time. The same check
//! catches the planted mutants.
//!
//! CI kills once at each point, `GAPLESS_FULL` five times; needs debug assertions.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::bank_witness::answers::{self, Balances};
use crate::bank_witness::process::BankProcess;
use crate::bank_witness::tellers::Tellers;
use gapless::prelude::Tier;
use gapless_agent::fault::COMMAND_CRASH_POINTS;
use gapless_bus_checker::{History, OutcomeCounts};
use gapless_testkit::folder;
use gapless_testkit::random::{Random, rounds};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::until_some;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const STREAM_CRASH_POINTS: [&str; 8] = [
    "between_claim_and_commit",
    "before_journal_copy",
    "after_journal_copy",
    "before_journaled_mark",
    "before_reply",
    "in_snapshot_write",
    "before_snapshot_rename",
    "before_segment_roll",
];
/// CI kills once, and more often only at missed points.
const KILLS_PER_POINT: u64 = 5;
const OUTCOMES_PER_ATTEMPT: u64 = 6000;
const KILLS_PER_MUTANT: u32 = 40;

pub fn module() -> Module {
    // Scenarios wait more than they compute.
    Module::new(module_path!())
        .side_by_side(4)
        .in_full("at_tier_journal", |random| at_each_point(Tier::Journal, random))
        .with_choices("at_tier_sync", |random| at_each_point(Tier::Sync, random))
        .with_choices("foreign_index_is_rebuilt", |random| {
            with_foreign_index(&[], random).unwrap_or_else(|problem| panic!("{problem}"));
        })
        .with_choices("stale_index_mutant_is_caught", |random| {
            let outcome = with_foreign_index(&[("GAPLESS_MUTANT", "believe_stale_index")], random);
            println!("mutant believe_stale_index: caught: {}", outcome.expect_err("nothing was found"));
        })
        .with_choices("drop_identifiers_mutant_is_caught", drop_identifiers_mutant_is_caught)
}

/// Passes before the death: some points are passed by every command, some by every file of the index.
fn passes(point: &str, random: &mut Random) -> u64 {
    let most = match point {
        "command_decided" | "transaction_appended" | "transaction_released" | "between_claim_and_commit" => 1500,
        "before_reply" => 800,
        "before_journal_copy" | "after_journal_copy" | "before_journaled_mark" => 60,
        "aggregate_loading" | "aggregate_loaded" => 200,
        "transaction_between_frames" => 10,
        "index_opening" => 1,
        _ => 3,
    };
    1 + random.below(most)
}

struct Bank<'a> {
    directory: &'a Path,
    tier: Tier,
    tellers: Tellers,
}

impl<'a> Bank<'a> {
    fn new(directory: &'a Path, tier: Tier, random: &mut Random) -> Self {
        Self { directory, tier, tellers: Tellers::start(&[socket(directory)], random) }
    }

    fn live(&self, environment: &[(&str, &str)], outcomes: u64) -> Result<bool, String> {
        let mut process = BankProcess::start(self.directory, self.tier, environment);
        let goal = self.tellers.answered() + outcomes;
        let has_ended = until_some("the bank dies, or answers", || {
            if process.has_ended() {
                return Some(true);
            }
            let has_problem = || self.tellers.known().problem.is_some();
            (self.tellers.answered() >= goal || has_problem()).then_some(false)
        });
        process.kill()?;
        Ok(has_ended)
    }

    fn check(&self) -> Result<(OutcomeCounts, Balances), String> {
        answers::check_outcomes(&History::read(&self.directory.join("journal"))?, &self.tellers.known())
    }

    fn compare(&self, balances: &Balances) -> Result<(), String> {
        let mut process = BankProcess::start(self.directory, self.tier, &[]);
        answers::compare(&[socket(self.directory)], balances)?;
        process.kill()
    }
}

fn socket(directory: &Path) -> PathBuf {
    directory.join("node.socket")
}

fn at_each_point(tier: Tier, random: &mut Random) {
    let directory = tempfile::tempdir().unwrap();
    let mut bank = Bank::new(directory.path(), tier, random);
    let sync = ["before_sync", "after_sync"];
    let points = STREAM_CRASH_POINTS.into_iter().chain(COMMAND_CRASH_POINTS);
    let points: Vec<_> = points.chain(sync.into_iter().filter(|_| tier == Tier::Sync)).collect();
    let mut hits: BTreeMap<&str, u32> = points.iter().map(|point| (*point, 0)).collect();
    assert!(!bank.live(&[], 300).unwrap());
    for round in 0..KILLS_PER_POINT {
        for point in &points {
            if round >= rounds(KILLS_PER_POINT, 1) && hits[point] > 0 {
                continue;
            }
            let armed = format!("{point}:{}", passes(point, random));
            let hit = bank.live(&[("GAPLESS_CRASH_POINT", &armed)], OUTCOMES_PER_ATTEMPT);
            let checked = hit.and_then(|hit| bank.check().map(|_| hit));
            let hit = checked.unwrap_or_else(|problem| panic!("tier {tier}, killed at {armed}: {problem}"));
            *hits.get_mut(point).unwrap() += u32::from(hit);
        }
    }
    assert!(!bank.live(&[], 300).unwrap());
    bank.tellers.finish();
    let (counts, balances) = bank.check().unwrap_or_else(|problem| panic!("tier {tier}, at the end: {problem}"));
    bank.compare(&balances).unwrap_or_else(|problem| panic!("tier {tier}: {problem}"));

    let repeated = bank.tellers.repeated();
    println!("tier {tier}: {counts:?}, {} accounts, {repeated} commands came again", balances.len());
    for (point, hits) in &hits {
        println!("  {point:<26} {hits} hits");
    }
    for (point, hits) in &hits {
        assert!(*hits > 0, "tier {tier}: nothing was killed at {point}");
    }
    assert!(repeated > 0 && counts.accepted > 0 && counts.refused > 0);
}

/// The directory is older than the index, as after a power failure that lost the newest frames.
fn with_foreign_index(environment: &[(&str, &str)], random: &mut Random) -> Result<(), String> {
    let parent = tempfile::tempdir().unwrap();
    let (directory, copy) = (parent.path().join("bank"), parent.path().join("copy"));
    let index = directory.join("index");
    let bank = Bank::new(&directory, Tier::Journal, random);
    bank.live(environment, 1500)?;
    bank.check()?;
    folder::copy(&directory, &copy);
    bank.live(environment, 3000)?;
    drop(bank);
    folder::copy(&index, &copy.join("index"));
    folder::copy(&copy, &directory);
    let mut bank = Bank::new(&directory, Tier::Journal, random);
    bank.live(environment, 1500)?;
    bank.tellers.finish();
    let history = History::read(&directory.join("journal"))?;
    history.check(answers::IDENTIFIERS_MAX)?;
    if let Some(problem) = &bank.tellers.known().problem {
        return Err(problem.clone());
    }
    bank.compare(&answers::check(&history, &BTreeMap::new())?)
}

fn drop_identifiers_mutant_is_caught(random: &mut Random) {
    let directory = tempfile::tempdir().unwrap();
    let bank = Bank::new(directory.path(), Tier::Journal, random);
    let mutant = ("GAPLESS_MUTANT", "drop_identifiers");
    for kill in 1..=KILLS_PER_MUTANT {
        let armed = format!("transaction_released:{}", passes("transaction_released", random));
        let lived = bank.live(&[mutant, ("GAPLESS_CRASH_POINT", &armed)], OUTCOMES_PER_ATTEMPT);
        if let Err(problem) = lived.and_then(|_| bank.check()) {
            println!("mutant drop_identifiers: caught after {kill} kills: {problem}");
            return;
        }
    }
    panic!("mutant drop_identifiers survived {KILLS_PER_MUTANT} kills");
}
