use crate::ledger_process::{Run, example};
use std::process::Command;
use std::time::Duration;

fn number(text: &str) -> Option<u64> {
    text.strip_prefix("Ticket ")?.split_once(" is yours")?.0.parse().ok()
}

#[test]
fn counts_across_restarts_and_kills() {
    let folder = tempfile::tempdir().unwrap();
    let program = || {
        let mut command = Command::new(example("smallest"));
        command.current_dir(folder.path());
        command
    };
    let mut last = 0;
    for round in 0..20 {
        let run = Run::start(&mut program());
        if round % 2 == 0 {
            std::thread::sleep(Duration::from_millis(2 * round));
            run.signal(rustix::process::Signal::KILL);
        }
        let ended = run.end();
        let text = String::from_utf8(ended.out.clone()).unwrap();
        assert!(ended.was_killed() || ended.status.success(), "{}", ended.err);
        if let Some(number) = number(&text) {
            assert!(number > last, "ticket {number} was given after ticket {last}");
            last = number;
        }
        assert!(
            folder.path().join("target/smallest/journal").exists() || ended.was_killed(),
            "it says where its data is"
        );
    }
    assert!((10..=20).contains(&last), "ten runs were left alone, ten were killed: {last}");
}

#[test]
fn has_under_40_lines() {
    let source = include_str!("../../examples/smallest.rs");
    assert!(source.lines().count() < 40, "{} lines", source.lines().count());
}
