//! State left inconsistent by a panic is the application's concern, as with a poisoned mutex.

use crate::process_mark::ProcessMark;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

thread_local! {
    static STARTED_BY: Cell<Option<ProcessMark>> = const { Cell::new(None) };
}

/// Marks this thread as started by Gapless. If an application function on it forks, the child ends when the function
/// returns: the thread's further work belongs to the parent, much of it in shared memory.
pub fn own_this_thread() {
    STARTED_BY.set(Some(ProcessMark::current()));
}

/// Runs a function of the application and catches its panic.
///
/// # Errors
/// Text of the panic.
pub fn catch_panic<T>(function: impl FnOnce() -> T) -> Result<T, String> {
    let ran = catch_unwind(AssertUnwindSafe(function));
    if let Some(process) = STARTED_BY.get() {
        process.end_child("a function of the application");
    }
    ran.map_err(|panic| {
        let text = text_of(&*panic);
        // Dropping the panic's payload may panic too; that second payload is leaked.
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            std::mem::forget(again);
        }
        text
    })
}

/// Logs a panic of the function, which has no waiting caller.
pub fn run(what: &str, function: impl FnOnce()) {
    if let Err(panic) = catch_panic(function) {
        tracing::error!(panic, "{what} has panicked");
    }
}

/// The waker may be the application's own code.
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

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::panic_any(Bomb);
        }
    }

    #[test]
    fn panicking_payload_drop_is_caught() {
        assert_eq!(
            catch_panic(|| std::panic::panic_any(Bomb)),
            Err::<(), _>("with something that is no text".to_owned())
        );
        assert_eq!(catch_panic(|| panic!("text")), Err::<(), _>("text".to_owned()));
        assert_eq!(catch_panic(|| 7), Ok(7));
    }
}
