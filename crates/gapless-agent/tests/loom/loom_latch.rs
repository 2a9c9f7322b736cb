//! Every interleaving of the latch: a reader gets the words of one write, never of two.
//! Runs only under loom: `RUSTFLAGS="--cfg loom" cargo test -p gapless-agent --release --test loom loom_latch`.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test")]

use crate::word::{Word, WordWithoutFences};
use gapless_agent::atomic_word::AtomicWord;
use gapless_agent::latch::Latch;
use loom::sync::Arc;
use loom::thread;

/// Two writes into the same slot, as many as it takes to hurt a reader, while one thread reads twice.
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
fn a_reader_gets_the_words_of_one_write() {
    loom::model(reads_are_whole_and_in_order::<Word>);
}

/// The control: if the fences could be left away, the test above would prove nothing.
#[test]
#[should_panic(expected = "words of two writes")]
fn without_the_fences_a_reader_gets_words_of_two_writes() {
    loom::model(reads_are_whole_and_in_order::<WordWithoutFences>);
}
