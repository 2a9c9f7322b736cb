//! Tells whether the current thread runs a command handler, and keeps the commands that it has sent until its own is
//! released.

use crate::origin::CommandOrigin;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

thread_local! {
    static IS_HANDLING: Cell<bool> = const { Cell::new(false) };
    static FOLLOW_UPS: RefCell<Vec<FollowUp>> = const { RefCell::new(Vec::new()) };
}

/// Called with the handler's own command if that was accepted.
pub(crate) type FollowUp = Box<dyn FnOnce(Option<&CommandOrigin<'_>>) + Send>;

struct FollowUps {
    sequence: u64,
    session: u64,
    number: u64,
    metadata: Box<[u8]>,
    commands: Vec<FollowUp>,
}

/// Commands to be sent once those of their handlers are released: before that they may be truncated.
#[derive(Default)]
pub(crate) struct FollowUpQueue {
    /// Approximate.
    has_any: AtomicBool,
    waiting: Mutex<VecDeque<FollowUps>>,
}

#[inline]
pub(crate) fn is_handling() -> bool {
    IS_HANDLING.get()
}

#[inline]
pub(crate) fn run_handler<T>(handler: impl FnOnce() -> T) -> T {
    struct HandlingGuard;
    impl Drop for HandlingGuard {
        fn drop(&mut self) {
            IS_HANDLING.set(false);
        }
    }
    IS_HANDLING.set(true);
    let _guard = HandlingGuard;
    handler()
}

pub(crate) fn send_after_handler(follow_up: FollowUp) {
    FOLLOW_UPS.with_borrow_mut(|all| all.push(follow_up));
}

/// Called once it is known whether the handled command is accepted; `accepted` returns its sequence and origin.
#[inline]
pub(crate) fn settle_follow_ups<'a>(
    follow_ups: &FollowUpQueue,
    accepted: impl FnOnce() -> Option<(u64, CommandOrigin<'a>)>,
) {
    if !FOLLOW_UPS.with_borrow(Vec::is_empty) {
        follow_ups.settle(accepted());
    }
}

impl FollowUpQueue {
    #[cold]
    fn settle(&self, accepted: Option<(u64, CommandOrigin<'_>)>) {
        let commands = FOLLOW_UPS.take();
        let Some((sequence, CommandOrigin { session, number, metadata })) = accepted else {
            return commands.into_iter().for_each(|send| send(None));
        };
        let metadata = metadata.into();
        self.lock().push_back(FollowUps { sequence, session, number, metadata, commands });
        // Release: pairs with `send_released`, which runs after the release of the command.
        self.has_any.store(true, Ordering::Release);
    }

    /// Sends the commands after transactions up to `sequence`.
    #[inline]
    pub fn send_released(&self, sequence: u64) {
        if self.has_any.load(Ordering::Acquire) {
            self.send(sequence);
        }
    }

    #[cold]
    fn send(&self, released: u64) {
        loop {
            let mut waiting = self.lock();
            let Some(FollowUps { session, number, metadata, commands, .. }) =
                waiting.pop_front_if(|follow_ups| follow_ups.sequence <= released)
            else {
                self.has_any.store(!waiting.is_empty(), Ordering::Release);
                return;
            };
            drop(waiting);
            let origin = CommandOrigin { session, number, metadata: &metadata };
            commands.into_iter().for_each(|send| send(Some(&origin)));
        }
    }

    /// Drops commands that follow unreleased ones.
    #[cold]
    pub fn withdraw(&self) {
        let waiting = std::mem::take(&mut *self.lock());
        waiting.into_iter().flat_map(|follow_ups| follow_ups.commands).for_each(|send| send(None));
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<FollowUps>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FollowUpQueue {
    fn drop(&mut self) {
        self.withdraw();
    }
}
