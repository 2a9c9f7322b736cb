//! Whether this thread runs a handler of commands now, and the commands that it has sent meanwhile: they follow when its own is released.

use crate::origin::Origin;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

thread_local! {
    static IS_HANDLING: Cell<bool> = const { Cell::new(false) };
    static SENT: RefCell<Vec<Sent>> = const { RefCell::new(Vec::new()) };
}

/// A command that a handler has sent; called with the handler's own command if that counts.
pub(crate) type Sent = Box<dyn FnOnce(Option<&Origin<'_>>) + Send>;

/// What a command's handler has sent, which was accepted.
struct Behind {
    sequence: u64,
    session: u64,
    number: u64,
    metadata: Box<[u8]>,
    sent: Vec<Sent>,
}

/// What is sent when the commands are released whose handlers have sent it: before that they may be cut.
#[derive(Default)]
pub(crate) struct SentBehind {
    /// Whether there are any, about.
    has_any: AtomicBool,
    waiting: Mutex<VecDeque<Behind>>,
}

/// Whether this thread runs a handler.
#[inline]
pub(crate) fn is_handling() -> bool {
    IS_HANDLING.get()
}

/// Runs a handler.
#[inline]
pub(crate) fn within<T>(handler: impl FnOnce() -> T) -> T {
    struct Ends;
    impl Drop for Ends {
        fn drop(&mut self) {
            IS_HANDLING.set(false);
        }
    }
    IS_HANDLING.set(true);
    let _ends = Ends;
    handler()
}

/// A command follows the one that is handled.
pub(crate) fn send_behind(sent: Sent) {
    SENT.with_borrow_mut(|all| all.push(sent));
}

/// It is known whether the command that was handled counts: if it does, `accepted` says which transaction it is, and what it was.
#[inline]
pub(crate) fn settle<'a>(behind: &SentBehind, accepted: impl FnOnce() -> Option<(u64, Origin<'a>)>) {
    if !SENT.with_borrow(Vec::is_empty) {
        behind.settle(accepted());
    }
}

impl SentBehind {
    #[cold]
    fn settle(&self, accepted: Option<(u64, Origin<'_>)>) {
        let sent = SENT.take();
        let Some((sequence, Origin { session, number, metadata })) = accepted else {
            return sent.into_iter().for_each(|sent| sent(None));
        };
        let metadata = metadata.into();
        self.lock().push_back(Behind { sequence, session, number, metadata, sent });
        // Release: pairs with `released`, which the release of the command follows.
        self.has_any.store(true, Ordering::Release);
    }

    /// Everything up to that sequence is released.
    #[inline]
    pub fn released(&self, sequence: u64) {
        if self.has_any.load(Ordering::Acquire) {
            self.send(sequence);
        }
    }

    #[cold]
    fn send(&self, released: u64) {
        loop {
            let mut waiting = self.lock();
            let Some(Behind { session, number, metadata, sent, .. }) =
                waiting.pop_front_if(|behind| behind.sequence <= released)
            else {
                self.has_any.store(!waiting.is_empty(), Ordering::Release);
                return;
            };
            drop(waiting);
            let origin = Origin { session, number, metadata: &metadata };
            sent.into_iter().for_each(|sent| sent(Some(&origin)));
        }
    }

    /// What is not released may be cut: nothing follows it.
    #[cold]
    pub fn withdraw(&self) {
        let waiting = std::mem::take(&mut *self.lock());
        waiting.into_iter().flat_map(|behind| behind.sent).for_each(|sent| sent(None));
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Behind>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SentBehind {
    fn drop(&mut self) {
        self.withdraw();
    }
}
