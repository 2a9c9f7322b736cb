//! What a link has counted, added to what a node has seen.

use crate::sequencer::protocol::Account;
use gapless_client::client::MessageType;
use gapless_client::node::feed_receiver::FeedCounts;
use gapless_client::node::{DatagramLink, NodeLink, SharedMemoryLink, StreamNode};
use gapless_transport::network::UdpSocket;
use gapless_wire::Encoding;

/// The type of every message here.
pub(super) const TYPE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

/// What a link has counted.
pub(super) trait CountingLink: NodeLink {
    /// What packets have brought.
    fn feed_counts(&self) -> FeedCounts {
        FeedCounts::default()
    }
}

/// What the node itself has counted, added to what was seen.
pub(super) fn complete<L: CountingLink>(account: Account, node: &StreamNode<L>) -> Account {
    let FeedCounts { frames_requested: requested, frames_rewound: rewound, .. } = node.link().feed_counts();
    Account {
        resent: node.resent(),
        requested,
        rewound,
        lapped: node.lapped(),
        peak_memory_bytes: crate::resources::memory().map_or(0, |memory| memory.peak_bytes),
        ..account
    }
}

impl CountingLink for SharedMemoryLink {}

impl CountingLink for DatagramLink<UdpSocket> {
    fn feed_counts(&self) -> FeedCounts {
        self.counts()
    }
}
