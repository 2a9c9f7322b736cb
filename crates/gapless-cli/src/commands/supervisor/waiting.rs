//! `WaitNotice`: reports whom a command is waiting for.

use super::status::{status, supervisor};
use gapless_supervisor::control::protocol::{InstanceCondition, InstanceStatus};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

const FIRST_NOTICE_AFTER: Duration = Duration::from_secs(1);
const NOTICE_INTERVAL: Duration = Duration::from_secs(5);

pub(super) struct WaitNotice {
    _is_over: Sender<()>,
}

impl WaitNotice {
    pub(super) fn of_answer(directory: &Path) -> Self {
        let directory = directory.to_owned();
        Self::begin(None, move || Some(format!("{} of {}", supervisor(&directory), directory.display())))
    }

    pub(super) fn of_end(directory: &Path) -> Self {
        let directory = directory.to_owned();
        Self::begin(Some(NOTICE_INTERVAL), move || {
            let status = status(&directory).ok()?;
            if status.instances.iter().any(|instance| instance.state == InstanceCondition::Unwatched) {
                return Some(supervisor(&directory));
            }
            let is_at_rest = |instance: &InstanceStatus| instance.process_id.is_none();
            let living = status.instances.iter().filter(|instance| !is_at_rest(instance));
            let names: Vec<String> =
                living.map(|instance| format!("{} ({})", instance.instance, instance.state)).collect();
            Some(if names.is_empty() { supervisor(&directory) } else { names.join(", ") })
        })
    }

    fn begin(again_after: Option<Duration>, subject: impl Fn() -> Option<String> + Send + 'static) -> Self {
        let (is_over, over) = channel();
        std::thread::spawn(move || {
            let mut after = Some(FIRST_NOTICE_AFTER);
            while let Some(time) = after
                && over.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
            {
                if let Some(subject_text) = subject() {
                    crate::commands::to_stderr!("gapless: waiting for {subject_text}");
                }
                after = again_after;
            }
        });
        Self { _is_over: is_over }
    }
}
