//! [`CopyState`]: one instance of a process, its progress and its persistent state.

use crate::config::process::{RestartConfig, RestartPolicy, Stage};
use crate::end_status::EndStatus;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;

/// Progress of an instance. Times are of the machine's monotonic clock, in ns, which a later supervisor shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// Not wanted, and not running.
    #[default]
    Stopped,
    /// Wanted, but a dependency has not reached its stage yet.
    Waiting,
    /// Requested or running, but not ready yet.
    Starting {
        is_standby: bool,
        /// Reported by the instance; true from its start if it reports nothing.
        is_initialised: bool,
        /// Readiness deadline, monotonic, ns; the instance is killed after it. `u64::MAX` once it has been killed.
        until_ns: u64,
    },
    Ready {
        since_ns: u64,
    },
    /// Asked to end, or killed.
    Stopping {
        /// Time at which it is killed; after that, time of the kill. Monotonic, ns.
        kill_at_ns: u64,
        is_killed: bool,
    },
    /// Starts again after a pause.
    BackingOff {
        until_ns: u64,
    },
    /// Failed too often; only an operator starts it again.
    Held,
    /// Ended, and not restarted by its policy.
    Done,
}

impl Progress {
    /// Whether a process exists or may exist.
    #[must_use]
    pub const fn is_running(self) -> bool {
        matches!(self, Self::Starting { .. } | Self::Ready { .. } | Self::Stopping { .. })
    }
}

/// Outcome of one run of an instance. As JSON `{"status":7}`, `{"signal":9,"has_core":false}`, `"unseen"` or
/// `{"not_started":"why"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Not observed: it ended while its guardian was down.
    Unseen,
    /// Never started, for this reason.
    NotStarted(String),
    /// Never started, because the machine lacks space, memory or descriptors. Not counted as a failure.
    Lacking(String),
    /// Exit status or signal of its process.
    #[serde(untagged)]
    Status(EndStatus),
}

impl End {
    /// Whether a task has completed.
    #[must_use]
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Status(status) if status.is_success())
    }
}

impl std::fmt::Display for End {
    /// `exited with 1`, `killed by signal 9`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status(status) => status.fmt(f),
            Self::Unseen => f.write_str("ended unseen"),
            Self::NotStarted(reason) | Self::Lacking(reason) => write!(f, "not started: {reason}"),
        }
    }
}

/// Persistent state of an instance. Times are of the machine's monotonic clock, in ns, which a later supervisor shares.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CopyMemory {
    pub progress: Progress,
    /// Number of its last start; 0 before the first. Unique over the starts of all instances.
    pub incarnation: u64,
    /// Generation of the process definition that it was started with.
    pub generation: u64,
    /// Ends now, regardless of other instances, and starts again.
    pub restart_requested: bool,
    /// Stopped by an operator on its own; no other instance replaces it.
    pub is_stopped: bool,
    /// Restarts since an operator started it.
    pub restarts: u64,
    /// Consecutive failures without a healthy period in between.
    pub failures: u32,
    /// Times of the restarts that count towards `restarts_max`.
    pub recent_ns: VecDeque<u64>,
    pub changed_ns: u64,
    pub last_end: Option<End>,
    /// Reason for which the supervisor ends the running instance.
    pub reason: Option<String>,
    /// Reason for which the supervisor ended the previous run, or holds the instance.
    pub last_reason: Option<String>,
}

/// One instance of a process.
#[derive(Clone, Debug, Default)]
pub struct CopyState {
    pub memory: CopyMemory,
    /// `None` while no process runs.
    pub process_id: Option<u32>,
}

impl CopyState {
    pub(super) const fn new(memory: CopyMemory) -> Self {
        Self { memory, process_id: None }
    }

    #[must_use]
    pub const fn progress(&self) -> Progress {
        self.memory.progress
    }

    #[must_use]
    pub const fn is_running(&self) -> bool {
        self.memory.progress.is_running()
    }

    /// Whether the instance has reached the stage and is not being stopped.
    #[must_use]
    pub fn has_reached(&self, stage: Stage) -> bool {
        match self.memory.progress {
            Progress::Ready { .. } => true,
            // A failed task does not count as done.
            Progress::Done => self.memory.last_end.as_ref().is_some_and(End::is_success),
            Progress::Starting { is_initialised, .. } => is_initialised && matches!(stage, Stage::Initialised),
            _ => false,
        }
    }

    pub(super) const fn change(&mut self, now_ns: u64, progress: Progress) {
        self.memory.progress = progress;
        self.memory.changed_ns = now_ns;
    }

    /// Takes over a running instance from the previous supervisor. State recorded for this start is kept, but the
    /// readiness deadline begins again, since readiness was not checked in the meantime.
    pub(super) fn adopt(&mut self, now_ns: u64, incarnation: u64, process_id: u32, ready_within: Duration) {
        self.process_id = Some(process_id);
        let is_known = self.is_running() && self.memory.incarnation >= incarnation;
        self.memory.incarnation = self.memory.incarnation.max(incarnation);
        let ready_until_ns = now_ns.saturating_add(nanoseconds(ready_within));
        match &mut self.memory.progress {
            // Killed already.
            Progress::Starting { until_ns: u64::MAX, .. } if is_known => {}
            Progress::Starting { until_ns, .. } if is_known => *until_ns = ready_until_ns,
            Progress::Ready { .. } | Progress::Stopping { .. } if is_known => {}
            progress => {
                *progress = Progress::Starting { is_standby: false, is_initialised: false, until_ns: ready_until_ns };
            }
        }
    }

    /// Starts the instance on an operator's command, unless it runs. Returns whether an old run may have to end first.
    pub(super) fn start_again(&mut self, now_ns: u64) -> bool {
        self.reset_failures();
        let waits = matches!(self.memory.progress, Progress::Held | Progress::Done | Progress::BackingOff { .. });
        if waits {
            self.change(now_ns, Progress::Stopped);
        }
        !waits
    }

    pub(super) fn reset_failures(&mut self) {
        self.memory.failures = 0;
        self.memory.restarts = 0;
        self.memory.recent_ns.clear();
    }

    /// Next state after an end that the supervisor did not ask for.
    pub(super) fn after_end(&mut self, now_ns: u64, end: &End, restart: &RestartConfig, is_once: bool) -> Progress {
        let is_over = match restart.policy {
            RestartPolicy::Never => true,
            RestartPolicy::OnFailure => end.is_success(),
            RestartPolicy::Always => is_once && end.is_success(),
        };
        let is_shortage = match end {
            End::Lacking(_) => true,
            End::Status(status) => status.is_shortage() && !is_over,
            _ => false,
        };
        if is_shortage {
            return Progress::BackingOff { until_ns: now_ns.saturating_add(nanoseconds(LACKING_PAUSE)) };
        }
        if is_once && *end == End::Unseen {
            // The task may have completed, and must not run twice.
            self.memory.reason.get_or_insert_with(|| UNSEEN_TASK.to_owned());
            return Progress::Held;
        }
        if is_over {
            return Progress::Done;
        }
        let memory = &mut self.memory;
        if let Progress::Ready { since_ns } = memory.progress
            && now_ns.saturating_sub(since_ns) >= nanoseconds(restart.healthy_after)
        {
            memory.failures = 0;
        }
        let begin_ns = now_ns.saturating_sub(nanoseconds(restart.within));
        memory.recent_ns.retain(|at_ns| *at_ns > begin_ns);
        if memory.recent_ns.len() >= restart.restarts_max as usize {
            return Progress::Held;
        }
        memory.recent_ns.push_back(now_ns);
        memory.restarts += 1;
        memory.failures = memory.failures.saturating_add(1);
        match backoff(restart, memory.failures) {
            Duration::ZERO => Progress::Waiting,
            pause => Progress::BackingOff { until_ns: now_ns.saturating_add(nanoseconds(pause)) },
        }
    }
}

/// Pause before the next attempt after a shortage of resources.
const LACKING_PAUSE: Duration = Duration::from_secs(1);
const UNSEEN_TASK: &str = "its end was not seen: whether it is done is not known";

/// Pause before a restart: zero after the first failure, then `backoff_first`, doubled for each further failure.
fn backoff(restart: &RestartConfig, failures: u32) -> Duration {
    match failures {
        0 | 1 => Duration::ZERO,
        _ => restart.backoff_first.saturating_mul(1 << (failures - 2).min(31)).min(restart.backoff_max),
    }
}

/// Saturates after more than 500 years.
pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_is_plain_json() {
        for (end, text) in [
            (End::Status(EndStatus::Exited(7)), r#"{"status":7}"#),
            (End::Status(EndStatus::Signaled { signal: 9, has_core: false }), r#"{"signal":9,"has_core":false}"#),
            (End::Unseen, r#""unseen""#),
            (End::NotStarted("why".to_owned()), r#"{"not_started":"why"}"#),
            (End::Lacking("why".to_owned()), r#"{"lacking":"why"}"#),
        ] {
            assert_eq!(serde_json::to_string(&end).unwrap(), text);
            assert_eq!(serde_json::from_str::<End>(text).unwrap(), end);
        }
    }
}
