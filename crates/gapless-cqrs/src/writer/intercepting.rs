//! The interceptors around a decision: what panics in one of them ends here.

use crate::ending::Ending;
use crate::interceptor::{HandlerInterceptor, Intercepted};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Interceptors = [Box<dyn HandlerInterceptor>];

/// Asks all of them, up to the first that refuses: its reason. An error is what one that has panicked said.
pub(super) fn before(interceptors: &mut Interceptors, command: &Intercepted<'_>) -> Result<Result<(), String>, String> {
    let asked = catch_unwind(AssertUnwindSafe(|| interceptors.iter_mut().try_for_each(|each| each.before(command))));
    asked.map_err(|panic| said(&*panic))
}

/// Tells all of them.
pub(super) fn after(interceptors: &mut Interceptors, command: &Intercepted<'_>, ending: &Ending<'_>) {
    for interceptor in interceptors.iter_mut().rev() {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| interceptor.after(command, ending))) {
            tracing::error!("an interceptor panicked behind a command: {}", said(&*panic));
        }
    }
}

/// What a panic has said.
pub(super) fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
