//! [`BrokerClients`]: the broker's clients and topics, as inputs of the core.

use super::backoff::RetryBackoff;
use super::ready::{ReadySources, WorkSource};
use super::relays::Relays;
use super::topics::{OwnTopics, TopicPreparation, prepare_topics};
use super::{BridgeEvent, RunError};
use crate::bridge_core::{BridgeInput, ReadRecord, Topic};
use crate::bundles::{Bundles, ProducerRecord};
use crate::calls_out::{AppendFailure, Certainty, RecordPlace};
use crate::client::{
    BrokerConnection, BrokerError, BrokerErrorKind, Consumer, ConsumerEvent, ConsumerOptions, DeliveryReport,
    ProduceRequest, Producer, ProducerEvent, ProducerOptions, RecordPersistence, StartOffset,
};
use crate::effects::{DeliveryToken, OutgoingRecord};
use crate::record;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::task::{Context, Poll};
use std::time::Duration;

const STREAK_MAX: usize = 256;

pub(super) struct BrokerClients {
    ready: Arc<ReadySources>,
    connection: BrokerConnection,
    options: ProducerOptions,
    topics: OwnTopics,
    has_opened: bool,
    producer: Option<Producer>,
    bundles: Bundles,
    /// Unusable, until all of its records have their reports.
    failed: Option<Producer>,
    inbox: Option<Consumer>,
    presence: Option<Consumer>,
    preparing: Option<Receiver<TopicPreparation>>,
    inbox_lost: Option<String>,
    has_failed: bool,
    presence_start: StartOffset,
    producer_backoff: RetryBackoff,
    inbox_backoff: RetryBackoff,
    presence_backoff: RetryBackoff,
    refused: Option<BrokerError>,
    pub(super) events: Vec<BridgeEvent>,
}

impl BrokerClients {
    pub(super) fn new(
        ready: Arc<ReadySources>,
        connection: BrokerConnection,
        options: ProducerOptions,
        topics: OwnTopics,
        segment_bytes: usize,
    ) -> Self {
        Self {
            ready,
            connection,
            options,
            topics,
            has_opened: false,
            producer: None,
            bundles: Bundles::new(segment_bytes),
            failed: None,
            inbox: None,
            presence: None,
            preparing: None,
            inbox_lost: None,
            has_failed: false,
            presence_start: StartOffset::Beginning,
            producer_backoff: RetryBackoff::default(),
            inbox_backoff: RetryBackoff::default(),
            presence_backoff: RetryBackoff::default(),
            refused: None,
            events: Vec::new(),
        }
    }

    /// On a thread of its own, which waits for the broker.
    pub(super) fn prepare(&mut self) -> Result<(), RunError> {
        if self.preparing.is_some() {
            return Ok(());
        }
        let (sender, receiver) = channel();
        let (connection, topics, ready) = (self.connection.clone(), self.topics.clone(), Arc::clone(&self.ready));
        let system = |error| RunError::System { operation: "starting a thread for topics", error };
        let prepare = move || prepare_topics(&connection, &topics, &sender, &ready);
        std::thread::Builder::new().name("gapless-topics".to_owned()).spawn(prepare).map_err(system)?;
        self.preparing = Some(receiver);
        Ok(())
    }

    pub(super) fn poll_prepared(&mut self) -> Result<Option<Vec<BridgeInput>>, RunError> {
        let Some(preparing) = &self.preparing else { return Ok(None) };
        loop {
            match preparing.try_recv() {
                Ok(TopicPreparation::Event(event)) => self.events.push(event),
                Ok(TopicPreparation::Pending) => {}
                Ok(TopicPreparation::Done(done)) => {
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

    fn open(&mut self) -> Result<Vec<BridgeInput>, RunError> {
        if !self.has_opened {
            self.producer = Some(Producer::open(&self.connection, &self.options)?);
            self.has_opened = true;
            return Ok(vec![BridgeInput::Start]);
        }
        if let Some(presence) = &self.presence {
            presence.restart(StartOffset::Beginning)?;
        }
        let Some(reason) = self.inbox_lost.take() else { return Ok(Vec::new()) };
        self.events.push(BridgeEvent::InboxLost { reason: reason.clone() });
        Ok(vec![BridgeInput::InboxLost { incarnation: super::random()?, reason }])
    }

    pub(super) fn read_presence(&mut self) -> Result<(), RunError> {
        Ok(self.open_presence(StartOffset::Beginning)?)
    }

    fn open_presence(&mut self, start: StartOffset) -> Result<(), BrokerError> {
        let options = ConsumerOptions::new(&self.topics.presence.name, start);
        self.presence = Some(Consumer::open(&self.connection, &options)?);
        self.ready.signal(WorkSource::Broker);
        Ok(())
    }

    /// Skips to the end of the topic: each lease is written again.
    pub(super) fn skip_leases(&mut self, now_ns: u64) {
        self.close_presence(StartOffset::End, now_ns);
    }

    fn close_presence(&mut self, start: StartOffset, now_ns: u64) {
        close(self.presence.take());
        self.presence_start = start;
        self.presence_backoff.fail(now_ns);
    }

    /// [`BridgeInput::InboxLost`] follows.
    pub(super) fn reopen_inbox(&mut self, reason: String, now_ns: u64) {
        close(self.inbox.take());
        self.inbox_lost = Some(reason);
        self.inbox_backoff.fail(now_ns);
    }

    pub(super) fn purge_queue(&mut self, into: &mut VecDeque<BridgeInput>) {
        for token in self.bundles.withdraw() {
            into.push_back(undelivered(token, Certainty::Absent, "it waited in the bridge".to_owned()));
        }
        self.producer.iter().for_each(Producer::withdraw);
    }

    pub(super) fn retry_due(&mut self, now_ns: u64, into: &mut VecDeque<BridgeInput>) -> Result<(), RunError> {
        let trouble = |error: &BrokerError| BridgeInput::BrokerTrouble { reason: error.to_string() };
        if self.producer_backoff.take_due(now_ns) && self.producer.is_none() {
            match Producer::open(&self.connection, &self.options) {
                Ok(producer) => self.producer = Some(producer),
                Err(error) => {
                    into.push_back(trouble(&error));
                    self.producer_backoff.fail(now_ns);
                }
            }
            self.ready.signal(WorkSource::Broker);
        }
        if self.presence_backoff.take_due(now_ns)
            && self.presence.is_none()
            && let Err(error) = self.open_presence(self.presence_start)
        {
            into.push_back(trouble(&error));
            self.presence_backoff.fail(now_ns);
        }
        if self.inbox_backoff.take_due(now_ns) {
            self.prepare()?;
        }
        Ok(())
    }

    pub(super) fn next_attempt_ns(&self) -> u64 {
        let all = [&self.producer_backoff, &self.presence_backoff, &self.inbox_backoff];
        all.into_iter().filter_map(RetryBackoff::due_ns).min().unwrap_or(u64::MAX)
    }

    pub(super) fn read_inbox(&mut self, offset: i64) -> Result<(), RunError> {
        match &self.inbox {
            Some(inbox) => inbox.restart(StartOffset::Offset(offset))?,
            None => {
                let options = ConsumerOptions::new(&self.topics.inbox.name, StartOffset::Offset(offset));
                self.inbox = Some(Consumer::open(&self.connection, &options)?);
            }
        }
        self.ready.signal(WorkSource::Broker);
        Ok(())
    }

    /// `into` gets inputs for records lost or withheld at once.
    pub(super) fn send(&mut self, outgoing: OutgoingRecord, relays: &mut Relays, into: &mut VecDeque<BridgeInput>) {
        let ready = self.bundles.add(outgoing, &mut |request| relays.begin(request, into));
        self.hand_over(ready, into);
    }

    pub(super) fn flush_bundles(&mut self, relays: &mut Relays, into: &mut VecDeque<BridgeInput>) {
        let ready = self.bundles.flush_ready(&mut |request| relays.begin(request, into));
        self.hand_over(ready, into);
    }

    fn hand_over(&mut self, ready: Vec<ProducerRecord>, into: &mut VecDeque<BridgeInput>) {
        for record in ready {
            if let Err(AppendFailure { certainty, reason }) = self.produce(&record) {
                let tokens = self.bundles.reported(record.number);
                into.extend(tokens.into_iter().map(|token| undelivered(token, certainty, reason.clone())));
            }
        }
    }

    fn produce(&self, record: &ProducerRecord) -> Result<(), AppendFailure> {
        let ProducerRecord { number, topic, record } = record;
        let headers: Vec<(&str, &[u8])> = record.headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        let (key, payload) = (record.key.as_deref(), record.payload.as_deref());
        let Some(producer) = &self.producer else {
            let reason = "the client of the broker begins anew".to_owned();
            return Err(AppendFailure { certainty: Certainty::Absent, reason });
        };
        let outgoing = ProduceRequest { topic, key, payload, headers: &headers };
        producer.send(&outgoing, *number as usize).map_err(|error| {
            let certainty =
                if error.kind == BrokerErrorKind::TooLarge { Certainty::TooLong } else { Certainty::Absent };
            AppendFailure { certainty, reason: error.to_string() }
        })
    }

    /// Reports come without a wake-up.
    pub(super) fn has_pending_reports(&self) -> bool {
        self.producer.iter().chain(&self.failed).any(|producer| producer.pending() > 0)
    }

    pub(super) fn take(&mut self, into: &mut VecDeque<BridgeInput>) -> Result<(), RunError> {
        let waker = self.ready.waker(WorkSource::Broker);
        let mut context = Context::from_waker(&waker);
        let mut is_more = false;
        is_more |= self.take_deliveries(into)?;
        is_more |= self.take_records(Topic::Presence, &mut context, into)?;
        is_more |= self.take_records(Topic::Inbox, &mut context, into)?;
        if is_more {
            self.ready.signal(WorkSource::Broker);
        }
        Ok(())
    }

    fn take_deliveries(&mut self, into: &mut VecDeque<BridgeInput>) -> Result<bool, RunError> {
        let (mut refusals, mut count) = (Vec::new(), 0);
        // Asked before its reports are taken: the last one may come meanwhile.
        let is_reported = self.failed.as_ref().is_some_and(|failed| failed.pending() == 0);
        let mut lacks_inbox = false;
        let producers = [(&self.producer, true), (&self.failed, false)];
        let producers =
            producers.map(|(producer, is_current)| producer.as_ref().map(|producer| (producer, is_current)));
        for (producer, is_current) in producers.into_iter().flatten() {
            while count < STREAK_MAX
                && let Some(event) = producer.take()
            {
                count += 1;
                match event {
                    ProducerEvent::Delivery(delivery) => {
                        let tokens = self.bundles.reported(delivery.token as u64);
                        let is_mark = matches!(tokens[..], [DeliveryToken::Mark(_)]);
                        lacks_inbox |= is_mark
                            && delivery.error.as_ref().is_some_and(|error| error.kind == BrokerErrorKind::UnknownTopic);
                        refusals.extend(delivery.error.clone());
                        into.extend(tokens.into_iter().map(|token| delivered(token, &delivery)));
                    }
                    ProducerEvent::Trouble(error) => {
                        self.has_failed |= error.is_fatal && is_current;
                        into.push_back(BridgeInput::BrokerTrouble { reason: error.to_string() });
                        refusals.push(error);
                    }
                }
            }
        }
        refusals.into_iter().for_each(|error| self.report_refusal(error));
        if self.has_failed && self.failed.is_none() {
            self.has_failed = false;
            self.failed = self.producer.take();
            self.failed.iter().for_each(Producer::discard);
            self.producer_backoff.fail(super::now().monotonic_ns);
            self.ready.signal(WorkSource::Broker);
        }
        if is_reported && count < STREAK_MAX {
            close(self.failed.take());
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
        into: &mut VecDeque<BridgeInput>,
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
                ConsumerEvent::Record(read) => into.push_back(BridgeInput::Record(ReadRecord {
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
        self.report_refusal(error.clone());
        let now_ns = super::now().monotonic_ns;
        // A consumer finds no end of a record that is too large for it.
        if matches!(error.kind, BrokerErrorKind::Unreadable | BrokerErrorKind::TooLarge) {
            // The error would repeat until the core has decided.
            match topic {
                Topic::Inbox => close(self.inbox.take()),
                Topic::Presence => close(self.presence.take()),
            }
            into.push_back(BridgeInput::Unreadable { topic, reason: error.to_string() });
            return Ok(true);
        }
        if error.is_fatal {
            match topic {
                // Records that were not returned are read again; the core ignores repeated ones.
                Topic::Presence => self.close_presence(StartOffset::Beginning, now_ns),
                Topic::Inbox => self.reopen_inbox(format!("the reader of the inbox has failed: {error}"), now_ns),
            }
            return Ok(true);
        }
        let restart = match (error.kind, topic) {
            (BrokerErrorKind::UnknownTopic | BrokerErrorKind::OffsetOutOfRange, Topic::Inbox) => {
                self.inbox_lost = Some(format!("the inbox was lost: {error}"));
                // The error may repeat, also for the topic that is made next.
                close(self.inbox.take());
                true
            }
            (BrokerErrorKind::UnknownTopic | BrokerErrorKind::OffsetOutOfRange, Topic::Presence) => true,
            _ => false,
        };
        if restart {
            self.prepare()?;
        } else {
            into.push_back(BridgeInput::BrokerTrouble { reason: error.to_string() });
        }
        Ok(true)
    }

    fn report_refusal(&mut self, error: BrokerError) {
        let is_refusal = matches!(
            error.kind,
            BrokerErrorKind::NotAuthorized | BrokerErrorKind::Authentication | BrokerErrorKind::TooLarge
        );
        if is_refusal && self.refused.as_ref() != Some(&error) {
            self.refused = Some(error.clone());
            self.events.push(BridgeEvent::Refused(error));
        }
    }

    pub(super) fn flush(&mut self, relays: &mut Relays, timeout: Duration) {
        let mut ignored = VecDeque::new();
        let ready = self.bundles.flush_all(&mut |request| relays.begin(request, &mut ignored));
        self.hand_over(ready, &mut ignored);
        let flushed = self.producer.as_ref().map_or(Ok(()), |producer| producer.flush(timeout));
        if let Err(error) = flushed {
            tracing::warn!(%error, "records of this bridge may be lost at its end");
        }
    }
}

/// On a thread of its own, because it waits for threads and connections.
fn close<T: Send + 'static>(client: Option<T>) {
    if let Some(client) = client {
        let closing = std::thread::Builder::new().name("gapless-closing".to_owned());
        // Without a thread it is closed here.
        let _ = closing.spawn(move || drop(client));
    }
}

fn undelivered(token: DeliveryToken, certainty: Certainty, reason: String) -> BridgeInput {
    BridgeInput::Delivered { token, result: Err(AppendFailure { certainty, reason }) }
}

fn delivered(token: DeliveryToken, delivery: &DeliveryReport) -> BridgeInput {
    let DeliveryReport { persistence, offset, error, .. } = delivery;
    match (*persistence, *offset) {
        // Where the first acknowledgement was lost, the place is unknown; only a mark needs it, and it is written
        // again.
        (RecordPersistence::Persisted, offset) if offset.is_some() || !matches!(token, DeliveryToken::Mark(_)) => {
            let (offset, append_time_ms) = (offset.unwrap_or(-1), delivery.append_time_ms.unwrap_or(-1));
            BridgeInput::Delivered { token, result: Ok(RecordPlace { offset, append_time_ms }) }
        }
        (persistence, _) => {
            // Only a refusal of the first attempt is certain: a broker that replicated a record and then lost the lead
            // refuses it, yet the new leader has it.
            let certainty = match error.as_ref().map(|error| error.kind) {
                _ if persistence != RecordPersistence::NotPersisted || !delivery.is_first_attempt => {
                    Certainty::Doubtful
                }
                Some(BrokerErrorKind::TooLarge) => Certainty::TooLong,
                Some(BrokerErrorKind::NotAuthorized) => Certainty::Absent,
                _ => Certainty::Doubtful,
            };
            let reason =
                error.as_ref().map_or_else(|| "without an acknowledgement".to_owned(), |error| error.to_string());
            undelivered(token, certainty, reason)
        }
    }
}

/// Headers that do not decode are omitted; the core then refuses the record.
fn record_of(read: &crate::client::ReceivedRecord<'_>) -> record::KafkaRecord {
    let headers = read.headers().unwrap_or_default();
    let headers = headers.into_iter().filter_map(|(name, value)| record::header(name, value));
    record::KafkaRecord {
        key: read.key().map(<[u8]>::to_vec),
        headers: headers.collect(),
        payload: read.payload().map(<[u8]>::to_vec),
    }
}

#[cfg(test)]
mod tests;
