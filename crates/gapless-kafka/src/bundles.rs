//! [`Bundles`]: small records on their way to other bridges. While earlier records to an inbox have no report, further ones wait
//! and leave together, as one record. A lone record leaves at once, as it is.
//!
//! It does no input or output. The core's owner puts each record in, hands the departures to the producer, and asks for the
//! tokens of each report.

use crate::effects::{OutgoingRecord, Token};
use crate::record::bundle::{self, BUNDLE_RECORDS_MAX};
use crate::record::{Record, names};
use std::collections::HashMap;
use std::sync::Arc;

/// Longest record that is bundled: a longer one costs more to copy than to send.
const RECORD_BYTES_MAX: usize = 4 << 10;
/// Bytes at which a bundle leaves without waiting.
const BUNDLE_BYTES: usize = 64 << 10;
/// Departures to one inbox without a report, beyond which records wait.
const UNREPORTED_MAX: u32 = 2;
/// Kind of the names of departures in the lowest three bits, which no [`Token`] has.
const KIND: u64 = 6;

/// A record for the producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Name for its delivery report.
    pub name: u64,
    /// Topic.
    pub topic: Arc<str>,
    /// Content.
    pub record: Record,
}

/// Records to one inbox.
#[derive(Debug, Default)]
struct Way {
    waiting: Vec<(Token, Record)>,
    /// Bytes of the waiting records.
    bytes: usize,
    /// Departures without a report.
    unreported: u32,
}

/// The ways to all inboxes.
#[derive(Debug, Default)]
pub struct Bundles {
    ways: HashMap<Arc<str>, Way>,
    /// Ways with waiting records, in their order.
    with_waiting: Vec<Arc<str>>,
    /// Departures without a report.
    departed: HashMap<u64, (Arc<str>, Vec<Token>)>,
    last: u64,
}

impl Bundles {
    /// Takes a record in. Those that leave at once are appended to `departures`.
    pub fn add(&mut self, outgoing: OutgoingRecord, departures: &mut Vec<Departure>) {
        let OutgoingRecord { token, topic, record, .. } = outgoing;
        let has = |header| record.headers.iter().any(|(name, _)| name == header);
        // A record for one incarnation goes to a bridge; programs read no bundles.
        let is_bundled = has(names::TO) && !has(names::SEGMENT);
        let length = bundle::length_of(&record);
        if !is_bundled || length > RECORD_BYTES_MAX {
            // Records to one inbox keep their order.
            self.leave(&topic, departures);
            return departures.push(Departure { name: token.to_number(), topic, record });
        }
        let way = self.ways.entry(topic.clone()).or_default();
        if way.waiting.is_empty() {
            self.with_waiting.push(topic.clone());
        }
        way.waiting.push((token, record));
        way.bytes += length;
        if way.bytes >= BUNDLE_BYTES || way.waiting.len() == BUNDLE_RECORDS_MAX {
            self.leave(&topic, departures);
        }
    }

    /// The turn is over: waiting records leave, but for those to an inbox with too many departures without a report.
    pub fn depart(&mut self, departures: &mut Vec<Departure>) {
        for topic in std::mem::take(&mut self.with_waiting) {
            match self.ways.get(&topic) {
                Some(way) if way.waiting.is_empty() => {}
                Some(way) if way.unreported >= UNREPORTED_MAX => self.with_waiting.push(topic),
                _ => self.leave(&topic, departures),
            }
        }
    }

    /// All waiting records leave.
    pub fn depart_all(&mut self, departures: &mut Vec<Departure>) {
        for topic in std::mem::take(&mut self.with_waiting) {
            self.leave(&topic, departures);
        }
    }

    /// A departure has its report. The tokens of its records.
    pub fn reported(&mut self, name: u64) -> Vec<Token> {
        if name & 7 != KIND {
            return vec![Token::of_number(name)];
        }
        let Some((topic, tokens)) = self.departed.remove(&name) else { return Vec::new() };
        if let Some(way) = self.ways.get_mut(&topic) {
            way.unreported -= 1;
            if way.unreported == 0 && way.waiting.is_empty() {
                self.ways.remove(&topic);
            }
        }
        tokens
    }

    /// Takes all waiting records back: none of them has left. Their tokens.
    pub fn withdraw(&mut self) -> Vec<Token> {
        let mut withdrawn = Vec::new();
        for topic in std::mem::take(&mut self.with_waiting) {
            if let Some(way) = self.ways.get_mut(&topic) {
                way.bytes = 0;
                withdrawn.extend(way.waiting.drain(..).map(|(token, _)| token));
            }
        }
        withdrawn
    }

    /// The waiting records of a way leave.
    fn leave(&mut self, topic: &Arc<str>, departures: &mut Vec<Departure>) {
        let Some(way) = self.ways.get_mut(topic).filter(|way| !way.waiting.is_empty()) else { return };
        let (tokens, mut records): (Vec<_>, Vec<_>) = way.waiting.drain(..).unzip();
        way.bytes = 0;
        way.unreported += 1;
        let record = if records.len() == 1 { records.remove(0) } else { bundle::write(records.iter()) };
        self.last += 1;
        let name = self.last << 3 | KIND;
        self.departed.insert(name, (topic.clone(), tokens));
        departures.push(Departure { name, topic: topic.clone(), record });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effects::RequestId;
    use crate::record::names::BridgeId;
    use crate::record::{ReplyHead, Writer};

    fn record(number: u64, to: Option<u64>, bytes: usize) -> OutgoingRecord {
        let writer = Writer::new(&BridgeId { name: "a".into(), incarnation: 7 });
        let mut record = writer.reply(&number.to_string(), to, &ReplyHead::Reply, None);
        record.payload = Some(vec![0; bytes]);
        OutgoingRecord { token: Token::Reply(number), topic: "test.inbox.b".into(), record, begins: None }
    }

    fn add(bundles: &mut Bundles, outgoing: OutgoingRecord) -> Vec<Departure> {
        let mut departures = Vec::new();
        bundles.add(outgoing, &mut departures);
        departures
    }

    fn depart(bundles: &mut Bundles) -> Vec<Departure> {
        let mut departures = Vec::new();
        bundles.depart(&mut departures);
        departures
    }

    fn inner(departure: &Departure) -> Vec<Record> {
        bundle::read(departure.record.payload.as_ref().unwrap()).map(Result::unwrap).collect()
    }

    #[test]
    fn a_lone_record_leaves_as_it_is() {
        let mut bundles = Bundles::default();
        let sent = record(1, Some(9), 72);
        assert_eq!(add(&mut bundles, sent.clone()), []);
        let departures = depart(&mut bundles);
        assert_eq!((departures.len(), &departures[0].record), (1, &sent.record));
        assert_eq!(bundles.reported(departures[0].name), [Token::Reply(1)]);
        assert_eq!(bundles.reported(departures[0].name), [], "a report comes once");
        assert!(bundles.ways.is_empty() && bundles.departed.is_empty());
    }

    #[test]
    fn records_wait_for_a_report() {
        let mut bundles = Bundles::default();
        let mut first = Vec::new();
        for number in 0..UNREPORTED_MAX.into() {
            assert_eq!(add(&mut bundles, record(number, Some(9), 72)), []);
            first.extend(depart(&mut bundles));
        }
        for number in 10..13 {
            assert_eq!(add(&mut bundles, record(number, Some(9), 72)), []);
            assert_eq!(depart(&mut bundles), []);
        }
        assert_eq!(bundles.reported(first[0].name), [Token::Reply(0)]);
        let bundle = depart(&mut bundles);
        assert_eq!((bundle.len(), inner(&bundle[0]).len()), (1, 3));
        assert_eq!(bundles.reported(bundle[0].name), [10, 11, 12].map(Token::Reply));
        assert_eq!(depart(&mut bundles), []);
    }

    #[test]
    fn long_and_foreign_records_keep_order() {
        for (to, bytes) in [(Some(9), RECORD_BYTES_MAX), (None, 1)] {
            let mut bundles = Bundles::default();
            for number in [1, 2] {
                assert_eq!(add(&mut bundles, record(number, Some(9), 72)), []);
            }
            let departures = add(&mut bundles, record(3, to, bytes));
            assert_eq!((departures.len(), inner(&departures[0]).len()), (2, 2));
            assert_eq!(bundles.reported(departures[1].name), [Token::Reply(3)]);
            assert_eq!(depart(&mut bundles), []);
        }
    }

    #[test]
    fn a_full_bundle_leaves_at_once() {
        let mut bundles = Bundles::default();
        let left: Vec<_> = (0..200).flat_map(|number| add(&mut bundles, record(number, Some(9), 1 << 10))).collect();
        let lengths = left.iter().map(|departure| departure.record.payload.as_ref().unwrap().len());
        assert!(left.len() > 2 && lengths.max().is_some_and(|bytes| bytes < BUNDLE_BYTES + RECORD_BYTES_MAX));
        let mut last = Vec::new();
        bundles.depart_all(&mut last);
        let all: Vec<_> = left.iter().chain(&last).flat_map(|departure| bundles.reported(departure.name)).collect();
        assert_eq!(all, (0..200).map(Token::Reply).collect::<Vec<_>>());
        assert!(bundles.ways.is_empty());
    }

    #[test]
    fn withdrawn_records_never_leave() {
        let mut bundles = Bundles::default();
        let request = |number| OutgoingRecord { token: Token::Request(RequestId(number)), ..record(number, Some(9), 1) };
        assert_eq!(add(&mut bundles, request(1)), []);
        assert_eq!(add(&mut bundles, request(2)), []);
        assert_eq!(bundles.withdraw(), [1, 2].map(|number| Token::Request(RequestId(number))));
        assert_eq!((depart(&mut bundles), bundles.withdraw()), (vec![], vec![]));
        assert_eq!(add(&mut bundles, request(3)), []);
        assert_eq!(depart(&mut bundles).len(), 1);
    }
}
