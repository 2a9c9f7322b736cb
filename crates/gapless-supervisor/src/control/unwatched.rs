//! [`status_of_files`]: status without a running supervisor.

use super::client::Status;
use super::protocol::{CopyCondition, CopyStatus, SupervisorStatus};
use crate::clock::now_ns;
use crate::config::SupervisorConfig;
use crate::copy_name::CopyName;
use crate::error::SupervisorError;
use crate::process_facts::{ProcessTimes, memory_bytes};
use crate::state_directory::{Holder, ProcessIdentity, StateDirectory};
use crate::supervision::copy::{CopyMemory, Progress};
use crate::supervision::{Memory, Supervision};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Reads the status from the files of a state directory: running instances by their locks, and the state that the last
/// supervisor has persisted. An instance with an unreadable lock is listed with the reason.
///
/// # Errors
/// The directory cannot be read.
pub fn status_of_files(directory: &StateDirectory) -> Result<Status, SupervisorError> {
    let in_force = directory.read_config_in_force()?;
    let config =
        in_force.as_ref().and_then(|in_force| SupervisorConfig::parse_in_force(&in_force.text, &in_force.path).ok());
    let remembered = Remembered::read(directory);
    let mut copies = Vec::new();
    for (name, holder) in current(directory, config.as_ref(), &remembered)? {
        let process_in_other_namespace = matches!(holder, Ok(Holder::Hidden { .. }));
        let mut memory = remembered.copy(&name);
        let is_running = !matches!(holder, Ok(Holder::Nobody { .. }));
        let (process_id, since_ms) = match &holder {
            Ok(Holder::Recorded { record, .. } | Holder::Hidden { record: Some(record) }) => {
                (Some(record.process.process_id), record.process.age_ms())
            }
            Ok(Holder::Foreign { process_id }) => (Some(*process_id), None),
            Ok(Holder::Others(others)) => (others.first().map(|other| other.process_id), None),
            Ok(Holder::Hidden { record: None } | Holder::Nobody { .. }) | Err(_) => (None, None),
        };
        let state = match holder {
            Err(error) => {
                memory.last_reason = Some(error.to_string());
                CopyCondition::Unreadable
            }
            Ok(_) if is_running => CopyCondition::Unwatched,
            Ok(_) => at_rest(&memory),
        };
        let seen_here = process_id.filter(|_| !process_in_other_namespace);
        let times = seen_here.and_then(ProcessTimes::of);
        let notes = remembered.copies.get(&name.to_string());
        copies.push(CopyStatus {
            state,
            process_id,
            since_ms: since_ms.unwrap_or_else(|| at_rest_ms(&memory)),
            restarts: memory.restarts,
            last_end: memory.last_end,
            last_reason: memory.last_reason,
            says: None,
            last_lines: notes.map(|notes| notes.last_lines.clone()).unwrap_or_default(),
            log: None,
            cpu_ms: times.map(|times| times.cpu_ms),
            running_ms: times.map(|times| times.running_ms),
            memory_bytes: seen_here.and_then(memory_bytes),
            process_in_other_namespace,
            copy: name,
        });
    }
    let domain = config.map(|config| config.domain);
    let file = in_force.map(|in_force| in_force.path);
    Ok(Status { supervisor: SupervisorStatus { file, domain, ..SupervisorStatus::default() }, copies })
}

/// Holder of an instance's lock, or the reason why it cannot be determined.
type Looked = Result<Holder, SupervisorError>;

/// Configured instances in the order of the configuration, followed by other running ones, with the holders of their
/// locks. Ended instances of earlier scales and reloads are left out. A holder's error belongs to its instance.
fn current(
    directory: &StateDirectory,
    config: Option<&SupervisorConfig>,
    remembered: &Remembered,
) -> Result<Vec<(CopyName, Looked)>, SupervisorError> {
    let of = |name: CopyName| (name.clone(), directory.copy(&name).holder());
    let mut started: BTreeMap<_, _> = directory.copies()?.into_iter().map(of).collect();
    let mut found = Vec::new();
    // The number of instances follows from the rules.
    let supervision = config.map(|config| Supervision::new(config, remembered.supervision.clone()));
    for process in supervision.iter().flat_map(Supervision::processes) {
        for number in 1..=process.scale() {
            let Ok(name) = CopyName::new(&process.config.name, number) else { continue };
            let holder = started.remove(&name).unwrap_or(Ok(Holder::Nobody { last: None }));
            found.push((name, holder));
        }
    }
    found.extend(started.into_iter().filter(|(_, holder)| !matches!(holder, Ok(Holder::Nobody { .. }))));
    Ok(found)
}

/// State of an instance that does not run.
fn at_rest(memory: &CopyMemory) -> CopyCondition {
    let has_succeeded = memory.last_end.as_ref().is_some_and(|end| end.is_success());
    match memory.progress {
        Progress::Held => CopyCondition::Held,
        Progress::Done if has_succeeded => CopyCondition::Done,
        Progress::Done => CopyCondition::Failed,
        _ => CopyCondition::Stopped,
    }
}

/// Time since its end if a supervisor has observed it, else 0; ms.
fn at_rest_ms(memory: &CopyMemory) -> u64 {
    let was_running = memory.changed_ns == 0 || memory.progress.is_running();
    if was_running { 0 } else { now_ns().saturating_sub(memory.changed_ns) / 1_000_000 }
}

/// Shown part of the persistent state.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Remembered {
    boot: String,
    supervision: Memory,
    copies: BTreeMap<String, Notes>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Notes {
    last_lines: Vec<String>,
}

impl Remembered {
    /// Empty if the state is unreadable or from another boot; running instances are found by their locks regardless.
    fn read(directory: &StateDirectory) -> Self {
        let found: Self = directory.read_memory().ok().flatten().unwrap_or_default();
        let boot = ProcessIdentity::of_this().map(|process| process.boot);
        if boot.is_ok_and(|boot| boot == found.boot) { found } else { Self::default() }
    }

    fn copy(&self, name: &CopyName) -> CopyMemory {
        let process = self.supervision.processes.get(name.process());
        process.and_then(|process| process.copies.get(&name.number()).cloned()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_directory::ConfigInForce;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    #[test]
    fn unreadable_lock_is_listed() {
        let folder = tempfile::tempdir().unwrap();
        let directory = StateDirectory::create(&folder.path().join("state"), None).unwrap();
        let text = "[process.a]\ncommand = [\"/bin/true\"]\n[process.b]\ncommand = [\"/bin/true\"]\n".to_owned();
        directory.write_config_in_force(&ConfigInForce { path: folder.path().join("floor.toml"), text }).unwrap();
        let copy = directory.copy(&"a.1".parse().unwrap());
        copy.prepare().unwrap();
        mknodat(CWD, copy.path().join("lock"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let copies = status_of_files(&directory).unwrap().copies;
        assert_eq!([copies[0].state, copies[1].state], [CopyCondition::Unreadable, CopyCondition::Stopped]);
        let reason = copies[0].last_reason.as_deref().unwrap_or_default();
        assert!(reason.contains("a.1/lock: it is a pipe, no regular file"), "{reason}");
    }
}
