//! The layouts are those of `gapless-engine/src/transaction_layout.rs`, `gapless-cqrs/src/envelope.rs` and
//! `gapless-cqrs/src/transaction.rs`.

const OUTCOME_MAX: u8 = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    pub sequence: u64,
    pub last_sequence: u64,
    /// Time of its first frame, ns since the epoch.
    pub time_ns: u64,
    pub session: u64,
    pub number: u64,
    pub decision: Decision,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Answered {
        answer: Answer,
        /// `None` also for a repeat.
        identity: Option<Identity>,
        metadata: Vec<u8>,
        events: Vec<Event>,
    },
    /// Undecodable, or its handler has panicked.
    Failed { code: u32, text: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 0 accepted, 1 refused, 2 not found, 3 exists already, 4 conflict, 5 identifier reused, 6 quarantined, 7 condition
    /// failed, 8 intercepted.
    pub outcome: u8,
    /// Sequence of the first transaction for a repeat.
    pub sequence: u64,
    /// Version of the aggregate after the transaction.
    pub aggregate_version: u64,
    pub events: u32,
    pub rest: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    pub identifier: u128,
    pub hash: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub event: u32,
    pub version: u16,
    /// Key of the type; 0 without an aggregate.
    pub aggregate: u32,
    pub id: Vec<u8>,
    pub tags: Vec<(String, Vec<u8>)>,
    pub payload: Vec<u8>,
}

impl Decision {
    /// Decodes a complete transaction.
    ///
    /// # Errors
    /// The bytes are invalid.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut rest = ByteReader(bytes);
        let (version, outcome) = (rest.u8()?, rest.u8()?);
        let (_encoding, schema_or_code) = (rest.u16()?, rest.u32()?);
        let (_hash, _layout) = (rest.u64()?, rest.u32()?);
        let (length, notices, timers) = (rest.u32()?, rest.u32()?, rest.u32()?);
        if version != 1 {
            return Err(format!("a transaction of version {version}"));
        }
        let body = rest.take(length as usize)?;
        match outcome {
            0 if (notices, timers) == (0, 0) => {}
            0 => return Err(format!("{notices} notices and {timers} timers: a command bus has none")),
            1 | 2 if rest.0.is_empty() => {
                let text = String::from_utf8(body.to_vec()).map_err(|_| "a refusal that is no text")?;
                return Ok(Self::Failed { code: schema_or_code, text });
            }
            other => return Err(format!("the outcome {other} with {} bytes behind it", rest.0.len())),
        }
        let answer = Answer::read(body)?;
        let Changes { identity, metadata, events } = Changes::read(rest)?;
        Ok(Self::Answered { answer, identity, metadata, events })
    }
}

impl Answer {
    fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut rest = ByteReader(bytes);
        let (version, outcome) = (rest.u8()?, rest.u8()?);
        let (_message_version, _message) = (rest.u16()?, rest.u32()?);
        let (sequence, aggregate_version) = (rest.u64()?, rest.u64()?);
        let (events, _zero) = (rest.u32()?, rest.u32()?);
        if version != 1 || outcome > OUTCOME_MAX {
            return Err(format!("an answer of version {version} with the outcome {outcome}"));
        }
        Ok(Self { outcome, sequence, aggregate_version, events, rest: rest.0.to_vec() })
    }
}

#[derive(Default)]
struct Changes {
    identity: Option<Identity>,
    metadata: Vec<u8>,
    events: Vec<Event>,
}

impl Changes {
    /// Empty for a command without events and identifier.
    fn read(mut rest: ByteReader<'_>) -> Result<Self, String> {
        if rest.0.is_empty() {
            return Ok(Self::default());
        }
        let (version, flags, count) = (rest.u8()?, rest.u8()?, rest.u16()?);
        if version != 1 || flags > 3 {
            return Err(format!("events of version {version} with flags {flags}"));
        }
        let mut changes = Self::default();
        if flags & 1 != 0 {
            changes.identity = Some(Identity { identifier: rest.u128()?, hash: rest.u64()? });
        }
        if flags & 2 != 0 {
            let length = rest.u16()?;
            changes.metadata = rest.take(length.into())?.to_vec();
        }
        for _ in 0..count {
            changes.events.push(Event::read(&mut rest)?);
        }
        match rest.0 {
            [] => Ok(changes),
            rest => Err(format!("{} bytes stand behind the last event", rest.len())),
        }
    }
}

impl Event {
    fn read(rest: &mut ByteReader<'_>) -> Result<Self, String> {
        let (event, version) = (rest.u32()?, rest.u16()?);
        let (id_length, zero) = (rest.u8()?, rest.u8()?);
        let (aggregate, tags_length, payload_length) = (rest.u32()?, rest.u32()?, rest.u32()?);
        if zero != 0 {
            return Err(format!("{zero} stands in an event's head where 0 is due"));
        }
        let id = rest.take(id_length.into())?.to_vec();
        let mut named = ByteReader(rest.take(tags_length as usize)?);
        let mut tags = Vec::new();
        while !named.0.is_empty() {
            let length = named.u8()?;
            let name = String::from_utf8(named.take(length.into())?.to_vec()).map_err(|_| "a tag's name is no text")?;
            let length = named.u8()?;
            tags.push((name, named.take(length.into())?.to_vec()));
        }
        let payload = rest.take(payload_length as usize)?.to_vec();
        Ok(Self { event, version, aggregate, id, tags, payload })
    }
}

/// Numbers are little-endian.
struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let left = self.0.len();
        let (taken, rest) =
            self.0.split_at_checked(length).ok_or_else(|| format!("{length} bytes are due, and {left} are there"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], String> {
        Ok(self.take(LENGTH)?.try_into().expect("so many were taken"))
    }

    fn u8(&mut self) -> Result<u8, String> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Result<u16, String> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.array().map(u64::from_le_bytes)
    }

    fn u128(&mut self) -> Result<u128, String> {
        self.array().map(u128::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_outcomes_are_read() {
        let answer = |outcome: u8| {
            let mut bytes = vec![0; 32];
            (bytes[0], bytes[1]) = (1, outcome);
            Answer::read(&bytes)
        };
        // Numbers of `AnswerKind` in `gapless-cqrs/src/envelope.rs`.
        for outcome in 0..=8 {
            assert_eq!(answer(outcome).map(|answer| answer.outcome), Ok(outcome));
        }
        assert!(answer(9).is_err());
    }
}
