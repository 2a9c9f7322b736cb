//! Status of a reply, and the bodies of replies other than the handler's.

use crate::message::version::OLDER_MAX;
use crate::outcome::Refusal;
use gapless_log::call_table::STATUS_MAX;

/// Base of status words for a reply in an older version than the caller's; the newest older version is 1.
const OLDER: u32 = 64;
const _: () = assert!(OLDER as usize + OLDER_MAX <= STATUS_MAX as usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum ReplyStatus {
    Reply = 0,
    /// Refusal by the handler: u32 code, u32 length of the text, text, payload.
    Refused = 1,
    TooLate = 2,
    /// The body is the reason; the handler has not begun.
    BadRequest = 3,
    /// The body is the panic's text.
    Panicked = 4,
    /// The body is the other route's name.
    Forward = 5,
    /// The body is the reason.
    BadReply = 6,
    /// Before the handler began.
    NotServed = 7,
    /// A relay ends the call; the body is the error, see [`ended`](super::ended).
    Ended = 8,
}

impl ReplyStatus {
    pub(crate) const fn of_reply(older: u8) -> u32 {
        assert!(older as usize <= OLDER_MAX);
        if older == 0 { Self::Reply as u32 } else { OLDER + older as u32 }
    }

    /// Reads a status word: the status, and for a reply the index of the caller's older version, or 0.
    pub(crate) const fn read(word: u32) -> Option<(Self, u8)> {
        if word > OLDER && word <= STATUS_MAX {
            return Some((Self::Reply, (word - OLDER) as u8));
        }
        match Self::from_value(word) {
            Some(status) => Some((status, 0)),
            None => None,
        }
    }

    const fn from_value(value: u32) -> Option<Self> {
        Some(match value {
            0 => Self::Reply,
            1 => Self::Refused,
            2 => Self::TooLate,
            3 => Self::BadRequest,
            4 => Self::Panicked,
            5 => Self::Forward,
            6 => Self::BadReply,
            7 => Self::NotServed,
            8 => Self::Ended,
            _ => return None,
        })
    }
}

const REFUSAL_PREFIX_LENGTH: usize = 8;

/// Appends a refusal's body of `length_max` bytes at most, and never less than its code. The payload is whole or
/// dropped; the text is truncated to the remaining room.
pub(crate) fn write_refusal(refusal: &Refusal, length_max: usize, into: &mut Vec<u8>) {
    let room = length_max.saturating_sub(REFUSAL_PREFIX_LENGTH);
    let payload = if refusal.payload.len() <= room { &*refusal.payload } else { &[] };
    let text = cut(refusal.text.as_bytes(), room - payload.len());
    into.extend_from_slice(&refusal.code.to_le_bytes());
    into.extend_from_slice(&(text.len() as u32).to_le_bytes());
    into.extend_from_slice(text);
    into.extend_from_slice(payload);
}

pub(crate) fn cut(text: &[u8], length_max: usize) -> &[u8] {
    let is_between = |end: usize| text.get(end).is_none_or(|byte| byte & 0xc0 != 0x80);
    let end = (0..=length_max.min(text.len())).rev().find(|end| is_between(*end));
    &text[..end.unwrap_or(0)]
}

pub(crate) fn read_refusal(body: &[u8]) -> Option<Refusal> {
    let (code, rest) = body.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (text, payload) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let text = String::from_utf8_lossy(text).into_owned();
    Some(Refusal { code: u32::from_le_bytes(*code), text, payload: payload.to_vec() })
}

/// Reads and writes a refusal's body, for the fuzzer.
#[doc(hidden)]
#[must_use]
pub fn refusal_again(body: &[u8]) -> Option<Vec<u8>> {
    let mut again = Vec::new();
    write_refusal(&read_refusal(body)?, usize::MAX, &mut again);
    Some(again)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_round_trip() {
        let refusal = Refusal { code: 7, text: "zu spät".to_owned(), payload: vec![1, 2, 3] };
        let mut body = Vec::new();
        write_refusal(&refusal, usize::MAX, &mut body);
        assert_eq!(read_refusal(&body), Some(refusal));
        let shortest = body.len() - 3;
        for cut in 0..shortest {
            assert_eq!(read_refusal(&body[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn long_refusal_is_truncated() {
        let refusal = Refusal { code: 7, text: "zu spät".to_owned(), payload: vec![1, 2, 3] };
        for (length_max, text, payload_length) in [
            (19, "zu spät", 3),
            (18, "zu spä", 3),
            (17, "zu sp", 3),
            (16, "zu sp", 3),
            (11, "", 3),
            (10, "zu", 0),
            (8, "", 0),
        ] {
            let mut body = Vec::new();
            write_refusal(&refusal, length_max, &mut body);
            assert!(body.len() <= length_max);
            let read = read_refusal(&body).unwrap();
            assert_eq!((read.code, &*read.text, read.payload.len()), (7, text, payload_length), "{length_max}");
        }
    }

    #[test]
    fn statuses_are_distinct() {
        for value in 0..9 {
            assert_eq!(ReplyStatus::read(value).map(|(status, older)| (status as u32, older)), Some((value, 0)));
        }
        for older in 0..=OLDER_MAX as u8 {
            assert_eq!(ReplyStatus::read(ReplyStatus::of_reply(older)), Some((ReplyStatus::Reply, older)));
        }
        for value in [9, OLDER, STATUS_MAX + 1, u32::MAX] {
            assert_eq!(ReplyStatus::read(value), None);
        }
    }
}
