//! `CallScope`: the context that nested calls inherit, kept per thread.

use crate::context::TraceContext;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::mem::ManuallyDrop;
use std::pin::pin;

thread_local! {
    /// Needs no destructor: [`InheritedContext::enter`] restores the previous value.
    static CURRENT: RefCell<ManuallyDrop<InheritedContext>> = const { RefCell::new(ManuallyDrop::new(InheritedContext::NONE)) };
}

#[derive(Clone, Debug)]
pub struct InheritedContext {
    /// ns of the monotonic clock; 0 without one.
    pub deadline_ns: u64,
    /// Trace, with the parent span of the calls.
    pub trace: TraceContext,
}

impl InheritedContext {
    const NONE: Self = Self { deadline_ns: 0, trace: TraceContext::NONE };

    /// Reads the context of the handler on this thread; empty outside of a handler.
    #[inline]
    pub fn with<T>(look: impl FnOnce(&Self) -> T) -> T {
        CURRENT.with_borrow(|current| look(current))
    }

    pub fn get() -> Self {
        Self::with(Clone::clone)
    }

    /// The calls of `handle` have no more time than this one.
    pub fn enter<T>(self, handle: impl FnOnce() -> T) -> T {
        struct Restore(ManuallyDrop<InheritedContext>);
        impl Drop for Restore {
            fn drop(&mut self) {
                let before = std::mem::replace(&mut self.0, ManuallyDrop::new(InheritedContext::NONE));
                drop(ManuallyDrop::into_inner(CURRENT.replace(before)));
            }
        }
        let _restore = Restore(CURRENT.replace(ManuallyDrop::new(self)));
        handle()
    }
}

/// The context that nested calls inherit: in a handler its deadline, its trace, and its `tracing` span. Take it along
/// to another thread or task that continues the handler's work.
///
/// ```
/// # mod gapless { pub use gapless_trace as rpc; }
/// use gapless::rpc::{CallScope, TraceContext};
///
/// let trace: TraceContext = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse()?;
/// let scope = CallScope::current().with_trace(trace.clone());
/// // Calls that are made in it belong to the trace, as those in a handler belong to that of its own call.
/// let seen = std::thread::spawn(move || scope.run(TraceContext::current)).join().unwrap();
/// assert_eq!(seen, trace);
/// # Ok::<(), gapless_trace::TraceParentError>(())
/// ```
#[derive(Clone, Debug)]
pub struct CallScope {
    current: InheritedContext,
    span: tracing::Span,
}

impl CallScope {
    /// Scope of the handler on this thread, or of an entered scope; otherwise empty.
    #[must_use]
    pub fn current() -> Self {
        Self { current: InheritedContext::get(), span: tracing::Span::current() }
    }

    #[must_use]
    pub fn with_trace(mut self, trace: TraceContext) -> Self {
        self.current.trace = trace;
        self
    }

    pub fn run<T>(&self, function: impl FnOnce() -> T) -> T {
        let _entered = self.span.enter();
        self.current.clone().enter(function)
    }

    pub async fn run_async<Future_: Future>(self, future: Future_) -> Future_::Output {
        let mut future = pin!(future);
        poll_fn(|task| self.run(|| future.as_mut().poll(task))).await
    }
}

impl TraceContext {
    /// Trace to pass on: the parent of calls made here, from the handler or the entered scope of this thread.
    #[must_use]
    pub fn current() -> Self {
        InheritedContext::with(|current| current.trace.clone())
    }
}
