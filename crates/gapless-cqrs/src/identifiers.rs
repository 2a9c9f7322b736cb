//! `Identifiers`: the identifiers that callers have given their commands, remembered for a time and up to a number.

use crate::transaction::CommandIdentity;
use gapless_transport::token::random_token;
use gapless_wire::fields::{FieldError, FieldReader, FieldWriter};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

/// How many are remembered, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentifierLimits {
    /// So many at most; the oldest is forgotten first.
    pub count_max: usize,
    /// For so long of the stream's time, ns.
    pub age_max_ns: u64,
}

impl Default for IdentifierLimits {
    /// A million, for a day.
    fn default() -> Self {
        Self { count_max: 1_000_000, age_max_ns: 24 * 3600 * 1_000_000_000 }
    }
}

/// A new identifier for a command, which nobody else has: a UUID of version 7 (RFC 9562), as its number. Its first 48 bits are the milliseconds since
/// the epoch by the clock of this machine, so that those of later milliseconds are larger; 74 bits are random.
///
/// ```
/// let identifier = gapless_cqrs::time_ordered_identifier();
/// assert_eq!((identifier >> 76 & 0xf, identifier >> 62 & 0b11), (7, 0b10));
/// ```
#[must_use]
pub fn time_ordered_identifier() -> u128 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let bits = since_epoch.as_millis() << 80 | random_token() >> 48;
    bits & !(0xf << 76 | 0b11 << 62) | 7 << 76 | 0b10 << 62
}

/// Whether there was a command with an identifier.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Remembered<'a> {
    No,
    /// The same one, with this answer.
    Same(&'a [u8]),
    Other,
}

/// See the head of the file.
pub(crate) struct Identifiers {
    limits: IdentifierLimits,
    kept: FxHashMap<u128, Kept>,
    /// In the order in which they came, with the time of the stream.
    order: VecDeque<(u64, u128)>,
}

struct Kept {
    hash: u64,
    answer: Box<[u8]>,
}

impl Identifiers {
    pub fn new(limits: IdentifierLimits) -> Self {
        Self { limits, kept: FxHashMap::default(), order: VecDeque::new() }
    }

    /// What is known of an identifier at this time of the stream.
    pub fn find(&mut self, identity: CommandIdentity, now_ns: u64) -> Remembered<'_> {
        self.forget(now_ns, self.limits.count_max);
        match self.kept.get(&identity.identifier) {
            None => Remembered::No,
            Some(kept) if kept.hash == identity.hash => Remembered::Same(&kept.answer),
            Some(_) => Remembered::Other,
        }
    }

    /// Remembers one that is not known.
    pub fn remember(&mut self, identity: CommandIdentity, now_ns: u64, answer: &[u8]) {
        let Some(left) = self.limits.count_max.checked_sub(1) else { return };
        self.forget(now_ns, left);
        self.kept.insert(identity.identifier, Kept { hash: identity.hash, answer: answer.into() });
        self.order.push_back((now_ns, identity.identifier));
    }

    /// Appends all of them: u64 number; each: u64 time, u128 identifier, u64 hash, u32 length, answer; in the order in which they came.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut out = FieldWriter::new(out);
        out.u64(self.order.len() as u64);
        for (at_ns, identifier) in &self.order {
            let Kept { hash, answer } = &self.kept[identifier];
            out.u64(*at_ns).bytes(&identifier.to_le_bytes()).u64(*hash).u32(answer.len() as u32).bytes(answer);
        }
    }

    /// Puts those in the place of its own that [`Identifiers::write`] has written at the beginning of the bytes.
    ///
    /// # Errors
    /// What is wrong with the bytes; it is then empty.
    pub fn read(&mut self, fields: &mut FieldReader<'_>) -> Result<(), FieldError> {
        self.kept.clear();
        self.order.clear();
        let mut read = Self::new(self.limits);
        for _ in 0..fields.u64("the number of identifiers")? {
            let at_ns = fields.u64("an identifier's time")?;
            let identifier = u128::from_le_bytes(fields.array("an identifier")?);
            let hash = fields.u64("an identifier's hash")?;
            let length = fields.u32("the length of an answer")?;
            let answer = fields.bytes(length as usize, "an answer")?.into();
            if read.kept.insert(identifier, Kept { hash, answer }).is_some() {
                return Err(FieldError::Value { what: "an identifier that was there before" });
            }
            read.order.push_back((at_ns, identifier));
        }
        *self = read;
        Ok(())
    }

    fn forget(&mut self, now_ns: u64, count_max: usize) {
        while let Some(&(at_ns, identifier)) = self.order.front()
            && (self.order.len() > count_max || now_ns.saturating_sub(at_ns) > self.limits.age_max_ns)
        {
            self.order.pop_front();
            self.kept.remove(&identifier);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_read_as_they_were_written() {
        let mut identifiers = Identifiers::new(IdentifierLimits::default());
        (0..5_u8).for_each(|number| {
            let identity = CommandIdentity { identifier: u128::from(number) << 70, hash: number.into() };
            identifiers.remember(identity, number.into(), &vec![number; number.into()]);
        });
        let mut bytes = Vec::new();
        identifiers.write(&mut bytes);
        let mut read = Identifiers::new(IdentifierLimits::default());
        read.read(&mut FieldReader::new(&bytes)).unwrap();
        let mut again = Vec::new();
        read.write(&mut again);
        assert_eq!(again, bytes);
        assert_eq!(read.find(CommandIdentity { identifier: 3 << 70, hash: 3 }, 4), Remembered::Same(&[3; 3]));
        for cut in 0..bytes.len() {
            assert!(read.read(&mut FieldReader::new(&bytes[..cut])).is_err(), "cut at {cut}");
            assert!(read.order.is_empty() && read.kept.is_empty());
        }
    }

    #[test]
    fn they_are_remembered_for_a_time_and_up_to_a_number() {
        let mut identifiers = Identifiers::new(IdentifierLimits { count_max: 2, age_max_ns: 100 });
        let identity = |identifier, hash| CommandIdentity { identifier, hash };
        identifiers.remember(identity(1, 10), 0, b"one");
        identifiers.remember(identity(2, 20), 50, b"two");
        assert_eq!(identifiers.find(identity(1, 10), 100), Remembered::Same(b"one"));
        assert_eq!(identifiers.find(identity(1, 11), 100), Remembered::Other);
        assert_eq!(identifiers.find(identity(1, 10), 101), Remembered::No);
        assert_eq!(identifiers.find(identity(2, 20), 101), Remembered::Same(b"two"));
        identifiers.remember(identity(3, 30), 102, b"three");
        identifiers.remember(identity(4, 40), 103, b"four");
        assert_eq!(identifiers.find(identity(2, 20), 103), Remembered::No);
        assert_eq!(identifiers.find(identity(3, 30), 103), Remembered::Same(b"three"));
        let mut none = Identifiers::new(IdentifierLimits { count_max: 0, age_max_ns: 100 });
        none.remember(identity(1, 10), 0, b"one");
        assert_eq!(none.find(identity(1, 10), 0), Remembered::No);
    }
}
