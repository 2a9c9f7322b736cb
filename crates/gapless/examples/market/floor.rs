//! The parent: starts the processes, and is itself the market-data reader, which looks whether everything adds up.

use crate::audit::Audit;
use crate::messages::{ENTRIES, INSTANCES};
use crate::{Failure, Options, say, stream};
use gapless::prelude::*;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const STILL_MAX: Duration = Duration::from_secs(60);
pub static IS_STOPPED: AtomicBool = AtomicBool::new(false);

pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    ctrlc::set_handler(|| IS_STOPPED.store(true, Ordering::Relaxed))?;
    let mut floor = Floor::open(options)?;
    if options.kill_an_instance {
        floor.kill_an_instance()?;
    }
    floor.read_until(|floor| floor.audit.is_complete())?;
    // The sequencer ends last. Each wait closes the standard input of the process.
    while let Some((name, mut process)) = floor.processes.pop() {
        if !process.wait()?.success() {
            return Err(format!("{name} has failed").into());
        }
    }
    let mut adds_up = true;
    floor.audit.check_all(|what, found, is_right| {
        say(if is_right { "right" } else { "WRONG" }, format!("{what:<36} {found}"));
        adds_up &= is_right;
    });
    say("floor", if adds_up { "everything adds up" } else { "it does not add up" });
    Ok(if adds_up { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Floor<'a> {
    options: &'a Options,
    /// The sequencer first, then the instances.
    processes: Vec<(String, Child)>,
    node: StreamNode<AnyLink>,
    audit: Audit,
    place: tempfile::TempDir,
}

impl<'a> Floor<'a> {
    fn open(options: &'a Options) -> Result<Self, Failure> {
        let place = tempfile::Builder::new().prefix("gapless-market-").tempdir()?;
        say("floor", format!("the market's files are in {}", place.path().display()));
        stream::write(&place.path().join(stream::FILE), &options.transport)?;
        let config = StreamConfig::load(place.path().join(stream::FILE))?;
        let node = StreamNode::new(config.link()?, config.reading_options());
        let mut floor = Self { options, processes: Vec::new(), node, audit: Audit::default(), place };
        // The others wait for the sequencer.
        floor.start("sequencer".to_owned())?;
        (1..=INSTANCES).try_for_each(|number| floor.start(format!("matching-{number}")))?;
        (1..=ENTRIES).try_for_each(|number| floor.start(format!("entry-{number}")))?;
        Ok(floor)
    }

    fn start(&mut self, name: String) -> Result<(), Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(std::env::args_os().skip(1)).args(["--process", &name]).current_dir(&self.place);
        // Ctrl-C in the terminal is for the parent, which ends the others.
        let process = command.process_group(0).stdin(Stdio::piped()).spawn()?;
        self.processes.push((name, process));
        Ok(())
    }

    /// Kills it after half of all outcomes, and starts it again at least a tenth later.
    fn kill_an_instance(&mut self) -> Result<(), Failure> {
        let all = self.options.orders * ENTRIES;
        self.read_until(|floor| floor.audit.depth.outcomes >= all / 2)?;
        let (name, mut process) = self.processes.remove(1 + (self.options.seed % INSTANCES) as usize);
        process.kill()?;
        process.wait()?;
        let released = self.node.released_sequence();
        self.read_until(|floor| floor.node.position() > released)?;
        let before = self.audit.depth.outcomes;
        say("floor", format!("{name} was killed after {before} outcomes"));
        self.read_until(|floor| floor.audit.depth.outcomes >= all.min(before + all / 10))?;
        let after = self.audit.depth.outcomes;
        say("floor", format!("{name} is started again after {after} outcomes"));
        self.audit.meanwhile = Some(after - before);
        self.start(name)
    }

    fn read_until(&mut self, is_done: impl Fn(&Self) -> bool) -> Result<(), Failure> {
        let tenth = |audit: &Audit| 10 * audit.depth.outcomes / (self.options.orders * ENTRIES);
        let mut moved = Instant::now();
        while !is_done(self) {
            if IS_STOPPED.load(Ordering::Relaxed) {
                return Err("stopped; nothing is left behind".into());
            }
            for (name, process) in &mut self.processes {
                if let Some(status) = process.try_wait()?.filter(|status| !status.success()) {
                    return Err(format!("{name} has failed: {status}").into());
                }
            }
            let before = tenth(&self.audit);
            let count = self.node.poll(256, |event| {
                if let NodeEvent::Message(message) = event {
                    self.audit.take(&message);
                }
            })?;
            if tenth(&self.audit) > before {
                let depth = &self.audit.depth;
                say("reader", format!("{} outcomes, {} trades", depth.outcomes, depth.trades));
            }
            if count > 0 {
                moved = Instant::now();
            } else if moved.elapsed() < STILL_MAX {
                self.node.wait(Duration::from_millis(5))?;
            } else {
                return Err(format!("the market has stood still for {STILL_MAX:?}").into());
            }
        }
        Ok(())
    }
}

impl Drop for Floor<'_> {
    fn drop(&mut self) {
        for (_, process) in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
