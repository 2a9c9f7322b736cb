//! Whether this thread runs a handler of commands now, and the commands that it has sent meanwhile: they follow if its own counts.

use crate::origin::Origin;
use std::cell::{Cell, RefCell};

thread_local! {
    static IS_HANDLING: Cell<bool> = const { Cell::new(false) };
    static SENT: RefCell<Vec<Sent>> = const { RefCell::new(Vec::new()) };
}

/// A command that a handler has sent; called with the handler's own command if that counts.
pub(crate) type Sent = Box<dyn FnOnce(Option<&Origin<'_>>)>;

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

/// It is known whether the command that was handled counts: it is returned if it does.
#[inline]
pub(crate) fn settle<'a>(counts: impl FnOnce() -> Option<Origin<'a>>) {
    if SENT.with_borrow(Vec::is_empty) {
        return;
    }
    send_all(counts().as_ref());
}

#[cold]
fn send_all(origin: Option<&Origin<'_>>) {
    for sent in SENT.take() {
        sent(origin);
    }
}
