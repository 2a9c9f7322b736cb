//! Many calls under one deadline: any number of one type, or a tuple of several types ([`all_of`], [`within_of`],
//! [`first_of`]). Every function panics on a call whose outcome was taken already.

use super::call::Call;
use super::timeout::in_time;
use crate::block_on::{block_on, block_on_until};
use crate::message::Message;
use crate::outcome::CallError;
use gapless_agent::foreign;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

pub use super::mixed::{Calls, all_of, all_of_async, first_of, first_of_async, within_of, within_of_async};

/// Waits for all calls on this thread; the outcomes are in order. Calls without a slot are offered as others end.
pub fn all<Reply: Message>(calls: impl IntoIterator<Item = Call<Reply>>) -> Vec<Result<Reply, CallError>> {
    let calls: Vec<_> = calls.into_iter().collect();
    if calls.iter().all(Call::is_offered) {
        return calls.into_iter().map(Call::wait).collect();
    }
    block_on(all_async(calls))
}

/// Waits for the first reply on this thread and returns it with its index; the others are cancelled. Without a reply
/// the last error; `None` for no calls.
pub fn first<Reply: Message>(
    calls: impl IntoIterator<Item = Call<Reply>>,
) -> Option<Result<(usize, Reply), CallError>> {
    block_on(first_async(calls))
}

/// Waits on this thread for `timeout` at most; later calls are cancelled and are `None`. A timeout beyond the clock's
/// range means none.
pub fn within<Reply: Message>(
    calls: impl IntoIterator<Item = Call<Reply>>,
    timeout: Duration,
) -> Vec<Option<Result<Reply, CallError>>> {
    let deadline = Instant::now().checked_add(timeout);
    let mut joined = JoinedCalls::new(calls);
    let _ = block_on_until(poll_fn(|task| joined.poll(task)), deadline);
    joined.outcomes
}

/// Like [`all`], for a task.
pub async fn all_async<Reply: Message>(calls: impl IntoIterator<Item = Call<Reply>>) -> Vec<Result<Reply, CallError>> {
    let mut joined = JoinedCalls::new(calls);
    poll_fn(|task| joined.poll(task)).await;
    joined.outcomes.into_iter().flatten().collect()
}

/// Like [`within`], for a task.
pub async fn within_async<Reply: Message>(
    calls: impl IntoIterator<Item = Call<Reply>>,
    timeout: Duration,
) -> Vec<Option<Result<Reply, CallError>>> {
    let mut joined = JoinedCalls::new(calls);
    in_time(timeout, |task| joined.poll(task)).await;
    joined.outcomes
}

/// Calls polled together; only woken ones are polled.
struct JoinedCalls<Reply> {
    calls: Vec<Option<Call<Reply>>>,
    outcomes: Vec<Option<Result<Reply, CallError>>>,
    left: usize,
    woken: Arc<WokenCalls>,
    wakers: Vec<Waker>,
}

#[derive(Default)]
struct WokenCalls {
    numbers: Mutex<Vec<usize>>,
    task: Mutex<Option<Waker>>,
}

struct JoinedCallWaker(Arc<WokenCalls>, usize);

impl Wake for JoinedCallWaker {
    fn wake(self: Arc<Self>) {
        let Self(woken, number) = &*self;
        woken.numbers.lock().expect("nobody panics with the lock").push(*number);
        let task = woken.task.lock().expect("nobody panics with the lock").take();
        task.into_iter().for_each(foreign::wake);
    }
}

impl<Reply: Message> JoinedCalls<Reply> {
    fn new(calls: impl IntoIterator<Item = Call<Reply>>) -> Self {
        let calls: Vec<_> = calls.into_iter().map(Some).collect();
        let (left, woken) = (calls.len(), Arc::<WokenCalls>::default());
        *woken.numbers.lock().expect("nobody panics with the lock") = (0..left).collect();
        let wakers =
            (0..left).map(|number| Waker::from(Arc::new(JoinedCallWaker(Arc::clone(&woken), number)))).collect();
        Self { calls, outcomes: (0..left).map(|_| None).collect(), left, woken, wakers }
    }

    fn poll(&mut self, task: &Context<'_>) -> Poll<()> {
        // Registered first, so that every later wake-up reaches this task.
        let before = self.woken.task.lock().expect("nobody panics with the lock").replace(task.waker().clone());
        // Without the lock: dropping a waker may run arbitrary code.
        drop(before);
        let numbers = std::mem::take(&mut *self.woken.numbers.lock().expect("nobody panics with the lock"));
        for number in numbers {
            let Some(call) = &mut self.calls[number] else { continue };
            if let Poll::Ready(outcome) = call.poll_outcome(&mut Context::from_waker(&self.wakers[number])) {
                self.outcomes[number] = Some(outcome);
                self.calls[number] = None;
                self.left -= 1;
            }
        }
        if self.left == 0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Like [`first`], for a task.
pub async fn first_async<Reply: Message>(
    calls: impl IntoIterator<Item = Call<Reply>>,
) -> Option<Result<(usize, Reply), CallError>> {
    let mut calls: Vec<_> = calls.into_iter().map(Some).collect();
    let mut last_error = None;
    poll_fn(move |task| {
        let mut is_any_left = false;
        for (index, slot) in calls.iter_mut().enumerate() {
            let Some(call) = slot else { continue };
            match Pin::new(call).poll(task) {
                Poll::Ready(Ok(reply)) => return Poll::Ready(Some(Ok((index, reply)))),
                Poll::Ready(Err(error)) => {
                    last_error = Some(error);
                    *slot = None;
                }
                Poll::Pending => is_any_left = true,
            }
        }
        if is_any_left { Poll::Pending } else { Poll::Ready(last_error.take().map(Err)) }
    })
    .await
}
