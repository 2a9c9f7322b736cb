//! Members without a service decide nothing about typed commands: their frames keep their flags, as in an event stream
//! of one sequencer.

use crate::cluster::Cluster;
use gapless_client::replay_merge::ReplayRead;
use gapless_testkit::wait::until_some;
use gapless_transport::link::RingSizes;
use gapless_transport::publisher_link::PublisherLink;
use gapless_wire::control::SessionOpen;
use gapless_wire::{Encoding, Frame, FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length};

fn send(link: &mut PublisherLink, header: &FrameHeader, payload: &[u8]) {
    let mut frame = vec![0; aligned_length(HEADER_LENGTH + payload.len())];
    let mut writer = FrameWriter::new(&mut frame);
    writer.payload_mut()[..payload.len()].copy_from_slice(payload);
    writer.finish(header, payload.len());
    link.writer.append(&frame).unwrap();
    link.flush();
}

#[test]
fn typed_command_keeps_its_flags() {
    let cluster = Cluster::start(1);
    cluster.leader();
    let rings = RingSizes { command_ring_bytes: 1 << 16, reply_ring_bytes: 1 << 16 };
    let mut link = cluster.leading().stream().connect(rings).unwrap();
    let open = SessionOpen { token: 7, window_messages: 8, shared: false, notices_seen: 0 };
    send(&mut link, &FrameHeader { kind: Kind::SessionOpen, ..FrameHeader::default() }, &open.to_bytes());
    let session = until_some("the session", || {
        let length = link.reader.next_length().unwrap()?;
        let mut bytes = vec![0; aligned_length(length)];
        link.reader.copy(&mut bytes);
        Some(Frame::parse(&bytes).unwrap().session())
    });
    let flags = Encoding::Postcard.flags();
    let command =
        FrameHeader { kind: Kind::Command, session, session_seq: 1, schema: 7, flags, ..FrameHeader::default() };
    send(&mut link, &command, b"typed");
    let mut reader = cluster.leading().stream().reader(1);
    let found = until_some("the command", || match reader.read().unwrap() {
        ReplayRead::Frame(frame) if frame.kind() == Kind::Command => Some(frame.flags()),
        _ => None,
    });
    assert_eq!(found, flags);
}
