//! Runs the interceptors around a decision, and catches their panics.

use crate::interceptor::{HandlerInterceptor, InterceptedCommand};
use crate::outcome::CommandOutcome;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Interceptors = [Box<dyn HandlerInterceptor>];

/// Runs all up to the first refusal, whose reason is returned. An error is the message of a panic.
pub(super) fn before(
    interceptors: &mut Interceptors,
    command: &InterceptedCommand<'_>,
) -> Result<Result<(), String>, String> {
    let asked = catch_unwind(AssertUnwindSafe(|| interceptors.iter_mut().try_for_each(|each| each.before(command))));
    asked.map_err(|panic| panic_text(&*panic))
}

pub(super) fn after(interceptors: &mut Interceptors, command: &InterceptedCommand<'_>, outcome: &CommandOutcome<'_>) {
    for interceptor in interceptors.iter_mut().rev() {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| interceptor.after(command, outcome))) {
            tracing::error!("an interceptor panicked behind a command: {}", panic_text(&*panic));
        }
    }
}

pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
