//! Handles events of processes: reports of the guardian, pidfds and probes.

use super::launch_plans::log;
use super::persistence::{key, last_lines};
use super::service::SupervisorDriver;
use super::standby_probe::StandbyChange;
use super::watched_instance::pidfd_of;
use crate::clock::now_ns;
use crate::end_status::EndStatus;
use crate::error::SupervisorError;
use crate::guardian::protocol::{GuardianMessage, GuardianRequest};
use crate::instance_name::InstanceName;
use crate::state_directory::{Holder, is_dead};
use crate::supervision::event::ProcessEvent;
use crate::supervision::instance::InstanceEnd;
use rustix::process::{Signal, pidfd_send_signal};

const DESCENDANTS_PAUSE_NS: u64 = 5_000_000;
const GRACE_PAUSE_NS: u64 = 20_000_000;
const FAILED_PAUSE_NS: u64 = 200_000_000;
/// Time without a failure after which a failure is over, ns; longer than any pause of a probe.
const QUIET_NS: u64 = 1_000_000_000;
const HIDDEN_PAUSE_NS: u64 = 1_000_000_000;
const REASON_CHARACTERS_MAX: usize = 500;

impl SupervisorDriver {
    pub fn receive_from_guardian(&mut self) -> Result<(), SupervisorError> {
        loop {
            let Some(guardian) = &mut self.guardian else { return Ok(()) };
            let message = guardian.try_next()?;
            if message.is_some() {
                self.guardian_silence.reset();
            }
            match message {
                None => return Ok(()),
                Some(GuardianMessage::Started { instance, incarnation, process_id }) => {
                    self.note_start(&instance, incarnation, process_id)
                }
                Some(GuardianMessage::NotStarted { instance, incarnation, reason, is_shortage }) => {
                    if self.is_current(&instance, incarnation) {
                        self.watched.remove(&instance);
                        let end = not_started(&reason, is_shortage);
                        self.pending_events.push_back(ProcessEvent::Ended { instance, incarnation, end });
                    }
                }
                Some(GuardianMessage::Ended { instance, incarnation, status, .. }) => {
                    self.note_end(instance, incarnation, status)
                }
                Some(GuardianMessage::EndWanted) => {
                    if !self.is_ending {
                        self.stop_all();
                    }
                }
                Some(_) => {}
            }
        }
    }

    fn is_current(&self, instance: &InstanceName, incarnation: u64) -> bool {
        self.watched.get(instance).is_some_and(|watched| watched.incarnation == incarnation)
    }

    /// The guardian has forked the launcher.
    pub fn note_start(&mut self, instance: &InstanceName, incarnation: u64, process_id: u32) {
        let Some(watched) = self.watched.get_mut(instance).filter(|watched| watched.incarnation == incarnation) else {
            return;
        };
        watched.runs_as(process_id, pidfd_of(process_id), true);
        self.pending_events.push_back(ProcessEvent::Started { instance: instance.clone(), incarnation, process_id });
    }

    pub fn note_end(&mut self, instance: InstanceName, incarnation: u64, status: EndStatus) {
        if !self.is_current(&instance, incarnation) {
            return self.to_forget.push((instance, incarnation));
        }
        let failure = self.directory.instance(&instance).read_launch_failure(incarnation).unwrap_or_else(|error| {
            tracing::warn!("{error}");
            None
        });
        let end = match failure {
            // A launcher of a dead guardian runs already; `check_descendants` finds it by its lock.
            Some(failure) if failure.already_runs => InstanceEnd::Unseen,
            Some(failure) => not_started(&failure.reason, failure.is_shortage),
            None => InstanceEnd::Status(status),
        };
        self.watched.entry(instance).and_modify(|watched| watched.end(end));
    }

    /// Disconnects from a dead guardian; pidfds then observe ends.
    pub fn disconnect_guardian(&mut self) {
        self.guardian = None;
        self.watched.values_mut().for_each(|watched| watched.is_guardians = false);
    }

    /// Runs all due checks: ends, descendants, readiness.
    pub fn check_instances(&mut self) {
        let now = now_ns();
        for instance in std::mem::take(&mut self.wake_sources.ended) {
            if let Some(watched) =
                self.watched.get_mut(&instance).filter(|watched| watched.awaited().is_some_and(is_dead))
            {
                watched.end(InstanceEnd::Unseen);
            }
        }
        let (mut over, mut failure) = (Vec::new(), None);
        for (instance, watched) in &mut self.watched {
            if watched.ended.is_some() {
                if watched.next_descendants_ns <= now {
                    over.push(instance.clone());
                }
                continue;
            }
            let Some(process_id) = watched.process_id else { continue };
            if watched.draining.is_some_and(|draining| draining.until_ns <= now) {
                watched.signal_drained();
            }
            let incarnation = watched.incarnation;
            let mut failed = |error: std::io::Error| {
                failure = Some(format!("whether {instance} is ready is not known: {error}"));
                ProcessEvent::ReadinessUnknown { instance: instance.clone(), incarnation }
            };
            let seen = watched.standby.as_mut().map_or(Ok(None), |standby| standby.poll(now, instance, process_id));
            let seen = seen.unwrap_or_else(|error| {
                self.pending_events.push_back(failed(error));
                None
            });
            match seen {
                None => {}
                Some(StandbyChange::Standby) => {
                    self.pending_events.push_back(ProcessEvent::Standby { instance: instance.clone(), incarnation })
                }
                Some(StandbyChange::RunsProgram { was_standby: false }) => watched.standby = None,
                Some(StandbyChange::Active) => {
                    self.pending_events.push_back(ProcessEvent::Active { instance: instance.clone(), incarnation })
                }
                Some(StandbyChange::RunsProgram { was_standby: true }) => {
                    watched.standby = None;
                    self.pending_events.push_back(ProcessEvent::Active { instance: instance.clone(), incarnation });
                }
            }
            if watched.is_standby() {
                continue;
            }
            match watched.probe.as_mut().map_or(Ok(false), |probe| probe.poll(now, instance, process_id)) {
                Ok(false) => {}
                Ok(true) => {
                    watched.probe = None;
                    self.pending_events.push_back(ProcessEvent::Ready { instance: instance.clone(), incarnation });
                }
                Err(error) => self.pending_events.push_back(failed(error)),
            }
        }
        for instance in over {
            if let Err(error) = self.check_descendants(instance) {
                failure = Some(error.to_string());
            }
        }
        match failure {
            Some(failure) => self.probe_failure.record(failure),
            None => self.probe_failure.clear_after(QUIET_NS),
        }
    }

    /// The instance has ended once its lock is free and its control group is empty.
    ///
    /// # Errors
    /// The holder of the lock cannot be determined.
    fn check_descendants(&mut self, instance: InstanceName) -> Result<(), SupervisorError> {
        let holder = self.directory.instance(&instance).holder();
        let Some(watched) = self.watched.get_mut(&instance) else { return Ok(()) };
        let incarnation = watched.incarnation;
        watched.next_descendants_ns = now_ns() + DESCENDANTS_PAUSE_NS;
        let is_time = watched.kill_descendants_at_ns <= now_ns();
        if !is_time {
            watched.next_descendants_ns = now_ns() + GRACE_PAUSE_NS;
        }
        let holder = holder.inspect_err(|_| watched.next_descendants_ns = now_ns() + FAILED_PAUSE_NS)?;
        match holder {
            Holder::Free { .. } if watched.has_survivors() => {
                if is_time {
                    watched.kill_group();
                }
            }
            Holder::Free { .. } => {
                let end = watched.ended.take().unwrap_or(InstanceEnd::Unseen);
                self.watched.remove(&instance);
                let others = self.watched.iter_mut().filter(|(other, _)| other.process() == instance.process());
                others.filter_map(|(_, other)| other.standby.as_mut()).for_each(|standby| standby.poll_soon(now_ns()));
                self.note_last_lines(&instance, &end);
                self.to_forget.push((instance.clone(), incarnation));
                self.pending_events.push_back(ProcessEvent::Ended { instance, incarnation, end });
            }
            Holder::Recorded { record, pidfd } => {
                watched.ended = None;
                watched.runs_as(record.process.process_id, Some(pidfd), false);
                let process_id = record.process.process_id;
                self.pending_events.push_back(ProcessEvent::Started { instance, incarnation, process_id });
            }
            Holder::Foreign { process_id } => {
                watched.next_descendants_ns = now_ns() + FAILED_PAUSE_NS;
                return Err(SupervisorError::Refused(format!(
                    "{instance} has ended, and process {process_id} has its lock, which is none of its own: it is not killed, and \
                     {instance} does not start while it lives"
                )));
            }
            Holder::Hidden { .. } => watched.next_descendants_ns = now_ns() + HIDDEN_PAUSE_NS,
            Holder::Descendants(_) if !is_time => {}
            Holder::Descendants(orphans) => {
                for orphan in orphans {
                    // Fails if it has died meanwhile.
                    let _ = pidfd_send_signal(&orphan.pidfd, Signal::KILL);
                }
            }
        }
        Ok(())
    }

    fn note_last_lines(&mut self, instance: &InstanceName, end: &InstanceEnd) {
        let Some(process) = self.config.process(instance.process()) else { return };
        let notes = self.notes.entry(key(instance)).or_default();
        let begin = if notes.log == log(process, instance) { notes.log_begin } else { 0 };
        notes.last_lines = if end.is_success() { Vec::new() } else { last_lines(&log(process, instance), begin) };
    }

    /// Tells the guardian to forget children whose ends are persisted.
    pub fn forget_ended(&mut self) {
        let Some(guardian) = &mut self.guardian else { return self.to_forget.clear() };
        for (instance, incarnation) in std::mem::take(&mut self.to_forget) {
            if let Err(error) = guardian.ask(&GuardianRequest::Forget { instance, incarnation }) {
                tracing::warn!("{error}");
                return self.disconnect_guardian();
            }
        }
    }
}

fn not_started(reason: &str, is_shortage: bool) -> InstanceEnd {
    let end = if is_shortage { InstanceEnd::Shortage } else { InstanceEnd::NotStarted };
    end(reason.chars().take(REASON_CHARACTERS_MAX).collect())
}
