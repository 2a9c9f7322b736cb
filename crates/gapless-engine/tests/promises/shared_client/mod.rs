//! The client that tasks and threads share: its service, and the promises about it.

mod blocking_calls;
mod calls_of_tasks;
mod cancelled_calls;
mod durable_commands;
mod ends_of_calls;
mod notices;
mod outages;
mod outcomes;
mod queries_of_tasks;

use gapless_client::polled::ClientOptions;
use gapless_client::shared::CallOptions;
use gapless_client::{Call, Client};
use gapless_engine::{Context, Handlers, OnPanic, Service, ServiceHost, ServiceHostOptions};
use gapless_message::{Message, NoRefusal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Far beyond the time of any call.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A second effect of this name is refused.
pub const ONCE: u64 = 16;

/// Replied to with the number of effects so far.
#[derive(Clone, Debug, Serialize, Deserialize, Message)]
#[message(reply = u64, refusal = Twice)]
pub struct Add {
    pub name: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Message)]
pub struct Twice {
    pub name: u64,
    pub first_place: u64,
}

/// Effects after that of `place`, as pairs of place and name.
#[derive(Serialize, Deserialize, Message)]
#[message(reply = Page)]
pub struct List {
    place: u64,
}

#[derive(Serialize, Deserialize, Message)]
pub struct Page {
    effects: Vec<(u64, u64)>,
}

#[derive(Serialize, Deserialize, Message)]
#[message(request)]
pub struct Panic;

/// Takes effect as `name`, and is replied to with so many bytes.
#[derive(Serialize, Deserialize, Message)]
#[message(reply = Filled)]
pub struct Fill {
    pub name: u64,
    pub length: u32,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, Message)]
pub struct Filled(pub Vec<u8>);

/// Sends notices to the session of the call.
#[derive(Serialize, Deserialize, Message)]
#[message(request)]
pub struct Notify {
    pub count: u64,
}

/// As long as it is closed, the service stands still in its handler.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Default)]
struct GateState {
    is_closed: bool,
    has_arrived: bool,
}

/// Opens its gate when it is dropped, also by a failed test.
pub struct Closed(Gate);

impl Gate {
    pub fn close(&self) -> Closed {
        *self.0.0.lock().unwrap() = GateState { is_closed: true, has_arrived: false };
        Closed(self.clone())
    }

    fn pass(&self) {
        let mut state = self.0.0.lock().unwrap();
        while state.is_closed {
            state.has_arrived = true;
            self.0.1.notify_all();
            state = self.0.1.wait(state).unwrap();
        }
    }
}

impl Closed {
    pub fn open(self) {}

    /// Waits until the service stands still.
    pub fn await_arrival(&self) {
        let (state, changed) = &*self.0.0;
        let guard = changed.wait_timeout_while(state.lock().unwrap(), PATIENCE, |state| !state.has_arrived).unwrap().0;
        assert!(guard.has_arrived, "no command arrives");
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.0.0.0.lock().unwrap().is_closed = false;
        self.0.0.1.notify_all();
    }
}

#[derive(Default)]
pub struct Effects {
    places: BTreeMap<u64, u64>,
    gate: Gate,
}

impl Effects {
    pub fn behind(gate: &Gate) -> Self {
        Self { gate: gate.clone(), ..Self::default() }
    }
}

impl Service for Effects {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers
            .command(|effects: &mut Self, Add { name }: Add, _: &mut Context<'_>| {
                effects.gate.pass();
                let is_it = |(_, known): &(&u64, &u64)| **known == name;
                if name == ONCE
                    && let Some((first_place, _)) = effects.places.iter().find(is_it)
                {
                    return Err(Twice { name, first_place: *first_place });
                }
                let place = effects.places.len() as u64 + 1;
                effects.places.insert(place, name);
                Ok(place)
            })
            .command(|effects: &mut Self, List { place }: List, _: &mut Context<'_>| {
                let after = effects.places.range(place + 1..).take(1_000);
                Ok::<_, NoRefusal>(Page { effects: after.map(|(place, name)| (*place, *name)).collect() })
            })
            .command(|effects: &mut Self, Fill { name, length }: Fill, _: &mut Context<'_>| {
                effects.places.insert(effects.places.len() as u64 + 1, name);
                Ok::<_, NoRefusal>(Filled(vec![7; length as usize]))
            })
            .command(|_: &mut Self, _: Panic, _: &mut Context<'_>| -> Result<(), NoRefusal> { panic!("a bug") })
            .command(|_: &mut Self, Notify { count }: Notify, context: &mut Context<'_>| {
                let session = context.session();
                for _ in 0..count {
                    context
                        .notify_bytes(session, 7, gapless_schema::Encoding::Opaque, 0, |_| Ok::<_, String>(0))
                        .unwrap();
                }
                Ok::<_, NoRefusal>(())
            });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        self.places.iter().for_each(|(place, name)| {
            state.extend_from_slice(&place.to_le_bytes());
            state.extend_from_slice(&name.to_le_bytes());
        });
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        self.places = state.chunks_exact(16).map(|pair| (number(&pair[..8]), number(&pair[8..]))).collect();
        Ok(())
    }
}

pub fn in_memory(gate: &Gate) -> ServiceHost {
    let mut options = ServiceHostOptions::in_memory();
    options.policy.on_panic = OnPanic::DeadLetter;
    ServiceHost::start(Effects::behind(gate), options).unwrap()
}

pub fn in_directory(directory: &Path, gate: &Gate) -> ServiceHost {
    ServiceHost::start(Effects::behind(gate), ServiceHostOptions::in_directory(directory)).unwrap()
}

pub fn options(sessions: usize) -> CallOptions {
    CallOptions { sessions, within: PATIENCE, ..CallOptions::default() }
}

pub fn client_of(host: &ServiceHost, sessions: usize) -> Client {
    Client::over(host.connect(ClientOptions::default()).unwrap(), options(sessions)).unwrap()
}

pub fn add(client: &Client, name: u64) -> Call<Add> {
    client.call(Add { name })
}

/// Names of all effects, in their order.
pub async fn effects(client: &Client) -> Vec<u64> {
    let mut names = Vec::new();
    loop {
        let page = client.call(List { place: names.len() as u64 }).await.unwrap();
        if page.effects.is_empty() {
            return names;
        }
        for (place, name) in page.effects {
            names.push(name);
            assert_eq!(place, names.len() as u64, "places have no gap");
        }
    }
}

/// Each name once, in any order.
#[track_caller]
pub fn assert_once(mut names: Vec<u64>, expected: std::ops::Range<u64>) {
    names.sort_unstable();
    assert!(names.iter().copied().eq(expected.clone()), "{} effects of {expected:?}", names.len());
}
