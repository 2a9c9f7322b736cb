//! `block_on`: runs a future to completion on this thread.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Instant;

pub fn block_on<F: Future>(future: F) -> F::Output {
    match block_on_until(future, None) {
        Some(output) => output,
        None => unreachable!("without a deadline there is an end"),
    }
}

/// Runs a future on this thread to completion; `None` if `deadline` passes before that.
pub fn block_on_until<F: Future>(future: F, deadline: Option<Instant>) -> Option<F::Output> {
    let woken = Arc::new(ThreadWaker { is_woken: AtomicBool::new(false), thread: std::thread::current() });
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        // A wait inside the future may have consumed the unpark meant for this sleep.
        if woken.is_woken.swap(false, Ordering::Acquire) {
            continue;
        }
        match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
            Some(left) if left.is_zero() => return None,
            Some(left) => std::thread::park_timeout(left),
            None => std::thread::park(),
        }
    }
}

struct ThreadWaker {
    is_woken: AtomicBool,
    thread: Thread,
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        // Release: pairs with the Acquire before the sleep.
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

#[must_use]
pub fn thread_waker() -> Waker {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    Waker::from(Arc::new(Unpark(std::thread::current())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::time::Duration;

    async fn looks_twice(mut at_first: impl FnMut()) {
        let mut is_first = true;
        poll_fn(|task| {
            if !std::mem::take(&mut is_first) {
                return Poll::Ready(());
            }
            task.waker().wake_by_ref();
            at_first();
            Poll::Pending
        })
        .await;
    }

    #[test]
    fn nested_block_on_keeps_outer_wake_up() {
        let (ends, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            block_on(looks_twice(|| block_on(looks_twice(|| ()))));
            ends.send(())
        });
        assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok(()), "the outer one sleeps");
    }
}
