//! The application's functions, where a panic in one must not unwind the thread that runs it. What it has changed by then is its own
//! affair, as it is with a mutex that is poisoned.

use crate::process_mark::ProcessMark;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

thread_local! {
    /// The process of a thread that Gapless has started.
    static STARTED_BY: Cell<Option<ProcessMark>> = const { Cell::new(None) };
}

/// This thread is Gapless's own. If a function of the application that runs on it forks, the child ends where the function returns: what
/// the thread has to do next is its parent's affair, and much of it lies in memory that both share.
pub fn own_this_thread() {
    STARTED_BY.set(Some(ProcessMark::current()));
}

/// Runs a function of the application.
///
/// # Errors
/// The text of its panic if it panics.
pub fn caught<T>(function: impl FnOnce() -> T) -> Result<T, String> {
    let ran = catch_unwind(AssertUnwindSafe(function));
    if let Some(process) = STARTED_BY.get() {
        process.end_child("a function of the application");
    }
    ran.map_err(|panic| {
        let text = text_of(&*panic);
        // What it has panicked with may panic, too, when it goes; what that has panicked with stays.
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            std::mem::forget(again);
        }
        text
    })
}

/// Runs one that nobody waits for: its panic is logged.
pub fn run(what: &str, function: impl FnOnce()) {
    if let Err(panic) = caught(function) {
        tracing::error!(panic, "{what} has panicked");
    }
}

/// Wakes a task, whatever it is: an executor's, or a waker that the application has made.
#[inline]
pub fn wake(task: Waker) {
    run("the waker of a task", || task.wake());
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("with something that is no text").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Panics when it goes, with another of its kind.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::panic_any(Bomb);
        }
    }

    #[test]
    fn what_a_panic_goes_with_may_panic_too() {
        assert_eq!(caught(|| std::panic::panic_any(Bomb)), Err::<(), _>("with something that is no text".to_owned()));
        assert_eq!(caught(|| panic!("text")), Err::<(), _>("text".to_owned()));
        assert_eq!(caught(|| 7), Ok(7));
    }
}
