//! A connection with one channel.

use super::frames::{
    BASIC_ACK, BASIC_CONSUME, BASIC_CONSUME_OK, BASIC_DELIVER, BASIC_QOS, BASIC_QOS_OK, CHANNEL_CLOSE, CHANNEL_OPEN,
    CHANNEL_OPEN_OK, CONNECTION_CLOSE, CONNECTION_OPEN, CONNECTION_OPEN_OK, CONNECTION_START, CONNECTION_START_OK,
    CONNECTION_TUNE, CONNECTION_TUNE_OK, FRAME_LENGTH_MAX, FrameFields, FrameKind, GREETING, Method, PROTOCOL,
    QUEUE_DECLARE, QUEUE_DECLARE_OK, parse_content, parse_frame, write_long, write_message, write_method, write_short,
};
use crate::peers::connection::{BrokerConnection, silence};
use crate::peers::subject::WaitMode;
use crate::peers::{PeerError, Result};
use std::net::SocketAddr;
use std::time::Instant;

const CHANNEL: u16 = 1;
/// RabbitMQ's limit.
const BODY_LENGTH_MAX: u64 = 128 << 20;

pub(super) struct AmqpSession {
    connection: BrokerConnection,
    tag: Option<u64>,
    is_redelivered: bool,
    correlation_id: String,
    reply_to: String,
    body: Vec<u8>,
    body_length: Option<usize>,
    was_given: bool,
}

pub(super) struct AmqpDelivery<'a> {
    pub(super) tag: u64,
    /// Sent before to a server that did not acknowledge it.
    pub(super) is_redelivered: bool,
    pub(super) correlation_id: &'a str,
    pub(super) reply_to: &'a str,
    pub(super) body: &'a [u8],
}

impl AmqpSession {
    /// Uses `guest`, which every new node has, without heartbeats.
    pub(super) fn open(address: SocketAddr, waiting: WaitMode) -> Result<Self> {
        let mut session = Self {
            connection: BrokerConnection::open(address, waiting)?,
            tag: None,
            is_redelivered: false,
            correlation_id: String::new(),
            reply_to: String::new(),
            body: Vec::new(),
            body_length: None,
            was_given: false,
        };
        session.connection.output().extend_from_slice(GREETING);
        session.expect(CONNECTION_START)?;
        write_method(session.connection.output(), 0, CONNECTION_START_OK, |output| {
            output.extend_from_slice(&[0; 4]);
            write_short(output, "PLAIN");
            write_long(output, b"\0guest\0guest");
            write_short(output, "en_US");
        });
        session.expect(CONNECTION_TUNE)?;
        write_method(session.connection.output(), 0, CONNECTION_TUNE_OK, |output| {
            output.extend_from_slice(&CHANNEL.to_be_bytes());
            output.extend_from_slice(&FRAME_LENGTH_MAX.to_be_bytes());
            output.extend_from_slice(&[0; 2]);
        });
        write_method(session.connection.output(), 0, CONNECTION_OPEN, |output| {
            write_short(output, "/");
            output.extend_from_slice(&[0; 2]);
        });
        session.expect(CONNECTION_OPEN_OK)?;
        write_method(session.connection.output(), CHANNEL, CHANNEL_OPEN, |output| output.push(0));
        session.expect(CHANNEL_OPEN_OK)?;
        Ok(session)
    }

    pub(super) fn declare(&mut self, queue: &str) -> Result<()> {
        write_method(self.connection.output(), CHANNEL, QUEUE_DECLARE, |output| {
            output.extend_from_slice(&[0; 2]);
            write_short(output, queue);
            // Neither passive, durable, exclusive nor auto-delete; no arguments.
            output.extend_from_slice(&[0; 5]);
        });
        self.expect(QUEUE_DECLARE_OK)
    }

    pub(super) fn prefetch(&mut self, count: u16) -> Result<()> {
        write_method(self.connection.output(), CHANNEL, BASIC_QOS, |output| {
            output.extend_from_slice(&[0; 4]);
            output.extend_from_slice(&count.to_be_bytes());
            output.push(0);
        });
        self.expect(BASIC_QOS_OK)
    }

    pub(super) fn consume(&mut self, queue: &str, is_acknowledged_by_itself: bool) -> Result<()> {
        write_method(self.connection.output(), CHANNEL, BASIC_CONSUME, |output| {
            output.extend_from_slice(&[0; 2]);
            write_short(output, queue);
            write_short(output, "");
            output.push(u8::from(is_acknowledged_by_itself) << 1);
            output.extend_from_slice(&[0; 4]);
        });
        self.expect(BASIC_CONSUME_OK)
    }

    /// `reply`: address, and correlation identifier.
    pub(super) fn publish(&mut self, queue: &str, reply: Option<(&str, &str)>, body: &[u8]) -> Result<()> {
        write_message(self.connection.output(), CHANNEL, queue, reply, body);
        self.connection.flush_if_long()
    }

    pub(super) fn acknowledge_up_to(&mut self, tag: u64) {
        write_method(self.connection.output(), CHANNEL, BASIC_ACK, |output| {
            output.extend_from_slice(&tag.to_be_bytes());
            output.push(1);
        });
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        self.connection.flush()
    }

    pub(super) fn fill(&mut self) -> Result<bool> {
        self.connection.fill()
    }

    pub(super) fn fill_since(&mut self, begin: &mut Option<Instant>, silence: PeerError) -> Result<()> {
        self.connection.fill_since(begin, silence)
    }

    pub(super) fn next_delivery(&mut self) -> Result<Option<AmqpDelivery<'_>>> {
        if std::mem::take(&mut self.was_given) {
            (self.tag, self.body_length) = (None, None);
            self.body.clear();
        }
        while let Some((kind, payload, length)) = parse_frame(self.connection.unread())? {
            match kind {
                FrameKind::Method => {
                    let mut fields = FrameFields(payload);
                    match fields.method()? {
                        BASIC_DELIVER => {
                            fields.text()?;
                            self.tag = Some(fields.long_long()?);
                            self.is_redelivered = fields.byte()? & 1 != 0;
                        }
                        method => return Err(unexpected("a delivery", method, fields)),
                    }
                }
                FrameKind::Content => {
                    let (body_length, correlation_id, reply_to) = parse_content(payload)?;
                    if body_length > BODY_LENGTH_MAX {
                        let found = format!("{body_length} bytes");
                        return Err(PeerError::protocol(
                            PROTOCOL,
                            format!("a body of at most {BODY_LENGTH_MAX} bytes"),
                            found,
                        ));
                    }
                    self.body_length = Some(body_length as usize);
                    self.correlation_id.clear();
                    self.correlation_id.push_str(correlation_id);
                    self.reply_to.clear();
                    self.reply_to.push_str(reply_to);
                }
                FrameKind::Body => self.body.extend_from_slice(payload),
                FrameKind::Heartbeat => {}
            }
            self.connection.take(length);
            if let (Some(tag), Some(body_length)) = (self.tag, self.body_length)
                && self.body.len() >= body_length
            {
                self.was_given = true;
                let (correlation_id, reply_to, body) = (&*self.correlation_id, &*self.reply_to, &*self.body);
                let is_redelivered = self.is_redelivered;
                return Ok(Some(AmqpDelivery { tag, is_redelivered, correlation_id, reply_to, body }));
            }
        }
        Ok(None)
    }

    /// Sends all output; any other method than `expected` is an error.
    fn expect(&mut self, expected: Method) -> Result<()> {
        self.flush()?;
        let mut since = None;
        loop {
            while let Some((kind, payload, length)) = parse_frame(self.connection.unread())? {
                if kind == FrameKind::Method {
                    let mut fields = FrameFields(payload);
                    let found = fields.method()?;
                    if found != expected {
                        return Err(unexpected(&format!("method {}.{}", expected.0, expected.1), found, fields));
                    }
                }
                self.connection.take(length);
                if kind == FrameKind::Method {
                    return Ok(());
                }
            }
            self.fill_since(&mut since, silence(PROTOCOL, "answer"))?;
        }
    }
}

fn unexpected(expected: &str, found: Method, mut fields: FrameFields<'_>) -> PeerError {
    let is_close = matches!(found, CONNECTION_CLOSE | CHANNEL_CLOSE);
    let reason = if is_close { fields.short().and_then(|_| fields.text()).unwrap_or_default() } else { "" };
    let found = format!("method {}.{}{}{reason}", found.0, found.1, if reason.is_empty() { "" } else { ": " });
    PeerError::protocol(PROTOCOL, expected, found)
}
