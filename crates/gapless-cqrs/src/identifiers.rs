//! `Identifiers`: the identifiers that callers have given their commands, remembered for a time and up to a number.

use crate::short_bytes::ShortBytes;
use crate::transaction::CommandIdentity;
use gapless_transport::token::random_token;
use gapless_wire::fields::{FieldError, FieldReader, FieldWriter};
use gapless_wire::split_mix;
use hashbrown::HashTable;
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

/// Those that are remembered, in the order in which they came: all that a member needs who does not decide.
pub(crate) struct IdentifierLog {
    limits: IdentifierLimits,
    kept: VecDeque<Kept>,
    /// So many were forgotten.
    forgotten: u64,
}

struct Kept {
    identity: CommandIdentity,
    /// Of the stream.
    at_ns: u64,
    answer: KeptAnswer,
}

/// Most answers are a head alone, of so many bytes.
type KeptAnswer = ShortBytes<32>;

impl IdentifierLog {
    pub const fn new(limits: IdentifierLimits) -> Self {
        Self { limits, kept: VecDeque::new(), forgotten: 0 }
    }

    /// Remembers one that is not known.
    #[inline]
    pub fn remember(&mut self, identity: CommandIdentity, now_ns: u64, answer: &[u8]) {
        if self.limits.count_max > 0 {
            while self.forget_one(now_ns, self.limits.count_max - 1).is_some() {}
            self.kept.push_back(Kept { identity, at_ns: now_ns, answer: KeptAnswer::new(answer) });
        }
    }

    /// Forgets the oldest if it is too old, or if there are more than so many.
    #[inline]
    fn forget_one(&mut self, now_ns: u64, count_max: usize) -> Option<CommandIdentity> {
        let (length, age_max_ns) = (self.kept.len(), self.limits.age_max_ns);
        let is_over = |oldest: &mut Kept| length > count_max || now_ns.saturating_sub(oldest.at_ns) > age_max_ns;
        let oldest = self.kept.pop_front_if(is_over)?;
        self.forgotten += 1;
        Some(oldest.identity)
    }

    /// Appends all of them: u64 number; each: u64 time, u128 identifier, u64 hash, u32 length, answer; in the order in which they came.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut out = FieldWriter::new(out);
        out.u64(self.kept.len() as u64);
        for Kept { identity: CommandIdentity { identifier, hash }, at_ns, answer } in &self.kept {
            out.u64(*at_ns).bytes(&identifier.to_le_bytes()).u64(*hash).u32(answer.len() as u32).bytes(answer);
        }
    }

    /// Puts those in the place of its own that [`IdentifierLog::write`] has written at the beginning of the bytes.
    ///
    /// # Errors
    /// What is wrong with the bytes; it is then empty.
    pub fn read(&mut self, fields: &mut FieldReader<'_>) -> Result<(), FieldError> {
        *self = Self::new(self.limits);
        let mut read = Self::new(self.limits);
        for _ in 0..fields.u64("the number of identifiers")? {
            let at_ns = fields.u64("an identifier's time")?;
            let identifier = u128::from_le_bytes(fields.array("an identifier")?);
            let hash = fields.u64("an identifier's hash")?;
            let length = fields.u32("the length of an answer")?;
            let answer = KeptAnswer::new(fields.bytes(length as usize, "an answer")?);
            read.kept.push_back(Kept { identity: CommandIdentity { identifier, hash }, at_ns, answer });
        }
        *self = read;
        Ok(())
    }
}

/// Those that are remembered, to be found by who decides.
pub(crate) struct Identifiers {
    log: IdentifierLog,
    /// By identifier, how many came before it, modulo 2^32: no more are kept.
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

    /// What is known of an identifier at this time of the stream.
    pub fn find(&mut self, identity: CommandIdentity, now_ns: u64) -> Remembered<'_> {
        self.forget(now_ns, self.log.limits.count_max);
        let log = &self.log;
        let is_its = |number: &u32| log.at(*number).identity.identifier == identity.identifier;
        match self.numbers.find(hash_of(identity.identifier), is_its) {
            None => Remembered::No,
            Some(number) => {
                let kept = log.at(*number);
                match kept.identity.hash == identity.hash {
                    true => Remembered::Same(&kept.answer),
                    false => Remembered::Other,
                }
            }
        }
    }

    /// Remembers one that is not known.
    pub fn remember(&mut self, identity: CommandIdentity, now_ns: u64, answer: &[u8]) {
        let Some(left) = self.log.limits.count_max.checked_sub(1) else { return };
        self.forget(now_ns, left);
        self.log.remember(identity, now_ns, answer);
        let (log, number) = (&self.log, self.log.next_number().wrapping_sub(1));
        let rehash = |number: &u32| hash_of(log.at(*number).identity.identifier);
        self.numbers.insert_unique(hash_of(identity.identifier), number, rehash);
    }

    /// Puts those in the place of its own that [`IdentifierLog::write`] has written at the beginning of the bytes.
    ///
    /// # Errors
    /// What is wrong with the bytes; it is then empty.
    pub fn read(&mut self, fields: &mut FieldReader<'_>) -> Result<(), FieldError> {
        self.numbers.clear();
        self.log.read(fields)?;
        let log = &self.log;
        let rehash = |number: &u32| hash_of(log.at(*number).identity.identifier);
        for (number, kept) in (0..).zip(&log.kept) {
            let identifier = kept.identity.identifier;
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
    /// Of the next one that comes, modulo 2^32.
    #[inline]
    fn next_number(&self) -> u32 {
        (self.forgotten as u32).wrapping_add(self.kept.len() as u32)
    }

    #[inline]
    fn at(&self, number: u32) -> &Kept {
        &self.kept[number.wrapping_sub(self.forgotten as u32) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_read_as_they_were_written() {
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
        assert_eq!(read.find(CommandIdentity { identifier: 3 << 70, hash: 3 }, 4), Remembered::Same(&[3; 3]));
        for cut in 0..bytes.len() {
            assert!(read.read(&mut FieldReader::new(&bytes[..cut])).is_err(), "cut at {cut}");
            assert!(read.log.kept.is_empty() && read.numbers.is_empty());
        }
    }

    #[test]
    fn one_that_comes_twice_is_an_error() {
        let mut log = IdentifierLog::new(IdentifierLimits::default());
        (0..2).for_each(|hash| log.remember(CommandIdentity { identifier: 7, hash }, 1, b""));
        let (mut bytes, mut read) = (Vec::new(), Identifiers::new(IdentifierLimits::default()));
        log.write(&mut bytes);
        assert!(read.read(&mut FieldReader::new(&bytes)).is_err() && read.log.kept.is_empty());
    }

    #[test]
    fn the_last_ones_are_found_among_very_many() {
        let mut identifiers = Identifiers::new(IdentifierLimits { count_max: 1000, age_max_ns: u64::MAX });
        let identity = |number: u64| CommandIdentity {
            identifier: u128::from(number % 7) << 64 | u128::from(number),
            hash: number,
        };
        for number in 0..10_000 {
            identifiers.remember(identity(number), number, &number.to_le_bytes());
            let oldest = number.saturating_sub(999);
            for known in [oldest, number, (oldest + number) / 2] {
                assert_eq!(identifiers.find(identity(known), number), Remembered::Same(&known.to_le_bytes()));
            }
            if let Some(forgotten) = oldest.checked_sub(1) {
                assert_eq!(identifiers.find(identity(forgotten), number), Remembered::No);
            }
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
