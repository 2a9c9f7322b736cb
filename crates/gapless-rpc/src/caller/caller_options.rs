//! [`CallerOptions`]: options of a caller, with their defaults.

use super::interceptor::Interceptor;
use crate::options::{CallOptions, Waiting};
use crate::overflow::ElasticQueueOptions;
use std::sync::Arc;

/// Places where a caller looks for its route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// This process if it serves the route, else other processes.
    #[default]
    Nearest,
    /// This process only: nothing is encoded.
    ThisProcess,
    OtherProcesses,
}

/// Options of a caller.
#[derive(Clone, Default)]
pub struct CallerOptions {
    /// Default options of its calls: timeout, headers, retries and so on. Options given to
    /// [`call_with`](super::Caller::call_with), `start_with` or `send_with` replace them as a whole; to change only
    /// some of them for one call, start from [`Caller::call_options`](super::Caller::call_options).
    pub call: CallOptions,
    /// Wait strategy of threads for replies; default [`Waiting::Park`].
    pub waiting: Waiting,
    /// Places where the route is looked for; default [`Reach::Nearest`].
    pub reach: Reach,
    /// Queue for requests to other processes that find no free slot, encoded and spilled to disk. They are offered in
    /// the order of their class as slots come free; no later request of this caller overtakes within its class. At its
    /// limit, or if the disk does not keep up, calls end as [`crate::CallError::Busy`]. Without a queue, requests wait
    /// for a slot: calls in memory, senders blocked in `send`. A quarter of the slots is reserved for the queue. The
    /// notice in these options is not used; for a route in this process see [`crate::RouteBuilder::overflow`].
    pub overflow: Option<ElasticQueueOptions>,
    /// Interceptors of every call, in order.
    pub interceptors: Vec<Arc<dyn Interceptor>>,
}

impl std::fmt::Debug for CallerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { call, waiting, reach, overflow, interceptors } = self;
        f.debug_struct("CallerOptions")
            .field("call", call)
            .field("waiting", waiting)
            .field("reach", reach)
            .field("overflow", overflow)
            .field("interceptors", &interceptors.len())
            .finish()
    }
}
