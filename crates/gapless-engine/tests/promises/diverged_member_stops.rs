//! A member whose state differs after the same sequence, leader or follower, stops with an error that says where; the
//! others continue.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use crate::replicas::{Caller, Cluster, wait};
use gapless_client::polled::MessageType;
use gapless_engine::{Context, Handlers, Reject, Service};
use gapless_schema::Encoding;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const NUMBER: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const DIFFERS_FROM: u64 = 120;

struct Sum {
    sum: u64,
    is_planted: Arc<AtomicBool>,
}

impl Service for Sum {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(NUMBER.schema, |it: &mut Self, payload: &[u8], context: &mut Context<'_>| {
            let number =
                payload.first_chunk().ok_or(Reject::from("8 bytes".to_owned())).map(|it| u64::from_le_bytes(*it))?;
            it.sum += number;
            if context.sequence() == DIFFERS_FROM && it.is_planted.load(Ordering::Relaxed) {
                it.sum += 1;
            }
            context.reply_with(NUMBER, payload)
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.sum.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.sum = u64::from_le_bytes(state.try_into().map_err(|_| "8 bytes")?);
        Ok(())
    }
}

fn started() -> (Cluster, Vec<Arc<AtomicBool>>) {
    // A long timeout keeps the leader on a busy machine: the next one has no hashes to compare.
    let mut cluster = Cluster::new(3, "[election]\ntimeout = \"2 s\"\n[service]\nhash_interval_frames = 50\n");
    let planted: Vec<_> = (0..3).map(|_| Arc::<AtomicBool>::default()).collect();
    for member in 1..=3 {
        let is_planted = Arc::clone(&planted[member - 1]);
        cluster.start(member, Sum { sum: 0, is_planted }).unwrap();
    }
    (cluster, planted)
}

fn compared(cluster: &Cluster) -> Option<u64> {
    let status = cluster.of(cluster.leader()).member().status()?;
    status.compared_sequence
}

fn stops(leads: bool) {
    let (mut cluster, planted) = started();
    let mut caller = Caller::new(&cluster, NUMBER);
    caller.call_until(&mut cluster, 20);
    let leader = cluster.leader();
    let odd = if leads { leader } else { leader % 3 + 1 };
    planted[odd - 1].store(true, Ordering::Relaxed);
    caller.call_until(&mut cluster, 90);
    wait("the comparison before the difference", || compared(&cluster).filter(|sequence| *sequence == 50));
    assert!(cluster.failures.is_empty(), "{:?}", cluster.failures);
    // With the session's open, 50, 100 and 150 are passed.
    caller.call_until(&mut cluster, 170);
    let error = wait("the end of the differing member", || {
        cluster.end_failed();
        cluster.failures.get(&odd).cloned()
    });
    assert!(error.contains(&format!("the state of member {odd} differs")), "{error}");
    assert!(error.contains("the same after sequence 100, and differs after sequence 150"), "{error}");
    caller.call_until(&mut cluster, 400);
    let others: Vec<usize> = (1..=3).filter(|member| *member != odd).collect();
    wait("later comparisons", || compared(&cluster).filter(|sequence| *sequence == 400));
    assert_eq!(cluster.failures.len(), 1, "{:?}", cluster.failures);
    drop(caller);
    cluster.ends_equal(&others);
}

#[test]
fn differing_follower_stops() {
    stops(false);
}

#[test]
fn differing_leader_hands_over() {
    stops(true);
}

#[test]
fn equal_members_continue() {
    let (mut cluster, _) = started();
    let mut caller = Caller::new(&cluster, NUMBER);
    caller.call_until(&mut cluster, 1_000);
    wait("the last comparison", || compared(&cluster).filter(|sequence| *sequence == 1_000));
    assert!(cluster.failures.is_empty(), "{:?}", cluster.failures);
    drop(caller);
    cluster.ends_equal(&[1, 2, 3]);
}
