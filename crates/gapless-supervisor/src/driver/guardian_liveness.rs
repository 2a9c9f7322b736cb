//! Liveness of the guardian and reachability of the control socket, checked once a second.

use super::service::SupervisorDriver;
use crate::guardian::protocol::GuardianRequest;
use crate::silence::ASK_INTERVAL;
use crate::state_directory::{Holder, RoleLock};
use rustix::process::{Signal, pidfd_send_signal};
use std::time::Instant;

impl SupervisorDriver {
    /// Probes the guardian, kills it after a long silence; reopens a removed control socket.
    pub fn check_liveness(&mut self) {
        let now = Instant::now();
        if now < self.next_probe_at {
            return;
        }
        self.next_probe_at = now + ASK_INTERVAL;
        if let Err(error) = self.connections.listen_if_removed(&self.directory, &self.config) {
            tracing::error!("{error}");
        }
        let Some(guardian) = &mut self.guardian else { return };
        if self.guardian_silence.is_expired(now) {
            self.kill_guardian();
            self.disconnect_guardian();
        } else if let Err(error) = guardian.ask(&GuardianRequest::Ping) {
            tracing::warn!("{error}");
            self.disconnect_guardian();
        }
    }

    /// Kills a guardian that holds its lock but stays unreachable too long.
    pub fn note_unreachable_guardian(&mut self) {
        if self.guardian_silence.is_expired(Instant::now()) {
            self.kill_guardian();
        }
    }

    fn kill_guardian(&mut self) {
        self.guardian_silence.reset();
        if let Ok(Holder::Recorded { record, pidfd }) = self.directory.role_holder(RoleLock::Guardian) {
            tracing::error!("the guardian, process {}, is silent and is killed", record.process.process_id);
            // Fails if it has died meanwhile.
            let _ = pidfd_send_signal(&pidfd, Signal::KILL);
        }
    }
}
