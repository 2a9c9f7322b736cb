//! [`MemberEnvironment`]: what a member takes from its machine, so that a simulation can replace it.

use gapless_journal::Environment;
use gapless_transport::sockets::Network;

/// Network, randomness, boot and wall clock. The default is the machine's own.
#[derive(Clone, Debug, Default)]
pub struct MemberEnvironment {
    /// The network that connects members.
    pub network: Network,
    /// The instance number of a new directory, not 0; `None` draws one at random.
    pub instance: Option<u64>,
    /// The boot of the machine, and its clock, for the journal.
    pub journal: Environment,
    /// The most bytes of frames in one message to another member, the same for all members; `None` for the default. The
    /// window holds two such messages at least.
    pub message_bytes_max: Option<usize>,
    /// Starts no helper thread: a member that is polled by hand does the helpers' work in its turns. The same turns
    /// then have the same result.
    pub without_helpers: bool,
}
