//! The service under attack: balances, a counter for each session, and a hash chain over every command with an effect,
//! so that a lost, duplicated or reordered command is visible forever.

use gapless::prelude::*;
use std::collections::BTreeMap;

pub const MOVE: MessageType = MessageType { schema: 7 << 16 | 1, encoding: Encoding::Opaque };
pub const ASK: MessageType = MessageType { schema: 7 << 16 | 2, encoding: Encoding::Opaque };
/// Account, amount, requested bytes of filling in the reply.
pub const MOVE_LENGTH: usize = 16;

#[derive(Default)]
pub struct Bank {
    balances: BTreeMap<u32, i64>,
    counters: BTreeMap<u64, u64>,
    chain: u64,
}

impl Bank {
    fn apply(&mut self, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let (account, rest) = payload.split_first_chunk::<4>().ok_or("too short")?;
        let (amount, rest) = rest.split_first_chunk::<8>().ok_or("too short")?;
        let (filling, _) = rest.split_first_chunk::<4>().ok_or("too short")?;
        let account = u32::from_le_bytes(*account);
        let balance = self.balances.get(&account).copied().unwrap_or(0) + i64::from_le_bytes(*amount);
        if balance < 0 {
            return Err(format!("account {account} would stand at {balance}").into());
        }
        self.balances.insert(account, balance);
        let counter = self.counters.entry(context.session()).or_default();
        *counter += 1;
        self.chain = link(self.chain, payload);
        let mut reply = Vec::new();
        reply.extend_from_slice(&balance.to_le_bytes());
        reply.extend_from_slice(&counter.to_le_bytes());
        reply.extend_from_slice(&self.chain.to_le_bytes());
        reply.resize(reply.len() + u32::from_le_bytes(*filling) as usize, self.chain as u8);
        context.reply_with(MOVE, &reply)
    }
}

pub fn link(chain: u64, payload: &[u8]) -> u64 {
    gapless_testkit::random::fnv_64(chain, payload)
}

impl Service for Bank {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(MOVE.schema, Self::apply);
        handlers.on_bytes(ASK.schema, |bank, _, context| {
            let mut state = Vec::new();
            bank.snapshot(&mut state);
            context.reply_with(ASK, &state)
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.chain.to_le_bytes());
        state.extend_from_slice(&(self.balances.len() as u64).to_le_bytes());
        for (account, balance) in &self.balances {
            state.extend_from_slice(&account.to_le_bytes());
            state.extend_from_slice(&balance.to_le_bytes());
        }
        for (session, counter) in &self.counters {
            state.extend_from_slice(&session.to_le_bytes());
            state.extend_from_slice(&counter.to_le_bytes());
        }
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let word = |at: usize| -> Result<u64, String> {
            let bytes = state.get(at..at + 8).ok_or("the state is too short")?;
            Ok(u64::from_le_bytes(bytes.try_into().map_err(|_| "8 bytes")?))
        };
        self.chain = word(0)?;
        let accounts = word(8)? as usize;
        let counters_at = 16 + accounts * 12;
        for at in (16..counters_at).step_by(12) {
            let account = (word(at)? & 0xffff_ffff) as u32;
            self.balances.insert(account, word(at + 4)? as i64);
        }
        for at in (counters_at..state.len()).step_by(16) {
            self.counters.insert(word(at)?, word(at + 8)?);
        }
        Ok(())
    }
}
