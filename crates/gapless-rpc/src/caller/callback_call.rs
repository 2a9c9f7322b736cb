//! [`CallbackCall`]: a call whose outcome goes to a callback on the thread that wakes it. Wake-ups of one thread are
//! queued; otherwise the stack would grow with the number of calls.

use super::call::{Call, CallState, over};
use super::remote_call::{Destination, RemoteCall};
use crate::caller::table::Ticket;
use crate::message::Message;
use crate::options::Waiting;
use crate::outcome::CallError;
use gapless_agent::foreign;
use gapless_agent::process_mark::ProcessMark;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

impl<Reply: Message> Call<Reply> {
    /// Calls `function` with the outcome, on a thread of the domain or of a worker, or here if the call has ended
    /// already. The function must not block. The call can no longer be cancelled.
    ///
    /// # Panics
    /// If the outcome was taken already.
    pub fn on_end(self, function: impl FnOnce(Result<Reply, CallError>) + Send + 'static) {
        if self.is_over() {
            over();
        }
        let state = Mutex::new(Some((self, Box::new(function) as EndCallback<Reply>)));
        Arc::new(CallbackCall { state, is_woken: AtomicBool::new(false) }).wake();
    }
}

pub(crate) fn follow_sent(to: Destination, ticket: Ticket) {
    let route = Arc::clone(&to.key.route);
    let state = CallState::Remote(Box::new(RemoteCall::of_sent(to, ticket)), Vec::new());
    let (waiting, made_by) = (Waiting::default(), ProcessMark::current());
    let call = Call::<()> { state, waiting, decode: |_, _| Ok(()), observed: None, attempts: 0, made_by };
    call.on_end(move |outcome| {
        if let Err(error) = outcome {
            tracing::debug!(route = &*route, %error, "what nobody waits for does not go on");
        }
    });
}

type EndCallback<Reply> = Box<dyn FnOnce(Result<Reply, CallError>) + Send>;

struct CallbackCall<Reply> {
    state: Mutex<Option<(Call<Reply>, EndCallback<Reply>)>>,
    is_woken: AtomicBool,
}

impl<Reply: Message> Wake for CallbackCall<Reply> {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        let call: Arc<dyn PollableCall> = self;
        let queued = THREAD.try_with(|thread| {
            if thread.is_polling.replace(true) {
                thread.waiting.borrow_mut().push_back(call.clone());
                return;
            }
            let mut next = Some(Arc::clone(&call));
            while let Some(call) = next {
                call.poll_call();
                next = thread.waiting.borrow_mut().pop_front();
            }
            thread.is_polling.set(false);
        });
        if queued.is_err() {
            call.poll_call();
        }
    }
}

/// Polling does not panic.
trait PollableCall: Send + Sync {
    fn poll_call(self: Arc<Self>);
}

#[derive(Default)]
struct PollQueue {
    is_polling: Cell<bool>,
    waiting: RefCell<VecDeque<Arc<dyn PollableCall>>>,
}

thread_local! {
    static THREAD: PollQueue = PollQueue::default();
}

impl<Reply: Message> PollableCall for CallbackCall<Reply> {
    fn poll_call(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        let mut task = Context::from_waker(&waker);
        // The holder of the lock checks the flag again after releasing it: one of both threads polls after this
        // wake-up.
        while self.is_woken.load(Ordering::SeqCst) {
            let Ok(mut state) = self.state.try_lock() else { return };
            self.is_woken.store(false, Ordering::SeqCst);
            let Some((call, _)) = &mut *state else { return };
            if let Poll::Ready(outcome) = call.poll_outcome(&mut task)
                && let Some((call, function)) = state.take()
            {
                drop((state, call));
                return foreign::run("a function that is told of an end", || function(outcome));
            }
        }
    }
}
