//! Reads the contents of the journal back, outside every clock.

use super::failed;
use super::payload::{MessageTally, ReceivedMessage};
use super::protocol::{MessageAccount, Participant};
use crate::Result;
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::{JournalError, JournalReader};
use gapless_wire::Kind;
use std::path::Path;

/// Accounts for the participants' messages in a journal: computes every checksum and compares every byte, outside every
/// clock.
///
/// # Errors
/// A journal that cannot be read.
pub fn of_journal(directory: &Path, participants: &[Participant]) -> Result<MessageAccount> {
    let broken = |error: JournalError| failed(format!("the journal: {error}"));
    let mut tally = MessageTally::new(participants, true);
    let mut replay = JournalReader::open(StreamLayout::new(directory).journal())
        .and_then(|reader| reader.replay(1))
        .map_err(broken)?;
    let mut message = Vec::new();
    while let Some(frame) = replay.next_frame().map_err(broken)? {
        if frame.kind() != Kind::Event {
            continue;
        }
        frame.verify().map_err(|error| failed(format!("frame {} of the journal: {error}", frame.sequence())))?;
        if frame.fragment().index == 0 {
            message.clear();
        }
        message.extend_from_slice(frame.payload());
        if frame.fragment().is_last() {
            tally.take(ReceivedMessage {
                sequence: frame.sequence(),
                session: frame.session(),
                session_seq: frame.session_seq(),
                payload_crc: frame.payload_crc(),
                payload: &message,
            });
        }
    }
    Ok(tally.account())
}
