//! An open that names a session never creates another: its publisher has published the session's close.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::raw_publisher::{Answer, RawPublisher, event, frame, part};
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use gapless_wire::control::{RefusalCode, SessionOpen};
use gapless_wire::{FrameHeader, Kind};

const TOKEN: u128 = 1 << 90 | 5;

fn named(session: u64) -> Vec<u8> {
    let open = SessionOpen { token: TOKEN, window_messages: 64, shared: false, notices_seen: 0 };
    frame(&FrameHeader { kind: Kind::SessionOpen, session, ..FrameHeader::default() }, &open.to_bytes())
}

fn close(session: u64, session_seq: u64) -> Vec<u8> {
    frame(&FrameHeader { kind: Kind::SessionClose, session, session_seq, ..FrameHeader::default() }, &[])
}

#[test]
fn named_open_creates_no_session() {
    let stream = EventStream::start(&EventStreamOptions::in_memory()).unwrap();
    let (mut one, mut two) = (RawPublisher::connect(&stream), RawPublisher::connect(&stream));
    let unknown = |session| Answer::Refused { code: RefusalCode::SessionUnknown, session, detail: 0 };
    one.send(&named(77));
    assert_eq!(one.answer(), unknown(77), "no session has the token");
    let session = one.open(TOKEN);
    one.send(&event(session, 1, b"one"));
    one.send(&part(session, 2, 0, 2, 100));
    one.send(&named(session));
    assert_eq!(one.answer(), Answer::Opened { session });
    two.send(&named(session));
    assert_eq!(two.answer(), Answer::Opened { session });
    two.send(&close(session, 2));
    two.send(&named(session));
    assert_eq!(two.answer(), unknown(session), "it is closed");
    let another = one.open(TOKEN);
    assert!(another > session);
    two.send(&named(session));
    assert_eq!(two.answer(), unknown(session));
    one.send(&event(another, 1, b"still mine"));
    one.send(&event(another, 1, b"still mine"));
    assert_eq!(one.answer(), Answer::Repeat { session: another, session_seq: 1 });
    drop((one, two));
    stream.stop().unwrap();
}
