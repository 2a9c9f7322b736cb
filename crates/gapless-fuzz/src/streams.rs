//! Targets for the inputs of an event stream: upstream packets, requests of its operator, the sequencer's marks and its
//! state, and a feed in any order.

use crate::input::{FuzzInput, assert_says_something};
use gapless_client::control_messages::{
    ControlAnswer, ControlRequest, ControlRequestError, NodesAnswer, NodesRequest, REQUEST_LENGTH_MAX,
};
use gapless_client::feed_sessions::Feed;
use gapless_client::node::feed_receiver::{FeedReceiver, FeedReceiverOptions};
use gapless_stream::sequencer::SequencerRules;
use gapless_stream::sequencer_state::SequencerState;
use gapless_wire::mark::Mark;
use gapless_wire::mold::{MoldPacket, PacketContent};
use gapless_wire::upstream::{UpstreamBody, UpstreamPacket};
use gapless_wire::{FeedSession, mark, upstream};

pub fn upstream_packet(bytes: &[u8]) {
    match UpstreamPacket::parse(bytes) {
        Ok(packet) => {
            assert_eq!(upstream::peek(bytes), Ok(Some(bytes.len())), "its length is its own");
            let mut again = vec![0xa5; bytes.len() + 64];
            let length = packet.write_to(&mut again).expect("there is room for as much as was read");
            // A refusal may end in zeros that are no text.
            if !matches!(packet.body, UpstreamBody::Refusal { .. }) {
                assert_eq!(again[..length], *bytes);
            }
            assert_eq!(UpstreamPacket::parse(&again[..length]), Ok(packet));
        }
        Err(error) => assert_says_something(&error),
    }
}

pub fn stream_mark(bytes: &[u8]) {
    if let Some(mark) = Mark::from_bytes(bytes) {
        let mut again = [0xa5; mark::LENGTH_MAX];
        let length = mark.write_to(&mut again);
        assert_eq!(again[..length], *bytes);
    }
}

pub fn stream_control(bytes: &[u8]) {
    match ControlRequest::from_bytes(bytes) {
        Ok(request) => {
            assert!(ControlRequest::is_request_magic(bytes) && bytes.len() <= REQUEST_LENGTH_MAX);
            assert_eq!(request.to_bytes(), *bytes);
        }
        Err(ControlRequestError::OtherVersion) => assert!(ControlRequest::is_request_magic(bytes)),
        Err(ControlRequestError::Malformed) => {}
    }
    if let Some(answer) = ControlAnswer::from_bytes(bytes) {
        assert_eq!(answer.to_bytes(), *bytes);
    }
    if let Some(request) = NodesRequest::from_bytes(bytes) {
        assert_eq!(request.to_bytes(), *bytes);
    }
    if let Some(answer) = NodesAnswer::from_bytes(bytes) {
        assert_eq!(answer.to_bytes(), *bytes);
    }
}

pub fn sequencer_state(bytes: &[u8]) {
    // Few random bytes have the right checksum.
    let mut sound = bytes.to_vec();
    if let Some((content, sum)) = sound.split_last_chunk_mut::<4>() {
        *sum = gapless_wire::checksum::crc32c(content).to_le_bytes();
    }
    for bytes in [bytes, &sound] {
        match SequencerState::from_bytes(bytes) {
            Ok(state) => {
                assert_eq!(SequencerState::from_bytes(&state.to_bytes()), Ok(state.clone()));
                let sequencer = state.restore(SequencerRules::of_stream(1));
                assert_eq!(sequencer.last_sequence(), state.sequence);
            }
            Err(reason) => assert!(!reason.is_empty()),
        }
    }
}

/// u16 length, then a packet, repeated. Frames are read in order, and memory is bounded.
pub fn feed_receiver(bytes: &[u8]) {
    let name = FeedSession::new("FEED").expect("four letters");
    let feed = Feed { name, first_sequence: 1, last_sequence: None };
    let options = FeedReceiverOptions { waiting_bytes_max: 1 << 16, ..FeedReceiverOptions::default() };
    let mut receiver = FeedReceiver::new(options, Some(feed), 1);
    let mut input = FuzzInput(bytes);
    let (mut next, mut now_ns) = (1, 0);
    while !input.0.is_empty() {
        let length = usize::from(input.u16()).min(input.0.len());
        let (packet, rest) = input.0.split_at(length);
        input = FuzzInput(rest);
        now_ns += 1_000_000;
        let before = (receiver.feed().copied(), receiver.next_sequence());
        receiver.take_packet(packet, now_ns);
        if let Ok(MoldPacket { content: PacketContent::EndOfSession | PacketContent::Heartbeat, .. }) =
            MoldPacket::parse(packet)
        {
            // Only the mark in the stream ends a feed session: no checksum covers the packet.
            assert_eq!((receiver.feed().copied(), receiver.next_sequence()), before);
        }
        let mut requests = 0;
        while let Some(request) = receiver.due_request(now_ns) {
            assert!(request.count > 0 && request.sequence > 0);
            requests += 1;
            assert!(requests <= 64, "requests come to an end");
        }
        while let Some(frame) = receiver.next_frame() {
            assert_eq!(frame.sequence(), next);
            next += 1;
        }
        assert_eq!(receiver.next_sequence(), next);
    }
}
