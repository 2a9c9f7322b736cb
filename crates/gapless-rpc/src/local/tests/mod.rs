//! Adversarial tests of a whole route inside one process.

mod calls;
mod crowds;
mod endings;
mod forwards;
mod overflows;
mod routes;

use super::{IncomingRequest, LocalOffer, LocalOptions, LocalRoute, LocalWorker};
use crate::context::CallContext;
use crate::options::Waiting;
use crate::outcome::Rejection;
use gapless_testkit::wake_count::WakeCount;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

type Route = LocalRoute<u64, u64>;
type Worker = LocalWorker<u64, u64>;

fn route() -> Route {
    Route::new("test", LocalOptions::default()).unwrap()
}

fn call(route: &Route, request: u64) -> super::LocalCall<u64> {
    route.call(request, LocalOffer::default()).unwrap()
}

fn next(worker: &mut Worker) -> IncomingRequest<u64, u64> {
    worker.try_next().expect("a request waits")
}

fn serve(route: &Route, handler: fn(u64, CallContext) -> Result<u64, Rejection>) -> JoinHandle<u64> {
    let mut worker = route.worker().unwrap();
    std::thread::spawn(move || {
        let mut served = 0;
        while let Some(incoming) = worker.next_blocking(Waiting::Park) {
            incoming.handle(handler);
            served += 1;
        }
        served
    })
}

fn plus_one(request: u64, _: CallContext) -> Result<u64, Rejection> {
    Ok(request + 1)
}
