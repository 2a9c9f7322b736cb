//! Clients that fail, and the certainty of reports, by librdkafka's mock cluster.

use super::*;
use crate::client::TopicSpec;
use crate::client::faults::FaultyCluster;
use crate::config::Compression;
use crate::effects::RequestId;
use gapless_testkit::wait::{until, until_some};

fn error(kind: BrokerErrorKind) -> BrokerError {
    let (operation, code, reason) = ("send".to_owned(), "Code".to_owned(), "words".to_owned());
    BrokerError { kind, operation, code, reason, is_fatal: false }
}

#[test]
fn only_first_refusals_are_certain() {
    let token = DeliveryToken::Request(RequestId(7));
    let lost = |kind, is_first_attempt| DeliveryReport {
        token: token.to_number() as usize,
        persistence: RecordPersistence::NotPersisted,
        is_first_attempt,
        offset: None,
        append_time_ms: None,
        error: Some(error(kind)),
    };
    for (kind, is_first_attempt, expected) in [
        (BrokerErrorKind::TooLarge, true, Certainty::TooLong),
        (BrokerErrorKind::NotAuthorized, true, Certainty::Absent),
        (BrokerErrorKind::TooLarge, false, Certainty::Doubtful),
        (BrokerErrorKind::NotAuthorized, false, Certainty::Doubtful),
        (BrokerErrorKind::TimedOut, true, Certainty::Doubtful),
        (BrokerErrorKind::Discarded, true, Certainty::Doubtful),
        (BrokerErrorKind::UnknownTopic, true, Certainty::Doubtful),
    ] {
        let report = delivered(token, &lost(kind, is_first_attempt));
        let BridgeInput::Delivered { result: Err(AppendFailure { certainty, .. }), .. } = report else {
            panic!("{kind:?} is no loss")
        };
        assert_eq!(certainty, expected, "{kind:?}");
    }
}

#[test]
fn marks_need_a_place() {
    let appended = |token: DeliveryToken| DeliveryReport {
        token: token.to_number() as usize,
        persistence: RecordPersistence::Persisted,
        is_first_attempt: true,
        offset: None,
        append_time_ms: None,
        error: None,
    };
    let is_appended =
        |token| matches!(delivered(token, &appended(token)), BridgeInput::Delivered { result: Ok(_), .. });
    assert!(is_appended(DeliveryToken::Request(RequestId(7))) && !is_appended(DeliveryToken::Mark(1)));
}

fn opened(faults: &FaultyCluster) -> BrokerClients {
    let topics = OwnTopics {
        inbox: TopicSpec::inbox("test.inbox.a", Duration::from_secs(60), Compression::None),
        presence: TopicSpec::compacted("test.presence"),
    };
    [&topics.inbox, &topics.presence].into_iter().for_each(|topic| faults.make(&topic.name));
    let options = ProducerOptions::default();
    let mut broker = BrokerClients::new(Arc::default(), faults.connection(), options, topics, 900_000);
    assert_eq!(broker.open().unwrap(), [BridgeInput::Start]);
    broker
}

fn until_input(broker: &mut BrokerClients, name: &str, is_wanted: impl Fn(&BridgeInput) -> bool) -> BridgeInput {
    until_some(name, || {
        let mut inputs = VecDeque::new();
        broker.take(&mut inputs).unwrap();
        inputs.into_iter().find(&is_wanted)
    })
}

fn ping(broker: &mut BrokerClients) -> Option<BridgeInput> {
    let (record, mut inputs) = (record::KafkaRecord::default(), VecDeque::new());
    let outgoing = OutgoingRecord { token: DeliveryToken::Ping, topic: "test.inbox.a".into(), record, begins: None };
    broker.send(outgoing, &mut Relays::new(Arc::default(), "m1"), &mut inputs);
    inputs.pop_front()
}

#[test]
fn a_failed_producer_is_opened_again() {
    let faults = FaultyCluster::start();
    let mut broker = opened(&faults);
    for _ in 0..3 {
        FaultyCluster::end(broker.producer.as_ref().unwrap());
        until("it is given up", || {
            broker.take(&mut VecDeque::new()).unwrap();
            broker.producer.is_none()
        });
        let Some(BridgeInput::Delivered { result: Err(lost), .. }) = ping(&mut broker) else { panic!("it was sent") };
        assert_eq!(lost.certainty, Certainty::Absent);
        let due_ns = broker.next_attempt_ns();
        broker.retry_due(due_ns - 1, &mut VecDeque::new()).unwrap();
        assert!(broker.producer.is_none());
        broker.retry_due(due_ns, &mut VecDeque::new()).unwrap();
        assert!(broker.producer.is_some());
    }
    assert_eq!(ping(&mut broker), None);
    let delivered = until_input(&mut broker, "a report", |input| {
        matches!(input, BridgeInput::Delivered { token: DeliveryToken::Ping, .. })
    });
    assert!(matches!(delivered, BridgeInput::Delivered { result: Ok(_), .. }), "{delivered:?}");
    broker.producer = None;
    assert_eq!(broker.open().unwrap(), []);
}

#[test]
fn unreadable_records_are_told_once() {
    let faults = FaultyCluster::start();
    let mut broker = opened(&faults);
    for topic in [Topic::Inbox, Topic::Presence] {
        faults.spoil_reads(20);
        match topic {
            Topic::Inbox => broker.read_inbox(0).unwrap(),
            Topic::Presence => broker.read_presence().unwrap(),
        }
        let is_it =
            |input: &BridgeInput| matches!(input, BridgeInput::Unreadable { topic: found, .. } if *found == topic);
        until_input(&mut broker, "it is told", is_it);
        assert!(broker.inbox.is_none() && broker.presence.is_none(), "it would be told again");
    }
    broker.skip_leases(0);
    broker.reopen_inbox("unreadable".to_owned(), 0);
    broker.retry_due(broker.next_attempt_ns(), &mut VecDeque::new()).unwrap();
    assert!(broker.presence.is_some() && broker.presence_start == StartOffset::End && broker.preparing.is_some());
    assert!(matches!(&broker.open().unwrap()[..], [BridgeInput::InboxLost { reason, .. }] if reason == "unreadable"));
}
