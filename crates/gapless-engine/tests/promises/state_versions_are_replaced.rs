//! Programs with different versions of a derived state, on the members of one cluster: they are replaced one by one, and
//! a program that is older than a snapshot says so.

use crate::replicas::{Caller, Cluster, wait};
use gapless_client::polled::MessageType;
use gapless_engine::{Context, Handlers, Reject, Service};
use gapless_message::State;
use gapless_message::state::{self, OldState};
use gapless_schema::Encoding;
use serde::{Deserialize, Serialize};

const NUMBER: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

#[derive(Default, Serialize, Deserialize, State)]
#[state(name = "Tally")]
struct OldTally {
    sum: u64,
}

#[derive(Default, Serialize, Deserialize, State)]
#[state(version = 2, upgrade = Tally::of_older)]
struct Tally {
    sum: u64,
    /// Follows from the sum.
    half: u64,
}

impl Tally {
    fn of_older(old: OldState<'_>) -> Result<Self, String> {
        let OldTally { sum } = old.decode()?;
        Ok(Self { sum, half: sum / 2 })
    }
}

trait Counting: State + Default {
    fn add(&mut self, number: u64);
}

impl Counting for OldTally {
    fn add(&mut self, number: u64) {
        self.sum += number;
    }
}

impl Counting for Tally {
    fn add(&mut self, number: u64) {
        self.sum += number;
        self.half = self.sum / 2;
    }
}

#[derive(Default)]
struct Program<T>(T);

impl<T: Counting> Service for Program<T> {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(NUMBER.schema, |it: &mut Self, payload: &[u8], context: &mut Context<'_>| {
            let number = payload.first_chunk().ok_or(Reject::from("8 bytes".to_owned()))?;
            it.0.add(u64::from_le_bytes(*number));
            context.reply_with(NUMBER, payload)
        });
    }

    fn snapshot(&self, bytes: &mut Vec<u8>) {
        state::write(&self.0, bytes);
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.0 = state::read(bytes).map_err(|error| error.to_string())?;
        Ok(())
    }
}

fn replace<T: Counting>(cluster: &mut Cluster, member: usize) -> Result<(), gapless_engine::EngineError> {
    cluster.members[member - 1].take().unwrap().stop().unwrap();
    cluster.start(member, Program::<T>::default())
}

#[test]
fn state_versions_are_replaced_one_by_one() {
    let mut cluster = Cluster::new(3, "[service]\nhash_interval_frames = 2\n");
    (1..=3).for_each(|member| cluster.start(member, Program::<OldTally>::default()).unwrap());
    let mut caller = Caller::new(&cluster, NUMBER);
    for member in 1..=3 {
        caller.call_more(&mut cluster, 50);
        replace::<Tally>(&mut cluster, member).unwrap();
    }
    caller.call_more(&mut cluster, 50);
    let last = cluster.of(cluster.leader()).handled_sequence();
    wait("a comparison of the new states", || {
        let count = 2;
        caller.call_more(&mut cluster, count);
        let status = cluster.of(cluster.leader()).member().status()?;
        status.compared_sequence.filter(|sequence| *sequence > last)
    });
    assert!(cluster.failures.is_empty(), "{:?}", cluster.failures);

    // A snapshot of the new version, as a member that lagged would fetch one.
    let member = cluster.leader() % 3 + 1;
    let error = replace::<OldTally>(&mut cluster, member).unwrap_err().to_string();
    assert!(
        error.contains("it was written by version 2 of Tally, this program knows 1: start the newer program"),
        "{error}"
    );
    cluster.start(member, Program::<Tally>::default()).unwrap();
    caller.call_more(&mut cluster, 10);
    assert!(cluster.failures.is_empty(), "{:?}", cluster.failures);
    cluster.ends_equal(&[1, 2, 3]);
    drop(caller);
}
