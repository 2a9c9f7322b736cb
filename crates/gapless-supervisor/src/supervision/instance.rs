//! `InstanceState`: one instance of a process, its progress and its persistent state.

use crate::config::process::{DependencyStage, RestartConfig, RestartPolicy};
use crate::end_status::EndStatus;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;

/// Progress of an instance; times are ns of the machine's monotonic clock, shared with a later supervisor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstanceProgress {
    #[default]
    Stopped,
    /// Wanted, but a dependency has not reached its stage yet.
    Waiting,
    Starting {
        is_standby: bool,
        is_initialised: bool,
        /// Readiness deadline, after which it is killed; `u64::MAX` once killed.
        until_ns: u64,
    },
    Ready {
        since_ns: u64,
    },
    Stopping {
        /// Time at which it is killed; afterwards the time of the kill.
        kill_at_ns: u64,
        is_killed: bool,
    },
    /// Starts again after a pause.
    BackingOff {
        until_ns: u64,
    },
    /// Failed too often, or a task whose end was not seen: an operator or a new definition starts it again.
    Held,
    /// Ended, and not restarted by its policy.
    Done,
}

impl InstanceProgress {
    /// Whether a process exists or may exist.
    #[must_use]
    pub const fn is_running(self) -> bool {
        matches!(self, Self::Starting { .. } | Self::Ready { .. } | Self::Stopping { .. })
    }
}

/// Outcome of one run. As JSON `{"status":7}`, `{"signal":9,"has_core":false}`, `"unseen"` or `{"not_started":"why"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstanceEnd {
    Unseen,
    NotStarted(String),
    /// Not started for lack of space, memory or descriptors: not counted as a failure.
    #[serde(rename = "lacking")]
    Shortage(String),
    #[serde(untagged)]
    Status(EndStatus),
}

impl InstanceEnd {
    /// Whether a task has completed.
    #[must_use]
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Status(status) if status.is_success())
    }
}

impl std::fmt::Display for InstanceEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status(status) => status.fmt(f),
            Self::Unseen => f.write_str("ended unseen"),
            Self::NotStarted(reason) | Self::Shortage(reason) => write!(f, "not started: {reason}"),
        }
    }
}

/// Persistent state of an instance; times are ns of the machine's monotonic clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PersistentInstance {
    pub progress: InstanceProgress,
    /// Number of its last start, unique over all instances; 0 before the first.
    pub incarnation: u64,
    /// Generation of the process definition that it was started with.
    pub generation: u64,
    /// Ends now, regardless of other instances, and starts again.
    pub restart_requested: bool,
    /// Stopped alone by an operator; no other instance replaces it.
    pub is_stopped: bool,
    /// Restarts since an operator started it.
    pub restarts: u64,
    /// Consecutive failures without a healthy period in between.
    pub failures: u32,
    /// Times of the restarts that count towards `restarts_max`.
    pub recent_ns: VecDeque<u64>,
    pub changed_ns: u64,
    pub last_end: Option<InstanceEnd>,
    /// Reason for which the supervisor ends the running instance.
    pub reason: Option<String>,
    /// Why the supervisor ended the previous run, or holds the instance.
    pub last_reason: Option<String>,
}

/// One instance of a process.
#[derive(Clone, Debug, Default)]
pub struct InstanceState {
    pub persistent: PersistentInstance,
    /// `None` while no process runs.
    pub process_id: Option<u32>,
}

impl InstanceState {
    pub(super) const fn new(persistent: PersistentInstance) -> Self {
        Self { persistent, process_id: None }
    }

    #[must_use]
    pub const fn progress(&self) -> InstanceProgress {
        self.persistent.progress
    }

    #[must_use]
    pub const fn is_running(&self) -> bool {
        self.persistent.progress.is_running()
    }

    /// Whether the instance has reached the stage and is not being stopped.
    #[must_use]
    pub fn has_reached(&self, stage: DependencyStage) -> bool {
        match self.persistent.progress {
            InstanceProgress::Ready { .. } => true,
            // A failed task does not count as done.
            InstanceProgress::Done => self.persistent.last_end.as_ref().is_some_and(InstanceEnd::is_success),
            InstanceProgress::Starting { is_initialised, .. } => {
                is_initialised && matches!(stage, DependencyStage::Initialised)
            }
            _ => false,
        }
    }

    pub(super) const fn change(&mut self, now_ns: u64, progress: InstanceProgress) {
        self.persistent.progress = progress;
        self.persistent.changed_ns = now_ns;
    }

    /// The readiness deadline begins again, since nothing checked readiness meanwhile.
    pub(super) fn adopt(&mut self, now_ns: u64, incarnation: u64, process_id: u32, ready_within: Duration) {
        self.process_id = Some(process_id);
        let is_known = self.is_running() && self.persistent.incarnation >= incarnation;
        self.persistent.incarnation = self.persistent.incarnation.max(incarnation);
        let ready_until_ns = now_ns.saturating_add(nanoseconds(ready_within));
        match &mut self.persistent.progress {
            // Killed already.
            InstanceProgress::Starting { until_ns: u64::MAX, .. } if is_known => {}
            InstanceProgress::Starting { until_ns, .. } if is_known => *until_ns = ready_until_ns,
            InstanceProgress::Ready { .. } | InstanceProgress::Stopping { .. } if is_known => {}
            progress => {
                *progress =
                    InstanceProgress::Starting { is_standby: false, is_initialised: false, until_ns: ready_until_ns };
            }
        }
    }

    /// Starts it on an operator's command, unless it runs. Returns whether an old run may have to end first.
    pub(super) fn start_again(&mut self, now_ns: u64) -> bool {
        self.reset_failures();
        let waits = matches!(
            self.persistent.progress,
            InstanceProgress::Held | InstanceProgress::Done | InstanceProgress::BackingOff { .. }
        );
        if waits {
            self.change(now_ns, InstanceProgress::Stopped);
        }
        !waits
    }

    pub(super) fn reset_failures(&mut self) {
        self.persistent.failures = 0;
        self.persistent.restarts = 0;
        self.persistent.recent_ns.clear();
    }

    pub(super) fn after_end(
        &mut self,
        now_ns: u64,
        end: &InstanceEnd,
        restart: &RestartConfig,
        is_once: bool,
    ) -> InstanceProgress {
        let is_over = match restart.policy {
            RestartPolicy::Never => true,
            RestartPolicy::OnFailure => end.is_success(),
            RestartPolicy::Always => is_once && end.is_success(),
        };
        let is_shortage = match end {
            InstanceEnd::Shortage(_) => true,
            InstanceEnd::Status(status) => status.is_shortage() && !is_over,
            _ => false,
        };
        if is_shortage {
            return InstanceProgress::BackingOff { until_ns: now_ns.saturating_add(nanoseconds(SHORTAGE_PAUSE)) };
        }
        if is_once && *end == InstanceEnd::Unseen {
            // The task may have completed, and must not run twice.
            self.persistent.reason.get_or_insert_with(|| UNSEEN_TASK.to_owned());
            return InstanceProgress::Held;
        }
        if is_over {
            return InstanceProgress::Done;
        }
        let persistent = &mut self.persistent;
        if let InstanceProgress::Ready { since_ns } = persistent.progress
            && now_ns.saturating_sub(since_ns) >= nanoseconds(restart.healthy_after)
        {
            persistent.failures = 0;
        }
        let begin_ns = now_ns.saturating_sub(nanoseconds(restart.within));
        persistent.recent_ns.retain(|at_ns| *at_ns > begin_ns);
        if persistent.recent_ns.len() >= restart.restarts_max as usize {
            return InstanceProgress::Held;
        }
        persistent.recent_ns.push_back(now_ns);
        persistent.restarts += 1;
        persistent.failures = persistent.failures.saturating_add(1);
        match backoff(restart, persistent.failures) {
            Duration::ZERO => InstanceProgress::Waiting,
            pause => InstanceProgress::BackingOff { until_ns: now_ns.saturating_add(nanoseconds(pause)) },
        }
    }
}

const SHORTAGE_PAUSE: Duration = Duration::from_secs(1);
const UNSEEN_TASK: &str = "its end was not seen: whether it is done is not known";

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
            (InstanceEnd::Status(EndStatus::Exited(7)), r#"{"status":7}"#),
            (
                InstanceEnd::Status(EndStatus::Signaled { signal: 9, has_core: false }),
                r#"{"signal":9,"has_core":false}"#,
            ),
            (InstanceEnd::Unseen, r#""unseen""#),
            (InstanceEnd::NotStarted("why".to_owned()), r#"{"not_started":"why"}"#),
            (InstanceEnd::Shortage("why".to_owned()), r#"{"lacking":"why"}"#),
        ] {
            assert_eq!(serde_json::to_string(&end).unwrap(), text);
            assert_eq!(serde_json::from_str::<InstanceEnd>(text).unwrap(), end);
        }
    }
}
