//! The application's functions, where a panic in one must not unwind the thread that runs it. What it has changed by then is its own
//! affair, as it is with a mutex that is poisoned.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a function of the application.
///
/// # Errors
/// The text of its panic if it panics.
pub fn caught<T>(function: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(function)).map_err(|panic| text_of(&*panic))
}

/// Runs one that nobody waits for: its panic is logged.
pub fn run(what: &str, function: impl FnOnce()) {
    if let Err(panic) = caught(function) {
        tracing::error!(panic, "{what} has panicked");
    }
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("with something that is no text").to_owned()
}
