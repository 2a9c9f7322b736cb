//! A service is killed with SIGKILL from outside, at random moments: while it starts, recovers, works, writes snapshots
//! or rolls segments. The witness finally checks everything that was ever acknowledged.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::fault_witness::process::{Kind, ServiceProcess};
use crate::fault_witness::witness::{Ended, Witness};
use gapless::journal::JournalReader;
use gapless::prelude::*;
use gapless_testkit::random::{Random, rounds};
use gapless_testkit::scenarios::Module;
use std::path::Path;

/// CI does a fifth.
const KILLS: u64 = 25;

pub fn module() -> Module {
    // Scenarios wait more than they compute.
    Module::new(module_path!())
        .side_by_side(4)
        .with_choices("at_tier_journal", |random| {
            kill_at_random_moments(Tier::Journal, Kind::EventSourced, random);
        })
        .with_choices("at_tier_sync", |random| {
            kill_at_random_moments(Tier::Sync, Kind::EventSourced, random);
        })
        .with_choices("with_a_replicated_state_at_tier_journal", |random| {
            kill_at_random_moments(Tier::Journal, Kind::StateReplicated, random);
        })
        .with_choices("with_a_replicated_state_at_tier_sync", |random| {
            kill_at_random_moments(Tier::Sync, Kind::StateReplicated, random);
        })
}

fn kill_at_random_moments(tier: Tier, kind: Kind, random: &mut Random) {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let mut witness = first_life(place, tier, kind, random);
    let (mut at_work, mut at_start) = (0, 0);
    for _ in 0..rounds(KILLS, KILLS / 5) {
        let mut service = ServiceProcess::start(place, tier, kind, &[]);
        if random.below(4) == 0 {
            std::thread::sleep(Duration::from_micros(random.below(40_000)));
            service.kill();
            at_start += 1;
            continue;
        }
        assert!(service.is_ready().unwrap());
        assert_eq!(witness.go_on(&mut service).unwrap(), Ended::Answered);
        let wanted = 1 + random.below(3000) as usize;
        assert_eq!(witness.load(random, wanted).unwrap(), Ended::Answered);
        service.kill();
        at_work += 1;
        let (status, said) = service.wait();
        assert_eq!(said, "", "{status}");
    }
    let mut service = ServiceProcess::start(place, tier, kind, &[]);
    assert!(service.is_ready().unwrap());
    assert_eq!(witness.go_on(&mut service).unwrap(), Ended::Answered);
    let commands = witness.check_everything(random).unwrap_or_else(|problem| panic!("tier {tier}: {problem}"));
    println!(
        "tier {tier}: {at_work} kills at work, {at_start} while it started; {commands} commands, {} repeats answered \
         with the original bytes",
        witness.repeats_checked
    );
    assert!(witness.repeats_checked > 0);
    service.ask_to_stop();
    let (status, said) = service.wait();
    assert!(status.success(), "{status}: {said}");
    let oldest = JournalReader::open(place.join("journal")).unwrap().first_sequence();
    assert!(oldest > 1, "older segments were deleted: the journal begins at {oldest}");
}

fn first_life(place: &Path, tier: Tier, kind: Kind, random: &mut Random) -> Witness {
    let mut service = ServiceProcess::start(place, tier, kind, &[]);
    assert!(service.is_ready().unwrap());
    let mut witness = Witness::connect(&place.join("node.socket"), random).unwrap();
    assert_eq!(witness.load(random, 5000).unwrap(), Ended::Answered);
    service.kill();
    witness
}
