//! `Children`: forked instances, with the ends of those that the supervisor has not acknowledged yet.

use super::protocol::ChildReport;
use crate::end_status::EndStatus;
use crate::error::SupervisorError;
use crate::instance_name::InstanceName;
use gapless_agent::fault::crash_point;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::process::Command;

pub const LIVING_MAX: usize = 4096;
const ENDED_MAX: usize = 16 << 10;

type ChildKey = (InstanceName, u64);

#[derive(Debug, Default)]
pub struct Children {
    known: BTreeMap<ChildKey, ChildState>,
    living: HashMap<u32, ChildKey>,
    ended: VecDeque<ChildKey>,
}

#[derive(Clone, Copy, Debug)]
struct ChildState {
    process_id: u32,
    ended: Option<EndStatus>,
}

impl Children {
    /// Forks a launcher; a repeated request returns the known child. Call it only from the thread that reaps, directly
    /// after reaping: a child must be in the table before it is reaped.
    ///
    /// # Errors
    /// The child cannot be started, or another incarnation of the instance is alive.
    pub fn start(
        &mut self,
        instance: &InstanceName,
        incarnation: u64,
        command: &mut Command,
    ) -> Result<ChildReport, SupervisorError> {
        let key = (instance.clone(), incarnation);
        if let Some(known) = self.known.get(&key) {
            return Ok(report(&key, *known));
        }
        if let Some((process_id, _)) = self.living.iter().find(|(_, (living, _))| living == instance) {
            let reason = format!("process {process_id} is the same instance, and still lives");
            return Err(SupervisorError::Refused(reason));
        }
        if self.living.len() >= LIVING_MAX {
            return Err(SupervisorError::Refused(format!("{LIVING_MAX} instances live already")));
        }
        crash_point("guardian_before_fork");
        // Reaped by `wait` on any child, so `ChildState` is dropped.
        let process_id = command.spawn().map_err(SupervisorError::io("starting a launcher"))?.id();
        crash_point("guardian_forked");
        let child = ChildState { process_id, ended: None };
        self.living.insert(process_id, key.clone());
        let child_report = report(&key, child);
        self.known.insert(key, child);
        Ok(child_report)
    }

    /// Records the end of a process; `None` if it was not an instance.
    pub fn note_end(&mut self, process_id: u32, status: EndStatus) -> Option<ChildReport> {
        let key = self.living.remove(&process_id)?;
        let child = self.known.get_mut(&key).expect("a living instance is known");
        child.ended = Some(status);
        let child_report = report(&key, *child);
        self.ended.push_back(key);
        if self.ended.len() > ENDED_MAX {
            let known = &self.known;
            self.ended.retain(|key| known.get(key).is_some_and(|child| child.ended.is_some()));
        }
        while self.ended.len() > ENDED_MAX {
            let oldest = self.ended.pop_front().expect("it is too long");
            tracing::warn!("{} of incarnation {} is forgotten: {ENDED_MAX} later ones have ended", oldest.0, oldest.1);
            self.known.remove(&oldest);
        }
        Some(child_report)
    }

    pub fn forget(&mut self, instance: InstanceName, incarnation: u64) {
        let key = (instance, incarnation);
        if self.known.get(&key).is_some_and(|child| child.ended.is_some()) {
            self.known.remove(&key);
        }
    }

    pub fn report(&self) -> Vec<ChildReport> {
        self.known.iter().map(|(key, child)| report(key, *child)).collect()
    }

    pub fn living(&self) -> usize {
        self.living.len()
    }
}

fn report((instance, incarnation): &ChildKey, child: ChildState) -> ChildReport {
    ChildReport {
        instance: instance.clone(),
        incarnation: *incarnation,
        process_id: child.process_id,
        ended: child.ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn try_start(children: &mut Children, incarnation: u64) -> Result<ChildReport, String> {
        let mut command = Command::new("true");
        children.start(&"a.1".parse().unwrap(), incarnation, &mut command).map_err(|error| error.to_string())
    }

    fn start(children: &mut Children, incarnation: u64) -> ChildReport {
        try_start(children, incarnation).unwrap()
    }

    fn wait(process_id: u32) {
        let process_id = rustix::process::Pid::from_raw(process_id as i32);
        rustix::process::waitpid(process_id, rustix::process::WaitOptions::empty()).unwrap();
    }

    #[test]
    fn starts_are_idempotent() {
        let mut children = Children::default();
        let first = start(&mut children, 1);
        assert_eq!(start(&mut children, 1), first, "it is not forked again");
        let refused = try_start(&mut children, 2).unwrap_err();
        assert!(refused.contains(&first.process_id.to_string()), "{refused}");
        wait(first.process_id);
        assert_eq!(children.note_end(u32::MAX, EndStatus::Exited(0)), None);
        let ended = children.note_end(first.process_id, EndStatus::Exited(7)).unwrap();
        let second = start(&mut children, 2);
        assert!(second.process_id != first.process_id && children.living() == 1);
        wait(second.process_id);
        assert_eq!(ended, ChildReport { ended: Some(EndStatus::Exited(7)), ..first.clone() });
        assert_eq!(children.note_end(first.process_id, EndStatus::Exited(0)), None, "the id is not its own any more");
        assert_eq!(start(&mut children, 1), ended);
        children.forget(second.instance.clone(), 2);
        assert_eq!(children.report(), [ended, second.clone()], "a live child is kept");
        children.forget(first.instance, 1);
        assert_eq!(children.report(), [second]);
    }

    #[test]
    fn unforgotten_ends_are_bounded() {
        let mut children = Children::default();
        let name: InstanceName = "a.1".parse().unwrap();
        for incarnation in 0..ENDED_MAX as u64 + 10 {
            let key = (name.clone(), incarnation);
            children.known.insert(key.clone(), ChildState { process_id: 1, ended: None });
            children.living.insert(1, key);
            children.note_end(1, EndStatus::Exited(0)).unwrap();
        }
        let report = children.report();
        assert_eq!((report.len(), report[0].incarnation), (ENDED_MAX, 10));
    }

    #[test]
    fn failed_fork_leaves_no_child() {
        let mut children = Children::default();
        let error = children.start(&"a.1".parse().unwrap(), 1, &mut Command::new("/nowhere/at/all")).unwrap_err();
        assert!(error.to_string().contains("launcher"), "{error}");
        assert_eq!((children.report(), children.living()), (vec![], 0));
    }
}
