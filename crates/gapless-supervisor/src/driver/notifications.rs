//! Passes notifications of instances to the rules.

use super::notify_sockets::Notification;
use super::persistence::key;
use super::service::SupervisorDriver;
use super::watched_instance::WatchedInstance;
use crate::control_groups;
use crate::instance_name::InstanceName;
use crate::process_facts::session;
use crate::state_directory::Holder;
use crate::supervision::event::{InstanceEvent, InstanceEventKind, ProcessAction, ProcessEvent};
use std::path::PathBuf;

const NOTIFICATIONS_PER_TURN: usize = 64;

impl SupervisorDriver {
    /// A message stays in the socket until its effects are persisted, for the successor of a killed supervisor.
    pub fn handle_notifications(&mut self) {
        for _ in 0..NOTIFICATIONS_PER_TURN {
            let Some((index, notification)) = self.notify_sockets.peek() else { return };
            self.note(notification);
            self.work();
            self.notify_sockets.take(index);
        }
    }

    fn note(&mut self, notification: Notification) {
        let Some((instance, incarnation)) = self.sender(notification.process_id) else { return };
        if notification.is_initialised {
            self.pending_events.push_back(ProcessEvent::Initialised { instance: instance.clone(), incarnation });
        }
        if notification.is_ready {
            self.pending_events.push_back(ProcessEvent::Ready { instance: instance.clone(), incarnation });
        }
        if notification.is_stuck {
            let reason = "it says that it is stuck (WATCHDOG=trigger)".to_owned();
            self.pending_events.push_back(ProcessEvent::Stuck { instance: instance.clone(), incarnation, reason });
        }
        let notes = self.notes.entry(key(&instance)).or_default();
        let new = notification.status.filter(|status| *status != notes.status);
        if let Some(status) = &new {
            notes.status.clone_from(status);
            self.is_dirty = true;
        }
        let words =
            [notification.is_reloading.then_some("it reloads"), notification.is_stopping.then_some("it is stopping")];
        for words in words.into_iter().flatten().map(str::to_owned).chain(new) {
            self.actions.push(ProcessAction::Report(InstanceEvent {
                instance: instance.clone(),
                what: InstanceEventKind::Said { words },
            }));
        }
    }

    fn sender(&self, process_id: u32) -> Option<(InstanceName, u64)> {
        let session = session(process_id);
        let is_sender = |pid: u32| pid == process_id || Some(pid) == session;
        let is_in = |group: &PathBuf| control_groups::contains(group, process_id);
        let is_known = |watched: &WatchedInstance| {
            watched.process_id.is_some_and(|pid| is_sender(pid) || watched.group.as_ref().is_some_and(is_in))
        };
        // The message may precede the guardian's `Started`; the lock of the instance already names the process.
        let is_new = |instance: &InstanceName, watched: &WatchedInstance| {
            let holder = || self.directory.instance(instance).holder();
            watched.process_id.is_none()
                && matches!(holder(), Ok(Holder::Recorded { record, .. })
                    if record.incarnation == watched.incarnation && is_sender(record.process.process_id))
        };
        let known = self.watched.iter().find(|(_, watched)| is_known(watched));
        let (instance, watched) =
            known.or_else(|| self.watched.iter().find(|(instance, watched)| is_new(instance, watched)))?;
        Some((instance.clone(), watched.incarnation))
    }
}
