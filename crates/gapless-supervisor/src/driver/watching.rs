//! Handles events of processes: reports of the guardian, pidfds and probes.

use super::journal::{key, last_lines};
use super::launch_plans::log;
use super::service::Driver;
use super::standby_look::Seen;
use super::watched::pidfd_of;
use crate::clock::now_ns;
use crate::copy_name::CopyName;
use crate::end_status::EndStatus;
use crate::error::SupervisorError;
use crate::guardian::protocol::{Ask, Told};
use crate::state_directory::{Holder, is_dead};
use crate::supervision::copy::End;
use crate::supervision::event::Event;
use rustix::process::{Signal, pidfd_send_signal};

/// Interval of checks for descendants of an ended instance, ns.
const ORPHANS_PAUSE_NS: u64 = 5_000_000;
/// The same during their grace period, ns.
const REST_PAUSE_NS: u64 = 20_000_000;
/// The same after a failed check, ns.
const FAILED_PAUSE_NS: u64 = 200_000_000;
/// Time without a failure after which a failure is over, ns; longer than any interval.
const QUIET_NS: u64 = 1_000_000_000;
/// Interval while the holder of the lock is invisible and cannot be killed, ns.
const HIDDEN_PAUSE_NS: u64 = 1_000_000_000;
/// Limit of a reason for a failed start, in characters.
const REASON_CHARACTERS_MAX: usize = 500;

impl Driver {
    pub fn hear_guardian(&mut self) -> Result<(), SupervisorError> {
        loop {
            let Some(guardian) = &mut self.guardian else { return Ok(()) };
            let told = guardian.try_next()?;
            if told.is_some() {
                self.guardian_silence.heard();
            }
            match told {
                None => return Ok(()),
                Some(Told::Started { copy, incarnation, process_id }) => {
                    self.note_start(&copy, incarnation, process_id)
                }
                Some(Told::NotStarted { copy, incarnation, reason, is_shortage }) => {
                    if self.is_current(&copy, incarnation) {
                        self.watched.remove(&copy);
                        let end = not_started(&reason, is_shortage);
                        self.happened.push_back(Event::Ended { copy, incarnation, end });
                    }
                }
                Some(Told::Ended { copy, incarnation, status, .. }) => self.note_end(copy, incarnation, status),
                Some(Told::EndWanted) => {
                    if !self.is_ending {
                        self.stop_all();
                    }
                }
                Some(_) => {}
            }
        }
    }

    fn is_current(&self, copy: &CopyName, incarnation: u64) -> bool {
        self.watched.get(copy).is_some_and(|watched| watched.incarnation == incarnation)
    }

    /// Records that the guardian has forked the launcher.
    pub fn note_start(&mut self, copy: &CopyName, incarnation: u64, process_id: u32) {
        let Some(watched) = self.watched.get_mut(copy).filter(|watched| watched.incarnation == incarnation) else {
            return;
        };
        watched.runs_as(process_id, pidfd_of(process_id), true);
        self.happened.push_back(Event::Started { copy: copy.clone(), incarnation, process_id });
    }

    pub fn note_end(&mut self, copy: CopyName, incarnation: u64, status: EndStatus) {
        if !self.is_current(&copy, incarnation) {
            return self.to_forget.push((copy, incarnation));
        }
        let failure = self.directory.copy(&copy).read_launch_failure(incarnation).unwrap_or_else(|error| {
            tracing::warn!("{error}");
            None
        });
        let end = match failure {
            // A launcher of a dead guardian runs already; `look_for_orphans` finds it by its lock.
            Some(failure) if failure.already_runs => End::Unseen,
            Some(failure) => not_started(&failure.reason, failure.is_shortage),
            None => End::Status(status),
        };
        self.watched.entry(copy).and_modify(|watched| watched.end(end));
    }

    /// Disconnects from a dead guardian. Ends are then observed by pidfds.
    pub fn lose_guardian(&mut self) {
        self.guardian = None;
        self.watched.values_mut().for_each(|watched| watched.is_guardians = false);
    }

    /// Runs all due checks: ends, descendants, readiness.
    pub fn look_at_watched(&mut self) {
        let now = now_ns();
        for copy in std::mem::take(&mut self.woken.ended) {
            // The entry may have been replaced in the meantime.
            if let Some(watched) = self.watched.get_mut(&copy).filter(|watched| watched.awaited().is_some_and(is_dead))
            {
                watched.end(End::Unseen);
            }
        }
        let (mut over, mut failure) = (Vec::new(), None);
        for (copy, watched) in &mut self.watched {
            if watched.ended.is_some() {
                if watched.next_orphans_ns <= now {
                    over.push(copy.clone());
                }
                continue;
            }
            let Some(process_id) = watched.process_id else { continue };
            if watched.draining.is_some_and(|draining| draining.until_ns <= now) {
                watched.signal_drained();
            }
            let incarnation = watched.incarnation;
            let mut failed = |error: std::io::Error| {
                failure = Some(format!("whether {copy} is ready is not known: {error}"));
                Event::Unknown { copy: copy.clone(), incarnation }
            };
            let seen = watched.standby.as_mut().map_or(Ok(None), |standby| standby.look(now, copy, process_id));
            let seen = seen.unwrap_or_else(|error| {
                self.happened.push_back(failed(error));
                None
            });
            match seen {
                None => {}
                Some(Seen::Standby) => self.happened.push_back(Event::Standby { copy: copy.clone(), incarnation }),
                Some(Seen::Itself { was_standby: false }) => watched.standby = None,
                Some(Seen::Active) => self.happened.push_back(Event::Active { copy: copy.clone(), incarnation }),
                Some(Seen::Itself { was_standby: true }) => {
                    watched.standby = None;
                    self.happened.push_back(Event::Active { copy: copy.clone(), incarnation });
                }
            }
            if watched.is_standby() {
                continue;
            }
            match watched.probe.as_mut().map_or(Ok(false), |probe| probe.look(now, copy, process_id)) {
                Ok(false) => {}
                Ok(true) => {
                    watched.probe = None;
                    self.happened.push_back(Event::Ready { copy: copy.clone(), incarnation });
                }
                Err(error) => self.happened.push_back(failed(error)),
            }
        }
        for copy in over {
            if let Err(error) = self.look_for_orphans(copy) {
                failure = Some(error.to_string());
            }
        }
        match failure {
            Some(failure) => self.looks.again(failure),
            None => self.looks.end_after(QUIET_NS),
        }
    }

    /// Checks for descendants of an instance whose process has ended. The instance has ended once its lock is free and
    /// its control group is empty.
    ///
    /// # Errors
    /// The holder of the lock cannot be determined.
    fn look_for_orphans(&mut self, copy: CopyName) -> Result<(), SupervisorError> {
        let holder = self.directory.copy(&copy).holder();
        let Some(watched) = self.watched.get_mut(&copy) else { return Ok(()) };
        let incarnation = watched.incarnation;
        watched.next_orphans_ns = now_ns() + ORPHANS_PAUSE_NS;
        let is_time = watched.kill_rest_at_ns <= now_ns();
        if !is_time {
            watched.next_orphans_ns = now_ns() + REST_PAUSE_NS;
        }
        let holder = holder.inspect_err(|_| watched.next_orphans_ns = now_ns() + FAILED_PAUSE_NS)?;
        match holder {
            Holder::Nobody { .. } if watched.has_left_somebody() => {
                if is_time {
                    watched.kill_group();
                }
            }
            Holder::Nobody { .. } => {
                let end = watched.ended.take().unwrap_or(End::Unseen);
                self.watched.remove(&copy);
                let others = self.watched.iter_mut().filter(|(other, _)| other.process() == copy.process());
                others.filter_map(|(_, other)| other.standby.as_mut()).for_each(|standby| standby.hurry(now_ns()));
                self.note_last_lines(&copy, &end);
                self.to_forget.push((copy.clone(), incarnation));
                self.happened.push_back(Event::Ended { copy, incarnation, end });
            }
            Holder::Recorded { record, pidfd } => {
                watched.ended = None;
                watched.runs_as(record.process.process_id, Some(pidfd), false);
                let process_id = record.process.process_id;
                self.happened.push_back(Event::Started { copy, incarnation, process_id });
            }
            Holder::Foreign { process_id } => {
                watched.next_orphans_ns = now_ns() + FAILED_PAUSE_NS;
                return Err(SupervisorError::Refused(format!(
                    "{copy} has ended, and process {process_id} has its lock, which is none of its own: it is not killed, and \
                     {copy} does not start while it lives"
                )));
            }
            Holder::Hidden { .. } => watched.next_orphans_ns = now_ns() + HIDDEN_PAUSE_NS,
            Holder::Others(_) if !is_time => {}
            Holder::Others(orphans) => {
                for orphan in orphans {
                    // Fails if it has died meanwhile.
                    let _ = pidfd_send_signal(&orphan.pidfd, Signal::KILL);
                }
            }
        }
        Ok(())
    }

    /// Keeps the last lines of the log after a failure.
    fn note_last_lines(&mut self, copy: &CopyName, end: &End) {
        let Some(process) = self.config.process(copy.process()) else { return };
        let notes = self.notes.entry(key(copy)).or_default();
        let begin = if notes.log == log(process, copy) { notes.log_begin } else { 0 };
        notes.last_lines = if end.is_success() { Vec::new() } else { last_lines(&log(process, copy), begin) };
    }

    /// Tells the guardian to forget children whose ends are persisted.
    pub fn forget_ended(&mut self) {
        let Some(guardian) = &mut self.guardian else { return self.to_forget.clear() };
        for (copy, incarnation) in std::mem::take(&mut self.to_forget) {
            if let Err(error) = guardian.ask(&Ask::Forget { copy, incarnation }) {
                tracing::warn!("{error}");
                return self.lose_guardian();
            }
        }
    }
}

fn not_started(reason: &str, is_shortage: bool) -> End {
    let end = if is_shortage { End::Lacking } else { End::NotStarted };
    end(reason.chars().take(REASON_CHARACTERS_MAX).collect())
}
