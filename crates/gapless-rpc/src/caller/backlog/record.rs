//! [`BacklogRecord`]: a queued request, either in memory or, after the first few of its class, as bytes in the elastic
//! queue.
//!
//! ```text
//!   0  request header (128), with the length of the user headers
//! 128  u64  timeout of the call, ns; for errors
//! 136  u64  wait for a route, ns
//! 144  u8   retry     145  u8  1 if routed by key     146  …  0
//! 152  user headers, payload
//! ```

use crate::caller::remote_call::Terms;
use crate::caller::table::RemoteOffer;
use crate::local::{ByteQueues, Overflow, PoppedRequest};
use crate::options::{Priority, Retry};
use crate::spill::Spill;
use gapless_agent::monotonic::saturating_ns;
use gapless_log::call_table::{REQUEST_HEADER_LENGTH, RequestHeader};
use gapless_wire::fields::u64_at;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PREFIX_LENGTH: usize = REQUEST_HEADER_LENGTH + 24;

const BYTES_KEPT_MAX: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct BacklogCounts([AtomicU64; 4]);

impl BacklogCounts {
    pub(super) fn has(&self, class: Priority) -> bool {
        // Acquire: pairs with the Release of `leave`, so that a caller that sees an empty queue cannot overtake its
        // last request.
        self.0[class as usize].load(Ordering::Acquire) != 0
    }

    pub(super) fn len(&self) -> u64 {
        // Relaxed: statistics only.
        self.0.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    fn enter(&self, class: Priority) {
        // Relaxed: no order is promised between threads.
        self.0[class as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn leave(&self, class: Priority) {
        self.0[class as usize].fetch_sub(1, Ordering::Release);
    }
}

#[derive(Debug)]
pub(super) struct BacklogPlace(Arc<BacklogCounts>, Priority);

impl BacklogPlace {
    pub(super) fn take(line: &Arc<BacklogCounts>, class: Priority) -> Self {
        line.enter(class);
        Self(Arc::clone(line), class)
    }
}

impl Drop for BacklogPlace {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

#[derive(Debug)]
pub(super) struct BacklogRecord {
    pub(super) terms: Terms,
    pub(super) user_headers: Vec<u8>,
    pub(super) payload: Vec<u8>,
    pub(super) place: BacklogPlace,
}

impl BacklogRecord {
    fn encode(&self, into: &mut Vec<u8>) {
        let Terms { offer, retry, affinity, timeout, wait_for_route } = self.terms;
        let header = RequestHeader {
            headers_length: self.user_headers.len() as u32,
            key: affinity.unwrap_or(offer.header.key),
            ..offer.header
        };
        into.extend_from_slice(&header.to_bytes());
        for time in [timeout, wait_for_route] {
            let time_ns = saturating_ns(time);
            into.extend_from_slice(&time_ns.to_le_bytes());
        }
        let retry = match retry {
            Retry::Never => 0,
            Retry::NotBegun => 1,
            Retry::Always => 2,
        };
        into.extend_from_slice(&[retry, affinity.is_some().into(), 0, 0, 0, 0, 0, 0]);
        into.extend_from_slice(&self.user_headers);
        into.extend_from_slice(&self.payload);
    }

    /// `None` if the bytes are malformed.
    fn decode(bytes: &[u8], place: BacklogPlace) -> Option<Self> {
        let (prefix, body) = bytes.split_at_checked(PREFIX_LENGTH)?;
        let header = RequestHeader::from_bytes(prefix.first_chunk()?);
        let (user_headers, payload) = body.split_at_checked(header.headers_length as usize)?;
        let time = |at| Duration::from_nanos(u64_at(prefix, at));
        let (timeout, wait_for_route) = (time(REQUEST_HEADER_LENGTH), time(REQUEST_HEADER_LENGTH + 8));
        let retry = match prefix[REQUEST_HEADER_LENGTH + 16] {
            0 => Retry::Never,
            1 => Retry::NotBegun,
            2 => Retry::Always,
            _ => return None,
        };
        let affinity = (prefix[REQUEST_HEADER_LENGTH + 17] != 0).then_some(header.key);
        let offer = RemoteOffer { header, ..RemoteOffer::default() };
        let terms = Terms { offer, retry, affinity, timeout, wait_for_route };
        Some(Self { terms, user_headers: user_headers.to_vec(), payload: payload.to_vec(), place })
    }
}

pub(super) struct BacklogOverflow {
    spill: Spill,
    line: Arc<BacklogCounts>,
    bytes: Vec<u8>,
}

impl BacklogOverflow {
    pub(super) const fn new(spill: Spill, line: Arc<BacklogCounts>) -> Self {
        Self { spill, line, bytes: Vec::new() }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(BYTES_KEPT_MAX);
    }
}

impl Overflow<BacklogRecord> for BacklogOverflow {
    fn push(&mut self, class: Priority, record: &BacklogRecord) -> Result<(), String> {
        self.clear();
        record.encode(&mut self.bytes);
        self.spill.push(class, &self.bytes)?;
        self.line.enter(class);
        Ok(())
    }

    fn pop(&mut self, class: Priority) -> PoppedRequest<BacklogRecord> {
        self.clear();
        let popped = self.spill.pop(class, &mut self.bytes);
        if popped == Ok(false) {
            return PoppedRequest::NotYet;
        }
        let place = BacklogPlace(Arc::clone(&self.line), class);
        match popped.map(|_| BacklogRecord::decode(&self.bytes, place)) {
            Ok(Some(record)) => PoppedRequest::Request(record),
            Ok(None) => PoppedRequest::Lost("what the backlog gave back is no request".to_owned()),
            Err(reason) => PoppedRequest::Lost(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_survives_a_round_trip() {
        let line = Arc::new(BacklogCounts::default());
        let header = RequestHeader { class: 1, key: 7, deadline_ns: 9, trace_id: 11, ..RequestHeader::default() };
        for (retry, affinity) in [(Retry::Never, None), (Retry::NotBegun, Some(7)), (Retry::Always, Some(0))] {
            let offer = RemoteOffer { header, ..RemoteOffer::default() };
            let (timeout, wait_for_route) = (Duration::from_nanos(5), Duration::MAX);
            let terms = Terms { offer, retry, affinity, timeout, wait_for_route };
            let place = BacklogPlace::take(&line, Priority::High);
            let record = BacklogRecord { terms, user_headers: vec![1, 2, 3], payload: vec![4], place };
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            let read = BacklogRecord::decode(&bytes, BacklogPlace::take(&line, Priority::High)).unwrap();
            assert_eq!((&read.user_headers, &read.payload), (&vec![1, 2, 3], &vec![4]));
            assert_eq!((read.terms.retry, read.terms.affinity, read.terms.timeout), (retry, affinity, timeout));
            assert_eq!(read.terms.wait_for_route, Duration::from_nanos(u64::MAX));
            let key = affinity.unwrap_or(7);
            assert_eq!(read.terms.offer.header, RequestHeader { headers_length: 3, key, ..header });
            assert_eq!(line.len(), 2);
            for cut in 0..PREFIX_LENGTH + 3 {
                assert!(
                    BacklogRecord::decode(&bytes[..cut], BacklogPlace::take(&line, Priority::High)).is_none(),
                    "cut at {cut}"
                );
            }
            bytes[REQUEST_HEADER_LENGTH + 16] = 3;
            assert!(
                BacklogRecord::decode(&bytes, BacklogPlace::take(&line, Priority::High)).is_none(),
                "no such retry"
            );
        }
        assert_eq!(line.len(), 0, "every place was left");
    }
}
