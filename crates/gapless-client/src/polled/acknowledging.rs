//! Acknowledgements of notices. Each takes a number and a place in the window of its session, as a command does.

use super::PolledClient;
use crate::{ClientError, SessionKey};
use gapless_agent::fault::mutant;
use gapless_log::LogError;
use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length};

impl PolledClient {
    #[cold]
    pub(super) fn acknowledge_notices(&mut self, key: SessionKey) -> Result<(), ClientError> {
        let Some(number) = self.session(key)?.due_acknowledgement() else { return Ok(()) };
        match self.acknowledge(key, number) {
            // The service may send no further notices before it has the acknowledgement.
            Err(ClientError::Log(LogError::Full { .. }) | ClientError::WindowFull { .. } | ClientError::NotOpen) => {
                if !self.acknowledging.contains(&key) {
                    self.acknowledging.push(key);
                }
                Ok(())
            }
            Err(ClientError::NoSuchSession(_)) => Ok(()),
            other => other,
        }
    }

    #[cold]
    pub(super) fn retry_acknowledgements(&mut self) -> Result<(), ClientError> {
        for key in std::mem::take(&mut self.acknowledging) {
            self.acknowledge_notices(key)?;
        }
        Ok(())
    }

    /// Shows the service that a session which sends nothing is in use.
    pub(crate) fn keep_session(&mut self, key: SessionKey) -> Result<(), ClientError> {
        let number = self.session(key)?.notices_seen();
        self.acknowledge(key, number)
    }

    pub(super) fn acknowledge(&mut self, key: SessionKey, number: u64) -> Result<(), ClientError> {
        let session = self.sessions.get_mut(key.index()).ok_or(ClientError::NoSuchSession(key))?;
        let (slot, header) = session.next_command()?;
        let claim = self.link.writer.claim(HEADER_LENGTH + 8)?;
        let mut writer = FrameWriter::new(claim);
        let said = if mutant("acknowledge_what_was_not_taken") { number + 10 } else { number };
        writer.payload_mut()[..8].copy_from_slice(&said.to_le_bytes());
        let length = writer.finish(&FrameHeader { kind: Kind::Acknowledge, ..header }, 8);
        slot.keep(&claim[..aligned_length(length)], header.session_seq, header.session_seq);
        self.link.writer.commit(length);
        session.acknowledging(number);
        self.sent += 1;
        session.sent(1, self.sent);
        Ok(())
    }
}
