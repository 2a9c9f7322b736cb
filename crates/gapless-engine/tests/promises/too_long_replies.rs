//! A reply of any permitted length arrives, whatever the size of the client's ring; a longer one is the outcome "done,
//! its reply is too long".

use gapless_client::ClientError;
use gapless_client::polled::{ClientOptions, MessageType};
use gapless_client::{PolledClient, SessionKey};
use gapless_engine::fold::{NoSink, Policy};
use gapless_engine::recovery::replay_copy;
use gapless_engine::{Context, Handlers, OUTPUT_LENGTH_MAX, Service, ServiceHost, ServiceHostOptions};
use gapless_schema::Encoding;
use gapless_transport::link::RingSizes;
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const ASK: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

#[derive(Default)]
struct Verbose {
    calls: u64,
    refused: u64,
}

impl Service for Verbose {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(ASK.schema, |it: &mut Self, payload: &[u8], context: &mut Context<'_>| {
            let length = payload.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)).ok_or("4 bytes")? as usize;
            it.calls += 1;
            let byte = it.calls as u8;
            let replied = context.reply_bytes(ASK.schema, ASK.encoding, length, |buffer| {
                buffer.fill(byte);
                Ok::<_, String>(length)
            });
            // Part of the state, because a handler may act on this error.
            it.refused += u64::from(replied.is_err());
            replied
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&[self.calls.to_le_bytes(), self.refused.to_le_bytes()].concat());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let (calls, refused) = state.split_first_chunk().ok_or("16 bytes")?;
        self.calls = u64::from_le_bytes(*calls);
        self.refused = u64::from_le_bytes(refused.try_into().map_err(|_| "16 bytes")?);
        Ok(())
    }
}

fn connect(host: &ServiceHost, reply_ring_bytes: usize) -> PolledClient {
    let link = RingSizes { reply_ring_bytes, ..RingSizes::default() };
    PolledClient::connect(host.socket_path().unwrap(), ClientOptions { link, ..ClientOptions::default() }).unwrap()
}

fn ask(client: &mut PolledClient, session: SessionKey, length: usize) -> Result<Vec<u8>, ClientError> {
    client.call(session, ASK, &(length as u32).to_le_bytes(), PATIENCE).map(|reply| reply.payload)
}

fn host(directory: &Path, detach_sender: bool) -> ServiceHost {
    let mut options = ServiceHostOptions::in_directory(directory);
    options.threads.detach_sender = detach_sender;
    ServiceHost::start(Verbose::default(), options).unwrap()
}

#[test]
fn any_reply_fits_any_ring() {
    for detach_sender in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let host = host(directory.path(), detach_sender);
        let mut calls = 0u8;
        for reply_ring_bytes in [*RingSizes::RING_BYTES.start(), 64 << 10, 1 << 20, 4 << 20] {
            let mut client = connect(&host, reply_ring_bytes);
            let session = client.open_session(u128::from(reply_ring_bytes as u64), 4).unwrap();
            for length in [0, 1, 2_000, 65_472, 65_473, 300_000, 523_712, 523_713, 1 << 20 >> 1, OUTPUT_LENGTH_MAX] {
                let reply = ask(&mut client, session, length).unwrap();
                calls = calls.wrapping_add(1);
                assert!(reply.len() == length && reply.iter().all(|byte| *byte == calls), "{length} bytes");
            }
        }
        host.stop().unwrap();
    }
}

#[test]
fn slow_reader_delays_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let host = host(directory.path(), false);
    let mut slow = connect(&host, *RingSizes::RING_BYTES.start());
    let session = slow.open_session(1, 4).unwrap();
    let length = 400_000;
    for _ in 0..4 {
        slow.send(session, ASK, 4, |buffer| {
            buffer.copy_from_slice(&(length as u32).to_le_bytes());
            Ok(4)
        })
        .unwrap();
    }
    slow.flush();
    let mut other = connect(&host, 1 << 20);
    let others = other.open_session(2, 4).unwrap();
    let begun = Instant::now();
    while host.handled_sequence() < 7 {
        assert!(begun.elapsed() < PATIENCE, "{} handled", host.handled_sequence());
        let _reply = ask(&mut other, others, 900_000).unwrap();
    }
    let mut came = Vec::new();
    while came.len() < 4 {
        assert!(begun.elapsed() < PATIENCE, "{} came", came.len());
        slow.poll(1, |incoming| {
            if let gapless_client::Incoming::Reply { reply, first: true, .. } = incoming {
                assert!(reply.payload.len() == length && reply.payload.iter().all(|byte| *byte == reply.payload[0]));
                came.push(reply.session_seq);
            }
        })
        .unwrap();
    }
    assert_eq!(came, [1, 2, 3, 4]);
    host.stop().unwrap();
}

#[test]
fn reconnect_resends_a_long_reply() {
    let directory = tempfile::tempdir().unwrap();
    let host = host(directory.path(), false);
    let mut client = connect(&host, *RingSizes::RING_BYTES.start());
    let session = client.open_session(1, 4).unwrap();
    client
        .send(session, ASK, 4, |buffer| {
            buffer.copy_from_slice(&500_000u32.to_le_bytes());
            Ok(4)
        })
        .unwrap();
    client.flush();
    let begun = Instant::now();
    while host.handled_sequence() < 2 {
        assert!(begun.elapsed() < PATIENCE);
    }
    client.reconnect().unwrap();
    let mut came = 0;
    while came == 0 {
        assert!(begun.elapsed() < PATIENCE, "the reply does not come");
        client
            .poll(1, |incoming| {
                if let gapless_client::Incoming::Reply { reply, .. } = incoming {
                    came = reply.payload.len();
                }
            })
            .unwrap();
    }
    assert_eq!(came, 500_000);
    host.stop().unwrap();
}

#[test]
fn too_long_reply_is_an_outcome() {
    let directory = tempfile::tempdir().unwrap();
    let running = host(directory.path(), false);
    let mut client = connect(&running, 1 << 20);
    let session = client.open_session(1, 4).unwrap();
    let mut too_long = 0;
    for length in [10, OUTPUT_LENGTH_MAX + 1, 10, 3 << 20, 10] {
        match ask(&mut client, session, length) {
            Ok(reply) => assert_eq!(reply.len(), 10),
            Err(ClientError::ReplyTooLong { length_bytes, sequence }) => {
                assert!(length_bytes == length as u64 && sequence > 1);
                too_long += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(too_long, 2);
    running.stop().unwrap();

    // Replayed from the first frame: the handler saw no error.
    for snapshot in std::fs::read_dir(directory.path().join("snapshots")).unwrap() {
        std::fs::remove_file(snapshot.unwrap().path()).unwrap();
    }
    let (fold, _) =
        replay_copy(directory.path(), Verbose::default(), Policy::default(), u64::MAX, &mut NoSink).unwrap();
    assert_eq!((fold.service::<Verbose>().calls, fold.service::<Verbose>().refused), (5, 0));
    let again = host(directory.path(), false);
    let mut other = connect(&again, 1 << 20);
    let session = other.open_session(1, 4).unwrap();
    assert_eq!(ask(&mut other, session, 10).unwrap(), [6; 10]);
    again.stop().unwrap();
}
