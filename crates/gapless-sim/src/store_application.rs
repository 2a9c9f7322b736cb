//! The simulator's own application with replicated state: [`StoreApplication`]. Its handler is not deterministic on
//! purpose: no two members would get the same result.

use crate::application::StateApplication;
use crate::ledger::{REFUSED_EVERY, SCHEMA, TIMER_EVERY, TYPE, check_count, described, numbered};
use crate::random::Random;
use gapless_client::Reply;
use gapless_client::polled::MessageType;
use gapless_engine::store::{Counter, Map, OrderedMap, Queue, Singleton, Store, Transaction};
use gapless_engine::{Context, Reject, StateHandlers, StateService};
use gapless_wire::Encoding;
use std::sync::atomic::{AtomicU64, Ordering};

const ITEMS_MAX: usize = 9;
/// Size of the ordered map, which drops older sessions from its front.
const RECENT_MAX: u64 = 5;

/// The leader sums up all messages and replies with the sums.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreApplication {
    /// Long messages, so that journals span many segments.
    pub is_bulky: bool,
}

gapless_engine::store_object! {
    pub struct Account = 1, version 1 {
        pub commands: u64,
        pub timers: u64,
        /// Beginning of the last payload.
        pub last: [u8; 24],
    }
}

gapless_engine::store_object! {
    pub struct Totals = 2, version 1 {
        pub order: u64,
        pub time_ns: u64,
        /// Handler calls of the leader's instance; no other instance reaches this number.
        pub drawn: u64,
    }
}

pub struct Accounts {
    accounts: Map<u64, Account>,
    recent: OrderedMap<u64, Totals>,
    totals: Singleton<Totals>,
    items: Queue<Totals>,
    bytes: Counter,
    /// Differs between instances.
    calls: AtomicU64,
}

impl Accounts {
    fn new(store: &mut Store) -> Self {
        Self {
            accounts: store.map(1, "accounts"),
            recent: store.ordered_map(2, "recent"),
            totals: store.singleton(3, "totals"),
            items: store.queue(4, "items"),
            bytes: store.counter(5, "bytes"),
            calls: AtomicU64::new(0),
        }
    }

    fn take(&self, store: &mut Transaction<'_>, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let index = payload.get(8..16).and_then(|bytes| bytes.first_chunk()).ok_or("a message is numbered")?;
        let index = u64::from_le_bytes(*index);
        let session = context.session();
        let mut account =
            store.get(self.accounts, &session).copied().unwrap_or(Account { commands: 0, timers: 0, last: [0; 24] });
        account.commands += 1;
        let length = payload.len().min(account.last.len());
        account.last[..length].copy_from_slice(&payload[..length]);
        store.insert(self.accounts, session, account);
        let failed = |error: gapless_engine::store::StoreError| Reject::from(error.to_string());
        store.add(self.bytes, payload.len() as i64).map_err(failed)?;
        let mut totals = store.get(self.totals, &()).copied().unwrap_or(Totals { order: 0, time_ns: 0, drawn: 0 });
        for byte in payload.iter().take(16) {
            totals.order = totals.order.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte) ^ context.sequence();
        }
        totals.time_ns = context.time_ns();
        totals.drawn = self.calls.fetch_add(1, Ordering::Relaxed);
        store.insert(self.totals, (), totals);
        store.push(self.items, totals).map_err(failed)?;
        if store.queue_len(self.items) > ITEMS_MAX {
            store.pop(self.items);
        }
        store.insert(self.recent, context.sequence(), totals);
        if store.len(self.recent) > RECENT_MAX {
            store.remove_range(self.recent, ..context.sequence() - 1);
        }
        if index % REFUSED_EVERY == REFUSED_EVERY - 1 {
            // The refusal undoes all changes.
            return Err(Reject::from(format!("message {index} is one of those that are refused")));
        }
        match account.commands % TIMER_EVERY {
            0 => context.set_numbered_timer(session, context.time_ns() + account.commands % 7 * 9_000_000),
            1 => context.cancel_numbered_timer(session),
            _ => {}
        }
        let mut reply = account.commands.to_le_bytes().to_vec();
        reply.extend_from_slice(&totals.order.to_le_bytes());
        reply.extend_from_slice(&totals.drawn.to_le_bytes());
        let length = if account.commands % 11 == 10 { payload.len() } else { payload.len().min(200) };
        reply.resize(24 + length, account.commands as u8);
        context.reply_with(TYPE, &reply)
    }
}

impl StateService for Accounts {
    fn handlers(handlers: &mut StateHandlers<Self>) {
        handlers.on_bytes(SCHEMA, Self::take);
    }

    fn on_timer(&self, timer: u64, store: &mut Transaction<'_>, context: &mut Context<'_>) -> Result<(), Reject> {
        let account = store.get_mut(self.accounts, &timer).ok_or("a timer of nobody")?;
        account.timers += 1;
        let (commands, timers) = (account.commands, account.timers);
        context.notify_bytes(timer, SCHEMA, Encoding::Opaque, 16, |room| {
            room[..8].copy_from_slice(&commands.to_le_bytes());
            room[8..16].copy_from_slice(&timers.to_le_bytes());
            Ok::<_, std::convert::Infallible>(16)
        })
    }
}

impl StateApplication for StoreApplication {
    type Service = Accounts;

    fn service(store: &mut Store) -> Accounts {
        Accounts::new(store)
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
