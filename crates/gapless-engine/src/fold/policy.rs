//! `Policy`: a fold's reaction to faults and to changed handlers.

use super::CheckRefusals;
use gapless_wire::mark::FaultRules;
use std::collections::BTreeSet;

/// Reaction to a panic of a handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnPanic {
    /// The service stops with an error that names the command, of which nothing was sent. Fix the handler, or skip the
    /// sequence.
    #[default]
    Stop,
    /// The command is refused and recorded; the state stays as the handler left it, equally in every replay.
    DeadLetter,
}

/// A message has no handler, or its payload does not match its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnhandled {
    #[default]
    DeadLetter,
    Stop,
}

/// A start replays frames handled by another program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnOtherProgram {
    #[default]
    Warn,
    Refuse,
}

/// A replay has other outputs than recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnOtherOutputs {
    #[default]
    Stop,
    /// Replies sent to clients may be wrong now.
    Warn,
}

/// Check at a start: writes the restored state again and compares the bytes. It finds unordered collections in a derived
/// state ([`trait@gapless_message::State`]). Snapshots of other forms or versions are not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckSnapshots {
    Never,
    /// A start with a snapshot takes up to twice as long. The default of builds with debug assertions.
    AtStart,
}

impl Default for CheckSnapshots {
    fn default() -> Self {
        if cfg!(debug_assertions) { Self::AtStart } else { Self::Never }
    }
}

/// Reaction of a fold to faults and to changed handlers. Non-default values of `on_panic` and `on_unhandled` are fixed
/// in the stream for life; a start with others is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    pub on_panic: OnPanic,
    pub on_unhandled: OnUnhandled,
    /// Skipped in addition to those that the stream marks (`gapless journal skip`).
    pub skip_sequences: BTreeSet<u64>,
    /// A start replays frames that another program has handled. Not written to the stream.
    pub on_other_program: OnOtherProgram,
    /// A replay produces other outputs than recorded. Not written to the stream.
    pub on_other_outputs: OnOtherOutputs,
    /// Name of the program, so that two builds of the same handlers count as one; by default the executable's bytes.
    /// Not written to the stream.
    pub program: Option<String>,
    /// A refusing handler that has changed the state stops the service. Not written to the stream.
    pub check_refusals: CheckRefusals,
    /// A start compares the restored state with its snapshot. Not written to the stream.
    pub check_snapshots: CheckSnapshots,
}

impl Policy {
    pub(crate) fn fault_rules(&self) -> FaultRules {
        FaultRules {
            panic_is_dead_letter: self.on_panic == OnPanic::DeadLetter,
            unhandled_stops: self.on_unhandled == OnUnhandled::Stop,
        }
    }
}
