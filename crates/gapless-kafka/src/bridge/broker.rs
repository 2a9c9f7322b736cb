//! [`Broker`]: the producer, the consumers of inbox and leases, and the topics, as inputs of the core.

use super::ready::{Ready, Source};
use super::{BridgeEvent, RunError};
use crate::bridge_core::{Input, ReadRecord, Topic};
use crate::calls_out::{Appended, NotAppended};
use crate::client::{
    ClientError, Connection, Consumer, ConsumerEvent, ConsumerOptions, Created, Delivery, ErrorKind, Outgoing,
    Persistence, Producer, ProducerEvent, ProducerOptions, Start, TopicSpec, Topics,
};
use crate::effects::{OutgoingRecord, Token};
use crate::record;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::task::{Context, Poll};
use std::time::Duration;

/// Events of one client that are taken before others have their turn.
const STREAK_MAX: usize = 256;
/// Pause between two attempts to prepare the topics.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest wait for the broker's answer about a topic.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// The names and settings of a bridge's two topics.
#[derive(Clone)]
pub(super) struct OwnTopics {
    pub(super) inbox: TopicSpec,
    pub(super) presence: TopicSpec,
}

/// The clients of the broker.
pub(super) struct Broker {
    ready: Arc<Ready>,
    connection: Connection,
    options: ProducerOptions,
    topics: OwnTopics,
    producer: Option<Producer>,
    /// A producer that is of no use any more, until all of its records have their reports.
    failed: Option<Producer>,
    inbox: Option<Consumer>,
    presence: Option<Consumer>,
    preparing: Option<Receiver<Prepared>>,
    /// Reason for which the own inbox has begun anew, once its topic is there.
    inbox_lost: Option<String>,
    /// The producer has failed, and is opened again once the one that failed before has reported on all of its records.
    has_failed: bool,
    /// The last refusal that the operator was told.
    refused: Option<ClientError>,
    /// For the operator.
    pub(super) events: Vec<BridgeEvent>,
}

enum Prepared {
    /// Not yet; the thread goes on.
    Event(BridgeEvent),
    /// Not yet, and nothing new.
    Still,
    Done(Result<(), RunError>),
}

impl Broker {
    pub(super) fn new(ready: Arc<Ready>, connection: Connection, options: ProducerOptions, topics: OwnTopics) -> Self {
        Self {
            ready,
            connection,
            options,
            topics,
            producer: None,
            failed: None,
            inbox: None,
            presence: None,
            preparing: None,
            inbox_lost: None,
            has_failed: false,
            refused: None,
            events: Vec::new(),
        }
    }

    /// Begins to make sure that both topics are there, on a thread of its own: the broker's answers are waited for.
    ///
    /// # Errors
    /// A machine without threads.
    pub(super) fn prepare(&mut self) -> Result<(), RunError> {
        if self.preparing.is_some() {
            return Ok(());
        }
        let (tell, told) = channel();
        let (connection, topics, ready) = (self.connection.clone(), self.topics.clone(), Arc::clone(&self.ready));
        let system = |error| RunError::System { operation: "starting a thread for topics", error };
        let prepare = move || prepare_topics(&connection, &topics, &tell, &ready);
        std::thread::Builder::new().name("gapless-topics".to_owned()).spawn(prepare).map_err(system)?;
        self.preparing = Some(told);
        Ok(())
    }

    /// Looks how far the topics are. `Some` when they are there.
    ///
    /// # Errors
    /// A broker that refuses this bridge.
    pub(super) fn prepared(&mut self, told: &mut dyn FnMut(&BridgeEvent)) -> Result<Option<Vec<Input>>, RunError> {
        let Some(preparing) = &self.preparing else { return Ok(None) };
        loop {
            match preparing.try_recv() {
                Ok(Prepared::Event(event)) => told(&event),
                Ok(Prepared::Still) => {}
                Ok(Prepared::Done(done)) => {
                    self.preparing = None;
                    done?;
                    return self.open().map(Some);
                }
                Err(TryRecvError::Empty) => return Ok(None),
                Err(TryRecvError::Disconnected) => {
                    self.preparing = None;
                    self.prepare()?;
                    return Ok(None);
                }
            }
        }
    }

    /// The topics are there: opens the producer, the first time; else the topics were made anew.
    fn open(&mut self) -> Result<Vec<Input>, RunError> {
        if self.producer.is_none() {
            self.producer = Some(Producer::open(&self.connection, &self.options)?);
            return Ok(vec![Input::Start]);
        }
        if let Some(presence) = &self.presence {
            presence.restart(Start::Beginning)?;
        }
        let Some(reason) = self.inbox_lost.take() else { return Ok(Vec::new()) };
        self.events.push(BridgeEvent::InboxLost { reason: reason.clone() });
        Ok(vec![Input::InboxLost { incarnation: super::random()?, reason }])
    }

    /// Reads the leases from the beginning.
    pub(super) fn read_presence(&mut self) -> Result<(), RunError> {
        let options = ConsumerOptions::new(&self.topics.presence.name, Start::Beginning);
        self.presence = Some(Consumer::open(&self.connection, &options)?);
        self.ready.tell(Source::Broker);
        Ok(())
    }

    /// Reads the inbox from an offset.
    pub(super) fn read_inbox(&mut self, offset: i64) -> Result<(), RunError> {
        match &self.inbox {
            Some(inbox) => inbox.restart(Start::Offset(offset))?,
            None => {
                let options = ConsumerOptions::new(&self.topics.inbox.name, Start::Offset(offset));
                self.inbox = Some(Consumer::open(&self.connection, &options)?);
            }
        }
        self.ready.tell(Source::Broker);
        Ok(())
    }

    /// Hands a record over. An input if it is lost at once.
    pub(super) fn send(&self, outgoing: &OutgoingRecord) -> Option<Input> {
        let OutgoingRecord { token, topic, record, .. } = outgoing;
        let headers: Vec<(&str, &[u8])> = record.headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        let (key, payload) = (record.key.as_deref(), record.payload.as_deref());
        let sent = match &self.producer {
            Some(producer) => producer
                .send(&Outgoing { topic, key, payload, headers: &headers }, token.to_number() as usize)
                .map_err(|error| error.to_string()),
            None => Err("the client of the broker begins anew".to_owned()),
        };
        sent.err().map(|reason| lost(*token, false, reason))
    }

    /// Takes what the clients have.
    ///
    /// # Errors
    /// A client that cannot be opened again.
    pub(super) fn take(&mut self, into: &mut VecDeque<Input>) -> Result<(), RunError> {
        let waker = self.ready.waker(Source::Broker);
        let mut context = Context::from_waker(&waker);
        let mut is_more = false;
        is_more |= self.take_deliveries(&mut context, into)?;
        is_more |= self.take_records(Topic::Presence, &mut context, into)?;
        is_more |= self.take_records(Topic::Inbox, &mut context, into)?;
        if is_more {
            self.ready.tell(Source::Broker);
        }
        Ok(())
    }

    fn take_deliveries(&mut self, context: &mut Context<'_>, into: &mut VecDeque<Input>) -> Result<bool, RunError> {
        let (mut refusals, mut count) = (Vec::new(), 0);
        // Asked before its reports are taken: the last one may come meanwhile.
        let is_reported = self.failed.as_ref().is_some_and(|failed| failed.pending() == 0);
        let mut lacks_inbox = false;
        let producers = [(&self.producer, true), (&self.failed, false)];
        let producers =
            producers.map(|(producer, is_current)| producer.as_ref().map(|producer| (producer, is_current)));
        for (producer, is_current) in producers.into_iter().flatten() {
            while count < STREAK_MAX
                && let Poll::Ready(event) = producer.poll_take(context)
            {
                count += 1;
                match event {
                    ProducerEvent::Delivery(delivery) => {
                        let is_mark = matches!(Token::of_number(delivery.token as u64), Token::Mark(_));
                        lacks_inbox |= is_mark
                            && delivery.error.as_ref().is_some_and(|error| error.kind == ErrorKind::UnknownTopic);
                        refusals.extend(delivery.error.clone());
                        into.push_back(delivered(delivery));
                    }
                    ProducerEvent::Trouble(error) => {
                        self.has_failed |= error.is_fatal && is_current;
                        into.push_back(Input::BrokerTrouble { reason: error.to_string() });
                        refusals.push(error);
                    }
                }
            }
        }
        refusals.into_iter().for_each(|error| self.tell_refusal(error));
        if self.has_failed && self.failed.is_none() {
            self.has_failed = false;
            self.failed = self.producer.take();
            self.failed.iter().for_each(Producer::discard);
            self.producer = Some(Producer::open(&self.connection, &self.options)?);
            self.ready.tell(Source::Broker);
        }
        if is_reported && count < STREAK_MAX {
            self.failed = None;
        }
        if lacks_inbox {
            self.prepare()?;
        }
        Ok(count == STREAK_MAX)
    }

    fn take_records(
        &mut self,
        topic: Topic,
        context: &mut Context<'_>,
        into: &mut VecDeque<Input>,
    ) -> Result<bool, RunError> {
        let consumer = match topic {
            Topic::Inbox => &self.inbox,
            Topic::Presence => &self.presence,
        };
        let Some(consumer) = consumer else { return Ok(false) };
        let mut trouble = None;
        for _ in 0..STREAK_MAX {
            let Poll::Ready(event) = consumer.poll_take(context) else { return Ok(false) };
            match event {
                ConsumerEvent::Record(read) => into.push_back(Input::Record(ReadRecord {
                    topic,
                    offset: read.offset(),
                    append_time_ms: read.append_time_ms().unwrap_or(-1),
                    record: record_of(&read),
                })),
                ConsumerEvent::End => {}
                ConsumerEvent::Trouble(error) => {
                    trouble = Some(error);
                    break;
                }
            }
        }
        let Some(error) = trouble else { return Ok(true) };
        self.tell_refusal(error.clone());
        if error.is_fatal {
            // Records that it has not given are read again: those that the core has seen are known to it.
            return self.reopen(topic).map(|()| true);
        }
        let restart = match (error.kind, topic) {
            (ErrorKind::UnknownTopic | ErrorKind::OffsetOutOfRange, Topic::Inbox) => {
                self.inbox_lost = Some(format!("the inbox was lost: {error}"));
                // It may say the same several times, also of the topic that is made next.
                self.inbox = None;
                true
            }
            (ErrorKind::UnknownTopic | ErrorKind::OffsetOutOfRange, Topic::Presence) => true,
            _ => false,
        };
        if restart {
            self.prepare()?;
        } else {
            into.push_back(Input::BrokerTrouble { reason: error.to_string() });
        }
        Ok(true)
    }

    /// Tells the operator of a refusal, once.
    fn tell_refusal(&mut self, error: ClientError) {
        let is_refusal =
            matches!(error.kind, ErrorKind::NotAuthorized | ErrorKind::Authentication | ErrorKind::TooLarge);
        if is_refusal && self.refused.as_ref() != Some(&error) {
            self.refused = Some(error.clone());
            self.events.push(BridgeEvent::Refused(error));
        }
    }

    /// Opens a consumer again that is of no use any more.
    fn reopen(&mut self, topic: Topic) -> Result<(), RunError> {
        match topic {
            Topic::Presence => self.read_presence(),
            Topic::Inbox => {
                self.inbox = None;
                self.inbox_lost = Some("the reader of the inbox has failed".to_owned());
                self.prepare()
            }
        }
    }

    /// Waits until what was sent is acknowledged, for `timeout` at most: the last step of an end.
    pub(super) fn flush(&self, timeout: Duration) {
        let flushed = self.producer.as_ref().map_or(Ok(()), |producer| producer.flush(timeout));
        if let Err(error) = flushed {
            tracing::warn!(%error, "records of this bridge may be lost at its end");
        }
    }
}

/// A record that is known not to be appended, or may be.
fn lost(token: Token, is_possible: bool, reason: String) -> Input {
    Input::Delivered { token, result: Err(NotAppended { is_possible, reason }) }
}

fn delivered(delivery: Delivery) -> Input {
    let Delivery { token, persistence, offset, append_time_ms, error } = delivery;
    let token = Token::of_number(token as u64);
    match (persistence, offset) {
        // The place is not known where the first acknowledgement was lost: no call is behind a mark then, and a mark is written again.
        (Persistence::Persisted, offset) if offset.is_some() || !matches!(token, Token::Mark(_)) => {
            let (offset, append_time_ms) = (offset.unwrap_or(-1), append_time_ms.unwrap_or(-1));
            Input::Delivered { token, result: Ok(Appended { offset, append_time_ms }) }
        }
        (persistence, _) => {
            // A broker that has taken a record and lost the lead refuses it, and the client says "not persisted" although the next leader has it:
            // only what no leader can have taken is certain.
            let is_certain = |error: &ClientError| matches!(error.kind, ErrorKind::TooLarge | ErrorKind::NotAuthorized);
            let is_possible = persistence != Persistence::NotPersisted || !error.as_ref().is_some_and(is_certain);
            let reason = error.map_or_else(|| "without an acknowledgement".to_owned(), |error| error.to_string());
            lost(token, is_possible, reason)
        }
    }
}

/// A record as the core has it. Headers that do not decode are none: the core refuses the record for want of them.
fn record_of(read: &crate::client::Record<'_>) -> record::Record {
    let headers = read.headers().unwrap_or_default();
    let headers = headers.into_iter().filter_map(|(name, value)| record::header(name, value));
    record::Record {
        key: read.key().map(<[u8]>::to_vec),
        headers: headers.collect(),
        payload: read.payload().map(<[u8]>::to_vec),
    }
}

/// Makes sure that both topics are there. Ends with the first answer that no further attempt can change, and when nobody listens.
fn prepare_topics(connection: &Connection, topics: &OwnTopics, tell: &Sender<Prepared>, ready: &Ready) {
    let mut told = None;
    loop {
        let done = try_topics(connection, topics, tell);
        let prepared = match done {
            Err(RunError::Broker(error)) if may_pass(&error) => {
                let is_new = told.as_ref() != Some(&error);
                told = Some(error.clone());
                if is_new { Prepared::Event(BridgeEvent::Waiting(error)) } else { Prepared::Still }
            }
            done => Prepared::Done(done),
        };
        let is_done = matches!(prepared, Prepared::Done(_));
        if tell.send(prepared).is_err() {
            return;
        }
        ready.tell(Source::Broker);
        if is_done {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether another attempt may end otherwise.
const fn may_pass(error: &ClientError) -> bool {
    !matches!(error.kind, ErrorKind::Authentication | ErrorKind::NotAuthorized | ErrorKind::Configuration)
}

fn try_topics(connection: &Connection, topics: &OwnTopics, tell: &Sender<Prepared>) -> Result<(), RunError> {
    let client = Topics::connect(connection, ANSWER_MAX)?;
    for spec in [&topics.presence, &topics.inbox] {
        match client.ensure(spec, ANSWER_MAX)? {
            Created::New => {}
            Created::Existing(differences) if differences.is_empty() => {}
            Created::Existing(differences) => {
                let topic = spec.name.clone();
                if let Some(fatal) = differences.iter().find(|difference| difference.is_fatal) {
                    return Err(RunError::Topic { topic, reason: fatal.to_string() });
                }
                let event = BridgeEvent::TopicDiffers { topic, differences };
                // Nobody listens to a bridge that has ended.
                let _ = tell.send(Prepared::Event(event));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effects::RequestId;

    fn error(kind: ErrorKind) -> ClientError {
        let (operation, code, reason) = ("send".to_owned(), "Code".to_owned(), "words".to_owned());
        ClientError { kind, operation, code, reason, is_fatal: false }
    }

    #[test]
    fn doubt_stays_unless_no_leader_took_it() {
        let token = Token::Request(RequestId(7));
        let lost = |kind| Delivery {
            token: token.to_number() as usize,
            persistence: Persistence::NotPersisted,
            offset: None,
            append_time_ms: None,
            error: Some(error(kind)),
        };
        for (kind, expected) in [
            (ErrorKind::TooLarge, false),
            (ErrorKind::NotAuthorized, false),
            (ErrorKind::TimedOut, true),
            (ErrorKind::Discarded, true),
            (ErrorKind::UnknownTopic, true),
        ] {
            let Input::Delivered { result: Err(NotAppended { is_possible, .. }), .. } = delivered(lost(kind)) else {
                panic!("{kind:?} is no loss")
            };
            assert_eq!(is_possible, expected, "{kind:?}");
        }
    }

    #[test]
    fn marks_need_a_place() {
        let appended = |token: Token| Delivery {
            token: token.to_number() as usize,
            persistence: Persistence::Persisted,
            offset: None,
            append_time_ms: None,
            error: None,
        };
        let is_appended = |token| matches!(delivered(appended(token)), Input::Delivered { result: Ok(_), .. });
        assert!(is_appended(Token::Request(RequestId(7))) && !is_appended(Token::Mark(1)));
    }
}
