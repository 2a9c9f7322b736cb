#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test")]

use crate::word::{Word, WordWithoutFences};
use gapless_agent::atomic_word::AtomicWord;
use gapless_agent::latch::Latch;
use loom::sync::Arc;
use loom::thread;

/// Two writes into the same slot are the minimum that can harm a reader.
fn reads_are_whole_and_in_order<A: AtomicWord + 'static>() {
    let latch = Arc::new(Latch::<2, A>::new([1, 10]));
    let writer = {
        let latch = latch.clone();
        thread::spawn(move || {
            for write in 2..=3 {
                latch.write([write, write * 10]);
            }
        })
    };
    let mut last = 0;
    for _ in 0..2 {
        let [first, second] = latch.read();
        assert_eq!(second, first * 10, "words of two writes");
        assert!(first >= last, "an older write after a newer one");
        last = first;
    }
    writer.join().unwrap();
    assert_eq!(latch.read(), [3, 30]);
}

#[test]
fn reader_gets_one_write() {
    loom::model(reads_are_whole_and_in_order::<Word>);
}

/// Control: otherwise the test above would prove nothing.
#[test]
#[should_panic(expected = "words of two writes")]
fn without_fences_two_writes_mix() {
    loom::model(reads_are_whole_and_in_order::<WordWithoutFences>);
}
