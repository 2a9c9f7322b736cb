//! `JournalLink`: the read-only link to a stream's journal, without its sequencer or while that writes it.

use super::link::{ConnectionInfo, LinkRead, NodeLink, Start};
use crate::ClientError;
use crate::replay_merge::lapped_or_damaged;
use gapless_journal::{JournalReader, Replay};
use gapless_log::StreamIdentity;
use gapless_transport::seen_frame::SeenFrame;
use gapless_wire::Frame;
use gapless_wire::descriptor::FRAME_LENGTH_MAX;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Reads a stream from its journal alone, also while a sequencer writes it: frames may then be unreleased.
pub struct JournalLink {
    directory: PathBuf,
    replay: Option<Replay>,
    last_sequence: u64,
}

impl JournalLink {
    /// "First" means the first frame in the journal when the node connects.
    #[must_use]
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), replay: None, last_sequence: 0 }
    }

    fn read_only(&self) -> ClientError {
        ClientError::Option {
            option: "publisher",
            reason: format!("nothing can be published to the journal {}", self.directory.display()),
        }
    }
}

impl NodeLink for JournalLink {
    fn connect(&mut self, start: Start, _seen: SeenFrame, _now_ns: u64) -> Result<Option<ConnectionInfo>, ClientError> {
        let reader = JournalReader::open_complete(&self.directory)?;
        self.last_sequence = reader.last_sequence()?;
        let position = match start {
            Start::First => reader.first_sequence(),
            _ => start.position(self.last_sequence),
        };
        self.replay = None;
        if position > self.last_sequence + 1 {
            let reason = format!("the stream ends at {} in {}", self.last_sequence, self.directory.display());
            return Err(ClientError::Lapped { sequence: position, reason });
        }
        if position <= self.last_sequence {
            let replay =
                reader.replay(position).map_err(|error| lapped_or_damaged(error, &self.directory, position))?;
            self.replay = Some(replay);
        }
        Ok(Some(ConnectionInfo {
            identity: StreamIdentity { stream_id: reader.stream_id(), incarnation: reader.incarnation() },
            frame_length_max: FRAME_LENGTH_MAX,
            message_bytes_max: 0,
            released_sequence: self.last_sequence,
            position,
            feed: None,
        }))
    }

    fn send(&mut self, _frame: &[u8]) -> Result<bool, ClientError> {
        Err(self.read_only())
    }

    fn flush(&mut self) -> Result<(), ClientError> {
        Ok(())
    }

    fn answers(&mut self, _take: &mut dyn FnMut(&Frame<'_>)) -> Result<usize, ClientError> {
        Ok(0)
    }

    fn read(&mut self, _now_ns: u64) -> Result<LinkRead<'_>, ClientError> {
        let Some(replay) = self.replay.as_mut() else { return Ok(LinkRead::Empty) };
        if replay.next_sequence() > self.last_sequence {
            return Ok(LinkRead::Empty);
        }
        let sequence = replay.next_sequence();
        let frame = replay.next_frame().map_err(|error| lapped_or_damaged(error, &self.directory, sequence))?;
        Ok(frame.map_or(LinkRead::Empty, LinkRead::Frame))
    }

    fn released_sequence(&self) -> u64 {
        self.last_sequence
    }

    fn loses(&self) -> bool {
        false
    }

    fn tick(&mut self, _now_ns: u64) -> Result<(), ClientError> {
        Ok(())
    }

    fn wait(&mut self, timeout: Duration) -> Result<(), ClientError> {
        std::thread::sleep(timeout);
        Ok(())
    }

    fn peer(&self) -> String {
        self.directory.display().to_string()
    }
}
