//! A client can tell a command without a reply from an empty reply, also for a duplicate and after a restart.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::attacked::{PATIENCE, call, connect, message, options};
use gapless_client::ClientError;
use gapless_client::{Incoming, PolledClient, SessionKey};
use gapless_engine::store::Store;
use gapless_engine::{
    Context, EngineError, Handlers, Reject, Service, ServiceHost, ServiceHostOptions, StateHandlers, StateService,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const SILENT: u32 = 1 << 16 | 1;
const EMPTY: u32 = 1 << 16 | 2;
const REFUSED: u32 = 1 << 16 | 3;

fn empty(context: &mut Context<'_>) -> Result<(), Reject> {
    context.reply_with(message(EMPTY), b"")
}

struct EventSourced;

impl Service for EventSourced {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(SILENT, |_, _, _| Ok(()));
        handlers.on_bytes(EMPTY, |_, _, context| empty(context));
        handlers.on_bytes(REFUSED, |_, _, _| Err("".into()));
    }

    fn snapshot(&self, _: &mut Vec<u8>) {}

    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

struct StateReplicated;

impl StateService for StateReplicated {
    fn handlers(handlers: &mut StateHandlers<Self>) {
        handlers.on_bytes(SILENT, |_, _, _, _| Ok(()));
        handlers.on_bytes(EMPTY, |_, _, _, context| empty(context));
        handlers.on_bytes(REFUSED, |_, _, _, _| Err("".into()));
    }
}

fn repeated(client: &mut PolledClient, key: SessionKey) -> BTreeMap<u64, bool> {
    (1..=3).for_each(|number| client.repeat(key, number).unwrap());
    let (mut found, deadline) = (BTreeMap::new(), Instant::now() + PATIENCE);
    while found.len() < 3 {
        let polled = client.poll(8, |incoming| {
            if let Incoming::Reply { reply, .. } = incoming {
                assert!(reply.refusal.is_some() || reply.payload.is_empty());
                found.insert(reply.session_seq, reply.is_acknowledgement());
            }
        });
        polled.unwrap();
        assert!(Instant::now() < deadline, "replies to the repeated commands");
        client.wait(Duration::from_millis(10)).unwrap();
    }
    found
}

fn distinguishes_missing_reply(start: impl Fn(ServiceHostOptions) -> Result<ServiceHost, EngineError>) {
    let expected = BTreeMap::from([(1, true), (2, false), (3, false)]);
    for snapshot_on_stop in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let options = || ServiceHostOptions { snapshot_on_stop, ..options(directory.path()) };
        let host = start(options()).unwrap();
        let mut client = connect(directory.path());
        let key = client.open_session(5, 8).unwrap();
        let silent = call(&mut client, key, SILENT, b"").unwrap();
        assert!(silent.is_acknowledgement() && silent.payload.is_empty() && silent.sequence > 0);
        let empty = call(&mut client, key, EMPTY, b"").unwrap();
        assert!(!empty.is_acknowledgement() && empty.payload.is_empty());
        assert!(matches!(call(&mut client, key, REFUSED, b""), Err(ClientError::Refused { .. })));
        assert_eq!(repeated(&mut client, key), expected);
        host.stop().unwrap();
        let host = start(options()).unwrap();
        client.reconnect().unwrap();
        assert_eq!(repeated(&mut client, key), expected);
        host.stop().unwrap();
    }
}

#[test]
fn event_sourced_missing_reply() {
    distinguishes_missing_reply(|options| ServiceHost::start(EventSourced, options));
}

#[test]
fn state_replicated_missing_reply() {
    distinguishes_missing_reply(|options| ServiceHost::start_state(|_: &mut Store| StateReplicated, options));
}
