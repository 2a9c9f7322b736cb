//! Roles of the program, and a stand-in for the supervisor. It keeps the instances in the file `wanted` running and
//! records their ends, by the same protocol as the real one.

use super::copy_program::{STAY, is_over, note};
use super::place::{NO_SUPERVISOR, SUPERVISE, lines, name, plan, roles};
use gapless_supervisor::guardian::protocol::{Ask, Told};
use gapless_supervisor::guardian::{self, Client};
use gapless_supervisor::role::{Outcome, Role};
use gapless_supervisor::state_directory::{CopyDirectory, Holder, RoleLock, StateDirectory, is_dead};
use gapless_supervisor::{CopyName, EndStatus, driver, launch};
use gapless_testkit::process::started_as;
use gapless_testkit::wait::PATIENCE;
use rustix::fd::OwnedFd;
use rustix::process::{Signal, pidfd_send_signal};
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// File in the test directory: wanted instances, one per line.
pub const WANTED: &str = "wanted";
/// File in the test directory: while it exists, supervisors also request starts that fail.
pub const CHORES: &str = "chores";
/// File in the test directory: while it exists, the real supervisor runs instead of the stand-in.
pub const REAL: &str = "real";
/// File with recorded ends: instance, incarnation, and the status or `unknown`.
pub const ENDS: &str = "ends";

const POINT: &str = "GAPLESS_CRASH_POINT";
/// Process that must die at the crash point; its children must not.
const POINT_OF: &str = "GAPLESS_TEST_CRASH_POINT_OF";

/// File that arms the next process of a role with a crash point.
pub fn armed_file(role: &str) -> String {
    format!("armed.{role}")
}

/// Executes this program again with the crash point that the test has armed for the role, and without that of its
/// parent.
fn arm(folder: &Path, role: &str) {
    let this = std::process::id().to_string();
    let is_own = std::env::var(POINT_OF).is_ok_and(|pid| pid == this);
    if is_own {
        return;
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(std::env::args_os().skip(1));
    let file = folder.join(armed_file(role));
    let claimed = folder.join(format!("claimed.{role}.{this}"));
    let error = if std::fs::rename(&file, &claimed).is_ok() {
        let point = std::fs::read_to_string(&claimed).unwrap();
        note(folder, "claimed", &this);
        command.env(POINT, point).env(POINT_OF, this).exec()
    } else if std::env::var_os(POINT).is_some() {
        command.env_remove(POINT).env_remove(POINT_OF).exec()
    } else {
        return;
    };
    panic!("this program cannot be run: {error}");
}

pub fn run_role_if_asked() {
    let Some(arguments) = started_as(SUPERVISE) else { return };
    let arguments = arguments.iter().map(Into::into).collect::<Vec<_>>();
    let role = Role::from_arguments(&arguments).expect("a role");
    let word = arguments[0].to_str().unwrap().to_owned();
    let arm = |directory: &PathBuf| arm(directory.parent().unwrap(), &word);
    let code = match role {
        Role::StartGuardian { directory } => {
            guardian::start_detached(&directory, &roles()).unwrap();
            ExitCode::SUCCESS
        }
        Role::Guardian { directory } => {
            arm(&directory);
            match guardian::run(&directory, &roles()).unwrap() {
                Outcome::Over => ExitCode::SUCCESS,
                Outcome::AnotherIsThere => ExitCode::from(75),
            }
        }
        Role::Supervisor { directory } => {
            arm(&directory);
            if directory.parent().unwrap().join(REAL).exists() {
                driver::run(&directory, &roles()).unwrap();
                ExitCode::SUCCESS
            } else {
                supervise(&directory)
            }
        }
        Role::Launch { directory, copy, incarnation } => {
            arm(&directory);
            launch::run(&directory, &copy, incarnation)
        }
    };
    // Only the exit code: a role runs no destructors.
    let code = (0..=255).find(|number| ExitCode::from(*number) == code).unwrap();
    std::process::exit(i32::from(code));
}

fn supervise(path: &Path) -> ExitCode {
    let folder = path.parent().unwrap();
    note(folder, "supervisors", &std::process::id().to_string());
    if folder.join(NO_SUPERVISOR).exists() {
        return ExitCode::SUCCESS;
    }
    let directory = StateDirectory::open(path).unwrap();
    let Some(_role_lock) = directory.take_role_lock(RoleLock::Supervisor).unwrap() else { return ExitCode::from(75) };
    let mut supervisor = StandIn { folder: folder.to_owned(), directory, running: BTreeMap::new(), chores: 0 };
    loop {
        let connected = Client::connect_or_start(&supervisor.directory, &roles(), PATIENCE);
        let mut client = match connected {
            Ok(client) => client,
            Err(_) if is_over(folder) => return ExitCode::SUCCESS,
            Err(error) => panic!("{error}"),
        };
        match supervisor.serve(&mut client) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(_) if is_over(folder) => return ExitCode::SUCCESS,
            // Reconnects to another guardian.
            Err(error) => eprintln!("{error}"),
        }
    }
}

type Lost = gapless_supervisor::SupervisorError;

struct StandIn {
    folder: PathBuf,
    directory: StateDirectory,
    /// Running instances with their incarnations, and a pidfd for those that are not children of the guardian.
    running: BTreeMap<CopyName, (u64, Option<OwnedFd>)>,
    chores: u64,
}

impl StandIn {
    fn serve(&mut self, client: &mut Client) -> Result<(), Lost> {
        self.take_over(client)?;
        loop {
            for wanted in lines(&self.folder.join(WANTED)) {
                let copy = name(&wanted);
                if !self.running.contains_key(&copy) {
                    self.start(client, &copy)?;
                }
            }
            if let Some(told) = client.wait(Duration::from_millis(5))? {
                self.hear(client, told)?;
            }
            let has_ended = |(_, (number, pidfd)): (&CopyName, &(u64, Option<OwnedFd>))| {
                (*number, pidfd.as_ref().is_some_and(is_dead))
            };
            let dead = self.running.iter().filter(|entry| has_ended(*entry).1);
            let dead = dead.map(|(copy, (number, _))| (copy.clone(), *number)).collect::<Vec<_>>();
            for (copy, incarnation) in dead {
                self.end(&copy, incarnation, None);
            }
            if self.folder.join(CHORES).exists() {
                let copy = name("chores.1");
                self.directory.copy(&copy).prepare()?;
                self.chores += 1;
                client.ask(&Ask::Start { copy: copy.clone(), incarnation: self.chores })?;
            }
            if is_over(&self.folder) {
                // Instances end by themselves.
                client.ask(&Ask::End)?;
                client.wait(PATIENCE)?;
            }
        }
    }

    /// Determines the running instances: from the guardian, and for all others from their locks.
    fn take_over(&mut self, client: &mut Client) -> Result<(), Lost> {
        self.running.clear();
        let known = client.list(PATIENCE)?;
        for copy in self.directory.copies()? {
            let files = self.directory.copy(&copy);
            let Some(plan) = files.read_launch()? else { continue };
            let incarnation = plan.incarnation;
            match known.iter().find(|child| child.copy == copy && child.incarnation == incarnation) {
                Some(child) if child.ended.is_none() => {
                    self.running.insert(copy, (incarnation, None));
                }
                Some(child) => self.end(&copy, incarnation, child.ended),
                None => self.look(&files, incarnation)?,
            }
        }
        for child in known.into_iter().filter(|child| child.ended.is_some()) {
            client.ask(&Ask::Forget { copy: child.copy, incarnation: child.incarnation })?;
        }
        Ok(())
    }

    /// Checks an instance that is not a child of the guardian.
    fn look(&mut self, files: &CopyDirectory, incarnation: u64) -> Result<(), Lost> {
        loop {
            match files.holder()? {
                Holder::Recorded { record, pidfd } => {
                    self.running.insert(files.name().clone(), (record.incarnation, Some(pidfd)));
                    return Ok(());
                }
                Holder::Nobody { last } => {
                    // Only an executed start can have ended.
                    if last.is_some_and(|record| record.incarnation == incarnation) {
                        self.end(files.name(), incarnation, None);
                    }
                    return Ok(());
                }
                Holder::Foreign { .. } | Holder::Hidden { .. } => {}
                Holder::Others(orphans) => {
                    for orphan in &orphans {
                        // Fails if it has died meanwhile.
                        let _ = pidfd_send_signal(&orphan.pidfd, Signal::KILL);
                    }
                }
            }
        }
    }

    fn start(&mut self, client: &mut Client, copy: &CopyName) -> Result<(), Lost> {
        let files = self.directory.copy(copy);
        files.prepare()?;
        let incarnation = files.read_launch()?.map_or(1, |plan| plan.incarnation + 1);
        files.write_launch(&plan(&self.folder, &self.directory, copy, incarnation, STAY))?;
        self.running.insert(copy.clone(), (incarnation, None));
        client.ask(&Ask::Start { copy: copy.clone(), incarnation })
    }

    fn hear(&mut self, client: &mut Client, told: Told) -> Result<(), Lost> {
        match told {
            Told::Ended { copy, incarnation, status, .. } => {
                let failure = self.directory.copy(&copy).read_launch_failure(incarnation)?;
                if failure.is_some_and(|failure| failure.already_runs) {
                    // A launcher of a dead guardian runs already.
                    self.running.remove(&copy);
                    self.look(&self.directory.copy(&copy), incarnation)?;
                } else {
                    self.end(&copy, incarnation, Some(status));
                }
                client.ask(&Ask::Forget { copy, incarnation })
            }
            Told::EndWanted => self.down(client),
            Told::NotStarted { copy, .. } => {
                self.running.remove(&copy);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn down(&mut self, client: &mut Client) -> Result<(), Lost> {
        client.ask(&Ask::End)?;
        // Until the guardian has closed the connection. Ends in the meantime are unseen by the next one.
        loop {
            for copy in self.running.keys() {
                // A launcher may not hold the lock yet, so this is repeated.
                if let Holder::Recorded { pidfd, .. } = self.directory.copy(copy).holder()? {
                    // Fails if it has died meanwhile.
                    let _ = pidfd_send_signal(&pidfd, Signal::TERM);
                }
            }
            client.wait(Duration::from_millis(20))?;
        }
    }

    /// Records an end once, even if it is reported repeatedly.
    fn end(&mut self, copy: &CopyName, incarnation: u64, status: Option<EndStatus>) {
        if self.running.get(copy).is_some_and(|(number, _)| *number == incarnation) {
            self.running.remove(copy);
        }
        let files = self.directory.copy(copy);
        // Recorded per instance, unlike in the real supervisor.
        let memory = files.path().join("last-end");
        let last = std::fs::read_to_string(&memory).map_or(0, |text| text.parse().unwrap());
        if last >= incarnation {
            return;
        }
        let how = status.map_or("unknown".to_owned(), |status| status.to_string());
        note(&self.folder, ENDS, &format!("{copy} {incarnation} {how}"));
        let new = files.path().join(format!("last-end.{}.new", std::process::id()));
        std::fs::write(&new, incarnation.to_string()).unwrap();
        std::fs::rename(new, memory).unwrap();
    }
}
