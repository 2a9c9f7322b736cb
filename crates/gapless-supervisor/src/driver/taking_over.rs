//! Adopts running instances after a restart of the supervisor or the guardian, and finds those that ended in the
//! meantime.

use super::service::Driver;
use super::watched::{Watched, kill_remaining, pidfd_of};
use crate::clock::now_ns;
use crate::control_groups;
use crate::copy_name::CopyName;
use crate::end_status::EndStatus;
use crate::error::SupervisorError;
use crate::guardian::protocol::{Ask, ChildReport};
use crate::state_directory::{Holder, StateDirectory};
use crate::supervision::Supervision;
use crate::supervision::copy::{End, Progress};
use rustix::process::{Signal, pidfd_send_signal};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

/// Attempts to wait for the descendants of a dead instance.
const LOOKS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(5);

impl Driver {
    /// Adopts instances that the guardian or a lock reports as running; all others have ended.
    pub fn take_over(&mut self, known: Vec<ChildReport>) -> Result<(), SupervisorError> {
        let mut memory = self.supervision.memory();
        let copies = self.directory.copies()?;
        // Incarnations stay unique even if the last state could not be written.
        for name in &copies {
            let intent = self.directory.copy(name).read_launch().ok().flatten();
            memory.last_incarnation = memory.last_incarnation.max(intent.map_or(0, |plan| plan.incarnation));
        }
        let last = known.iter().map(|child| child.incarnation).max();
        memory.last_incarnation = memory.last_incarnation.max(last.unwrap_or(0));
        self.supervision = Supervision::new(&self.config, memory);
        for name in copies {
            self.adopt(&name, &known)?;
        }
        self.kill_unfound(&known);
        let ends: HashMap<(CopyName, u64), EndStatus> =
            known.into_iter().filter_map(|child| Some(((child.copy, child.incarnation), child.ended?))).collect();
        let directory = &self.directory;
        let seen = |name: &CopyName, incarnation| match ends.get(&(name.clone(), incarnation)) {
            Some(status) => Some(End::Status(*status)),
            None => has_begun(directory, name, incarnation).then_some(End::Unseen),
        };
        self.supervision.lose_others(now_ns(), seen, &mut self.actions);
        self.to_forget.extend(ends.keys().cloned());
        self.is_dirty = true;
        Ok(())
    }

    /// Kills children of the guardian whose files were removed: they cannot be supervised, and would run a second time.
    fn kill_unfound(&self, known: &[ChildReport]) {
        let found: HashSet<u32> = self.watched.values().filter_map(|watched| watched.process_id).collect();
        for child in known.iter().filter(|child| child.ended.is_none() && !found.contains(&child.process_id)) {
            tracing::error!("{}: process {} is killed, whose files were removed", child.copy, child.process_id);
            if let Some(pidfd) = pidfd_of(child.process_id) {
                // Fails if it has died meanwhile.
                let _ = pidfd_send_signal(&pidfd, Signal::KILL);
            }
        }
    }

    fn adopt(&mut self, name: &CopyName, known: &[ChildReport]) -> Result<(), SupervisorError> {
        let intent = self.directory.copy(name).read_launch().ok().flatten();
        // In a copied state directory the group belongs to the original, whose instances still run.
        let is_own = |group: &PathBuf| control_groups::is_of(&self.directory, group);
        let group = intent.as_ref().and_then(|plan| plan.cgroup.clone()).filter(is_own);
        let living = |child: &&ChildReport| {
            child.copy == *name
                && child.ended.is_none()
                && intent.as_ref().is_some_and(|plan| plan.incarnation == child.incarnation)
        };
        if let Some(child) = known.iter().find(living) {
            let mut watched = Watched::asked(child.incarnation, group);
            watched.runs_as(child.process_id, pidfd_of(child.process_id), true);
            self.watched.insert(name.clone(), watched);
            self.supervision.adopt(now_ns(), name, child.incarnation, child.process_id);
            return Ok(());
        }
        for _ in 0..LOOKS {
            match self.directory.copy(name).holder()? {
                Holder::Nobody { .. } => {
                    let Some(left) = group.as_deref().filter(|group| kill_remaining(group)) else { return Ok(()) };
                    if self.adopt_rest(name, known, group.as_ref()) {
                        return Ok(());
                    }
                    control_groups::kill(left);
                    std::thread::sleep(PAUSE);
                }
                Holder::Recorded { record, pidfd } => {
                    self.supervision.adopt(now_ns(), name, record.incarnation, record.process.process_id);
                    let processes = self.supervision.processes().iter();
                    let process = processes.filter(|process| process.config.name == name.process());
                    let copy =
                        process.flat_map(|process| process.copies()).find(|(number, _)| *number == name.number());
                    // A later start that failed has a higher incarnation.
                    let incarnation = copy.map_or(record.incarnation, |(_, copy)| copy.memory.incarnation);
                    let mut watched = Watched::asked(incarnation, group);
                    watched.runs_as(record.process.process_id, Some(pidfd), false);
                    self.watched.insert(name.clone(), watched);
                    return Ok(());
                }
                Holder::Others(_) if self.adopt_rest(name, known, group.as_ref()) => return Ok(()),
                Holder::Others(orphans) => {
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

    /// Watches the descendants of an instance that has ended within its grace period. Returns whether this was the
    /// case.
    fn adopt_rest(&mut self, name: &CopyName, known: &[ChildReport], group: Option<&PathBuf>) -> bool {
        let processes = self.supervision.processes().iter().filter(|process| process.config.name == name.process());
        let copy = processes.flat_map(|process| process.copies()).find(|(number, _)| *number == name.number());
        let Some((_, copy)) = copy else { return false };
        let is_in_time = matches!(copy.progress(), Progress::Stopping { kill_at_ns, .. } if kill_at_ns > now_ns());
        let incarnation = copy.memory.incarnation;
        let of_copy = |child: &&ChildReport| child.copy == *name && child.incarnation == incarnation;
        let child = known.iter().find(of_copy).and_then(|child| Some((child.process_id, child.ended?)));
        let Some((process_id, status)) = child.filter(|_| is_in_time) else { return false };
        let mut watched = Watched::asked(incarnation, group.cloned());
        watched.runs_as(process_id, None, true);
        watched.end(End::Status(status));
        self.watched.insert(name.clone(), watched);
        self.supervision.adopt(now_ns(), name, incarnation, process_id);
        true
    }

    /// Compares with the children of a new or reconnected guardian.
    pub fn compare(&mut self, known: Vec<ChildReport>) {
        let mut known: HashMap<(CopyName, u64), ChildReport> =
            known.into_iter().map(|child| ((child.copy.clone(), child.incarnation), child)).collect();
        let mut asks = Vec::new();
        let mut started = Vec::new();
        let mut ended = Vec::new();
        for (copy, watched) in &mut self.watched {
            match known.remove(&(copy.clone(), watched.incarnation)) {
                Some(ChildReport { ended: Some(status), .. }) => {
                    ended.push((copy.clone(), watched.incarnation, status))
                }
                Some(child) if watched.process_id == Some(child.process_id) => watched.is_guardians = true,
                Some(child) => started.push((copy.clone(), watched.incarnation, child.process_id)),
                // The start may or may not have been carried out; the lock prevents a second run.
                None if watched.process_id.is_none() => {
                    asks.push(Ask::Start { copy: copy.clone(), incarnation: watched.incarnation });
                }
                None if watched.pidfd.is_none() => watched.end(End::Unseen),
                None => {}
            }
        }
        started.into_iter().for_each(|(copy, incarnation, pid)| self.note_start(&copy, incarnation, pid));
        ended.into_iter().for_each(|(copy, incarnation, status)| self.note_end(copy, incarnation, status));
        let others = known.into_values().filter(|child| child.ended.is_some());
        self.to_forget.extend(others.map(|child| (child.copy, child.incarnation)));
        asks.iter().for_each(|ask| self.ask(ask));
    }
}

/// Whether a launcher of this start has taken the lock of the instance. If not, the supervisor was killed before its
/// request, or the launcher before it did anything.
fn has_begun(directory: &StateDirectory, name: &CopyName, incarnation: u64) -> bool {
    match directory.copy(name).holder() {
        Ok(Holder::Nobody { last }) => last.is_some_and(|record| record.incarnation >= incarnation),
        _ => true,
    }
}
