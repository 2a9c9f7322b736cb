//! Encoding of frames, methods and contents of AMQP 0-9-1; numbers are big-endian ("Advanced Message Queuing Protocol,
//! Protocol Specification, version 0-9-1", sections 2.3.5 and 4.2).
//!
//! ```text
//! frame    0 u8 kind   1 u16 channel   3 u32 length   7 payload   7 + length u8 206
//! method   0 u16 class   2 u16 method   4 arguments
//! content  0 u16 class   2 u16 0   4 u64 length of the body   12 u16 flags   14 properties
//! ```

use crate::peers::{PeerError, Result};

pub(super) const PROTOCOL: &str = "AMQP";
pub(super) const GREETING: &[u8; 8] = b"AMQP\0\0\x09\x01";
pub(super) const FRAME_OVERHEAD: usize = 8;
/// RabbitMQ's default.
pub(super) const FRAME_LENGTH_MAX: u32 = 128 << 10;
const FRAME_END: u8 = 206;
const DELIVERY_MODE: u16 = 1 << 12;
const CORRELATION_ID: u16 = 1 << 10;
const REPLY_TO: u16 = 1 << 9;
const CLASS_BASIC: u16 = 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    Method = 1,
    Content = 2,
    Body = 3,
    Heartbeat = 8,
}

pub(super) type Method = (u16, u16);
pub(super) const CONNECTION_START: Method = (10, 10);
pub(super) const CONNECTION_START_OK: Method = (10, 11);
pub(super) const CONNECTION_TUNE: Method = (10, 30);
pub(super) const CONNECTION_TUNE_OK: Method = (10, 31);
pub(super) const CONNECTION_OPEN: Method = (10, 40);
pub(super) const CONNECTION_OPEN_OK: Method = (10, 41);
pub(super) const CONNECTION_CLOSE: Method = (10, 50);
pub(super) const CHANNEL_OPEN: Method = (20, 10);
pub(super) const CHANNEL_OPEN_OK: Method = (20, 11);
pub(super) const CHANNEL_CLOSE: Method = (20, 40);
pub(super) const QUEUE_DECLARE: Method = (50, 10);
pub(super) const QUEUE_DECLARE_OK: Method = (50, 11);
pub(super) const BASIC_QOS: Method = (60, 10);
pub(super) const BASIC_QOS_OK: Method = (60, 11);
pub(super) const BASIC_CONSUME: Method = (60, 20);
pub(super) const BASIC_CONSUME_OK: Method = (60, 21);
pub(super) const BASIC_PUBLISH: Method = (60, 40);
pub(super) const BASIC_DELIVER: Method = (60, 60);
pub(super) const BASIC_ACK: Method = (60, 80);

/// Kind, payload and total length; `None` while it is incomplete.
pub(super) fn parse_frame(bytes: &[u8]) -> Result<Option<(FrameKind, &[u8], usize)>> {
    let Some(&[kind, _, _, a, b, c, d]) = bytes.first_chunk::<7>() else { return Ok(None) };
    let kind = match kind {
        1 => FrameKind::Method,
        2 => FrameKind::Content,
        3 => FrameKind::Body,
        8 => FrameKind::Heartbeat,
        // A server of another version answers with its own greeting.
        other => return Err(PeerError::protocol(PROTOCOL, "the kind of a frame: 1, 2, 3 or 8", other.to_string())),
    };
    let length = u32::from_be_bytes([a, b, c, d]);
    if length > FRAME_LENGTH_MAX {
        let found = format!("{length} bytes");
        return Err(PeerError::protocol(PROTOCOL, format!("a frame of at most {FRAME_LENGTH_MAX} bytes"), found));
    }
    let end = 7 + length as usize;
    match bytes.get(end) {
        None => Ok(None),
        Some(&FRAME_END) => Ok(Some((kind, &bytes[7..end], end + 1))),
        Some(other) => Err(PeerError::protocol(PROTOCOL, "206 at the end of a frame", other.to_string())),
    }
}

pub(super) fn write_frame(output: &mut Vec<u8>, kind: FrameKind, channel: u16, write: impl FnOnce(&mut Vec<u8>)) {
    output.push(kind as u8);
    output.extend_from_slice(&channel.to_be_bytes());
    let at = output.len();
    output.extend_from_slice(&[0; 4]);
    write(output);
    let length = (output.len() - at - 4) as u32;
    output[at..at + 4].copy_from_slice(&length.to_be_bytes());
    output.push(FRAME_END);
}

pub(super) fn write_method(output: &mut Vec<u8>, channel: u16, method: Method, write: impl FnOnce(&mut Vec<u8>)) {
    write_frame(output, FrameKind::Method, channel, |output| {
        output.extend_from_slice(&method.0.to_be_bytes());
        output.extend_from_slice(&method.1.to_be_bytes());
        write(output);
    });
}

/// Appends a short string.
///
/// # Panics
/// If it has more than 255 bytes.
pub(super) fn write_short(output: &mut Vec<u8>, text: &str) {
    output.push(u8::try_from(text.len()).expect("a short string has at most 255 bytes"));
    output.extend_from_slice(text.as_bytes());
}

pub(super) fn write_long(output: &mut Vec<u8>, text: &[u8]) {
    output.extend_from_slice(&(text.len() as u32).to_be_bytes());
    output.extend_from_slice(text);
}

/// Publishes through the default exchange: transient, with `reply_to` and a correlation identifier if given, and as
/// many frames as the body needs.
pub(super) fn write_message(
    output: &mut Vec<u8>,
    channel: u16,
    routing_key: &str,
    reply: Option<(&str, &str)>,
    body: &[u8],
) {
    write_method(output, channel, BASIC_PUBLISH, |output| {
        output.extend_from_slice(&[0; 2]);
        write_short(output, "");
        write_short(output, routing_key);
        // Neither mandatory nor immediate.
        output.push(0);
    });
    write_frame(output, FrameKind::Content, channel, |output| {
        output.extend_from_slice(&CLASS_BASIC.to_be_bytes());
        output.extend_from_slice(&[0; 2]);
        output.extend_from_slice(&(body.len() as u64).to_be_bytes());
        let (reply_to, correlation_id) = reply.unwrap_or_default();
        let flag = |is_there: bool, flag| if is_there { flag } else { 0 };
        let flags = flag(!correlation_id.is_empty(), CORRELATION_ID) | flag(!reply_to.is_empty(), REPLY_TO);
        output.extend_from_slice(&(DELIVERY_MODE | flags).to_be_bytes());
        output.push(1);
        [correlation_id, reply_to].iter().filter(|text| !text.is_empty()).for_each(|text| write_short(output, text));
    });
    for part in body.chunks(FRAME_LENGTH_MAX as usize - FRAME_OVERHEAD) {
        write_frame(output, FrameKind::Body, channel, |output| output.extend_from_slice(part));
    }
}

pub(super) struct FrameFields<'a>(pub(super) &'a [u8]);

impl<'a> FrameFields<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let found = self.0.split_at_checked(count);
        let (taken, rest) = found.ok_or_else(|| {
            PeerError::protocol(PROTOCOL, format!("{count} more bytes in a frame"), self.0.len().to_string())
        })?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        Ok(*self.bytes(N)?.first_chunk().expect("as many as were asked for"))
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub(super) fn short(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(super) fn long(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(super) fn long_long(&mut self) -> Result<u64> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub(super) fn text(&mut self) -> Result<&'a str> {
        let length = self.byte()?;
        let bytes = self.bytes(length.into())?;
        std::str::from_utf8(bytes).map_err(|_| PeerError::protocol(PROTOCOL, "a text in UTF-8", format!("{bytes:?}")))
    }

    pub(super) fn method(&mut self) -> Result<Method> {
        Ok((self.short()?, self.short()?))
    }
}

/// Length of the body, correlation identifier, address for replies; empty if missing.
pub(super) fn parse_content(payload: &[u8]) -> Result<(u64, &str, &str)> {
    let mut fields = FrameFields(payload);
    fields.long()?;
    let length = fields.long_long()?;
    let flags = fields.short()?;
    let before = flags & !(DELIVERY_MODE | CORRELATION_ID | (CORRELATION_ID - 1));
    if before != 0 {
        // Both ends set only these properties, and a broker changes none.
        return Err(PeerError::protocol(PROTOCOL, "properties that were sent", format!("flags {flags:#x}")));
    }
    if flags & DELIVERY_MODE != 0 {
        fields.byte()?;
    }
    let correlation_id = if flags & CORRELATION_ID == 0 { "" } else { fields.text()? };
    let reply_to = if flags & REPLY_TO == 0 { "" } else { fields.text()? };
    Ok((length, correlation_id, reply_to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_round_trips() {
        let body: Vec<u8> = (0..300_000_u32).map(|index| (index % 251) as u8).collect();
        let mut bytes = Vec::new();
        write_message(&mut bytes, 1, "queue", Some(("here", "42")), &body);
        let (mut from, mut kinds, mut found) = (0, Vec::new(), Vec::new());
        while from < bytes.len() {
            let (kind, payload, length) = parse_frame(&bytes[from..]).unwrap().unwrap();
            for cut in [0, 1, 6, 7, length / 2, length - 1] {
                assert!(cut >= length || parse_frame(&bytes[from..from + cut]).unwrap().is_none(), "{cut}");
            }
            match kind {
                FrameKind::Method => {
                    let mut fields = FrameFields(payload);
                    assert_eq!((fields.method().unwrap(), fields.short().unwrap()), (BASIC_PUBLISH, 0));
                    assert_eq!(
                        (fields.text().unwrap(), fields.text().unwrap(), fields.byte().unwrap()),
                        ("", "queue", 0)
                    );
                }
                FrameKind::Content => assert_eq!(parse_content(payload).unwrap(), (300_000, "42", "here")),
                FrameKind::Body => found.extend_from_slice(payload),
                FrameKind::Heartbeat => unreachable!(),
            }
            kinds.push(kind);
            from += length;
        }
        assert!(found == body);
        use FrameKind::{Body, Content, Method};
        assert_eq!(kinds, [Method, Content, Body, Body, Body]);
    }

    #[test]
    fn reply_address_is_optional() {
        let mut bytes = Vec::new();
        write_message(&mut bytes, 1, "q", None, b"");
        let (_, _, length) = parse_frame(&bytes).unwrap().unwrap();
        let (_, content, whole) = parse_frame(&bytes[length..]).unwrap().unwrap();
        assert_eq!((parse_content(content).unwrap(), length + whole), ((0, "", ""), bytes.len()));
    }

    #[test]
    fn malformed_frame_is_named() {
        for (bytes, expected) in [
            (&b"AMQP\0\0\x09\x01"[..], "65"),
            (&[1, 0, 0, 0, 16, 0, 0, 0], "1048576 bytes"),
            (&[1, 0, 0, 0, 0, 0, 0, 205], "205"),
        ] {
            let error = parse_frame(bytes).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(parse_content(&[0, 60, 0, 0]).unwrap_err().to_string().contains("more bytes"));
        let mut content = vec![0; 12];
        content.extend_from_slice(&0x8000_u16.to_be_bytes());
        assert!(parse_content(&content).unwrap_err().to_string().contains("0x8000"));
    }
}
