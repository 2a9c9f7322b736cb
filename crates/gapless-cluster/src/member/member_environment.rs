//! [`MemberEnvironment`]: resources of a member's machine, which a simulation can replace.

use gapless_journal::JournalEnvironment;
use gapless_transport::sockets::Network;

/// Network, randomness, boot and wall clock. The default is the machine's own.
#[derive(Clone, Debug, Default)]
pub struct MemberEnvironment {
    /// Network that connects members.
    pub network: Network,
    /// Instance number of a new directory, not 0; `None` draws one at random.
    pub instance: Option<u64>,
    /// Boot and clock of the machine, for the journal.
    pub journal: JournalEnvironment,
    /// Largest number of bytes of frames in one message to another member, the same for all members; `None` for the
    /// default. The window holds at least two such messages.
    pub message_bytes_max: Option<usize>,
    /// Whether no helper thread is started: a member that is polled by hand does the helpers' work in its turns. The
    /// same turns then have the same result.
    pub without_helpers: bool,
}
