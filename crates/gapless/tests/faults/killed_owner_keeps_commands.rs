//! A bank in a process that owns its bus is killed with SIGKILL at each named step, and checked as in
//! `killed_bank_keeps_commands`; finally a host continues with the same directory. Needs debug assertions.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::bank_witness::answers;
use crate::bank_witness::process::BankProcess;
use crate::bank_witness::tellers::Teller;
use gapless::prelude::Tier;
use gapless_agent::fault::COMMAND_CRASH_POINTS;
use gapless_bus_checker::History;
use gapless_testkit::random::{Random, rounds};
use gapless_testkit::scenarios::Module;
use std::collections::BTreeSet;

const OUTCOMES_PER_ATTEMPT: u64 = 1500;

pub fn module() -> Module {
    // Scenarios wait more than they compute.
    Module::new(module_path!())
        .side_by_side(4)
        .in_full("at_tier_journal", |random| at_each_point(Tier::Journal, random))
        .with_choices("at_tier_sync", |random| at_each_point(Tier::Sync, random))
}

fn at_each_point(tier: Tier, random: &mut Random) {
    let directory = tempfile::tempdir().unwrap();
    let mut teller = Teller::single(random);
    let journal = ["before_journal_copy", "after_journal_copy", "before_journaled_mark", "before_segment_roll"];
    let (mut hit, mut deaths) = (BTreeSet::new(), 0);
    let live = |teller: &mut Teller, step: Option<&str>, outcomes: u64| {
        let environment: Vec<_> = step.iter().map(|step| ("GAPLESS_CRASH_POINT", *step)).collect();
        let mut process = BankProcess::start_owner(directory.path(), tier, &environment);
        let has_died = teller.drive_owner(&mut process, outcomes);
        process.kill().unwrap_or_else(|problem| panic!("tier {tier}, with {step:?}: {problem}"));
        let history = History::read(&directory.path().join("journal")).unwrap();
        let checked = answers::check_outcomes(&history, &teller.known());
        (has_died, checked.unwrap_or_else(|problem| panic!("tier {tier}, killed at {step:?}: {problem}")))
    };
    live(&mut teller, None, 300);
    for _ in 0..rounds(5, 1) {
        for point in COMMAND_CRASH_POINTS.into_iter().chain(journal) {
            let most = match point {
                "command_decided" | "transaction_appended" | "transaction_released" => 600,
                "aggregate_loading" | "aggregate_loaded" => 100,
                _ => 3,
            };
            let step = format!("{point}:{}", 1 + random.below(most));
            let (has_died, _) = live(&mut teller, Some(&step), OUTCOMES_PER_ATTEMPT);
            deaths += u32::from(has_died);
            hit.extend(has_died.then_some(point));
        }
    }
    let (_, (counts, balances)) = live(&mut teller, None, 300);
    let mut host = BankProcess::start(directory.path(), tier, &[]);
    answers::compare(&[directory.path().join("node.socket")], &balances).unwrap_or_else(|problem| panic!("{problem}"));
    host.kill().unwrap();
    let (_, repeated) = teller.counts();
    println!("tier {tier}: {deaths} deaths at {hit:?}: {counts:?}, {} accounts, {repeated} came again", balances.len());
    assert!(hit.len() > 8 && repeated > 0 && counts.accepted > 0 && counts.refused > 0);
}
