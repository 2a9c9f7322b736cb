//! Every target passes its corpus and a short run of mutations of it. `GAPLESS_FUZZ_SEED` replays a run;
//! `GAPLESS_FUZZ_RUNS` is the number of mutations for each target.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::mutation::Mutator;
use gapless_fuzz::{FuzzTarget, TARGETS};
use gapless_testkit::random::rounds;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// For each target; a tenth runs with every change.
const RUNS: u64 = 2_000;
/// Seeds are read by people and carried by every clone.
const CORPUS_LENGTH_MAX: usize = 256 * 1024;
/// A longer run is an endless loop on any machine.
const TIMEOUT: Duration = Duration::from_secs(120);

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = fuzz_folder().join("corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap())
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files
}

fn feed(name: &str, target: FuzzTarget, bytes: &[u8], origin: &str) {
    let outcome = catch_unwind(AssertUnwindSafe(|| target(bytes)));
    if outcome.is_err() {
        show(name, bytes, origin, "panicked (the message is above)");
    }
}

fn show(name: &str, bytes: &[u8], origin: &str, what: &str) -> ! {
    let path = std::env::temp_dir().join(format!("gapless-fuzz-{name}-{}", std::process::id()));
    let kept = match std::fs::write(&path, bytes) {
        Ok(()) => path.display().to_string(),
        Err(error) => format!("nowhere ({error})"),
    };
    let hex: String = bytes.iter().take(512).map(|byte| format!("{byte:02x}")).collect();
    let more = if bytes.len() > 512 { " …" } else { "" };
    panic!("target {name} {what} on {origin}; its {} bytes are in {kept}: {hex}{more}", bytes.len());
}

/// Runs `inputs` on a separate thread; returns the failure.
fn watched(name: &'static str, inputs: impl FnOnce(&mut dyn FnMut(&[u8], &str)) + Send + 'static) -> Option<String> {
    let target = TARGETS.iter().find(|(other, _)| *other == name).unwrap().1;
    let (began, watch): (_, Receiver<(Vec<u8>, String)>) = channel();
    let run = move || {
        inputs(&mut |bytes, origin| {
            began.send((bytes.to_vec(), origin.to_owned())).unwrap();
            feed(name, target, bytes, origin);
        });
    };
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run).unwrap();
    let mut last = (Vec::new(), "nothing".to_owned());
    loop {
        match watch.recv_timeout(TIMEOUT) {
            Ok(input) => last = input,
            Err(RecvTimeoutError::Timeout) => show(name, &last.0, &last.1, "does not come to an end"),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let panic = thread.join().err()?;
    Some(panic.downcast_ref::<String>().cloned().unwrap_or_else(|| format!("target {name}: its input cannot be made")))
}

#[test]
fn targets_have_a_file_and_corpus() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(targets.len(), TARGETS.len(), "no name twice");
    let names = |folder: &str| -> BTreeSet<String> {
        let entries = std::fs::read_dir(fuzz_folder().join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect()
    };
    assert_eq!(names("fuzz_targets"), targets, "fuzz/fuzz_targets has one file for each target");
    assert_eq!(names("corpus"), targets, "fuzz/corpus has one folder for each target");
    let manifest = std::fs::read_to_string(fuzz_folder().join("Cargo.toml")).unwrap();
    for name in &targets {
        let file = std::fs::read_to_string(fuzz_folder().join(format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(file.contains(&format!("gapless_fuzz::target(\"{name}\")")), "{name}.rs runs another target");
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name} is not in fuzz/Cargo.toml");
    }
    let length: usize = TARGETS.iter().flat_map(|(name, _)| corpus(name)).map(|(_, bytes)| bytes.len()).sum();
    assert!(length <= CORPUS_LENGTH_MAX, "{length} bytes of seeds, at most {CORPUS_LENGTH_MAX} are expected");
}

#[test]
fn targets_pass_their_corpus() {
    let mut failures = Vec::new();
    for (name, _) in TARGETS {
        failures.extend(watched(name, move |feed| {
            feed(&[], "no bytes at all");
            for (file, bytes) in corpus(name) {
                feed(&bytes, &format!("its seed {file}"));
            }
        }));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn targets_pass_mutated_corpora() {
    let variable = |name| std::env::var(name).ok().map(|text| text.parse().expect("a number is expected"));
    let seed: u64 = variable("GAPLESS_FUZZ_SEED").unwrap_or_else(|| u64::from(std::process::id()) << 32 | now_ns());
    let runs = variable("GAPLESS_FUZZ_RUNS").unwrap_or_else(|| rounds(RUNS, RUNS / 10));
    println!("GAPLESS_FUZZ_SEED={seed}");
    let mut failures = Vec::new();
    for (name, _) in TARGETS {
        let begun = std::time::Instant::now();
        failures.extend(watched(name, move |feed| {
            let corpus: Vec<Vec<u8>> = corpus(name).into_iter().map(|(_, bytes)| bytes).collect();
            let mut mutator = Mutator::new(seed, name);
            for run in 0..runs {
                feed(&mutator.next(&corpus), &format!("mutation {run} of GAPLESS_FUZZ_SEED={seed}"));
            }
        }));
        println!("{name}: {runs} mutations in {} ms", begun.elapsed().as_millis());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn now_ns() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::from(now.subsec_nanos())
}
