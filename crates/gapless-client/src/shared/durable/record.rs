//! Records of the log of kept commands: their bytes.
//!
//! ```text
//! header    0  magic     8 bytes
//!           8  u32       version
//!          12  u32       CRC-32C of everything before
//!
//! record    0  u32       length of the body
//!           4  u32       CRC-32C of the length, so that a damaged one does not look like an incomplete record
//!           8  u32       CRC-32C of the body
//!          12  body      kind (u8), fields
//! ```
//! All numbers little-endian.

use crate::CommandNumber;
use crate::polled::{MessageType, SavedSession};
use crate::shared::call_state::Ending;
use gapless_wire::Encoding;
use gapless_wire::checksum::crc32c;
use gapless_wire::control::RefusalCode;
use gapless_wire::fields::{FieldError, FieldReader, FieldWriter, u32_at};
use std::borrow::Cow;

pub(super) const HEADER_LENGTH: usize = 16;
const MAGIC: [u8; 8] = *b"GAPOUTBX";
const VERSION: u32 = 1;
const HEAD_LENGTH: usize = 12;

const SESSION: u8 = 1;
const KEPT: u8 = 2;
const NUMBERED: u8 = 3;
const SETTLED: u8 = 4;
const FORGOTTEN: u8 = 5;

const REPLY: u8 = 1;
const REFUSED: u8 = 2;
const UNKNOWN: u8 = 3;
const INVALID: u8 = 4;

/// Number of a command that has none, because an earlier one had no effect.
pub(super) const UNNUMBERED: CommandNumber = CommandNumber { session: 0, session_seq: 0 };

/// One record, with the payload of a command in place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record<'a> {
    /// The session from here on.
    Session(SavedSession),
    Kept {
        id: u64,
        message: MessageType,
        payload: &'a [u8],
    },
    /// Written before the command is sent.
    Numbered {
        id: u64,
        number: CommandNumber,
    },
    Settled {
        id: u64,
        ending: Cow<'a, Ending>,
    },
    Forgotten {
        id: u64,
    },
}

pub(super) fn header() -> [u8; HEADER_LENGTH] {
    let mut bytes = [0; HEADER_LENGTH];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let sum = crc32c(&bytes[..12]);
    bytes[12..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// # Errors
/// Reason why these bytes begin no log.
pub(super) fn check_header(bytes: &[u8]) -> Result<(), String> {
    match bytes.first_chunk::<HEADER_LENGTH>() {
        Some(found) if *found == header() => Ok(()),
        Some(found) if found[..8] == MAGIC && crc32c(&found[..12]) == u32_at(found, 12) => {
            Err(format!("version {} found, {VERSION} expected; use the program that wrote it", u32_at(found, 8)))
        }
        _ => Err("the header of a file of kept commands is expected".to_owned()),
    }
}

impl<'a> Record<'a> {
    /// Appends the record, and returns its length.
    pub fn append_to(&self, out: &mut Vec<u8>) -> u64 {
        let start = out.len();
        out.extend_from_slice(&[0; HEAD_LENGTH]);
        let mut writer = FieldWriter::new(out);
        match self {
            Self::Session(session) => _ = writer.u8(SESSION).bytes(&session.to_bytes()),
            Self::Kept { id, message, payload } => {
                write_message(writer.u8(KEPT).u64(*id), *message).bytes(payload);
            }
            Self::Numbered { id, number } => _ = writer.u8(NUMBERED).u64(*id).bytes(&number.to_bytes()),
            Self::Settled { id, ending } => write_ending(writer.u8(SETTLED).u64(*id), ending),
            Self::Forgotten { id } => _ = writer.u8(FORGOTTEN).u64(*id),
        }
        let body = out.len() - start - HEAD_LENGTH;
        let length = u32::try_from(body).expect("a message is shorter than 4 GiB").to_le_bytes();
        let body_sum = crc32c(&out[start + HEAD_LENGTH..]);
        out[start..start + 4].copy_from_slice(&length);
        out[start + 4..start + 8].copy_from_slice(&crc32c(&length).to_le_bytes());
        out[start + 8..start + HEAD_LENGTH].copy_from_slice(&body_sum.to_le_bytes());
        (out.len() - start) as u64
    }

    /// Parses the first record, and returns it with its length; `None` if it is incomplete.
    ///
    /// # Errors
    /// The damage.
    pub fn first_of(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, String> {
        let Some(head) = bytes.first_chunk::<HEAD_LENGTH>() else { return Ok(None) };
        if crc32c(&head[..4]) != u32_at(head, 4) {
            return Err("the length of a record is damaged".to_owned());
        }
        let end = HEAD_LENGTH + u32_at(head, 0) as usize;
        let Some(body) = bytes.get(HEAD_LENGTH..end) else { return Ok(None) };
        if crc32c(body) != u32_at(head, 8) {
            return Err("a record is damaged".to_owned());
        }
        Ok(Some((Self::read(body)?, end)))
    }

    fn read(body: &'a [u8]) -> Result<Self, String> {
        let mut reader = FieldReader::new(body);
        let record = match field(reader.u8("kind"))? {
            SESSION => {
                let session = SavedSession::from_bytes(reader.rest()).map_err(|error| error.to_string())?;
                return Ok(Self::Session(session));
            }
            KEPT => {
                let (id, message) = (field(reader.u64("id"))?, read_message(&mut reader)?);
                return Ok(Self::Kept { id, message, payload: reader.rest() });
            }
            NUMBERED => Self::Numbered { id: field(reader.u64("id"))?, number: read_number(&mut reader)? },
            SETTLED => {
                let id = field(reader.u64("id"))?;
                return Ok(Self::Settled { id, ending: Cow::Owned(read_ending(&mut reader)?) });
            }
            FORGOTTEN => Self::Forgotten { id: field(reader.u64("id"))? },
            kind => return Err(format!("a record is of kind {kind}, which is unknown")),
        };
        match reader.rest() {
            [] => Ok(record),
            rest => Err(format!("a record has {} bytes more than expected", rest.len())),
        }
    }
}

fn field<T>(read: Result<T, FieldError>) -> Result<T, String> {
    read.map_err(|error| error.to_string())
}

fn write_message<'a, 'b>(writer: &'b mut FieldWriter<'a>, message: MessageType) -> &'b mut FieldWriter<'a> {
    writer.u32(message.schema).u8(message.encoding as u8)
}

fn read_message(reader: &mut FieldReader<'_>) -> Result<MessageType, String> {
    let (schema, encoding) = (field(reader.u32("schema"))?, field(reader.u8("encoding"))?);
    let known = Encoding::from_flags(u16::from(encoding));
    if known as u8 != encoding {
        return Err(format!("encoding {encoding} is unknown"));
    }
    Ok(MessageType { schema, encoding: known })
}

fn read_number(reader: &mut FieldReader<'_>) -> Result<CommandNumber, String> {
    field(reader.array("number")).map(CommandNumber::from_bytes)
}

fn write_ending(writer: &mut FieldWriter<'_>, ending: &Ending) {
    match ending {
        Ending::Reply { sequence, message, payload } => {
            write_message(writer.u8(REPLY).u64(*sequence), *message).bytes(payload);
        }
        Ending::Refused { number, sequence, code, detail, text } => {
            writer.u8(REFUSED).bytes(&number.to_bytes()).u64(*sequence).u32(*code as u32).u64(*detail);
            writer.bytes(text.as_bytes());
        }
        Ending::Unknown { number, reason } => {
            writer.u8(UNKNOWN).bytes(&number.to_bytes()).bytes(reason.as_bytes());
        }
        Ending::Invalid { reason } => _ = writer.u8(INVALID).bytes(reason.as_bytes()),
        Ending::NotSent { .. } | Ending::Answer(_) => unreachable!("it settles no command"),
    }
}

fn read_ending(reader: &mut FieldReader<'_>) -> Result<Ending, String> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|error| error.to_string());
    Ok(match field(reader.u8("ending"))? {
        REPLY => {
            let (sequence, message) = (field(reader.u64("sequence"))?, read_message(reader)?);
            Ending::Reply { sequence, message, payload: reader.rest().to_vec() }
        }
        REFUSED => {
            let (number, sequence) = (read_number(reader)?, field(reader.u64("sequence"))?);
            let code = field(reader.u32("code"))?;
            let code = RefusalCode::from_value(code).ok_or_else(|| format!("refusal code {code} is unknown"))?;
            let detail = field(reader.u64("detail"))?;
            Ending::Refused { number, sequence, code, detail, text: text(reader.rest())? }
        }
        UNKNOWN => Ending::Unknown { number: read_number(reader)?, reason: text(reader.rest())? },
        INVALID => Ending::Invalid { reason: text(reader.rest())? },
        kind => return Err(format!("an outcome is of kind {kind}, which is unknown")),
    })
}
