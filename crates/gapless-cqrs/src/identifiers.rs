//! `Identifiers`: remembers the identifiers of commands, limited by age and number.

use crate::short_bytes::ShortBytes;
use crate::transaction::CommandIdentity;
use gapless_transport::token::random_token;
use gapless_wire::fields::{FieldError, FieldReader, FieldWriter};
use gapless_wire::split_mix;
use hashbrown::HashTable;
use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

/// Limits of the remembered identifiers of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentifierLimits {
    /// Most; the oldest is forgotten first.
    pub count_max: usize,
    /// Largest age, in stream time, ns.
    pub age_max_ns: u64,
}

impl Default for IdentifierLimits {
    /// A million, for a day.
    fn default() -> Self {
        Self { count_max: 1_000_000, age_max_ns: 24 * 3600 * 1_000_000_000 }
    }
}

/// A new, unique identifier for a command: a UUID of version 7 (RFC 9562), as a number. The first 48 bits are the
/// milliseconds since the epoch by this machine's clock, so that later identifiers are larger; 74 bits are random.
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

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum IdentifierLookup<'a> {
    Unknown,
    Same(&'a [u8]),
    Other,
}

/// In order of arrival: all that a follower needs.
pub(crate) struct IdentifierLog {
    limits: IdentifierLimits,
    remembered: VecDeque<RememberedIdentifier>,
    forgotten: u64,
}

struct RememberedIdentifier {
    identity: CommandIdentity,
    at_ns: u64,
    answer: RememberedAnswer,
}

/// An answer that is a head alone fits.
type RememberedAnswer = ShortBytes<32>;

impl IdentifierLog {
    pub const fn new(limits: IdentifierLimits) -> Self {
        Self { limits, remembered: VecDeque::new(), forgotten: 0 }
    }

    /// Remembers an unknown identifier.
    #[inline]
    pub fn remember(&mut self, identity: CommandIdentity, now_ns: u64, answer: &[u8]) {
        if self.limits.count_max > 0 {
            while self.forget_one(now_ns, self.limits.count_max - 1).is_some() {}
            self.remembered.push_back(RememberedIdentifier {
                identity,
                at_ns: now_ns,
                answer: RememberedAnswer::new(answer),
            });
        }
    }

    #[inline]
    fn forget_one(&mut self, now_ns: u64, count_max: usize) -> Option<CommandIdentity> {
        let (length, age_max_ns) = (self.remembered.len(), self.limits.age_max_ns);
        let is_over =
            |oldest: &mut RememberedIdentifier| length > count_max || now_ns.saturating_sub(oldest.at_ns) > age_max_ns;
        let oldest = self.remembered.pop_front_if(is_over)?;
        self.forgotten += 1;
        Some(oldest.identity)
    }

    /// u64 number; each, in order of arrival: u64 time, u128 identifier, u64 hash, u32 length, answer.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut out = FieldWriter::new(out);
        out.u64(self.remembered.len() as u64);
        for RememberedIdentifier { identity: CommandIdentity { identifier, hash }, at_ns, answer } in &self.remembered {
            out.u64(*at_ns).bytes(&identifier.to_le_bytes()).u64(*hash).u32(answer.len() as u32).bytes(answer);
        }
    }

    /// Reads the output of [`IdentifierLog::write`].
    ///
    /// # Errors
    /// The first fault found. The log is empty then.
    pub fn read(&mut self, fields: &mut FieldReader<'_>) -> Result<(), FieldError> {
        *self = Self::new(self.limits);
        let mut read = Self::new(self.limits);
        for _ in 0..fields.u64("the number of identifiers")? {
            let at_ns = fields.u64("an identifier's time")?;
            let identifier = u128::from_le_bytes(fields.array("an identifier")?);
            let hash = fields.u64("an identifier's hash")?;
            let length = fields.u32("the length of an answer")?;
            let answer = RememberedAnswer::new(fields.bytes(length as usize, "an answer")?);
            read.remembered.push_back(RememberedIdentifier {
                identity: CommandIdentity { identifier, hash },
                at_ns,
                answer,
            });
        }
        *self = read;
        Ok(())
    }
}

pub(crate) struct Identifiers {
    log: IdentifierLog,
    /// Arrival numbers modulo 2^32, enough for those that are kept.
    numbers: HashTable<u32>,
}

#[inline]
fn hash_of(identifier: u128) -> u64 {
    split_mix::finish(identifier as u64 ^ split_mix::finish((identifier >> 64) as u64))
}

impl Identifiers {
    pub const fn new(limits: IdentifierLimits) -> Self {
        Self { log: IdentifierLog::new(limits), numbers: HashTable::new() }
    }

    /// Looks up at a stream time.
    pub fn find(&mut self, identity: CommandIdentity, now_ns: u64) -> IdentifierLookup<'_> {
        self.forget(now_ns, self.log.limits.count_max);
        let log = &self.log;
        let is_its = |number: &u32| log.at(*number).identity.identifier == identity.identifier;
        match self.numbers.find(hash_of(identity.identifier), is_its) {
            None => IdentifierLookup::Unknown,
            Some(number) => {
                let remembered = log.at(*number);
                match remembered.identity.hash == identity.hash {
                    true => IdentifierLookup::Same(&remembered.answer),
                    false => IdentifierLookup::Other,
                }
            }
        }
    }

    /// Remembers an unknown identifier.
    pub fn remember(&mut self, identity: CommandIdentity, now_ns: u64, answer: &[u8]) {
        let Some(left) = self.log.limits.count_max.checked_sub(1) else { return };
        self.forget(now_ns, left);
        self.log.remember(identity, now_ns, answer);
        let (log, number) = (&self.log, self.log.next_number().wrapping_sub(1));
        let rehash = |number: &u32| hash_of(log.at(*number).identity.identifier);
        self.numbers.insert_unique(hash_of(identity.identifier), number, rehash);
    }

    /// Reads the output of [`IdentifierLog::write`].
    ///
    /// # Errors
    /// The first fault found. No identifier is remembered then.
    pub fn read(&mut self, fields: &mut FieldReader<'_>) -> Result<(), FieldError> {
        self.numbers.clear();
        self.log.read(fields)?;
        let log = &self.log;
        let rehash = |number: &u32| hash_of(log.at(*number).identity.identifier);
        for (number, remembered) in (0..).zip(&log.remembered) {
            let identifier = remembered.identity.identifier;
            let is_its = |number: &u32| log.at(*number).identity.identifier == identifier;
            if self.numbers.find(hash_of(identifier), is_its).is_some() {
                self.numbers.clear();
                self.log = IdentifierLog::new(self.log.limits);
                return Err(FieldError::Value { what: "an identifier that was there before" });
            }
            self.numbers.insert_unique(hash_of(identifier), number, rehash);
        }
        Ok(())
    }

    fn forget(&mut self, now_ns: u64, count_max: usize) {
        loop {
            let number = self.log.forgotten as u32;
            let Some(forgotten) = self.log.forget_one(now_ns, count_max) else { return };
            let found = self.numbers.find_entry(hash_of(forgotten.identifier), |other| *other == number);
            found.expect("what is kept is found").remove();
        }
    }
}

impl IdentifierLog {
    #[inline]
    fn next_number(&self) -> u32 {
        (self.forgotten as u32).wrapping_add(self.remembered.len() as u32)
    }

    #[inline]
    fn at(&self, number: u32) -> &RememberedIdentifier {
        &self.remembered[number.wrapping_sub(self.forgotten as u32) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_round_trip() {
        let mut identifiers = IdentifierLog::new(IdentifierLimits::default());
        (0..60_u8).for_each(|number| {
            let identity = CommandIdentity { identifier: u128::from(number) << 70, hash: number.into() };
            identifiers.remember(identity, number.into(), &vec![number; number.into()]);
        });
        let mut bytes = Vec::new();
        identifiers.write(&mut bytes);
        let mut read = Identifiers::new(IdentifierLimits::default());
        read.read(&mut FieldReader::new(&bytes)).unwrap();
        let mut again = Vec::new();
        read.log.write(&mut again);
        assert_eq!(again, bytes);
        assert_eq!(read.find(CommandIdentity { identifier: 3 << 70, hash: 3 }, 4), IdentifierLookup::Same(&[3; 3]));
        for cut in 0..bytes.len() {
            assert!(read.read(&mut FieldReader::new(&bytes[..cut])).is_err(), "cut at {cut}");
            assert!(read.log.remembered.is_empty() && read.numbers.is_empty());
        }
    }

    #[test]
    fn duplicate_identifier_is_an_error() {
        let mut log = IdentifierLog::new(IdentifierLimits::default());
        (0..2).for_each(|hash| log.remember(CommandIdentity { identifier: 7, hash }, 1, b""));
        let (mut bytes, mut read) = (Vec::new(), Identifiers::new(IdentifierLimits::default()));
        log.write(&mut bytes);
        assert!(read.read(&mut FieldReader::new(&bytes)).is_err() && read.log.remembered.is_empty());
    }

    #[test]
    fn latest_identifiers_are_found() {
        let mut identifiers = Identifiers::new(IdentifierLimits { count_max: 1000, age_max_ns: u64::MAX });
        let identity = |number: u64| CommandIdentity {
            identifier: u128::from(number % 7) << 64 | u128::from(number),
            hash: number,
        };
        for number in 0..10_000 {
            identifiers.remember(identity(number), number, &number.to_le_bytes());
            let oldest = number.saturating_sub(999);
            for known in [oldest, number, (oldest + number) / 2] {
                assert_eq!(identifiers.find(identity(known), number), IdentifierLookup::Same(&known.to_le_bytes()));
            }
            if let Some(forgotten) = oldest.checked_sub(1) {
                assert_eq!(identifiers.find(identity(forgotten), number), IdentifierLookup::Unknown);
            }
        }
    }

    #[test]
    fn identifiers_expire_by_age_and_count() {
        let mut identifiers = Identifiers::new(IdentifierLimits { count_max: 2, age_max_ns: 100 });
        let identity = |identifier, hash| CommandIdentity { identifier, hash };
        identifiers.remember(identity(1, 10), 0, b"one");
        identifiers.remember(identity(2, 20), 50, b"two");
        assert_eq!(identifiers.find(identity(1, 10), 100), IdentifierLookup::Same(b"one"));
        assert_eq!(identifiers.find(identity(1, 11), 100), IdentifierLookup::Other);
        assert_eq!(identifiers.find(identity(1, 10), 101), IdentifierLookup::Unknown);
        assert_eq!(identifiers.find(identity(2, 20), 101), IdentifierLookup::Same(b"two"));
        identifiers.remember(identity(3, 30), 102, b"three");
        identifiers.remember(identity(4, 40), 103, b"four");
        assert_eq!(identifiers.find(identity(2, 20), 103), IdentifierLookup::Unknown);
        assert_eq!(identifiers.find(identity(3, 30), 103), IdentifierLookup::Same(b"three"));
        let mut none = Identifiers::new(IdentifierLimits { count_max: 0, age_max_ns: 100 });
        none.remember(identity(1, 10), 0, b"one");
        assert_eq!(none.find(identity(1, 10), 0), IdentifierLookup::Unknown);
    }
}
