#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::atomic::Ordering;

use crate::word::{Word, WordWithoutFences};
use gapless_agent::announcements::Announcements;
use gapless_agent::atomic_word::AtomicWord;
use loom::sync::atomic::AtomicU64;
use loom::sync::{Arc, Mutex};
use loom::thread;

struct Shared<A: AtomicWord> {
    announcements: Announcements<A>,
    published: [AtomicU64; 2],
    done: Mutex<[u64; 2]>,
}

/// Publishes one piece of work, and does all that is published unless another owner of the lock does.
fn publish<A: AtomicWord>(shared: &Shared<A>, thread: usize) {
    // Relaxed on purpose: only the announcement may order this.
    shared.published[thread].store(1, Ordering::Relaxed);
    shared.announcements.announce();
    while let Ok(mut done) = shared.done.try_lock() {
        let known = shared.announcements.known();
        *done = [0, 1].map(|thread: usize| shared.published[thread].load(Ordering::Relaxed));
        drop(done);
        if !shared.announcements.has_news(known) {
            break;
        }
    }
}

fn no_work_is_left<A: AtomicWord + 'static>() {
    let shared = Arc::new(Shared::<A> {
        announcements: Announcements::new(),
        published: [AtomicU64::new(0), AtomicU64::new(0)],
        done: Mutex::new([0, 0]),
    });
    let other = thread::spawn({
        let shared = Arc::clone(&shared);
        move || publish(&shared, 1)
    });
    publish(&shared, 0);
    other.join().unwrap();
    assert_eq!(*shared.done.lock().unwrap(), [1, 1], "work is left");
}

#[test]
fn owner_sees_each_announcement() {
    loom::model(no_work_is_left::<Word>);
}

/// Control: otherwise the test above would prove nothing.
#[test]
#[should_panic(expected = "work is left")]
fn without_fences_work_is_left() {
    loom::model(no_work_is_left::<WordWithoutFences>);
}
