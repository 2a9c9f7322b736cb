//! Payloads longer than a record: [`split`] makes segments, [`Assemblies`] joins them. Segments arrive in order, from
//! one producer in one partition: a missing one never comes.

use crate::record::SegmentPlace;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Cuts a payload of more than `segment_bytes` into segments with places; a shorter one stays whole, without a place.
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
    /// Announced bytes of all unfinished payloads of one sender.
    pub sender_bytes: u64,
    /// Announced bytes of all unfinished payloads.
    pub total_bytes: u64,
    /// Unfinished payloads of one sender.
    pub sender_payloads: usize,
    /// Unfinished payloads of all senders.
    pub total_payloads: usize,
}

/// Sender and correlation of an unfinished payload.
pub type AssemblyKey = (String, String);

/// An unusable segment; nothing of its payload is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentFault<T> {
    Known(T, String),
    Unknown(String),
}

#[derive(Debug)]
struct PayloadAssembly<T> {
    head: T,
    place: SegmentPlace,
    bytes: Vec<u8>,
    expires_ns: u64,
}

/// Unfinished payloads, each with what its first segment said of it.
#[derive(Debug)]
pub struct Assemblies<T> {
    limits: AssemblyLimits,
    unfinished: HashMap<Arc<AssemblyKey>, PayloadAssembly<T>>,
    expiries: BTreeSet<(u64, Arc<AssemblyKey>)>,
    announced: HashMap<String, AnnouncedLoad>,
    announced_total: AnnouncedLoad,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AnnouncedLoad {
    payloads: usize,
    bytes: u64,
}

impl AnnouncedLoad {
    const fn add(&mut self, bytes: u64) {
        self.payloads += 1;
        self.bytes += bytes;
    }

    const fn remove(&mut self, bytes: u64) {
        self.payloads -= 1;
        self.bytes -= bytes;
    }
}

impl<T> Assemblies<T> {
    /// An empty set with these limits.
    #[must_use]
    pub fn new(limits: AssemblyLimits) -> Self {
        Self {
            limits,
            unfinished: HashMap::new(),
            expiries: BTreeSet::new(),
            announced: HashMap::new(),
            announced_total: AnnouncedLoad::default(),
        }
    }

    /// Takes a first segment.
    ///
    /// # Errors
    /// The head back, with the limit that refuses it. A payload of the same name that had begun is given up.
    pub fn begin(
        &mut self,
        key: AssemblyKey,
        head: T,
        place: SegmentPlace,
        bytes: Vec<u8>,
        expires_ns: u64,
    ) -> Result<(), (T, String)> {
        self.remove(&key);
        let AssemblyLimits { payload_bytes, sender_bytes, total_bytes, sender_payloads, total_payloads } = self.limits;
        if place.total_bytes > payload_bytes {
            let reason = format!("a payload of {} bytes; at most {payload_bytes} are allowed", place.total_bytes);
            return Err((head, reason));
        }
        let announced = self.announced.get(&key.0).copied().unwrap_or_default();
        if announced.payloads >= sender_payloads || announced.bytes + place.total_bytes > sender_bytes {
            let reason = format!(
                "{} has {sender_payloads} unfinished payloads, or more than {sender_bytes} bytes of them",
                key.0
            );
            return Err((head, reason));
        }
        let total = self.announced_total;
        if total.payloads >= total_payloads || total.bytes + place.total_bytes > total_bytes {
            let reason = format!(
                "all senders have {total_payloads} unfinished payloads, or more than {total_bytes} bytes of them"
            );
            return Err((head, reason));
        }
        // More bytes than announced have no place in the last segment.
        if bytes.is_empty() || bytes.len() as u64 >= place.total_bytes {
            return Err((head, "its first segment has a wrong length".to_owned()));
        }
        self.announced.entry(key.0.clone()).or_default().add(place.total_bytes);
        self.announced_total.add(place.total_bytes);
        let key = Arc::new(key);
        self.expiries.insert((expires_ns, key.clone()));
        self.unfinished.insert(key, PayloadAssembly { head, place, bytes, expires_ns });
        Ok(())
    }

    /// Takes a further segment; returns the payload if it is whole.
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
            return Err(SegmentFault::Unknown(reason));
        };
        let expected = SegmentPlace { index: assembly.place.index + 1, ..assembly.place };
        let length = (assembly.bytes.len() + bytes.len()) as u64;
        let is_last = place.index + 1 == place.count;
        let is_length_right = if is_last { length == place.total_bytes } else { length < place.total_bytes };
        let reason = if place == assembly.place {
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
        Err(SegmentFault::Known(head, reason))
    }

    /// Gives one up.
    pub fn give_up(&mut self, key: &AssemblyKey) -> Option<T> {
        self.remove(key).map(|assembly| assembly.head)
    }

    /// Gives up those of a sender.
    pub fn give_up_sender(&mut self, sender: &str) -> Vec<(AssemblyKey, T)> {
        let mut keys: Vec<_> = self.unfinished.keys().filter(|key| key.0 == sender).cloned().collect();
        keys.sort();
        keys.iter().filter_map(|key| self.remove(key).map(|assembly| ((**key).clone(), assembly.head))).collect()
    }

    /// Gives up expired payloads.
    pub fn expire(&mut self, now_ns: u64) -> Vec<(AssemblyKey, T)> {
        let mut expired = Vec::new();
        while let Some((expires_ns, key)) = self.expiries.first().cloned()
            && expires_ns <= now_ns
        {
            expired.extend(self.remove(&key).map(|assembly| ((*key).clone(), assembly.head)));
        }
        expired
    }

    /// Next expiry, ns of the monotonic clock.
    #[must_use]
    pub fn next_expiry_ns(&self) -> Option<u64> {
        self.expiries.first().map(|(expires_ns, _)| *expires_ns)
    }

    /// True if no payload is unfinished.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.unfinished.is_empty()
    }

    fn remove(&mut self, key: &AssemblyKey) -> Option<PayloadAssembly<T>> {
        let (key, assembly) = self.unfinished.remove_entry(key)?;
        let bytes = assembly.place.total_bytes;
        self.announced_total.remove(bytes);
        if let Some(announced) = self.announced.get_mut(&key.0) {
            announced.remove(bytes);
            if announced.payloads == 0 {
                self.announced.remove(&key.0);
            }
        }
        self.expiries.remove(&(assembly.expires_ns, key));
        Some(assembly)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: AssemblyLimits = AssemblyLimits {
        payload_bytes: 100,
        sender_bytes: 150,
        total_bytes: 220,
        sender_payloads: 3,
        total_payloads: 5,
    };

    fn key(name: &str) -> AssemblyKey {
        ("a".to_owned(), name.to_owned())
    }

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
        assert_eq!(fault, Err(SegmentFault::Known(7, "segment 2 of 3 is missing".to_owned())));
        let fault = begun("x", &segments).add(&key("y"), segments[1].0, &segments[1].1);
        let reason = "segment 2 of 3 came without those before it".to_owned();
        assert_eq!(fault, Err(SegmentFault::Unknown(reason)));
        let fault = begun("x", &segments).add(&key("x"), segments[1].0, &[0; 20]);
        assert_eq!(fault, Err(SegmentFault::Known(7, "segment 2 of 3 has a wrong length".to_owned())));
    }

    #[test]
    fn limits_are_those_of_announced_bytes() {
        let place = |total_bytes| SegmentPlace { index: 0, count: 2, total_bytes };
        let mut assemblies = Assemblies::new(LIMITS);
        let (_, reason) = assemblies.begin(key("x"), 7, place(101), vec![1], 50).unwrap_err();
        assert_eq!(reason, "a payload of 101 bytes; at most 100 are allowed");
        assemblies.begin(key("x"), 7, place(100), vec![1], 50).unwrap();
        let (head, reason) = assemblies.begin(key("y"), 8, place(51), vec![1], 50).unwrap_err();
        assert_eq!((head, &*reason), (8, "a has 3 unfinished payloads, or more than 150 bytes of them"));
        assemblies.begin(("b".to_owned(), "y".to_owned()), 8, place(100), vec![1], 60).unwrap();
        let (_, reason) = assemblies.begin(("c".to_owned(), "y".to_owned()), 8, place(21), vec![1], 60).unwrap_err();
        assert_eq!(reason, "all senders have 5 unfinished payloads, or more than 220 bytes of them");
        assemblies.begin(key("x"), 9, place(99), vec![1], 50).unwrap();
        assert_eq!(assemblies.next_expiry_ns(), Some(50));
        assert_eq!((assemblies.expire(49), assemblies.expire(50)), (vec![], vec![(key("x"), 9)]));
        assert_eq!(assemblies.give_up_sender("b").len(), 1);
        assert!(assemblies.is_empty() && assemblies.announced.is_empty());
        assert!(assemblies.announced_total == AnnouncedLoad::default() && assemblies.expiries.is_empty());
    }

    #[test]
    fn many_short_payloads_have_a_limit() {
        let place = SegmentPlace { index: 0, count: 2, total_bytes: 2 };
        let mut assemblies = Assemblies::new(LIMITS);
        let mut begin = |sender: &str, name: u8| {
            let key = (sender.to_owned(), name.to_string());
            assemblies.begin(key, name, place, vec![1], 90 - u64::from(name)).map_err(|(_, reason)| reason)
        };
        (0..3).for_each(|name| begin("a", name).unwrap());
        assert!(begin("a", 3).is_err_and(|reason| reason.starts_with("a has 3 unfinished payloads")));
        assert_eq!((begin("b", 4), begin("b", 5)), (Ok(()), Ok(())));
        assert!(begin("c", 6).is_err_and(|reason| reason.starts_with("all senders have 5 unfinished payloads")));
        let names = |expired: Vec<(AssemblyKey, u8)>| expired.into_iter().map(|(_, name)| name).collect::<Vec<_>>();
        assert_eq!(names(assemblies.expire(88)), [5, 4, 2]);
        assert_eq!(assemblies.next_expiry_ns(), Some(89));
        assert_eq!(names(assemblies.give_up_sender("a")), [0, 1]);
        assert!(assemblies.is_empty() && assemblies.announced.is_empty() && assemblies.expiries.is_empty());
    }
}
