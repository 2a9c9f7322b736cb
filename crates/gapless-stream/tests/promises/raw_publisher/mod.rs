#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_log::LogError;
use gapless_stream::event_stream::EventStream;
use gapless_transport::RingSizes;
use gapless_transport::publisher_link::PublisherLink;
use gapless_wire::control::{Refusal, RefusalCode, SessionOpen, SessionOpened};
use gapless_wire::descriptor::REFUSED_FLAG;
use gapless_wire::{Fragment, Frame, FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length};
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct RawPublisher {
    link: PublisherLink,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Opened { session: u64 },
    Refused { code: RefusalCode, session: u64, detail: u64 },
    Repeat { session: u64, session_seq: u64 },
}

pub fn frame(header: &FrameHeader, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; aligned_length(HEADER_LENGTH + payload.len())];
    let mut writer = FrameWriter::new(&mut bytes);
    writer.payload_mut()[..payload.len()].copy_from_slice(payload);
    writer.finish(header, payload.len());
    bytes
}

pub fn event(session: u64, session_seq: u64, payload: &[u8]) -> Vec<u8> {
    frame(&FrameHeader { kind: Kind::Event, session, session_seq, ..FrameHeader::default() }, payload)
}

pub fn part(session: u64, session_seq: u64, index: u16, count: u16, length: usize) -> Vec<u8> {
    let fragment = Fragment { index, count };
    let header = FrameHeader { kind: Kind::Event, session, session_seq, fragment, ..FrameHeader::default() };
    frame(&header, &vec![index as u8; length])
}

pub fn open(token: u128) -> Vec<u8> {
    let open = SessionOpen { token, window_messages: 64, shared: false, notices_seen: 0 };
    frame(&FrameHeader { kind: Kind::SessionOpen, ..FrameHeader::default() }, &open.to_bytes())
}

impl RawPublisher {
    pub fn connect(stream: &EventStream) -> Self {
        Self::connect_with(stream, RingSizes::default())
    }

    pub fn connect_with(stream: &EventStream, rings: RingSizes) -> Self {
        Self { link: stream.connect(rings).unwrap() }
    }

    pub fn send(&mut self, frame: &[u8]) {
        assert!(self.try_send(frame), "the ring stays full, or is no longer read");
    }

    pub fn try_send(&mut self, frame: &[u8]) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && !self.is_dropped() {
            match self.link.writer.append(frame) {
                Ok(()) => {
                    self.flush();
                    return true;
                }
                Err(LogError::Full { .. }) => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
        false
    }

    fn flush(&mut self) {
        if self.link.writer.publish() {
            let _ = rustix::io::write(&self.link.wake_service, &1u64.to_ne_bytes());
        }
    }

    pub fn wait_taken(&self) {
        let begun = Instant::now();
        while self.link.writer.backlog_bytes() > 0 {
            assert!(begun.elapsed() < PATIENCE, "the frames are not taken");
            std::thread::yield_now();
        }
    }

    pub fn is_dropped(&self) -> bool {
        self.link.writer.is_reader_closed()
    }

    pub fn answer(&mut self) -> Answer {
        self.answer_while(|| {})
    }

    pub fn answer_while(&mut self, mut turn: impl FnMut()) -> Answer {
        let begun = Instant::now();
        loop {
            turn();
            if let Some(length) = self.link.reader.next_length().unwrap() {
                let mut bytes = vec![0; aligned_length(length)];
                self.link.reader.copy(&mut bytes);
                self.link.reader.advance(length);
                self.link.reader.release();
                return meaning(&Frame::parse(&bytes).unwrap());
            }
            assert!(begun.elapsed() < PATIENCE, "no answer came");
            std::thread::yield_now();
        }
    }

    pub fn open(&mut self, token: u128) -> u64 {
        self.open_while(token, || {})
    }

    pub fn open_while(&mut self, token: u128, turn: impl FnMut()) -> u64 {
        self.send(&open(token));
        match self.answer_while(turn) {
            Answer::Opened { session } => session,
            answer => panic!("{answer:?}"),
        }
    }
}

fn meaning(frame: &Frame<'_>) -> Answer {
    let (session, session_seq) = (frame.session(), frame.session_seq());
    if frame.flags() & REFUSED_FLAG != 0 {
        let Refusal { code, detail, .. } = Refusal::from_bytes(frame.payload()).unwrap();
        return Answer::Refused { code, session, detail };
    }
    match SessionOpened::from_bytes(frame.payload()) {
        Some(_) => Answer::Opened { session },
        None => Answer::Repeat { session, session_seq },
    }
}
