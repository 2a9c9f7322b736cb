//! Operations of the text protocol that a server sends (docs.nats.io, "Client Protocol").
//!
//! ```text
//! INFO {json}␍␊   PING␍␊   PONG␍␊   +OK␍␊   -ERR 'text'␍␊
//! MSG subject sid [reply] bytes␍␊payload␍␊
//! ```

use crate::peers::{PeerError, Result};

pub(super) const PROTOCOL: &str = "NATS";
/// Head of INFO.
const HEAD_LENGTH_MAX: usize = 16 << 10;
/// The greatest limit that a server accepts.
const PAYLOAD_LENGTH_MAX: usize = 64 << 20;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum NatsOperation<'a> {
    Message { subject: &'a str, reply: Option<&'a str>, payload: &'a [u8] },
    Ping,
    Pong,
    Other,
}

/// First operation and its length; `None` while it is incomplete.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<(NatsOperation<'_>, usize)>> {
    let Some(end) = bytes.windows(2).take(HEAD_LENGTH_MAX).position(|two| two == b"\r\n") else {
        if bytes.len() > HEAD_LENGTH_MAX {
            return Err(PeerError::protocol(
                PROTOCOL,
                "the end of a line",
                format!("{} bytes without one", bytes.len()),
            ));
        }
        return Ok(None);
    };
    let head = std::str::from_utf8(&bytes[..end])
        .map_err(|_| PeerError::protocol(PROTOCOL, "an operation in UTF-8", format!("{:?}", &bytes[..end.min(16)])))?;
    let body = end + 2;
    let (name, rest) = head.split_once(' ').unwrap_or((head, ""));
    let operation = match name {
        "MSG" => return message(head, rest, bytes, body),
        "PING" => NatsOperation::Ping,
        "PONG" => NatsOperation::Pong,
        "INFO" | "+OK" => NatsOperation::Other,
        "-ERR" => return Err(PeerError::protocol(PROTOCOL, "no error", rest)),
        _ => return Err(PeerError::protocol(PROTOCOL, "an operation", head.chars().take(80).collect::<String>())),
    };
    Ok(Some((operation, body)))
}

fn message<'a>(
    head: &'a str,
    rest: &'a str,
    bytes: &'a [u8],
    body: usize,
) -> Result<Option<(NatsOperation<'a>, usize)>> {
    let malformed = || PeerError::protocol(PROTOCOL, "MSG subject sid [reply] bytes", head);
    let mut words = rest.split(' ');
    let (subject, _sid) = (words.next().ok_or_else(malformed)?, words.next().ok_or_else(malformed)?);
    let third = words.next().ok_or_else(malformed)?;
    let (reply, length) = words.next().map_or((None, third), |length| (Some(third), length));
    let length: usize = length.parse().ok().filter(|&length| length <= PAYLOAD_LENGTH_MAX).ok_or_else(malformed)?;
    if words.next().is_some() {
        return Err(malformed());
    }
    let end = body + length;
    if bytes.len() < end + 2 {
        return Ok(None);
    }
    if &bytes[end..end + 2] != b"\r\n" {
        return Err(PeerError::protocol(
            PROTOCOL,
            "a line's end behind a payload",
            format!("{:?}", &bytes[end..end + 2]),
        ));
    }
    Ok(Some((NatsOperation::Message { subject, reply, payload: &bytes[body..end] }, end + 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_operations_are_read() {
        let bytes = b"INFO {}\r\nMSG a.b 1 5\r\nhe\r\no\r\nMSG a.c 1 in.7 0\r\n\r\nPING\r\nPONG\r\n+OK\r\n";
        let mut found = Vec::new();
        let mut from = 0;
        while from < bytes.len() {
            let (operation, length) = parse(&bytes[from..]).unwrap().unwrap();
            for cut in from..from + length {
                assert_eq!(parse(&bytes[from..cut]).unwrap(), None, "{cut}");
            }
            found.push(operation);
            from += length;
        }
        assert_eq!(
            found,
            [
                NatsOperation::Other,
                NatsOperation::Message { subject: "a.b", reply: None, payload: b"he\r\no" },
                NatsOperation::Message { subject: "a.c", reply: Some("in.7"), payload: b"" },
                NatsOperation::Ping,
                NatsOperation::Pong,
                NatsOperation::Other,
            ]
        );
    }

    #[test]
    fn malformed_operation_is_named() {
        for (bytes, expected) in [
            (&b"HTTP/1.1 400\r\n"[..], "HTTP/1.1 400"),
            (b"-ERR 'Slow Consumer'\r\n", "Slow Consumer"),
            (b"MSG a 1\r\n", "MSG a 1"),
            (b"MSG a 1 r 3 4\r\nabc\r\n", "MSG a 1 r 3 4"),
            (b"MSG a 1 -3\r\n", "-3"),
            (b"MSG a 1 99999999999\r\n", "99999999999"),
            (b"MSG a 1 3\r\nabcdef", "[100, 101]"),
            (b"\xff\xfe\r\n", "[255, 254]"),
        ] {
            let error = parse(bytes).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(parse(&[b'x'; HEAD_LENGTH_MAX + 1]).is_err());
    }
}
