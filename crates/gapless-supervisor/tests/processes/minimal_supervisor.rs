//! Roles of the program, and a stand-in for the supervisor, by the real protocol.

use super::instance_program::{STAY, is_over, note};
use super::test_place::{NO_SUPERVISOR, SUPERVISE, lines, name, plan, roles};
use gapless_supervisor::guardian::protocol::{GuardianMessage, GuardianRequest};
use gapless_supervisor::guardian::{self, GuardianClient};
use gapless_supervisor::role::{ProcessRole, RoleOutcome};
use gapless_supervisor::state_directory::{Holder, InstanceDirectory, RoleLock, StateDirectory, is_dead};
use gapless_supervisor::{EndStatus, InstanceName, driver, launch};
use gapless_testkit::process::started_as;
use gapless_testkit::wait::PATIENCE;
use rustix::fd::OwnedFd;
use rustix::process::{Signal, pidfd_send_signal};
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

pub const WANTED: &str = "wanted";
/// While it exists, supervisors also request starts that fail.
pub const CHORES: &str = "chores";
/// While it exists, the real supervisor runs.
pub const REAL: &str = "real";
pub const ENDS: &str = "ends";

const POINT: &str = "GAPLESS_CRASH_POINT";
/// This process must die; its children must not.
const POINT_OF: &str = "GAPLESS_TEST_CRASH_POINT_OF";

pub fn armed_file(role: &str) -> String {
    format!("armed.{role}")
}

/// Without the crash point of its parent.
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
    let role = ProcessRole::from_arguments(&arguments).expect("a role");
    let word = arguments[0].to_str().unwrap().to_owned();
    let arm = |directory: &PathBuf| arm(directory.parent().unwrap(), &word);
    let code = match role {
        ProcessRole::StartGuardian { directory } => {
            guardian::start_detached(&directory, &roles()).unwrap();
            ExitCode::SUCCESS
        }
        ProcessRole::Guardian { directory } => {
            arm(&directory);
            match guardian::run(&directory, &roles()).unwrap() {
                RoleOutcome::ShutDown => ExitCode::SUCCESS,
                RoleOutcome::AlreadyRunning => ExitCode::from(75),
            }
        }
        ProcessRole::Supervisor { directory } => {
            arm(&directory);
            if directory.parent().unwrap().join(REAL).exists() {
                driver::run(&directory, &roles()).unwrap();
                ExitCode::SUCCESS
            } else {
                supervise(&directory)
            }
        }
        ProcessRole::Launch { directory, instance, incarnation } => {
            arm(&directory);
            launch::run(&directory, &instance, incarnation)
        }
    };
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
    let mut supervisor =
        MinimalSupervisor { folder: folder.to_owned(), directory, running: BTreeMap::new(), chores: 0 };
    loop {
        let connected = GuardianClient::connect_or_start(&supervisor.directory, &roles(), PATIENCE);
        let mut client = match connected {
            Ok(client) => client,
            Err(_) if is_over(folder) => return ExitCode::SUCCESS,
            Err(error) => panic!("{error}"),
        };
        match supervisor.serve(&mut client) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(_) if is_over(folder) => return ExitCode::SUCCESS,
            Err(error) => eprintln!("{error}"),
        }
    }
}

type SupervisionError = gapless_supervisor::SupervisorError;

struct MinimalSupervisor {
    folder: PathBuf,
    directory: StateDirectory,
    running: BTreeMap<InstanceName, (u64, Option<OwnedFd>)>,
    chores: u64,
}

impl MinimalSupervisor {
    fn serve(&mut self, client: &mut GuardianClient) -> Result<(), SupervisionError> {
        self.take_over(client)?;
        loop {
            for wanted in lines(&self.folder.join(WANTED)) {
                let instance = name(&wanted);
                if !self.running.contains_key(&instance) {
                    self.start(client, &instance)?;
                }
            }
            if let Some(message) = client.wait(Duration::from_millis(5))? {
                self.handle(client, message)?;
            }
            let has_ended = |(_, (number, pidfd)): (&InstanceName, &(u64, Option<OwnedFd>))| {
                (*number, pidfd.as_ref().is_some_and(is_dead))
            };
            let dead = self.running.iter().filter(|entry| has_ended(*entry).1);
            let dead = dead.map(|(instance, (number, _))| (instance.clone(), *number)).collect::<Vec<_>>();
            for (instance, incarnation) in dead {
                self.end(&instance, incarnation, None);
            }
            if self.folder.join(CHORES).exists() {
                let instance = name("chores.1");
                self.directory.instance(&instance).prepare()?;
                self.chores += 1;
                client.ask(&GuardianRequest::Start { instance: instance.clone(), incarnation: self.chores })?;
            }
            if is_over(&self.folder) {
                client.ask(&GuardianRequest::End)?;
                client.wait(PATIENCE)?;
            }
        }
    }

    fn take_over(&mut self, client: &mut GuardianClient) -> Result<(), SupervisionError> {
        self.running.clear();
        let known = client.list(PATIENCE)?;
        for instance in self.directory.instances()? {
            let files = self.directory.instance(&instance);
            let Some(plan) = files.read_launch()? else { continue };
            let incarnation = plan.incarnation;
            match known.iter().find(|child| child.instance == instance && child.incarnation == incarnation) {
                Some(child) if child.ended.is_none() => {
                    self.running.insert(instance, (incarnation, None));
                }
                Some(child) => self.end(&instance, incarnation, child.ended),
                None => self.check(&files, incarnation)?,
            }
        }
        for child in known.into_iter().filter(|child| child.ended.is_some()) {
            client.ask(&GuardianRequest::Forget { instance: child.instance, incarnation: child.incarnation })?;
        }
        Ok(())
    }

    fn check(&mut self, files: &InstanceDirectory, incarnation: u64) -> Result<(), SupervisionError> {
        loop {
            match files.holder()? {
                Holder::Recorded { record, pidfd } => {
                    self.running.insert(files.name().clone(), (record.incarnation, Some(pidfd)));
                    return Ok(());
                }
                Holder::Free { .. } => {
                    // Unknown even without a record: the launcher of a dead guardian may take the lock later, and die
                    // before anyone looks.
                    self.end(files.name(), incarnation, None);
                    return Ok(());
                }
                Holder::Foreign { .. } | Holder::Hidden { .. } => {}
                Holder::Descendants(orphans) => {
                    for orphan in &orphans {
                        let _ = pidfd_send_signal(&orphan.pidfd, Signal::KILL);
                    }
                }
            }
        }
    }

    fn start(&mut self, client: &mut GuardianClient, instance: &InstanceName) -> Result<(), SupervisionError> {
        let files = self.directory.instance(instance);
        files.prepare()?;
        let incarnation = files.read_launch()?.map_or(1, |plan| plan.incarnation + 1);
        files.write_launch(&plan(&self.folder, &self.directory, instance, incarnation, STAY))?;
        self.running.insert(instance.clone(), (incarnation, None));
        client.ask(&GuardianRequest::Start { instance: instance.clone(), incarnation })
    }

    fn handle(&mut self, client: &mut GuardianClient, message: GuardianMessage) -> Result<(), SupervisionError> {
        match message {
            GuardianMessage::Ended { instance, incarnation, status, .. } => {
                let failure = self.directory.instance(&instance).read_launch_failure(incarnation)?;
                if failure.is_some_and(|failure| failure.already_runs) {
                    self.running.remove(&instance);
                    self.check(&self.directory.instance(&instance), incarnation)?;
                } else {
                    self.end(&instance, incarnation, Some(status));
                }
                client.ask(&GuardianRequest::Forget { instance, incarnation })
            }
            GuardianMessage::EndWanted => self.down(client),
            GuardianMessage::NotStarted { instance, .. } => {
                self.running.remove(&instance);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn down(&mut self, client: &mut GuardianClient) -> Result<(), SupervisionError> {
        client.ask(&GuardianRequest::End)?;
        loop {
            for instance in self.running.keys() {
                // A launcher may not hold the lock yet.
                if let Holder::Recorded { pidfd, .. } = self.directory.instance(instance).holder()? {
                    let _ = pidfd_send_signal(&pidfd, Signal::TERM);
                }
            }
            client.wait(Duration::from_millis(20))?;
        }
    }

    fn end(&mut self, instance: &InstanceName, incarnation: u64, status: Option<EndStatus>) {
        if self.running.get(instance).is_some_and(|(number, _)| *number == incarnation) {
            self.running.remove(instance);
        }
        let files = self.directory.instance(instance);
        let memory = files.path().join("last-end");
        let last = std::fs::read_to_string(&memory).map_or(0, |text| text.parse().unwrap());
        if last >= incarnation {
            return;
        }
        let how = status.map_or("unknown".to_owned(), |status| status.to_string());
        note(&self.folder, ENDS, &format!("{instance} {incarnation} {how}"));
        let new = files.path().join(format!("last-end.{}.new", std::process::id()));
        std::fs::write(&new, incarnation.to_string()).unwrap();
        std::fs::rename(new, memory).unwrap();
    }
}
