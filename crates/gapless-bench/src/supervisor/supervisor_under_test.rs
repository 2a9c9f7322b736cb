//! `SupervisorUnderTest`: instances under the supervisor of this program, and what is done to them.

use super::failed;
use crate::{BenchError, Result};
use gapless_supervisor::InstanceName;
use gapless_supervisor::control::protocol::{EventSubject, InstanceCondition, SupervisorAnswer, SupervisorRequest};
use gapless_supervisor::control::{ControlClient, SupervisionStatus};
use gapless_supervisor::supervision::event::InstanceEventKind;
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_micros(500);

/// Dropping ends all processes.
pub(super) struct SupervisorUnderTest {
    directory: PathBuf,
    instances: usize,
    is_up: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ReplacementTimes {
    pub(super) started: Duration,
    /// Time until the replacement runs its program.
    pub(super) ready: Duration,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct TakeoverTimes {
    /// Time until the next supervisor takes commands.
    pub(super) listening: Duration,
    /// Time until it reports all instances as ready.
    pub(super) in_control: Duration,
}

impl SupervisorUnderTest {
    /// Starts processes of one instance each; returns also the time of `gapless up`.
    pub(super) fn up(folder: &Path, instances: usize) -> Result<(Self, Duration)> {
        let file = folder.join("floor.toml");
        let mut text = "[supervisor]\ndirectory = \"state\"\n".to_owned();
        for number in 1..=instances {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "[process.p{number}]\ncommand = [\"sleep\", \"1000000\"]\nrestart = {{ restarts_max = 100000 }}"
            );
        }
        std::fs::write(&file, text).map_err(|source| BenchError::io("write", &file, source))?;
        let stand = Self { directory: folder.join("state"), instances, is_up: true };
        let begun = Instant::now();
        program(&["up".as_ref(), file.as_os_str()])?;
        Ok((stand, begun.elapsed()))
    }

    pub(super) fn down(&mut self) -> Result<()> {
        self.is_up = false;
        program(&["down".as_ref(), "--at".as_ref(), self.directory.as_os_str()])
    }

    pub(super) fn processes(&self) -> Result<[u32; 2]> {
        let status = self.status().ok_or_else(|| failed("no supervisor answers"))?;
        let missing = || failed("there is no guardian");
        let guardian = status.supervisor.guardian_process_id.ok_or_else(missing)?;
        Ok([guardian, status.supervisor.supervisor_process_id.unwrap_or(0)])
    }

    pub(super) fn kill_instance(&mut self, index: usize) -> Result<ReplacementTimes> {
        let name = format!("p{}.1", index + 1).parse::<InstanceName>().map_err(failed)?;
        let status = self.status().ok_or_else(|| failed("no supervisor answers"))?;
        let pid =
            status.instances.iter().find(|instance| instance.instance == name).and_then(|instance| instance.process_id);
        let pid = pid.ok_or_else(|| failed(format!("{name} does not run")))?;
        let mut client = ControlClient::connect_within(&self.directory, TIMEOUT).map_err(failed)?;
        client.request(&SupervisorRequest::Events).map_err(failed)?;
        let begun = Instant::now();
        kill(pid)?;
        let mut started = None;
        loop {
            let left = TIMEOUT.saturating_sub(begun.elapsed());
            let answer = client.next(left).map_err(failed)?;
            let Some(SupervisorAnswer::Event { record }) = answer else {
                return Err(failed(format!("{name} was killed and is not back")));
            };
            let EventSubject::Instance(event) = record.subject else { continue };
            if event.instance != name {
                continue;
            }
            match event.what {
                InstanceEventKind::Started { .. } => started = Some(begun.elapsed()),
                InstanceEventKind::Ready => {
                    let ready = begun.elapsed();
                    return Ok(ReplacementTimes { started: started.unwrap_or(ready), ready });
                }
                _ => {}
            }
        }
    }

    pub(super) fn kill_supervisor(&mut self) -> Result<TakeoverTimes> {
        let [_, supervisor] = self.processes()?;
        let begun = Instant::now();
        kill(supervisor)?;
        let mut listening = None;
        while begun.elapsed() < TIMEOUT {
            // A connection that the dead one had not accepted ends without an answer.
            let Some(mut client) = connect(&self.directory)? else { continue };
            let came = begun.elapsed();
            if let Ok(status) = client.status()
                && status.supervisor.supervisor_process_id != Some(supervisor)
            {
                let listening = *listening.get_or_insert(came);
                if self.are_ready(&status) {
                    return Ok(TakeoverTimes { listening, in_control: begun.elapsed() });
                }
            }
        }
        Err(failed("the supervisor was killed, and no other is in control"))
    }

    pub(super) fn kill_guardian(&mut self) -> Result<Duration> {
        let [guardian, _] = self.processes()?;
        let begun = Instant::now();
        kill(guardian)?;
        while begun.elapsed() < TIMEOUT {
            let is_back =
                |status: &SupervisionStatus| status.supervisor.guardian_process_id.is_some_and(|pid| pid != guardian);
            if self.status().is_some_and(|status| is_back(&status) && self.are_ready(&status)) {
                return Ok(begun.elapsed());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Err(failed("the guardian was killed, and no other is there"))
    }

    fn are_ready(&self, status: &SupervisionStatus) -> bool {
        status.instances.iter().filter(|instance| instance.state == InstanceCondition::Ready).count() == self.instances
    }

    fn status(&self) -> Option<SupervisionStatus> {
        ControlClient::connect_within(&self.directory, TIMEOUT).ok()?.status().ok()
    }
}

impl Drop for SupervisorUnderTest {
    fn drop(&mut self) {
        if self.is_up && self.down().is_err() {
            eprintln!("note: what runs in {} could not be ended", self.directory.display());
        }
    }
}

fn connect(directory: &Path) -> Result<Option<ControlClient>> {
    let connected = ControlClient::connect(directory).map_err(failed)?;
    if connected.is_none() {
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(connected)
}

fn kill(pid: u32) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| failed(format!("no process {pid}")))?;
    kill_process(pid, Signal::KILL).map_err(|errno| BenchError::system("kill a process", errno))
}

fn program(arguments: &[&std::ffi::OsStr]) -> Result<()> {
    let mut command = Command::new("/proc/self/exe");
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.status().map_err(|source| BenchError::system("start this program", source))?;
    if status.success() {
        Ok(())
    } else {
        Err(failed(format!("gapless {} ended with {status}", arguments[0].display())))
    }
}
