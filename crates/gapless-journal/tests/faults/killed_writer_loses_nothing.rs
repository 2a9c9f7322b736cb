//! No acknowledged frame is lost or duplicated; acknowledgements go through a pipe, whose contents survive the process.
//! With debug assertions the process also kills itself at each named crash point; the hits are printed and must not be
//! zero. The mutant that skips truncation must be caught.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use crate::support::{self, append, batch, end_of_frames, overwrite, payload, read_all};
use gapless_journal::{Flush, Journal, JournalError, JournalOptions, inspect};
use gapless_testkit::random::rounds;
use gapless_testkit::scenarios::Module;

fn kills_from_outside_count() -> u64 {
    rounds(12, 4)
}

fn kills_per_point() -> u64 {
    rounds(6, 2)
}

const POINTS: [&str; 8] = [
    "before_journal_copy",
    "after_journal_copy",
    "before_journaled_mark",
    "before_sync",
    "after_sync",
    "before_segment_roll",
    "after_segment_roll",
    "after_segment_name",
];

pub fn module() -> Module {
    let module = Module::new(module_path!()).scenario("kills_from_outside", kills_from_outside);
    if cfg!(debug_assertions) {
        module
            .scenario("kills_at_every_point", kills_at_every_point)
            .scenario("the_mutant_is_caught", the_mutant_is_caught)
    } else {
        module
    }
}

const WRITER: &str = "killed_writer_loses_nothing::writer";

pub fn run_as_writer_if_requested() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, role, directory, seed] = &arguments[..]
        && role == WRITER
    {
        let error = write(Path::new(directory), seed.parse().unwrap()).unwrap_err();
        eprintln!("{error}");
        std::process::exit(3);
    }
}

fn options(directory: &Path) -> JournalOptions {
    JournalOptions { environment: Default::default(), ..support::options(directory) }
}

fn write(directory: &Path, seed: u64) -> Result<(), JournalError> {
    let mut options = options(directory);
    let way = |bit: u32| if seed >> bit & 1 == 0 { Flush::Mapped } else { Flush::Write };
    (options.flush, options.marks) = (way(0), way(1));
    options.flush_on_commit = true;
    let (mut journal, _) = Journal::open(options)?;
    let (preparer, syncer) = (journal.preparer(), journal.syncer());
    std::thread::spawn(move || preparer.run());
    std::thread::spawn(move || {
        let mut said = 0;
        while let Ok(synced) = syncer.sync() {
            if synced > said {
                say(b'S', synced);
                said = synced;
            }
            std::thread::yield_now();
        }
    });
    let mut random = seed;
    loop {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (first, count) = (journal.last_sequence() + 1, (random >> 33) % 50 + 1);
        journal.append(&batch(first, count, 0), first, first + count - 1)?;
        say(b'J', journal.commit()?);
    }
}

fn say(what: u8, sequence: u64) {
    let mut message = [what; 9];
    message[1..].copy_from_slice(&sequence.to_le_bytes());
    // A write of a few bytes to a pipe is atomic.
    std::io::stdout().lock().write_all(&message).and_then(|()| std::io::stdout().flush()).unwrap();
}

struct Death {
    journaled: u64,
    synced: u64,
    acknowledgements: u64,
    status: ExitStatus,
    error: String,
}

fn run(directory: &Path, seed: u64, environment: &[(&str, String)], kill_after: u64) -> Death {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([WRITER, directory.to_str().unwrap(), &seed.to_string()])
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdout.take().unwrap();
    let (mut journaled, mut synced, mut acknowledgements) = (0, 0, 0);
    let mut message = [0; 9];
    while pipe.read_exact(&mut message).is_ok() {
        let sequence = u64::from_le_bytes(message[1..].try_into().unwrap());
        match message[0] {
            b'J' => journaled = sequence,
            b'S' => synced = sequence,
            other => panic!("the process said {other}"),
        }
        acknowledgements += 1;
        if acknowledgements == kill_after {
            child.kill().unwrap();
        }
    }
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    Death { journaled, synced, acknowledgements, status: output.status, error }
}

fn died_by_kill(death: &Death) -> bool {
    std::os::unix::process::ExitStatusExt::signal(&death.status) == Some(9)
}

/// Imitates a torn copy: the start of a frame after the last intact one.
fn tear(directory: &Path) {
    let info = inspect::info(directory).unwrap();
    let newest = info.segments.last().unwrap();
    let end = end_of_frames(&newest.path);
    if end + 40 <= newest.length_bytes {
        overwrite(&newest.path, end, &[0xee; 40]);
    }
}

fn check(directory: &Path, acknowledged: u64) -> Result<u64, String> {
    let mut last = 0;
    for round in ["read beside the dead writer", "read after recovery"] {
        let frames = read_all(directory, Default::default(), 1).map_err(|error| format!("{round}: {error}"))?;
        for ((sequence, found), expected) in frames.iter().zip(1..) {
            if *sequence != expected || *found != payload(expected, 0) {
                return Err(format!("{round}: frame {expected} is another"));
            }
        }
        last = frames.len() as u64;
        if last < acknowledged {
            return Err(format!("{round}: {acknowledged} acknowledged, {last} there"));
        }
        let (journal, report) = Journal::open(options(directory)).map_err(|error| format!("{round}: {error}"))?;
        if report.last_sequence < last {
            return Err(format!("{round}: recovery kept {} of {last}", report.last_sequence));
        }
        drop(journal);
    }
    Ok(last)
}

fn kills_from_outside() {
    let directory = tempfile::tempdir().unwrap();
    let mut acknowledged = 0;
    for round in 0..kills_from_outside_count() {
        let death = run(directory.path(), round, &[], round * round + 1);
        assert!(died_by_kill(&death), "{}", death.error);
        acknowledged = acknowledged.max(death.journaled).max(death.synced);
        if round % 2 == 1 {
            tear(directory.path());
        }
        acknowledged = check(directory.path(), acknowledged).unwrap();
    }
    let kills = kills_from_outside_count();
    println!("killed from outside {kills} times: {acknowledged} frames, nothing lost, nothing doubled");
    if !cfg!(debug_assertions) {
        println!("skipped: kills at named crash points need debug assertions");
    }
}

fn kills_at_every_point() {
    for point in POINTS {
        let directory = tempfile::tempdir().unwrap();
        let (mut hits, mut acknowledged) = (0, 0);
        for round in 0..kills_per_point() {
            let at = (format!("{point}:{}", round * 3 + 1), u64::MAX);
            let death = run(directory.path(), round, &[("GAPLESS_CRASH_POINT", at.0)], at.1);
            assert!(died_by_kill(&death), "{point}: {}", death.error);
            hits += 1;
            acknowledged = acknowledged.max(death.journaled).max(death.synced);
            if round % 2 == 1 {
                tear(directory.path());
            }
            acknowledged = check(directory.path(), acknowledged).unwrap_or_else(|error| panic!("{point}: {error}"));
        }
        println!("{point}: {hits} hits, {acknowledged} frames, nothing lost, nothing doubled");
        assert!(hits > 0);
    }
}

fn the_mutant_is_caught() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 50, 10, 0);
    drop(journal);
    tear(directory.path());
    let mutant = [("GAPLESS_MUTANT", "skip_truncation".to_owned())];
    let death = run(directory.path(), 1, &mutant, 5);
    assert!(died_by_kill(&death) && death.acknowledgements >= 5, "{}", death.error);
    let caught = check(directory.path(), death.journaled).unwrap_err();
    println!("the mutant skip_truncation is caught: {caught}");
}
