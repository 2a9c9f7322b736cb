//! Written by hand, byte by byte from the specification.

use gapless_stream::event_stream::EventStream;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(120);

pub fn counter(stream: &EventStream, label: &str) -> u64 {
    let values = stream.counters().values();
    values.into_iter().find(|(each, _)| each == label).unwrap_or_else(|| panic!("no counter {label}")).1
}

pub fn reaches(stream: &EventStream, label: &str, value: u64) {
    let begun = Instant::now();
    while counter(stream, label) != value {
        assert!(begun.elapsed() < PATIENCE, "{label} is {}, not {value}", counter(stream, label));
        std::thread::yield_now();
    }
}

pub struct Client {
    pub socket: TcpStream,
    pub received: Vec<u8>,
}

/// `L`: username 6, password 10, session 10, sequence 20; the numbers right-justified, the texts left.
pub fn login(username: &str, password: &str, feed_session: &str, sequence: u64) -> Vec<u8> {
    let text = format!("L{username:<6}{password:<10}{feed_session:<10}{sequence:>20}");
    [&[0, 47], text.as_bytes()].concat()
}

impl Client {
    pub fn connect(stream: &EventStream) -> Self {
        Self::connect_to(stream.tcp_addresses().unwrap().rewind)
    }

    pub fn connect_to(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket, received: Vec::new() }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    pub fn take(&mut self) -> Option<(u8, Vec<u8>)> {
        let length = usize::from(u16::from_be_bytes([*self.received.first()?, *self.received.get(1)?]));
        assert!(length >= 1, "a packet has a type");
        let packet = self.received.get(2..2 + length)?.to_vec();
        self.received.drain(..2 + length);
        Some((packet[0], packet[1..].to_vec()))
    }

    pub fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            if let Some(packet) = self.take() {
                return Some(packet);
            }
            let mut bytes = [0; 4096];
            match self.socket.read(&mut bytes) {
                Ok(0) => return None,
                Ok(length) => self.received.extend_from_slice(&bytes[..length]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("nothing received: {error}"),
            }
        }
    }

    pub fn accepted(&mut self, feed_session: &str, sequence: u64) {
        let expected = format!("{feed_session:>10}{sequence:>20}").into_bytes();
        let (kind, payload) = self.next().expect("an answer to the login");
        let found = String::from_utf8_lossy(&payload).into_owned();
        assert_eq!((kind as char, found), ('A', String::from_utf8(expected).unwrap()));
    }

    pub fn rejected(&mut self, reason: u8) {
        assert_eq!(self.next(), Some((b'J', vec![reason])));
        assert_eq!(self.next(), None, "and the connection is closed");
    }

    pub fn frame(&mut self) -> (u64, u8, Vec<u8>) {
        loop {
            match self.next() {
                Some((b'S', frame)) => {
                    let sequence = u64::from_le_bytes(frame[8..16].try_into().unwrap());
                    let length = u32::from_le_bytes(frame[..4].try_into().unwrap()) as usize;
                    assert_eq!(length, frame.len(), "a message is a frame, without padding");
                    return (sequence, frame[5], frame[64..].to_vec());
                }
                Some((b'H', _)) => {}
                other => panic!("a message was due, not {other:?}"),
            }
        }
    }

    pub fn frames(&mut self, first: u64, last: u64) -> Vec<Vec<u8>> {
        const EVENT: u8 = 2;
        let mut payloads = Vec::new();
        for expected in first..=last {
            let (sequence, kind, payload) = self.frame();
            assert_eq!(sequence, expected, "in order, without a gap");
            if kind == EVENT {
                payloads.push(payload);
            }
        }
        payloads
    }
}
