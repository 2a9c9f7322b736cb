//! `CallerOptions`: options of a caller, with their defaults.

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

/// Options of a caller; [`CallOptions`] are per call.
#[derive(Clone, Default)]
pub struct CallerOptions {
    /// Default options of its calls. Options given to [`call_with`](super::Caller::call_with), `start_with` or
    /// `send_with` replace them as a whole; to change some of them, start from
    /// [`Caller::call_options`](super::Caller::call_options).
    pub call: CallOptions,
    /// Wait strategy of threads for replies; default [`Waiting::Park`].
    pub waiting: Waiting,
    /// Places where the route is looked for; default [`Reach::Nearest`].
    pub reach: Reach,
    /// Queue for requests to other processes that find no free slot, encoded and spilled to disk, offered in the order
    /// of their class; a quarter of the slots is reserved for it. At its limit, or if the disk does not keep up, calls
    /// end as [`crate::CallError::Busy`]. Without a queue, calls wait for a slot in memory, and `send` blocks. The
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
