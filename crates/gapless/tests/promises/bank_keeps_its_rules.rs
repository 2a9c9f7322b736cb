//! Accounts and transfers of the example `bank` keep its rules, for any commands and for the events of its first program.

use crate::account::{Account, AccountCommand, AccountEvent, AccountRefusal};
use crate::transfer::{Transfer, TransferHandler, TransferRefusal};
use gapless::Message as _;
use gapless::cqrs::{
    CommandError, CommandHandler as _, CommandModel, Fixture, Invariants, ModelFixture, ModelInvariants, Random,
    TestEvent,
};

#[test]
fn account_never_overdraws() {
    let opened = AccountEvent::Opened("Ada".to_owned());
    let fixture = Fixture::<Account>::of(7)
        .given([opened, AccountEvent::Deposited(100)])
        .when(AccountCommand::Withdraw(30))
        .then([AccountEvent::Withdrawn(30)])
        .when(AccountCommand::Withdraw(71))
        .then_refused(AccountRefusal::Overdrawn { balance: 70 })
        .when(AccountCommand::Deposit(0))
        .then_refused(AccountRefusal::NothingToDo)
        .when(AccountCommand::Close)
        .then([AccountEvent::Closed(70)])
        .when(AccountCommand::Deposit(1))
        .then_refused(AccountRefusal::Closed);
    assert_eq!(fixture.state().balance, 0);
}

#[test]
fn account_is_opened_once_and_first() {
    let open = || AccountCommand::Open("Ada".to_owned());
    let fixture = Fixture::<Account>::of(7).when(AccountCommand::Close).then_error(CommandError::NotFound);
    let opened = AccountEvent::Opened("Ada".to_owned());
    let _ = fixture.when(open()).then([opened]).when(open()).then_error(CommandError::AlreadyExists);
}

#[test]
fn no_command_creates_money() {
    let commands = |random: &mut Random| match random.below(8) {
        0 => AccountCommand::Open("Ada".to_owned()),
        1 => AccountCommand::Close,
        2..=4 => AccountCommand::Deposit(random.below(100)),
        _ => AccountCommand::Withdraw(random.below(100)),
    };
    Invariants::<Account, _>::of(7, commands).hold(|account| assert!(account.balance < 100 * 50));
}

#[test]
fn event_of_version_1_is_understood() {
    let old = AccountEvent::Deposited(5);
    let mut bytes = Vec::new();
    old.encode_as(1, &mut bytes).unwrap();
    assert_eq!(AccountEvent::decode_as(1, &bytes).unwrap(), old);
}

const BOOKED_2500: &[u8] = include_bytes!("../../examples/bank/old_events/booked_2500");
const BOOKED_MINUS_700: &[u8] = include_bytes!("../../examples/bank/old_events/booked_minus_700");
const REVIEWED_BY_BOB: &[u8] = include_bytes!("../../examples/bank/old_events/reviewed_by_bob");

#[test]
fn events_of_first_program_are_upcast() {
    let fixture = Fixture::<Account>::of(7)
        .given_old("AccountBooking", 1, BOOKED_2500)
        .given_old("AccountBooking", 1, REVIEWED_BY_BOB)
        .given_old("AccountBooking", 1, BOOKED_MINUS_700)
        .when(AccountCommand::Withdraw(1801))
        .then_refused(AccountRefusal::Overdrawn { balance: 1800 });
    assert_eq!(fixture.state().balance, 1800);
}

fn to(account: u64, event: AccountEvent) -> TestEvent {
    TestEvent::to::<Account>(&account, event)
}

fn accounts() -> ModelFixture {
    let opened = |account| {
        let owner = "Ada".to_owned();
        [to(account, AccountEvent::Opened(owner)), to(account, AccountEvent::Deposited(100))]
    };
    let model = CommandModel::new().aggregate::<Account>().handler(TransferHandler);
    ModelFixture::of(model).given([1, 2, 3].map(opened).into_iter().flatten())
}

#[test]
fn transfer_changes_both_or_none() {
    let overdrawn = AccountRefusal::Overdrawn { balance: 70 };
    let mut fixture = accounts()
        .when(TransferHandler::command(&Transfer { from: 1, to: 2, amount: 30 }))
        .then_reply(70)
        .then([to(1, AccountEvent::Withdrawn(30)), to(2, AccountEvent::Deposited(30))])
        .when(TransferHandler::command(&Transfer { from: 1, to: 2, amount: 71 }))
        .then_refused(TransferRefusal::Refused { account: 1, refusal: Some(overdrawn) })
        .when(TransferHandler::command(&Transfer { from: 1, to: 4, amount: 70 }))
        .then_refused(TransferRefusal::Refused { account: 4, refusal: None })
        .when(TransferHandler::command(&Transfer { from: 1, to: 1, amount: 70 }))
        .then_refused(TransferRefusal::SameAccount);
    assert_eq!(fixture.state::<Account>(&1).unwrap().balance, 70);
}

#[test]
fn transfers_keep_the_sum() {
    let transfers = |random: &mut Random| {
        let (from, to) = (random.below(5), random.below(5));
        Transfer { from, to, amount: random.below(150) }
    };
    let send = |fixture: ModelFixture, transfer| fixture.when(TransferHandler::command(&transfer)).then_anything();
    ModelInvariants::of(accounts, transfers, send).hold(|fixture| {
        let balances = (0..5).filter_map(|id| fixture.state::<Account>(&id)).map(|account| account.balance);
        assert_eq!(balances.sum::<u64>(), 300);
    });
}
