//! Findings of the market-data reader: everything that it has read of the stream, and whether it adds up.

use super::book::fingerprint;
use super::depth::Depth;
use super::messages::{Account, ENTRIES, INSTANCES, Standing};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub struct Audit {
    pub depth: Depth,
    pub accounts: Vec<Account>,
    pub standings: Vec<Standing>,
    /// Outcomes while an instance was dead, if one was killed.
    pub meanwhile: Option<u64>,
}

impl Audit {
    pub fn take(&mut self, message: &gapless::stream::Message<'_>) {
        if let Ok(request) = message.read() {
            self.depth.request(request);
        } else if let Ok(report) = message.read() {
            self.depth.report(&report);
        } else if let Ok(account) = message.read() {
            self.accounts.push(account);
        } else if let Ok(standing) = message.read() {
            self.standings.push(standing);
        }
    }

    pub fn is_complete(&self) -> bool {
        self.accounts.len() as u64 == ENTRIES && self.standings.len() as u64 == INSTANCES
    }

    /// Calls `check` for each with its subject, the figures, and whether they are right.
    pub fn check_all(&self, mut check: impl FnMut(&str, String, bool)) {
        let Self { depth, accounts, standings, meanwhile } = self;
        let requests: u64 = accounts.iter().map(|account| account.requests).sum();
        let is_right = depth.outcomes == requests && accounts.iter().all(|one| one.outcomes == one.requests);
        check("requests with one outcome", format!("{} of {requests}", depth.outcomes), is_right);
        check("contradictions in the stream", depth.contradictions.to_string(), depth.contradictions == 0);
        let is_right = depth.trades > 0 && standings.iter().all(|standing| standing.trades == depth.trades);
        check("trades, numbered without a gap", depth.trades.to_string(), is_right);
        let states: Vec<_> = standings.iter().map(|standing| format!("{:016x}", standing.fingerprint)).collect();
        check("states of the instances", states.join(" = "), standings.windows(2).all(|two| two[0] == two[1]));
        let book = fingerprint(&depth.book());
        let is_right = standings.iter().all(|standing| standing.book_fingerprint == book);
        check("books of instances and reader", format!("{book:016x}"), is_right);

        let positions: BTreeMap<_, _> = accounts.iter().map(|account| (account.entry, account.position)).collect();
        let is_right = standings.iter().all(|standing| standing.positions == positions);
        check("positions at the instances", format!("of {} entry nodes", positions.len()), is_right);
        let mut adds_up = |what: &str, numbers: Vec<i64>| {
            let terms: Vec<_> = numbers.iter().map(i64::to_string).collect();
            check(what, format!("{} = 0", terms.join(" + ")), numbers.iter().sum::<i64>() == 0);
        };
        adds_up("shares of all entry nodes", positions.values().map(|position| position.shares).collect());
        adds_up("cents of all entry nodes", positions.values().map(|position| position.cents).collect());
        if let Some(meanwhile) = *meanwhile {
            check("outcomes while an instance was dead", meanwhile.to_string(), meanwhile > 0);
        }
    }
}
