//! Messages from a client to a service and back.

use super::failed;
use crate::histogram::LatencyHistogram;
use crate::time_sources::elapsed_ns;
use crate::{BenchError, Result};
use gapless::prelude::*;
use gapless_client::ClientError;
use gapless_engine::{ServiceHost, ServiceHostOptions};
use std::hint::black_box;
use std::time::Instant;

const REPLY_TIME_MAX: Duration = Duration::from_secs(10);
/// One whole reply in this many round trips is compared.
const CHECK_EVERY: u64 = 16;

const ECHO: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

#[derive(Default)]
struct EchoService;

impl Service for EchoService {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(ECHO.schema, |_, payload, context| context.reply_with(ECHO, payload));
    }

    fn snapshot(&self, _: &mut Vec<u8>) {}

    fn restore(&mut self, _: &[u8]) -> std::result::Result<(), String> {
        Ok(())
    }
}

pub fn start(options: ServiceHostOptions) -> Result<ServiceHost> {
    ServiceHost::start(EchoService, options).map_err(|error| failed("messaging", error))
}

/// One by one, after a warm-up.
///
/// # Errors
/// A late or a wrong reply.
pub fn round_trips(
    client: &mut PolledClient,
    session: SessionKey,
    length: usize,
    count: u64,
) -> Result<LatencyHistogram> {
    let payload: Vec<u8> = (0..length).map(|index| (index * 31 % 251) as u8).collect();
    let warm_up = count.div_ceil(10);
    let mut histogram = LatencyHistogram::new();
    for number in 0..warm_up + count {
        if number % CHECK_EVERY == 0 {
            let reply =
                client.call(session, ECHO, &payload, REPLY_TIME_MAX).map_err(|error| failed("messaging", error))?;
            if reply.payload != payload {
                return Err(failed("messaging", format!("the reply to {length} bytes is not what was sent")));
            }
        }
        let elapsed_ns = round_trip(client, session, &payload)?;
        if number >= warm_up {
            histogram.record(elapsed_ns);
        }
    }
    Ok(histogram)
}

/// Spins for the reply; ns.
fn round_trip(client: &mut PolledClient, session: SessionKey, payload: &[u8]) -> Result<u64> {
    let of_stream = |error: ClientError| failed("messaging", error);
    let begin = Instant::now();
    let sent = client
        .send(session, ECHO, payload.len(), |buffer| {
            buffer.copy_from_slice(payload);
            Ok(payload.len())
        })
        .map_err(of_stream)?;
    let mut answer: Option<std::result::Result<usize, String>> = None;
    let mut turns = 0u32;
    while answer.is_none() {
        client
            .poll(16, |incoming| {
                if let Incoming::Reply { reply, .. } = incoming
                    && reply.session_seq == sent
                {
                    answer = Some(match reply.refusal {
                        Some(refusal) => Err(refusal.text.to_owned()),
                        None => Ok(black_box(reply.payload).len()),
                    });
                }
            })
            .map_err(of_stream)?;
        turns = turns.wrapping_add(1);
        if turns.is_multiple_of(4096) {
            if begin.elapsed() > REPLY_TIME_MAX {
                return Err(failed("messaging", format!("no reply within {} s", REPLY_TIME_MAX.as_secs())));
            }
            // Needed if client and service share a CPU.
            std::thread::yield_now();
        }
    }
    let elapsed_ns = elapsed_ns(begin);
    let wrong = |reason: String| -> BenchError { failed("messaging", reason) };
    match answer {
        Some(Ok(length)) if length == payload.len() => Ok(elapsed_ns),
        Some(Ok(length)) => Err(wrong(format!("a reply of {length} bytes to {}", payload.len()))),
        Some(Err(reason)) => Err(wrong(format!("refused: {reason}"))),
        None => Err(wrong("no reply".to_owned())),
    }
}
