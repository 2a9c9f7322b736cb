//! A relay tells only the node that asked for a session beyond the limit.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::raw_publisher::{Answer, RawPublisher, frame, open};
use gapless_client::ClientError;
use gapless_client::node::link::{ConnectionInfo, LinkRead};
use gapless_client::node::{NodeLink, Start};
use gapless_log::StreamIdentity;
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use gapless_transport::seen_frame::SeenFrame;
use gapless_wire::control::{Refusal, RefusalCode, SessionOpen};
use gapless_wire::descriptor::REFUSED_FLAG;
use gapless_wire::{Frame, FrameHeader, Kind};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Refuses the second request before the first.
#[derive(Default)]
struct FullStreamLink {
    asked: Vec<u128>,
}

impl NodeLink for FullStreamLink {
    fn connect(
        &mut self,
        _start: Start,
        _seen: SeenFrame,
        _now_ns: u64,
    ) -> Result<Option<ConnectionInfo>, ClientError> {
        Ok(Some(ConnectionInfo {
            identity: StreamIdentity { stream_id: 1, incarnation: 2 },
            frame_length_max: 1_376,
            message_bytes_max: 1 << 20,
            released_sequence: 0,
            position: 1,
            feed: None,
        }))
    }

    fn send(&mut self, frame: &[u8]) -> Result<bool, ClientError> {
        let open = SessionOpen::from_bytes(Frame::parse(frame).unwrap().payload()).unwrap();
        self.asked.push(open.token);
        Ok(true)
    }

    fn flush(&mut self) -> Result<(), ClientError> {
        Ok(())
    }

    fn answers(&mut self, take: &mut dyn FnMut(&Frame<'_>)) -> Result<usize, ClientError> {
        if self.asked.len() < 2 {
            return Ok(0);
        }
        while let Some(token) = self.asked.pop() {
            let mut payload = [0; 64];
            let refusal = Refusal { code: RefusalCode::Limit, detail: token as u64, text: "no more" };
            let length = refusal.write_to(&mut payload);
            let header = FrameHeader { kind: Kind::Reply, flags: REFUSED_FLAG, ..FrameHeader::default() };
            take(&Frame::parse(&frame(&header, &payload[..length])).unwrap());
        }
        Ok(2)
    }

    fn read(&mut self, _now_ns: u64) -> Result<LinkRead<'_>, ClientError> {
        Ok(LinkRead::Empty)
    }

    fn released_sequence(&self) -> u64 {
        0
    }

    fn loses(&self) -> bool {
        false
    }

    fn tick(&mut self, _now_ns: u64) -> Result<(), ClientError> {
        Ok(())
    }

    fn wait(&mut self, _timeout: Duration) -> Result<(), ClientError> {
        Ok(())
    }

    fn peer(&self) -> String {
        "a full stream".to_owned()
    }
}

#[test]
fn refusal_reaches_only_its_node() {
    let options = EventStreamOptions::in_memory();
    let relay =
        EventStream::relay(&options, Box::new(FullStreamLink::default()), Start::First, &AtomicBool::new(false))
            .unwrap();
    let (mut one, mut two) = (RawPublisher::connect(&relay), RawPublisher::connect(&relay));
    let refused = |detail| Answer::Refused { code: RefusalCode::Limit, session: 0, detail };
    for round in 0..3 {
        let (first, second) = ((1 << 100) + 10 + round, (1_u128 << 100) + 20 + round);
        one.send(&open(first));
        two.send(&open(second));
        assert_eq!(one.answer(), refused(first as u64));
        assert_eq!(two.answer(), refused(second as u64));
    }
    drop((one, two));
    relay.stop().unwrap();
}
