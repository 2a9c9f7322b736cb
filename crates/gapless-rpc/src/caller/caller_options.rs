//! [`CallerOptions`]: options of a caller, with their defaults.

use super::interceptor::Interceptor;
use crate::options::{CallOptions, Waiting};
use crate::overflow::ElasticQueueOptions;
use std::sync::Arc;

/// Where a caller looks for its route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// In this process if it is served here, else in others.
    #[default]
    Nearest,
    /// In this process only: nothing is encoded.
    ThisProcess,
    /// In other processes only.
    OtherProcesses,
}

/// Options of a caller.
#[derive(Clone, Default)]
pub struct CallerOptions {
    /// The options of its calls that have none of their own: time, headers, repetitions and whatever else. Those that are given to
    /// [`call_with`](super::Caller::call_with), `start_with` or `send_with` replace them as a whole; to change some of them for one call,
    /// begin with [`Caller::call_options`](super::Caller::call_options).
    pub call: CallOptions,
    /// How threads wait for replies; [`Waiting::Park`] by default.
    pub waiting: Waiting,
    /// Where the route is looked for; [`Reach::Nearest`] by default.
    pub reach: Reach,
    /// Where requests to other processes wait that find no free slot: encoded, in a queue whose rest lies on disk. They are
    /// offered in the order of their class as slots come free, and nothing of this caller overtakes them in its class. Its limit, or a
    /// disk that does not keep up, is [`crate::CallError::Busy`]. Without it they wait for a slot: calls in memory, senders in `send`. A
    /// quarter of the slots is kept for it. The options' own notice is not used; a route in this process has
    /// [`crate::RouteBuilder::overflow`].
    pub overflow: Option<ElasticQueueOptions>,
    /// What looks at every call.
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
