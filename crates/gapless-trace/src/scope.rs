//! [`CallScope`]: what calls inherit from where they are made, which is kept for each thread.

use crate::context::TraceContext;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::mem::ManuallyDrop;
use std::pin::pin;

thread_local! {
    /// Nothing is lost with a thread, because [`Current::enter`] leaves behind what it has found; so none pays for a destructor.
    static CURRENT: RefCell<ManuallyDrop<Current>> = const { RefCell::new(ManuallyDrop::new(Current::NONE)) };
}

/// What calls that a handler makes inherit from its own.
#[derive(Clone, Debug)]
pub struct Current {
    /// Nanoseconds of the monotonic clock, 0 without one.
    pub deadline_ns: u64,
    /// With the span that the calls are below.
    pub trace: TraceContext,
}

impl Current {
    const NONE: Self = Self { deadline_ns: 0, trace: TraceContext::NONE };

    /// Looks at that of the handler that runs on this thread; there is nothing in it outside of one.
    #[inline]
    pub fn with<T>(look: impl FnOnce(&Self) -> T) -> T {
        CURRENT.with_borrow(|current| look(current))
    }

    /// That of the handler that runs on this thread.
    pub fn get() -> Self {
        Self::with(Clone::clone)
    }

    /// Runs `handle` as the handler of a call: what it calls has no more time than this call.
    pub fn enter<T>(self, handle: impl FnOnce() -> T) -> T {
        struct Restore(ManuallyDrop<Current>);
        impl Drop for Restore {
            fn drop(&mut self) {
                let before = std::mem::replace(&mut self.0, ManuallyDrop::new(Current::NONE));
                drop(ManuallyDrop::into_inner(CURRENT.replace(before)));
            }
        }
        let _restore = Restore(CURRENT.replace(ManuallyDrop::new(self)));
        handle()
    }
}

/// What calls inherit from where they are made: in a handler the end of its time, its trace, and its `tracing` span. It is taken
/// along to where the handler goes on: another thread, or a task.
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
/// # Ok::<(), gapless_trace::NoTraceParent>(())
/// ```
#[derive(Clone, Debug)]
pub struct CallScope {
    current: Current,
    span: tracing::Span,
}

impl CallScope {
    /// Of the handler that runs on this thread, or of the scope that was entered on it; an empty one elsewhere.
    #[must_use]
    pub fn current() -> Self {
        Self { current: Current::get(), span: tracing::Span::current() }
    }

    /// The same with another trace: one that comes from outside, or begins here.
    #[must_use]
    pub fn with_trace(mut self, trace: TraceContext) -> Self {
        self.current.trace = trace;
        self
    }

    /// Runs a function in it, on this thread.
    pub fn run<T>(&self, function: impl FnOnce() -> T) -> T {
        let _entered = self.span.enter();
        self.current.clone().enter(function)
    }

    /// The same future in it, whatever threads poll it.
    pub async fn run_async<Future_: Future>(self, future: Future_) -> Future_::Output {
        let mut future = pin!(future);
        poll_fn(|task| self.run(|| future.as_mut().poll(task))).await
    }
}

impl TraceContext {
    /// The one to hand on from here: calls made here have it as their parent. Of the handler that runs on this thread, or of the
    /// scope that was entered on it.
    #[must_use]
    pub fn current() -> Self {
        Current::with(|current| current.trace.clone())
    }
}
