//! [`Backlog`]: requests to other processes that found no free slot. The first of each class wait in memory, the others
//! in an elastic queue that spills to disk. It is a [`LocalRoute`] whose only worker is the mover, and shares its
//! deadlines, cancellation and overflow limits.

mod gauges;
mod mover;
mod record;

use super::remote_call::{Destination, RequestBytes, Terms};
use super::routes::SharedTable;
use crate::caller::table::CallEnd;
use crate::error::RpcError;
use crate::local::{LocalCall, LocalOffer, LocalOptions, LocalRoute};
use crate::options::{Priority, Waiting};
use crate::outcome::CallError;
use crate::overflow::{ElasticQueue, ElasticQueueOptions};
use crate::spill::{Refill, Spill};
use gapless_agent::fault::crash_point;
use gapless_agent::foreign;
use gauges::BacklogGauges;
use mover::{Mover, MoverWakeups};
use record::{BacklogCounts, BacklogOverflow, BacklogPlace, BacklogRecord};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

/// Enough to offer while the next ones are read from the queue.
const FIRST_MAX: usize = 16;

pub(crate) type EncodedReply = (Vec<u8>, u32);

pub(crate) struct Backlog {
    route: LocalRoute<BacklogRecord, EncodedReply>,
    line: Arc<BacklogCounts>,
    queue: Arc<ElasticQueue>,
    woken: Arc<MoverWakeups>,
    started: Mutex<Option<Arc<BacklogGauges>>>,
}

impl Backlog {
    /// Creates neither a file nor a thread: the first queued request does.
    pub(crate) fn new(route: &str, options: ElasticQueueOptions) -> Result<Self, RpcError> {
        let (refill, line) = (Refill::default(), Arc::<BacklogCounts>::default());
        let queue = Arc::new(refill.queue(options)?);
        let behind = BacklogOverflow::new(Spill::new(Arc::clone(&queue)), Arc::clone(&line));
        let options =
            LocalOptions { queue_max: FIRST_MAX, overflow: Some(Box::new(behind)), ..LocalOptions::default() };
        let route = LocalRoute::new(route, options)?;
        refill.set(route.refiller());
        let (woken, started) = (Arc::default(), Mutex::default());
        Ok(Self { route, line, queue, woken, started })
    }

    /// Reports whether a new request of the class must queue behind others.
    pub(crate) fn has(&self, class: Priority) -> bool {
        self.line.has(class)
    }

    pub(crate) fn call(&self, to: &Destination, terms: Terms, bytes: RequestBytes) -> Result<BacklogCall, CallError> {
        let (record, offer) = self.enter(to, terms, bytes)?;
        let call = self.route.call(record, offer).map_err(|unsent| refused(to, unsent.error))?.timed_by_worker();
        crash_point("backlog_entered");
        self.entered();
        Ok(BacklogCall { call: Some(call), woken: Arc::clone(&self.woken), table: Arc::clone(&to.table) })
    }

    pub(crate) fn send(&self, to: &Destination, terms: Terms, bytes: RequestBytes) -> Result<(), CallError> {
        let (record, offer) = self.enter(to, terms, bytes)?;
        self.route.send(record, offer).map_err(|unsent| refused(to, unsent.error))?;
        crash_point("backlog_entered");
        self.entered();
        Ok(())
    }

    fn entered(&self) {
        self.lock().iter().for_each(|shown| shown.entered());
    }

    pub(crate) fn publish(&self) {
        self.lock().iter().for_each(|shown| shown.publish());
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<BacklogGauges>>> {
        self.started.lock().expect("nobody panics with the lock")
    }

    fn enter(
        &self,
        to: &Destination,
        mut terms: Terms,
        (user_headers, payload): RequestBytes,
    ) -> Result<(BacklogRecord, LocalOffer), CallError> {
        self.start(to).map_err(|error| {
            let reason = format!("its backlog has no thread: {error}");
            refused(to, CallError::Busy { route: to.key.route.to_string(), reason })
        })?;
        // The mover awaits the answer: only then is the slot free.
        terms.offer.one_way = false;
        let class = terms.class();
        let deadline_ns = terms.offer.header.deadline_ns;
        let offer = LocalOffer::default().with_priority(class);
        let offer = if deadline_ns == 0 { offer } else { offer.with_deadline(deadline_ns, terms.timeout) };
        let place = BacklogPlace::take(&self.line, class);
        Ok((BacklogRecord { terms, user_headers, payload, place }, offer))
    }

    fn start(&self, to: &Destination) -> std::io::Result<()> {
        let mut started = self.lock();
        if started.is_some() {
            return Ok(());
        }
        let shown =
            Arc::new(BacklogGauges::new(Arc::clone(&to.table), Arc::clone(&self.line), Arc::clone(&self.queue)));
        let (to, route) = (to.clone(), self.route.clone());
        let (woken, for_mover) = (Arc::clone(&self.woken), Arc::clone(&shown));
        std::thread::Builder::new().name("gapless-backlog".to_owned()).spawn(move || {
            foreign::own_this_thread();
            // Created here because the route ends with its last worker.
            if let Some(worker) = route.worker() {
                Mover::new(to, worker, woken, for_mover).run();
            }
        })?;
        *started = Some(shown);
        Ok(())
    }
}

fn refused(to: &Destination, error: CallError) -> CallError {
    to.table.count_unoffered(CallEnd::of(&error));
    error
}

impl Drop for Backlog {
    fn drop(&mut self) {
        self.route.drain();
    }
}

/// Dropping it cancels it.
pub(crate) struct BacklogCall {
    call: Option<LocalCall<EncodedReply>>,
    woken: Arc<MoverWakeups>,
    table: Arc<SharedTable>,
}

impl BacklogCall {
    pub(crate) fn has_begun(&self) -> bool {
        self.call.as_ref().is_some_and(LocalCall::has_begun)
    }

    pub(crate) fn wait(&mut self, waiting: Waiting) -> Option<Result<EncodedReply, CallError>> {
        let ended = self.call.as_mut()?.wait_until(u64::MAX, waiting);
        self.end(ended)
    }

    pub(crate) fn try_take(&mut self) -> Option<Result<EncodedReply, CallError>> {
        let ended = self.call.as_mut()?.try_take();
        self.end(ended)
    }

    pub(crate) fn poll(&mut self, task: &mut Context<'_>) -> Poll<Option<Result<EncodedReply, CallError>>> {
        let Some(call) = &mut self.call else { return Poll::Ready(None) };
        match Pin::new(call).poll(task) {
            Poll::Ready(ended) => Poll::Ready(self.end(Some(ended))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn end(&mut self, ended: Option<Result<EncodedReply, CallError>>) -> Option<Result<EncodedReply, CallError>> {
        if let Some(outcome) = &ended {
            if let Err(error) = outcome
                && !self.has_begun()
            {
                self.table.count_unoffered(CallEnd::of(error));
            }
            self.call = None;
        }
        ended
    }
}

impl Drop for BacklogCall {
    fn drop(&mut self) {
        // The call may have ended in the queue, by its deadline.
        drop(self.try_take());
        let Some(call) = self.call.take() else { return };
        if call.cancel() {
            self.woken.cancelled();
        } else {
            self.table.count_unoffered(CallEnd::Cancelled);
        }
    }
}
