//! Messages of a snapshot transfer, byte by byte (little-endian). No I/O; safe on any bytes: a decoded message is
//! valid, or an error is returned.
//!
//! ```text
//! request   u8 1: what is there?   u8 1: with a service's snapshot, 0: without
//!           u8 2: a piece          u64 transfer, u8 part, u64 offset
//! answer    u8 1: an offer         u64 transfer, u64 base sequence, u64 base hash, log position, members, file of the state,
//!                                  u8 1: with a snapshot, 0: without; its file
//!           u8 2: a piece          u64 transfer, u8 part, u64 offset, u32 CRC-32C of the bytes in the frames part
//!           u8 3: no               text, UTF-8, at most 200 bytes
//! file      u64 sequence, u64 length in bytes
//! part      1 the sequencer's state, 2 the service's snapshot
//! ```
//!
//! Log position and members are as in records of consensus.

use crate::consensus::fields::{FieldError, Fields, put_position, put_u64};
use crate::consensus::members::put_members;
use crate::consensus::{LogPosition, Members};

/// Bytes; a state is read as a whole.
pub const STATE_LENGTH_MAX: u64 = 1 << 30;
/// Longest snapshot that is accepted, bytes.
pub const SNAPSHOT_LENGTH_MAX: u64 = 1 << 42;
/// Longest text of a refusal, bytes.
pub const TEXT_LENGTH_MAX: usize = 200;

const OFFER: u8 = 1;
const PIECE: u8 = 2;
const REFUSED: u8 = 3;

/// The bytes are no message of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotTransferError {
    #[error("a message of a snapshot transfer is cut short after {found_bytes} bytes")]
    Short { found_bytes: usize },
    /// A field has an invalid value.
    #[error("a message of a snapshot transfer has a wrong {0}")]
    Field(&'static str),
}

/// A file of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TransferFile {
    State = 1,
    Snapshot = 2,
}

/// A member's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferRequest {
    Offer { with_snapshot: bool },
    Piece(PieceLocation),
}

/// Place of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceLocation {
    pub transfer: u64,
    /// File of the piece.
    pub part: TransferFile,
    /// In the file, bytes.
    pub offset: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferedFile {
    /// Last covered frame.
    pub sequence: u64,
    /// Bytes.
    pub length: u64,
}

/// Frame after which a journal may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalBase {
    pub sequence: u64,
    /// Chain after it.
    pub hash: u64,
}

/// Content of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferOffer {
    /// Given by the sender.
    pub transfer: u64,
    /// Frames after it are needed.
    pub base: JournalBase,
    /// Last needed frame; everything up to it is committed.
    pub position: LogPosition,
    /// Members at that position.
    pub members: Members,
    /// Sequencer's state, between base and log position.
    pub state: OfferedFile,
    /// Service's snapshot, between base and log position.
    pub snapshot: Option<OfferedFile>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferAnswer {
    Offer(Box<TransferOffer>),
    /// A piece and its CRC-32C; its bytes are in the frames part.
    Piece(PieceLocation, u32),
    Refused(String),
}

impl TransferFile {
    fn take(fields: &mut Fields<'_>) -> Result<Self, FieldError> {
        match fields.u8("part")? {
            1 => Ok(Self::State),
            2 => Ok(Self::Snapshot),
            _ => Err(FieldError::Value { what: "part" }),
        }
    }
}

impl PieceLocation {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_u64(bytes, self.transfer);
        bytes.push(self.part as u8);
        put_u64(bytes, self.offset);
    }

    fn take(fields: &mut Fields<'_>) -> Result<Self, FieldError> {
        Ok(Self {
            transfer: fields.u64("transfer")?,
            part: TransferFile::take(fields)?,
            offset: fields.number("offset")?,
        })
    }
}

impl OfferedFile {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_u64(bytes, self.sequence);
        put_u64(bytes, self.length);
    }

    fn take(fields: &mut Fields<'_>, length_max: u64) -> Result<Self, FieldError> {
        let (sequence, length) = (fields.number("sequence of a file")?, fields.u64("length of a file")?);
        let is_right = (1..=length_max).contains(&length);
        if is_right { Ok(Self { sequence, length }) } else { Err(FieldError::Value { what: "length of a file" }) }
    }
}

impl TransferOffer {
    fn put(&self, bytes: &mut Vec<u8>) {
        for value in [self.transfer, self.base.sequence, self.base.hash] {
            put_u64(bytes, value);
        }
        put_position(bytes, &self.position);
        put_members(bytes, &self.members);
        self.state.put(bytes);
        bytes.push(u8::from(self.snapshot.is_some()));
        if let Some(snapshot) = &self.snapshot {
            snapshot.put(bytes);
        }
    }

    fn take(fields: &mut Fields<'_>) -> Result<Self, FieldError> {
        let transfer = fields.u64("transfer")?;
        let base = JournalBase { sequence: fields.number("sequence of a base")?, hash: fields.u64("hash of a base")? };
        let (position, members) = (fields.position()?, fields.members()?);
        let state = OfferedFile::take(fields, STATE_LENGTH_MAX)?;
        let has_snapshot = fields.flag("snapshot")?;
        let snapshot = has_snapshot.then(|| OfferedFile::take(fields, SNAPSHOT_LENGTH_MAX)).transpose()?;
        let is_between = |file: &OfferedFile| (base.sequence..=position.sequence).contains(&file.sequence);
        if !is_between(&state) || !snapshot.as_ref().is_none_or(is_between) {
            return Err(FieldError::Value { what: "file: it is not between base and log position" });
        }
        if position.index == 0 || position.term == 0 || members.is_empty() {
            return Err(FieldError::Value { what: "log position" });
        }
        if base.sequence == position.sequence && base.hash != position.hash {
            return Err(FieldError::Value { what: "hash" });
        }
        Ok(Self { transfer, base, position, members, state, snapshot })
    }
}

fn read<T>(
    bytes: &[u8],
    take: impl FnOnce(&mut Fields<'_>) -> Result<T, FieldError>,
) -> Result<T, SnapshotTransferError> {
    let mut fields = Fields::new(bytes);
    let taken = take(&mut fields).and_then(|taken| fields.end().map(|()| taken));
    taken.map_err(|error| match error {
        FieldError::Short { .. } => SnapshotTransferError::Short { found_bytes: bytes.len() },
        FieldError::Value { what } => SnapshotTransferError::Field(what),
    })
}

impl TransferRequest {
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Offer { with_snapshot } => vec![OFFER, u8::from(*with_snapshot)],
            Self::Piece(piece) => {
                let mut bytes = vec![PIECE];
                piece.put(&mut bytes);
                bytes
            }
        }
    }

    /// Decodes a request.
    ///
    /// # Errors
    /// The bytes are not a request.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SnapshotTransferError> {
        read(bytes, |fields| match fields.u8("kind")? {
            OFFER => Ok(Self::Offer { with_snapshot: fields.flag("wish for a snapshot")? }),
            PIECE => Ok(Self::Piece(PieceLocation::take(fields)?)),
            _ => Err(FieldError::Value { what: "kind" }),
        })
    }
}

impl TransferAnswer {
    /// A text that is too long is cut.
    #[must_use]
    pub fn refuse(reason: &str) -> Self {
        let end = (0..=TEXT_LENGTH_MAX.min(reason.len())).rev().find(|end| reason.is_char_boundary(*end));
        Self::Refused(reason[..end.unwrap_or(0)].to_owned())
    }

    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Offer(offer) => {
                bytes.push(OFFER);
                offer.put(&mut bytes);
            }
            Self::Piece(piece, crc) => {
                bytes.push(PIECE);
                piece.put(&mut bytes);
                bytes.extend_from_slice(&crc.to_le_bytes());
            }
            Self::Refused(text) => {
                bytes.push(REFUSED);
                bytes.extend_from_slice(text.as_bytes());
            }
        }
        bytes
    }

    /// Decodes a request.
    ///
    /// # Errors
    /// The bytes are not an answer.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SnapshotTransferError> {
        read(bytes, |fields| match fields.u8("kind")? {
            OFFER => Ok(Self::Offer(Box::new(TransferOffer::take(fields)?))),
            PIECE => Ok(Self::Piece(PieceLocation::take(fields)?, fields.u32("checksum")?)),
            REFUSED => {
                let length = fields.rest().len();
                let text = std::str::from_utf8(fields.bytes(length, "text")?);
                let text = text.ok().filter(|text| text.len() <= TEXT_LENGTH_MAX);
                text.map(|text| Self::Refused(text.to_owned())).ok_or(FieldError::Value { what: "text" })
            }
            _ => Err(FieldError::Value { what: "kind" }),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use crate::consensus::MemberId;

    fn offer() -> TransferOffer {
        TransferOffer {
            transfer: 7,
            base: JournalBase { sequence: 100, hash: 5 },
            position: LogPosition { index: 9, term: 3, sequence: 250, hash: 6 },
            members: Members::of_voters(&[1, 2, 3].map(|number| MemberId::new(number).unwrap())),
            state: OfferedFile { sequence: 100, length: 68 },
            snapshot: Some(OfferedFile { sequence: 250, length: 1 << 33 }),
        }
    }

    #[test]
    fn messages_round_trip() {
        let piece = PieceLocation { transfer: 7, part: TransferFile::Snapshot, offset: 1 << 20 };
        for request in [TransferRequest::Offer { with_snapshot: true }, TransferRequest::Piece(piece)] {
            let bytes = request.to_bytes();
            assert_eq!(TransferRequest::from_bytes(&bytes), Ok(request));
            assert!((0..bytes.len()).all(|length| TransferRequest::from_bytes(&bytes[..length]).is_err()));
            assert!(TransferRequest::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
        }
        let without = TransferOffer { snapshot: None, ..offer() };
        for answer in [
            TransferAnswer::Offer(Box::new(offer())),
            TransferAnswer::Offer(Box::new(without)),
            TransferAnswer::Piece(piece, 9),
        ] {
            let bytes = answer.to_bytes();
            assert_eq!(TransferAnswer::from_bytes(&bytes), Ok(answer));
            assert!((0..bytes.len()).all(|length| TransferAnswer::from_bytes(&bytes[..length]).is_err()));
            assert!(TransferAnswer::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
        }
        let no = TransferAnswer::refuse(&"ä".repeat(150));
        assert_eq!(TransferAnswer::from_bytes(&no.to_bytes()), Ok(no));
    }

    #[test]
    fn impossible_offer_is_refused() {
        let wrong: [fn(&mut TransferOffer); 8] = [
            |offer| offer.state.sequence = 99,
            |offer| offer.state.sequence = 251,
            |offer| offer.state.length = STATE_LENGTH_MAX + 1,
            |offer| offer.snapshot = Some(OfferedFile { sequence: 251, length: 1 }),
            |offer| offer.snapshot = Some(OfferedFile { sequence: 250, length: 0 }),
            |offer| offer.members = Members::default(),
            |offer| offer.position.index = 0,
            |offer| (offer.base.sequence, offer.state.sequence) = (250, 250),
        ];
        for change in wrong {
            let mut offer = offer();
            change(&mut offer);
            let read = TransferAnswer::from_bytes(&TransferAnswer::Offer(Box::new(offer)).to_bytes());
            assert!(matches!(read, Err(SnapshotTransferError::Field(_))), "{read:?}");
        }
    }
}
