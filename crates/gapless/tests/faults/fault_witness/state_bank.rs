//! The [`Bank`](super::bank::Bank) with replicated state; the witness cannot tell them apart.

use super::bank::{ASK, MOVE, link};
use gapless::prelude::*;
use gapless::store::{OrderedMap, Singleton, Store, Transaction};

gapless::store_object! {
    pub struct Number = 1, version 1 {
        pub number: i64,
    }
}

pub struct StateBank {
    balances: OrderedMap<u64, Number>,
    counters: OrderedMap<u64, Number>,
    chain: Singleton<Number>,
}

impl StateBank {
    pub fn new(store: &mut Store) -> Self {
        let (balances, counters) = (store.ordered_map(1, "balances"), store.ordered_map(2, "counters"));
        Self { balances, counters, chain: store.singleton(3, "chain") }
    }

    fn apply(&self, store: &mut Transaction<'_>, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let (account, rest) = payload.split_first_chunk::<4>().ok_or("too short")?;
        let (amount, rest) = rest.split_first_chunk::<8>().ok_or("too short")?;
        let (filling, _) = rest.split_first_chunk::<4>().ok_or("too short")?;
        let (account, session) = (u64::from(u32::from_le_bytes(*account)), context.session());
        let number = |object: Option<&Number>| object.map_or(0, |object| object.number);
        let balance = number(store.get(self.balances, &account)) + i64::from_le_bytes(*amount);
        let counter = number(store.get(self.counters, &session)) + 1;
        let chain = link(number(store.get(self.chain, &())) as u64, payload);
        // All of it before the check: a refusal undoes it.
        store.insert(self.balances, account, Number { number: balance });
        store.insert(self.counters, session, Number { number: counter });
        store.insert(self.chain, (), Number { number: chain as i64 });
        if balance < 0 {
            return Err(format!("account {account} would stand at {balance}").into());
        }
        let mut reply = [balance, counter, chain as i64].map(i64::to_le_bytes).concat();
        reply.resize(reply.len() + u32::from_le_bytes(*filling) as usize, chain as u8);
        context.reply_with(MOVE, &reply)
    }

    fn ask(&self, store: &mut Transaction<'_>, _: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let chain = store.get(self.chain, &()).map_or(0, |chain| chain.number);
        let mut state = [chain as u64, store.len(self.balances)].map(u64::to_le_bytes).concat();
        for (account, balance) in store.range(self.balances, ..) {
            state.extend_from_slice(&(*account as u32).to_le_bytes());
            state.extend_from_slice(&balance.number.to_le_bytes());
        }
        for (session, counter) in store.range(self.counters, ..) {
            state.extend_from_slice(&session.to_le_bytes());
            state.extend_from_slice(&counter.number.to_le_bytes());
        }
        context.reply_with(ASK, &state)
    }
}

impl StateService for StateBank {
    fn handlers(handlers: &mut StateHandlers<Self>) {
        handlers.on_bytes(MOVE.schema, Self::apply);
        handlers.on_bytes(ASK.schema, Self::ask);
    }
}
