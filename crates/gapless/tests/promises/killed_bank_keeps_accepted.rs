//! The stream is read by a host without aggregates.

use crate::ledger_process::{Run, example};
use gapless::Host;
use gapless::cqrs::{CommandModel, Position};
use gapless_testkit::random::{Random, rounds};
use rustix::process::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn bank(directory: &Path, words: &[&str]) -> Run {
    let mut command = Command::new(example("bank"));
    command.arg(directory).args(["--accounts", "50"]).args(words);
    Run::start(&mut command)
}

fn recorded(directory: &Path) -> BTreeMap<u64, usize> {
    let host = Host::in_directory(directory).aggregates(CommandModel::new()).start().unwrap();
    let (mut reader, mut found) = (host.events(Position::default()).unwrap(), BTreeMap::new());
    while let Some(mut transaction) = reader.next_transaction().unwrap() {
        let events = std::iter::from_fn(|| transaction.next_event().unwrap()).count();
        found.insert(transaction.sequence, events);
    }
    host.stop().unwrap();
    found
}

#[test]
fn accepted_survives_any_kill() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("bank");
    let mut random = Random::seeded();
    let (mut told, mut killed) = (BTreeSet::new(), 0);
    let (mut runs, runs_min) = (0, rounds(12, 4));
    while runs < runs_min || told.is_empty() || killed == 0 {
        let run = bank(&directory, &["--transfers", "4000", "--tell"]);
        // A busy machine may take longer until the first transfer.
        let wait_ms_max = if told.is_empty() { 400 << (runs / runs_min).min(6) } else { 400 };
        std::thread::sleep(Duration::from_millis(random.below(wait_ms_max)));
        runs += 1;
        run.signal(Signal::KILL);
        let ended = run.end();
        assert!(ended.was_killed() || ended.status.success(), "{}", ended.err);
        killed += u64::from(ended.was_killed());
        let lines = String::from_utf8(ended.out).unwrap();
        let whole = lines.rsplit_once('\n').map_or("", |(whole, _)| whole);
        told.extend(whole.lines().filter_map(|line| line.parse::<Position>().ok()).map(|position| position.sequence));
        let recorded = recorded(&directory);
        for sequence in &told {
            assert_eq!(recorded.get(sequence), Some(&2), "transfer {sequence} was accepted");
        }
    }
    println!("{killed} of {runs} were killed, {} transfers were told of", told.len());
    let ended = bank(&directory, &["--transfers", "100"]).end();
    let said = String::from_utf8(ended.out.clone()).unwrap();
    assert!(ended.status.success() && said.contains("the sum is what was paid in"), "{said}{}", ended.err);
    let statement = bank(&directory, &["--statement", "3"]).end();
    assert!(String::from_utf8(statement.out).unwrap().contains("Opened(\"owner 3\")"));
}
