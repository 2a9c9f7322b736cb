//! [`CopyState`]: one copy of a process: how far it has come, and what is remembered of it.

use crate::config::process::{RestartConfig, RestartPolicy, Stage};
use crate::end_status::EndStatus;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;

/// How far a copy has come. Times are those of the machine's monotonic clock, ns, which is the same for the next supervisor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// It does not run, and shall not.
    #[default]
    Stopped,
    /// It shall run; another process is not that far yet.
    Waiting,
    /// It has been asked for, or runs; it is ended if it is not ready by then.
    Starting {
        /// Its launcher waits for the active copy to end.
        is_standby: bool,
        /// It has said so, or needs not.
        is_initialised: bool,
        /// Monotonic, ns.
        until_ns: u64,
    },
    /// It is ready, since then (monotonic, ns).
    Ready {
        /// Monotonic, ns.
        since_ns: u64,
    },
    /// It has been asked to end, and is killed then.
    Stopping {
        /// Monotonic, ns; of one that has been killed, when.
        kill_at_ns: u64,
        /// It has been.
        is_killed: bool,
    },
    /// It starts again then.
    BackingOff {
        /// Monotonic, ns.
        until_ns: u64,
    },
    /// It has ended too often; only a person starts it again.
    Held,
    /// It has ended and is not to start again.
    Done,
}

impl Progress {
    /// Whether there is, or may be, a process.
    #[must_use]
    pub const fn is_running(self) -> bool {
        matches!(self, Self::Starting { .. } | Self::Ready { .. } | Self::Stopping { .. })
    }
}

/// How a copy has ended. As JSON `{"status":7}`, `{"signal":9,"has_core":false}`, `"unseen"` or `{"not_started":"why"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Nobody saw it: it ended while the guardian that had started it did not run.
    Unseen,
    /// It has not been started at all.
    NotStarted(String),
    /// As above, because the machine lacks room, memory or descriptors: nobody's fault.
    Lacking(String),
    /// So its process has ended.
    #[serde(untagged)]
    Status(EndStatus),
}

impl End {
    /// Whether it is that of a task that is done.
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

/// What outlives a supervisor. Times are those of the machine's monotonic clock, which is the same for the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CopyMemory {
    /// How far it has come.
    pub progress: Progress,
    /// The number of its last start; 0 before the first. No two starts, of whatever copy, have the same.
    pub incarnation: u64,
    /// Which definition of its process it was started with.
    pub generation: u64,
    /// It is to end now, whatever the others do, and to start again.
    pub restart_requested: bool,
    /// A person has stopped this copy by itself: it shall not run, and none takes its place.
    pub is_stopped: bool,
    /// Restarts since a person started it.
    pub restarts: u64,
    /// Ends one after the other, none of which was healthy before.
    pub failures: u32,
    /// When it was started again, as far as it counts for `restarts_max`.
    pub recent_ns: VecDeque<u64>,
    /// When its state changed last.
    pub changed_ns: u64,
    /// Why it last ended.
    pub last_end: Option<End>,
    /// Why the supervisor ends it, if it does, until it has ended.
    pub reason: Option<String>,
    /// Why the supervisor ended it or holds it, if it did.
    pub last_reason: Option<String>,
}

/// One copy.
#[derive(Clone, Debug, Default)]
pub struct CopyState {
    /// What is remembered.
    pub memory: CopyMemory,
    /// Its process; none before it has been started, and while it does not run.
    pub process_id: Option<u32>,
}

impl CopyState {
    pub(super) const fn new(memory: CopyMemory) -> Self {
        Self { memory, process_id: None }
    }

    /// How far it has come.
    #[must_use]
    pub const fn progress(&self) -> Progress {
        self.memory.progress
    }

    /// Whether there is, or may be, a process.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        self.memory.progress.is_running()
    }

    /// Whether it has come so far, and is not being stopped.
    #[must_use]
    pub fn has_reached(&self, stage: Stage) -> bool {
        match self.memory.progress {
            Progress::Ready { .. } => true,
            // A task that has failed is not done.
            Progress::Done => self.memory.last_end.as_ref().is_some_and(End::is_success),
            Progress::Starting { is_initialised, .. } => is_initialised && matches!(stage, Stage::Initialised),
            _ => false,
        }
    }

    pub(super) const fn change(&mut self, now_ns: u64, progress: Progress) {
        self.memory.progress = progress;
        self.memory.changed_ns = now_ns;
    }

    /// It runs, as a supervisor finds that had not started it. What the one before knew of this start holds; but nobody has
    /// looked whether it is ready, so that it has its time for that anew.
    pub(super) fn adopt(&mut self, now_ns: u64, incarnation: u64, process_id: u32, ready_within: Duration) {
        self.process_id = Some(process_id);
        let is_known = self.is_running() && self.memory.incarnation >= incarnation;
        self.memory.incarnation = self.memory.incarnation.max(incarnation);
        let ready_until_ns = now_ns.saturating_add(nanoseconds(ready_within));
        match &mut self.memory.progress {
            // It has been killed.
            Progress::Starting { until_ns: u64::MAX, .. } if is_known => {}
            Progress::Starting { until_ns, .. } if is_known => *until_ns = ready_until_ns,
            Progress::Ready { .. } | Progress::Stopping { .. } if is_known => {}
            progress => {
                *progress = Progress::Starting { is_standby: false, is_initialised: false, until_ns: ready_until_ns };
            }
        }
    }

    /// A person wants it to run: what has ended for good or waits is to start now. Whether something is to end before.
    pub(super) fn start_again(&mut self, now_ns: u64) -> bool {
        self.reset_failures();
        let waits = matches!(self.memory.progress, Progress::Held | Progress::Done | Progress::BackingOff { .. });
        if waits {
            self.change(now_ns, Progress::Stopped);
        }
        !waits
    }

    /// A person starts it: what counted before counts no more.
    pub(super) fn reset_failures(&mut self) {
        self.memory.failures = 0;
        self.memory.restarts = 0;
        self.memory.recent_ns.clear();
    }

    /// It has ended, and nobody had asked it to: what follows.
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
            // It may be done, and what it does may be for once.
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

/// Pause before the next attempt, where the machine lacked something.
const LACKING_PAUSE: Duration = Duration::from_secs(1);
/// Why a task is held whose end nobody has seen.
const UNSEEN_TASK: &str = "its end was not seen: whether it is done is not known";

/// How long the restart after so many failures waits: the first not at all, each later one twice as long as the one before.
fn backoff(restart: &RestartConfig, failures: u32) -> Duration {
    match failures {
        0 | 1 => Duration::ZERO,
        _ => restart.backoff_first.saturating_mul(1 << (failures - 2).min(31)).min(restart.backoff_max),
    }
}

/// Of a time that is no longer than centuries.
pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_plain_json() {
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
