//! `status_of_files`: status without a running supervisor.

use super::client::SupervisionStatus;
use super::protocol::{InstanceCondition, InstanceStatus, SupervisorStatus};
use crate::clock::now_ns;
use crate::config::SupervisorConfig;
use crate::error::SupervisorError;
use crate::instance_name::InstanceName;
use crate::process_facts::{ProcessTimes, memory_bytes};
use crate::state_directory::{Holder, ProcessIdentity, StateDirectory};
use crate::supervision::instance::{InstanceProgress, PersistentInstance};
use crate::supervision::{PersistentSupervision, Supervision};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Reads the status from the files of a state directory: running instances by their locks, and the last persisted
/// state. An instance with an unreadable lock is listed with the reason.
///
/// # Errors
/// The directory cannot be read.
pub fn status_of_files(directory: &StateDirectory) -> Result<SupervisionStatus, SupervisorError> {
    let in_force = directory.read_config_in_force()?;
    let config =
        in_force.as_ref().and_then(|in_force| SupervisorConfig::parse_in_force(&in_force.text, &in_force.path).ok());
    let state = OfflineState::read(directory);
    let mut instances = Vec::new();
    for (name, holder) in current(directory, config.as_ref(), &state)? {
        let process_in_other_namespace = matches!(holder, Ok(Holder::Hidden { .. }));
        let mut persistent = state.instance(&name);
        let is_running = !matches!(holder, Ok(Holder::Free { .. }));
        let (process_id, since_ms) = match &holder {
            Ok(Holder::Recorded { record, .. } | Holder::Hidden { record: Some(record) }) => {
                (Some(record.process.process_id), record.process.age_ms())
            }
            Ok(Holder::Foreign { process_id }) => (Some(*process_id), None),
            Ok(Holder::Descendants(others)) => (others.first().map(|other| other.process_id), None),
            Ok(Holder::Hidden { record: None } | Holder::Free { .. }) | Err(_) => (None, None),
        };
        let condition = match holder {
            Err(error) => {
                persistent.last_reason = Some(error.to_string());
                InstanceCondition::Unreadable
            }
            Ok(_) if is_running => InstanceCondition::Unwatched,
            Ok(_) => at_rest(&persistent),
        };
        let seen_here = process_id.filter(|_| !process_in_other_namespace);
        let times = seen_here.and_then(ProcessTimes::of);
        let notes = state.instances.get(&name.to_string());
        instances.push(InstanceStatus {
            state: condition,
            process_id,
            since_ms: since_ms.unwrap_or_else(|| at_rest_ms(&persistent)),
            restarts: persistent.restarts,
            last_end: persistent.last_end,
            last_reason: persistent.last_reason,
            says: None,
            last_lines: notes.map(|notes| notes.last_lines.clone()).unwrap_or_default(),
            log: None,
            cpu_ms: times.map(|times| times.cpu_ms),
            running_ms: times.map(|times| times.running_ms),
            memory_bytes: seen_here.and_then(memory_bytes),
            process_in_other_namespace,
            instance: name,
        });
    }
    let domain = config.map(|config| config.domain);
    let file = in_force.map(|in_force| in_force.path);
    Ok(SupervisionStatus { supervisor: SupervisorStatus { file, domain, ..SupervisorStatus::default() }, instances })
}

type HolderResult = Result<Holder, SupervisorError>;

/// Configured instances in the order of the configuration, followed by other running ones, with the holders of their
/// locks. Ended instances of earlier scales and reloads are left out. A holder's error belongs to its instance.
fn current(
    directory: &StateDirectory,
    config: Option<&SupervisorConfig>,
    state: &OfflineState,
) -> Result<Vec<(InstanceName, HolderResult)>, SupervisorError> {
    let of = |name: InstanceName| (name.clone(), directory.instance(&name).holder());
    let mut started: BTreeMap<_, _> = directory.instances()?.into_iter().map(of).collect();
    let mut found = Vec::new();
    let supervision = config.map(|config| Supervision::new(config, state.supervision.clone()));
    for process in supervision.iter().flat_map(Supervision::processes) {
        for number in 1..=process.scale() {
            let Ok(name) = InstanceName::new(&process.config.name, number) else { continue };
            let holder = started.remove(&name).unwrap_or(Ok(Holder::Free { last: None }));
            found.push((name, holder));
        }
    }
    found.extend(started.into_iter().filter(|(_, holder)| !matches!(holder, Ok(Holder::Free { .. }))));
    Ok(found)
}

fn at_rest(persistent: &PersistentInstance) -> InstanceCondition {
    let has_succeeded = persistent.last_end.as_ref().is_some_and(|end| end.is_success());
    match persistent.progress {
        InstanceProgress::Held => InstanceCondition::Held,
        InstanceProgress::Done if has_succeeded => InstanceCondition::Done,
        InstanceProgress::Done => InstanceCondition::Failed,
        _ => InstanceCondition::Stopped,
    }
}

fn at_rest_ms(persistent: &PersistentInstance) -> u64 {
    let was_running = persistent.changed_ns == 0 || persistent.progress.is_running();
    if was_running { 0 } else { now_ns().saturating_sub(persistent.changed_ns) / 1_000_000 }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OfflineState {
    boot: String,
    supervision: PersistentSupervision,
    #[serde(alias = "copies")]
    instances: BTreeMap<String, OfflineNotes>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OfflineNotes {
    last_lines: Vec<String>,
}

impl OfflineState {
    /// Running instances are found by their locks regardless.
    fn read(directory: &StateDirectory) -> Self {
        let found: Self = directory.read_state().ok().flatten().unwrap_or_default();
        let boot = ProcessIdentity::of_this().map(|process| process.boot);
        if boot.is_ok_and(|boot| boot == found.boot) { found } else { Self::default() }
    }

    fn instance(&self, name: &InstanceName) -> PersistentInstance {
        let process = self.supervision.processes.get(name.process());
        process.and_then(|process| process.instances.get(&name.number()).cloned()).unwrap_or_default()
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
        let instance = directory.instance(&"a.1".parse().unwrap());
        instance.prepare().unwrap();
        mknodat(CWD, instance.path().join("lock"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let instances = status_of_files(&directory).unwrap().instances;
        assert_eq!(
            [instances[0].state, instances[1].state],
            [InstanceCondition::Unreadable, InstanceCondition::Stopped]
        );
        let reason = instances[0].last_reason.as_deref().unwrap_or_default();
        assert!(reason.contains("a.1/lock: it is a pipe, no regular file"), "{reason}");
    }
}
