//! Written by hand, each with a description of its fault.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_stream::event_stream::EventStream;
use gapless_wire::mold::MoldRequest;
use gapless_wire::soup::Field;
use gapless_wire::upstream::{
    HELLO_LENGTH, NodeHello, NodeReport, NodeWelcome, PACKET_LENGTH_MAX, RefusalReason, UpstreamBody, UpstreamPacket,
};
use gapless_wire::{FeedSession, FrameHeader, FrameWriter, Kind, aligned_length};

pub const FEED: &str = "MONDAY";
pub const SCHEMA: u32 = 5 << 16 | 1;

pub fn packet(key: u64, body: UpstreamBody<'_>) -> Vec<u8> {
    let mut buffer = vec![0; 1 << 12];
    let length = UpstreamPacket { key, body }.write_to(&mut buffer).unwrap();
    buffer.truncate(length);
    buffer
}

pub fn hello(change: impl FnOnce(&mut NodeHello)) -> Vec<u8> {
    let (username, password) = (Field::new("honest").unwrap(), Field::new("swordfish").unwrap());
    let mut hello = NodeHello {
        nonce: 7,
        stream_id: 0,
        incarnation: 0,
        position: 1,
        username,
        password,
        seen_sequence: 0,
        seen_timestamp_ns: 0,
        seen_stream_id: 0,
        seen_incarnation: 0,
        mtu: None,
    };
    change(&mut hello);
    packet(0, UpstreamBody::Hello(hello))
}

/// All bytes of a packet of this type are summed.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes.len() as u32;
    bytes[8..12].copy_from_slice(&length.to_le_bytes());
    bytes[12..16].fill(0);
    let summed = &bytes[..bytes.len().min(HELLO_LENGTH)];
    let crc = gapless_wire::checksum::crc32c(summed);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    bytes
}

pub fn changed(mut bytes: Vec<u8>, offset: usize, with: &[u8]) -> Vec<u8> {
    bytes[offset..offset + with.len()].copy_from_slice(with);
    bytes
}

pub fn event(session: u64, session_seq: u64) -> Vec<u8> {
    let mut buffer = vec![0; 256];
    let mut writer = FrameWriter::new(&mut buffer);
    writer.payload_mut()[..6].copy_from_slice(b"forged");
    let header = FrameHeader { kind: Kind::Event, session, session_seq, schema: SCHEMA, ..FrameHeader::default() };
    let length = writer.finish(&header, 6);
    buffer.truncate(aligned_length(length));
    buffer
}

pub fn refused(stream: &EventStream) -> Vec<(&'static str, Vec<u8>, RefusalReason)> {
    use RefusalReason::{NotAuthorized, NotHeld, OtherIncarnation, OtherStream};
    let (name, far) = (Field::new("nobody").unwrap(), stream.released_sequence() + 1_000);
    let (stream_id, incarnation) = (stream.identity().stream_id, stream.identity().incarnation);
    vec![
        ("a wrong password", hello(|hello| hello.password = Field::new("trout").unwrap()), NotAuthorized),
        ("an unknown user", hello(|hello| hello.username = name), NotAuthorized),
        ("no password", hello(|hello| hello.password = Field::BLANK), NotAuthorized),
        (
            "neither name nor password",
            hello(|hello| (hello.username, hello.password) = (Field::BLANK, Field::BLANK)),
            NotAuthorized,
        ),
        ("another stream", hello(|hello| hello.stream_id = stream_id ^ 1), OtherStream),
        ("another incarnation", hello(|hello| hello.incarnation = incarnation ^ 1), OtherIncarnation),
        ("what is not there yet", hello(|hello| hello.position = far), NotHeld),
    ]
}

pub fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let good = hello(|_| ());
    let longer = |by: usize| [good.clone(), vec![b'a'; by]].concat();
    let report = packet(99, UpstreamBody::Report(NodeReport::default()));
    vec![
        ("a password that does not end, by a byte", sealed(longer(1))),
        ("a password that does not end", sealed(longer(900))),
        ("a hello without its end", sealed(good[..80].to_vec())),
        ("a hello with something behind its end", sealed(changed(good.clone(), 120, b"a"))),
        ("a name that is none", sealed(changed(good.clone(), 64, &[0xff; 6]))),
        ("a hello without a nonce", sealed(changed(good.clone(), 24, &[0; 8]))),
        ("a wrong checksum", changed(good.clone(), 12, &[0xa5; 4])),
        ("a wrong password under an old checksum", changed(good.clone(), 70, b"trout     ")),
        ("a length that is too small", changed(good.clone(), 8, &(HELLO_LENGTH as u32 - 8).to_le_bytes())),
        ("a length that is too great", changed(good.clone(), 8, &(HELLO_LENGTH as u32 + 8).to_le_bytes())),
        ("a length of nothing", changed(good.clone(), 8, &[0; 4])),
        ("a length beyond all", changed(good.clone(), 8, &(PACKET_LENGTH_MAX as u32 + 1).to_le_bytes())),
        ("another first word", changed(good.clone(), 0, b"GUP\x02")),
        ("a type that is none", sealed(changed(good.clone(), 4, &[99]))),
        ("a reserved byte", sealed(changed(good, 5, &[1]))),
        ("a report in a state that is none", sealed(changed(report, 56, &[2]))),
        ("noise", vec![0xa5; 1_000]),
        (
            "a request",
            MoldRequest { feed_session: FeedSession::new(FEED).unwrap(), sequence: 1, count: 1 }.to_bytes().to_vec(),
        ),
    ]
}

pub fn from_a_sequencer(key: u64) -> Vec<(&'static str, Vec<u8>)> {
    let welcome = NodeWelcome {
        nonce: 7,
        stream_id: 1,
        incarnation: 1,
        position: 1,
        released_sequence: 1,
        frame_length_max: 1_376,
        tier: 1,
        message_bytes_max: 1 << 20,
        feed_session: FeedSession::new(FEED).unwrap(),
        feed_first_sequence: 1,
        feed_last_sequence: None,
        heartbeat_interval_ns: 1,
    };
    let refusal = UpstreamBody::Refusal { nonce: 7, reason: RefusalReason::Unavailable, text: "go away" };
    vec![
        ("a welcome", packet(key, UpstreamBody::Welcome(welcome))),
        ("a refusal", packet(key, refusal)),
        ("answers", packet(key, UpstreamBody::Answers(&event(1, 1)))),
        ("unknown", packet(key, UpstreamBody::Unknown)),
    ]
}
