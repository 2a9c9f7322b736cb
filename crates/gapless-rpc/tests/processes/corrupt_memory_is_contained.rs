use super::instance_process::{Ask, Told, scribble_as_told, start};
use gapless_rpc::{CallOptions, Caller, Domain, DomainOptions};
use gapless_testkit::process::{Process, started_as, this_program};
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::{ChildStdin, Stdio};
use std::time::Duration;

const MAD_CALLER: &str = "be-a-mad-caller";

pub fn module(rounds: u32) -> Module {
    Module::new(module_path!())
        .with_choices("faulty_instance_spares_other_routes", move |random| instance_scribbles(rounds, random))
        .with_choices("faulty_caller_spares_others", move |random| a_caller_scribbles(rounds, random))
}

/// Tables small enough to overwrite every page repeatedly.
fn open(domain: &Path) -> Domain {
    let options = DomainOptions { payload_length_max: 1 << 20, ..DomainOptions::default() };
    Domain::open_directory(domain, options).unwrap()
}

struct Coverage {
    slices: u64,
    slice: u64,
    regions: Vec<Vec<bool>>,
}

impl Coverage {
    /// Less often than twice if rounds end with the death of the faulty process.
    fn of(rounds: u32) -> Self {
        Self { slices: u64::from(rounds / 2), slice: 0, regions: Vec::new() }
    }

    fn order(&self, orders: &mut ChildStdin, random: &mut Random) -> bool {
        writeln!(orders, "{} {} {}", random.below(u64::MAX), self.slice, self.slices).is_ok()
    }

    fn take_down(&mut self, written: &str) {
        for (index, region) in written.split(' ').enumerate() {
            let (slice, pages) = region.split_once('/').unwrap();
            let (first, end) = slice.split_once("..").unwrap();
            if index == self.regions.len() {
                self.regions.push(vec![false; pages.parse().unwrap()]);
            }
            self.regions[index][first.parse().unwrap()..end.parse().unwrap()].fill(true);
        }
        self.slice = (self.slice + 1) % self.slices;
    }

    #[track_caller]
    fn check(&self) {
        let written = |region: &Vec<bool>| region.iter().filter(|is_written| **is_written).count();
        let counts: Vec<_> = self.regions.iter().map(|region| (written(region), region.len())).collect();
        println!("distinct pages written over, of each region: {counts:?}");
        assert!(counts.iter().all(|(written, pages)| written == pages), "{counts:?}");
        assert!(counts.iter().any(|(_, pages)| *pages > 10_000), "a table is among them: {counts:?}");
    }
}

fn short() -> CallOptions {
    CallOptions { timeout: Some(Duration::from_millis(3)), ..CallOptions::default() }
}

fn assert_sound(caller: &Caller<Ask, Told>, round: u32) {
    for number in 0..5 {
        assert_eq!(caller.call(Ask::Increment(number)), Ok(Told::Number(number + 1)), "in round {round}");
    }
}

fn instance_scribbles(rounds: u32, random: &mut Random) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let domain = open(&path);
    let mut mad = start(&path, 2, &["mad"]);
    let mut sane = start(&path, 2, &["sane"]);
    let mut orders = mad.input();
    let spoiled = domain.caller::<Ask, Told>("mad").unwrap();
    let sound = domain.caller::<Ask, Told>("sane").unwrap();
    let (mut replies, mut others, mut lives, mut coverage) = (0, 0, 1, Coverage::of(rounds));
    for round in 0..rounds {
        let is_told = coverage.order(&mut orders, random);
        let pending: Vec<_> = (0..4).map(|number| spoiled.start_with(Ask::Increment(number), &short())).collect();
        assert_sound(&sound, round);
        for call in pending {
            match call.wait() {
                Ok(_) => replies += 1,
                Err(_) => others += 1,
            }
        }
        match mad.next_line().filter(|_| is_told) {
            Some(written) => coverage.take_down(&written),
            None => {
                mad.kill();
                mad = start(&path, 2, &["mad"]);
                orders = mad.input();
                lives += 1;
            }
        }
    }
    coverage.check();
    println!("{rounds} rounds, {lives} lives: {replies} replies, {others} other outcomes where it was scribbled over");
    mad.kill();
    assert_sound(&sound, rounds);
    assert!(sane.ended().is_none());
}

pub fn be_a_caller_if_asked() {
    let Some(arguments) = started_as(MAD_CALLER) else { return };
    let domain = open(Path::new(&arguments[0]));
    let caller = domain.caller::<Ask, Told>("called").unwrap();
    let _ = caller.call(Ask::Increment(0));
    println!("calls");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let pending: Vec<_> = (0..4).map(|number| caller.start_with(Ask::Increment(number), &short())).collect();
        let written = scribble_as_told(&line);
        pending.into_iter().for_each(|call| drop(call.wait()));
        println!("{written}");
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
    let domain = open(&path);
    let mut called = start(&path, 2, &["called"]);
    let mut sane = start(&path, 2, &["sane"]);
    let same = domain.caller::<Ask, Told>("called").unwrap();
    let sound = domain.caller::<Ask, Told>("sane").unwrap();
    let mut mad = start_mad_caller(&path);
    let mut orders = mad.input();
    let (mut lives, mut coverage) = (1, Coverage::of(rounds));
    for round in 0..rounds {
        let is_told = coverage.order(&mut orders, random);
        assert_sound(&sound, round);
        if round % 16 == 0 {
            assert_sound(&same, round);
        }
        match mad.next_line().filter(|_| is_told) {
            Some(written) => coverage.take_down(&written),
            None => {
                mad.kill();
                mad = start_mad_caller(&path);
                orders = mad.input();
                lives += 1;
            }
        }
        assert!(called.ended().is_none(), "the instance has ended in round {round}");
    }
    coverage.check();
    println!("{rounds} rounds, {lives} lives of the caller");
    mad.kill();
    assert_sound(&same, rounds);
    assert_sound(&sound, rounds);
    assert!(called.ended().is_none() && sane.ended().is_none());
}
