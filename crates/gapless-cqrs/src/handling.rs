//! Tells whether the current thread runs a command handler, and keeps the commands that it has sent until its own is
//! released.

use crate::origin::Origin;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

thread_local! {
    static IS_HANDLING: Cell<bool> = const { Cell::new(false) };
    static SENT: RefCell<Vec<Sent>> = const { RefCell::new(Vec::new()) };
}

/// A command sent by a handler; called with the handler's own command if that was accepted.
pub(crate) type Sent = Box<dyn FnOnce(Option<&Origin<'_>>) + Send>;

/// Commands sent by the handler of an accepted command.
struct Behind {
    sequence: u64,
    session: u64,
    number: u64,
    metadata: Box<[u8]>,
    sent: Vec<Sent>,
}

/// Commands to be sent once those of their handlers are released: before that they may be truncated.
#[derive(Default)]
pub(crate) struct SentBehind {
    /// Approximate: whether there are any.
    has_any: AtomicBool,
    waiting: Mutex<VecDeque<Behind>>,
}

#[inline]
pub(crate) fn is_handling() -> bool {
    IS_HANDLING.get()
}

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

/// Queues a command to follow the one being handled.
pub(crate) fn send_behind(sent: Sent) {
    SENT.with_borrow_mut(|all| all.push(sent));
}

/// Settles the queued commands, once it is known whether the handled one is accepted. `accepted` returns its sequence
/// and origin.
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
        // Release: pairs with `released`, which runs after the release of the command.
        self.has_any.store(true, Ordering::Release);
    }

    /// Sends the commands that follow transactions up to `sequence`.
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

    /// Drops commands that follow unreleased ones, which may be truncated.
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
