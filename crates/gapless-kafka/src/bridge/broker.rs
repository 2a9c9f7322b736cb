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
}

enum Prepared {
    /// Not yet; the thread goes on.
    Event(BridgeEvent),
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
        let lost = self.inbox_lost.take().map(|reason| Ok(Input::InboxLost { incarnation: super::random()?, reason }));
        lost.into_iter().collect()
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
        let mut has_failed = false;
        let mut count = 0;
        for producer in [&self.producer, &self.failed].into_iter().flatten() {
            while count < STREAK_MAX
                && let Poll::Ready(event) = producer.poll_take(context)
            {
                count += 1;
                match event {
                    ProducerEvent::Delivery(delivery) => into.push_back(delivered(delivery)),
                    ProducerEvent::Trouble(error) => {
                        has_failed |= error.is_fatal;
                        into.push_back(Input::BrokerTrouble { reason: error.to_string() });
                    }
                }
            }
        }
        if has_failed && self.failed.is_none() {
            self.failed = self.producer.take();
            self.failed.iter().for_each(Producer::discard);
            self.producer = Some(Producer::open(&self.connection, &self.options)?);
            self.ready.tell(Source::Broker);
        }
        if self.failed.as_ref().is_some_and(|failed| failed.pending() == 0) && count < STREAK_MAX {
            self.failed = None;
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
        let restart = match (error.kind, topic) {
            (ErrorKind::UnknownTopic | ErrorKind::OffsetOutOfRange, Topic::Inbox) => {
                self.inbox_lost = Some(format!("the inbox was lost: {error}"));
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
            let reason = error.map_or_else(|| "without an acknowledgement".to_owned(), |error| error.to_string());
            lost(token, persistence != Persistence::NotPersisted, reason)
        }
    }
}

/// A record as the core has it. Headers that do not decode are none: the core refuses the record for want of them.
fn record_of(read: &crate::client::Record<'_>) -> record::Record {
    let headers = read.headers().unwrap_or_default().into_iter();
    let headers = headers
        .map(|(name, value)| (String::from_utf8_lossy(name).into_owned().into(), value.unwrap_or_default().to_vec()));
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
                is_new.then_some(Prepared::Event(BridgeEvent::Waiting(error)))
            }
            done => Some(Prepared::Done(done)),
        };
        let is_done = matches!(prepared, Some(Prepared::Done(_)));
        if prepared.is_some_and(|prepared| tell.send(prepared).is_err()) {
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

/// Whether the protocol does not hold with a difference: deadlines need the broker's time, leases need to be kept, and a record that is compressed in a
/// form that this build does not read would stop its reader.
fn is_fatal(difference: &str) -> bool {
    ["message.timestamp.type", "cleanup.policy", "compression.type is producer"]
        .iter()
        .any(|name| difference.starts_with(name))
}

fn try_topics(connection: &Connection, topics: &OwnTopics, tell: &Sender<Prepared>) -> Result<(), RunError> {
    let client = Topics::connect(connection, ANSWER_MAX)?;
    for spec in [&topics.presence, &topics.inbox] {
        match client.ensure(spec, ANSWER_MAX)? {
            Created::New => {}
            Created::Existing(differences) if differences.is_empty() => {}
            Created::Existing(differences) => {
                let topic = spec.name.clone();
                if let Some(reason) = differences.iter().find(|difference| is_fatal(difference)) {
                    return Err(RunError::Topic { topic, reason: reason.clone() });
                }
                let event = BridgeEvent::TopicDiffers { topic, differences };
                // Nobody listens to a bridge that has ended.
                let _ = tell.send(Prepared::Event(event));
            }
        }
    }
    Ok(())
}
