use super::messages::money;
use super::options::{ENTRIES, INSTANCES, Role};
use std::collections::{BTreeMap, HashMap};

const MARK: char = '\u{2}';

pub fn say(kind: &str, facts: &[(&str, i128)]) {
    let facts: String = facts.iter().map(|(name, number)| format!(" {name}={number}")).collect();
    println!("{MARK}{kind}{facts}");
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts(HashMap<String, i128>);

impl Facts {
    pub fn hear(line: &str) -> Option<(String, Self)> {
        let mut words = line.strip_prefix(MARK)?.split(' ');
        let kind = words.next()?.to_owned();
        let fact = |word: &str| {
            let (name, number) = word.split_once('=')?;
            Some((name.to_owned(), number.parse().ok()?))
        };
        Some((kind, Self(words.map(fact).collect::<Option<_>>()?)))
    }

    pub fn get(&self, name: &str) -> Option<i128> {
        self.0.get(name).copied()
    }

    #[allow(dead_code, reason = "the market itself changes nothing of what it was told")]
    pub fn set(&mut self, name: &str, number: i128) {
        self.0.insert(name.to_owned(), number);
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub what: String,
    pub found: String,
    pub is_right: bool,
}

#[derive(Debug, Default)]
pub struct Results(pub BTreeMap<String, Facts>);

impl Results {
    /// The sequencer reports later.
    pub fn are_complete(&self) -> bool {
        self.0.len() as u64 == ENTRIES + INSTANCES + 1
    }

    /// A missing one equals no other number.
    fn of(&self, role: Role, name: &str) -> i128 {
        self.0.get(&role.to_string()).and_then(|facts| facts.get(name)).unwrap_or(i128::MIN / 1024)
    }

    fn sum(&self, name: &str) -> i128 {
        (1..=ENTRIES).map(|entry| self.of(Role::Entry(entry), name)).sum()
    }

    pub fn checks(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        let mut check = |what: &str, found: String, is_right: bool| {
            checks.push(Check { what: what.to_owned(), found, is_right });
        };
        let instances: Vec<_> = (1..=INSTANCES).map(Role::Matching).collect();
        let all_instances =
            |name: &str, expected: i128| instances.iter().all(|instance| self.of(*instance, name) == expected);
        let entries = || (1..=ENTRIES).map(Role::Entry);
        let reader = |name: &str| self.of(Role::Reader, name);

        let (requests, once) = (self.sum("requests"), self.sum("outcome_once"));
        check("each request had one outcome at its entry node", format!("{once} of {requests}"), once == requests);
        let met = reader("outcomes");
        let is_right = met == requests && reader("closed_requests") == requests && all_instances("requests", requests);
        check("instances and reader had each request once", format!("{met} of {requests}"), is_right);
        let contradictions = reader("contradictions");
        check("what the reader met twice or never", contradictions.to_string(), contradictions == 0);
        let trades = reader("trades");
        let is_right = trades > 0 && reader("closed_trades") == trades && all_instances("trades", trades);
        check("trades, numbered without a gap", trades.to_string(), is_right);
        let refused: i128 = instances.iter().map(|instance| self.of(*instance, "refused")).sum();
        check("messages that an instance could do nothing with", refused.to_string(), refused == 0);

        let state = self.of(instances[0], "state");
        check("the instances' whole state", format!("{state:016x}"), all_instances("state", state));
        let book = reader("book");
        let is_right = all_instances("book", book) && reader("closed_book") == book;
        check("the books of instances and reader", format!("{book:016x}"), is_right);

        let resting = reader("resting");
        let (accepted, filled, cancelled) = (self.sum("accepted"), self.sum("filled"), self.sum("cancelled"));
        let is_right = accepted == filled + cancelled + resting
            && all_instances("resting", resting)
            && reader("closed_resting") == resting;
        let found = format!("{accepted} = {filled} traded + {cancelled} cancelled + {resting} resting");
        check("quantity that was ordered", found, is_right);
        let traded = reader("traded");
        let too_much = self.sum("filled_too_much");
        let is_right = filled == 2 * traded && too_much == 0;
        check("each trade has two sides", format!("{filled} = 2 x {traded}"), is_right);

        for (name, is_money) in [("shares", false), ("cash", true)] {
            let own: Vec<_> = entries().map(|entry| self.of(entry, name)).collect();
            let are_equal =
                (1..=ENTRIES).zip(&own).all(|(number, own)| all_instances(&format!("{name}_{number}"), *own));
            let shown: Vec<_> =
                own.iter().map(|of| if is_money { money(*of as i64) } else { of.to_string() }).collect();
            let is_right = own.iter().sum::<i128>() == 0 && are_equal;
            check(&format!("{name} of all entry nodes"), format!("{} = 0", shown.join(" + ")), is_right);
        }
        checks
    }
}
