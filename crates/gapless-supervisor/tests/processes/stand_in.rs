//! The roles of the program, and a supervisor that stands in for the real one: it keeps the copies of the file `wanted`
//! running, and notes how they end. What it does, it does as that one is to.

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

/// In the folder: the copies that are to run, one a line.
pub const WANTED: &str = "wanted";
/// In the folder: supervisors ask for a start that comes to nothing, now and then, with this there.
pub const CHORES: &str = "chores";
/// In the folder: supervisors are what the program has, and not the stand-in, with this there.
pub const REAL: &str = "real";
/// How copies ended: copy, incarnation, and how or `unknown`.
pub const ENDS: &str = "ends";

const POINT: &str = "GAPLESS_CRASH_POINT";
/// The process that is to die at it: what it starts is not.
const POINT_OF: &str = "GAPLESS_TEST_CRASH_POINT_OF";

/// The file in the folder that arms the next process of a role.
pub fn armed_file(role: &str) -> String {
    format!("armed.{role}")
}

/// Runs this program anew with the crash point that the test has left for its role, or without the one of its parent.
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

pub fn be_in_a_role_if_asked() {
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
    // Only its number: destructors are none of a role's.
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
            // Another guardian.
            Err(error) => eprintln!("{error}"),
        }
    }
}

type Lost = gapless_supervisor::SupervisorError;

struct StandIn {
    folder: PathBuf,
    directory: StateDirectory,
    /// What runs, of which incarnation; with a pidfd of those that are not the guardian's children.
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
                // Copies end by themselves.
                client.ask(&Ask::End)?;
                client.wait(PATIENCE)?;
            }
        }
    }

    /// What is true, whoever has died: what the guardian knows; of all others, what their locks say.
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

    /// Of one that is no child of the guardian's.
    fn look(&mut self, files: &CopyDirectory, incarnation: u64) -> Result<(), Lost> {
        loop {
            match files.holder()? {
                Holder::Recorded { record, pidfd } => {
                    self.running.insert(files.name().clone(), (record.incarnation, Some(pidfd)));
                    return Ok(());
                }
                Holder::Nobody { last } => {
                    // Only what was started can have ended.
                    if last.is_some_and(|record| record.incarnation == incarnation) {
                        self.end(files.name(), incarnation, None);
                    }
                    return Ok(());
                }
                Holder::Foreign { .. } | Holder::Hidden { .. } => {}
                Holder::Others(orphans) => {
                    for orphan in &orphans {
                        // It may have died meanwhile.
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
                    // One of a guardian that is dead was faster.
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

    /// Stops everything, and the guardian with it.
    fn down(&mut self, client: &mut Client) -> Result<(), Lost> {
        client.ask(&Ask::End)?;
        // Until the guardian is gone. What ends meanwhile is unknown to the next one.
        loop {
            for copy in self.running.keys() {
                // Its launcher may not hold the lock yet: it is looked for again.
                if let Holder::Recorded { pidfd, .. } = self.directory.copy(copy).holder()? {
                    // It may have died meanwhile.
                    let _ = pidfd_send_signal(&pidfd, Signal::TERM);
                }
            }
            client.wait(Duration::from_millis(20))?;
        }
    }

    /// Notes an end once, however often it is told.
    fn end(&mut self, copy: &CopyName, incarnation: u64, status: Option<EndStatus>) {
        if self.running.get(copy).is_some_and(|(number, _)| *number == incarnation) {
            self.running.remove(copy);
        }
        let files = self.directory.copy(copy);
        // It remembers itself what the supervisor would.
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
