//! Passes notifications of instances to the rules.

use super::journal::key;
use super::notices::Notice;
use super::service::Driver;
use super::watched::Watched;
use crate::control_groups;
use crate::copy_name::CopyName;
use crate::process_facts::session;
use crate::state_directory::Holder;
use crate::supervision::event::{Action, Event, Happening, What};
use std::path::PathBuf;

/// Limit of messages handled in one turn.
const NOTICES_A_TURN: usize = 64;

impl Driver {
    /// Handles notifications. A message stays in the socket until its effects are persisted, so that a successor of a
    /// killed supervisor reads it again.
    pub fn hear_notices(&mut self) {
        for _ in 0..NOTICES_A_TURN {
            let Some((index, notice)) = self.notices.peek() else { return };
            self.note(notice);
            self.work();
            self.notices.take(index);
        }
    }

    fn note(&mut self, notice: Notice) {
        let Some((copy, incarnation)) = self.sender(notice.process_id) else { return };
        if notice.is_initialised {
            self.happened.push_back(Event::Initialised { copy: copy.clone(), incarnation });
        }
        if notice.is_ready {
            self.happened.push_back(Event::Ready { copy: copy.clone(), incarnation });
        }
        if notice.is_stuck {
            let reason = "it says that it is stuck (WATCHDOG=trigger)".to_owned();
            self.happened.push_back(Event::Stuck { copy: copy.clone(), incarnation, reason });
        }
        let notes = self.notes.entry(key(&copy)).or_default();
        let new = notice.status.filter(|status| *status != notes.status);
        if let Some(status) = &new {
            notes.status.clone_from(status);
            self.is_dirty = true;
        }
        let words = [notice.is_reloading.then_some("it reloads"), notice.is_stopping.then_some("it is stopping")];
        for words in words.into_iter().flatten().map(str::to_owned).chain(new) {
            self.actions.push(Action::Tell(Happening { copy: copy.clone(), what: What::Said { words } }));
        }
    }

    /// Instance that a process belongs to, by its session or control group.
    fn sender(&self, process_id: u32) -> Option<(CopyName, u64)> {
        let session = session(process_id);
        let is_sender = |pid: u32| pid == process_id || Some(pid) == session;
        let is_in = |group: &PathBuf| control_groups::contains(group, process_id);
        let is_known = |watched: &Watched| {
            watched.process_id.is_some_and(|pid| is_sender(pid) || watched.group.as_ref().is_some_and(is_in))
        };
        // The message may precede the guardian's `Started`; the lock of the instance already names the process.
        let is_new = |copy: &CopyName, watched: &Watched| {
            let holder = || self.directory.copy(copy).holder();
            watched.process_id.is_none()
                && matches!(holder(), Ok(Holder::Recorded { record, .. })
                    if record.incarnation == watched.incarnation && is_sender(record.process.process_id))
        };
        let known = self.watched.iter().find(|(_, watched)| is_known(watched));
        let (copy, watched) = known.or_else(|| self.watched.iter().find(|(copy, watched)| is_new(copy, watched)))?;
        Some((copy.clone(), watched.incarnation))
    }
}
