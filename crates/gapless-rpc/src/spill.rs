//! [`Spill`]: the overflow of a [`LocalRoute`]: its requests, encoded, in an [`ElasticQueue`].

use crate::error::RpcError;
use crate::local::{ByteQueues, LocalRoute};
use crate::options::Priority;
use crate::overflow::{ElasticQueue, ElasticQueueOptions, Notice, OverflowError, Popped};
use std::sync::{Arc, Mutex};

/// Byte queues of one route whose rest lies on disk.
pub(crate) struct Spill {
    queue: Arc<ElasticQueue>,
    /// Of each class: so many of the oldest are lost, and why.
    lost: [(u64, String); 4],
}

impl Spill {
    pub(crate) fn new(queue: Arc<ElasticQueue>) -> Self {
        Self { queue, lost: Default::default() }
    }
}

impl ByteQueues for Spill {
    fn push(&mut self, class: Priority, bytes: &[u8]) -> Result<(), String> {
        self.queue.push(class, bytes).map(|_| ()).map_err(|error| error.to_string())
    }

    fn pop(&mut self, class: Priority, into: &mut Vec<u8>) -> Result<bool, String> {
        let (left, reason) = &mut self.lost[class as usize];
        if *left > 0 {
            *left -= 1;
            return Err(reason.clone());
        }
        match self.queue.pop(class, into) {
            Ok(Popped::Record(_)) => Ok(true),
            // Empty does not happen: the route counts what it has pushed.
            Ok(Popped::Later | Popped::Empty) => Ok(false),
            Err(error) => {
                let records = if let OverflowError::Lost { records, .. } = &error { *records } else { 1 };
                self.lost[class as usize] = (records.saturating_sub(1), error.to_string());
                Err(error.to_string())
            }
        }
    }
}

/// What is to be done when spilled requests have been read back. It holds the route, which holds the queue: it is emptied when the
/// route is withdrawn.
#[derive(Clone, Default)]
pub(crate) struct Refill(Arc<Mutex<Option<Action>>>);

type Action = Arc<dyn Fn() + Send + Sync>;

impl Refill {
    /// A queue whose notices come here.
    pub(crate) fn queue(&self, mut options: ElasticQueueOptions) -> Result<ElasticQueue, RpcError> {
        let refill = self.clone();
        options.notice = Some(Arc::new(move |notice| match notice {
            Notice::Readable(_) => refill.run(),
            // Nobody waits for room: who was refused knows. It comes in the middle of a pop, which has the lock of the overflow.
            Notice::Room => {}
        }));
        ElasticQueue::new(options)
    }

    pub(crate) fn set<Request: Send + 'static, Reply: Send + 'static>(&self, route: LocalRoute<Request, Reply>) {
        *self.0.lock().expect("nobody panics with the lock") = Some(Arc::new(move || route.refill()));
    }

    fn run(&self) {
        // Without the lock: it tells callers, whose functions may withdraw the route.
        let refill = self.0.lock().expect("nobody panics with the lock").clone();
        if let Some(refill) = refill {
            refill();
        }
    }

    pub(crate) fn clear(&self) {
        let refill = self.0.lock().expect("nobody panics with the lock").take();
        drop(refill);
    }
}
