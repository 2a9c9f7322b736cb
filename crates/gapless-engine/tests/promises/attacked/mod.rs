#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_client::ClientError;
use gapless_client::polled::{ClientOptions, MessageType, OwnedReply};
use gapless_client::{PolledClient, SessionKey};
use gapless_engine::{Context, Handlers, Persistence, Reject, Service, ServiceHost, ServiceHostOptions};
use gapless_schema::Encoding;
use std::path::Path;
use std::time::Duration;

pub const ADD: u32 = 1 << 16 | 1;
pub const FILL: u32 = 1 << 16 | 2;
pub const PANIC: u32 = 1 << 16 | 3;
pub const ABORT: u32 = 1 << 16 | 4;
pub const UNKNOWN: u32 = 1 << 16 | 9;
pub use gapless_testkit::wait::PATIENCE;

#[derive(Default)]
pub struct Adder {
    sum: u64,
}

impl Service for Adder {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(ADD, |adder, payload, context| {
            adder.sum += payload.iter().map(|byte| u64::from(*byte)).sum::<u64>();
            context.reply_with(message(ADD), &adder.sum.to_le_bytes())
        });
        handlers.on_bytes(FILL, Self::fill);
        handlers.on_bytes(ABORT, |_, _, _| std::process::abort());
        handlers.on_bytes(PANIC, |_, _, context| {
            context.reply_with(message(PANIC), b"never seen")?;
            panic!("a handler with a bug")
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.sum.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.sum = u64::from_le_bytes(state.try_into().map_err(|_| "8 bytes are expected")?);
        Ok(())
    }
}

impl Adder {
    fn fill(&mut self, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let length = u32::from_le_bytes(payload.try_into().map_err(|_| "4 bytes are expected")?);
        self.sum += 1;
        context.reply_with(message(FILL), &vec![self.sum as u8; length as usize])
    }
}

pub fn message(schema: u32) -> MessageType {
    MessageType { schema, encoding: Encoding::Opaque }
}

pub fn options(directory: &Path) -> ServiceHostOptions {
    ServiceHostOptions {
        window_bytes: 1 << 20,
        frame_length_max: 4096,
        snapshot_on_stop: false,
        persistence: Persistence { segment_length_bytes: 256 << 10, ..Persistence::default() },
        ..ServiceHostOptions::in_directory(directory)
    }
}

pub fn start(options: ServiceHostOptions) -> ServiceHost {
    ServiceHost::start(Adder::default(), options).unwrap()
}

pub fn connect(directory: &Path) -> PolledClient {
    let options = ClientOptions { timeout: PATIENCE, ..ClientOptions::default() };
    PolledClient::connect(directory.join("node.socket"), options).unwrap()
}

pub fn call(
    client: &mut PolledClient,
    key: SessionKey,
    schema: u32,
    payload: &[u8],
) -> Result<OwnedReply, ClientError> {
    client.call(key, message(schema), payload, PATIENCE)
}

pub fn add(client: &mut PolledClient, key: SessionKey, number: u8) -> u64 {
    let reply = call(client, key, ADD, &[number]).unwrap();
    u64::from_le_bytes(reply.payload.try_into().unwrap())
}

pub fn failure(host: &ServiceHost) -> String {
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        if let Some(failure) = host.failure() {
            return failure.to_string();
        }
        assert!(std::time::Instant::now() < deadline, "the host does not stop");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn send(client: &mut PolledClient, key: SessionKey, schema: u32, payload: &[u8]) -> u64 {
    client
        .send(key, message(schema), payload.len(), |buffer| {
            buffer.copy_from_slice(payload);
            Ok(payload.len())
        })
        .unwrap()
}
