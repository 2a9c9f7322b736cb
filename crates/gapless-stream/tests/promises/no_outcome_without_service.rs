//! A client of a service, on a stream without one, is not told that its commands are done; its queries are refused.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_client::polled::{ClientOptions, MessageType, Outcome};
use gapless_client::{ClientError, QueryError};
use gapless_message::Message;
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::wait::until;
use gapless_wire::descriptor::Encoding;
use serde::{Deserialize, Serialize};
use std::time::Duration;

const WORD: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

#[derive(Serialize, Deserialize, Message)]
#[message(request)]
struct Question;

#[test]
fn no_outcome_without_a_service() {
    let stream = EventStream::start(&EventStreamOptions::in_memory()).unwrap();
    let mut client = stream.client(ClientOptions::default()).unwrap();
    let key = client.open_session(7, 4).unwrap();
    let called = client.call(key, WORD, b"take", Duration::from_secs(1));
    let Err(ClientError::OutcomeUnknown { session_seq: 1, reason }) = called else { panic!("{called:?}") };
    assert!(reason.contains("reply") || reason.contains("no service runs"), "{reason}");
    assert_eq!(client.outcome(key, 1, Duration::from_millis(1_500)).unwrap(), Outcome::NotYetDone);
    let mut replies = 0;
    client.repeat(key, 1).unwrap();
    until("it was asked", || {
        replies += client.poll(64, |incoming| panic!("{incoming:?}")).unwrap();
        replies > 0
    });
    let refused = client.query_request(&Question, Duration::from_secs(60)).unwrap_err();
    assert!(matches!(&refused, QueryError::Unhandled { reason } if reason.contains("no service runs")), "{refused}");
    for _ in 0..20 {
        client.poll(64, |incoming| panic!("{incoming:?}")).unwrap();
        client.wait(Duration::from_millis(5)).unwrap();
    }
    stream.stop().unwrap();
}
