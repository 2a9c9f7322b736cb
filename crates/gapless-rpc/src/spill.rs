//! `Spill`: the overflow of a `LocalRoute`: encoded requests in an `ElasticQueue`.

use crate::error::RpcError;
use crate::local::ByteQueues;
use crate::options::Priority;
use crate::overflow::{ElasticQueue, ElasticQueueOptions, OverflowError, PoppedRecord, QueueNotice};
use std::sync::{Arc, OnceLock};

pub(crate) struct Spill {
    queue: Arc<ElasticQueue>,
    /// Number of lost oldest entries still to report, and the reason.
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
            Ok(PoppedRecord::Record(_)) => Ok(true),
            // Never empty: the route counts what it has pushed.
            Ok(PoppedRecord::Later | PoppedRecord::Empty) => Ok(false),
            Err(error) => {
                let records = if let OverflowError::Lost { records, .. } = &error { *records } else { 1 };
                self.lost[class as usize] = (records.saturating_sub(1), error.to_string());
                Err(error.to_string())
            }
        }
    }
}

#[derive(Clone, Default)]
pub(crate) struct Refill(Arc<OnceLock<RefillAction>>);

type RefillAction = Box<dyn Fn() + Send + Sync>;

impl Refill {
    pub(crate) fn queue(&self, mut options: ElasticQueueOptions) -> Result<ElasticQueue, RpcError> {
        let refill = self.clone();
        options.notice = Some(Arc::new(move |notice| match notice {
            QueueNotice::Readable(_) => refill.run(),
            // A refused caller knows. This comes in the middle of a pop, which holds the lock of the overflow.
            QueueNotice::Room => {}
        }));
        Ok(ElasticQueue::new(options)?)
    }

    pub(crate) fn set(&self, action: impl Fn() + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(action));
    }

    fn run(&self) {
        if let Some(refill) = self.0.get() {
            refill();
        }
    }
}
