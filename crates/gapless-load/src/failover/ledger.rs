//! [`Ledger`]: remembers every number, so that a command with no effect, or with two, shows in its state and not only
//! in the clients' outcomes.

use gapless::prelude::*;
use std::collections::BTreeMap;

/// Owner, number, padding. Reply: owner, number, count of the owner's numbers.
pub const NOTE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
/// Counts of numbers of an owner, and of those that came more than once.
pub const COUNT: MessageType = MessageType { schema: 1 << 16 | 2, encoding: Encoding::Opaque };
pub const NOTE_LENGTH: usize = 64;
pub const NUMBER_MAX: u64 = 1 << 28;
const OWNERS_MAX: usize = 1024;

#[derive(Default)]
struct LedgerPage {
    /// One bit for each number.
    seen: Vec<u64>,
    count: u64,
    doubled: u64,
}

#[derive(Default)]
pub struct Ledger {
    pages: BTreeMap<u64, LedgerPage>,
}

/// 8 bytes each.
pub fn words<const COUNT: usize>(payload: &[u8]) -> Option<[u64; COUNT]> {
    let mut words = payload.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8 bytes")));
    let mut found = [0; COUNT];
    for word in &mut found {
        *word = words.next()?;
    }
    Some(found)
}

impl Ledger {
    fn note(&mut self, payload: &[u8], context: &mut Context<'_>) -> std::result::Result<(), Reject> {
        let [owner, number] = words(payload).ok_or("16 bytes are expected")?;
        if !(1..=NUMBER_MAX).contains(&number) {
            return Err("the number is out of its range".into());
        }
        if self.pages.len() >= OWNERS_MAX && !self.pages.contains_key(&owner) {
            return Err("there are too many owners".into());
        }
        let page = self.pages.entry(owner).or_default();
        let (at, bit) = ((number / 64) as usize, 1 << (number % 64));
        if page.seen.len() <= at {
            page.seen.resize(at + 1, 0);
        }
        if page.seen[at] & bit == 0 {
            page.count += 1;
        } else {
            page.doubled += 1;
        }
        page.seen[at] |= bit;
        let count = page.count;
        context.reply_with(NOTE, &[owner, number, count].map(u64::to_le_bytes).concat())
    }

    fn count(&mut self, payload: &[u8], context: &mut Context<'_>) -> std::result::Result<(), Reject> {
        let [owner] = words(payload).ok_or("8 bytes are expected")?;
        let (count, doubled) = self.pages.get(&owner).map_or((0, 0), |page| (page.count, page.doubled));
        context.reply_with(COUNT, &[count, doubled].map(u64::to_le_bytes).concat())
    }
}

impl Service for Ledger {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(NOTE.schema, Self::note);
        handlers.on_bytes(COUNT.schema, Self::count);
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        let mut put = |word: u64| state.extend_from_slice(&word.to_le_bytes());
        for (owner, page) in &self.pages {
            [*owner, page.count, page.doubled, page.seen.len() as u64].into_iter().for_each(&mut put);
            page.seen.iter().for_each(|word| put(*word));
        }
    }

    fn restore(&mut self, state: &[u8]) -> std::result::Result<(), String> {
        let mut words = state.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8 bytes")));
        while let Some(owner) = words.next() {
            let cut = || "the state is cut off".to_owned();
            let (count, doubled) = (words.next().ok_or_else(cut)?, words.next().ok_or_else(cut)?);
            let length = words.next().ok_or_else(cut)? as usize;
            let seen: Vec<u64> = words.by_ref().take(length).collect();
            if seen.len() != length {
                return Err(cut());
            }
            self.pages.insert(owner, LedgerPage { seen, count, doubled });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_engine::{ServiceHost, ServiceHostOptions};

    #[test]
    fn duplicates_survive_a_restart() {
        let host = ServiceHost::start(Ledger::default(), ServiceHostOptions::in_memory()).unwrap();
        let mut client = host.connect(ClientOptions::default()).unwrap();
        let session = client.open_session(random_token(), 16).unwrap();
        let mut call = |message, payload: &[u64]| {
            let payload = payload.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
            client.call(session, message, &payload, Duration::from_secs(30)).map(|reply| reply.payload)
        };
        for (number, count) in [(1, 1), (64, 2), (63, 3), (64, 3)] {
            assert_eq!(words(&call(NOTE, &[7, number]).unwrap()), Some([7, number, count]));
        }
        assert_eq!(words(&call(COUNT, &[7]).unwrap()), Some([3, 1]));
        assert_eq!(words(&call(COUNT, &[8]).unwrap()), Some([0, 0]));
        assert!(call(NOTE, &[7, NUMBER_MAX + 1]).is_err() && call(NOTE, &[7]).is_err());
        host.stop().unwrap();

        let mut ledger = Ledger::default();
        ledger.pages.insert(7, LedgerPage { seen: vec![2, 5], count: 3, doubled: 1 });
        let (mut state, mut again) = (Vec::new(), Vec::new());
        ledger.snapshot(&mut state);
        let mut restored = Ledger::default();
        restored.restore(&state).unwrap();
        restored.snapshot(&mut again);
        assert_eq!(state, again);
        assert!(Ledger::default().restore(&state[..state.len() - 8]).is_err());
    }
}
