//! A new version takes effect at one sequence on all members; programs are replaced one by one, and one without it
//! stops there.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use crate::replicas::{Caller, Cluster, PATIENCE, wait};
use gapless_client::polled::MessageType;
use gapless_cluster::member::requests::{AdminCommand, AdminOutcome};
use gapless_engine::{Context, EngineError, Handlers, Reject, Service};
use gapless_schema::Encoding;
use std::ops::RangeInclusive;

const NUMBER: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

/// Adds numbers, twice each from version 2 on; has the versions up to `LAST`.
#[derive(Default)]
struct Sum<const LAST: u32>(u64);

impl<const LAST: u32> Service for Sum<LAST> {
    fn versions() -> RangeInclusive<u32> {
        1..=LAST
    }

    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(NUMBER.schema, |it: &mut Self, payload: &[u8], context: &mut Context<'_>| {
            let number =
                payload.first_chunk().ok_or(Reject::from("8 bytes".to_owned())).map(|it| u64::from_le_bytes(*it))?;
            let version = u64::from(context.version());
            it.0 += number * version;
            context.reply_with(NUMBER, &[it.0, version, context.sequence()].map(u64::to_le_bytes).concat())
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.0.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.0 = u64::from_le_bytes(state.try_into().map_err(|_| "8 bytes")?);
        Ok(())
    }
}

fn replies(caller: &Caller) -> Vec<[u64; 3]> {
    let words = |bytes: &Vec<u8>| [0, 8, 16].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()));
    caller.replies.values().map(words).collect()
}

fn upgrade(cluster: &Cluster, version: u32, words: Option<&str>) {
    let mut last = None;
    wait(&format!("{words:?} for version {version}"), || {
        last = cluster.of(cluster.leader()).member().ask(AdminCommand::Upgrade(version), PATIENCE);
        match (&last, words) {
            (Some(AdminOutcome::Begun), None) => Some(()),
            (Some(AdminOutcome::Begun), Some(_)) => panic!("the upgrade was accepted"),
            (Some(AdminOutcome::NotUpgraded(reason)), Some(words)) => reason.contains(words).then_some(()),
            _ => None,
        }
    });
}

#[test]
fn members_switch_version_together() {
    let mut cluster = Cluster::new(3, "[service]\nhash_interval_frames = 10\n");
    (1..=3).for_each(|member| cluster.start(member, Sum::<1>::default()).unwrap());
    let mut caller = Caller::new(&cluster, NUMBER);
    caller.call_until(&mut cluster, 20);
    for member in 1..=3 {
        upgrade(&cluster, 2, Some("not 2; replace its program first"));
        cluster.members[member - 1].take().unwrap().stop().unwrap();
        cluster.start(member, Sum::<2>::default()).unwrap();
        caller.call_until(&mut cluster, 20 + 20 * member as u64);
    }
    assert!(replies(&caller).iter().all(|[_, version, _]| *version == 1), "the new programs act as version 1");
    upgrade(&cluster, 3, Some("not 3; replace its program first"));
    upgrade(&cluster, 2, None);
    wait("the new version", || {
        let count = caller.replies.len() as u64;
        caller.call_until(&mut cluster, count + 10);
        replies(&caller).iter().any(|[_, version, _]| *version == 2).then_some(())
    });
    let (mut sum, mut before) = (0, 1);
    for (number, [found, version, sequence]) in (1..).zip(replies(&caller)) {
        assert!(version >= before, "never back: {number} at sequence {sequence}");
        (before, sum) = (version, sum + number * version);
        assert_eq!(found, sum, "command {number}");
    }
    let member = cluster.leader() % 3 + 1;
    cluster.members[member - 1].take().unwrap().stop().unwrap();
    let error = cluster.start(member, Sum::<1>::default()).expect_err("it has no version 2");
    assert!(matches!(error, EngineError::Version { version: 2, first: 1, last: 1, .. }), "{error}");
    cluster.start(member, Sum::<2>::default()).unwrap();
    let count = caller.replies.len() as u64;
    caller.call_until(&mut cluster, count + 50);
    assert_eq!(replies(&caller).last().unwrap()[1], 2);
    assert!(cluster.failures.is_empty(), "{:?}", cluster.failures);
    drop(caller);
    cluster.ends_equal(&[1, 2, 3]);
}

#[test]
fn old_program_stops_at_mark() {
    let mut cluster = Cluster::new(3, "");
    (1..=3).for_each(|member| cluster.start(member, Sum::<2>::default()).unwrap());
    let mut caller = Caller::new(&cluster, NUMBER);
    caller.call_until(&mut cluster, 20);
    let odd = cluster.leader() % 3 + 1;
    cluster.members[odd - 1].take().unwrap().stop().unwrap();
    upgrade(&cluster, 2, None);
    wait("the new version", || {
        let count = caller.replies.len() as u64;
        caller.call_until(&mut cluster, count + 10);
        replies(&caller).iter().any(|[_, version, _]| *version == 2).then_some(())
    });
    let first = replies(&caller).into_iter().find(|[_, version, _]| *version == 2).unwrap()[2];
    let error = match cluster.start(odd, Sum::<1>::default()) {
        Err(error) => error.to_string(),
        Ok(()) => wait("its end", || {
            cluster.end_failed();
            cluster.failures.get(&odd).cloned()
        }),
    };
    assert!(error.contains("acts as version 2") && error.contains("only 1 to 1"), "{error}");
    let at = error.split_once("from sequence ").unwrap().1.split_once(' ').unwrap().0;
    assert_eq!(at.parse::<u64>().unwrap() + 1, first, "exactly at the mark: {error}");
    cluster.start(odd, Sum::<2>::default()).unwrap();
    let count = caller.replies.len() as u64;
    caller.call_until(&mut cluster, count + 10);
    drop(caller);
    cluster.ends_equal(&[1, 2, 3]);
}
