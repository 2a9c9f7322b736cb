//! State at a sequence, from the newest state file and the journal after it: at a start, and when a member truncates
//! frames that a new leader lacks.

use crate::sequencer::{Sequencer, SequencerRules};
use crate::{StreamError, sequencer_state_writer};
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::JournalReader;
use gapless_log::StreamIdentity;
use gapless_wire::Fragment;

pub struct RebuiltSequencer {
    /// State after the last whole message.
    pub sequencer: Sequencer,
    /// Last covered sequence; 0 without a file.
    pub state_sequence: u64,
    /// Journal frames applied after it.
    pub frames_replayed: u64,
    /// The requested sequence is in a message; the state is that before it.
    pub is_mid_message: bool,
}

/// Sequencer with `sequence` as the last frame. The journal may be open for writing; uncommitted frames are not read.
///
/// # Errors
/// `sequence` is not reached, or in the middle of a message; the first frames are covered neither by a state nor by the
/// journal; damage.
pub fn rebuild(
    layout: &StreamLayout,
    identity: StreamIdentity,
    rules: SequencerRules,
    sequence: u64,
) -> Result<Sequencer, StreamError> {
    let first = JournalReader::open(layout.journal())?.first_sequence();
    let RebuiltSequencer { sequencer, is_mid_message, .. } = fold(layout, identity, rules, first, sequence)?;
    if sequencer.last_sequence() != sequence {
        let why = if is_mid_message { "that is in the middle of a message" } else { "the journal ends there" };
        let reason = format!("sequence {sequence} is asked for, {} is found: {why}", sequencer.last_sequence());
        return Err(StreamError::State { path: layout.journal(), reason });
    }
    Ok(sequencer)
}

/// Like [`rebuild`], for a journal that begins at `first`, as far as there are whole messages up to `last`.
pub(crate) fn fold(
    layout: &StreamLayout,
    identity: StreamIdentity,
    rules: SequencerRules,
    first: u64,
    last: u64,
) -> Result<RebuiltSequencer, StreamError> {
    let state = sequencer_state_writer::newest(&layout.state(), identity, last)?;
    let mut sequencer = match &state {
        Some(state) => state.restore(rules),
        None => Sequencer::new(rules),
    };
    if !rules.takes_events {
        // The service sets them again, as of its own state.
        sequencer.forget_own_timers();
    }
    let state_sequence = sequencer.last_sequence();
    let from = state_sequence + 1;
    if from < first {
        let reason = format!(
            "it reaches to sequence {state_sequence}, the journal begins at {first}: what was between them is lost; \
             restore one of them"
        );
        return Err(StreamError::State { path: layout.state(), reason });
    }
    let (mut frames_replayed, mut is_mid_message) = (0, false);
    if from <= last {
        let mut replay = JournalReader::open(layout.journal())?.replay_until(from, last)?;
        while let Some(frame) = replay.next_frame()?.filter(|frame| frame.sequence() <= last) {
            frames_replayed += 1;
            if frame.fragment().is_last() {
                sequencer.observe(&frame);
                is_mid_message = false;
            } else if frame.fragment() != Fragment::WHOLE && frame.fragment().index == 0 {
                is_mid_message = true;
            }
        }
    }
    sequencer.forget_feeds_before(first);
    Ok(RebuiltSequencer { sequencer, state_sequence, frames_replayed, is_mid_message })
}
