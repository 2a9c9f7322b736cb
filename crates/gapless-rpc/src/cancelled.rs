//! `Cancelled`: a future for handlers that is ready when the call is cancelled.

use crate::context::CallContext;
use gapless_agent::deadlines::Alarm;
use gapless_agent::monotonic::monotonic_ns;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

const CHECK_INTERVAL_NS: u64 = 100_000_000;

impl CallContext {
    /// Becomes ready when [`CallContext::is_cancelled`] is true: the caller has cancelled or is gone, or the deadline
    /// has passed; for a one-way request only the deadline.
    ///
    /// It also becomes ready when the call is answered, whatever the caller did, so that a task left by the handler
    /// does not wait for ever. Once ready, it is ready at every later poll. Only for a one-way request without a
    /// timeout is it never ready.
    ///
    /// ```
    /// # mod gapless { pub use gapless_rpc as rpc; }
    /// use gapless::rpc::{CallContext, CallOptions, Domain};
    /// use std::sync::mpsc;
    ///
    /// let domain = Domain::in_process("shop");
    /// let (tell, told) = mpsc::channel();
    /// let _route = domain.serve("search").handle_async(move |_: String, context: CallContext| {
    ///     let tell = tell.clone();
    ///     async move {
    ///         drop(tell.send("it has begun"));
    ///         // With an executor's `select`, beside the work itself.
    ///         context.cancelled().await;
    ///         drop(tell.send("nobody waits any more"));
    ///         Err::<String, _>("too late".into())
    ///     }
    /// })?;
    /// let search = domain.caller::<String, String>("search")?;
    /// let call = search.start_with("socks".to_owned(), &CallOptions { timeout: None, ..CallOptions::default() });
    /// assert_eq!(told.recv()?, "it has begun");
    /// drop(call);
    /// assert_eq!(told.recv()?, "nobody waits any more");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { context: self.clone(), number: None, alarm: None }
    }
}

/// Future of [`CallContext::cancelled`].
#[must_use = "a future does nothing unless it is polled"]
#[derive(Debug)]
pub struct Cancelled {
    context: CallContext,
    number: Option<u64>,
    alarm: Option<(Waker, Alarm)>,
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        if self.context.is_cancelled() {
            self.leave();
            return Poll::Ready(());
        }
        // Relaxed: only unique numbers.
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = *self.number.get_or_insert_with(|| LAST.fetch_add(1, Ordering::Relaxed));
        let is_told = self.context.cancellation.watch(number, task.waker());
        // Checked again after registration: an earlier cancellation is seen here, a later one is signalled.
        if self.context.is_cancelled() {
            self.leave();
            return Poll::Ready(());
        }
        let deadline_ns = Some(self.context.deadline_ns).filter(|deadline_ns| *deadline_ns != 0);
        let check_ns = (!is_told).then(|| monotonic_ns() + CHECK_INTERVAL_NS);
        if let Some(wakes_ns) = deadline_ns.into_iter().chain(check_ns).min()
            && (!is_told || self.alarm.as_ref().is_none_or(|(woken, _)| !woken.will_wake(task.waker())))
        {
            self.alarm = Some((task.waker().clone(), Alarm::set(wakes_ns, task.waker().clone())));
        }
        Poll::Pending
    }
}

impl Cancelled {
    fn leave(&mut self) {
        self.alarm = None;
        if let Some(number) = self.number.take() {
            self.context.cancellation.unwatch(number);
        }
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        self.leave();
    }
}
