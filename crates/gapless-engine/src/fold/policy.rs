//! [`Policy`]: a fold's reaction to faults and to changed handlers.

use super::CheckRefusals;
use gapless_wire::mark::FaultRules;
use std::collections::BTreeSet;

/// Reaction to a panic of a handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnPanic {
    /// The service stops with an error that names the command, of which nothing was sent. The operator fixes the
    /// handler, or skips the command's sequence.
    #[default]
    Stop,
    /// The command is refused and recorded as a dead letter. The state stays as the handler left it, equally in every
    /// replay.
    DeadLetter,
}

/// Reaction to a message without a handler, or with a payload that does not match its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnhandled {
    /// The command is refused and recorded as a dead letter.
    #[default]
    DeadLetter,
    /// The service stops with an error that names the command.
    Stop,
}

/// Reaction to a start that has to replay frames handled by another program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnOtherProgram {
    /// A warning is logged, once.
    #[default]
    Warn,
    /// The start fails with an error that names the frames.
    Refuse,
}

/// Reaction to a replay with other outputs than the recorded ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnOtherOutputs {
    /// The start fails with an error that names the range of frames.
    #[default]
    Stop,
    /// A warning is logged: replies sent to clients may be wrong now.
    Warn,
}

/// Reaction of a fold to faults and to changed handlers.
///
/// The first start with non-default values of `on_panic` and `on_unhandled` writes them to the stream, which keeps them
/// for the rest of its life. A start with other values is then refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// A handler panics.
    pub on_panic: OnPanic,
    /// A message has no handler.
    pub on_unhandled: OnUnhandled,
    /// Commands without effect, in addition to those that the stream marks as skipped (`gapless journal skip`).
    pub skip_sequences: BTreeSet<u64>,
    /// A start replays frames that another program has handled. Not written to the stream.
    pub on_other_program: OnOtherProgram,
    /// A replay produces other outputs than recorded. Not written to the stream.
    pub on_other_outputs: OnOtherOutputs,
    /// Name of the program, so that two builds of the same handlers count as one. Without it the executable's bytes
    /// identify the program. Not written to the stream.
    pub program: Option<String>,
    /// Check that a refusing handler has left the state unchanged; a violation stops the service. Not written to the
    /// stream.
    pub check_refusals: CheckRefusals,
}

impl Policy {
    pub(crate) fn fault_rules(&self) -> FaultRules {
        FaultRules {
            panic_is_dead_letter: self.on_panic == OnPanic::DeadLetter,
            unhandled_stops: self.on_unhandled == OnUnhandled::Stop,
        }
    }
}
