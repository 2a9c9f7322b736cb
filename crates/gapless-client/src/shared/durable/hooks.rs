//! Hooks of a durable client in its connection: they record numbers before commands are sent, and outcomes.

use super::command::KeptCommand;
use super::log::CommandLog;
use crate::polled::SavedSession;
use crate::shared::call_state::{CallKind, CallState, CommandRecord, Ending};
use crate::shared::connection::SessionRecord;
use crate::{ClientError, CommandNumber};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

/// Log of a durable client.
pub(super) struct ClientLog {
    pub log: CommandLog,
    /// The client has no service any more.
    has_ended: AtomicBool,
}

impl ClientLog {
    pub const fn new(log: CommandLog) -> Self {
        Self { log, has_ended: AtomicBool::new(false) }
    }
}

impl SessionRecord for ClientLog {
    fn save(&self, session: SavedSession) -> Result<(), ClientError> {
        self.log.save_session(session)
    }

    fn see(&self, session: SavedSession) {
        self.log.see(session);
    }

    fn end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
    }
}

/// A kept command on its way.
struct SentCommand {
    log: Arc<ClientLog>,
    command: Arc<KeptCommand>,
}

impl CommandRecord for SentCommand {
    fn number(&self, number: CommandNumber) -> Result<(), ClientError> {
        self.log.log.number(self.command.id, number)
    }

    fn end(&self, ending: Ending) {
        match ending {
            Ending::NotSent { reason } => self.command.stop(reason),
            // The next life asks.
            Ending::Unknown { reason, .. } if self.log.has_ended.load(Ordering::SeqCst) => self.command.stop(reason),
            ending => {
                if let Err(error) = self.log.log.settle(self.command.id, ending) {
                    tracing::warn!("an outcome is recorded later: {error}");
                }
            }
        }
    }
}

/// State of a kept command that is going to be sent; its waker wakes the tasks that wait for the outcome.
pub(super) fn sent_command(log: &Arc<ClientLog>, command: &Arc<KeptCommand>) -> Arc<CallState> {
    let record = Box::new(SentCommand { log: Arc::clone(log), command: Arc::clone(command) });
    let waker = Waker::from(Arc::clone(command));
    let KeptCommand { message, payload, .. } = &**command;
    Arc::new(CallState::recorded(CallKind::Command, 0, *message, payload.clone(), record, waker))
}
