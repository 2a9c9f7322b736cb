//! Supervises nothing: only its starter notices when it is killed.

use super::progress::{ProgressPrinter, is_given_up, is_up, summary};
use super::{RESTART_TIMEOUT, connect, load};
use crate::commands::CommandResult;
use gapless_supervisor::control::protocol::SupervisorRequest;
use gapless_supervisor::control::{ControlClient, end_all, is_any_role_running, take_charge, take_over};
use gapless_supervisor::foreground::{ForegroundSignals, ServiceManager, SignalRequest};
use gapless_supervisor::role::RoleCommand;
use gapless_supervisor::state_directory::StateDirectory;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const EVENT_BATCH_TIME: Duration = Duration::from_millis(20);
const SHUTDOWN_POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(super) fn run(file: &Path, within: Duration) -> CommandResult {
    // Process 1 receives no signal without a handler. SIGHUP is handled even if `nohup` has it ignored: it ends nothing
    // here.
    let signals = ForegroundSignals::install()?;
    let services = ServiceManager::from_environment().unwrap_or_else(|problem| {
        note(&problem);
        ServiceManager::default()
    });
    let config = load(file)?;
    let client = take_charge(file, &config, &RoleCommand::default(), RESTART_TIMEOUT)?;
    let foreground = Foreground {
        file: std::path::absolute(file)?,
        directory: config.directory,
        signals,
        services,
        client,
        progress: ProgressPrinter::default(),
        reported: ReportedState::Nothing,
        late_at: Some(Instant::now() + within),
    };
    foreground.stay()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReportedState {
    Nothing,
    Reloading,
    Ready,
}

struct Foreground {
    file: PathBuf,
    directory: PathBuf,
    signals: ForegroundSignals,
    services: ServiceManager,
    client: ControlClient,
    progress: ProgressPrinter,
    reported: ReportedState,
    late_at: Option<Instant>,
}

impl Foreground {
    fn stay(mut self) -> CommandResult {
        self.client.request(&SupervisorRequest::Events)?;
        self.report();
        loop {
            self.signals.reap_orphans();
            match self.signals.take() {
                Some(SignalRequest::End) => return self.end(),
                Some(SignalRequest::Reload) => self.reload(),
                None => {}
            }
            match self.has_event() {
                Ok(false) => {}
                Ok(true) => {
                    std::thread::sleep(EVENT_BATCH_TIME);
                    while matches!(self.has_event(), Ok(true)) {}
                    self.report();
                }
                Err(_) if self.connect_again()? => drop(self.report()),
                Err(_) => {
                    say("all has ended");
                    return Ok(());
                }
            }
            let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= Instant::now());
            if is_due(self.services.next_watchdog()) || is_due(self.late_at) {
                match self.report() {
                    true if is_due(self.services.next_watchdog()) => self.services.watchdog(),
                    true => {}
                    false => std::thread::sleep(EVENT_BATCH_TIME),
                }
            }
            self.sleep();
        }
    }

    fn has_event(&mut self) -> Result<bool, Box<dyn Error>> {
        Ok(self.client.next(Duration::ZERO)?.is_some())
    }

    /// False if the supervisor does not answer.
    fn report(&mut self) -> bool {
        let connected = ControlClient::connect(&self.directory).ok().flatten();
        // A killed supervisor is missing for a moment; its return is an event.
        let Some(status) = connected.and_then(|mut client| client.status().ok()) else { return false };
        let _ = self.progress.show(&status);
        let words = summary(&status);
        self.services.status(&words);
        let is_late = self.late_at.is_some_and(|at| at <= Instant::now());
        if is_up(&status) {
            if self.reported == ReportedState::Nothing {
                say(&words);
            }
        } else if is_given_up(&status) || is_late {
            if self.late_at.take().is_some() {
                note(&words);
            }
            // Starting may continue, but the reload is over.
            if self.reported != ReportedState::Reloading {
                return true;
            }
        } else {
            return true;
        }
        if self.reported != ReportedState::Ready {
            self.services.ready();
            self.reported = ReportedState::Ready;
        }
        self.late_at = None;
        true
    }

    /// An invalid file is ignored, and the old one stays in force.
    fn reload(&mut self) {
        self.services.reloading();
        if self.reported == ReportedState::Ready {
            self.reported = ReportedState::Reloading;
        }
        let taken = connect(&self.directory)
            .and_then(|mut client| Ok(client.request(&SupervisorRequest::Up { path: self.file.clone() })?));
        if let Err(error) = taken {
            note(&error.to_string());
        }
        self.report();
    }

    /// False if everything has ended.
    fn connect_again(&mut self) -> Result<bool, Box<dyn Error>> {
        let deadline = Instant::now() + RESTART_TIMEOUT;
        loop {
            let is_over = Instant::now() >= deadline;
            match self.try_connect() {
                Ok(Some(client)) => {
                    self.client = client;
                    return Ok(true);
                }
                _ if !self.has_file() => return Ok(false),
                Err(error) if is_over => return Err(error),
                Ok(None) if is_over => return Err(format!("nobody supervises {}", self.directory.display()).into()),
                Ok(None) | Err(_) => std::thread::sleep(EVENT_BATCH_TIME),
            }
        }
    }

    fn has_file(&self) -> bool {
        StateDirectory::open(&self.directory)
            .is_ok_and(|directory| directory.read_config_in_force().is_ok_and(|in_force| in_force.is_some()))
    }

    fn try_connect(&self) -> Result<Option<ControlClient>, Box<dyn Error>> {
        let mut client = match ControlClient::connect(&self.directory)? {
            Some(client) => client,
            None if is_any_role_running(&StateDirectory::open(&self.directory)?)? => return Ok(None),
            // Supervisor and guardian were killed at the same time.
            None => take_over(&self.directory, &RoleCommand::default(), RESTART_TIMEOUT)?,
        };
        client.request(&SupervisorRequest::Events)?;
        Ok(Some(client))
    }

    fn end(mut self) -> CommandResult {
        self.services.stopping();
        self.services.status("everything is being stopped");
        let directory = self.directory.clone();
        let ending = std::thread::spawn(move || {
            end_all(&directory, &RoleCommand::default(), RESTART_TIMEOUT).map_err(|error| error.to_string())
        });
        while !ending.is_finished() {
            if self.services.next_watchdog().is_some_and(|at| at <= Instant::now()) {
                self.services.watchdog();
            }
            std::thread::sleep(SHUTDOWN_POLL_INTERVAL);
        }
        ending.join().expect("ending does not panic")?;
        self.signals.reap_orphans();
        say("all has ended");
        Ok(())
    }

    fn sleep(&self) {
        let until = self.services.next_watchdog().into_iter().chain(self.late_at).min();
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() });
        let mut fds = [PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&self.client, PollFlags::IN)];
        // The caller checks everything, so the result does not matter.
        let _ = poll(&mut fds, left.as_ref());
    }
}

/// Standard output may be closed.
fn say(words: &str) {
    let _ = crate::commands::is_printed(&format!("{words}\n"));
}

fn note(words: &str) {
    crate::commands::to_stderr!("note: {words}");
}
