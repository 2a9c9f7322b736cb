//! A request that the service does not handle ends with the names, the versions and the first difference of the types.
//! The client asks only then.

use crate::replicas::Cluster;
use gapless_agent::block_on::block_on;
use gapless_client::polled::ClientOptions;
use gapless_client::shared::CallOptions;
use gapless_client::{CallError, Client, ClientError, PolledClient, QueryError, blocking};
use gapless_engine::state::{StateHandlers, StateService};
use gapless_engine::store::{Counter, Store};
use gapless_engine::{Context, Handlers, Service, ServiceHost, ServiceHostOptions};
use gapless_message::request_description::{Describe, RequestKind};
use gapless_message::{Message, NoRefusal, Request, contract};
use gapless_testkit::wait::PATIENCE;
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(version = 2, reply = u64, refusal = Full)]
struct Book {
    seat: u32,
    #[serde(default)]
    #[message(since = 2)]
    name: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
pub struct Full {
    seats: u32,
}

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64)]
struct Booked;

/// Types of other programs, under the same names.
mod grown {
    use super::*;

    /// Without `since`.
    #[derive(Debug, Serialize, Deserialize, Message)]
    #[message(version = 2, reply = u64, refusal = super::Full)]
    pub struct Book {
        pub seat: u32,
        pub name: String,
        pub row: u8,
    }
}

mod retyped {
    use super::*;

    #[derive(Debug, Serialize, Deserialize, Message)]
    #[message(reply = u64, refusal = super::Full)]
    pub struct Book {
        pub seat: u64,
    }
}

mod newer {
    use super::*;

    #[derive(Debug, Serialize, Deserialize, Message)]
    #[message(version = 3, reply = u64, refusal = super::Full)]
    pub struct Book {
        pub seat: u32,
        #[serde(default)]
        #[message(since = 2)]
        pub name: String,
        #[serde(default)]
        #[message(since = 3)]
        pub child: bool,
    }
}

mod refusing {
    use super::*;

    #[derive(Debug, Serialize, Deserialize, Message)]
    #[message(version = 2, reply = u64, refusal = Full)]
    pub struct Book {
        pub seat: u32,
        #[serde(default)]
        #[message(since = 2)]
        pub name: String,
    }

    #[derive(Debug, Serialize, Deserialize, Message)]
    pub struct Full {
        pub seats: u64,
    }

    #[derive(Debug, Serialize, Deserialize, Message)]
    #[message(reply = String)]
    pub struct Booked;
}

#[derive(Debug, Serialize, Deserialize, Message)]
#[message(reply = u64)]
struct Unknown;

/// In the place of the client's own question.
mod forged {
    use super::*;

    #[derive(Debug, Serialize, Deserialize, Message)]
    #[message(name = "gapless.Describe", reply = String)]
    pub struct Describe(pub u128);
}

#[derive(Default)]
struct Hall(u64);

impl Service for Hall {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers
            .command(|hall: &mut Self, _: Book, _: &mut Context<'_>| -> Result<u64, Full> {
                hall.0 += 1;
                Ok(hall.0)
            })
            .query(|hall: &Self, _: Booked, _| Ok::<_, NoRefusal>(hall.0));
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.0.to_le_bytes());
    }

    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Err("it is in memory".to_owned())
    }
}

fn in_memory() -> ServiceHost {
    ServiceHost::start(Hall::default(), ServiceHostOptions::in_memory()).unwrap()
}

fn client_of(host: &ServiceHost) -> Client {
    Client::over(host.connect(ClientOptions::default()).unwrap(), CallOptions::default()).unwrap()
}

/// The text of the error of both clients.
fn difference_of<R: Request>(host: &ServiceHost, request: impl Fn() -> R) -> String
where
    R::Reply: std::fmt::Debug,
    R::Refusal: std::fmt::Debug,
{
    let client = client_of(host);
    let found = |error: CallError<R::Refusal>| match error {
        CallError::Mismatch { name, difference } => {
            assert_eq!(name, R::TYPE_NAME);
            difference
        }
        other => panic!("{other:?}"),
    };
    let failed = block_on(client.call(request())).unwrap_err();
    assert_eq!(failed.took_effect(), Some(false));
    let difference = found(failed);
    assert_eq!(found(blocking::Client::from(client).call(request()).unwrap_err()), difference);
    let mut polled = host.connect(ClientOptions::default()).unwrap();
    let session = polled.open_session(1, 4).unwrap();
    match polled.call_request(session, &request(), PATIENCE).unwrap_err() {
        ClientError::Mismatch { name, difference: polled } => assert_eq!((name, &polled), (R::TYPE_NAME, &difference)),
        other => panic!("{other}"),
    }
    assert_eq!(polled.find_mismatch::<R>(RequestKind::Command, PATIENCE).unwrap(), Some(difference.clone()));
    assert_eq!(polled.find_mismatch::<Book>(RequestKind::Command, PATIENCE).unwrap(), None);
    difference
}

#[test]
fn first_difference_is_named() {
    let host = in_memory();
    for (found, expected) in [
        (
            difference_of(&host, || grown::Book { seat: 1, name: String::new(), row: 2 }),
            "in the request, Book has `row: u8` at the client alone (the client has Book v2, the service Book v2, v1)",
        ),
        (
            difference_of(&host, || retyped::Book { seat: 1 }),
            "in the request, Book.seat is u64 at the client and u32 at the service (the client has Book v1, the service \
             Book v2, v1)",
        ),
        (
            difference_of(&host, || newer::Book { seat: 1, name: String::new(), child: true }),
            "in the request, Book has `child: bool` at the client alone (the client has Book v3, the service Book v2, v1)",
        ),
        (
            difference_of(&host, || refusing::Book { seat: 1, name: String::new() }),
            "in the refusal, Full.seats is u64 at the client and u32 at the service (the client has Full v1, the service \
             Full v1)",
        ),
        (difference_of(&host, || Unknown), "the service has no command of this name"),
    ] {
        assert_eq!(found, expected);
    }
    let client = client_of(&host);
    let book = Book { seat: 1, name: String::new() };
    assert_eq!(block_on(client.call(book)), Ok(1), "nothing took effect before");
    host.stop().unwrap();
}

#[test]
fn query_names_the_difference() {
    let host = in_memory();
    let client = client_of(&host);
    let blocking = blocking::Client::from(client.clone());
    let mut polled = host.connect(ClientOptions::default()).unwrap();
    let expected = "in the reply, the type is String at the client and u64 at the service (the client has String, the \
                    service u64)";
    for found in [
        block_on(client.query(refusing::Booked)).unwrap_err(),
        blocking.query(refusing::Booked).unwrap_err(),
        polled.query_request(&refusing::Booked, PATIENCE).unwrap_err(),
    ] {
        let QueryError::Mismatch { name: "Booked", difference } = found else { panic!("{found}") };
        assert_eq!(difference, expected);
    }
    let unknown = block_on(client.query(Unknown)).unwrap_err();
    assert_eq!(unknown.to_string(), "the service does not handle Unknown: the service has no query of this name");
    assert_eq!(block_on(client.query(Booked)).unwrap(), 0);
    host.stop().unwrap();
}

/// It is told apart from the service's own question, and asks no second time.
#[test]
fn forged_question_is_not_handled() {
    let host = in_memory();
    let client = client_of(&host);
    let forged = block_on(client.query(forged::Describe(u128::MAX))).unwrap_err();
    assert!(
        matches!(&forged, QueryError::Mismatch { difference, .. } if difference == "the service has no query of this name"),
        "{forged}"
    );
    assert_eq!(block_on(client.query(Booked)).unwrap(), 0);
    host.stop().unwrap();
}

#[test]
fn service_without_commands_says_so() {
    struct Nothing;
    impl Service for Nothing {
        fn handlers(_: &mut Handlers<Self>) {}
        fn snapshot(&self, _: &mut Vec<u8>) {}
        fn restore(&mut self, _: &[u8]) -> Result<(), String> {
            Ok(())
        }
    }
    let host = ServiceHost::start(Nothing, ServiceHostOptions::in_memory()).unwrap();
    let client = blocking::Client::from(client_of(&host));
    let failed = client.call(Book { seat: 1, name: String::new() }).unwrap_err();
    let text = failed.to_string();
    assert_eq!(text, "the service does not handle Book, which had no effect: the service has no command of this name");
    host.stop().unwrap();
}

#[test]
fn replicated_state_names_the_difference() {
    struct Stored(Counter);
    impl StateService for Stored {
        fn handlers(handlers: &mut StateHandlers<Self>) {
            handlers.command(|hall: &Self, store, _: Book, _| -> Result<u64, Full> {
                store.add(hall.0, 1).unwrap();
                Ok(store.value(hall.0).unsigned_abs())
            });
        }
    }
    let make = |store: &mut Store| Stored(store.counter(1, "booked"));
    let host = ServiceHost::start_state(make, ServiceHostOptions::in_memory()).unwrap();
    let client = blocking::Client::from(client_of(&host));
    let failed = client.call(retyped::Book { seat: 1 }).unwrap_err();
    let CallError::Mismatch { name: "Book", difference } = &failed else { panic!("{failed}") };
    assert!(difference.starts_with("in the request, Book.seat is u64 at the client"), "{difference}");
    assert_eq!(client.call(Book { seat: 1, name: String::new() }), Ok(1));
    host.stop().unwrap();
}

#[test]
fn followers_describe_their_types() {
    let mut cluster = Cluster::new(3, "");
    (1..=3).for_each(|member| cluster.start(member, Hall::default()).unwrap());
    cluster.leader();
    for socket in cluster.sockets() {
        let options = ClientOptions { timeout: PATIENCE, ..ClientOptions::default() };
        let mut client = PolledClient::connect(&socket, options).unwrap();
        let describe = Describe { kind: RequestKind::Command, key: contract::name_key("Book") };
        let described = client.query_request(&describe, PATIENCE).unwrap().unwrap().request.unwrap();
        assert_eq!((described.name.as_str(), described.request.len()), ("Book", 2));
        let other = client.query_request(&refusing::Booked, PATIENCE).unwrap_err();
        assert!(matches!(&other, QueryError::Mismatch { .. }), "{other}");
    }
}
