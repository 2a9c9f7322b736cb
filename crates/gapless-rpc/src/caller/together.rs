//! Many calls at once: fork by making them, join by waiting for them together under one deadline.

use super::call::Call;
use crate::message::Message;
use crate::outcome::CallError;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Waits for all of them on this thread; outcomes in the order of the calls.
pub fn all<Reply: Message>(calls: impl IntoIterator<Item = Call<Reply>>) -> Vec<Result<Reply, CallError>> {
    let calls: Vec<_> = calls.into_iter().collect();
    calls.into_iter().map(Call::wait).collect()
}

/// Waits for the first reply on this thread, with its index; the others are cancelled. If none has a reply, the last error; `None`
/// for no calls.
pub fn first<Reply: Message>(
    calls: impl IntoIterator<Item = Call<Reply>>,
) -> Option<Result<(usize, Reply), CallError>> {
    crate::block_on::block_on(first_async(calls))
}

/// What came within `timeout`, waited for on this thread: `None` for calls that were not answered by then, which are cancelled.
pub fn within<Reply: Message>(
    calls: impl IntoIterator<Item = Call<Reply>>,
    timeout: Duration,
) -> Vec<Option<Result<Reply, CallError>>> {
    let deadline = Instant::now() + timeout;
    let calls: Vec<_> = calls.into_iter().collect();
    calls.into_iter().map(|mut call| call.wait_for(deadline.saturating_duration_since(Instant::now()))).collect()
}

/// As [`all`], for a task.
pub async fn all_async<Reply: Message>(calls: impl IntoIterator<Item = Call<Reply>>) -> Vec<Result<Reply, CallError>> {
    let mut outcomes = Vec::new();
    for call in calls.into_iter().collect::<Vec<_>>() {
        outcomes.push(call.await);
    }
    outcomes
}

/// As [`first`], for a task.
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
