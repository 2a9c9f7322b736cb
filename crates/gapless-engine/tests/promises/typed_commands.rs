//! Typed commands: a reply or a refusal of the service's own types; clients and services of other versions; types that
//! differ.

use gapless_client::polled::{ClientOptions, MessageType};
use gapless_client::{ClientError, PolledClient, SessionKey};
use gapless_engine::fold::{NoSink, Policy};
use gapless_engine::recovery::replay_copy;
use gapless_engine::state::{StateHandlers, StateService};
use gapless_engine::store::{Counter, Store};
use gapless_engine::{Context, Handlers, OnUnhandled, Service, ServiceHost, ServiceHostOptions};
use gapless_message::{Deterministic, Message, NoRefusal, Request, contract};
use gapless_schema::Encoding;
use gapless_wire::control::RefusalCode;
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Types of this year.
mod new {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
    #[message(version = 2, reply = Taken, refusal = NotTaken)]
    pub struct Take {
        pub seats: u32,
        #[serde(default)]
        #[message(since = 2)]
        pub name: String,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
    #[message(version = 2)]
    pub enum Taken {
        Seats {
            left: u32,
        },
        #[message(since = 2)]
        ForNamed {
            name: String,
            left: u32,
        },
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
    #[message(version = 2)]
    pub struct NotTaken {
        pub left: u32,
        #[serde(default)]
        #[message(since = 2)]
        pub advice: String,
    }
}

/// The same types a year ago.
mod old {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
    #[message(reply = Taken, refusal = NotTaken)]
    pub struct Take {
        pub seats: u32,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
    pub enum Taken {
        Seats { left: u32 },
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
    pub struct NotTaken {
        pub left: u32,
    }
}

/// A request of the same name and version with another layout.
mod other {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
    #[message(version = 2, reply = u32)]
    pub struct Take {
        pub seats: u64,
    }
}

/// Never refused.
#[derive(Serialize, Deserialize, Message)]
#[message(reply = u32)]
struct Left;

/// Answered by as many bytes, or refused by as many.
#[derive(Serialize, Deserialize, Message)]
#[message(reply = Vec<u8>, refusal = Vec<u8>)]
struct Echo {
    length: u32,
    is_refused: bool,
}

/// Not handled well.
#[derive(Serialize, Deserialize, Message)]
#[message(request)]
struct Fail(Failure);

#[derive(Serialize, Deserialize, Message)]
enum Failure {
    Panic,
    ChangeAndRefuse,
    ReplyTwice,
}

#[derive(Serialize, Deserialize, Message)]
#[message(refusal = String)]
struct FailTyped;

trait Generation: Send + 'static {
    type Take: Request<Reply: Deterministic, Refusal: Deterministic>;
    fn take(
        left: &mut u32,
        command: Self::Take,
    ) -> Result<<Self::Take as Request>::Reply, <Self::Take as Request>::Refusal>;
}

struct New;
struct Old;

impl Generation for New {
    type Take = new::Take;

    fn take(left: &mut u32, new::Take { seats, name }: new::Take) -> Result<new::Taken, new::NotTaken> {
        let refuse = || new::NotTaken { left: *left, advice: "come earlier".to_owned() };
        let after = left.checked_sub(seats).ok_or_else(refuse)?;
        *left = after;
        Ok(if name.is_empty() { new::Taken::Seats { left: after } } else { new::Taken::ForNamed { name, left: after } })
    }
}

impl Generation for Old {
    type Take = old::Take;

    fn take(left: &mut u32, old::Take { seats }: old::Take) -> Result<old::Taken, old::NotTaken> {
        *left = left.checked_sub(seats).ok_or(old::NotTaken { left: *left })?;
        Ok(old::Taken::Seats { left: *left })
    }
}

struct Hall<G> {
    left: u32,
    generation: PhantomData<G>,
}

impl<G> Default for Hall<G> {
    fn default() -> Self {
        Self { left: 100, generation: PhantomData }
    }
}

impl<G: Generation> Service for Hall<G> {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers
            .command(|hall: &mut Self, command: G::Take, _: &mut Context<'_>| G::take(&mut hall.left, command))
            .command(|hall: &mut Self, _: Left, _: &mut Context<'_>| Ok::<_, NoRefusal>(hall.left))
            .command(|_: &mut Self, Echo { length, is_refused }, context: &mut Context<'_>| {
                context.set_numbered_timer(u64::from(length), u64::MAX);
                let bytes = vec![7; length as usize];
                if is_refused { Err(bytes) } else { Ok(bytes) }
            })
            .command(|hall: &mut Self, Fail(failure), context: &mut Context<'_>| -> Result<(), NoRefusal> {
                match failure {
                    Failure::Panic => panic!("a handler with a bug"),
                    Failure::ChangeAndRefuse => hall.left += 1,
                    Failure::ReplyTwice => {
                        let raw = MessageType { schema: 7, encoding: Encoding::Opaque };
                        context.reply_with(raw, b"raw").unwrap();
                    }
                }
                Ok(())
            })
            .command(|hall: &mut Self, _: FailTyped, _: &mut Context<'_>| -> Result<(), String> {
                hall.left -= 1;
                Err("no".to_owned())
            });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.left.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.left = u32::from_le_bytes(state.try_into().map_err(|_| "4 bytes")?);
        Ok(())
    }
}

fn start<G: Generation>(options: ServiceHostOptions) -> (ServiceHost, PolledClient, SessionKey) {
    let host = ServiceHost::start(Hall::<G>::default(), options).unwrap();
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let session = client.open_session(1, 16).unwrap();
    (host, client, session)
}

fn ask<R: Request>(client: &mut PolledClient, session: SessionKey, request: &R) -> Result<R::Reply, R::Refusal> {
    client.call_request(session, request, PATIENCE).unwrap()
}

#[test]
fn reply_and_refusal_are_typed() {
    let (host, mut client, session) = start::<New>(ServiceHostOptions::in_memory());
    let take = |seats, name: &str| new::Take { seats, name: name.to_owned() };
    assert_eq!(ask(&mut client, session, &take(40, "")), Ok(new::Taken::Seats { left: 60 }));
    assert_eq!(
        ask(&mut client, session, &take(1, "Ada")),
        Ok(new::Taken::ForNamed { name: "Ada".to_owned(), left: 59 })
    );
    assert_eq!(
        ask(&mut client, session, &take(60, "Ada")),
        Err(new::NotTaken { left: 59, advice: "come earlier".to_owned() })
    );
    assert_eq!(ask(&mut client, session, &Left), Ok(59));
    host.stop().unwrap();
}

#[test]
fn polled_answers_are_typed() {
    let (host, mut client, session) = start::<New>(ServiceHostOptions::in_memory());
    assert_eq!(ask(&mut client, session, &Left), Ok(100));
    for seats in [30, 80, 3] {
        client.send_request(session, &new::Take { seats, name: String::new() }).unwrap();
    }
    let mut answers = Vec::new();
    gapless_testkit::wait::until("three answers", || {
        client
            .poll(usize::MAX, |incoming| {
                if let gapless_client::polled::Incoming::Reply { reply, .. } = incoming {
                    assert!(
                        matches!(reply.answer::<Left>(), Err(ClientError::Decode { .. })),
                        "it is no answer to Left"
                    );
                    answers.push(reply.answer::<new::Take>().unwrap());
                }
            })
            .unwrap();
        answers.len() == 3
    });
    let refusal = new::NotTaken { left: 70, advice: "come earlier".to_owned() };
    assert_eq!(answers, [Ok(new::Taken::Seats { left: 70 }), Err(refusal), Ok(new::Taken::Seats { left: 67 })]);
    host.stop().unwrap();
}

#[test]
fn old_client_meets_new_service() {
    let (host, mut client, session) = start::<New>(ServiceHostOptions::in_memory());
    assert_eq!(ask(&mut client, session, &old::Take { seats: 40 }), Ok(old::Taken::Seats { left: 60 }));
    assert_eq!(ask(&mut client, session, &old::Take { seats: 61 }), Err(old::NotTaken { left: 60 }));
    assert_eq!(
        ask(&mut client, session, &new::Take { seats: 1, name: String::new() }),
        Ok(new::Taken::Seats { left: 59 })
    );
    host.stop().unwrap();
}

/// The newer client's types are unknown to the service, and another layout is never read as its own.
#[test]
fn unknown_types_are_not_handled() {
    let (host, mut client, session) = start::<Old>(ServiceHostOptions::in_memory());
    let of_new = client.call_request(session, &new::Take { seats: 1, name: "Ada".to_owned() }, PATIENCE);
    let of_other = client.call_request(session, &other::Take { seats: 1 }, PATIENCE);
    for refused in [of_new.map(drop), of_other.map(drop)] {
        let error = refused.unwrap_err();
        let ClientError::Mismatch { name: "Take", difference } = &error else { panic!("{error}") };
        assert!(difference.starts_with("in the request, "), "{difference}");
    }
    assert_eq!(ask(&mut client, session, &Left), Ok(100));
    host.stop().unwrap();
}

#[test]
fn malformed_commands_are_refused() {
    let (host, mut client, session) = start::<Old>(ServiceHostOptions::in_memory());
    let of_take = MessageType { schema: contract::name_key("Take"), encoding: Encoding::Postcard };
    let known = contract::newest::<old::Take>().to_le_bytes();
    let of_unknown = MessageType { schema: contract::name_key("Nothing"), encoding: Encoding::Postcard };
    for (message, payload, expected) in [
        (of_take, &[][..], RefusalCode::Malformed),
        (of_take, &known[..3], RefusalCode::Malformed),
        (of_take, &known, RefusalCode::Malformed),
        (of_take, &[&known[..], &[0x80; 9]].concat(), RefusalCode::Malformed),
        (of_take, &[&known[..], &[1, 1]].concat(), RefusalCode::Malformed),
        (of_take, b"!!!!!", RefusalCode::Unhandled),
        (of_unknown, &known, RefusalCode::Unhandled),
    ] {
        match client.call(session, message, payload, PATIENCE) {
            Err(ClientError::Refused { code, .. }) => assert_eq!(code, expected, "{payload:?}"),
            other => panic!("{payload:?}: {other:?}"),
        }
    }
    assert_eq!(ask(&mut client, session, &Left), Ok(100));
    host.stop().unwrap();
}

#[test]
fn answers_have_a_longest_length() {
    // An answer begins with its kind and its contract.
    const MAX: u32 = gapless_engine::OUTPUT_LENGTH_MAX as u32 - 5;
    let (host, mut client, session) = start::<Old>(ServiceHostOptions::in_memory());
    let mut echo = |length, is_refused| client.call_request(session, &Echo { length, is_refused }, PATIENCE);
    assert_eq!(echo(MAX, false).unwrap().unwrap().len(), MAX as usize);
    assert_eq!(echo(MAX, true).unwrap().unwrap_err().len(), MAX as usize);
    let lost = echo(MAX + 1, false).unwrap_err();
    assert!(
        matches!(lost, ClientError::ReplyTooLong { length_bytes, .. } if length_bytes == u64::from(MAX) + 6),
        "{lost}"
    );
    let refused = echo(MAX + 1, true).unwrap_err();
    assert!(matches!(&refused, ClientError::Refused { code: RefusalCode::Rejected, .. }), "{refused}");
    host.stop().unwrap();
}

#[test]
fn lost_reply_says_done() {
    struct Named;
    impl Generation for Named {
        type Take = new::Take;
        fn take(left: &mut u32, command: new::Take) -> Result<new::Taken, new::NotTaken> {
            *left -= command.seats;
            Ok(new::Taken::ForNamed { name: "Ada".to_owned(), left: *left })
        }
    }
    let (host, mut client, session) = start::<Named>(ServiceHostOptions::in_memory());
    let lost = client.call_request(session, &old::Take { seats: 2 }, PATIENCE).unwrap_err();
    let ClientError::ReplyLost { sequence, reply: "Taken" } = &lost else { panic!("{lost}") };
    assert!(*sequence > 0, "{lost}");
    assert_eq!(ask(&mut client, session, &Left), Ok(98), "it took effect");
    host.stop().unwrap();
}

#[test]
fn handler_faults_end_in_place() {
    let (host, mut client, session) = start::<Old>(ServiceHostOptions::in_memory());
    ask(&mut client, session, &Fail(Failure::ChangeAndRefuse)).unwrap();
    assert_eq!(ask(&mut client, session, &Left), Ok(101));
    let failed = client.call_request(session, &FailTyped, Duration::from_millis(500)).unwrap_err();
    assert!(matches!(failed, ClientError::OutcomeUnknown { .. }), "{failed}");
    let error = host.stop().unwrap_err();
    assert!(error.to_string().contains("the handler of FailTyped changed the state and then refused"), "{error}");

    let (host, mut client, session) = start::<Old>(ServiceHostOptions::in_memory());
    let panicked = client.call_request(session, &Fail(Failure::Panic), Duration::from_millis(500)).unwrap_err();
    assert!(matches!(panicked, ClientError::OutcomeUnknown { .. }), "{panicked}");
    let error = host.stop().unwrap_err();
    assert!(error.to_string().contains("the handler of Fail panicked"), "{error}");

    let (host, mut client, session) = start::<Old>(ServiceHostOptions::in_memory());
    client.call_request(session, &Fail(Failure::ReplyTwice), Duration::from_millis(500)).unwrap_err();
    let error = host.stop().unwrap_err();
    assert!(error.to_string().contains("sent a reply by its context and returned one"), "{error}");
}

/// The kept reply is of the version that asked.
#[test]
fn upgraded_client_reads_old_reply() {
    let (host, mut client, session) = start::<New>(ServiceHostOptions::in_memory());
    assert_eq!(ask(&mut client, session, &old::Take { seats: 40 }), Ok(old::Taken::Seats { left: 60 }));
    let outcome = client.outcome(session, 1, PATIENCE).unwrap();
    let gapless_client::polled::Outcome::Done(reply) = outcome else { panic!("{outcome:?}") };
    assert_eq!(reply.answer::<new::Take>().unwrap(), Ok(new::Taken::Seats { left: 60 }));
    assert_eq!(reply.answer::<old::Take>().unwrap(), Ok(old::Taken::Seats { left: 60 }));
    assert!(matches!(reply.answer::<other::Take>(), Err(ClientError::Decode { .. })));
    host.stop().unwrap();
}

#[test]
fn typed_commands_survive_restart() {
    let directory = tempfile::tempdir().unwrap();
    let options = || ServiceHostOptions::in_directory(directory.path());
    let (host, mut client, session) = start::<Old>(options());
    assert_eq!(ask(&mut client, session, &old::Take { seats: 40 }), Ok(old::Taken::Seats { left: 60 }));
    assert_eq!(ask(&mut client, session, &old::Take { seats: 61 }), Err(old::NotTaken { left: 60 }));
    host.stop().unwrap();
    for snapshot in std::fs::read_dir(directory.path().join("snapshots")).unwrap() {
        std::fs::remove_file(snapshot.unwrap().path()).unwrap();
    }
    // The newer program reads the commands of the older one.
    let (fold, _) =
        replay_copy(directory.path(), Hall::<New>::default(), Policy::default(), u64::MAX, &mut NoSink).unwrap();
    assert_eq!(fold.service::<Hall<New>>().left, 60);
    let (host, mut client, session) = start::<New>(options());
    assert_eq!(ask(&mut client, session, &Left), Ok(60));
    host.stop().unwrap();
}

struct StoredHall {
    left: Counter,
}

impl StoredHall {
    fn new(store: &mut Store) -> Self {
        Self { left: store.counter(1, "left") }
    }
}

impl StateService for StoredHall {
    fn handlers(handlers: &mut StateHandlers<Self>) {
        handlers
            .command(|hall: &Self, store, command: new::Take, context| {
                // Undone by the refusal, like the timer.
                store.add(hall.left, -i64::from(command.seats)).unwrap();
                context.set_numbered_timer(1, u64::MAX);
                match u32::try_from(100 + store.value(hall.left)) {
                    Ok(left) => Ok(new::Taken::ForNamed { name: command.name, left }),
                    Err(_) => Err(new::NotTaken { left: 7, advice: "come earlier".to_owned() }),
                }
            })
            .command(|hall: &Self, store, _: Left, _| Ok(100 - store.value(hall.left).unsigned_abs() as u32));
    }
}

#[test]
fn refusal_undoes_stored_changes() {
    let directory = tempfile::tempdir().unwrap();
    let start = || {
        let options = ServiceHostOptions::in_directory(directory.path());
        let host = ServiceHost::start_state(StoredHall::new, options).unwrap();
        let mut client = host.connect(ClientOptions::default()).unwrap();
        let session = client.open_session(1, 16).unwrap();
        (host, client, session)
    };
    let (host, mut client, session) = start();
    let take = |seats| new::Take { seats, name: "Ada".to_owned() };
    let taken = |left| new::Taken::ForNamed { name: "Ada".to_owned(), left };
    assert_eq!(ask(&mut client, session, &take(40)), Ok(taken(60)));
    assert_eq!(ask(&mut client, session, &take(61)), Err(new::NotTaken { left: 7, advice: "come earlier".to_owned() }));
    assert_eq!(ask(&mut client, session, &old::Take { seats: 61 }), Err(old::NotTaken { left: 7 }));
    assert_eq!(ask(&mut client, session, &Left), Ok(60), "the refused commands changed nothing");
    let unknown = client.call_request(session, &other::Take { seats: 1 }, PATIENCE).unwrap_err();
    assert!(matches!(unknown, ClientError::Mismatch { name: "Take", .. }), "{unknown}");
    let lost = client.call_request(session, &old::Take { seats: 1 }, PATIENCE).unwrap_err();
    assert!(matches!(lost, ClientError::ReplyLost { .. }), "{lost}");
    host.stop().unwrap();
    for snapshot in std::fs::read_dir(directory.path().join("snapshots")).unwrap() {
        std::fs::remove_file(snapshot.unwrap().path()).unwrap();
    }
    let (host, mut client, session) = start();
    assert_eq!(ask(&mut client, session, &Left), Ok(59));
    host.stop().unwrap();
}

#[test]
fn unhandled_command_may_stop_service() {
    let mut options = ServiceHostOptions::in_memory();
    options.policy.on_unhandled = OnUnhandled::Stop;
    let (host, mut client, session) = start::<Old>(options);
    let stopped = client.call_request(session, &other::Take { seats: 1 }, Duration::from_millis(500));
    assert!(stopped.is_err());
    let error = host.stop().unwrap_err();
    assert!(error.to_string().contains("no handler takes Take at sequence"), "{error}");
}

#[test]
#[should_panic(expected = "messages Take and Take have the same name or key")]
fn one_name_has_one_handler() {
    let mut handlers = Handlers::<Hall<Old>>::default();
    handlers
        .command(|_: &mut Hall<Old>, _: old::Take, _: &mut Context<'_>| Ok(old::Taken::Seats { left: 0 }))
        .command(|_: &mut Hall<Old>, _: new::Take, _: &mut Context<'_>| Ok(new::Taken::Seats { left: 0 }));
}
