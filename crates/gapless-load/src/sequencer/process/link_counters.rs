//! Adds the counters of a link to the account of a node.

use crate::sequencer::protocol::MessageAccount;
use gapless_client::node::feed_receiver::FeedCounts;
use gapless_client::node::{DatagramLink, NodeLink, SharedMemoryLink, StreamNode, TcpLink};
use gapless_client::polled::MessageType;
use gapless_transport::network::UdpSocket;
use gapless_wire::Encoding;

pub const TYPE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

pub trait CountingLink: NodeLink {
    fn feed_counts(&self) -> FeedCounts {
        FeedCounts::default()
    }
}

pub fn complete<L: CountingLink>(account: MessageAccount, node: &StreamNode<L>) -> MessageAccount {
    let FeedCounts { frames_requested: requested, frames_rewound: rewound, .. } = node.link().feed_counts();
    MessageAccount {
        resent: node.resent(),
        requested,
        rewound,
        lapped: node.lapped(),
        peak_memory_bytes: crate::resources::memory().map_or(0, |memory| memory.peak_bytes),
        ..account
    }
}

impl CountingLink for SharedMemoryLink {}

impl CountingLink for TcpLink {}

impl CountingLink for DatagramLink<UdpSocket> {
    fn feed_counts(&self) -> FeedCounts {
        self.counts()
    }
}
