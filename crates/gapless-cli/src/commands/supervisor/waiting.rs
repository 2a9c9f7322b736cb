//! [`WaitNotice`]: reports whom a command is waiting for.

use super::status::{status, supervisor};
use gapless_supervisor::control::protocol::{CopyCondition, CopyStatus};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

const AFTER: Duration = Duration::from_secs(1);
/// Interval of further notices, if the reason may change.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Waiting command; standard error gets a notice after a second. Ends on drop.
pub(super) struct WaitNotice {
    /// Dropping it ends the thread.
    _is_over: Sender<()>,
}

impl WaitNotice {
    pub(super) fn of_answer(directory: &Path) -> Self {
        let directory = directory.to_owned();
        Self::begin(None, move || Some(format!("{} of {}", supervisor(&directory), directory.display())))
    }

    pub(super) fn of_end(directory: &Path) -> Self {
        let directory = directory.to_owned();
        Self::begin(Some(AGAIN_AFTER), move || {
            let status = status(&directory).ok()?;
            // The files show running instances, not those being stopped.
            if status.copies.iter().any(|copy| copy.state == CopyCondition::Unwatched) {
                return Some(supervisor(&directory));
            }
            let is_at_rest = |copy: &CopyStatus| copy.process_id.is_none();
            let living = status.copies.iter().filter(|copy| !is_at_rest(copy));
            let names: Vec<String> = living.map(|copy| format!("{} ({})", copy.copy, copy.state)).collect();
            Some(if names.is_empty() { supervisor(&directory) } else { names.join(", ") })
        })
    }

    fn begin(again_after: Option<Duration>, for_whom: impl Fn() -> Option<String> + Send + 'static) -> Self {
        let (is_over, over) = channel();
        std::thread::spawn(move || {
            let mut after = Some(AFTER);
            while let Some(time) = after
                && over.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
            {
                if let Some(whom) = for_whom() {
                    crate::commands::to_stderr!("gapless: waiting for {whom}");
                }
                after = again_after;
            }
        });
        Self { _is_over: is_over }
    }
}
