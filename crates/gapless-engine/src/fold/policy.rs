//! [`Policy`]: what a fold does in cases that the service does not decide.

use super::CheckRefusals;
use gapless_wire::mark::FaultRules;
use std::collections::BTreeSet;

/// What happens when a handler panics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnPanic {
    /// The service stops with an error that names the command; nothing of the command was sent. The
    /// operator mends the handler, or skips the command's sequence.
    #[default]
    Stop,
    /// The command is refused and recorded as a dead letter; the state stays as the handler left it,
    /// on every replay alike.
    DeadLetter,
}

/// What happens to a message that nobody handles, or whose payload is not what its header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnhandled {
    /// The command is refused and recorded as a dead letter.
    #[default]
    DeadLetter,
    /// The service stops with an error that names the command.
    Stop,
}

/// What happens when a start has frames to replay that another program has handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnOtherProgram {
    /// The log says so, once.
    #[default]
    Warn,
    /// The start fails with an error that says which frames.
    Refuse,
}

/// What happens when a replay puts out something else than the handlers once did, as far as that is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnOtherOutputs {
    /// The start fails with an error that says between which frames.
    #[default]
    Stop,
    /// The log says so: clients may have been told what is not so any more.
    Warn,
}

/// What a fold does in cases that the service does not decide. `on_panic` and `on_unhandled` are written into the stream at the first
/// start with other values than the defaults, and hold for the rest of its life: a start with others is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// A handler panics.
    pub on_panic: OnPanic,
    /// Nobody handles a message.
    pub on_unhandled: OnUnhandled,
    /// Commands without effect, in addition to those that the stream says are skipped (`gapless journal skip`).
    pub skip_sequences: BTreeSet<u64>,
    /// A start replays frames that another program has handled. Means nothing to the stream.
    pub on_other_program: OnOtherProgram,
    /// A replay puts out something else than was recorded. Means nothing to the stream.
    pub on_other_outputs: OnOtherOutputs,
    /// What the program is called, so that two builds of the same handlers are one; without a name the bytes of its
    /// executable are its name. Means nothing to the stream.
    pub program: Option<String>,
    /// Whether it is looked at that handlers which refuse have changed nothing; one that has stops the service. Means
    /// nothing to the stream.
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
