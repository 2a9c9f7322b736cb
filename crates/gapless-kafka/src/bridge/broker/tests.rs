//! Clients that fail, and the certainty of reports, by librdkafka's mock cluster.

use super::*;
use crate::client::TopicSpec;
use crate::client::faults::Faults;
use crate::config::Compression;
use crate::effects::RequestId;
use gapless_testkit::wait::{until, until_some};

fn error(kind: ErrorKind) -> BrokerError {
    let (operation, code, reason) = ("send".to_owned(), "Code".to_owned(), "words".to_owned());
    BrokerError { kind, operation, code, reason, is_fatal: false }
}

#[test]
fn doubt_stays_unless_no_leader_took_it() {
    let token = Token::Request(RequestId(7));
    let lost = |kind, is_first_attempt| Delivery {
        token: token.to_number() as usize,
        persistence: Persistence::NotPersisted,
        is_first_attempt,
        offset: None,
        append_time_ms: None,
        error: Some(error(kind)),
    };
    for (kind, is_first_attempt, expected) in [
        (ErrorKind::TooLarge, true, Certainty::TooLong),
        (ErrorKind::NotAuthorized, true, Certainty::Absent),
        (ErrorKind::TooLarge, false, Certainty::Doubtful),
        (ErrorKind::NotAuthorized, false, Certainty::Doubtful),
        (ErrorKind::TimedOut, true, Certainty::Doubtful),
        (ErrorKind::Discarded, true, Certainty::Doubtful),
        (ErrorKind::UnknownTopic, true, Certainty::Doubtful),
    ] {
        let report = delivered(token, &lost(kind, is_first_attempt));
        let Input::Delivered { result: Err(NotAppended { certainty, .. }), .. } = report else {
            panic!("{kind:?} is no loss")
        };
        assert_eq!(certainty, expected, "{kind:?}");
    }
}

#[test]
fn marks_need_a_place() {
    let appended = |token: Token| Delivery {
        token: token.to_number() as usize,
        persistence: Persistence::Persisted,
        is_first_attempt: true,
        offset: None,
        append_time_ms: None,
        error: None,
    };
    let is_appended = |token| matches!(delivered(token, &appended(token)), Input::Delivered { result: Ok(_), .. });
    assert!(is_appended(Token::Request(RequestId(7))) && !is_appended(Token::Mark(1)));
}

/// A broker of a bridge, with both topics.
fn opened(faults: &Faults) -> Broker {
    let topics = OwnTopics {
        inbox: TopicSpec::inbox("test.inbox.a", Duration::from_secs(60), Compression::None),
        presence: TopicSpec::compacted("test.presence"),
    };
    [&topics.inbox, &topics.presence].into_iter().for_each(|topic| faults.make(&topic.name));
    let options = ProducerOptions::default();
    let mut broker = Broker::new(Arc::default(), faults.connection(), options, topics, 900_000);
    assert_eq!(broker.open().unwrap(), [Input::Start]);
    broker
}

/// The next input that is wanted.
fn until_input(broker: &mut Broker, name: &str, is_wanted: impl Fn(&Input) -> bool) -> Input {
    until_some(name, || {
        let mut inputs = VecDeque::new();
        broker.take(&mut inputs).unwrap();
        inputs.into_iter().find(&is_wanted)
    })
}

fn ping(broker: &mut Broker) -> Option<Input> {
    let (record, mut inputs) = (record::Record::default(), VecDeque::new());
    let outgoing = OutgoingRecord { token: Token::Ping, topic: "test.inbox.a".into(), record, begins: None };
    broker.send(outgoing, &mut Relays::new(Arc::default(), "m1"), &mut inputs);
    inputs.pop_front()
}

#[test]
fn a_failed_producer_is_opened_again() {
    let faults = Faults::start();
    let mut broker = opened(&faults);
    for _ in 0..3 {
        Faults::end(broker.producer.as_ref().unwrap());
        until("it is given up", || {
            broker.take(&mut VecDeque::new()).unwrap();
            broker.producer.is_none()
        });
        let Some(Input::Delivered { result: Err(lost), .. }) = ping(&mut broker) else { panic!("it was sent") };
        assert_eq!(lost.certainty, Certainty::Absent);
        let due_ns = broker.next_attempt_ns();
        broker.try_again(due_ns - 1, &mut VecDeque::new()).unwrap();
        assert!(broker.producer.is_none());
        broker.try_again(due_ns, &mut VecDeque::new()).unwrap();
        assert!(broker.producer.is_some());
    }
    assert_eq!(ping(&mut broker), None);
    let delivered =
        until_input(&mut broker, "a report", |input| matches!(input, Input::Delivered { token: Token::Ping, .. }));
    assert!(matches!(delivered, Input::Delivered { result: Ok(_), .. }), "{delivered:?}");
    // Topics that are made again do not start the bridge a second time.
    broker.producer = None;
    assert_eq!(broker.open().unwrap(), []);
}

#[test]
fn unreadable_records_are_told_once() {
    let faults = Faults::start();
    let mut broker = opened(&faults);
    for topic in [Topic::Inbox, Topic::Presence] {
        faults.spoil_reads(20);
        match topic {
            Topic::Inbox => broker.read_inbox(0).unwrap(),
            Topic::Presence => broker.read_presence().unwrap(),
        }
        let is_it = |input: &Input| matches!(input, Input::Unreadable { topic: found, .. } if *found == topic);
        until_input(&mut broker, "it is told", is_it);
        assert!(broker.inbox.is_none() && broker.presence.is_none(), "it would be told again");
    }
    broker.skip_leases(0);
    broker.reopen_inbox("unreadable".to_owned(), 0);
    broker.try_again(broker.next_attempt_ns(), &mut VecDeque::new()).unwrap();
    assert!(broker.presence.is_some() && broker.presence_start == Start::End && broker.preparing.is_some());
    assert!(matches!(&broker.open().unwrap()[..], [Input::InboxLost { reason, .. }] if reason == "unreadable"));
}
