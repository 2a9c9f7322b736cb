//! Adopts running instances after a restart of the supervisor or the guardian, and finds those that ended in the
//! meantime.

use super::service::SupervisorDriver;
use super::watched_instance::{WatchedInstance, has_survivors, pidfd_of};
use crate::clock::now_ns;
use crate::control_groups;
use crate::end_status::EndStatus;
use crate::error::SupervisorError;
use crate::guardian::protocol::{ChildReport, GuardianRequest};
use crate::instance_name::InstanceName;
use crate::state_directory::{Holder, StateDirectory};
use crate::supervision::Supervision;
use crate::supervision::instance::{InstanceEnd, InstanceProgress};
use rustix::process::{Signal, pidfd_send_signal};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

const ATTEMPTS_MAX: u32 = 200;
const PAUSE: Duration = Duration::from_millis(5);

impl SupervisorDriver {
    /// Adopts instances that the guardian or a lock reports as running; all others have ended.
    pub fn take_over(&mut self, known: Vec<ChildReport>) -> Result<(), SupervisorError> {
        let mut persistent = self.supervision.persistent_state();
        let instances = self.directory.instances()?;
        // Incarnations stay unique even if the last state could not be written.
        for name in &instances {
            let intent = self.directory.instance(name).read_launch().ok().flatten();
            persistent.last_incarnation = persistent.last_incarnation.max(intent.map_or(0, |plan| plan.incarnation));
        }
        let last = known.iter().map(|child| child.incarnation).max();
        persistent.last_incarnation = persistent.last_incarnation.max(last.unwrap_or(0));
        self.supervision = Supervision::new(&self.config, persistent);
        for name in instances {
            self.adopt(&name, &known)?;
        }
        self.kill_children_without_files(&known);
        let ends: HashMap<(InstanceName, u64), EndStatus> =
            known.into_iter().filter_map(|child| Some(((child.instance, child.incarnation), child.ended?))).collect();
        let directory = &self.directory;
        let seen = |name: &InstanceName, incarnation| match ends.get(&(name.clone(), incarnation)) {
            Some(status) => Some(InstanceEnd::Status(*status)),
            None => has_begun(directory, name, incarnation).then_some(InstanceEnd::Unseen),
        };
        self.supervision.end_unadopted(now_ns(), seen, &mut self.actions);
        self.to_forget.extend(ends.keys().cloned());
        self.is_dirty = true;
        Ok(())
    }

    /// Children without files cannot be supervised, and would run a second time.
    fn kill_children_without_files(&self, known: &[ChildReport]) {
        let found: HashSet<u32> = self.watched.values().filter_map(|watched| watched.process_id).collect();
        for child in known.iter().filter(|child| child.ended.is_none() && !found.contains(&child.process_id)) {
            tracing::error!("{}: process {} is killed, whose files were removed", child.instance, child.process_id);
            if let Some(pidfd) = pidfd_of(child.process_id) {
                // Fails if it has died meanwhile.
                let _ = pidfd_send_signal(&pidfd, Signal::KILL);
            }
        }
    }

    fn adopt(&mut self, name: &InstanceName, known: &[ChildReport]) -> Result<(), SupervisorError> {
        let intent = self.directory.instance(name).read_launch().ok().flatten();
        // In a copied state directory the group belongs to the original, whose instances still run.
        let is_own = |group: &PathBuf| control_groups::belongs_to(&self.directory, group);
        let group = intent.as_ref().and_then(|plan| plan.cgroup.clone()).filter(is_own);
        let living = |child: &&ChildReport| {
            child.instance == *name
                && child.ended.is_none()
                && intent.as_ref().is_some_and(|plan| plan.incarnation == child.incarnation)
        };
        if let Some(child) = known.iter().find(living) {
            let mut watched = WatchedInstance::requested(child.incarnation, group);
            watched.runs_as(child.process_id, pidfd_of(child.process_id), true);
            self.watched.insert(name.clone(), watched);
            self.supervision.adopt(now_ns(), name, child.incarnation, child.process_id);
            return Ok(());
        }
        for _ in 0..ATTEMPTS_MAX {
            match self.directory.instance(name).holder()? {
                Holder::Free { .. } => {
                    let Some(left) = group.as_deref().filter(|group| has_survivors(group)) else { return Ok(()) };
                    if self.adopt_descendants(name, known, group.as_ref()) {
                        return Ok(());
                    }
                    control_groups::kill(left);
                    std::thread::sleep(PAUSE);
                }
                Holder::Recorded { record, pidfd } => {
                    self.supervision.adopt(now_ns(), name, record.incarnation, record.process.process_id);
                    let processes = self.supervision.processes().iter();
                    let process = processes.filter(|process| process.config.name == name.process());
                    let instance =
                        process.flat_map(|process| process.instances()).find(|(number, _)| *number == name.number());
                    let incarnation =
                        instance.map_or(record.incarnation, |(_, instance)| instance.persistent.incarnation);
                    let mut watched = WatchedInstance::requested(incarnation, group);
                    watched.runs_as(record.process.process_id, Some(pidfd), false);
                    self.watched.insert(name.clone(), watched);
                    return Ok(());
                }
                Holder::Descendants(_) if self.adopt_descendants(name, known, group.as_ref()) => return Ok(()),
                Holder::Descendants(orphans) => {
                    for orphan in orphans {
                        // Fails if it has died meanwhile.
                        let _ = pidfd_send_signal(&orphan.pidfd, Signal::KILL);
                    }
                    std::thread::sleep(PAUSE);
                }
                Holder::Foreign { .. } | Holder::Hidden { .. } => std::thread::sleep(PAUSE),
            }
        }
        tracing::error!(
            "{name}: its lock is held by processes that cannot be killed, or seen from this process namespace; it is not started \
             until they end"
        );
        Ok(())
    }

    /// Watches the descendants of an instance that ended within its grace period; false for others.
    fn adopt_descendants(&mut self, name: &InstanceName, known: &[ChildReport], group: Option<&PathBuf>) -> bool {
        let processes = self.supervision.processes().iter().filter(|process| process.config.name == name.process());
        let instance = processes.flat_map(|process| process.instances()).find(|(number, _)| *number == name.number());
        let Some((_, instance)) = instance else { return false };
        let is_in_time =
            matches!(instance.progress(), InstanceProgress::Stopping { kill_at_ns, .. } if kill_at_ns > now_ns());
        let incarnation = instance.persistent.incarnation;
        let of_instance = |child: &&ChildReport| child.instance == *name && child.incarnation == incarnation;
        let child = known.iter().find(of_instance).and_then(|child| Some((child.process_id, child.ended?)));
        let Some((process_id, status)) = child.filter(|_| is_in_time) else { return false };
        let mut watched = WatchedInstance::requested(incarnation, group.cloned());
        watched.runs_as(process_id, None, true);
        watched.end(InstanceEnd::Status(status));
        self.watched.insert(name.clone(), watched);
        self.supervision.adopt(now_ns(), name, incarnation, process_id);
        true
    }

    /// Compares with the children of a new or reconnected guardian.
    pub fn compare_children(&mut self, known: Vec<ChildReport>) {
        let mut known: HashMap<(InstanceName, u64), ChildReport> =
            known.into_iter().map(|child| ((child.instance.clone(), child.incarnation), child)).collect();
        let mut asks = Vec::new();
        let mut started = Vec::new();
        let mut ended = Vec::new();
        for (instance, watched) in &mut self.watched {
            match known.remove(&(instance.clone(), watched.incarnation)) {
                Some(ChildReport { ended: Some(status), .. }) => {
                    ended.push((instance.clone(), watched.incarnation, status))
                }
                Some(child) if watched.process_id == Some(child.process_id) => watched.is_guardians = true,
                Some(child) => started.push((instance.clone(), watched.incarnation, child.process_id)),
                // Whether the start was carried out is unknown: it is requested again, and the lock prevents a second
                // run.
                None if watched.process_id.is_none() => {
                    asks.push(GuardianRequest::Start { instance: instance.clone(), incarnation: watched.incarnation });
                }
                None if watched.pidfd.is_none() => watched.end(InstanceEnd::Unseen),
                None => {}
            }
        }
        started.into_iter().for_each(|(instance, incarnation, pid)| self.note_start(&instance, incarnation, pid));
        ended.into_iter().for_each(|(instance, incarnation, status)| self.note_end(instance, incarnation, status));
        let others = known.into_values().filter(|child| child.ended.is_some());
        self.to_forget.extend(others.map(|child| (child.instance, child.incarnation)));
        asks.iter().for_each(|ask| self.ask(ask));
    }
}

/// False: supervisor or launcher was killed before anything was done.
fn has_begun(directory: &StateDirectory, name: &InstanceName, incarnation: u64) -> bool {
    match directory.instance(name).holder() {
        Ok(Holder::Free { last }) => last.is_some_and(|record| record.incarnation >= incarnation),
        _ => true,
    }
}
