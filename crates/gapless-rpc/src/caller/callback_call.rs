//! [`CallbackCall`]: a call whose outcome a function is told, or nobody, on whatever thread wakes it. The wakes of one thread come one after the other:
//! an end frees a slot, which wakes the next call, whose end frees a slot, and so on, and no stack is as deep as calls may be many.

use super::call::{Call, CallState, over};
use super::remote_call::{Destination, RemoteCall};
use crate::message::Message;
use crate::options::Waiting;
use crate::outcome::CallError;
use crate::remote::table::Ticket;
use gapless_agent::foreign;
use gapless_agent::process_mark::ProcessMark;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

impl<Reply: Message> Call<Reply> {
    /// Calls `function` with the outcome, on a thread of the domain or of a worker, or here if it is there already: it must not
    /// sleep. The call is no longer cancelled by anybody.
    ///
    /// # Panics
    /// If its outcome was taken already.
    pub fn on_end(self, function: impl FnOnce(Result<Reply, CallError>) + Send + 'static) {
        if self.is_over() {
            over();
        }
        let state = Mutex::new(Some((self, Box::new(function) as Callback<Reply>)));
        Arc::new(CallbackCall { state, is_woken: AtomicBool::new(false) }).wake();
    }
}

/// Follows what was sent, and what its handler forwards, to an end that nobody waits for.
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

type Callback<Reply> = Box<dyn FnOnce(Result<Reply, CallError>) + Send>;

/// A call whose outcome a function is told.
struct CallbackCall<Reply> {
    state: Mutex<Option<(Call<Reply>, Callback<Reply>)>>,
    /// It was woken and has not been polled since.
    is_woken: AtomicBool,
}

impl<Reply: Message> Wake for CallbackCall<Reply> {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        let call: Arc<dyn Look> = self;
        let queued = THREAD.try_with(|thread| {
            if thread.is_looking.replace(true) {
                thread.waiting.borrow_mut().push_back(call.clone());
                return;
            }
            let mut next = Some(Arc::clone(&call));
            while let Some(call) = next {
                call.look();
                next = thread.waiting.borrow_mut().pop_front();
            }
            thread.is_looking.set(false);
        });
        if queued.is_err() {
            // The thread is ending.
            call.look();
        }
    }
}

/// Looks at a call that was woken; does not panic.
trait Look: Send + Sync {
    fn look(self: Arc<Self>);
}

/// What a thread has to look at.
#[derive(Default)]
struct Looks {
    is_looking: Cell<bool>,
    waiting: RefCell<VecDeque<Arc<dyn Look>>>,
}

thread_local! {
    static THREAD: Looks = Looks::default();
}

impl<Reply: Message> Look for CallbackCall<Reply> {
    fn look(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        let mut task = Context::from_waker(&waker);
        // Whoever polls it looks at the flag again after letting it go; so one of the two polls it after this.
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
