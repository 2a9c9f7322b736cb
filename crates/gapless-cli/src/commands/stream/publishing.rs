//! Publishes lines as fast as the stream takes them; a line that does not fit waits for the next turn.

use super::input::{InputLines, NextLine};
use clap::Args;
use gapless_client::ClientError;
use gapless_client::node::resumption::token_of;
use gapless_client::node::{AnyLink, Resumption, StreamNode};
use gapless_client::polled::MessageType;
use gapless_wire::Encoding;
use std::time::{Duration, Instant};

const LINES_PER_TURN: usize = 256;

#[derive(Args)]
pub(super) struct PublishArguments {
    /// Schema and template of the messages, two numbers up to 65535
    #[arg(long, value_name = "SCHEMA:TEMPLATE", default_value = "0:0", value_parser = schema)]
    schema: u32,
    /// Read lines as hexadecimal digits
    #[arg(long)]
    hex: bool,
    /// Name of the session: lines already published under it are skipped
    #[arg(long, value_name = "NAME")]
    token: Option<String>,
}

fn schema(text: &str) -> Result<u32, String> {
    let parsed = text.split_once(':').and_then(|(schema, template)| {
        Some(u32::from(schema.parse::<u16>().ok()?) << 16 | u32::from(template.parse::<u16>().ok()?))
    });
    parsed.ok_or_else(|| "two numbers from 0 to 65535 are expected, such as 7:1".to_owned())
}

impl PublishArguments {
    pub(super) fn token(&self) -> Option<u128> {
        self.token.as_deref().map(token_of)
    }

    pub(super) const fn line_length_max(&self, message_length_max: usize) -> usize {
        if self.hex { 2 * message_length_max } else { message_length_max }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PublishTurn {
    Busy,
    Idle,
    Full,
    Done,
}

pub(super) struct LinePublisher {
    lines: InputLines,
    message_type: MessageType,
    hex: bool,
    names_session: bool,
    resumption: Option<Resumption>,
    waiting: Option<Vec<u8>>,
    interval: Option<Duration>,
    next_due: Instant,
    pub(super) published: u64,
    pub(super) passed_over: u64,
}

impl LinePublisher {
    pub(super) fn new(arguments: &PublishArguments, lines: InputLines, rate: Option<f64>) -> Self {
        Self {
            lines,
            message_type: MessageType { schema: arguments.schema, encoding: Encoding::Opaque },
            hex: arguments.hex,
            names_session: arguments.token.is_some(),
            resumption: None,
            waiting: None,
            interval: rate.map(|rate| Duration::from_secs_f64(1.0 / rate)),
            next_due: Instant::now(),
            published: 0,
            passed_over: 0,
        }
    }

    pub(super) fn turn(&mut self, node: &mut StreamNode<AnyLink>) -> Result<PublishTurn, Box<dyn std::error::Error>> {
        let (Some(session), Some(next)) = (node.session(), node.next_session_seq()) else {
            return Ok(PublishTurn::Full);
        };
        if self.names_session && self.resumption.is_none() {
            self.resumption = Some(Resumption::new(session, next));
        }
        for _ in 0..LINES_PER_TURN {
            if self.interval.is_some() && Instant::now() < self.next_due {
                return Ok(PublishTurn::Idle);
            }
            let payload = match self.waiting.take() {
                Some(payload) => payload,
                None => match self.next()? {
                    Ok(payload) => payload,
                    Err(turn) => return Ok(turn),
                },
            };
            if let Some(resumption) = self.resumption.as_mut().filter(|resumption| !resumption.is_over()) {
                let frames = node.frames_of(payload.len()).unwrap_or(1);
                let has = resumption.has(frames).map_err(|error| {
                    format!(
                        "line {}: other lines than these were published under this token: {error}",
                        self.lines.count()
                    )
                })?;
                if has {
                    self.passed_over += 1;
                    continue;
                }
            }
            match node.publish(self.message_type, &payload) {
                Ok(_) => self.published += 1,
                Err(
                    ClientError::NotOpen
                    | ClientError::Halted
                    | ClientError::WindowFull { .. }
                    | ClientError::KeptFull { .. }
                    | ClientError::Throttled { .. },
                ) => {
                    self.waiting = Some(payload);
                    return Ok(PublishTurn::Full);
                }
                Err(error) => return Err(format!("line {}: {error}", self.lines.count()).into()),
            }
            if let Some(interval) = self.interval {
                // Time lost in a pause is not made up by a burst.
                self.next_due = (self.next_due + interval).max(Instant::now() - interval);
            }
        }
        Ok(PublishTurn::Busy)
    }

    /// Waits until all messages have come back. A named session stays, so that it can be continued. A halted stream
    /// handles the close after it is resumed.
    pub(super) fn finish(&self, node: &mut StreamNode<AnyLink>, is_halted: bool) {
        if self.names_session {
            return;
        }
        let finished = match is_halted {
            true if node.next_session_seq().is_none() => Ok(()),
            true => node.close_session().and_then(|()| node.flush()),
            false => node.finish(FINISH_TIMEOUT, |_| {}),
        };
        if let Err(error) = finished {
            crate::commands::to_stderr!("note: the session stays open until it expires: {error}");
        }
    }

    pub(super) fn wait(&mut self, pause: Duration) -> Result<(), String> {
        let until_due = self.next_due.saturating_duration_since(Instant::now());
        if until_due.is_zero() {
            self.lines.wait(pause)
        } else {
            std::thread::sleep(until_due.min(pause));
            Ok(())
        }
    }

    fn next(&mut self) -> Result<Result<Vec<u8>, PublishTurn>, String> {
        let hex = self.hex;
        let payload = match self.lines.next()? {
            NextLine::Line(line) if hex => bytes_of(line),
            NextLine::Line(line) => Ok(line.to_vec()),
            NextLine::NotYet => return Ok(Err(PublishTurn::Idle)),
            NextLine::End => return Ok(Err(PublishTurn::Done)),
        };
        payload.map(Ok).map_err(|reason| format!("line {}: {reason}", self.lines.count()))
    }
}

fn bytes_of(line: &[u8]) -> Result<Vec<u8>, String> {
    let line = line.trim_ascii();
    let (pairs, rest) = line.as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let bytes: Option<Vec<u8>> = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
    bytes
        .filter(|_| rest.is_empty())
        .ok_or_else(|| "an even number of hexadecimal digits and nothing else is expected".to_owned())
}

pub(super) const FINISH_TIMEOUT: Duration = Duration::from_secs(5);
