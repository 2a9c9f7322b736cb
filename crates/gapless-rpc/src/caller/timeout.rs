//! `in_time`: a timeout for a polled condition.

use gapless_agent::deadlines::Alarm;
use gapless_agent::monotonic::{monotonic_ns, saturating_ns};
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Polls until `poll` is ready or `timeout` has passed.
pub(super) async fn in_time(timeout: Duration, mut poll: impl FnMut(&mut Context<'_>) -> Poll<()>) {
    let until_ns = monotonic_ns().saturating_add(saturating_ns(timeout));
    let mut alarm = None::<(Waker, Alarm)>;
    poll_fn(|task| {
        if poll(task).is_ready() || monotonic_ns() >= until_ns {
            return Poll::Ready(());
        }
        if alarm.as_ref().is_none_or(|(woken, _)| !woken.will_wake(task.waker())) {
            alarm = Some((task.waker().clone(), Alarm::set(until_ns, task.waker().clone())));
        }
        Poll::Pending
    })
    .await;
}
