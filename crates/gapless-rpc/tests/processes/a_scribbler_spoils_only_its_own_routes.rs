//! A process that writes over everything that it shares and may write spoils calls of the routes that it serves or calls, and
//! nothing else.

use super::copy_process::{Ask, Told, scribble, start};
use gapless_rpc::{CallOptions, Caller, Domain, DomainOptions};
use gapless_testkit::process::{Process, started_as, this_program};
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const MAD_CALLER: &str = "be-a-mad-caller";

/// In so many rounds.
pub fn module(rounds: u32) -> Module {
    Module::new(module_path!())
        .with_choices("of_a_copy_another_route_does_not_notice", move |random| a_copy_scribbles(rounds, random))
        .with_choices("of_a_caller_its_copy_and_others_do_not_notice", move |random| a_caller_scribbles(rounds, random))
}

/// For calls of what is scribbled over.
fn short() -> CallOptions {
    CallOptions { timeout: Some(Duration::from_millis(3)), ..CallOptions::default() }
}

fn assert_sound(caller: &Caller<Ask, Told>, round: u32) {
    for number in 0..5 {
        assert_eq!(caller.call(Ask::Increment(number)), Ok(Told::Number(number + 1)), "in round {round}");
    }
}

fn a_copy_scribbles(rounds: u32, random: &mut Random) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let domain = Domain::open_directory(&path, DomainOptions::default()).unwrap();
    let mut mad = start(&path, 2, &["mad"]);
    let mut sane = start(&path, 2, &["sane"]);
    let mut orders = mad.input();
    let spoiled = domain.caller::<Ask, Told>("mad").unwrap();
    let sound = domain.caller::<Ask, Told>("sane").unwrap();
    let (mut replies, mut others, mut lives) = (0, 0, 1);
    for round in 0..rounds {
        let is_told = writeln!(orders, "scribble {}", random.below(u64::MAX)).is_ok();
        let pending: Vec<_> = (0..4).map(|number| spoiled.start_with(Ask::Increment(number), &short())).collect();
        assert_sound(&sound, round);
        // Whatever comes of these, it comes, and this process goes on.
        for call in pending {
            match call.wait() {
                Ok(_) => replies += 1,
                Err(_) => others += 1,
            }
        }
        // It may have killed itself.
        if !is_told || mad.next_line().is_none() {
            mad.kill();
            mad = start(&path, 2, &["mad"]);
            orders = mad.input();
            lives += 1;
        }
    }
    println!("{rounds} rounds, {lives} lives: {replies} replies, {others} other outcomes where it was scribbled over");
    mad.kill();
    assert_sound(&sound, rounds);
    assert!(sane.ended().is_none());
}

/// Calls its copy, and scribbles when it is told to.
pub fn be_a_caller_if_asked() {
    let Some(arguments) = started_as(MAD_CALLER) else { return };
    let domain = Domain::open_directory(&arguments[0], DomainOptions::default()).unwrap();
    let caller = domain.caller::<Ask, Told>("called").unwrap();
    let _ = caller.call(Ask::Increment(0));
    println!("calls");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let pending: Vec<_> = (0..4).map(|number| caller.start_with(Ask::Increment(number), &short())).collect();
        scribble(&mut Random::new(line.parse().unwrap()));
        pending.into_iter().for_each(|call| drop(call.wait()));
        println!("scribbled");
    }
    std::process::exit(0);
}

fn start_mad_caller(domain: &Path) -> Process {
    let mut command = this_program();
    command.arg(MAD_CALLER).arg(domain).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut process = Process::start(&mut command);
    assert_eq!(process.line(), "calls");
    process
}

fn a_caller_scribbles(rounds: u32, random: &mut Random) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let domain = Domain::open_directory(&path, DomainOptions::default()).unwrap();
    let mut called = start(&path, 2, &["called"]);
    let mut sane = start(&path, 2, &["sane"]);
    // Both call that copy: only the memory of one is spoiled, and the bell, which costs a worker's longest sleep.
    let same = domain.caller::<Ask, Told>("called").unwrap();
    let sound = domain.caller::<Ask, Told>("sane").unwrap();
    let mut mad = start_mad_caller(&path);
    let mut orders = mad.input();
    let mut lives = 1;
    for round in 0..rounds {
        // It may have killed itself, now or before.
        let is_told = writeln!(orders, "{}", random.below(u64::MAX)).is_ok();
        assert_sound(&sound, round);
        if round % 16 == 0 {
            assert_sound(&same, round);
        }
        if !is_told || mad.next_line().is_none() {
            mad.kill();
            mad = start_mad_caller(&path);
            orders = mad.input();
            lives += 1;
        }
        assert!(called.ended().is_none(), "the copy has ended in round {round}");
    }
    println!("{rounds} rounds, {lives} lives of the caller");
    mad.kill();
    assert_sound(&same, rounds);
    assert_sound(&sound, rounds);
    assert!(called.ended().is_none() && sane.ended().is_none());
}
