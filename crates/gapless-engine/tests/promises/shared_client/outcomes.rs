//! A command whose outcome is unknown can be asked for.

use super::*;
use gapless_agent::block_on::block_on;
use gapless_client::{CallError, CommandNumber, blocking};

/// A call of the command ends before its reply.
fn unknown(client: &Client, name: u64) -> CommandNumber {
    match block_on(add(client, name).within(Duration::from_millis(50))) {
        Err(CallError::Unknown { number, .. }) => number,
        other => panic!("{other:?}"),
    }
}

#[test]
fn unknown_outcome_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let gate = Gate::default();
    let mut host = in_directory(directory.path(), &gate);
    let client = block_on(Client::connect(directory.path().to_str().unwrap()).within(PATIENCE).into_future()).unwrap();
    block_on(async { add(&client, ONCE).await.unwrap() });
    let closed = gate.close();
    let (done, refused) = (unknown(&client, 1), unknown(&client, ONCE));
    let early = block_on(client.outcome::<Add>(done).within(Duration::from_millis(50))).unwrap_err();
    assert!(matches!(early, CallError::Unknown { number, .. } if number == done), "{early}");
    closed.open();
    let twice = CallError::Refused(Twice { name: ONCE, first_place: 1 });
    for round in 0..3 {
        assert_eq!(block_on(client.outcome::<Add>(done)), Ok(2), "in round {round}");
        assert_eq!(block_on(client.outcome::<Add>(refused)), Err(twice.clone()));
        assert_eq!(blocking::Client::from(client.clone()).outcome::<Add>(done), Ok(2));
        host.stop().unwrap();
        host = in_directory(directory.path(), &gate);
    }
    for name in 100..180 {
        block_on(add(&client, name)).unwrap();
    }
    let expired = block_on(client.outcome::<Add>(done)).unwrap_err();
    assert!(matches!(expired, CallError::Unknown { number, .. } if number == done), "{expired}");
    host.stop().unwrap();
}
