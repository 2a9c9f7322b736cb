//! Payloads longer than a record: [`split`] makes segments, [`Assemblies`] puts them together again.
//!
//! All segments of a payload come from one producer in one partition, so they arrive in their order: a number that is missing
//! when a later one comes will never come.

use crate::record::SegmentPlace;
use std::collections::HashMap;

/// Cuts a payload of more than `segment_bytes` into segments, each with its place; a shorter one stays whole, without a place.
#[must_use]
pub fn split(payload: Vec<u8>, segment_bytes: usize) -> Vec<(Option<SegmentPlace>, Vec<u8>)> {
    if payload.len() <= segment_bytes {
        return vec![(None, payload)];
    }
    let (count, total_bytes) = (payload.len().div_ceil(segment_bytes) as u32, payload.len() as u64);
    let places = (0..).map(|index| SegmentPlace { index, count, total_bytes });
    payload.chunks(segment_bytes).zip(places).map(|(bytes, place)| (Some(place), bytes.to_vec())).collect()
}

/// Limits of payloads that are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssemblyLimits {
    /// Bytes of one payload.
    pub payload_bytes: u64,
    /// Bytes of all unfinished payloads of one sender, as they were announced.
    pub sender_bytes: u64,
    /// Bytes of all unfinished payloads of all senders, as they were announced.
    pub total_bytes: u64,
}

/// Name of an unfinished payload: its sender, and its correlation.
pub type AssemblyKey = (String, String);

/// A segment that cannot be used. Nothing of its payload is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentFault<T> {
    /// The payload had begun.
    OfKnown(T, String),
    /// No earlier segment of the payload is known.
    OfUnknown(String),
}

#[derive(Debug)]
struct Assembly<T> {
    head: T,
    place: SegmentPlace,
    bytes: Vec<u8>,
    /// Time at which it is given up, ns of the monotonic clock.
    expires_ns: u64,
}

/// Unfinished payloads, each with what its first segment said of it.
#[derive(Debug)]
pub struct Assemblies<T> {
    limits: AssemblyLimits,
    unfinished: HashMap<AssemblyKey, Assembly<T>>,
    /// Announced bytes of the unfinished payloads of each sender, and of all.
    announced: HashMap<String, u64>,
    announced_total: u64,
}

impl<T> Assemblies<T> {
    /// An empty set with these limits.
    #[must_use]
    pub fn new(limits: AssemblyLimits) -> Self {
        Self { limits, unfinished: HashMap::new(), announced: HashMap::new(), announced_total: 0 }
    }

    /// The first segment has come.
    ///
    /// # Errors
    /// The head back, with the limit that does not let it in. A payload of the same name that had begun is given up.
    pub fn begin(
        &mut self,
        key: AssemblyKey,
        head: T,
        place: SegmentPlace,
        bytes: Vec<u8>,
        expires_ns: u64,
    ) -> Result<(), (T, String)> {
        self.remove(&key);
        let AssemblyLimits { payload_bytes, sender_bytes, total_bytes } = self.limits;
        if place.total_bytes > payload_bytes {
            let reason = format!("a payload of {} bytes; at most {payload_bytes} are allowed", place.total_bytes);
            return Err((head, reason));
        }
        let announced = self.announced.get(&key.0).copied().unwrap_or(0);
        if announced + place.total_bytes > sender_bytes {
            let reason = format!("unfinished payloads of {} have more than {sender_bytes} bytes", key.0);
            return Err((head, reason));
        }
        if self.announced_total + place.total_bytes > total_bytes {
            return Err((head, format!("unfinished payloads of all senders have more than {total_bytes} bytes")));
        }
        // More bytes than announced have no place in the last segment.
        if bytes.is_empty() || bytes.len() as u64 >= place.total_bytes {
            return Err((head, "its first segment has a wrong length".to_owned()));
        }
        *self.announced.entry(key.0.clone()).or_insert(0) += place.total_bytes;
        self.announced_total += place.total_bytes;
        self.unfinished.insert(key, Assembly { head, place, bytes, expires_ns });
        Ok(())
    }

    /// A further segment has come. The whole payload, if it was the last.
    ///
    /// # Errors
    /// [`SegmentFault`]: one is missing, or does not fit.
    pub fn add(
        &mut self,
        key: &AssemblyKey,
        place: SegmentPlace,
        bytes: &[u8],
    ) -> Result<Option<(T, Vec<u8>)>, SegmentFault<T>> {
        let Some(assembly) = self.unfinished.get_mut(key) else {
            let reason = format!("segment {} of {} came without those before it", place.index + 1, place.count);
            return Err(SegmentFault::OfUnknown(reason));
        };
        let expected = SegmentPlace { index: assembly.place.index + 1, ..assembly.place };
        let length = (assembly.bytes.len() + bytes.len()) as u64;
        let is_last = place.index + 1 == place.count;
        let is_length_right = if is_last { length == place.total_bytes } else { length < place.total_bytes };
        let reason = if place == assembly.place {
            // A repeated record.
            return Ok(None);
        } else if place != expected {
            format!("segment {} of {} is missing", expected.index + 1, expected.count)
        } else if !is_length_right || bytes.is_empty() {
            format!("segment {} of {} has a wrong length", place.index + 1, place.count)
        } else {
            assembly.bytes.extend_from_slice(bytes);
            assembly.place = place;
            return Ok(if is_last { self.remove(key).map(|whole| (whole.head, whole.bytes)) } else { None });
        };
        let head = self.remove(key).expect("it is there").head;
        Err(SegmentFault::OfKnown(head, reason))
    }

    /// Gives one up.
    pub fn give_up(&mut self, key: &AssemblyKey) -> Option<T> {
        self.remove(key).map(|assembly| assembly.head)
    }

    /// Gives up those of a sender.
    pub fn give_up_of(&mut self, sender: &str) -> Vec<(AssemblyKey, T)> {
        self.take(|key, _| key.0 == sender)
    }

    /// Gives up those whose time is over.
    pub fn expire(&mut self, now_ns: u64) -> Vec<(AssemblyKey, T)> {
        self.take(|_, assembly| assembly.expires_ns <= now_ns)
    }

    /// Time at which the next one is given up, ns of the monotonic clock.
    #[must_use]
    pub fn next_expiry_ns(&self) -> Option<u64> {
        self.unfinished.values().map(|assembly| assembly.expires_ns).min()
    }

    /// True if no payload is unfinished.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.unfinished.is_empty()
    }

    fn take(&mut self, is_over: impl Fn(&AssemblyKey, &Assembly<T>) -> bool) -> Vec<(AssemblyKey, T)> {
        let over = self.unfinished.iter().filter(|(key, assembly)| is_over(key, assembly));
        let mut keys: Vec<_> = over.map(|(key, _)| key.clone()).collect();
        keys.sort();
        keys.into_iter().filter_map(|key| self.remove(&key).map(|assembly| (key, assembly.head))).collect()
    }

    fn remove(&mut self, key: &AssemblyKey) -> Option<Assembly<T>> {
        let assembly = self.unfinished.remove(key)?;
        self.announced_total -= assembly.place.total_bytes;
        if let Some(announced) = self.announced.get_mut(&key.0) {
            *announced -= assembly.place.total_bytes;
            if *announced == 0 {
                self.announced.remove(&key.0);
            }
        }
        Some(assembly)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: AssemblyLimits = AssemblyLimits { payload_bytes: 100, sender_bytes: 150, total_bytes: 220 };

    fn key(name: &str) -> AssemblyKey {
        ("a".to_owned(), name.to_owned())
    }

    /// Segments with a place.
    fn segments(length: u8, segment_bytes: usize) -> Vec<(SegmentPlace, Vec<u8>)> {
        let split = split((0..length).collect(), segment_bytes);
        split.into_iter().map(|(place, bytes)| (place.unwrap(), bytes)).collect()
    }

    fn begun(name: &str, segments: &[(SegmentPlace, Vec<u8>)]) -> Assemblies<u8> {
        let mut assemblies = Assemblies::new(LIMITS);
        assemblies.begin(key(name), 7, segments[0].0, segments[0].1.clone(), 50).unwrap();
        assemblies
    }

    #[test]
    fn payloads_come_together_again() {
        assert_eq!(split(vec![1, 2], 2), [(None, vec![1, 2])]);
        for (length, segment_bytes) in [(3, 2), (100, 7), (100, 99), (100, 50)] {
            let segments = segments(length, segment_bytes);
            let mut assemblies = begun("x", &segments);
            let (last, middle) = segments[1..].split_last().unwrap();
            for (place, bytes) in middle {
                assert_eq!(assemblies.add(&key("x"), *place, bytes), Ok(None));
                assert_eq!(assemblies.add(&key("x"), *place, bytes), Ok(None), "a repeated record");
            }
            let whole = Some((7, (0..length).collect()));
            assert_eq!(assemblies.add(&key("x"), last.0, &last.1), Ok(whole));
            assert!(assemblies.is_empty() && assemblies.announced.is_empty());
        }
    }

    #[test]
    fn a_missing_segment_is_known_at_once() {
        let segments = segments(30, 10);
        let fault = begun("x", &segments).add(&key("x"), segments[2].0, &segments[2].1);
        assert_eq!(fault, Err(SegmentFault::OfKnown(7, "segment 2 of 3 is missing".to_owned())));
        let fault = begun("x", &segments).add(&key("y"), segments[1].0, &segments[1].1);
        let reason = "segment 2 of 3 came without those before it".to_owned();
        assert_eq!(fault, Err(SegmentFault::OfUnknown(reason)));
        let fault = begun("x", &segments).add(&key("x"), segments[1].0, &[0; 20]);
        assert_eq!(fault, Err(SegmentFault::OfKnown(7, "segment 2 of 3 has a wrong length".to_owned())));
    }

    #[test]
    fn limits_are_those_of_announced_bytes() {
        let place = |total_bytes| SegmentPlace { index: 0, count: 2, total_bytes };
        let mut assemblies = Assemblies::new(LIMITS);
        let (_, reason) = assemblies.begin(key("x"), 7, place(101), vec![1], 50).unwrap_err();
        assert_eq!(reason, "a payload of 101 bytes; at most 100 are allowed");
        assemblies.begin(key("x"), 7, place(100), vec![1], 50).unwrap();
        let (head, reason) = assemblies.begin(key("y"), 8, place(51), vec![1], 50).unwrap_err();
        assert_eq!((head, &*reason), (8, "unfinished payloads of a have more than 150 bytes"));
        assemblies.begin(("b".to_owned(), "y".to_owned()), 8, place(100), vec![1], 60).unwrap();
        let (_, reason) = assemblies.begin(("c".to_owned(), "y".to_owned()), 8, place(21), vec![1], 60).unwrap_err();
        assert_eq!(reason, "unfinished payloads of all senders have more than 220 bytes");
        // Again under the same name: the first is given up.
        assemblies.begin(key("x"), 9, place(99), vec![1], 50).unwrap();
        assert_eq!(assemblies.next_expiry_ns(), Some(50));
        assert_eq!((assemblies.expire(49), assemblies.expire(50)), (vec![], vec![(key("x"), 9)]));
        assert_eq!(assemblies.give_up_of("b").len(), 1);
        assert!(assemblies.is_empty() && assemblies.announced.is_empty());
        assert_eq!(assemblies.announced_total, 0);
    }
}
