#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::atomic::Ordering;

use crate::word::{Word, WordWithoutFences};
use gapless_agent::atomic_word::AtomicWord;
use gapless_agent::park_flag::ParkFlag;
use loom::sync::atomic::AtomicU64;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// A wait without a signal never ends: a lost wake-up is a deadlock, which loom reports.
struct EventFd {
    signalled: Mutex<bool>,
    changed: Condvar,
}

impl EventFd {
    fn new() -> Self {
        Self { signalled: Mutex::new(false), changed: Condvar::new() }
    }
    fn signal(&self) {
        *self.signalled.lock().unwrap() = true;
        self.changed.notify_one();
    }
    fn wait(&self) {
        let mut signalled = self.signalled.lock().unwrap();
        while !*signalled {
            signalled = self.changed.wait(signalled).unwrap();
        }
        *signalled = false;
    }
}

struct Shared<A: AtomicWord> {
    flag: ParkFlag<A>,
    eventfd: EventFd,
    published: AtomicU64,
}

fn no_wake_up_is_lost<A: AtomicWord + 'static>(senders: u64) {
    let shared = Arc::new(Shared::<A> { flag: ParkFlag::new(), eventfd: EventFd::new(), published: AtomicU64::new(0) });
    let threads: Vec<_> = (0..senders)
        .map(|_| {
            let shared = shared.clone();
            thread::spawn(move || {
                // Relaxed on purpose: only the flag's fences may order this.
                shared.published.fetch_add(1, Ordering::Relaxed);
                if shared.flag.claim_wake() {
                    shared.eventfd.signal();
                }
            })
        })
        .collect();
    loop {
        if shared.published.load(Ordering::Relaxed) == senders {
            break;
        }
        shared.flag.announce();
        if shared.published.load(Ordering::Relaxed) != senders {
            shared.eventfd.wait();
        }
        shared.flag.withdraw();
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn one_sender() {
    loom::model(|| no_wake_up_is_lost::<Word>(1));
}

/// Three threads have too many interleavings: up to two preemptions.
#[test]
fn two_senders() {
    let mut bounded = loom::model::Builder::new();
    bounded.preemption_bound = Some(2);
    bounded.check(|| no_wake_up_is_lost::<Word>(2));
}

/// Control: otherwise the two tests above would prove nothing.
#[test]
#[should_panic(expected = "deadlock")]
fn without_fences_wake_up_is_lost() {
    loom::model(|| no_wake_up_is_lost::<WordWithoutFences>(1));
}

#[test]
fn claimed_wake_up_publishes_work() {
    loom::model(|| {
        let flag = Arc::new(ParkFlag::<Word>::new());
        let work = Arc::new(AtomicU64::new(0));
        flag.announce();
        let sender = {
            let (flag, work) = (flag.clone(), work.clone());
            thread::spawn(move || {
                work.store(7, Ordering::Relaxed);
                flag.claim_wake()
            })
        };
        if flag.withdraw() {
            assert_eq!(work.load(Ordering::Relaxed), 7);
        }
        sender.join().unwrap();
    });
}
