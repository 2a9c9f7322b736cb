//! Members and replays with different programs: a timer with a message runs its handler, or stops a program that lacks
//! it. Dead letters of a replay are compared with the recorded ones.

use crate::replicas::{Cluster, PATIENCE, wait};
use gapless_client::polled::ClientOptions;
use gapless_client::{Client, PolledClient, SessionKey};
use gapless_engine::{
    Context, EngineError, Handlers, OnOtherOutputs, OnPanic, Service, ServiceHost, ServiceHostOptions,
};
use gapless_message::{Message, NoRefusal};
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;
use std::path::Path;
use std::time::Duration;

/// Replied to by the number of holds that have ended.
#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64)]
struct Hold {
    seat: u32,
    after_ms: u64,
}

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64)]
struct Count;

#[derive(Serialize, Deserialize, Message)]
#[message(version = 2)]
struct HoldEnds {
    seat: u32,
    #[serde(default)]
    #[message(since = 2)]
    is_loud: bool,
}

/// The timer of a program that no longer reads the first version.
mod shortened {
    use super::*;

    #[derive(Serialize, Deserialize, Message)]
    #[message(version = 2)]
    pub struct HoldEnds {
        pub seat: u32,
        pub is_loud: bool,
    }
}

/// The timer under another name.
#[derive(Serialize, Deserialize, Message)]
struct ReservationEnds {
    seat: u32,
}

struct Whole;
struct Renamed;
struct Shortened;
struct Panicking;

trait Program: Send + Sized + 'static {
    fn timer(handlers: &mut Handlers<Seats<Self>>);

    fn set(seat: u32, deadline_ns: u64, context: &mut Context<'_>) {
        context.set_timer(&HoldEnds { seat, is_loud: false }, deadline_ns);
    }
}

impl Program for Whole {
    fn timer(handlers: &mut Handlers<Seats<Self>>) {
        handlers.timer(|seats: &mut Seats<Self>, _: HoldEnds, _: &mut Context<'_>| seats.ended += 1);
    }
}

impl Program for Renamed {
    fn timer(handlers: &mut Handlers<Seats<Self>>) {
        handlers.timer(|seats: &mut Seats<Self>, _: ReservationEnds, _: &mut Context<'_>| seats.ended += 1);
    }

    fn set(seat: u32, deadline_ns: u64, context: &mut Context<'_>) {
        context.set_timer(&ReservationEnds { seat }, deadline_ns);
    }
}

impl Program for Shortened {
    fn timer(handlers: &mut Handlers<Seats<Self>>) {
        handlers.timer(|seats: &mut Seats<Self>, _: shortened::HoldEnds, _: &mut Context<'_>| seats.ended += 1);
    }

    fn set(seat: u32, deadline_ns: u64, context: &mut Context<'_>) {
        context.set_timer(&shortened::HoldEnds { seat, is_loud: false }, deadline_ns);
    }
}

impl Program for Panicking {
    fn timer(handlers: &mut Handlers<Seats<Self>>) {
        handlers.timer(|_: &mut Seats<Self>, _: HoldEnds, _: &mut Context<'_>| panic!("a fault of the handler"));
    }
}

struct Seats<P> {
    ended: u64,
    program: PhantomData<fn() -> P>,
}

impl<P> Default for Seats<P> {
    fn default() -> Self {
        Self { ended: 0, program: PhantomData }
    }
}

impl<P: Program> Service for Seats<P> {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers
            .command(|seats: &mut Self, Hold { seat, after_ms }, context: &mut Context<'_>| {
                P::set(seat, context.time_ns() + after_ms * 1_000_000, context);
                Ok::<_, NoRefusal>(seats.ended)
            })
            .command(|seats: &mut Self, _: Count, _: &mut Context<'_>| Ok::<_, NoRefusal>(seats.ended));
        P::timer(handlers);
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.ended.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.ended = u64::from_le_bytes(state.try_into().map_err(|_| "8 bytes")?);
        Ok(())
    }
}

fn options(directory: &Path) -> ServiceHostOptions {
    let mut options = ServiceHostOptions::in_directory(directory).with_manual_time();
    options.snapshot_on_stop = false;
    options.policy.on_other_outputs = OnOtherOutputs::Stop;
    options
}

fn start<P: Program>(options: ServiceHostOptions) -> Result<ServiceHost, EngineError> {
    ServiceHost::start(Seats::<P>::default(), options)
}

fn connect(host: &ServiceHost) -> (PolledClient, SessionKey) {
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let session = client.open_session(1, 16).unwrap();
    (client, session)
}

fn hold(host: &ServiceHost) {
    let (mut client, session) = connect(host);
    assert_eq!(client.call_request(session, &Hold { seat: 7, after_ms: 1_000 }, PATIENCE).unwrap(), Ok(0));
}

/// The first program sets a timer, and a snapshot holds it. It fires before the end of the first program, or not.
fn lose_timer<P: Program>(fires_before: bool) {
    let directory = tempfile::tempdir().unwrap();
    let host = start::<Whole>(options(directory.path())).unwrap();
    hold(&host);
    host.snapshot().unwrap();
    if fires_before {
        host.advance(Duration::from_secs(2)).unwrap();
    }
    host.stop().unwrap();

    let error = start::<P>(options(directory.path())).map(drop).unwrap_err();
    assert!(matches!(&error, EngineError::MissingMessage { message, .. } if message.starts_with("timer ")), "{error}");

    let host = start::<Whole>(options(directory.path())).unwrap();
    host.advance(Duration::from_secs(2)).unwrap();
    let (mut client, session) = connect(&host);
    assert_eq!(client.call_request(session, &Count, PATIENCE).unwrap(), Ok(1));
    host.stop().unwrap();
}

#[test]
fn lost_timer_stops_replay() {
    lose_timer::<Renamed>(true);
    lose_timer::<Shortened>(true);
}

#[test]
fn lost_timer_stops_service() {
    lose_timer::<Renamed>(false);
    lose_timer::<Shortened>(false);
}

#[test]
fn old_timer_stops_new_member() {
    let mut cluster = Cluster::new(3, "[service]\nhash_interval_frames = 2\n");
    (1..=3).for_each(|member| cluster.start(member, Seats::<Whole>::default()).unwrap());
    let address: Vec<_> = cluster.sockets().iter().map(|socket| socket.display().to_string()).collect();
    let client = Client::connect(address.join(",")).within(PATIENCE).blocking().unwrap();
    assert_eq!(client.call(Hold { seat: 7, after_ms: 3_000 }).unwrap(), 0);
    let other = cluster.leader() % 3 + 1;
    cluster.members[other - 1].take().unwrap().stop().unwrap();
    let error = match cluster.start(other, Seats::<Renamed>::default()) {
        Err(error) => error.to_string(),
        Ok(()) => wait("its end", || {
            cluster.end_failed();
            cluster.failures.remove(&other)
        }),
    };
    assert!(error.contains("lacks a message") && error.contains("timer typed message"), "{error}");
    cluster.start(other, Seats::<Whole>::default()).unwrap();
    wait("the timer", || (client.call(Count).unwrap() == 1).then_some(()));
    cluster.end_failed();
    assert!(cluster.failures.is_empty(), "{:?}", cluster.failures);
    // The client stays, or the close of its session would be one more frame.
    cluster.ends_equal(&[1, 2, 3]);
    drop(client);
}

#[test]
fn dead_letters_are_compared() {
    let directory = tempfile::tempdir().unwrap();
    let lenient = || {
        let mut options = options(directory.path());
        options.policy.on_panic = OnPanic::DeadLetter;
        options
    };
    let host = start::<Panicking>(lenient()).unwrap();
    hold(&host);
    host.advance(Duration::from_secs(2)).unwrap();
    host.stop().unwrap();
    start::<Panicking>(lenient()).unwrap().stop().unwrap();
    let error = start::<Whole>(lenient()).map(drop).unwrap_err();
    let EngineError::OtherOutputs { ref place, .. } = error else { panic!("{error}") };
    assert!(place.contains("(timer "), "{error}");
}
