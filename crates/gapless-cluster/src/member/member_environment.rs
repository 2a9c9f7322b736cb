//! [`MemberEnvironment`]: resources of a member's machine, which a simulation can replace.

use gapless_journal::JournalEnvironment;
use gapless_transport::sockets::Network;

/// Resources of the machine, replaceable by a simulation.
#[derive(Clone, Debug, Default)]
pub struct MemberEnvironment {
    /// Network between members.
    pub network: Network,
    /// Instance number of a new directory, not 0; `None` draws one at random.
    pub instance: Option<u64>,
    /// Boot and clock for the journal.
    pub journal: JournalEnvironment,
    /// Bytes of frames in one message, the same for all members; `None` for the default. The window holds at least two
    /// messages.
    pub message_bytes_max: Option<usize>,
    /// Does the helper threads' work in the member's turns, so that equal turns have equal results.
    pub without_helpers: bool,
}
