//! [`CallerOptions`]: options of a caller, with their defaults.

use super::interceptor::Interceptor;
use crate::options::{CallOptions, Retry, Waiting};
use crate::overflow::ElasticQueueOptions;
use std::sync::Arc;

/// Where a caller looks for its route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// In this process if it is served here, else in others.
    #[default]
    Nearest,
    /// In this process only: nothing is encoded.
    Process,
    /// In other processes only.
    Machine,
}

/// Options of a caller.
#[derive(Clone, Default)]
pub struct CallerOptions {
    /// What its calls have that say nothing else.
    pub call: CallOptions,
    /// When calls are offered again whose copy has died.
    pub retry: Retry,
    /// How threads wait for replies.
    pub waiting: Waiting,
    /// Where the route is looked for.
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
        let Self { call, retry, waiting, reach, overflow, interceptors } = self;
        f.debug_struct("CallerOptions")
            .field("call", call)
            .field("retry", retry)
            .field("waiting", waiting)
            .field("reach", reach)
            .field("overflow", overflow)
            .field("interceptors", &interceptors.len())
            .finish()
    }
}
