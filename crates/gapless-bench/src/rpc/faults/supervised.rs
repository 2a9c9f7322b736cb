//! Instances of a route under a supervisor; one instance, all, or supervisor and guardian are killed.

use super::killing::{Death, KillDice, Victims, kill};
use crate::rpc::check_interrupted;
use crate::rpc::{NAME, failed};
use clap::ValueEnum as _;
use gapless_load::rpc::faults::calling::caller_of;
use gapless_load::rpc::faults::content::{NumberFile, read_numbers};
use gapless_load::rpc::faults::serving::{FaultAssignment, SERVES, ServerPlace, open};
use gapless_measure::Row;
use gapless_measure::child_process::ChildRole;
use gapless_measure::reporting::put;
use gapless_measure::{BenchError, Result};
use gapless_rpc::{Caller, Domain, Retry};
use gapless_supervisor::SupervisorConfig;
use gapless_supervisor::control::protocol::InstanceCondition;
use gapless_supervisor::control::{
    ControlClient, SupervisionStatus, end_all, is_any_role_running, status_of_files, take_charge,
};
use gapless_supervisor::role::RoleCommand;
use gapless_supervisor::state_directory::StateDirectory;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

const RESTORED_WITHIN: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Victim {
    Supervisor,
    Guardian,
    /// Supervisor and guardian at once; a person starts them again.
    Both,
    Instance,
    AllInstances,
}

impl Victim {
    pub(super) const ALL: [Self; 5] =
        [Self::Supervisor, Self::Guardian, Self::Both, Self::Instance, Self::AllInstances];

    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Supervisor => "supervisor",
            Self::Guardian => "guardian",
            Self::Both => "supervisor_and_guardian",
            Self::Instance => "copy",
            Self::AllInstances => "all_copies",
        }
    }

    /// Whether calls may notice.
    pub(super) const fn is_serving(self) -> bool {
        matches!(self, Self::Instance | Self::AllInstances)
    }
}

pub(super) struct SupervisedProcesses<'a> {
    /// `None`: any of them at random.
    victim: Option<Victim>,
    instances: usize,
    file: PathBuf,
    config: SupervisorConfig,
    begun: PathBuf,
    started: PathBuf,
    caller: Caller<Vec<u8>, Vec<u8>>,
    _domain: Domain,
    at_first: SupervisorResources,
    instances_killed: u64,
    started_twice: u64,
    is_ended: bool,
    interrupted: &'a AtomicBool,
}

impl<'a> SupervisedProcesses<'a> {
    pub(super) fn start(
        (directory, instances, retry): (&Path, usize, Retry),
        victim: Option<Victim>,
        interrupted: &'a AtomicBool,
    ) -> Result<Self> {
        std::fs::create_dir(directory).map_err(|source| BenchError::io("create", directory, source))?;
        let [file, domain, begun, started] =
            ["supervisor.toml", "domain", "begun", "started"].map(|name| directory.join(name));
        NumberFile::open(&started)?;
        let place = ServerPlace::Supervised { domain: domain.clone(), started: started.clone() };
        let text = config_text(instances, &FaultAssignment { place, begun: begun.clone() })?;
        std::fs::write(&file, text).map_err(|source| BenchError::io("write", &file, source))?;
        let config = SupervisorConfig::load(&file).map_err(failed)?;
        let domain = open(&domain)?;
        let caller = caller_of(&domain, retry)?;
        let mut supervised = Self {
            victim,
            instances,
            file,
            config,
            begun,
            started,
            caller,
            _domain: domain,
            at_first: SupervisorResources::default(),
            instances_killed: 0,
            started_twice: 0,
            is_ended: false,
            interrupted,
        };
        supervised.take_charge()?;
        let status = supervised.restored(&[])?;
        supervised.at_first = SupervisorResources::of(&status);
        Ok(supervised)
    }

    fn take_charge(&self) -> Result<()> {
        take_charge(&self.file, &self.config, &RoleCommand::default(), RESTORED_WITHIN).map_err(failed)?;
        Ok(())
    }

    fn status(&self) -> Option<SupervisionStatus> {
        // One that was killed just now does not answer; the next one does.
        ControlClient::connect(&self.config.directory).ok()??.status().ok()
    }

    /// Waits until supervisor, guardian and all instances are there, none of them among `died`.
    fn restored(&self, died: &[u32]) -> Result<SupervisionStatus> {
        let deadline = Instant::now() + RESTORED_WITHIN;
        loop {
            check_interrupted(self.interrupted)?;
            let status = self.status();
            if let Some(status) = &status
                && processes(status).iter().all(|id| id.is_some_and(|id| !died.contains(&id)))
                && status.instances.len() == self.instances
                && status.instances.iter().all(|instance| instance.state == InstanceCondition::Ready)
            {
                return Ok(status.clone());
            }
            if Instant::now() >= deadline {
                let within = RESTORED_WITHIN.as_secs();
                return Err(failed(format!("after {within} s it is not as before a kill: {status:?}")));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Kills both until neither runs, then starts another supervisor, which takes over.
    fn kill_both(&self, status: &SupervisionStatus) -> Result<Vec<Death>> {
        let directory = StateDirectory::open(&self.config.directory).map_err(failed)?;
        let mut deaths = kill(&processes(status)[..2].iter().flatten().copied().collect::<Vec<_>>())?;
        // One may have restarted the other before its own end.
        while is_any_role_running(&directory).map_err(failed)? {
            let status = status_of_files(&directory).map_err(failed)?;
            let left: Vec<u32> = processes(&status)[..2].iter().flatten().copied().collect();
            // May have ended by itself.
            deaths.extend(kill(&left).unwrap_or_default());
        }
        self.take_charge()?;
        Ok(deaths)
    }

    fn living(&self) -> Result<u64> {
        let started = read_numbers(&self.started)?;
        let name = self.started.to_string_lossy();
        Ok(started.keys().filter(|id| is_process(**id, &name)).count() as u64)
    }
}

fn processes(status: &SupervisionStatus) -> Vec<Option<u32>> {
    let mut all = vec![status.supervisor.supervisor_process_id, status.supervisor.guardian_process_id];
    all.extend(status.instances.iter().map(|instance| instance.process_id));
    all
}

/// The number may belong to another process or a thread by now.
fn is_process(id: u64, named: &str) -> bool {
    let is_named = std::fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|command| command.contains(named));
    is_named
        && std::fs::read_to_string(format!("/proc/{id}/status")).is_ok_and(|status| {
            status.lines().any(|line| line.strip_prefix("Tgid:").is_some_and(|leader| leader.trim() == id.to_string()))
        })
}

fn config_text(instances: usize, assignment: &FaultAssignment) -> Result<String> {
    let program = std::env::current_exe().map_err(|source| BenchError::system("find this program", source))?;
    let role = ChildRole::RpcFaults.to_possible_value().expect("every role has a name");
    let assignment = serde_json::to_string(assignment)?;
    // JSON strings are TOML strings.
    let command =
        serde_json::to_string(&[&program.to_string_lossy(), "bench", "child", role.get_name(), &*assignment])?;
    Ok(format!(
        "[process.{NAME}]\ncommand = {command}\ninstances = {instances}\nready = {{ line = \"{SERVES}\" }}\n\
         # All are killed again and again, and by somebody else.\n\
         restart = {{ backoff_first = \"1 ms\", backoff_max = \"1 ms\", restarts_max = 1000000 }}\n\
         # An instance serves until it is killed.\n\
         stop = {{ grace = \"100 ms\" }}\n"
    ))
}

impl Victims for SupervisedProcesses<'_> {
    type Caller = Caller<Vec<u8>, Vec<u8>>;

    fn line(&mut self) -> Result<Self::Caller> {
        Ok(self.caller.clone())
    }

    fn kill(&mut self, dice: &mut KillDice) -> Result<Vec<Death>> {
        let status = self.restored(&[])?;
        let victim = self.victim.unwrap_or_else(|| Victim::ALL[dice.below(Victim::ALL.len())]);
        let all = processes(&status);
        let chosen = match victim {
            Victim::Supervisor => &all[..1],
            Victim::Guardian => &all[1..2],
            Victim::Both => &all[..2],
            Victim::Instance => {
                let copy = 2 + dice.below(self.instances);
                &all[copy..=copy]
            }
            Victim::AllInstances => &all[2..],
        };
        let died: Vec<u32> = chosen.iter().flatten().copied().collect();
        let deaths = if victim == Victim::Both { self.kill_both(&status)? } else { kill(&died)? };
        if victim.is_serving() {
            self.instances_killed += died.len() as u64;
        }
        self.restored(&died)?;
        self.started_twice += self.living()?.saturating_sub(self.instances as u64);
        Ok(deaths)
    }

    fn begun(&self) -> PathBuf {
        self.begun.clone()
    }

    fn retried(&self) -> u64 {
        self.caller.statistics().retried
    }

    fn finish(mut self, row: &mut Row) -> Result<()> {
        let status = self.restored(&[])?;
        let at_last = SupervisorResources::of(&status);
        let restarts: u64 = status.instances.iter().map(|instance| instance.restarts).sum();
        end_all(&self.config.directory, &RoleCommand::default(), RESTORED_WITHIN).map_err(failed)?;
        self.is_ended = true;
        let orphans = self.living()?;
        put(row, "copies_killed", self.instances_killed);
        put(row, "restarts", restarts);
        put(row, "started_twice", self.started_twice);
        put(row, "orphans", orphans);
        for (key, before, after) in [
            ("descriptors", self.at_first.descriptors, at_last.descriptors),
            ("memory_bytes", self.at_first.memory_bytes, at_last.memory_bytes),
        ] {
            put(row, &format!("{key}_at_first"), before);
            put(row, &format!("{key}_at_last"), after);
        }
        let is_kept = at_last.descriptors <= self.at_first.descriptors;
        let is_right = self.started_twice == 0 && orphans == 0 && restarts == self.instances_killed && is_kept;
        row.verified = row.verified.map(|verified| verified && is_right);
        Ok(())
    }
}

impl Drop for SupervisedProcesses<'_> {
    fn drop(&mut self) {
        if !self.is_ended {
            // The error of the measurement says more.
            let _ = end_all(&self.config.directory, &RoleCommand::default(), RESTORED_WITHIN);
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SupervisorResources {
    descriptors: u64,
    memory_bytes: u64,
}

impl SupervisorResources {
    fn of(status: &SupervisionStatus) -> Self {
        let both = processes(status).into_iter().take(2).flatten();
        both.fold(Self::default(), |sum, id| Self {
            descriptors: sum.descriptors + descriptors(id),
            memory_bytes: sum.memory_bytes + memory_bytes(id),
        })
    }
}

/// Excludes connections, which come and go with each request.
fn descriptors(process_id: u32) -> u64 {
    let Ok(listed) = std::fs::read_dir(format!("/proc/{process_id}/fd")) else { return 0 };
    let targets = listed.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets.filter(|target| !target.to_string_lossy().starts_with("socket:")).count() as u64
}

fn memory_bytes(process_id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process_id}/status")).unwrap_or_default();
    let kilobytes =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok());
    kilobytes.unwrap_or(0_u64) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_one_of_a_supervisor() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a \"b\".toml");
        let place = ServerPlace::Supervised { domain: "/d \"e\"".into(), started: "/s".into() };
        let assignment = FaultAssignment { place, begun: "/b\\c".into() };
        let text = config_text(4, &assignment).unwrap();
        let config = SupervisorConfig::parse(&text, "file", &file).unwrap();
        let process = config.process(NAME).unwrap();
        assert_eq!((process.instances_min, process.arguments[..3].join(" ")), (4, "bench child rpc-faults".to_owned()));
        assert_eq!(serde_json::from_str::<FaultAssignment>(&process.arguments[3]).unwrap(), assignment);
    }

    #[test]
    fn a_thread_is_not_taken_for_a_process() {
        let id = std::process::id();
        let command = std::fs::read_to_string("/proc/self/cmdline").unwrap();
        let named = command.split('\0').next().unwrap();
        assert!(is_process(u64::from(id), named));
        assert!(!is_process(u64::from(id), "what no command contains"));
        let (told, tells) = std::sync::mpsc::channel();
        let (over, ends) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            told.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            ends.recv().unwrap_err();
        });
        let thread_id = tells.recv().unwrap();
        assert!(std::fs::exists(format!("/proc/{thread_id}/cmdline")).unwrap());
        assert!(!is_process(u64::from(thread_id.unsigned_abs()), named));
        drop(over);
        other.join().unwrap();
    }

    #[test]
    fn what_a_process_uses_is_seen() {
        let id = std::process::id();
        let before = descriptors(id);
        let _file = std::fs::File::open("/proc/self/stat").unwrap();
        let _socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(descriptors(id) > 0 && before > 0);
        assert!(memory_bytes(id) > 1 << 20);
        assert_eq!((descriptors(u32::MAX), memory_bytes(u32::MAX)), (0, 0));
    }
}
