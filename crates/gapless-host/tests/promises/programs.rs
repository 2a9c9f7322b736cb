//! Programs of all kinds, which count their commands.

use gapless_client::{ClientOptions, PolledClient, SessionKey};
use gapless_cqrs::{Aggregate, CommandModel, Creation, Decision};
use gapless_engine::store::{Counter, Store};
use gapless_engine::{Context, Handlers, Reject, Service, StateHandlers, StateService};
use gapless_host::Running;
use gapless_message::{Message, State};
use gapless_transport::token::random_token;
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub(crate) const PATIENCE: Duration = gapless_testkit::wait::PATIENCE;

/// Replies with the number of commands so far.
#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64)]
pub(crate) struct Add {
    pub amount: u64,
    pub filler: Vec<u8>,
}

pub(crate) const fn add(amount: u64) -> Add {
    Add { amount, filler: Vec::new() }
}

#[derive(Default, Serialize, Deserialize, State)]
pub(crate) struct Sum {
    count: u64,
    sum: u64,
}

#[gapless_engine::service]
impl Sum {
    #[command]
    fn add(&mut self, command: Add) -> u64 {
        self.count += 1;
        self.sum = self.sum.wrapping_mul(31).wrapping_add(command.amount);
        self.count
    }
}

/// Takes the command of [`Sum`] under another name of the state.
#[derive(Default, Serialize, Deserialize, State)]
pub(crate) struct Product {
    count: u64,
}

#[gapless_engine::service]
impl Product {
    #[command]
    fn add(&mut self, command: Add) -> u64 {
        self.count += command.amount;
        self.count
    }
}

/// Counts a command, and each hour after it.
#[derive(Default)]
pub(crate) struct Hours(u64);

pub(crate) const HOUR: Duration = Duration::from_secs(3600);

impl Service for Hours {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.command::<Add>(|hours, _, context| {
            context.set_numbered_timer(1, context.time_ns() + HOUR.as_nanos() as u64);
            hours.0 += 1;
            Ok(hours.0)
        });
    }

    fn versions() -> std::ops::RangeInclusive<u32> {
        1..=2
    }

    fn on_timer(&mut self, timer: u64, context: &mut Context<'_>) -> Result<(), Reject> {
        self.0 += 1;
        context.set_numbered_timer(timer, context.time_ns() + HOUR.as_nanos() as u64);
        Ok(())
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend(self.0.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.0 = u64::from_le_bytes(state.try_into().map_err(|_| "8 bytes")?);
        Ok(())
    }
}

/// Its handlers run once.
pub(crate) struct Calls {
    count: Counter,
}

impl Calls {
    pub fn new(store: &mut Store) -> Self {
        Self { count: store.counter(1, "count") }
    }
}

impl StateService for Calls {
    fn handlers(handlers: &mut StateHandlers<Self>) {
        handlers.command::<Add>(|calls, store, _, _| {
            store.add(calls.count, 1).expect("few calls");
            Ok(store.value(calls.count) as u64)
        });
    }
}

#[derive(Clone, Serialize, Deserialize, Message)]
pub(crate) struct Deposit(pub u64);

#[derive(Serialize, Deserialize, Message)]
pub(crate) struct Deposited(u64);

#[derive(Clone)]
pub(crate) struct Account;

/// A refusal that never occurs.
#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
pub(crate) struct Never;

impl Aggregate for Account {
    const NAME: &'static str = "account";
    type Id = u64;
    type Command = Deposit;
    type Event = Deposited;
    type Refusal = Never;

    fn new(_: &u64) -> Self {
        Self
    }

    fn creation(_: &Deposit) -> Creation {
        Creation::CreatesIfMissing
    }

    fn decide(&self, command: Deposit, decision: &mut Decision<'_, Deposited>) -> Result<(), Never> {
        decision.emit(Deposited(command.0));
        Ok(())
    }

    fn apply(&mut self, _: &Deposited) {}
}

pub(crate) fn model() -> CommandModel {
    CommandModel::new().aggregate::<Account>()
}

pub(crate) struct Caller {
    client: PolledClient,
    session: SessionKey,
}

impl Caller {
    pub fn new<K>(host: &Running<K>) -> Self {
        let options = ClientOptions { timeout: PATIENCE, ..ClientOptions::default() };
        let mut client = host.polled_client(options).unwrap();
        let session = client.open_session(random_token(), 16).unwrap();
        Self { client, session }
    }

    #[track_caller]
    pub fn add(&mut self, command: &Add) -> u64 {
        let answer: Result<u64, gapless_message::NoRefusal> =
            self.client.call_request(self.session, command, PATIENCE).unwrap();
        answer.unwrap()
    }
}
