//! A restart, a replay of a copy and a replicated state draw the original numbers.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_client::ClientOptions;
use gapless_client::polled::MessageType;
use gapless_engine::fold::NoSink;
use gapless_engine::recovery::replay_copy;
use gapless_engine::store::{Counter, Store};
use gapless_engine::{
    Context, Handlers, Policy, Reject, Service, ServiceHost, ServiceHostOptions, StateHandlers, StateService, random,
};
use gapless_transport::token::random_token;
use gapless_wire::Encoding;
use std::collections::BTreeSet;
use std::time::Duration;

const DRAW: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const PATIENCE: Duration = Duration::from_secs(30);
/// More than one block of the algorithm.
const DRAWS: u64 = 6;
const SIDES: u64 = 6;

fn draw(context: &mut Context<'_>) -> Vec<u64> {
    let mut drawn: Vec<u64> = (0..DRAWS).map(|_| context.random()).collect();
    drawn.push(context.random_below(SIDES));
    drawn
}

fn due(sequence: u64, time_ns: u64) -> Vec<u64> {
    let mut due: Vec<u64> = (0..DRAWS).map(|drawn| random::number(sequence, time_ns, drawn)).collect();
    due.push(random::below(random::number(sequence, time_ns, DRAWS), SIDES));
    due
}

fn bytes(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

#[derive(Default)]
struct DrawnNumbers(Vec<u64>);

impl Service for DrawnNumbers {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(DRAW.schema, |all: &mut Self, _: &[u8], context: &mut Context<'_>| -> Result<(), Reject> {
            let drawn = draw(context);
            context.reply_with(DRAW, &bytes(&drawn))?;
            all.0.extend(drawn);
            Ok(())
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend(bytes(&self.0));
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.0 = state.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        Ok(())
    }
}

fn call(host: &ServiceHost, calls: usize) -> Vec<u64> {
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let session = client.open_session(random_token(), 16).unwrap();
    let mut all = Vec::new();
    for _ in 0..calls {
        let reply = client.call(session, DRAW, b"", PATIENCE).unwrap();
        let due = due(reply.sequence, reply.timestamp_ns);
        assert_eq!(reply.payload, bytes(&due), "at sequence {}", reply.sequence);
        all.extend(due);
    }
    all
}

#[test]
fn replay_draws_same_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let options =
        || ServiceHostOptions { snapshot_on_stop: false, ..ServiceHostOptions::in_directory(directory.path()) };
    let host = ServiceHost::start(DrawnNumbers::default(), options()).unwrap();
    let mut all = call(&host, 4);
    host.stop().unwrap();
    let host = ServiceHost::start(DrawnNumbers::default(), options()).unwrap();
    all.extend(call(&host, 3));
    host.stop().unwrap();
    let (fold, _) =
        replay_copy(directory.path(), DrawnNumbers::default(), Policy::default(), u64::MAX, &mut NoSink).unwrap();
    assert_eq!(fold.state(), bytes(&all));
    let different = all.iter().collect::<BTreeSet<_>>();
    assert!(different.len() as u64 > 7 * DRAWS, "{different:?}");
}

struct DrawingState {
    calls: Counter,
}

impl StateService for DrawingState {
    fn handlers(handlers: &mut StateHandlers<Self>) {
        handlers.on_bytes(DRAW.schema, |leading: &Self, store, _, context| {
            store.add(leading.calls, 1)?;
            let drawn = draw(context);
            context.reply_with(DRAW, &bytes(&drawn))
        });
    }
}

#[test]
fn replicated_state_draws_by_rule() {
    let make = |store: &mut Store| DrawingState { calls: store.counter(1, "calls") };
    let host = ServiceHost::start_state(make, ServiceHostOptions::in_memory()).unwrap();
    call(&host, 4);
    host.stop().unwrap();
}
