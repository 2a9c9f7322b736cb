//! Serving a route: workers that pull requests of other processes, and the handler that answers them. The registry
//! connects the processes.
//!
//! | module | what lives there |
//! |---|---|
//! | [`workers`] | [`Workers`]: the threads and tasks of one instance of a route |
//! | [`request_processor`] | [`RequestProcessor`](request_processor::RequestProcessor): from an encoded request to its encoded reply; [`Handler`](request_processor::Handler): the application's function, plain or `async` |
//! | [`interceptor`] | [`ServerInterceptor`](interceptor::ServerInterceptor): a hook around the handler |
//! | [`attachments`] | [`ServedRoutes`](attachments::ServedRoutes): the routes of this process, and the callers whose tables are attached |
//! | [`puller`] | [`ServedCallers`](puller::ServedCallers): requests of all callers of an instance, and answers |
//! | `cancellation_watchers` | handlers that wait for the cancellation of their calls |
//! | [`counters`] | [`InstanceCounters`]: statistics of an instance |

pub(crate) mod attachments;
mod cancellation_watchers;
pub(crate) mod counters;
pub(crate) mod interceptor;
pub(crate) mod puller;
pub(crate) mod request_processor;
pub(crate) mod workers;
