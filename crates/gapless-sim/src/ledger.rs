//! The simulator's own applications: [`Ledger`], a service with replies, refusals, timers and notices, and [`Bulletin`], an
//! event stream.

use crate::application::Application;
use crate::options::ApplicationKind;
use crate::random::Random;
use gapless_client::Reply;
use gapless_client::polled::MessageType;
use gapless_engine::{Context, Handlers, Reject, Service};
use gapless_wire::Encoding;
use std::collections::BTreeMap;

pub(crate) const SCHEMA: u32 = 1 << 16 | 1;
pub(crate) const TYPE: MessageType = MessageType { schema: SCHEMA, encoding: Encoding::Opaque };
/// The last of this many commands is refused.
pub(crate) const REFUSED_EVERY: u64 = 13;
/// The last of this many commands sets the client's timer; the next one cancels it.
pub(crate) const TIMER_EVERY: u64 = 4;

/// Sums up all messages and replies with the sums.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ledger {
    /// Long messages, so that journals span many segments.
    pub is_bulky: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Accounts {
    /// Commands and fired timers of each session.
    accounts: BTreeMap<u64, [u64; 2]>,
    order: u64,
    time_ns: u64,
}

impl Accounts {
    fn take(&mut self, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let index = payload.get(8..16).and_then(|bytes| bytes.first_chunk()).ok_or("a message is numbered")?;
        let index = u64::from_le_bytes(*index);
        if index % REFUSED_EVERY == REFUSED_EVERY - 1 {
            return Err(Reject::from(format!("message {index} is one of those that are refused")));
        }
        let session = context.session();
        let [commands, _] = self.accounts.entry(session).or_default();
        *commands += 1;
        let commands = *commands;
        self.time_ns = context.time_ns();
        for byte in payload.iter().take(16) {
            self.order = self.order.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte) ^ context.sequence();
        }
        match commands % TIMER_EVERY {
            0 => context.set_numbered_timer(session, context.time_ns() + commands % 7 * 9_000_000),
            1 => context.cancel_numbered_timer(session),
            _ => {}
        }
        let mut reply = commands.to_le_bytes().to_vec();
        reply.extend_from_slice(&self.order.to_le_bytes());
        // Every eleventh reply keeps the payload's length, which may exceed a frame.
        reply.resize(16 + if commands % 11 == 10 { payload.len() } else { payload.len().min(200) }, commands as u8);
        context.reply_with(TYPE, &reply)
    }
}

impl Service for Accounts {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(SCHEMA, Self::take);
    }

    fn on_timer(&mut self, timer: u64, context: &mut Context<'_>) -> Result<(), Reject> {
        let [commands, timers] = self.accounts.entry(timer).or_default();
        *timers += 1;
        let (commands, timers) = (*commands, *timers);
        self.order = self.order.wrapping_mul(0x0100_0000_01b3) ^ context.time_ns();
        context.notify_bytes(timer, SCHEMA, Encoding::Opaque, 16, |room| {
            room[..8].copy_from_slice(&commands.to_le_bytes());
            room[8..16].copy_from_slice(&timers.to_le_bytes());
            Ok::<_, std::convert::Infallible>(16)
        })
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        let accounts = self.accounts.iter().flat_map(|(session, [commands, timers])| [*session, *commands, *timers]);
        for number in [self.order, self.time_ns].into_iter().chain(accounts) {
            state.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let numbers: Vec<u64> = state.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let [order, time_ns, accounts @ ..] = &numbers[..] else {
            return Err(format!("{} bytes are no accounts", state.len()));
        };
        let accounts = accounts.as_chunks().0.iter();
        self.accounts = accounts.map(|[session, commands, timers]| (*session, [*commands, *timers])).collect();
        (self.order, self.time_ns) = (*order, *time_ns);
        Ok(())
    }
}

impl Application for Ledger {
    type Service = Accounts;

    fn service(&self) -> Accounts {
        Accounts::default()
    }

    fn message(&self, publisher: u64, index: u64, random: &mut Random) -> (MessageType, Vec<u8>) {
        (TYPE, numbered(publisher, index, self.is_bulky, random))
    }

    fn check_reply(&self, _: u64, index: u64, reply: &Reply<'_>) -> Result<(), String> {
        check_count(index, reply)
    }

    fn describe(&self, _: MessageType, payload: &[u8]) -> Option<String> {
        described(payload)
    }
}

/// The reply to message `index` counts the client's commands up to it, without refused ones.
pub(crate) fn check_count(index: u64, reply: &Reply<'_>) -> Result<(), String> {
    let is_refused = index % REFUSED_EVERY == REFUSED_EVERY - 1;
    match (&reply.refusal, reply.payload.first_chunk()) {
        (Some(_), _) if is_refused => Ok(()),
        (Some(refusal), _) => Err(format!("it is refused: {}", refusal.text)),
        (None, Some(commands)) => {
            let (found, due) = (u64::from_le_bytes(*commands), index + 1 - index / REFUSED_EVERY);
            if found == due && !is_refused { Ok(()) } else { Err(format!("it is counted as {found}, {due} is due")) }
        }
        (None, None) => Err("it is empty".to_owned()),
    }
}

/// Application on an event stream that sums up all messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bulletin {
    /// Long messages, so that journals span many segments.
    pub is_bulky: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Sums {
    messages: u64,
    bytes: u64,
    order: u64,
    time_ns: u64,
}

impl Service for Sums {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(SCHEMA, |sums: &mut Self, payload: &[u8], context: &mut Context<'_>| -> Result<(), Reject> {
            sums.messages += 1;
            sums.bytes += payload.len() as u64;
            sums.time_ns = context.time_ns();
            for byte in payload.iter().take(16) {
                sums.order = sums.order.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte) ^ context.sequence();
            }
            Ok(())
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        for number in [self.messages, self.bytes, self.order, self.time_ns] {
            state.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let (numbers, rest) = state.as_chunks::<8>();
        let ([messages, bytes, order, time_ns], []) = (numbers, rest) else {
            return Err(format!("{} bytes are no sums", state.len()));
        };
        (self.messages, self.bytes) = (u64::from_le_bytes(*messages), u64::from_le_bytes(*bytes));
        (self.order, self.time_ns) = (u64::from_le_bytes(*order), u64::from_le_bytes(*time_ns));
        Ok(())
    }
}

impl Application for Bulletin {
    type Service = Sums;

    const APPLICATION_KIND: ApplicationKind = ApplicationKind::EventStream;

    fn service(&self) -> Sums {
        Sums::default()
    }

    fn message(&self, publisher: u64, index: u64, random: &mut Random) -> (MessageType, Vec<u8>) {
        (TYPE, numbered(publisher, index, self.is_bulky, random))
    }

    fn describe(&self, _: MessageType, payload: &[u8]) -> Option<String> {
        described(payload)
    }
}

pub(crate) fn described(payload: &[u8]) -> Option<String> {
    let [publisher, index, ..] = payload.as_chunks().0 else { return None };
    let (publisher, index) = (u64::from_le_bytes(*publisher), u64::from_le_bytes(*index));
    Some(format!("Numbered {{ publisher: {publisher}, index: {index} }}, {} bytes", payload.len()))
}

pub(crate) fn numbered(publisher: u64, index: u64, is_bulky: bool, random: &mut Random) -> Vec<u8> {
    let length = match is_bulky {
        true => random.below(48_000),
        false if random.happens_per_100_000(5_000) => random.below(12_000),
        false => random.below(400),
    };
    let mut payload = vec![index as u8; 16 + length as usize];
    payload[..8].copy_from_slice(&publisher.to_le_bytes());
    payload[8..16].copy_from_slice(&index.to_le_bytes());
    payload
}
