//! [`MemberEnvironment`]: what a member takes from its machine, so that a simulation decides.

use gapless_journal::Environment;
use gapless_transport::sockets::Network;

/// Network, randomness, boot and wall clock. The default is the machine's own.
#[derive(Clone, Debug, Default)]
pub struct MemberEnvironment {
    /// What connects members.
    pub network: Network,
    /// The number that a new directory is told by, not 0; `None` draws one at random.
    pub instance: Option<u64>,
    /// The boot that the machine is on, and its clock, for the journal.
    pub journal: Environment,
    /// Frames of one message to another member, bytes, the same for all members; `None` for what they have. The window
    /// holds two such messages at least.
    pub message_bytes_max: Option<usize>,
    /// No thread of any kind: what helpers do is done in the turns of who polls by hand. The same turns then do the same.
    pub without_helpers: bool,
}
