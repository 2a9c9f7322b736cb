//! [`Bundles`]: while earlier records to an inbox have no report, further small ones wait and leave together as one
//! record; a lone record leaves at once. No input or output: the core's owner adds records and hands ready ones to the
//! producer.

use crate::effects::{BUNDLE_KIND, DeliveryToken, KIND_BITS, KIND_MASK, OutgoingRecord, RequestId};
use crate::record::bundle::{self, BUNDLE_RECORDS_MAX};
use crate::record::{KafkaRecord, names};
use std::collections::HashMap;
use std::sync::Arc;

/// A longer record costs more to copy than to send.
const RECORD_BYTES_MAX: usize = 4 << 10;
const BUNDLE_BYTES_MAX: usize = 64 << 10;
const UNREPORTED_MAX: u32 = 2;

/// A record for the producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerRecord {
    /// Number for its delivery report.
    pub number: u64,
    /// Topic.
    pub topic: Arc<str>,
    /// Content.
    pub record: KafkaRecord,
}

#[derive(Debug, Default)]
struct BundleQueue {
    waiting: Vec<OutgoingRecord>,
    bytes: usize,
    unreported: u32,
}

/// The queues of all inboxes.
#[derive(Debug)]
pub struct Bundles {
    bytes_max: usize,
    queues: HashMap<Arc<str>, BundleQueue>,
    nonempty: Vec<Arc<str>>,
    unreported_records: HashMap<u64, (Arc<str>, Vec<DeliveryToken>)>,
    last: u64,
    /// A request that was withheld, whose further records are withheld, too.
    withheld: Option<DeliveryToken>,
}

/// Begins a request of [`OutgoingRecord::begins`] immediately before its record leaves; false if it is withheld.
pub type BeginRequest<'a> = dyn FnMut(RequestId) -> bool + 'a;

impl Bundles {
    /// A bundle is no longer than a segment, which the broker is known to take.
    #[must_use]
    pub fn new(segment_bytes: usize) -> Self {
        Self {
            bytes_max: segment_bytes.min(BUNDLE_BYTES_MAX),
            queues: HashMap::new(),
            nonempty: Vec::new(),
            unreported_records: HashMap::new(),
            last: 0,
            withheld: None,
        }
    }

    /// Adds a record; returns the records that leave at once.
    #[must_use]
    pub fn add(&mut self, outgoing: OutgoingRecord, begin: &mut BeginRequest<'_>) -> Vec<ProducerRecord> {
        let mut ready = Vec::new();
        if self.withheld == Some(outgoing.token) {
            return ready;
        }
        let OutgoingRecord { token, topic, record, begins } = outgoing;
        let has = |header| record.headers.iter().any(|(name, _)| name == header);
        // Programs read no bundles, only bridges do.
        let is_bundled = has(names::TO) && !has(names::SEGMENT);
        let length = bundle::length_of(&record);
        if !is_bundled || length > RECORD_BYTES_MAX.min(self.bytes_max) {
            // Records to one inbox keep their order.
            self.flush_inbox(&topic, begin, &mut ready);
            if begins.is_some_and(|request| !begin(request)) {
                self.withheld = Some(token);
                return ready;
            }
            ready.push(ProducerRecord { number: token.to_number(), topic, record });
            return ready;
        }
        if self.queues.get(&topic).is_some_and(|queue| queue.bytes + length > self.bytes_max) {
            self.flush_inbox(&topic, begin, &mut ready);
        }
        let queue = self.queues.entry(topic.clone()).or_default();
        if queue.waiting.is_empty() {
            self.nonempty.push(topic.clone());
        }
        queue.waiting.push(OutgoingRecord { token, topic: topic.clone(), record, begins });
        queue.bytes += length;
        if queue.waiting.len() == BUNDLE_RECORDS_MAX {
            self.flush_inbox(&topic, begin, &mut ready);
        }
        ready
    }

    /// Ends the turn: waiting records leave, except to an inbox with too many unreported records.
    #[must_use]
    pub fn flush_ready(&mut self, begin: &mut BeginRequest<'_>) -> Vec<ProducerRecord> {
        let mut ready = Vec::new();
        for topic in std::mem::take(&mut self.nonempty) {
            match self.queues.get(&topic) {
                Some(queue) if queue.waiting.is_empty() => {}
                Some(queue) if queue.unreported >= UNREPORTED_MAX => self.nonempty.push(topic),
                _ => self.flush_inbox(&topic, begin, &mut ready),
            }
        }
        ready
    }

    /// All waiting records leave.
    #[must_use]
    pub fn flush_all(&mut self, begin: &mut BeginRequest<'_>) -> Vec<ProducerRecord> {
        let mut ready = Vec::new();
        for topic in std::mem::take(&mut self.nonempty) {
            self.flush_inbox(&topic, begin, &mut ready);
        }
        ready
    }

    /// Notes the report on a producer record; returns the tokens of the records in it.
    pub fn reported(&mut self, number: u64) -> Vec<DeliveryToken> {
        if number & KIND_MASK != BUNDLE_KIND {
            return vec![DeliveryToken::from_number(number)];
        }
        let Some((topic, tokens)) = self.unreported_records.remove(&number) else { return Vec::new() };
        if let Some(queue) = self.queues.get_mut(&topic) {
            queue.unreported -= 1;
            if queue.unreported == 0 && queue.waiting.is_empty() {
                self.queues.remove(&topic);
            }
        }
        tokens
    }

    /// Takes all waiting records back, none of which has left; returns their tokens.
    pub fn withdraw(&mut self) -> Vec<DeliveryToken> {
        let mut withdrawn = Vec::new();
        for topic in std::mem::take(&mut self.nonempty) {
            if let Some(queue) = self.queues.get_mut(&topic) {
                queue.bytes = 0;
                withdrawn.extend(queue.waiting.drain(..).map(|outgoing| outgoing.token));
            }
        }
        withdrawn
    }

    fn flush_inbox(&mut self, topic: &Arc<str>, begin: &mut BeginRequest<'_>, ready: &mut Vec<ProducerRecord>) {
        let Some(queue) = self.queues.get_mut(topic).filter(|queue| !queue.waiting.is_empty()) else { return };
        self.nonempty.retain(|each| each != topic);
        queue.bytes = 0;
        let leaving = queue.waiting.drain(..).filter(|outgoing| outgoing.begins.is_none_or(&mut *begin));
        let (tokens, mut records): (Vec<_>, Vec<_>) = leaving.map(|outgoing| (outgoing.token, outgoing.record)).unzip();
        let record = match records.len() {
            0 => return,
            1 => records.remove(0),
            _ => bundle::write(&records),
        };
        queue.unreported += 1;
        self.last += 1;
        let number = self.last << KIND_BITS | BUNDLE_KIND;
        self.unreported_records.insert(number, (topic.clone(), tokens));
        ready.push(ProducerRecord { number, topic: topic.clone(), record });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effects::RequestId;
    use crate::record::names::BridgeId;
    use crate::record::{RecordWriter, ReplyHead};

    fn record(number: u64, to: Option<u64>, bytes: usize) -> OutgoingRecord {
        let writer = RecordWriter::new(&BridgeId { name: "a".into(), incarnation: 7 });
        let mut record = writer.reply(&number.to_string(), to, &ReplyHead::Reply, None);
        record.payload = Some(vec![0; bytes]);
        OutgoingRecord { token: DeliveryToken::Reply(number), topic: "test.inbox.b".into(), record, begins: None }
    }

    fn begins(_: RequestId) -> bool {
        true
    }

    fn inner(sent: &ProducerRecord) -> Vec<KafkaRecord> {
        bundle::read(sent.record.payload.as_ref().unwrap()).map(Result::unwrap).collect()
    }

    #[test]
    fn a_lone_record_leaves_as_it_is() {
        let mut bundles = Bundles::new(900_000);
        let sent = record(1, Some(9), 72);
        assert_eq!(bundles.add(sent.clone(), &mut begins), []);
        let ready = bundles.flush_ready(&mut begins);
        assert_eq!((ready.len(), &ready[0].record), (1, &sent.record));
        assert_eq!(bundles.reported(ready[0].number), [DeliveryToken::Reply(1)]);
        assert_eq!(bundles.reported(ready[0].number), [], "a report comes once");
        assert!(bundles.queues.is_empty() && bundles.unreported_records.is_empty());
    }

    #[test]
    fn records_wait_for_a_report() {
        let mut bundles = Bundles::new(900_000);
        let mut first = Vec::new();
        for number in 0..UNREPORTED_MAX.into() {
            assert_eq!(bundles.add(record(number, Some(9), 72), &mut begins), []);
            first.extend(bundles.flush_ready(&mut begins));
        }
        for number in 10..13 {
            assert_eq!(bundles.add(record(number, Some(9), 72), &mut begins), []);
            assert_eq!(bundles.flush_ready(&mut begins), []);
        }
        assert_eq!(bundles.reported(first[0].number), [DeliveryToken::Reply(0)]);
        let bundle = bundles.flush_ready(&mut begins);
        assert_eq!((bundle.len(), inner(&bundle[0]).len()), (1, 3));
        assert_eq!(bundles.reported(bundle[0].number), [10, 11, 12].map(DeliveryToken::Reply));
        assert_eq!(bundles.flush_ready(&mut begins), []);
    }

    #[test]
    fn long_and_foreign_records_keep_order() {
        for (to, bytes, segment_bytes) in
            [(Some(9), RECORD_BYTES_MAX, 900_000), (Some(9), 1 << 10, 1 << 10), (None, 1, 900_000)]
        {
            let mut bundles = Bundles::new(segment_bytes);
            for number in [1, 2] {
                assert_eq!(bundles.add(record(number, Some(9), 72), &mut begins), []);
            }
            let ready = bundles.add(record(3, to, bytes), &mut begins);
            assert_eq!((ready.len(), inner(&ready[0]).len()), (2, 2));
            assert_eq!(bundles.reported(ready[1].number), [DeliveryToken::Reply(3)]);
            assert_eq!(bundles.flush_ready(&mut begins), []);
        }
    }

    #[test]
    fn a_full_bundle_leaves_at_once() {
        for segment_bytes in [2 << 10, 900_000] {
            let mut bundles = Bundles::new(segment_bytes);
            let bytes = segment_bytes.min(1 << 10);
            let left: Vec<_> =
                (0..200).flat_map(|number| bundles.add(record(number, Some(9), bytes), &mut begins)).collect();
            let lengths = left.iter().map(|record| record.record.payload.as_ref().unwrap().len());
            let longest = lengths.max().unwrap_or_default();
            assert!(left.len() > 2 && longest <= segment_bytes.min(BUNDLE_BYTES_MAX), "{longest} of {segment_bytes}");
            assert_eq!(bundles.nonempty.len(), 1);
            let last = bundles.flush_all(&mut begins);
            let all: Vec<_> = left.iter().chain(&last).flat_map(|record| bundles.reported(record.number)).collect();
            assert_eq!(all, (0..200).map(DeliveryToken::Reply).collect::<Vec<_>>());
            assert!(bundles.queues.is_empty());
        }
    }

    #[test]
    fn withdrawn_records_never_leave() {
        let mut bundles = Bundles::new(900_000);
        let request =
            |number| OutgoingRecord { token: DeliveryToken::Request(RequestId(number)), ..record(number, Some(9), 1) };
        assert_eq!(bundles.add(request(1), &mut begins), []);
        assert_eq!(bundles.add(request(2), &mut begins), []);
        assert_eq!(bundles.withdraw(), [1, 2].map(|number| DeliveryToken::Request(RequestId(number))));
        assert_eq!((bundles.flush_ready(&mut begins), bundles.withdraw()), (vec![], vec![]));
        assert_eq!(bundles.add(request(3), &mut begins), []);
        assert_eq!(bundles.flush_ready(&mut begins).len(), 1);
    }

    #[test]
    fn requests_begin_when_they_leave() {
        let mut bundles = Bundles::new(900_000);
        let request = |number, bytes| {
            let (id, record) = (RequestId(number), record(number, Some(9), bytes));
            OutgoingRecord { token: DeliveryToken::Request(id), begins: Some(id), ..record }
        };
        let mut begun = Vec::new();
        let mut odd = |request: RequestId| {
            begun.push(request.0);
            request.0 % 2 == 1
        };
        (0..4).for_each(|number| assert_eq!(bundles.add(request(number, 1), &mut begins), []));
        let ready = bundles.flush_ready(&mut odd);
        assert_eq!((ready.len(), inner(&ready[0]).len()), (1, 2));
        assert_eq!(bundles.reported(ready[0].number), [1, 3].map(|number| DeliveryToken::Request(RequestId(number))));
        assert_eq!(bundles.add(request(4, 1), &mut odd), []);
        assert_eq!(
            (bundles.flush_ready(&mut odd), bundles.queues.values().all(|queue| queue.unreported == 0)),
            (vec![], true)
        );
        assert_eq!(bundles.add(request(6, RECORD_BYTES_MAX), &mut odd), []);
        let segment = OutgoingRecord { begins: None, ..request(6, RECORD_BYTES_MAX) };
        assert_eq!(bundles.add(segment, &mut odd), []);
        assert_eq!(bundles.add(request(7, RECORD_BYTES_MAX), &mut odd).len(), 1);
        assert_eq!(begun, [0, 1, 2, 3, 4, 6, 7]);
    }
}
