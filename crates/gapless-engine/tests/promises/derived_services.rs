//! A service made by the attribute: replies with and without a refusal, queries, the context, versions, its typed
//! client, and a restart from its snapshot and from its journal.

use gapless_client::polled::ClientOptions;
use gapless_client::shared::CallOptions;
use gapless_client::{CallError, Client, PolledClient, QueryError, SessionKey};
use gapless_engine::{Context, QueryContext, Service as _, ServiceHost, ServiceHostOptions};
use gapless_message::{Message, State};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Default, Serialize, Deserialize, State)]
struct Ledger {
    balances: BTreeMap<u64, u64>,
    last_sequence: u64,
}

#[derive(Serialize, Deserialize, Message)]
#[message(request)]
struct Deposit {
    account: u64,
    amount: u64,
}

#[derive(Serialize, Deserialize, Message)]
#[message(reply = Booked, refusal = NotBooked)]
struct Transfer {
    from: u64,
    to: u64,
    amount: u64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
struct Booked {
    is_later: bool,
    left: u64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
enum NotBooked {
    NoAccount(u64),
    Overdrawn { balance: u64 },
}

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64, refusal = NotBooked)]
struct Balance(u64);

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64)]
struct Total;

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64)]
struct LastSequence;

struct MissingAccount(u64);

impl From<MissingAccount> for NotBooked {
    fn from(MissingAccount(account): MissingAccount) -> Self {
        Self::NoAccount(account)
    }
}

impl Ledger {
    fn balance(&self, account: u64) -> Result<u64, MissingAccount> {
        self.balances.get(&account).copied().ok_or(MissingAccount(account))
    }
}

#[gapless_engine::service(versions = 1..=3)]
impl Ledger {
    #[command]
    fn deposit(&mut self, Deposit { account, amount }: Deposit) {
        *self.balances.entry(account).or_default() += amount;
    }

    #[command]
    fn transfer(&mut self, command: Transfer, context: &mut Context<'_>) -> Result<Booked, NotBooked> {
        let (from, to) = (self.balance(command.from)?, self.balance(command.to)?);
        let left = from.checked_sub(command.amount).ok_or(NotBooked::Overdrawn { balance: from })?;
        self.balances.insert(command.from, left);
        self.balances.insert(command.to, to + command.amount);
        let is_later = context.sequence() > self.last_sequence;
        self.last_sequence = context.sequence();
        Ok(Booked { is_later, left })
    }

    #[query]
    fn balance_of(&self, Balance(account): Balance) -> Result<u64, NotBooked> {
        Ok(self.balance(account)?)
    }

    #[query]
    fn total(&self, _: Total) -> u64 {
        self.balances.values().sum()
    }

    #[query]
    fn last_sequence(&self, _: LastSequence, context: &QueryContext) -> u64 {
        context.sequence()
    }
}

fn start(directory: &Path) -> (ServiceHost, PolledClient, SessionKey) {
    let host = ServiceHost::start(Ledger::default(), ServiceHostOptions::in_directory(directory)).unwrap();
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let session = client.open_session(1, 16).unwrap();
    (host, client, session)
}

#[test]
fn methods_are_commands() {
    assert_eq!(Ledger::versions(), 1..=3);
    let directory = tempfile::tempdir().unwrap();
    let (host, mut client, session) = start(directory.path());
    let deposit = |client: &mut PolledClient, account, amount| {
        client.call_request(session, &Deposit { account, amount }, PATIENCE).unwrap().unwrap();
    };
    deposit(&mut client, 1, 100);
    let transfer = |client: &mut PolledClient, session, to, amount| {
        client.call_request(session, &Transfer { from: 1, to, amount }, PATIENCE).unwrap()
    };
    assert_eq!(transfer(&mut client, session, 2, 30), Err(NotBooked::NoAccount(2)));
    deposit(&mut client, 2, 0);
    assert_eq!(transfer(&mut client, session, 2, 30), Ok(Booked { is_later: true, left: 70 }));
    assert_eq!(transfer(&mut client, session, 2, 71), Err(NotBooked::Overdrawn { balance: 70 }));
    assert_eq!(client.query_request(&Balance(2), PATIENCE).unwrap(), Ok(30));
    assert_eq!(client.query_request(&Balance(3), PATIENCE).unwrap(), Err(NotBooked::NoAccount(3)));
    assert_eq!(client.query_request(&Total, PATIENCE).unwrap(), Ok(100));
    assert_eq!(client.query_request(&LastSequence, PATIENCE).unwrap(), Ok(client.seen_sequence()));
    host.stop().unwrap();

    let (host, mut client, session) = start(directory.path());
    assert_eq!(transfer(&mut client, session, 2, 60), Ok(Booked { is_later: true, left: 10 }));
    host.stop().unwrap();

    for snapshot in std::fs::read_dir(directory.path().join("snapshots")).unwrap() {
        std::fs::remove_file(snapshot.unwrap().path()).unwrap();
    }
    let (host, mut client, session) = start(directory.path());
    assert_eq!(transfer(&mut client, session, 2, 11), Err(NotBooked::Overdrawn { balance: 10 }));
    host.stop().unwrap();
}

#[test]
fn typed_client_has_methods() {
    let host = ServiceHost::start(Ledger::default(), ServiceHostOptions::in_memory()).unwrap();
    let polled = host.connect(ClientOptions::default()).unwrap();
    let options = CallOptions { within: PATIENCE, ..CallOptions::default() };
    let ledger = LedgerClient::from(Client::over(polled, options).unwrap());
    for account in [1, 2] {
        ledger.deposit(Deposit { account, amount: 50 }).wait().unwrap();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let booked = ledger.transfer(Transfer { from: 1, to: 2, amount: 30 }).await.unwrap();
        assert_eq!(booked, Booked { is_later: true, left: 20 });
        let refused = ledger.clone().transfer(Transfer { from: 1, to: 2, amount: 30 }).await.unwrap_err();
        assert_eq!(refused, CallError::Refused(NotBooked::Overdrawn { balance: 20 }));
        assert_eq!(ledger.balance_of(Balance(2)).await.unwrap(), 80);
    });
    assert_eq!(ledger.total(Total).wait().unwrap(), 100);
    let refused = ledger.balance_of(Balance(3)).wait().unwrap_err();
    assert!(matches!(refused, QueryError::Refused(NotBooked::NoAccount(3))), "{refused}");
    assert_eq!(ledger.last_sequence(LastSequence).wait().unwrap(), ledger.client().seen_sequence());
    host.stop().unwrap();
}
