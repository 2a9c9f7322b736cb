//! A million calls and a thousand kills with `GAPLESS_FULL`, else a fifth.

use crate::counted::{
    Traffic, caller, check, counter_files, descriptors, every_slot_is_free, executions, files, open, start_caller,
    start_instance,
};
use gapless_rpc::Retry;
use gapless_testkit::process::Process;
use gapless_testkit::random::{Random, rounds};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::until;
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const KILLERS: u64 = 2;
const INSTANCES_OF_A_KILLER: usize = 2;

pub fn module() -> Module {
    Module::new(module_path!()).with_choices("kills_corrupt_no_answer", kills_corrupt_no_answer)
}

fn kill(
    number: u64,
    (domain, record): (&Path, &Path),
    random: &mut Random,
    (is_over, kills): (&AtomicBool, &AtomicU64),
) {
    let mut instances: Vec<Process> =
        (0..INSTANCES_OF_A_KILLER).map(|_| start_instance(domain, record, None)).collect();
    let mut lives = number << 12;
    let mut caller_process = start_caller(domain, lives, None, None);
    while !is_over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_micros(random.below(60_000)));
        let victim = random.below(INSTANCES_OF_A_KILLER as u64 + 1) as usize;
        let process = instances.get_mut(victim).unwrap_or(&mut caller_process);
        process.kill();
        // A process that ends by itself has seen a wrong answer.
        assert_eq!(process.wait().signal(), Some(9));
        kills.fetch_add(1, Ordering::Relaxed);
        if victim < INSTANCES_OF_A_KILLER {
            instances[victim] = start_instance(domain, record, None);
        } else {
            lives += 1;
            caller_process = start_caller(domain, lives, None, None);
        }
    }
}

fn kills_corrupt_no_answer(random: &mut Random) {
    let folder = tempfile::tempdir().unwrap();
    let (path, record) = (folder.path().join("domain"), folder.path().join("record"));
    let (path, record) = (path.as_path(), record.as_path());
    let domain = open(path);
    let policies = [Retry::Never, Retry::NotBegun, Retry::Always];
    let callers = policies.map(|retry| caller(&domain, retry));
    let mut first_instance = start_instance(path, record, None);
    assert_eq!(first_instance.line(), "serves");
    for (caller, number) in callers.iter().zip(0..) {
        assert!(caller.call(u64::MAX - number).is_ok());
    }
    let before = descriptors();
    drop(first_instance);
    let traffic: Vec<_> =
        callers.iter().zip(1..).map(|(caller, number)| Traffic::begin(caller, number << 60)).collect();
    let (is_over, kills) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let killers: Vec<_> = (1..=KILLERS)
            .map(|number| {
                let mut random = Random::new(random.number());
                let (is_over, kills) = (&is_over, &kills);
                scope.spawn(move || kill(number, (path, record), &mut random, (is_over, kills)))
            })
            .collect();
        let (calls_min, kills_min) = (rounds(1_000_000, 200_000), rounds(1_000, 200));
        let calls = || traffic.iter().map(Traffic::calls).sum::<u64>();
        // A call that never ends blocks its thread: the remaining ones are too few.
        while calls() < calls_min || kills.load(Ordering::Relaxed) < kills_min {
            let (calls_before, kills_before) = (calls(), kills.load(Ordering::Relaxed));
            until("calls and kills go on", || {
                calls() > calls_before && kills.load(Ordering::Relaxed) > kills_before
                    || killers.iter().any(std::thread::ScopedJoinHandle::is_finished)
            });
            assert!(!killers.iter().any(std::thread::ScopedJoinHandle::is_finished), "a process ended by itself");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let mut last = start_instance(path, record, None);
    assert_eq!(last.line(), "serves");
    let ended: Vec<_> = traffic.into_iter().map(Traffic::end).collect();
    let executions = executions(record);
    let mut calls = 0;
    for (ended, retry) in ended.iter().zip(policies) {
        let mut outcomes = BTreeMap::new();
        ended.iter().for_each(|(_, outcome)| *outcomes.entry(outcome).or_insert(0_u64) += 1);
        println!("retry {retry:?}: {outcomes:?}");
        check(ended, &executions, retry);
        calls += ended.len() as u64;
    }
    let is_of_the_killed = |number: &u64| *number >> 60 == 0;
    let of_the_killed = executions.iter().filter(|(number, _)| is_of_the_killed(number));
    let doubled = of_the_killed.clone().filter(|(_, times)| **times > 1).count();
    assert_eq!(doubled, 0, "calls of callers that were killed, too, begin once");
    println!(
        "{} kills; {calls} calls of callers that live, {} of callers that were killed; none wrong, none doubled",
        kills.load(Ordering::Relaxed),
        of_the_killed.count()
    );
    for (caller, first) in callers.iter().zip(1_u64..) {
        every_slot_is_free(caller, &last, first << 60 | 1 << 59);
    }
    until("the descriptors of the dead are closed", || descriptors() <= before);
    until("only the files of the living are there", || files(path) == 2);
    // The next process that opens the domain removes the files of dead ones.
    drop(open(path));
    assert_eq!(counter_files(path), 1, "only the living instance has a counter file");
}
