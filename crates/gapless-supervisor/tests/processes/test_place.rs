use super::instance_program::{DOUBLES, ROLE, STARTS, TEST};
use gapless_supervisor::control_groups::ControlGroups;
use gapless_supervisor::guardian::protocol::{GuardianMessage, GuardianRequest};
use gapless_supervisor::guardian::{self, GuardianClient};
use gapless_supervisor::role::{ProcessRole, RoleCommand};
use gapless_supervisor::state_directory::{Holder, LaunchPlan, RoleLock, StateDirectory};
use gapless_supervisor::{EndStatus, InstanceName, Variables};
use gapless_testkit::process::this_program;
use gapless_testkit::wait::{PATIENCE, until, until_some};
use rustix::process::{Pid, Signal, kill_process, pidfd_send_signal};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

pub const SUPERVISE: &str = "supervise";
/// While this file exists, supervisors exit at once.
pub const NO_SUPERVISOR: &str = "no-supervisor";

pub struct TestPlace {
    folder: TempDir,
    pub directory: StateDirectory,
}

pub fn roles() -> RoleCommand {
    RoleCommand::new(std::env::current_exe().unwrap(), [SUPERVISE])
}

pub fn name(text: &str) -> InstanceName {
    text.parse().unwrap()
}

pub fn state_of(folder: &Path) -> PathBuf {
    folder.join("state")
}

impl TestPlace {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let directory = StateDirectory::create(&state_of(folder.path()), None).unwrap();
        std::fs::write(folder.path().join(TEST), std::process::id().to_string()).unwrap();
        Self { folder, directory }
    }

    /// The test acts as the supervisor.
    pub fn without_supervisor() -> Self {
        let place = Self::new();
        std::fs::write(place.folder().join(NO_SUPERVISOR), "").unwrap();
        place
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn plan(&self, instance: &InstanceName, incarnation: u64, wish: &str) -> LaunchPlan {
        plan(self.folder(), &self.directory, instance, incarnation, wish)
    }

    pub fn launcher(&self, instance: &InstanceName, incarnation: u64) -> Command {
        let directory = self.directory.path().to_owned();
        let mut command = this_program();
        command
            .arg(SUPERVISE)
            .args(ProcessRole::Launch { directory, instance: instance.clone(), incarnation }.arguments());
        command
    }

    pub fn write_plan(&self, instance: &InstanceName, incarnation: u64, wish: &str) {
        let files = self.directory.instance(instance);
        files.prepare().unwrap();
        files.write_launch(&self.plan(instance, incarnation, wish)).unwrap();
    }

    pub fn start_guardian(&self) {
        guardian::start_if_missing(&self.directory, &roles(), PATIENCE).unwrap();
    }

    pub fn connect(&self) -> GuardianClient {
        GuardianClient::connect_or_start(&self.directory, &roles(), PATIENCE).unwrap()
    }

    pub fn start(&self, client: &mut GuardianClient, instance: &str, incarnation: u64, wish: &str) -> u32 {
        let instance = name(instance);
        self.write_plan(&instance, incarnation, wish);
        client.ask(&GuardianRequest::Start { instance: instance.clone(), incarnation }).unwrap();
        match next_message(client, |told| !matches!(told, GuardianMessage::OrphanEnded { .. })) {
            GuardianMessage::Started { instance: started, incarnation: number, process_id }
                if started == instance && number == incarnation =>
            {
                process_id
            }
            other => panic!("{other:?}"),
        }
    }

    /// Panics on a duplicate.
    pub fn starts(&self) -> BTreeMap<(InstanceName, u64), u32> {
        let mut starts = BTreeMap::new();
        for line in lines(&self.folder().join(STARTS)) {
            let fields = line.split(' ').collect::<Vec<_>>();
            let key = (name(fields[0]), fields[1].parse().unwrap());
            let before = starts.insert(key, fields[2].parse().unwrap());
            assert_eq!(before, None, "the same start twice: {line}");
        }
        starts
    }

    #[track_caller]
    pub fn check_starts(&self) {
        self.starts();
        assert_eq!(lines(&self.folder().join(DOUBLES)), [] as [String; 0], "one instance ran twice at the same time");
    }

    #[track_caller]
    pub fn wait_for_start(&self, instance: &str, incarnation: u64) -> u32 {
        let key = (name(instance), incarnation);
        until_some(&format!("{instance} of incarnation {incarnation} runs"), || self.starts().get(&key).copied())
    }

    pub fn running_as(&self, role_lock: RoleLock) -> Option<u32> {
        match self.directory.role_holder(role_lock).unwrap() {
            Holder::Recorded { record, .. } => Some(record.process.process_id),
            Holder::Descendants(found) => found.first().map(|process| process.process_id),
            Holder::Free { .. } | Holder::Foreign { .. } | Holder::Hidden { .. } => None,
        }
    }

    #[track_caller]
    pub fn wait_for_role(&self, role_lock: RoleLock) -> u32 {
        until_some(&format!("there is a {role_lock:?}"), || self.running_as(role_lock))
    }
}

pub fn plan(
    folder: &Path,
    state: &StateDirectory,
    instance: &InstanceName,
    incarnation: u64,
    wish: &str,
) -> LaunchPlan {
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let arguments = vec![ROLE.into(), text(folder), instance.to_string(), incarnation.to_string(), wish.to_owned()];
    LaunchPlan {
        incarnation,
        program: std::env::current_exe().unwrap(),
        arguments,
        environment: Variables::from_iter([("PATH".to_owned(), std::env::var("PATH").unwrap())]),
        folder: folder.to_owned(),
        input: None,
        identity: None,
        cpus: None,
        limits: Default::default(),
        cgroup: None,
        singleton: (instance.process() == "b").then(|| state.singleton_lock("b").unwrap()),
        log: state.log(instance),
        notify_socket: None,
    }
}

impl Drop for TestPlace {
    fn drop(&mut self) {
        // Roles restart each other until all are dead.
        let is_quiet = || {
            let mut held = 0;
            let mut kill = |holder: Holder| {
                let pidfds = match holder {
                    Holder::Free { .. } | Holder::Foreign { .. } | Holder::Hidden { .. } => Vec::new(),
                    Holder::Recorded { pidfd, .. } => vec![pidfd],
                    Holder::Descendants(found) => found.into_iter().map(|process| process.pidfd).collect(),
                };
                held += pidfds.len();
                for pidfd in &pidfds {
                    let _ = pidfd_send_signal(pidfd, Signal::KILL);
                }
            };
            for role_lock in [RoleLock::Guardian, RoleLock::Supervisor] {
                kill(self.directory.role_holder(role_lock).unwrap());
            }
            for instance in self.directory.instances().unwrap() {
                kill(self.directory.instance(&instance).holder().unwrap());
            }
            // Also processes that hold no lock yet.
            let folder = self.folder().to_str().unwrap();
            let processes = std::fs::read_dir("/proc").unwrap().flatten();
            let others = processes.filter_map(|entry| {
                let pid = entry.file_name().to_str()?.parse::<u32>().ok()?;
                let arguments = std::fs::read(entry.path().join("cmdline")).ok()?;
                String::from_utf8_lossy(&arguments).contains(folder).then_some(pid)
            });
            for pid in others {
                held += 1;
                kill_if_there(pid, Signal::KILL);
            }
            held == 0
        };
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.directory.guardian_log()).unwrap_or_default();
            println!("the guardian's log:\n{log}");
            for file in [STARTS, "ends", "supervisors"] {
                println!("{file}: {:?}", lines(&self.folder().join(file)));
            }
            for instance in self.directory.instances().unwrap() {
                println!("{instance}: {:?}", self.directory.instance(&instance).holder());
            }
            for role_lock in [RoleLock::Guardian, RoleLock::Supervisor] {
                println!("{role_lock:?}: {:?}", self.running_as(role_lock));
            }
        }
        std::fs::write(self.folder().join(NO_SUPERVISOR), "").unwrap();
        if !std::thread::panicking() {
            until("all are dead", is_quiet);
        } else {
            (0..100).any(|_| is_quiet());
        }
        ControlGroups::of(&self.directory).iter().for_each(ControlGroups::remove);
    }
}

#[track_caller]
pub fn next_message(client: &mut GuardianClient, is_meant: impl Fn(&GuardianMessage) -> bool) -> GuardianMessage {
    until_some("the expected message arrives", || {
        let told = client.wait(PATIENCE).unwrap().expect("a message");
        is_meant(&told).then_some(told)
    })
}

#[track_caller]
pub fn ended(client: &mut GuardianClient, instance: &str, number: u64) -> EndStatus {
    let name = name(instance);
    let is_meant = |told: &GuardianMessage| matches!(told, GuardianMessage::Ended { instance, incarnation, .. } if *instance == name && *incarnation == number);
    match next_message(client, is_meant) {
        GuardianMessage::Ended { status, .. } => status,
        _ => unreachable!(),
    }
}

pub fn kill(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

pub fn kill_if_there(pid: u32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid as i32).unwrap(), signal);
}

pub fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

pub fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

pub fn children(pid: u32) -> Vec<(u32, char)> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let children = numbers.filter_map(|number| {
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        (fields.next()?.parse() == Ok(pid)).then_some((number, state))
    });
    children.collect()
}

#[track_caller]
pub fn no_zombies(pid: u32) {
    until("all dead children are reaped", || children(pid).iter().all(|(_, state)| *state != 'Z'));
}
