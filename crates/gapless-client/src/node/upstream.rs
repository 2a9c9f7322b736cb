//! A node's messages to the sequencer over a network, and decoding of the answers: hello and report, welcome and
//! refusal.

use super::link::{ConnectionInfo, Start};
use crate::ClientError;
use crate::feed_sessions::Feed;
use crate::node_progress::ProgressReport;
use gapless_log::StreamIdentity;
use gapless_transport::TransportError;
use gapless_transport::seen_frame::SeenFrame;
use gapless_wire::mtu::Mtu;
use gapless_wire::soup::Field;
use gapless_wire::upstream::{NodeHello, NodeReport, NodeWelcome, RefusalReason};

pub(super) const fn hello(
    nonce: u64,
    position: u64,
    (username, password): (Field<6>, Field<10>),
    seen: SeenFrame,
    mtu: Option<Mtu>,
) -> NodeHello {
    NodeHello {
        nonce,
        stream_id: 0,
        incarnation: 0,
        position,
        username,
        password,
        seen_sequence: seen.sequence,
        seen_timestamp_ns: seen.timestamp_ns,
        seen_stream_id: seen.identity.stream_id,
        seen_incarnation: seen.identity.incarnation,
        mtu,
    }
}

pub(super) fn report(position: u64, progress: Option<ProgressReport>, is_live: bool) -> NodeReport {
    let progress = progress.unwrap_or(ProgressReport { is_live, ..ProgressReport::default() });
    NodeReport {
        position,
        frames_resent: progress.frames_resent,
        is_live: progress.is_live,
        in_flight: progress.in_flight,
        ..NodeReport::default()
    }
}

pub(super) fn connected(welcome: &NodeWelcome) -> ConnectionInfo {
    ConnectionInfo {
        identity: StreamIdentity { stream_id: welcome.stream_id, incarnation: welcome.incarnation },
        frame_length_max: welcome.frame_length_max as usize,
        message_bytes_max: welcome.message_bytes_max as usize,
        released_sequence: welcome.released_sequence,
        position: welcome.position,
        feed: Some(welcome_feed(welcome)).filter(|feed| feed.holds(welcome.position)),
    }
}

pub(super) const fn welcome_feed(welcome: &NodeWelcome) -> Feed {
    Feed {
        name: welcome.feed_session,
        first_sequence: welcome.feed_first_sequence,
        last_sequence: welcome.feed_last_sequence,
    }
}

/// Refusal by `peer` of a node that reads from `start`.
///
/// # Errors
/// An error that a retry cannot fix.
pub(super) fn refusal_error(
    (reason, text): (RefusalReason, &str),
    start: Start,
    seen: SeenFrame,
    peer: String,
) -> Result<(), ClientError> {
    match (reason, start) {
        (RefusalReason::Unavailable, _) | (RefusalReason::NotHeld, Start::First | Start::Live) => Ok(()),
        (RefusalReason::NotHeld, Start::Sequence(sequence)) => {
            Err(ClientError::Lapped { sequence, reason: text.to_owned() })
        }
        (RefusalReason::OtherHistory, _) => Err(ClientError::OtherHistory { peer, seen, released_sequence: 0 }),
        (reason, _) => {
            Err(TransportError::Handshake { peer, status: None, reason: format!("{reason:?}: {text}") }.into())
        }
    }
}
