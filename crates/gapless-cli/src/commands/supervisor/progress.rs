//! `ProgressPrinter`: prints state changes of the instances of a file.

use super::connect;
use super::text::last_end;
use crate::commands::{CommandResult, ExitError, is_printed};
use gapless_supervisor::SupervisorError;
use gapless_supervisor::control::protocol::{InstanceCondition, InstanceStatus};
use gapless_supervisor::control::{ControlClient, SupervisionStatus};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(20);

#[derive(Default)]
pub(super) struct ProgressPrinter {
    shown: BTreeMap<String, (InstanceCondition, u64)>,
}

impl ProgressPrinter {
    /// Ends when all instances are ready, or cannot become so without help.
    pub(super) fn follow(
        &mut self,
        client: &mut ControlClient,
        directory: &std::path::Path,
        within: u32,
        interrupted: &AtomicBool,
    ) -> CommandResult {
        let deadline = Instant::now() + Duration::from_secs(within.into());
        loop {
            let is_over = || Instant::now() >= deadline || interrupted.load(Ordering::Relaxed);
            let status = match client.status() {
                Ok(status) => status,
                Err(error) if is_over() || matches!(error, SupervisorError::Refused(_)) => return Err(Box::new(error)),
                // The supervisor was killed; another one takes over.
                Err(_) => {
                    std::thread::sleep(PAUSE);
                    *client = connect(directory)?;
                    continue;
                }
            };
            self.show(&status)?;
            if is_up(&status) {
                crate::commands::print(&format!("{}\n", summary(&status)))?;
                return Ok(());
            }
            if is_given_up(&status) || is_over() {
                return Err(Box::new(ExitError { code: 1, reason: summary(&status) }));
            }
            std::thread::sleep(PAUSE);
        }
    }

    pub(super) fn show(&mut self, status: &SupervisionStatus) -> CommandResult {
        for instance in &status.instances {
            let now = (instance.state, instance.restarts);
            if self.shown.insert(instance.instance.to_string(), now) != Some(now) {
                is_printed(&format!("{}\n", described(instance)))?;
            }
        }
        Ok(())
    }
}

pub(super) fn is_up(status: &SupervisionStatus) -> bool {
    status.instances.iter().all(|instance| instance.state.is_good())
}

/// Whether only a person can help.
pub(super) fn is_given_up(status: &SupervisionStatus) -> bool {
    let is_waited_for = |instance: &InstanceStatus| {
        matches!(
            instance.state,
            InstanceCondition::Starting | InstanceCondition::Stopping | InstanceCondition::BackingOff
        )
    };
    status.instances.iter().any(|instance| instance.state.is_given_up()) && !status.instances.iter().any(is_waited_for)
}

pub(super) fn summary(status: &SupervisionStatus) -> String {
    if is_up(status) {
        let count = status.instances.len();
        return format!("{} {} up", counted(count), if count == 1 { "is" } else { "are" });
    }
    let missing = status.instances.iter().filter(|instance| !instance.state.is_good());
    format!("not ready: {}", missing.map(described).collect::<Vec<_>>().join(", "))
}

fn counted(instances: usize) -> String {
    if instances == 1 { "1 instance".to_owned() } else { format!("{instances} instances") }
}

fn described(instance: &InstanceStatus) -> String {
    let mut text = format!("{}: {}", instance.instance, instance.state);
    if !instance.state.is_good() && instance.last_end.is_some() {
        text += &format!(" ({})", last_end(instance));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_supervisor::state_directory::{StateDirectory, StateSocket};
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

    fn follow_one_that_dies(within: u32, is_interrupted: bool) -> String {
        let folder = tempfile::tempdir().unwrap();
        let directory = StateDirectory::create(&folder.path().join("state"), None).unwrap();
        let listener = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        let address = SocketAddrUnix::new(directory.path().join(StateSocket::Control.file())).unwrap();
        rustix::net::bind(&listener, &address).unwrap();
        rustix::net::listen(&listener, 16).unwrap();
        let taken = listener.try_clone().unwrap();
        let dying = std::thread::spawn(move || while rustix::net::accept(&taken).is_ok() {});
        let mut client = ControlClient::connect(directory.path()).unwrap().unwrap();
        let interrupted = AtomicBool::new(is_interrupted);
        let error = ProgressPrinter::default().follow(&mut client, directory.path(), within, &interrupted).unwrap_err();
        rustix::net::shutdown(&listener, rustix::net::Shutdown::Both).unwrap();
        dying.join().unwrap();
        error.to_string()
    }

    #[test]
    fn dying_supervisor_is_given_up() {
        for error in [follow_one_that_dies(0, false), follow_one_that_dies(3600, true)] {
            assert!(error.contains("the supervisor of"), "{error}");
        }
    }
}
