//! The parent takes no part in the stream.

use crate::child::{Heard, Process, ending};
use crate::options::{ENTRIES, INSTANCES, Options, Role};
use crate::report::{Check, Facts, Results};
use crate::{Failure, stream_file};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

const STOPPED: u8 = 130;
const STILL_MAX: Duration = Duration::from_secs(60);

pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let stop = stop_flag()?;
    let directory = tempfile::Builder::new().prefix("gapless-market-").tempdir()?;
    stream_file::write(directory.path(), options.transport)?;
    let mut floor = Floor::new(options, directory.path(), &stop);
    let is_over = floor.open().and_then(|()| floor.trade());
    let outcome = is_over.and_then(|()| floor.close());
    // Before further output: a process that ends because another one did has nothing to add.
    drop(floor.processes);
    match outcome {
        Ok(checks) => Ok(conclude(&checks)),
        Err(Ended::Stopped) => {
            print("stopped; nothing is left behind");
            Ok(ExitCode::from(STOPPED))
        }
        Err(Ended::Failed(failure)) => Err(failure),
    }
}

fn stop_flag() -> Result<Arc<AtomicBool>, ctrlc::Error> {
    let stop = Arc::<AtomicBool>::default();
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))?;
    Ok(stop)
}

enum Ended {
    Stopped,
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for Ended {
    fn from(failure: E) -> Self {
        Self::Failed(failure.into())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Killing {
    Ahead,
    Dead { outcomes: i128 },
    Over { outcomes_meanwhile: i128 },
}

struct Floor<'a> {
    options: &'a Options,
    place: &'a Path,
    stop: &'a AtomicBool,
    processes: Vec<Process>,
    hear: Sender<Heard>,
    heard: Receiver<Heard>,
    results: Results,
    is_ready: bool,
    outcomes: i128,
    killing: Killing,
    begun: Instant,
    moved: Instant,
}

impl<'a> Floor<'a> {
    fn new(options: &'a Options, place: &'a Path, stop: &'a AtomicBool) -> Self {
        let (hear, heard) = channel();
        Self {
            options,
            place,
            stop,
            processes: Vec::new(),
            hear,
            heard,
            results: Results::default(),
            is_ready: false,
            outcomes: 0,
            killing: Killing::Ahead,
            begun: Instant::now(),
            moved: Instant::now(),
        }
    }

    fn start(&mut self, role: Role) -> Result<(), Failure> {
        let start = self.processes.len();
        self.processes.push(Process::start(self.options, self.place, role, start, &self.hear)?);
        Ok(())
    }

    fn open(&mut self) -> Result<(), Ended> {
        print(&format!("the market's files are in {}", self.place.display()));
        self.start(Role::Sequencer)?;
        while !self.is_ready {
            self.hear_one()?;
        }
        let others = [Role::Reader].into_iter();
        let mut others = others.chain((1..=INSTANCES).map(Role::Matching)).chain((1..=ENTRIES).map(Role::Entry));
        others.try_for_each(|role| self.start(role))?;
        self.begun = Instant::now();
        Ok(())
    }

    fn trade(&mut self) -> Result<(), Ended> {
        while !self.results.are_complete() || matches!(self.killing, Killing::Dead { .. }) {
            self.hear_one()?;
            if self.options.kill_an_instance {
                self.kill_an_instance()?;
            }
        }
        Ok(())
    }

    fn close(&mut self) -> Result<Vec<Check>, Ended> {
        let sequencer = 0;
        self.processes[sequencer].let_go();
        while self.results.0.len() as u64 == ENTRIES + INSTANCES + 1 {
            self.hear_one()?;
        }
        for process in self.processes.iter_mut().filter(|process| !process.was_killed) {
            let status = process.wait()?;
            if !status.success() {
                return Err(format!("{} {}", process.role, ending(status)).into());
            }
        }
        let mut checks = self.results.checks();
        if self.options.kill_an_instance {
            let (found, is_right) = match self.killing {
                Killing::Over { outcomes_meanwhile } => (outcomes_meanwhile.to_string(), outcomes_meanwhile > 0),
                _ => ("none: the market was over before; give it more orders".to_owned(), false),
            };
            checks.push(Check { what: "outcomes while an instance was dead".to_owned(), found, is_right });
        }
        Ok(checks)
    }

    fn hear_one(&mut self) -> Result<(), Ended> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Ended::Stopped);
        }
        if self.moved.elapsed() > STILL_MAX {
            return Err(format!("the market has stood still for {STILL_MAX:?}").into());
        }
        let Ok(heard) = self.heard.recv_timeout(Duration::from_millis(20)) else { return Ok(()) };
        let process = &mut self.processes[heard.start];
        let role = process.role.to_string();
        let Some(line) = heard.line else {
            if !process.was_killed && !self.results.0.contains_key(&role) {
                let status = process.wait()?;
                return Err(format!("{role} {} too early", ending(status)).into());
            }
            return Ok(());
        };
        match Facts::hear(&line) {
            Some((kind, facts)) => match kind.as_str() {
                "ready" => self.is_ready = true,
                "progress" => {
                    let outcomes = facts.get("outcomes").unwrap_or(self.outcomes);
                    if std::mem::replace(&mut self.outcomes, outcomes) != outcomes {
                        self.moved = Instant::now();
                    }
                }
                _ => {
                    self.results.0.insert(role, facts);
                    self.moved = Instant::now();
                }
            },
            None => print(&format!("{role:<10} | {line}")),
        }
        Ok(())
    }

    fn kill_an_instance(&mut self) -> Result<(), Failure> {
        let victim = Role::Matching(self.options.seed % INSTANCES + 1);
        let all = i128::from(self.options.orders) * i128::from(ENTRIES);
        let percent = match self.options.seconds {
            Some(seconds) => (self.begun.elapsed().as_millis() / u128::from(10 * seconds)) as i128,
            None => self.outcomes * 100 / all,
        };
        let is_over = self.results.0.contains_key(&Role::Reader.to_string());
        match self.killing {
            Killing::Ahead if percent >= 50 && !is_over => {
                let is_victim = |process: &&mut Process| process.role == victim;
                let Some(process) = self.processes.iter_mut().find(is_victim) else { return Ok(()) };
                process.kill()?;
                self.killing = Killing::Dead { outcomes: self.outcomes };
                print(&format!("floor      | {victim} was killed after {} outcomes", self.outcomes));
            }
            Killing::Dead { outcomes } if percent >= 60 && self.outcomes > outcomes || is_over => {
                if let Killing::Dead { outcomes } = self.killing {
                    let outcomes_meanwhile = self.outcomes - outcomes;
                    self.killing = Killing::Over { outcomes_meanwhile };
                    print(&format!("floor      | {victim} is started again, {outcomes_meanwhile} outcomes later"));
                    self.start(victim)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn conclude(checks: &[Check]) -> ExitCode {
    print("");
    for Check { what, found, is_right } in checks {
        print(&format!("{}  {what:<48} {found}", if *is_right { "right" } else { "WRONG" }));
    }
    if checks.iter().all(|check| check.is_right) {
        print("everything adds up");
        return ExitCode::SUCCESS;
    }
    print("it does not add up");
    ExitCode::FAILURE
}

/// Standard output may be closed: the market ends in order in any case.
fn print(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
