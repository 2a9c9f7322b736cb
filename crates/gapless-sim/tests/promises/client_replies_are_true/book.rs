//! [`Book`]: records the commands that it executed, and names them in replies and notices.

use gapless_client::polled::MessageType;
use gapless_engine::{Context, Handlers, Reject, Service};
use gapless_wire::Encoding;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const fn message(template: u32) -> MessageType {
    MessageType { schema: 1 << 16 | template, encoding: Encoding::Opaque }
}

pub const DO: MessageType = message(1);
/// Refused with its identifier as the code.
pub const REFUSE: MessageType = message(2);
/// Executed; sends as many notices as its second number says.
pub const TELL: MessageType = message(3);

#[derive(Clone, Debug, Default)]
pub struct Pages {
    /// Identifiers in order.
    pub done: Vec<u64>,
    /// Notices sent to each session.
    pub told: BTreeMap<u64, u64>,
}

pub struct Book(pub Arc<Mutex<Pages>>);

pub fn numbers(bytes: &[u8]) -> (u64, u64) {
    let (numbers, _) = bytes.as_chunks::<8>();
    (u64::from_le_bytes(numbers[0]), u64::from_le_bytes(numbers[1]))
}

pub fn bytes(first: u64, second: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..].copy_from_slice(&second.to_le_bytes());
    bytes
}

impl Book {
    fn act(&mut self, payload: &[u8], notices: u64, context: &mut Context<'_>) -> Result<(), Reject> {
        let mut pages = self.0.lock().unwrap();
        let id = numbers(payload).0;
        pages.done.push(id);
        let place = pages.done.len() as u64;
        for _ in 0..notices {
            let told = pages.told.entry(context.session()).or_default();
            *told += 1;
            let notice = bytes(*told, id);
            let encode = |room: &mut [u8]| {
                room.copy_from_slice(&notice);
                Ok::<_, String>(notice.len())
            };
            context.notify_bytes(context.session(), TELL.schema, Encoding::Opaque, notice.len(), encode)?;
        }
        context.reply_with(DO, &bytes(id, place))
    }
}

impl Service for Book {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(DO.schema, |book: &mut Self, payload: &[u8], context: &mut Context<'_>| {
            book.act(payload, 0, context)
        });
        handlers.on_bytes(TELL.schema, |book: &mut Self, payload: &[u8], context: &mut Context<'_>| {
            book.act(payload, numbers(payload).1, context)
        });
        handlers.on_bytes(REFUSE.schema, |_: &mut Self, payload: &[u8], _: &mut Context<'_>| {
            Err(Reject::new(numbers(payload).0, "it is of those that are refused"))
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        let pages = self.0.lock().unwrap();
        state.extend_from_slice(&(pages.done.len() as u64).to_le_bytes());
        let told = pages.told.iter().flat_map(|(session, told)| [*session, *told]);
        for number in pages.done.iter().copied().chain(told) {
            state.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let numbers: Vec<u64> = state.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let (count, numbers) = numbers.split_first().ok_or("a count is expected")?;
        let (done, told) = numbers.split_at_checked(*count as usize).ok_or("fewer than there should be")?;
        let told = told.as_chunks().0.iter().map(|[session, told]| (*session, *told)).collect();
        *self.0.lock().unwrap() = Pages { done: done.to_vec(), told };
        Ok(())
    }
}
