//! The guardian hears, and this supervisor can be reached: looked at once a second.

use super::service::Driver;
use crate::guardian::protocol::Ask;
use crate::silence::ASK_INTERVAL;
use crate::state_directory::{Holder, RoleLock};
use rustix::process::{Signal, pidfd_send_signal};
use std::time::Instant;

impl Driver {
    /// Asks the guardian for a sign of life, and kills one that gives none; listens anew where the control socket was removed.
    pub fn mind_surroundings(&mut self) {
        let now = Instant::now();
        if now < self.mind_at {
            return;
        }
        self.mind_at = now + ASK_INTERVAL;
        if let Err(error) = self.connections.listen_if_removed(&self.directory, &self.config) {
            tracing::error!("{error}");
        }
        let Some(guardian) = &mut self.guardian else { return };
        if self.guardian_silence.is_too_long(now) {
            self.kill_guardian();
            self.lose_guardian();
        } else if let Err(error) = guardian.ask(&Ask::Hears) {
            tracing::warn!("{error}");
            self.lose_guardian();
        }
    }

    /// No guardian could be reached: one that has the lock and is silent is killed.
    pub fn note_unreachable_guardian(&mut self) {
        if self.guardian_silence.is_too_long(Instant::now()) {
            self.kill_guardian();
        }
    }

    fn kill_guardian(&mut self) {
        self.guardian_silence.heard();
        if let Ok(Holder::Recorded { record, pidfd }) = self.directory.role_holder(RoleLock::Guardian) {
            tracing::error!("the guardian, process {}, is silent and is killed", record.process.process_id);
            // It may have died meanwhile.
            let _ = pidfd_send_signal(&pidfd, Signal::KILL);
        }
    }
}
