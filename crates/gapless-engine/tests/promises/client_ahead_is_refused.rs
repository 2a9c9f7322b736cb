//! A host restored from an older copy cannot know it; a client with replies from lost frames can, and gets an error.

use gapless_client::ClientError;
use gapless_client::PolledClient;
use gapless_client::polled::{ClientOptions, Incoming, MessageType};
use gapless_client::stream_layout::StreamLayout;
use gapless_engine::{Context, Handlers, Reject, Service, ServiceHost, ServiceHostOptions, directory_consistency};
use gapless_schema::Encoding;
use gapless_testkit::folder::copy;
use gapless_testkit::wait::until;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const MESSAGE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

#[derive(Default)]
struct Count(u64);

impl Service for Count {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(MESSAGE.schema, |it: &mut Self, _: &[u8], context: &mut Context<'_>| -> Result<(), Reject> {
            it.0 += 1;
            context.reply_with(MESSAGE, &it.0.to_le_bytes())
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.0.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.0 = u64::from_le_bytes(state.try_into().map_err(|_| "8 bytes")?);
        Ok(())
    }
}

fn start(directory: &Path) -> (ServiceHost, PolledClient) {
    let host = ServiceHost::start(Count::default(), ServiceHostOptions::in_directory(directory)).unwrap();
    let client = PolledClient::connect(host.socket_path().unwrap(), ClientOptions::default()).unwrap();
    (host, client)
}

fn call(client: &mut PolledClient, token: u128, count: u64, length: usize) -> u64 {
    let session = client.open_session(token, 4).unwrap();
    let mut counted = 0;
    for _ in 0..count {
        let reply = client.call(session, MESSAGE, &vec![7; length], PATIENCE).unwrap();
        counted = u64::from_le_bytes(reply.payload.try_into().unwrap());
    }
    counted
}

fn is_refused(called_again: u64, length: usize) {
    let place = tempfile::tempdir().unwrap();
    let (directory, aside) = (place.path().join("node"), place.path().join("copy"));
    let (host, mut client) = start(&directory);
    assert_eq!(call(&mut client, 1, 10, length), 10);
    host.stop().unwrap();
    copy(&directory, &aside);

    let (host, mut client) = start(&directory);
    assert_eq!(call(&mut client, 2, 20, length), 30);
    host.stop().unwrap();

    copy(&aside, &directory);
    let (host, mut other) = start(&directory);
    assert_eq!(call(&mut other, 3, called_again, length), if called_again == 0 { 0 } else { 10 + called_again });
    let error = client.reconnect().unwrap_err();
    assert!(matches!(&error, ClientError::OtherHistory { seen, .. } if seen.sequence > 0), "{error}");
    assert!(error.to_string().contains("journal restore"), "{error}");
    host.stop().unwrap();
}

#[test]
fn client_ahead_of_node_is_refused() {
    is_refused(0, 100);
}

#[test]
fn client_of_a_lost_history_is_refused() {
    is_refused(100, 100);
}

#[test]
fn lost_history_with_fragments_refused() {
    is_refused(100, 200_000);
}

#[test]
fn unaffected_client_reconnects() {
    for length in [100, 200_000] {
        let place = tempfile::tempdir().unwrap();
        let (host, mut client) = start(place.path());
        assert_eq!(call(&mut client, 1, 10, length), 10);
        host.stop().unwrap();
        let (host, _) = start(place.path());
        client.reconnect().unwrap();
        assert_eq!(call(&mut client, 1, 10, length), 20);
        host.stop().unwrap();
    }
}

#[test]
fn client_without_replies_reconnects() {
    let place = tempfile::tempdir().unwrap();
    let (host, mut client) = start(place.path());
    let session = client.begin_session(1, 4).unwrap();
    let mut is_open = false;
    until("the session is open", || {
        client.poll(1, |incoming| is_open |= matches!(incoming, Incoming::Opened { .. })).unwrap();
        is_open
    });
    client.reconnect().unwrap();
    assert_eq!(client.call(session, MESSAGE, &[], PATIENCE).unwrap().payload, 1_u64.to_le_bytes());
    host.stop().unwrap();
}

#[test]
fn restore_skips_damaged_snapshot() {
    let place = tempfile::tempdir().unwrap();
    let (host, mut client) = start(place.path());
    assert_eq!(call(&mut client, 1, 10, 100), 10);
    host.stop().unwrap();
    let layout = StreamLayout::new(place.path());
    let snapshot = std::fs::read_dir(layout.snapshots()).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&snapshot).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&snapshot, bytes).unwrap();
    let restored = directory_consistency::restore(&layout).unwrap();
    assert_eq!(restored.set_aside.len(), 1, "{restored:?}");
    assert_ne!(restored.incarnation, restored.incarnation_before);
    let (host, mut client) = start(place.path());
    assert_eq!(call(&mut client, 2, 10, 100), 20);
    host.stop().unwrap();
}
